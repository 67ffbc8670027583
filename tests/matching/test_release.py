"""The release tests of judging: what the checks between a judge and its verdict catch, and what they break.

They read human labels that are not in this repository. `benchmarks/judge/judging.py` has the judges.
"""

import pytest

from fit_heuristic import measure
from judging import (
    DATA,
    HEURISTIC,
    SCRIPTED,
    caught_marks,
    detection,
    oracle,
    overruled_evidence,
    read_rows,
    wrong_reports,
    yes_sayer,
)
from misslink.matching.support import fit_figures, load_fit

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the label sets are not here")
FOLDER = DATA / "faithfulness"


@pytest.mark.slow
def test_what_a_perfect_judge_says_arrives():
    found = detection(oracle(read_rows(FOLDER / "ragtruth_qa_test.jsonl")))
    assert found["f1"] >= 0.96, found
    assert found["false"] / found["faithful"] <= 0.015, found


@pytest.mark.slow
def test_of_a_judge_that_says_yes_to_everything_some_lies_are_caught():
    rows = [
        row for part in ("test", "dev") for row in read_rows(FOLDER / f"ragtruth_qa_{part}.jsonl")
    ]
    caught, marked = caught_marks(yes_sayer(rows))
    assert caught >= 0.09 * marked, (caught, marked)


@pytest.mark.slow
def test_the_heuristic_judge_on_answers_that_nothing_was_fitted_to():
    figures = measure(FOLDER / "ragtruth_qa_test.jsonl", load_fit())
    assert figures["auroc"] >= 0.775, figures
    assert figures["f1"] >= 0.47
    assert figures == fit_figures(), "run benchmarks/judge/fit_heuristic.py: the rules were changed"


@pytest.mark.slow
def test_supported_claims_are_not_overruled():
    shares, lost, count = {}, 0, 0
    for path in sorted((DATA / "claim_support").glob("*.jsonl.gz")):
        rows = read_rows(path)
        some = rows[:: 1 + len(rows) // 1_100]  # `benchmarks/judge/judging.py` reads all 20,000
        notes = [note for _, note in overruled_evidence(some)]
        broken = sum(note is not None for note in notes)
        shares[path.name.partition(".")[0]] = broken / len(notes)
        lost, count = lost + broken, count + len(notes)
    assert lost <= 0.025 * count, shares
    for name in ("mtrag_human", "ab_hagrid", "ab_stanford_gensearch"):
        assert shares[name] <= 0.01, name


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_right_answer_passes_in_every_form(name):
    assert wrong_reports(DATA, name)[0] == []


def test_the_heuristic_judge_on_situations_that_people_reported():
    wrong = {name: wrong_reports(DATA, name)[0] for name in HEURISTIC}
    assert {name: rows for name, rows in wrong.items() if rows} == {}
