"""What is found, beside what could be."""
