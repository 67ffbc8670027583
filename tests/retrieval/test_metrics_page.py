"""docs/metrics.md and docs/reference/judged-metrics.md say what the docstrings say."""

import runpy
import sys
from pathlib import Path

import pytest

import misslink
from misslink.registry import rank_metrics
from misslink.retrieval import format_metric_name

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
JUDGED_PAGE = (DOCS / "reference" / "judged-metrics.md").read_text(encoding="utf-8")


def test_the_committed_page_is_the_one_that_the_docstrings_make(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make_metrics.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(DOCS / "make_metrics.py"), run_name="__main__")
    assert not ended.value.code, "run  make gold"


def test_a_page_that_differs_is_noticed():
    generator = runpy.run_path(str(DOCS / "make_metrics.py"))
    assert generator["page"]() == PAGE
    assert generator["page"]() != PAGE.replace("**Range:**", "**Rang:**", 1)


def test_the_table_says_of_which_metrics_the_heuristic_judge_gives_no_value(tmp_path):
    text = "The first ferry leaves Sandvik at 07:00 in summer."
    case = {"id": "ferry", "question": "When does the first ferry leave?", "relevant": ["times"]}
    shown = {"id": "times", "text": text, "rank": 1}
    run = misslink.evaluate(
        traces=[{"case_id": "ferry", "retrieved": [shown], "answer": f"{text[:-1]} [1]."}],
        goldset=[case | {"reference": text}],
        judge="heuristic",
        out=tmp_path / "run",
        cache=None,
    )
    rows = JUDGED_PAGE.partition("<!-- table -->")[2].partition("<!-- /table -->")[0].splitlines()
    without = {one.metric for one in run.verdicts if one.status == "skipped"}
    assert without == {
        verdict.metric
        for verdict in run.verdicts
        for row in rows
        if row.startswith(f"| [{verdict.metric}]") and "a model as judge" in row
    }
    assert "helpfulness" in without


@pytest.mark.parametrize("name", rank_metrics.names())
def test_every_metric_has_a_section_with_all_that_a_reader_asks(name):
    sections = PAGE.split("\n## ")
    (section,) = [
        one for one in sections if format_metric_name(name) in one.partition("\n")[0].split(" and ")
    ]
    for label in ("Formula", "Range", "No value", "trec_eval", "Use it"):
        assert f"\n\n**{label}:** " in section


def test_the_example_is_shown_whole_and_is_short():
    example = (DOCS / "own_metric.py").read_text(encoding="utf-8")
    assert f"```python\n{example}```\n" in PAGE
    assert len(example.splitlines()) < 30
