"""The town's module can be imported by the tests beside it."""
