"""What holds for every registered judged metric, whatever a judge says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.judge.protocol import Reply
from misslink.metrics.citation_correctness import CitationReply, Citations
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace
from scripted_judge import BEST_FIELDS, OPTIONAL_FIELDS, ScriptedJudge, judged, plain, referenced

FACTS = (
    "The harbour opened in 1904.",
    "Ships pay a toll of 12 crowns.",
    "Gulls nest on the northern pier.",
    "The lamp burned oil until 1931.",
)
SUPPORTS = st.sampled_from(["supported", "contradicted", "unsupported"])
AGREES = st.sampled_from(["agrees", "contradicts", "silent"])
ANSWERS = st.sampled_from(["states", "contradicts", "omits"])
# Made once: a strategy that is made in each draw is checked in each, which takes as long as to draw.
TEXT = st.sampled_from([*FACTS, "It has a casino."])
TEXTS = st.lists(st.sampled_from(FACTS), unique=True, max_size=4)
IDS = st.lists(st.sampled_from([f"p-{n}" for n in range(4)]), unique=True, max_size=3)
SETS = st.lists(IDS.filter(bool), max_size=2)
SENTENCES = st.lists(st.tuples(TEXT, st.none() | st.integers(0, 5)), min_size=1, max_size=3)
CLAIMS = st.lists(
    st.tuples(TEXT, SUPPORTS, st.none() | TEXT, AGREES, st.floats(0, 1)),
    max_size=4,
    unique_by=lambda item: item[:4],
)
STATED = st.lists(st.tuples(st.integers(1, 3), TEXT, ANSWERS, st.floats(0, 1)), max_size=4)
REST = {
    "response": st.sampled_from(["answers", "partly", "evades", "declines"]),
    **{name: st.none() | st.sampled_from(values) for name, values in OPTIONAL_FIELDS.items()},
}
ANSWERABLE = st.none() | st.booleans()


@dataclass(frozen=True)
class Drawn:
    """A case, what is said of it, and the probabilities, so that each can be put in other order."""

    texts: tuple[str, ...]
    claims: tuple[tuple, ...]  # text, support, quote, agreement, probability
    relevant: tuple[tuple[int, bool], ...]
    stated: tuple[tuple, ...]  # reference, text, answer, probability
    case: Case
    answer: str
    rest: dict

    def trace(self):
        return Trace(
            case_id="1",
            retrieved=tuple(
                Passage(id=f"p-{FACTS.index(text)}", text=text, rank=n)
                for n, text in enumerate(self.texts, 1)
            ),
            answer=self.answer,
        )

    def reply(self):
        claims = [claim[:4] for claim in self.claims]
        if self.case.references and self.case.expects_answer is not False:
            stated = [item[:3] for item in self.stated]
            said = referenced(claims, stated, passages=self.relevant, **self.rest)
        else:
            said = plain(*(claim[:3] for claim in claims), passages=self.relevant, **self.rest)
        places = {
            f"claims.{n}.support": {"supported": claim[4], "unsupported": 1 - claim[4]}
            for n, claim in enumerate(self.claims)
        }
        for n, item in enumerate(self.stated):
            places[f"reference_claims.{n}.answer"] = {"states": item[3], "omits": 1 - item[3]}
        return Reply(said, "{}", probabilities=places)

    def verdicts(self, reply=None):
        judge = ScriptedJudge(reply or self.reply(), citations=cite)
        return judged(self.case, self.trace(), judge)


def cite(ask):
    """Say yes where the passage holds the statement, whatever their numbers."""
    said = []
    for number, statement in enumerate(ask.inputs["statements"], 1):
        for passage in statement["passages"]:
            there = statement["text"] in ask.inputs["cited"][passage]
            quote = statement["text"] if there else None
            word = "yes" if there else "no"
            item = CitationReply(statement=number, passage=passage, supported=word, quote=quote)
            said.append(item)
    return Reply(Citations(citations=tuple(said)), "{}")


@st.composite
def drawn(draw):
    texts = draw(TEXTS)
    references = draw(st.integers(0, 2))
    case = Case(
        id="1",
        question="What of the harbour?",
        relevant=draw(IDS),
        relevant_any=draw(SETS),
        references=["r"] * references,
        answerable=draw(ANSWERABLE),
    )
    sentences = draw(SENTENCES)
    answer = " ".join(text if cited is None else f"{text} [p-{cited}]" for text, cited in sentences)
    return Drawn(
        texts=tuple(texts),
        claims=tuple(draw(CLAIMS)),
        relevant=tuple(
            (n, draw(st.booleans())) for n in range(1, len(texts) + draw(st.integers(0, 1)))
        ),
        stated=tuple(draw(STATED)),
        case=case,
        answer=answer,
        rest={name: draw(value) for name, value in REST.items()},
    )


def same(one, other):
    for name, verdict in one.items():
        twin = other[name]
        assert (verdict.status, verdict.label) == (twin.status, twin.label), name
        assert verdict.value == pytest.approx(twin.value), name
        assert verdict.probability == pytest.approx(twin.probability), name
        assert verdict.parts == pytest.approx(twin.parts), name
        assert verdict.passages == pytest.approx(twin.passages), name


def in_bounds(verdict):
    shares = [verdict.value, verdict.probability, *verdict.parts.values()]
    for share in (*shares, *verdict.passages.values()):
        assert share is None or (0 <= share <= 1 and not math.isnan(share)), verdict.metric
    assert (verdict.value is None) == (verdict.status != "scored"), verdict.metric
    assert (verdict.label is None) == (verdict.value is None), verdict.metric
    assert verdict.value is not None or verdict.reason, verdict.metric


@given(drawn())
def test_a_value_is_a_share_with_a_label_and_a_missing_one_says_why(case):
    found = case.verdicts()
    assert set(found) == set(judged_metrics.names())
    for verdict in found.values():
        in_bounds(verdict)


@given(drawn(), st.randoms(use_true_random=False))
def test_the_order_of_the_passages_changes_nothing(case, chance):
    order = list(range(1, len(case.texts) + 1))
    chance.shuffle(order)
    said = dict(case.relevant)
    shuffled = replace(
        case,
        texts=tuple(case.texts[old - 1] for old in order),
        relevant=tuple((new, said[old]) for new, old in enumerate(order, 1) if old in said),
    )
    same(case.verdicts(), shuffled.verdicts())


@given(drawn(), st.randoms(use_true_random=False))
def test_the_order_in_which_claims_are_said_changes_nothing(case, chance):
    claims, stated = list(case.claims), list(case.stated)
    chance.shuffle(claims)
    chance.shuffle(stated)
    same(case.verdicts(), replace(case, claims=tuple(claims), stated=tuple(stated)).verdicts())


@given(drawn())
def test_without_claims_no_metric_of_claims_has_a_value(case):
    bare = replace(case, claims=(), stated=()).verdicts()
    for name in ("faithfulness", "noise_sensitivity", "self_knowledge"):
        assert bare[name].value is None, name
    if case.rest["response"] != "declines":
        assert bare["correctness"].value is None
        assert bare["completeness"].value is None


@pytest.mark.parametrize("name", judged_metrics.names())
def test_the_docstring_says_what_is_good_when_there_is_no_value_and_where_it_is_from(name):
    said = " ".join(type(judged_metrics.get(name)).__doc__.split())
    for wanted in ("label is good", "Skipped ", "Source: "):
        assert wanted in said, wanted


@given(drawn())
def test_quotes_that_are_nowhere_support_nothing(case):
    believed = case.verdicts()["faithfulness"]
    lying = tuple(
        (t, "supported", "the moon is made of cheese", a, p) for t, _, _, a, p in case.claims
    )
    verdict = replace(case, claims=lying).verdicts()["faithfulness"]
    if (
        case.rest["response"] == "declines"
    ):  # only what the judge itself finds bad outweighs its word
        assert verdict.status in {"scored", "failed", "skipped"}
    elif believed.status == "scored":
        assert verdict.status == "scored"
    elif believed.status == "failed" and case.claims:  # for want of claims: a bad one decides
        assert verdict.status in {"scored", "failed"}
    assert verdict.value in {None, 0.0}


def test_where_everything_is_there_every_metric_has_a_value():
    case = Drawn(
        texts=FACTS,
        claims=((FACTS[0], "supported", FACTS[0], "agrees", 0.9),),
        relevant=((1, True),),
        stated=((1, FACTS[0], "states", 0.8),),
        case=Case(id="1", question="When?", relevant=["p-0"], references=["In 1904."]),
        answer=f"{FACTS[0]} [p-0]",
        rest={"response": "answers", **BEST_FIELDS},
    )
    found = case.verdicts()
    assert {name for name, verdict in found.items() if verdict.status != "scored"} == set()
    assert all(verdict.label is True for verdict in found.values())
    better = {name: getattr(judged_metrics.get(name), "better", "high") for name in found}
    assert {name: verdict.value for name, verdict in found.items()} == {
        name: 1.0 if direction == "high" else 0.0 for name, direction in better.items()
    }
