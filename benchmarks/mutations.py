"""Is a renamed name caught: a key of a document, a field of a view, a name in the page's JSON?

    python benchmarks/mutations.py [--write]

Each mutation renames one name at one place in a copy of the source. mypy reads a copy with all of
them: a mutation is caught if an error of mypy has the new name. What mypy does not see, a template or
a script, is renamed alone, and `tests/report/test_page_names.py` and three that read or render pages run on that copy:
it is caught if a failure has the name. A key that Python writes is missed by its old name, where a script reads it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_suffix(".md")
SUFFIX = "_renamed"


@dataclass(frozen=True)
class Mutation:
    """A field that is renamed at one place; `code` has the name in parentheses."""

    file: str
    code: str

    @property
    def name(self) -> str:
        """The name as it was."""
        return re.search(r"\((\w+)\)", self.code).group(1)

    def apply(self, package: Path) -> None:
        """Rename it in a copy."""
        path = package / self.file
        text = path.read_text(encoding="utf-8")
        before, after = self.code.split(f"({self.name})")
        old, new = f"{before}{self.name}{after}", f"{before}{self.name}{SUFFIX}{after}"
        if old not in text:
            raise SystemExit(f"{self.file} has no {old!r} any more")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


# Writers: a keyword of the document. Readers: an attribute.
MUTATIONS = (
    Mutation("pipeline/assembly.py", "(lower_is_better)=tuple("),
    Mutation("pipeline/assembly.py", "(coverage)=verdict_coverage"),
    Mutation("pipeline/assembly.py", "(repeats)=judge_repeatability"),
    Mutation("pipeline/assembly.py", "(slices)=slice_estimates"),
    Mutation("pipeline/assembly.py", "(judge_note)=judge_info"),
    Mutation("pipeline/assembly.py", "(unfinished)=unfinished"),
    Mutation("pipeline/assembly.py", "(missing_labels)=missing_label_document"),
    Mutation("pipeline/summary.py", "(flip_rate)=flip_rate"),
    Mutation("pipeline/summary.py", "(skipped)=counts"),
    Mutation("judge/epoch.py", "(rules)=rules_version"),
    Mutation("judge/session.py", "(in_batches)=batches"),
    Mutation("linking/association.py", "(left_out)=len(links)"),
    Mutation("linking/association.py", "(heterogeneity)=TestResult"),
    Mutation("linking/association.py", "(judge_error_by_exposure)=_judge_error"),
    Mutation("linking/checklist.py", "(finding)=str("),
    Mutation("linking/replay/results.py", "(net_fixed)=net_effect"),
    Mutation("linking/replay/results.py", "(causal_fraction)=causal"),
    Mutation("linking/whatif/option_evaluation.py", "(newly_retrieved)=evaluated"),
    Mutation("linking/whatif/option_evaluation.py", "(winner)=winner"),
    Mutation("calibration/calibrate.py", "(threshold)=cut,"),
    Mutation("calibration/calibrate.py", "(by_exposure)=judge_accuracy"),
    Mutation("calibration/bias.py", "(pull_p)=pull.p"),
    Mutation("calibration/corrected_prevalence.py", "(prediction_powered)=powered"),
    Mutation("judge/checks/audit.py", "(may_lower)=may_lower"),
    Mutation("selftests/runner.py", "(owner_right)=_clustered"),
    Mutation("documents.py", "(basis): str\n    notes"),
    Mutation("report/judge_trust.py", "manifest.(judge_note) or"),
    Mutation("report/association.py", "table.(left_out),"),
    Mutation("report/diagnosis.py", "counts.(failed_before) or"),
    Mutation("linking/findings.py", "option.(failures_avoided)"),
    # Fields of views, where they are built and where Python reads them.
    Mutation("report/summary.py", "(inferred)=inferred[key]"),
    Mutation("report/charts.py", "(k_x)=_x_position"),
    Mutation("report/overview.py", "(low_is_good)=name in"),
    Mutation("report/association.py", "(causal_words)=describe"),
    Mutation("report/cases.py", "(best_rank)=best"),
    Mutation("report/cases.py", "(answer_note)=_answer"),
    Mutation("report/claims.py", "(unlocated)=not"),
    Mutation("report/notebook.py", "row.(owner), f"),
)
# What no type checker reads: templates and scripts.
TESTED = (
    Mutation("report/templates/summary.jinja", "group.(cases)|thousands"),
    Mutation("report/templates/numbers.jinja", "metric.(truth) and not merged"),
    Mutation("report/templates/labels.jinja", "audited.(turned) }}"),
    Mutation("render/templates/parts.jinja", "mark.(shape) }}"),
    Mutation("report/templates/data.js", "row.(unsupported),"),
    Mutation("report/templates/list.js", "row.(claim) ??"),
    Mutation("report/templates/case.js", "call.(found)]"),
    Mutation("report/templates/case.js", "need.(how)}"),
    Mutation("report/templates/answer.js", "mark.(kind) ?"),
    Mutation("report/templates/filters.js", "data.(lower).includes"),
    Mutation("report/explorer.py", '"(stage_owners)": STAGE'),
    Mutation("report/explorer.py", '"(raws_left_out)": bool'),
)
TESTS = ("test_page_names.py", "test_explorer.py", "test_judge_notes.py", "test_sample_page.py")


def caught_by_mypy(mutations: tuple[Mutation, ...]) -> dict[Mutation, str]:
    """The first error of mypy that has the new name, by mutation."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary)
        shutil.copytree(ROOT / "src", copy / "src")
        shutil.copy(ROOT / "pyproject.toml", copy)
        for mutation in mutations:
            mutation.apply(copy / "src" / "misslink")
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(copy / "cache")]
        ran = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)  # noqa: S603 (its own)
    lines = ran.stdout.splitlines()
    found = {}
    for mutation in mutations:
        new, old = f"{mutation.name}{SUFFIX}", f'"{mutation.name}"'
        own = [line for line in lines if re.search(rf'"{new}"', line) and mutation.file in line]
        if mutation.file == "documents.py":  # missed by its old name, where it is written or read
            own = [line for line in lines if old in line]
        if own:
            found[mutation] = own[0].partition("error: ")[2]
    return found


