"""An app that is broken on purpose, case by case, so that the failure mode of every failure is known."""
