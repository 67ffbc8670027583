"""A package, so that one Ray cluster serves all its files, and ends with them."""
