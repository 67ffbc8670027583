"""Which published pages measured code that has changed since.

    python benchmarks/stale_pages.py [--stamp] [PAGE ...]

The last line of a page names the commit that it measured and the parts of src/misslink that it
measures; those parts are compared with the files as they are now. A page that was made again has
lost its line: then the commit is the last one that changed the page, and the parts are those of
MEASURED. --stamp writes such lines. Run it before an issue is closed, and make again what it lists,
or say why not. Exits with 1 where a page is stale.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = "src/misslink"
LINE = re.compile(r"^Measured at commit `([0-9a-f]{8,40})`: (.*)\.$", re.MULTILINE)
_JUDGING = ("judge", "matching", "metrics", "text")
_LINKING = (*_JUDGING, "linking")
# The parts that a page's figures depend on; a page without figures has none.
MEASURED = {
    "ablation": _JUDGING,
    "association_coverage": ("linking/association.py", "stats"),
    "attribution": _LINKING,
    "attribution_kinds": _LINKING,
    "attribution_kinds_fifth": _LINKING,
    "attribution_kinds_fourth": _LINKING,
    "attribution_kinds_second": _LINKING,
    "attribution_kinds_seventh": _LINKING,
    "attribution_kinds_eighth": _LINKING,
    "attribution_kinds_ninth": _LINKING,
    "attribution_kinds_sixth": _LINKING,
    "attribution_kinds_tenth": _LINKING,
    "attribution_kinds_third": _LINKING,
    "calibration_coverage": ("calibration", "stats"),
    "blind_apps": (*_LINKING, "pipeline", "render"),
    "canary_run_length": ("canary", "stats"),
    "changes_by_newcomers": (),
    "clustered_coverage": ("stats",),
    "cost": ("engines", "io", "pipeline", "report", "retrieval", *_LINKING),
    "cost_profile": ("engines", "io", "pipeline", "report", "retrieval", *_LINKING),
    "cranfield": ("retrieval", "stats"),
    "failure_threads": ("report/failure_threads.py",),
    "gate_errors": ("comparison", "gates", "stats"),
    "interval_coverage": ("stats",),
    "judge_agreement": _JUDGING,
    "judge_cost": ("judge", "metrics", "pipeline", "selftests", "linking"),
    "judge_throughput": _JUDGING,
    "judging": _JUDGING,
    "link_speed": ("linking", "matching", "retrieval", "text"),
    "mutations": (),
    "optimizer_feedback": ("api/feedback.py",),
    "planted_apps": (*_LINKING, "pipeline", "render"),
    "pooled_recall_coverage": ("goldset/pooling", "retrieval", "stats"),
    "promote": ("pipeline/promote.py", *_LINKING),
    "rank_metrics": ("retrieval",),
    "rank_metrics_stream": ("io/tables.py", "retrieval"),
    "ray_workers": ("engines", "judge"),
    "rechunking": ("goldset", "retrieval/matching.py", "text"),
    "replay": ("linking/replay", "stats"),
    "report": ("render", "report"),
    "robustness": ("io", "judge", "matching", "pipeline", "report"),
    "router_overhead": ("live",),
    "scale": ("engines", "io", "pipeline", "report", "retrieval", *_LINKING),
    "selftest": ("selftests", *_LINKING),
    "sequential_test": ("live", "stats"),
    "ties": _LINKING,
    "trace_input": ("io",),
    "whatif": ("linking/whatif", "retrieval"),
}


class Measurement(NamedTuple):
    """The commit that a page measured, and the parts of it."""

    commit: str
    parts: tuple[str, ...]

    @property
    def line(self) -> str:
        """The last line of the page."""
        return f"Measured at commit `{self.commit}`: {', '.join(f'`{p}`' for p in self.parts)}."


def measurement(page: Path) -> Measurement:
    """Return what a page says that it measured, or what git knows of it."""
    said = LINE.search(page.read_text(encoding="utf-8"))
    if said:
        return Measurement(said[1], tuple(re.findall(r"`([^`]+)`", said[2])))
    committed = _git("log", "-1", "--format=%H", "--", str(page)).strip()
    return Measurement((committed or _git("rev-parse", "HEAD").strip())[:8], MEASURED[page.stem])


def changed_since(measured: Measurement) -> list[str]:
    """Return the measured files that are not as they were; what the clone lacks raises."""
    parts = [f"{SOURCE}/{part}" for part in measured.parts]
    return _git("diff", "--name-only", measured.commit, "--", *parts).split() if parts else []


def stamp(page: Path) -> None:
    """Write a page's last line where it has none."""
    text = page.read_text(encoding="utf-8")
    measured = measurement(page)
    if measured.parts and not LINE.search(text):
        page.write_text(f"{text.rstrip()}\n\n{measured.line}\n", encoding="utf-8")


def _git(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        ["git", *arguments],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    """Print a line for each stale page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, default=sorted(HERE.rglob("*.md")))
    parser.add_argument("--stamp", action="store_true")
    options = parser.parse_args()
    stale = False
    for page in options.pages:
        if options.stamp:
            stamp(page)
        measured = measurement(page)
        try:
            changed = changed_since(measured)
        except subprocess.CalledProcessError:
            sys.stdout.write(f"{page.name}: unknown, this clone lacks {measured.commit}\n")
            continue
        if changed:
            stale = True
            more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
            name = changed[0].removeprefix(f"{SOURCE}/")
            sys.stdout.write(f"{page.name}: {name}{more} changed since {measured.commit}\n")
    sys.exit(stale)


if __name__ == "__main__":
    main()
