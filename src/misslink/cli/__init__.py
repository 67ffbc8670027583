"""The command line: thin commands that parse options, call the package and print."""

from __future__ import annotations
