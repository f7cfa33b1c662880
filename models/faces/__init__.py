"""The small vision-language model that ships, and how its drawn faces are made."""
