"""How the model that ships was drawn for, trained and evaluated."""
