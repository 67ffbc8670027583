"""CPU seconds of five commands as ratios to a reference commit; over 1.15 the budget is broken.

    python benchmarks/cpu_budget.py [--against COMMIT] [--cases 600] [--rounds 3]

The reference is REFERENCE: git puts its source into a temporary folder, and both sources do the
same work on the same made-up files, in turns, each time in a process of its own. A ratio is that of
the medians of CPU seconds. One round is enough where the ratio is at most 1. What is over the limit after all rounds
is measured for more of them, up to three times as many, so that a machine with other work does not break the budget.
Exits with 1 where a ratio stays over it; where the clone lacks the commit, says so and exits with 0.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.append(str(HERE / "builders"))
# The parent of the first commit of the work on cost.
REFERENCE = "08936050bb2f3a400341e3e94eec298c7b591dd2"
LIMIT = 1.15
SURE = (
    1.0  # at most this in one round is within the limit as surely as LIMIT in the median of three
)
STARTED, QUERIES, SCORINGS = 5, 3_000, 20
# Of frames and of dicts, which are made before; the source's own benchmarks know how it is called.
# One scoring takes some hundredths of a second, so it is done often; imports are of the command above.
SCORE_RANKS = f"""
import time
from rank_metrics_libraries import in_form, made_up, misslink
given = {{form: in_form(form, *made_up({QUERIES})) for form in ("frames", "scored dicts")}}
def score():
    for form, (qrels, run) in given.items():
        misslink(form, qrels, run)
score()
start = time.process_time()
for _ in range({SCORINGS}):
    score()
print(time.process_time() - start)
"""
# Where the command line began has changed.
MAIN = """
from importlib import import_module
try:
    main = import_module("misslink.cli.main").main
except ModuleNotFoundError:
    main = import_module("misslink.cli").main
main()
"""


def commands(folder: Path, cases: int) -> dict[str, list[str]]:
    """Return what follows `python`, by what it does; `folder` is where this source writes."""

    def evaluate(count: int, out: str, *options: str) -> list[str]:
        files = folder.parent / str(count)
        return [
            *("-c", MAIN, "evaluate", "--goldset", str(files / "gold.jsonl")),
            *("--traces", str(files / "traces.jsonl"), "--embedding", "none"),
            *("--out", str(folder / out), "--overwrite", *options),
        ]

    program = ("--judge", f"{HERE / 'builders' / 'program_judge.py'}:Program")
    return {
        f"start, {STARTED} cases": evaluate(STARTED, "start", "--judge", "heuristic"),
        "rank metrics, frames and dicts": ["-c", SCORE_RANKS],
        f"evaluate {cases}, heuristic": evaluate(cases, "heuristic", "--judge", "heuristic"),
        f"evaluate {cases}, full cache": evaluate(cases, "run", *program),
        f"report of {cases}": ["-c", MAIN, "report", str(folder / "run")],
    }


def spent(source: Path, command: Sequence[str], folder: Path) -> float:
    """CPU seconds of a command with a source, its children included.

    The cache is in the working folder: `folder` for the one that has a full cache, else a new one.
    """
    folder.mkdir(exist_ok=True)
    if not any("Program" in part for part in command):
        folder = Path(tempfile.mkdtemp(dir=folder))
    before = _children()
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(source),
        "HF_HUB_OFFLINE": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(  # noqa: S603
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} with {source}: exit code {done.returncode}\n{done.stderr}")
    return float(done.stdout) if SCORE_RANKS in command else _children() - before


def python_path(source: Path) -> str:
    """Where a source has its modules; once the benchmarks had no folders."""
    benchmarks = source / "benchmarks"
    folders = [folder for folder in sorted(benchmarks.iterdir()) if folder.is_dir()]
    return os.pathsep.join(map(str, (source / "src", benchmarks, *folders)))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def extract(commit: str, folder: Path) -> Path | None:
    """Return `folder` with the files of a commit; None where the clone lacks it."""
    archive = subprocess.run(  # noqa: S603
        ["git", "archive", commit, "src", "prompts", "benchmarks"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        return None
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def measure(
    sources: Mapping[str, Path], cases: int, rounds: int, folder: Path
) -> dict[str, dict[str, float]]:
    """Return the medians of CPU seconds by command and source."""
    from made_up_run import made_up_files

    for count in (STARTED, cases):
        (folder / str(count)).mkdir()
        made_up_files(folder / str(count), count)
    of = {name: commands(folder / name, cases) for name in sources}
    for name, source in sources.items():
        spent(source, of[name][f"evaluate {cases}, full cache"], folder / name)  # fills it

    medians = {}
    for command in of["now"]:
        seconds: dict[str, list[float]] = {name: [] for name in sources}
        for enough, most in ((1, SURE), *((times * rounds, LIMIT) for times in (1, 2, 3))):
            for _ in range(len(seconds["now"]), enough):
                for name, source in sources.items():
                    seconds[name].append(spent(source, of[name][command], folder / name))
            medians[command] = {name: statistics.median(each) for name, each in seconds.items()}
            if ratio(medians[command]) <= most:
                break
    return medians


def ratio(medians: Mapping[str, float]) -> float:
    """Return what now costs in units of the reference."""
    return medians["now"] / medians["reference"]


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", default=REFERENCE)
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference = extract(options.against, folder / "reference")
        if reference is None:
            sys.stdout.write(f"skipped: this clone lacks the commit {options.against}\n")
            return
        sources = {"now": ROOT, "reference": reference}
        medians = measure(sources, options.cases, options.rounds, folder)
    for command, of_command in medians.items():
        over = "  over the limit" if ratio(of_command) > LIMIT else ""
        sys.stdout.write(
            f"{command:32} {of_command['now']:7.2f} s {of_command['reference']:7.2f} s"
            f" {ratio(of_command):6.2f}{over}\n"
        )
    if any(ratio(of_command) > LIMIT for of_command in medians.values()):
        sys.exit(f"over {LIMIT:g} times the CPU seconds of {options.against[:8]}")


if __name__ == "__main__":
    main()
