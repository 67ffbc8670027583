"""Canary questions put to a live app: runs, their history, and alarms on change."""
