"""The studio: what it serves, and what it starts, with forms made of the settings; and commands for what runs."""
