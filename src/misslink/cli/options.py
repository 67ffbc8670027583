"""Options that several commands take, each said once."""

from __future__ import annotations

from typing import Any

import typer

__all__ = [
    "AS_JSON",
    "CONCURRENCY",
    "ID_KEY",
    "ID_KEY_OF_RUN",
    "INPUT_KEY",
    "INPUT_KEY_OF_RUN",
    "JUDGE",
    "LEDGER",
]

AS_JSON: Any = typer.Option(False, "--json", help="Print one JSON document.")
LEDGER: Any = typer.Option(
    None,
    "--ledger",
    help="Where judge replies are kept.",
    show_default=".misslink/ledger.sqlite",
)
JUDGE: Any = typer.Option(
    ..., "--judge", envvar="MISSLINK_JUDGE", help="Such as openai:MODEL.", show_default=False
)
CONCURRENCY: Any = typer.Option(8, "--concurrency", min=1, help="Questions under way at once.")

# Of commands that ask an app.
ID_KEY: Any = typer.Option(None, "--id-key", help="Metadata key that holds a passage's id.")
INPUT_KEY: Any = typer.Option(
    None, "--input-key", help="Key under which the app takes its question."
)

# Of commands that ask the app of a run again.
ID_KEY_OF_RUN: Any = typer.Option(
    None, "--id-key", help="Metadata key that holds a passage's id.", show_default="the run's"
)
INPUT_KEY_OF_RUN: Any = typer.Option(
    None,
    "--input-key",
    help="Key under which the app takes its question.",
    show_default="the run's",
)
