"""misslink goldset: make, pool, check and change gold sets."""

from __future__ import annotations

import typer

from misslink.cli.goldset.bringing import export_goldset, import_goldset
from misslink.cli.goldset.check import check
from misslink.cli.goldset.diff import diff
from misslink.cli.goldset.from_logs import from_logs
from misslink.cli.goldset.generate import generate
from misslink.cli.goldset.merge import merge
from misslink.cli.goldset.pool import pool
from misslink.cli.goldset.pooled import pooled
from misslink.cli.goldset.split import split
from misslink.cli.goldset.stats import stats

__all__ = ["app"]

app = typer.Typer(help="Make, check and change gold sets.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make, check and change gold sets."""


app.command("generate")(generate)
app.command("check")(check)
app.command("stats")(stats)
app.command("split")(split)
app.command("merge")(merge)
app.command("diff")(diff)
app.command("from-logs")(from_logs)
app.command("import")(import_goldset)
app.command("export")(export_goldset)
app.command("pool")(pool)
app.command("pooled")(pooled)
