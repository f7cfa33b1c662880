"""Pictures and films: what is accepted, what each may cost, and how one is opened."""
