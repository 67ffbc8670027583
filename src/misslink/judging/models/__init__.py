"""Judges that are language models: how they are addressed, and how their words are read."""
