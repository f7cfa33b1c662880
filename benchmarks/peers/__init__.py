"""twothirds beside other tools. Their Pythons import this package: the standard library only."""
