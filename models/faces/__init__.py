"""The model that ships."""
