"""Kinds of failure for `attribution_kinds.py`, written without the rules that they measure."""
