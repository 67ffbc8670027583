"""Options that several commands take, each said once."""

from __future__ import annotations

from typing import Any

import typer

__all__ = ["ASKING", "AS_JSON", "BASE_URL", "CONCURRENCY", "JUDGE", "LEDGER", "PROMPTS", "asking"]

ASKING = "How the judge is asked"  # a panel of its own in the help

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


def asking(name: str, text: str, **more: Any) -> Any:
    """Return an option on how the judge is asked, unset by default."""
    return typer.Option(None, name, help=text, rich_help_panel=ASKING, **more)


BASE_URL: Any = asking("--base-url", "Of a judge behind a server.", show_default="OPENAI_BASE_URL")
PROMPTS: Any = asking(
    "--prompts", "Folder of prompts that go before the built-in ones, or a language: de."
)
