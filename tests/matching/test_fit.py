"""The heuristic judges against human labels."""

import asyncio
import json
from pathlib import Path

import pytest

from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.examination import Examination
from misslink.judge.protocol import Ask
from misslink.matching.support import load_fit, rules_version
from misslink.types import PromptRef

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
LABELS = DATA / "faithfulness" / "ragtruth_qa_dev.jsonl"
needs_labels = pytest.mark.skipif(not LABELS.exists(), reason="no ../shared/data with the labels")


@pytest.fixture(scope="module")
def fitting():
    import fit_heuristic

    return fit_heuristic


@pytest.mark.slow
@needs_labels
def test_asked_as_a_judge_it_finds_the_unfaithful_answers(fitting):
    rows = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    judge = open_heuristic()
    prompt = PromptRef(name="examination", version=1, sha256="0")

    async def lowest(row):
        inputs = {
            "question": row["question"],
            "passages": row["contexts"],
            "answer": row["answer"],
        }
        reply = await judge.ask(Ask("examination", inputs, (), Examination, prompt))
        claims = [
            at["supported"]
            for place, at in reply.probabilities.items()
            if place.startswith("claims.")
        ]
        assert len(claims) == len(reply.parsed.claims)
        return min(claims, default=1.0)

    async def every():
        return [await lowest(row) for row in rows]

    faithful = fitting.np.array(asyncio.run(every()))
    bad = fitting.np.array([row["human_hallucinated"] for row in rows])
    assert fitting.auroc(bad, 1 - faithful) > 0.82
    assert fitting.f1(bad, faithful < load_fit().cut) > 0.5


@pytest.mark.slow
@needs_labels
def test_fitting_again_gives_the_committed_lexical_coefficients(fitting):
    again = fitting.fit(fitting.read_training(DATA))
    committed = load_fit()
    # Another processor may round otherwise; a coefficient that moves by more was not this fit's.
    assert again.intercept == pytest.approx(committed.intercept, abs=0.01)
    assert dict(again.weights) == pytest.approx(dict(committed.weights), abs=0.01)
    assert again.cut == pytest.approx(committed.cut, abs=0.01)
    assert again.cap == pytest.approx(committed.cap, abs=0.01)


def test_every_feature_grows_doubt():
    assert all(weight > 0 for weight in load_fit().weights.values())


def test_auroc_counts_ties_half(fitting):
    bad = fitting.np.array([True, False, True, False])
    assert fitting.auroc(bad, fitting.np.array([0.9, 0.1, 0.5, 0.5])) == 0.875


def test_the_cut_maximises_the_expected_f1(fitting):
    # Flagging one: 2 * 0.9 / (1 + 1.4) = 0.75; two: 2 * 1.3 / (2 + 1.4) = 0.76; three: 0.64.
    cut = fitting.best_cut(fitting.np.array([0.1, 0.9, 0.4]))
    assert cut == pytest.approx(1 - (0.4 + 0.1) / 2)


@pytest.mark.slow
@needs_labels
def test_figures_are_of_answers_that_are_fitted_to_nothing_and_name_rules_and_fit(fitting):
    assert fitting.MEASURED_ON not in fitting.CHECKSUMS
    figures = fitting.measure(DATA / fitting.MEASURED_ON, load_fit())
    assert (figures["fit"], figures["rules"]) == (load_fit().version, rules_version())
    assert (figures["answers"], figures["unfaithful"]) == (296, 51)
    assert 0 < figures["precision"] < 1
    found = (
        2 * figures["precision"] * figures["recall"] / (figures["precision"] + figures["recall"])
    )
    assert figures["f1"] == pytest.approx(found, abs=0.01)
