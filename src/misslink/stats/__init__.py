"""Intervals and tests."""
