"""Files, here and elsewhere: their locations, and which hosts may be asked for them."""
