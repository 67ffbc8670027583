"""misslink judge: is the judge there, and what can it do?"""

from __future__ import annotations

import typer

from misslink.cli.output import print_json
from misslink.errors import JudgeUnreachableError

__all__ = ["app"]

app = typer.Typer(help="Try a judge before a run.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Try a judge before a run."""


@app.command("ping")
def ping(
    judge: str = typer.Option(
        ..., "--judge", envvar="MISSLINK_JUDGE", help="Such as openai:MODEL."
    ),
    base_url: str | None = typer.Option(
        None,
        "--base-url",
        help="Of an OpenAI-compatible judge.",
        show_default="OPENAI_BASE_URL",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print what was found as JSON."),
) -> None:
    """Ask a judge one tiny question and say what it can do."""
    import asyncio

    from misslink.judging.ping import ping_spec
    from misslink.judging.terms import Terms

    found = asyncio.run(ping_spec(judge, Terms(base_url=base_url)))
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            print(f"{name:>18}  {'-' if value is None else value}")
    if not found["ok"]:
        raise typer.Exit(JudgeUnreachableError.exit_code)
