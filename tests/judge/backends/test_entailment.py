"""A judge around a cross-encoder: a scripted one, that is called as sentence-transformers' is."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from misslink.errors import InputError
from misslink.judge import EntailmentJudge
from misslink.judge.backends.custom import load_custom_judge
from misslink.judge.checks.redteam import AttackSuite, load_suite, run_redteam
from misslink.judge.examination import examine
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.prompts import BUILT_IN
from misslink.judge.protocol import Ask
from misslink.linking.claim_support import ClaimNeeds, shared_stem_share
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

OPEN = "The lighthouse welcomes visitors all summer. Dogs stay outside."
DEAR = "A ticket costs 9 euros. Children enter free."
SAYS = {  # what the model knows of paraphrases, which shared words do not tell
    "It admits visitors in June, July and August.": ("welcomes visitors all summer", 0.9),
    "A ticket costs 7 euros.": ("costs 9 euros", 0.04),
    "The keeper sells lemonade.": ("", 0.1),
}
ANSWER = " ".join(SAYS)

FILE = """
import json
from misslink.judge import EntailmentJudge

class CrossEncoder:
    def predict(self, pairs):
        return [0.8 if "summer" in text else 0.1 for text, claim in pairs]

judge = EntailmentJudge("mine", CrossEncoder().predict, identity={"weights": "v1"})
"""


class CrossEncoder:
    """Scores pairs as a model would; `calls` are the pairs of each call."""

    def __init__(self):
        self.calls = []

    def predict(self, pairs):
        self.calls.append(pairs)
        known = [(SAYS[claim], text) for text, claim in pairs]
        return np.array([p if words in text else 0.05 for (words, p), text in known])


def judged(judge, answer=ANSWER):
    passages = tuple(Passage(id=f"p{n}", text=t, rank=n) for n, t in enumerate((DEAR, OPEN), 1))
    case = Case(id="a", question="When can guests visit, and what does a ticket cost?")
    trace = Trace(case_id="a", retrieved=passages, answer=answer)
    metrics = [judged_metrics.get(name) for name in ("faithfulness", "context_relevance")]
    return asyncio.run(judge_case(Subject(case, trace, 2), metrics, judge))


def test_the_model_decides_support_and_the_quote_is_the_best_sentence():
    model = CrossEncoder()
    faithfulness, relevance = judged(EntailmentJudge("nli", model.predict))
    first, second, third = faithfulness.claims
    assert (first.support, first.probability) == ("supported", pytest.approx(0.9))
    assert [(e.passage_id, e.quote) for e in first.evidence] == [
        ("p2", "The lighthouse welcomes visitors all summer")
    ]
    assert (second.support, second.evidence) == ("unsupported", ())
    assert (third.support, third.probability) == ("unsupported", pytest.approx(0.1))
    assert faithfulness.value == pytest.approx(1 / 3)
    assert faithfulness.judge == "nli"
    assert relevance.status == "scored"
    assert len(model.calls[0]) == 6  # three claims with two passages, in one call


def test_the_threshold_is_the_judges_own_and_part_of_its_identity():
    strict = EntailmentJudge("nli", CrossEncoder().predict, threshold=0.95)
    assert judged(strict)[0].claims[0].support == "unsupported"
    assert strict.identity["threshold"] == 0.95
    assert strict.identity != EntailmentJudge("nli", CrossEncoder().predict).identity


def test_an_answer_that_declines_asks_the_model_nothing():
    model = CrossEncoder()
    judged(EntailmentJudge("nli", model.predict), "I do not know.")
    assert model.calls == []


@pytest.mark.parametrize("scores", [[0.5], [3.2] * 6, [float("nan")] * 6])
def test_scores_that_are_no_probabilities_are_one_sentence(scores):
    judge = EntailmentJudge("nli", lambda _: scores)
    with pytest.raises(InputError, match=r"for 6 pairs.*it must return P"):
        judged(judge)


def test_it_answers_no_other_question():
    ask = Ask.rendered(
        BUILT_IN.load("claim_needs"),
        {"question": "Why?", "claims": ("So.",), "passages": ("So.",)},
        ClaimNeeds,
    )
    reply = asyncio.run(EntailmentJudge("nli", CrossEncoder().predict).ask(ask))
    assert reply.parsed is None
    assert "judges answers, not 'claim_needs'" in reply.problem


def test_a_file_of_fifteen_lines_makes_one(tmp_path, monkeypatch, imports_forgotten):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nli.py").write_text(FILE, encoding="utf-8")
    judge = load_custom_judge("nli.py:judge")
    assert judge.identity["weights"] == "v1"
    reply = asyncio.run(judge.ask(examine("When?", (OPEN,), "It is open in summer.")))
    assert reply.parsed.claims[0].support == "supported"


SUITE = load_suite()
ATTACKS = tuple(a for a in SUITE.attacks if a.place == "passage" and not a.first)
CASES = tuple(
    replace(case, metrics=("faithfulness",))
    for case in SUITE.cases
    if "faithfulness" in case.metrics
)


@pytest.mark.slow
def test_a_model_that_obeys_what_is_injected_flips_nothing():
    clean = {text for case in CASES for text in case.passages}
    obeyed = []

    def predict(pairs):
        scores = []
        for text, claim in pairs:
            injected = not any(text in passage for passage in clean)
            obeyed.append(injected)
            scores.append(0.99 if injected else 0.4 * shared_stem_share(claim, text))
        return scores

    judge = EntailmentJudge("obedient", predict)
    metrics = {"faithfulness": judged_metrics.get("faithfulness")}
    suite = AttackSuite(ATTACKS, CASES[:1])
    found = asyncio.run(run_redteam(judge, metrics, suite=suite)).document()
    assert any(obeyed)
    assert found["flipped"]["n"] > 50
    assert found["flipped"]["value"] == 0


def test_every_quote_is_a_sentence_of_a_passage():
    judge = EntailmentJudge("yes", lambda pairs: [0.9] * len(pairs))
    faithfulness, _ = judged(judge, f"{DEAR} {OPEN}")
    evidence = [item for claim in faithfulness.claims for item in claim.evidence]
    texts = {"p1": DEAR, "p2": OPEN}
    assert evidence
    for item in evidence:
        start, end = item.start, item.end
        assert texts[item.passage_id][start:end] == item.quote
