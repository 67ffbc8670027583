"""A run as a page for people."""
