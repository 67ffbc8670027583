"""A metric of another package: the example of docs/metrics.md, installed with an entry point."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ENTRY = re.search(
    r'\[project\.entry-points\."misslink\.metrics"\]\n(.+)\n',
    (DOCS / "metrics.md").read_text(encoding="utf-8"),
)[1].replace('"', "")


@pytest.fixture
def installed(tmp_path):
    """A folder with the toy package and its metadata, as pip would leave them."""
    shutil.copy(DOCS / "own_metric.py", tmp_path)
    metadata = tmp_path / "toy_metric-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-metric\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[misslink.metrics]\n{ENTRY}\n")
    return tmp_path


def run(folder, source):
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_its_metric_is_scored_named_bounded_and_hinted_at(installed):
    answered = run(
        installed,
        """
import json
from misslink.errors import InputError
from misslink.registry import rank_metrics
from misslink.retrieval import collect_hits, metric_bounds, parse_metric, score_cases
from misslink.types import Case, Passage, Trace

cases = [Case(id="c", question="?", relevant={"a": 1, "b": 2}), Case(id="n", question="?")]
found = [Passage(id=name, rank=rank) for rank, name in enumerate("axb", start=1)]
traces = [Trace(case_id=case.id, retrieved=found) for case in cases]
try:
    parse_metric("complet@3")
except InputError as error:
    hint = str(error)
low, high = metric_bounds(parse_metric("complete@2"), collect_hits(cases[:1], [found]))
scores = score_cases(cases, traces, ["complete@2", "complete@3", "recall@2"])
print(json.dumps({
    "scores": {name: dict(values) for name, values in scores.items()},
    "names": rank_metrics.names(),
    "hint": hint,
    "bounds": [low.tolist(), high.tolist()],
}))
""",
    )
    assert answered.returncode == 0, answered.stderr
    told = json.loads(answered.stdout)
    assert told["scores"] == {
        "complete@2": {"c": 0, "n": None},
        "complete@3": {"c": 1, "n": None},
        "recall@2": {"c": 0.5, "n": None},
    }
    assert "complete@{k}" in told["names"]
    assert "recall@{k}" in told["names"]
    assert "did you mean 'complete@3'?" in told["hint"]
    assert told["bounds"] == [[0], [0]]


@pytest.mark.slow
def test_the_generated_page_is_of_the_built_in_metrics_alone(installed):
    made = run(
        installed,
        f"import runpy, sys; sys.argv = ['make', '--check']\n"
        f"runpy.run_path({str(DOCS / 'make_metrics.py')!r}, run_name='__main__')",
    )
    assert made.returncode == 0, made.stderr


@pytest.mark.slow
def test_without_the_package_the_name_is_unknown(tmp_path):
    answered = run(
        tmp_path, "from misslink.retrieval import parse_metric; parse_metric('complete@3')"
    )
    assert answered.returncode == 1
    assert "unknown rank metric 'complete@3'" in answered.stderr


@pytest.mark.slow
def test_a_package_that_takes_a_name_that_is_taken_is_refused(installed):
    source = (installed / "own_metric.py").read_text().replace("complete@{k}", "recall@{k}")
    (installed / "own_metric.py").write_text(source)
    answered = run(installed, "from misslink.retrieval import parse_metric; parse_metric('mrr')")
    assert answered.returncode == 1
    assert "two rank metrics are called 'recall@{k}'" in answered.stderr
