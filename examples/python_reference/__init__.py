"""The demo: a RAG app over the Python language reference."""
