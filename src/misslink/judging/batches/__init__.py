"""A judge asked by its provider's batch service: many questions in a file, cheaper and later."""
