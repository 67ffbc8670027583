"""A live app watched: canary questions, alarms on change, traffic between two variants."""
