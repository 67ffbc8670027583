"""Pool passages of several retrievers and a random sample for annotators to grade."""
