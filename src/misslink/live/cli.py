"""The command line of live experiments: misslink live."""

from __future__ import annotations

from pathlib import Path

import typer

from misslink.cli.options import JSON_OPTION
from misslink.cli.output import check_output_paths, print_report
from misslink.errors import InputError

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
        None, "--experiment", help="Experiment to report, if the log has several."
    ),
    control: str | None = typer.Option(
        None,
        "--control",
        help="Variant to compare the others with.",
        show_default="the experiment's",
    ),
    primary: str | None = typer.Option(
        None,
        "--primary",
        help="User metric that decides.",
        show_default="task_done, else satisfaction, and so on",
    ),
    guardrail: list[str] = typer.Option(
        [], "--guardrail", help="Limit, such as errors:at_most=0.01 (see above); repeatable."
    ),
    lower_is_better: list[str] = typer.Option(
        [], "--lower-is-better", help="Custom feedback kind where lower is better; repeatable."
    ),
    pre: Path | None = typer.Option(
        None,
        "--pre",
        help="Earlier values per user, for CUPED: CSV or JSONL of unit, value.",
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
        help="Users at which the interval is narrowest; set before looking.",
    ),
    detect: float | None = typer.Option(
        None,
        "--detect",
        help="Smallest difference of the primary metric worth finding.",
        show_default="5% of control's value",
    ),
    k: int = typer.Option(
        5, "--k", min=1, help="Cutoff: passages of a shadow compared with its request."
    ),
    html: Path | None = typer.Option(None, "--html", help="HTML page to write."),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Markdown report to write; - prints it."
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Compare the variants of an experiment; looking early and often is allowed.

    A guardrail limits how much worse than control a metric may be: latency:at_most=0.2 (seconds),
    errors:at_most=0.01, or cost:at_most=10% (of control's).
    """
    from misslink.io.atomic import atomic_write
    from misslink.io.manifest import display_path
    from misslink.live.experiment_report import ReportOptions, live_report
    from misslink.live.page import build_live_page, page_parts, render_live_page

    if not _LEAST_ALPHA <= alpha < 1:
        raise InputError(
            f"--alpha {alpha} is not valid: give a number between {_LEAST_ALPHA:g} and 1, "
            "such as 0.05"
        )
    if tuned_for == float("inf"):
        raise InputError(f"--units {tuned_for} is not a number of units: give one such as 2000")
    if detect is not None and not 0 < detect < float("inf"):
        raise InputError(f"--detect {detect} is not valid: give a difference above 0")
    check_output_paths({"--markdown": markdown, "--html": html}, [log], as_json=as_json)
    options = ReportOptions(
        control=control,
        primary=primary,
        guardrails=guardrail,
        lower_is_better=lower_is_better,
        pre=pre,
        offline=offline,
        alpha=alpha,
        tuned_for=tuned_for,
        detect=detect,
        k=k,
    )
    document = {"log": display_path(log), **live_report(log, experiment, options)}
    page = build_live_page(document)
    if html is not None:
        atomic_write(render_live_page(page), html)
    print_report(list(page_parts(page)), document, markdown=markdown, as_json=as_json)
