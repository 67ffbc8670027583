"""Keyword, vector or hybrid: three retrievers by rank metrics, by a judge, and by simulated users.

python examples/three_retrievers/run.py --out DIR [--questions N] [--users N] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

from retrievers import build, reference
from stages import JUDGED, RANK, SPLIT, chosen, compared, live, offline, reported, say
from table import columns, recommendation, table

from misslink.errors import InputError, MisslinkError
from misslink.io import read_goldset
from misslink.io.atomic import atomic_write
from misslink.live.page import build_live_page as page_of
from misslink.live.page import render_live_page

GOLDSET = Path(str(reference.__file__)).parent / "goldset.jsonl"
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- written by run.py --write -->\n", "<!-- end -->\n"
FEWEST_QUESTIONS, FEWEST_USERS = 6, 100


def main() -> None:
    """Run the three stages and print the table; a user's mistake is one sentence."""
    asked = arguments()
    try:
        text = run(asked)
    except MisslinkError as problem:
        print(f"three_retrievers: {problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
    print(text, end="")


def run(asked: argparse.Namespace) -> str:
    """All three stages; returns the table with its sentence as markdown."""
    _check(asked)
    out: Path = asked.out
    cases = chosen(read_goldset(GOLDSET).cases, asked.questions, asked.seed)
    apps = build()
    runs = offline(apps, cases, out, judge=asked.judge, seed=asked.seed)
    log = out / "simulated.sqlite"
    live(apps, cases, log, users=asked.users, seed=asked.seed)
    split, shadows = reported(log, out, users=asked.users)
    rank, judged = compared(runs, RANK), compared(runs, JUDGED)
    found = columns(rank, judged, split)
    text = _text(asked, len(cases), found, split, shadows)
    result = {"rank": rank, "judged": judged, "split": split, "shadow": shadows}
    atomic_write(json.dumps(result, indent=1) + "\n", out / "result.json")
    atomic_write(text, out / "table.md")
    atomic_write(render_live_page(page_of({"log": log.name, **split})), out / "live.html")
    if asked.write:
        write(text, README)
    say(f"{out / 'live.html'}, {out / 'table.md'}; more with")
    say(f"  misslink compare {' '.join(str(out / 'offline' / name) for name in apps.retrievers)}")
    say(f"  misslink live report {log} --experiment {SPLIT}")
    return text


def write(text: str, path: Path) -> None:
    """Put `text` between the markers of a page.

    Raises
    ------
    InputError
        The markers are not there.
    """
    page = path.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"the lines {BEGIN.strip()} and {END.strip()} are missing", path=path)
    atomic_write(f"{before}{begin}{text}{end}{after}", path)


def _text(
    asked: argparse.Namespace,
    questions: int,
    found: dict[str, Any],
    split: dict[str, Any],
    shadows: dict[str, Any],
) -> str:
    words = [
        f"{one['variant']} {one['overlap']['value']:.0%}"
        if one["overlap"]["value"] is not None
        else f"{one['variant']} unknown"
        for one in shadows["shadows"]
    ]
    return (
        f"{questions} questions, {asked.users:,} users, seed {asked.seed}, judge {asked.judge}, "
        f"Python {platform.python_version()}:\n\n"
        f"{table(found)}\n"
        f"**{recommendation(found, split['verdict'])}**\n\n"
        f"Of the passages that the served retriever found, in the shadow found too: "
        f"{', '.join(words)}.\n"
    )


def _check(asked: argparse.Namespace) -> None:
    if asked.questions is not None and asked.questions < FEWEST_QUESTIONS:
        raise InputError(f"--questions {asked.questions} are too few: {FEWEST_QUESTIONS} at least")
    if asked.users < FEWEST_USERS:
        raise InputError(f"--users {asked.users} are too few: {FEWEST_USERS} at least")
    if asked.judge == "none":
        raise InputError("stage 2 needs a judge: --judge heuristic needs neither key nor server")


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for runs, log and table")
    parser.add_argument("--questions", type=int, help="of the gold set (default: all 55)")
    parser.add_argument("--users", type=int, default=5000, help="simulated (default: 5000)")
    parser.add_argument("--judge", default="heuristic", help="as misslink evaluate takes it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="put the table into README.md too")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
