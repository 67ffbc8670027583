"""misslink goldset: make, pool, check and change gold sets."""

from __future__ import annotations

import typer

__all__ = ["app"]

app = typer.Typer(help="Make, check and change gold sets.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make, check and change gold sets."""
