"""twothirds beside the tools that users would pick instead, all asking one local server that keeps a book."""
