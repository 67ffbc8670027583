"""An app that is broken on purpose, case by case, so that the cause of every failure is known."""
