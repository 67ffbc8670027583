"""Options that several commands take, each said once."""

from __future__ import annotations

from typing import Any

import typer

__all__ = [
    "ASKING",
    "AS_JSON",
    "AUDIT_OF_RUN",
    "BASE_URL",
    "BATCH_PRICE",
    "CONCURRENCY",
    "CONTEXT_LENGTH",
    "DEADLINE",
    "ID_KEY_OF_RUN",
    "INPUT_KEY_OF_RUN",
    "JUDGE",
    "LEDGER",
    "MAX_CALLS",
    "MAX_COST",
    "MAX_TOKENS",
    "PRICE_IN",
    "PRICE_OUT",
    "PROMPTS",
    "REPEATS_OF_RUN",
    "RETRIES",
    "RPM",
    "TEMPERATURE",
    "TIMEOUT",
    "TPM",
    "asking",
]

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
TEMPERATURE: Any = asking("--temperature", "Of the judge.", show_default="0")
MAX_TOKENS: Any = asking("--max-tokens", "Longest reply.", show_default="4096")
TIMEOUT: Any = typer.Option(
    300.0, "--timeout", help="Seconds for one call.", rich_help_panel=ASKING
)
RETRIES: Any = typer.Option(
    5,
    "--retries",
    help="How often a call that brought nothing is repeated.",
    rich_help_panel=ASKING,
)
DEADLINE: Any = asking("--deadline", "Seconds for all judging; the rest is skipped.")
RPM: Any = asking("--rpm", "Requests a minute, never exceeded.")
TPM: Any = asking("--tpm", "Tokens a minute, held before each call.")
PRICE_IN: Any = asking("--price-in", "Of a million prompt tokens.")
PRICE_OUT: Any = asking("--price-out", "Of a million completion tokens.")
BATCH_PRICE: Any = typer.Option(
    0.5,
    "--batch-price",
    help="Of --engine batch: what a token costs there, as a share of these prices.",
    rich_help_panel=ASKING,
)
MAX_CALLS: Any = asking(
    "--max-calls", "Stop before the judge is called more often, tries in vain included."
)
MAX_COST: Any = asking("--max-cost", "Stop before more is spent; needs prices.")
CONTEXT_LENGTH: Any = asking(
    "--context-length", "Tokens of prompt and reply.", show_default="what the server says"
)

# Of commands that ask the app and the judge of a run again.
REPEATS_OF_RUN: Any = asking(
    "--repeats", "How often each question is put.", min=1, show_default="the run's"
)
AUDIT_OF_RUN: Any = asking(
    "--audit",
    "Of a cascade: share of what the cheap judge decided that both are asked.",
    show_default="the run's",
)
ID_KEY_OF_RUN: Any = typer.Option(
    None, "--id-key", help="Metadata key that holds a passage's id.", show_default="the run's"
)
INPUT_KEY_OF_RUN: Any = typer.Option(
    None,
    "--input-key",
    help="Key under which the app takes its question.",
    show_default="the run's",
)
