"""A package, so that one browser serves all its files."""
