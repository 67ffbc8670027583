"""misslink judge: what it can do, whether it can be fooled or moved, and which run it prefers."""

from __future__ import annotations

from typing import Any

import typer

from misslink.cli.attack import attack
from misslink.cli.audit import audit
from misslink.cli.options import AS_JSON, JUDGE
from misslink.cli.output import print_json
from misslink.cli.prefer import prefer
from misslink.cli.terms import Given, asks_judge
from misslink.errors import JudgeUnreachableError

__all__ = ["app"]

app = typer.Typer(help="Try a judge before a run.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Try a judge before a run."""


@app.command("ping")
@asks_judge("base_url", "timeout")
def ping(
    judge: str = JUDGE,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Ask a judge one tiny question and say what it can do."""
    import asyncio

    from misslink.judging.ping import ping_spec
    from misslink.judging.terms import Terms

    found = asyncio.run(ping_spec(judge, Terms(**given)))
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            print(f"{name:>18}  {_shown(value)}")
    if not found["ok"]:
        raise typer.Exit(JudgeUnreachableError.exit_code)


def _shown(value: Any) -> str:
    """A finding for people to read: a dash where nothing is known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        prices = (f"{amount:g} for a million {name} tokens" for name, amount in value.items())
        return ", ".join(prices)
    return str(value)


app.command("attack")(attack)
app.command("audit")(audit)
app.command("prefer")(prefer)
