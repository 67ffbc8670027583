"""Level 2, what the model did with the passages."""
