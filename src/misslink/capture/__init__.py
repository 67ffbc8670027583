"""How an app is watched."""
