"""Command `misslink promote`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from misslink.cli.options import JSON_OPTION, RUN_ARGUMENT, option
from misslink.cli.output import check_output_paths, print_json
from misslink.errors import InputError, known_names


def promote(
    run: Path = RUN_ARGUMENT,
    out: Path = option(..., "--out", "JSONL file to write.", show_default=False),
    failure: str | None = option(
        None, "--failure", "Only cases of this failure mode.", show_default="all failed cases"
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Freeze failed cases of a run as a suite of regression tests.

    The file is a gold set and traces in one. Use --goldset FILE to test the app after a fix, and
    --traces FILE to judge the saved answers again without the app. What a case needs is found by
    its text, also after the index was made again. Its owner is the tag expected_owner, and
    so a slice of the report and of gates.
    """
    from misslink.failure_modes import FAILURES
    from misslink.io.atomic import atomic_write
    from misslink.io.manifest import display_path
    from misslink.pipeline.promote import promote as promoted
    from misslink.types import Run

    if failure is not None and failure not in FAILURES:
        raise InputError(f"--failure has no '{failure}'; {known_names(failure, sorted(FAILURES))}")
    check_output_paths({"--out": out}, [run])
    rows = list(promoted(Run.read(run), failure))
    if not rows:
        what = "no failed case" if failure is None else f"no case of the failure mode {failure}"
        raise InputError(f"The run has {what}, so there is nothing to freeze.", path=run)
    atomic_write("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), out)
    owners = Counter(row["expected_owner"] for row in rows)
    if as_json:
        print_json({"suite": display_path(out), "cases": len(rows), "owners": dict(owners)})
        return
    listed = ", ".join(
        f"{count:,} {owner.replace('_', ' ')}" for owner, count in owners.most_common()
    )
    print(f"{len(rows):,} cases ({listed}): {display_path(out)}")
