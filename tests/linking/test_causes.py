"""Every failure mode of the design's table, put there by the evidence it names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from misslink.linking.attribution_rules import link_case
from misslink.types import Case, Claim, Evidence, Passage, Trace, Verdict

TEXTS = {
    "gold": "The ferry to Holm leaves at seven in the morning.",
    "noise": "The bus to Holm leaves at nine in the evening.",
    "other": "Tickets are sold on board.",
}


def run_link(*args, **options):
    return asyncio.run(link_case(*args, **options))


@dataclass
class World:
    """A case in which the app retrieved `retrieved`, and a judge said what the fields say."""

    retrieved: tuple = ("noise", "other")
    relevant: tuple = ("gold",)
    support: str | None = "supported"
    rests_on: str = "noise"
    declined: bool = False
    correct: bool | None = None
    claim_correct: bool | None = None
    answerable: bool | None = None
    judge: str = "openai:m"
    judged_relevant: tuple = ()
    faithfulness: str = "scored"
    sufficient: bool | None = None
    gold: dict = field(default_factory=dict)
    more: dict = field(default_factory=dict)

    def link(self, **changes):
        for name, value in changes.items():
            setattr(self, name, value)
        gold = self.gold or {"relevant": self.relevant}
        case = Case(id="1", question="q", answerable=self.answerable, **gold)
        passages = tuple(
            Passage(id=i, text=TEXTS[i], rank=rank) for rank, i in enumerate(self.retrieved, 1)
        )
        trace = Trace(
            case_id="1", retrieved=passages, prompted=self.retrieved, answer="a", **self.more
        )
        return run_link(case, trace, {v.metric: v for v in self._verdicts()}, k=5)

    def _verdicts(self):
        common = {"case_id": "1", "judge": self.judge}
        evidence = Evidence(passage_id=self.rests_on, quote="q", start=0, end=1)
        if self.declined:
            yield Verdict(metric="faithfulness", status="skipped", reason="declines", **common)
        elif self.faithfulness == "failed":
            yield Verdict(metric="faithfulness", status="failed", reason="no JSON", **common)
        elif self.support is not None:
            supported = self.support == "supported"
            claim = Claim(
                text="The ferry to Holm leaves at seven.",
                support=self.support,
                evidence=(evidence,) if supported else (),
                correct=self.claim_correct,
            )
            yield Verdict(
                metric="faithfulness",
                status="scored",
                value=float(supported),
                label=supported,
                claims=(claim,),
                **common,
            )
        yield Verdict(
            metric="abstention",
            status="skipped",
            reason="not said",
            parts={"declined": float(self.declined)},
            **common,
        )
        if self.correct is not None:
            value = float(self.correct)
            yield Verdict(
                metric="correctness", status="scored", value=value, label=self.correct, **common
            )
        if self.sufficient is not None:
            value, label = float(self.sufficient), self.sufficient
            yield Verdict(
                metric="context_sufficiency", status="scored", value=value, label=label, **common
            )
        if self.judged_relevant:
            said = dict.fromkeys(self.judged_relevant, 1.0)
            yield Verdict(
                metric="context_relevance", status="scored", value=1.0, passages=said, **common
            )


@pytest.mark.parametrize(
    ("world", "failure"),
    [
        (World(support="unsupported"), "retrieval_miss"),
        (World(correct=False), "retrieval_miss"),
        (World(declined=True), "retrieval_miss"),
        (World(support=None, correct=False), "retrieval_miss"),
        (World(retrieved=("gold",), relevant=("gold", "other"), correct=False), "retrieval_miss"),
        (World(relevant=(), answerable=False), "should_have_abstained"),
        (World(retrieved=("gold",), declined=True), "over_refused"),
        (World(relevant=(), answerable=True, declined=True), "over_refused"),
        (World(retrieved=("gold", "noise"), correct=False), "distracted"),
        (World(retrieved=("gold", "noise"), claim_correct=False), "distracted"),
        (World(retrieved=("gold",), support="unsupported"), "fabricated"),
        (World(relevant=(), support="contradicted"), "fabricated"),
        (World(retrieved=("gold",), rests_on="gold", correct=False), "ignored_context"),
        (
            World(rests_on="noise", correct=True, judged_relevant=("noise",)),
            "missing_label",
        ),
        (World(correct=True), "answered_from_memory"),
        (
            World(correct=True, judged_relevant=("noise",), judge="heuristic"),
            "answered_from_memory",
        ),
        (World(relevant=(), rests_on="noise", correct=False), "inconclusive"),
        (World(relevant=("gold",), answerable=False), "should_have_abstained"),
        (World(relevant=("gold",), answerable=False, declined=True), "passed"),
        (World(support=None), "inconclusive"),
        (World(faithfulness="failed"), "inconclusive"),
        (World(relevant=(), declined=True), "inconclusive"),
        (World(retrieved=("gold",), rests_on="gold"), "passed"),
        (World(retrieved=("gold",), rests_on="gold", correct=True), "passed"),
        (World(relevant=(), answerable=False, declined=True), "passed"),
        (World(retrieved=("gold",), relevant=("gold", "other"), rests_on="gold"), "passed"),
    ],
)
def test_a_case_gets_the_cause_its_evidence_shows(world, failure):
    link = world.link()
    assert link.failure == failure, link.reason
    assert link.reason


PART = {"retrieved": ("gold", "noise"), "relevant": ("gold", "other")}
EITHER = {"relevant_any": [["gold"], ["other"]]}
BOTH = {"relevant_any": [["gold", "other"]]}
BY_TEXT = {"evidence": [TEXTS["gold"]]}


@pytest.mark.parametrize(
    ("world", "failures"),
    [
        # Part of the gold was there.
        (World(**PART, rests_on="gold", support="unsupported"), "retrieval_miss ignored_context"),
        (World(**PART, rests_on="gold", correct=False), "retrieval_miss"),
        (World(**PART, correct=False), "retrieval_miss distracted ignored_context"),
        (World(**PART, rests_on="gold", correct=True), "passed"),
        (World(**PART, declined=True), "retrieval_miss"),
        (World(**PART, declined=True, sufficient=True), "retrieval_miss over_refused"),
        (
            World(**PART, support="unsupported", sufficient=True),
            "retrieval_miss fabricated ignored_context",
        ),
        (World(**PART, support="unsupported", sufficient=False), "retrieval_miss ignored_context"),
        (World(**PART, correct=True, judged_relevant=("noise",)), "missing_label"),
        # Of alternatives each suffices, and each is relevant.
        (World(retrieved=("other", "noise"), gold=EITHER, rests_on="other", correct=True), "passed"),
        (World(retrieved=("other", "noise"), gold=EITHER, declined=True), "over_refused"),
        (World(retrieved=("other", "noise"), gold=EITHER, correct=False, rests_on="other"),
         "ignored_context"),
        (World(retrieved=("other", "noise"), gold=EITHER, correct=False),
         "distracted ignored_context"),
        (World(retrieved=("noise",), gold=EITHER, correct=False),
         "retrieval_miss should_have_abstained distracted"),
        (World(retrieved=("other", "noise"), gold=BOTH, rests_on="other", correct=False),
         "retrieval_miss"),
        # Evidence is relevant wherever it stands.
        (World(retrieved=("gold", "noise"), gold=BY_TEXT, rests_on="gold", correct=True), "passed"),
        (World(retrieved=("gold", "noise"), gold=BY_TEXT, correct=False),
         "distracted ignored_context"),
        (World(retrieved=("noise",), gold=BY_TEXT, support="unsupported"),
         "retrieval_miss should_have_abstained"),
        (World(correct=True, judged_relevant=("noise",)), "missing_label"),
        # A person has judged the passage and found it irrelevant: the gold set has no hole there.
        (World(gold={"relevant": {"gold": 1, "noise": 0}}, correct=True,
               judged_relevant=("noise",)), "answered_from_memory"),
        (World(correct=True, support="unsupported"),
         "retrieval_miss should_have_abstained answered_from_memory"),
        # Whether an answer that was refused was right nobody can say without a reference.
        (World(retrieved=("gold",), declined=True, correct=False), "over_refused"),
    ],
)  # fmt: skip
def test_every_cause_that_fits_is_named_in_order(world, failures):
    link = world.link()
    assert (link.failure, *link.also) == tuple(failures.split())
    assert tuple(link.reasons) == (link.failure, *link.also)
    assert all(link.reasons.values())


def test_an_answer_without_a_claim_is_wrong_because_it_ignores_the_context():
    world = World(retrieved=("gold",), support=None, correct=False)
    common = {"case_id": "1", "judge": "j"}
    verdicts = tuple(world._verdicts())
    skipped = Verdict(
        metric="faithfulness", status="skipped", reason="the answer makes no claim", **common
    )
    case = Case(id="1", question="q", relevant=["gold"])
    passages = (Passage(id="gold", text=TEXTS["gold"], rank=1),)
    trace = Trace(case_id="1", retrieved=passages, answer="It depends.")
    by_metric = {v.metric: v for v in (*verdicts, skipped)}
    assert run_link(case, trace, by_metric, k=5).failure == "ignored_context"
    # Without that verdict the answer may as well be invented.
    del by_metric["faithfulness"]
    assert run_link(case, trace, by_metric, k=5).failure == "inconclusive"


def test_the_retrieval_note_explains_a_gold_set_whose_evidence_could_not_be_looked_for():
    case = Case(id="1", question="q", evidence=[TEXTS["gold"]])
    trace = Trace(case_id="1", retrieved=(Passage(id="x", rank=1),), prompted=("x",), answer="a")
    verdict = Verdict(
        case_id="1", metric="faithfulness", status="scored", value=0.0, label=False, judge="j"
    )
    link = run_link(case, trace, {"faithfulness": verdict}, k=5)
    assert link.failure == "fabricated"
    assert "no retrieved passage has a text" in link.reason


def test_contributing_causes_are_kept_beside_the_primary_one():
    miss = World(support="unsupported").link()
    assert miss.also == ("should_have_abstained",)
    ignored = World(retrieved=("gold",), support="unsupported").link()
    assert ignored.also == ("ignored_context",)


def test_a_correctness_verdict_that_failed_leaves_the_case_undecided():
    case = Case(id="1", question="q", relevant=["gold"], references=["r"])
    trace = Trace(
        case_id="1", retrieved=(Passage(id="gold", text=TEXTS["gold"], rank=1),), answer="a"
    )
    common = {"case_id": "1", "judge": "j"}
    verdicts = {
        "faithfulness": Verdict(
            metric="faithfulness", status="scored", value=1.0, label=True, **common
        ),
        "correctness": Verdict(metric="correctness", status="failed", reason="no JSON", **common),
    }
    link = run_link(case, trace, verdicts, k=5)
    assert (link.failure, link.reason) == ("inconclusive", "correctness failed: no JSON")


def test_an_unfaithful_claim_is_linked_to_the_missed_passage_it_needed_with_its_true_rank():
    deep = Passage(id="gold", text=TEXTS["gold"], rank=17, score=0.4)
    link = World(support="unsupported", more={"deeper": (deep,), "depth": 100}).link()
    (missed,) = link.missed
    assert (missed.passage_id, missed.true_rank, missed.miss_type) == ("gold", 17, "below_cutoff")
    (claim,) = link.claims
    assert (claim.passage_id, claim.relation, claim.true_rank) == ("gold", "would_support", 17)
    assert claim.quote in TEXTS["gold"]


def test_a_claim_that_the_missed_passage_says_nothing_of_is_unrelated():
    world = World(relevant=("other",), retrieved=("noise",), support="unsupported")
    deep = Passage(id="other", text="Gulls nest under the roof.", rank=9)
    world.more = {"deeper": (deep,), "depth": 100}
    (claim,) = world.link().claims
    assert claim.relation == "unrelated"


def test_a_passage_that_was_retrieved_and_not_prompted_was_dropped():
    case = Case(id="1", question="q", relevant=["gold"])
    passages = tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(TEXTS.items(), 1))
    trace = Trace(case_id="1", retrieved=passages, prompted=("noise",), answer="a")
    (missed,) = run_link(case, trace, {}, k=5).missed
    assert (missed.miss_type, missed.true_rank) == ("dropped_from_prompt", 1)


def test_an_id_that_was_never_retrieved_is_a_miss_without_a_rank():
    (missed,) = World(support="unsupported").link().missed
    assert (missed.passage_id, missed.true_rank, missed.depth) == ("gold", None, None)


def test_a_supported_answer_has_no_claim_links():
    assert World().link().claims == ()
