"""Gold sets: made from a corpus or from logs, pooled, labelled, checked, brought and taken out."""