def caught_by_tests(mutation: Mutation) -> str:
    """The first line of a failed test that has the new name; "" where all pass."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary)
        for folder in ("src", "prompts"):
            shutil.copytree(ROOT / folder, copy / folder)
        mutation.apply(copy / "src" / "misslink")
        tests = [str(ROOT / "tests" / "report" / name) for name in TESTS]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
        ran = subprocess.run(  # noqa: S603 (its own)
            command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
        )
    errors = [line[1:].strip() for line in ran.stdout.splitlines() if line.startswith("E ")]
    is_key = mutation.file.endswith(".py")
    told = re.compile(rf"\b{mutation.name}{'' if is_key else SUFFIX}\b")
    return next((line for line in errors if told.search(line)), "")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page, too")
    given = parser.parse_args()
    found = caught_by_mypy(MUTATIONS)
    by_mypy = len(found)
    found |= {mutation: told for mutation in TESTED if (told := caught_by_tests(mutation))}
    mutations = (*MUTATIONS, *TESTED)
    rows = [
        f"| `{mutation.file}` | `{mutation.name}` | {found.get(mutation, 'nothing')} |"
        for mutation in mutations
    ]
    table = "\n".join(["| file | renamed | what mypy or a test says |", "|---|---|---|", *rows])
    caught = f"{by_mypy} of {len(MUTATIONS)} are caught by mypy, {len(found) - by_mypy} of {len(TESTED)} by a test."
    print(f"{table}\n\n{caught}")
    if given.write:
        PAGE.write_text(
            f"# Renamed keys\n\nMade by `python benchmarks/mutations.py --write`: {len(mutations)} renames of a name, "
            f"each at one place where it is written or read.\n\n{table}\n\n{caught}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
