"""What a live log says of its variants."""
