"""Where examples come from: a folder of images, a table, a URL."""
