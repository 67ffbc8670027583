"""Level 3, the answer end to end."""
