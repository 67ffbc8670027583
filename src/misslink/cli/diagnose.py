"""misslink diagnose: why needed passages were missed, and what would bring them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say, shown
from misslink.cli.writing import check_place

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.types import Link, Missed, Run

__all__ = ["diagnose", "diagnosis"]

_UNEXPLAINED = "unexplained"  # the group of misses without a subtype
_SHOWN_CASES = 5
_MARKS = {"ok": "well", "not ok": "not well"}  # of the other states as they are


def diagnose(
    run: Path = typer.Argument(..., help="A run folder."),
    holes: Path | None = typer.Option(
        None,
        "--holes",
        help="Write the gold holes here as JSONL, cases to review and put into the gold set.",
    ),
    every: bool = typer.Option(False, "--all", help="Show every case, not the first 5 of a group."),
    as_json: bool = AS_JSON,
) -> None:
    """Say why needed passages were missed and what to do, from what the run measured."""
    from misslink.files import read_whole

    read = read_whole(run, anywhere=True)
    found = diagnosis(read, run)
    written = _write_holes(holes, read, found["gold_holes"]) if holes is not None else 0
    if as_json:
        print_json(found)
    else:
        _print(found, read, None if every else _SHOWN_CASES)
    if holes is not None:
        from rich.console import Console

        told = f"Gold holes to review: {holes}"
        # Beside a JSON document there is room on stderr alone.
        say(
            Console(stderr=as_json),
            told if written else f"No gold hole, so nothing was written to {holes}.",
        )


def diagnosis(run: Run, folder: Path) -> dict[str, Any]:
    """Return what a run says of its misses, as ``--json`` prints it.

    Parameters
    ----------
    run : Run
    folder : Path
        Where it was read from.

    Raises
    ------
    InputError
        The run was made before misslink measured misses.
    """
    from misslink.errors import InputError
    from misslink.files.addresses import shown
    from misslink.linking.advice import recommendation
    from misslink.manifest import shown_path
    from misslink.report.missed import misses
    from misslink.stats import proportion

    measured = run.summary.get("diagnosis")
    if not isinstance(measured, dict):
        raise InputError(
            "this run has no diagnosis, since misses were not measured when it was made; make it "
            "again with the same  misslink evaluate  command (what the judge said is in the "
            "ledger and is not paid again)",
            path=folder,
        )
    missed = misses(run.links)
    groups: dict[str, list[tuple[Link, Missed]]] = {}
    for link, lost in missed:
        groups.setdefault(lost.subtype or _UNEXPLAINED, []).append((link, lost))
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return {
        "run": shown_path(shown(folder)),
        "cases": len(run.cases),
        "misses": len(missed),
        "embedding": measured.get("embedding"),
        "corpus": measured.get("corpus"),
        "subtypes": {
            name: {
                "count": len(group),
                "share": proportion(len(group), len(missed)).model_dump(),
                "recommendation": recommendation(group[0][1].subtype),
                "cases": [_row(link, lost) for link, lost in group],
            }
            for name, group in ordered
        },
        "checklist": measured.get("checklist") or [],
        "gold_holes": measured.get("gold_holes") or {"holes": [], "metrics": {}},
    }


def _row(link: Link, lost: Missed) -> dict[str, Any]:
    return {
        "case_id": link.case_id,
        "passage_id": lost.passage_id,
        "true_rank": lost.true_rank,
        "reason": lost.reason,
        "also": list(lost.also),
        "cause": link.cause,
        "measured": lost.measured,
    }


def _write_holes(path: Path, run: Run, found: Mapping[str, Any]) -> int:
    """Write the holes for review; returns how many cases, and without any writes nothing."""
    from dataclasses import fields

    from misslink.linking.holes import Hole, write_accepted

    check_place(path, "--holes")
    names = {field.name for field in fields(Hole)}
    texts = {
        (trace.case_id, passage.id): passage.text
        for trace in run.traces
        for passage in trace.retrieved
    }
    holes = []
    for hole in found.get("holes") or []:
        known = {key: value for key, value in hole.items() if key in names}
        text = texts.get((hole["case_id"], hole["passage_id"]), "")
        holes.append(Hole(**{"text": text, **known}))
    return write_accepted(path, run.cases, holes)


def _print(found: Mapping[str, Any], run: Run, most: int | None) -> None:
    from rich.console import Console

    console = Console()
    basis = found["embedding"] or "no embedding"
    pool = f"a corpus of {found['corpus']} passages" if found["corpus"] else "the passages seen"
    count = found["misses"]
    missed = "1 needed passage was" if count == 1 else f"{count} needed passages were"
    say(console, f"{missed} missed in {found['cases']} cases (by {basis}, among {pool}).")
    questions = {case.id: case.question for case in run.cases}
    for name, group in found["subtypes"].items():
        say(console, "")
        head = f"{name}: {group['count']} of {count}, {shown(group['share'])}"
        say(console, head, "bold")
        say(console, group["recommendation"])
        for case in group["cases"][:most]:
            asked = " ".join(questions.get(case["case_id"], "").split())
            say(console, f"  {case['case_id']}  {asked}")
            say(console, f"    needs '{case['passage_id']}': {case['reason'] or 'not measured'}")
        if most is not None and len(group["cases"]) > most:
            say(console, f"  and {len(group['cases']) - most} more (--all shows them)")
    _print_checklist(console, found["checklist"])
    _print_holes(console, found["gold_holes"])


def _print_checklist(console: Console, items: Iterable[Mapping[str, Any]]) -> None:
    from rich.table import Table

    from misslink.report.diagnosis import judged

    table = Table(title="Checklist", title_justify="left", show_lines=True)
    for column in ("question", "finding", ""):
        table.add_column(column)
    for item in items:
        state, why = judged(item)
        mark = _MARKS.get(state, state) + (f": {why}" if why else "")
        row = (item["question"], item["finding"], mark)
        table.add_row(*(cell(console, text) for text in row))
    if table.row_count:
        say(console, "")
        console.print(table)


def _print_holes(console: Console, found: Mapping[str, Any]) -> None:
    holes = found.get("holes") or []
    say(console, "")
    if not holes:
        reason = found.get("reason")  # why none could be looked for
        say(
            console,
            f"Gold holes were not looked for: {reason}."
            if reason
            else "No gold hole was found: no unlisted passage was judged to hold the answer.",
        )
        return
    passages = "1 passage was" if len(holes) == 1 else f"{len(holes)} passages were"
    say(
        console,
        f"{passages} judged to hold the answer though the gold set does not list it; "
        "--holes FILE writes them for review:",
    )
    for hole in holes:
        say(console, f"  {hole['case_id']}  '{hole['passage_id']}' at rank {hole['rank']}: "
              f"{hole['reason']}")  # fmt: skip
    for metric, both in (found.get("metrics") or {}).items():
        say(console, f"  {metric} without them {shown(both['without'], metric)}, "
              f"with them {shown(both['with'], metric)}")  # fmt: skip
