"""misslink goldset: make, pool, check and change gold sets."""

from __future__ import annotations

import typer

from misslink.goldset.cli.anchor import anchor_command
from misslink.goldset.cli.check import check_command
from misslink.goldset.cli.create import (
    export_command,
    from_logs_command,
    generate_command,
    import_command,
)
from misslink.goldset.cli.pool import from_run_command, pool_apply_command, pool_command
from misslink.goldset.cli.versions import diff_command, merge_command, split_command

__all__ = ["app"]


app = typer.Typer(help="Make, check and change gold sets.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make, check and change gold sets."""


app.command("generate")(generate_command)
app.command("check")(check_command)
app.command("anchor")(anchor_command)
app.command("split")(split_command)
app.command("merge")(merge_command)
app.command("diff")(diff_command)
app.command("from-logs")(from_logs_command)
app.command("from-run")(from_run_command)
app.command("import")(import_command)
app.command("export")(export_command)
app.command("pool")(pool_command)
app.command("pool-apply")(pool_apply_command)
