"""What the store costs: paid labels, growth, a resume, a backup."""
