"""misslink live: what users say of the variants of a live app."""

from __future__ import annotations

from pathlib import Path

import typer

from misslink.cli.options import AS_JSON

__all__ = ["app"]

_LEAST_ALPHA = 1e-9  # from here on levels are near enough to 1 to be rounded to it

app = typer.Typer(
    help="Read what a Router or Interleaved logged of a live app.", no_args_is_help=True
)


@app.callback()
def live() -> None:
    """Read what a Router or Interleaved logged of a live app."""


@app.command("report")
def report(
    log: Path = typer.Argument(
        ..., metavar="LOG", help="The live log, an SQLite file.", show_default=False
    ),
    experiment: str | None = typer.Option(
        None, "--experiment", help="Which one, where the log holds several."
    ),
    control: str | None = typer.Option(
        None,
        "--control",
        help="The variant that others are held against.",
        show_default="the experiment's",
    ),
    primary: str | None = typer.Option(
        None,
        "--primary",
        help="The user metric that decides.",
        show_default="task_done, else satisfaction, and so on",
    ),
    guardrail: list[str] = typer.Option(
        [],
        "--guardrail",
        help="How much worse than control a metric may be: latency:at_most=0.2 (seconds), "
        "errors:at_most=0.01, cost:at_most=10% (of control's); repeatable.",
    ),
    lower_is_better: list[str] = typer.Option(
        [], "--lower-is-better", help="Own kind of feedback of which less is better; repeatable."
    ),
    pre: Path | None = typer.Option(
        None,
        "--pre",
        help="CSV or JSONL with unit and value from before the experiment, for CUPED.",
        show_default="requests from before the ramp opened",
    ),
    offline: list[str] = typer.Option(
        [], "--offline", help="VARIANT=FOLDER of a run of misslink evaluate; repeatable."
    ),
    alpha: float = typer.Option(0.05, "--alpha", help="Chance of a false alarm, over all looks."),
    tuned_for: float = typer.Option(
        2000,
        "--units",
        min=100,
        help="Units near which the sequential interval is narrowest; choose it before looking.",
    ),
    detect: float | None = typer.Option(
        None,
        "--detect",
        help="The difference of the primary metric worth finding.",
        show_default="5 % of control's value",
    ),
    k: int = typer.Option(5, "--k", min=1, help="Passages of shadow and request compared."),
    html: Path | None = typer.Option(None, "--html", help="Write a page here."),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Write markdown here; - prints it."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Compare the variants of an experiment; looking early and often is allowed."""
    from misslink.cli.live_report import show_report
    from misslink.errors import InputError

    if not _LEAST_ALPHA <= alpha < 1:
        raise InputError(
            f"--alpha {alpha} is no chance to work with: it lies between {_LEAST_ALPHA:g} and 1, "
            "such as 0.05"
        )
    if tuned_for == float("inf"):
        raise InputError(f"--units {tuned_for} is no number of units: give one such as 2000")
    if detect is not None and not 0 < detect < float("inf"):
        raise InputError(f"--detect {detect} is no difference worth finding: give one above 0")
    show_report(
        log,
        {
            "experiment": experiment,
            "control": control,
            "primary": primary,
            "guardrails": guardrail,
            "lower_is_better": lower_is_better,
            "pre": pre,
            "offline": offline,
            "alpha": alpha,
            "tuned_for": tuned_for,
            "detect": detect,
            "k": k,
        },
        html=html,
        markdown=markdown,
        as_json=as_json,
    )
