"""Level 1, what the retriever found."""
