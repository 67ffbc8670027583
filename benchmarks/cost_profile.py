"""Where the CPU time of a stage goes, now and at commit 24c0066: tables of cProfile.

    python benchmarks/cost_profile.py [--cases 1000] [--write]

The stages judge, link and writing of a run of `scale.py`'s made-up cases with an empty cache, whose judge is a
program. Of each stage the functions with the most time of their own, as shares of the stage. A profile makes
small functions look dearer than they are. With --write the tables go to benchmarks/cost_profile.md.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import json
import os
import pstats
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cost import EARLIER
from cpu_budget import ROOT, extract, python_path

TARGET = Path(__file__).with_suffix(".md")
STAGES = ("judge", "link", "writing")
FUNCTIONS = 10
FOLDERS = re.compile(r".*/(?:src/misslink|site-packages|python3\.\d+|benchmarks)/")
Shares = dict[str, float]  # of a stage's time, by function


def profiled(folder: Path, cases: int) -> dict[str, Shares]:
    """Evaluate in this process, whose path has one source; by stage, its dearest functions."""
    scale: Any = importlib.import_module("scale")
    scale.made_up_files(folder, cases)
    evaluate, profiles = scale.evaluate, {stage: cProfile.Profile() for stage in STAGES}
    begun: list[str] = []

    def end() -> None:
        if begun and begun[-1] in profiles:
            profiles[begun[-1]].disable()

    def observed(**options: Any) -> Any:
        told = options["progress"]

        def progress(stage: str, done: int, total: int) -> None:
            told(stage, done, total)
            now = "writing" if stage == "link" and done == total else stage
            if now not in begun:
                end()
                begun.append(now)
                if now in profiles:
                    profiles[now].enable()

        run = evaluate(**{**options, "progress": progress})
        end()
        return run

    scale.evaluate = observed
    scale.one(folder)
    return {stage: _dearest(profile) for stage, profile in profiles.items()}


def _dearest(profile: cProfile.Profile) -> Shares:
    own: Shares = {}
    stats: Any = pstats.Stats(profile)
    for (path, _, function), (_, _, seconds, _, _) in stats.stats.items():
        name = f"{FOLDERS.sub('', path).removesuffix('.py')} {function}"
        if path == "~":  # "<method 'search' of 're.Pattern' objects>"
            words = re.findall(r"[\w.]+", re.sub(r" at 0x\w+| objects|built-in", "", function))
            name = ".".join(
                reversed([word for word in words if word not in {"method", "of", "function"}])
            )
        own[name] = own.get(name, 0) + seconds
    whole = sum(own.values())
    dearest = sorted(own, key=own.__getitem__, reverse=True)[:FUNCTIONS]
    return {name: own[name] / whole for name in dearest}


def text(found: dict[str, dict[str, Shares]], cases: int) -> str:
    """The page."""
    about = (__doc__ or "").split("\n\n")[2].partition(" With --write")[0]
    page = [
        "# Where the CPU time of a stage goes",
        f"Made by `python benchmarks/cost_profile.py --write`, of {cases:,} cases. {about}".replace(
            "\n", " "
        ),
        "What a stage costs in all is in [cost](cost.md).",
    ]
    for stage in STAGES:
        columns = [list(source[stage].items()) for source in found.values()]
        head = [f"| {' | | '.join(found)} | |", "|---|--:|---|--:|"]
        rows = [
            "| " + " | ".join(f"`{name}` | {100 * share:.1f}%" for name, share in row) + " |"
            for row in zip(*columns, strict=True)
        ]
        page += [f"## {stage.capitalize()}", "\n".join(head + rows)]
    return "\n\n".join(page) + "\n"


def main() -> None:
    """Profile both sources, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        sys.stdout.write(json.dumps(profiled(options.one, options.cases)) + "\n")
        return
    found = {}
    with tempfile.TemporaryDirectory() as name:
        earlier = extract(EARLIER, Path(name) / "earlier")
        if earlier is None:
            sys.exit(f"this clone lacks the commit {EARLIER}")
        for title, source in (("24c0066", earlier), ("now", ROOT)):
            folder = Path(name) / title
            folder.mkdir()
            environment = {**os.environ, "PYTHONPATH": python_path(source), "HF_HUB_OFFLINE": "1"}
            command = [
                sys.executable,
                __file__,
                "--one",
                str(folder),
                "--cases",
                str(options.cases),
            ]
            done = subprocess.run(  # noqa: S603
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            found[title] = json.loads(done.stdout.splitlines()[-1])
    page = text(found, options.cases)
    sys.stdout.write(page)
    if options.write:
        TARGET.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
