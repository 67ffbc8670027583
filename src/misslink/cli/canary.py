"""misslink canary: questions put to a live app again and again, and alarms when it gets worse."""

from __future__ import annotations

from pathlib import Path

import typer

from misslink.cli.canary_input import HISTORY, NAME
from misslink.cli.canary_watch import watch
from misslink.cli.options import AS_JSON, ID_KEY, INPUT_KEY, LEDGER
from misslink.cli.terms import CAPS, PRICES, Given, asks_judge

__all__ = ["app"]

app = typer.Typer(
    help="Watch a live app with canary questions; alarms come on change.",
    no_args_is_help=True,
)


@app.command("run")
@asks_judge("base_url", "prompts", *PRICES, *CAPS)
def run(
    target: str = typer.Argument(
        ...,
        metavar="APP",
        help="The app or retriever: package.module:name or path/to/file.py:name.",
        show_default=False,
    ),
    canaries: Path = typer.Option(
        ..., "--canaries", help="Canary set: JSON Lines, a JSON array or YAML."
    ),
    name: str = NAME,
    history: Path = HISTORY,
    k: int = typer.Option(5, "--k", min=1, help="How many of the first passages count."),
    judge: str = typer.Option(
        "none",
        "--judge",
        envvar="MISSLINK_JUDGE",
        help="Who holds answers against the expected ones: openai:MODEL, embedded (a heuristic) "
        "or none.",
    ),
    corpus: str | None = typer.Option(
        None,
        "--corpus",
        help="What the app retrieves from: a JSONL or CSV file, a folder, or chroma:FOLDER; its "
        "changes become suspects of an alarm.",
        show_default="what the app's own store lists",
    ),
    embedding: str = typer.Option(
        "app",
        "--embedding",
        help="By which relevance is measured: app (the app's own, else the retriever's scores), "
        "minilm, PROVIDER:MODEL, FILE.py:NAME, or none.",
    ),
    timeout: float = typer.Option(30.0, "--timeout", help="Seconds for one question."),
    deadline: float = typer.Option(600.0, "--deadline", help="Seconds for all of them."),
    concurrency: int = typer.Option(4, "--concurrency", min=1, help="Questions under way at once."),
    learn: int = typer.Option(
        20, "--learn", min=10, help="From how many runs the usual state is learnt."
    ),
    accept_change: bool = typer.Option(
        False, "--accept-change", help="What is seen now is the new norm; learn it anew."
    ),
    fail_on: str = typer.Option(
        "alarm",
        "--fail-on",
        help="When to exit with 1: degraded (a canary that was healthy is not), alarm, or never.",
    ),
    webhook: str | None = typer.Option(
        None, "--webhook", help="Address that is told of alarms and recoveries, in JSON."
    ),
    webhook_secret_env: str | None = typer.Option(
        None, "--webhook-secret-env", help="Environment variable with the secret that signs it."
    ),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Write a summary here; - prints it."
    ),
    html: Path | None = typer.Option(None, "--html", help="Write the trend page here."),
    id_key: str | None = ID_KEY,
    input_key: str | None = INPUT_KEY,
    ledger: Path | None = LEDGER,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Ask the app every canary once, keep what was seen, and say whether it got worse.

    Exit codes: 0 fine, 1 an alarm is open, 2 bad input, 3 the app answered nothing or the judge
    cannot be reached.
    """
    from misslink.cli.canary_run import Wanted, run_and_print
    from misslink.judging.terms import Terms

    wanted = Wanted(
        app=target,
        canaries=canaries,
        name=name,
        history=history,
        k=k,
        judge=judge,
        corpus=corpus,
        embedding=embedding,
        timeout_s=timeout,
        deadline_s=deadline,
        concurrency=concurrency,
        learn=learn,
        accept_change=accept_change,
        fail_on=fail_on,
        webhook=webhook,
        webhook_secret_env=webhook_secret_env,
        markdown=markdown,
        html=html,
        id_key=id_key,
        input_key=input_key,
        ledger=ledger,
        # A deadline that is none is refused further on.
        terms=Terms(**given, deadline=deadline if deadline > 0 else None),
    )
    run_and_print(wanted, as_json=as_json)


@app.command("history")
def history(
    history: Path = HISTORY,
    name: str = NAME,
    last: int = typer.Option(20, "--last", min=1, help="How many runs, the latest."),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Write a summary here; - prints it."
    ),
    html: Path | None = typer.Option(None, "--html", help="Write the trend page here."),
    as_json: bool = AS_JSON,
) -> None:
    """Show the runs of a series with their health and alarms; nothing is asked."""
    from misslink.cli.canary_history import show_history

    show_history(history, name, last, markdown=markdown, html=html, as_json=as_json)


app.command(
    "watch",
    options_metavar="APP --canaries FILE --every INTERVAL [OPTIONS OF canary run]",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(watch)
