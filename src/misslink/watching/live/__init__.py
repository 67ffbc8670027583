"""Live traffic between variants: routing, shadowing, interleaving, and the log of it."""
