"""How the model that ships was trained."""
