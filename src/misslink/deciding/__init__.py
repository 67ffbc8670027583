"""What follows from runs: which of two is better, and whether one is good enough."""
