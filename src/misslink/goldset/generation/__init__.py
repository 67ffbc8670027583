"""Generate gold sets from a corpus: a judge writes every question, then verifies it."""
