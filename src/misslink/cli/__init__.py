"""The command line: thin commands that parse, call and print."""

from misslink.cli.main import main

__all__ = ["main"]
