"""The page on which people answer: rendered on the server, usable without JavaScript, whole in itself."""
