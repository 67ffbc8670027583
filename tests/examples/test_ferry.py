"""The bundled example: what counts as failed is wrong, by people who read it."""

import pytest

from misslink import evaluate
from misslink.examples import load_example
from test_readme import ROOT, STEP

WRONG = {
    *("adult-return", "toddler", "lost-pass", "car-price", "camper", "dog", "wifi", "late"),
    *("forgot-umbrella", "suitcases", "jobs", "night-ferry"),
}
DECLINED = {"e-bike-charging", "pets"}  # questions that the corpus answers
WRONG_REFERENCE = {"ship-age"}  # the gold set says 1999, and the passage 1998


@pytest.mark.slow
def test_no_right_answer_counts_as_failed_but_by_a_wrong_reference():
    run = evaluate(**load_example("ferry"), cache=None)
    failed = {link.case_id: link.owner for link in run.links if link.failure != "passed"}
    assert failed.keys() == WRONG | DECLINED | WRONG_REFERENCE
    assert {case for case, owner in failed.items() if owner == "gold_set"} == WRONG_REFERENCE


@pytest.mark.slow
@pytest.mark.source
def test_the_judge_of_the_guide_judges_every_answer(tmp_path, monkeypatch):
    guide = (ROOT / "docs/how-to/write-your-own-judge.md").read_text(encoding="utf-8")
    (code,) = (step["text"] for step in STEP.finditer(guide) if step["file"] == "judge.py")
    (tmp_path / "judge.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run = evaluate(**load_example("ferry"), judge="judge.py:Verbatim", cache=None)
    assert run.summary["errors"]["judge"] == 0
    assert run.summary["coverage"]["faithfulness"]["failed"] == 0
