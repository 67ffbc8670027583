"""Which failure mode a case gets, by the evidence that it names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import misslink
from misslink.failure_modes import FAILURE_MODES
from misslink.linking.attribution_rules import RULES, classify_failure, link_case
from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration
from misslink.types import Case, Claim, Estimate, Evidence, Passage, Trace, Verdict

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


IDS = ("a", "b", "c", "d")
PIERS = {
    name: f"Pier {name} opened in 190{n}, and its lamps burn until the last ferry has left."
    for n, name in enumerate(IDS)
}
ORDER = [name for name in FAILURE_MODES if name in RULES]
TELLING = ("faithfulness", "correctness", "abstention")
subsets = st.lists(st.sampled_from(IDS), unique=True, max_size=3)


@st.composite
def cases(draw):
    gold = draw(
        st.one_of(
            st.builds(lambda ids: {"relevant": ids}, subsets),
            st.builds(
                lambda grades: {"relevant": grades},
                st.dictionaries(st.sampled_from(IDS), st.integers(0, 2), max_size=3),
            ),
            st.builds(lambda sets: {"relevant_any": sets}, st.lists(subsets, max_size=3)),
            st.builds(lambda ids: {"evidence": [PIERS[i] for i in ids]}, subsets),
        )
    )
    references = draw(st.sampled_from(((), ("In 1900.",))))
    answerable = draw(st.sampled_from((None, True, False)))
    return Case(id="1", question="q", references=references, answerable=answerable, **gold)


@st.composite
def claims(draw, unfaithful):
    supports = draw(
        st.lists(st.sampled_from(("supported", "unsupported", "contradicted")), max_size=3)
    )
    kept = [s for s in supports if unfaithful or s == "supported"]
    if unfaithful and all(s == "supported" for s in kept):
        kept.append("unsupported")
    return tuple(
        Claim(
            text="It opened in 1900.",
            support=support,
            evidence=(Evidence(passage_id=draw(st.sampled_from(IDS)), quote="opened"),)
            if support != "unsupported"
            else (),
            correct=draw(st.sampled_from((None, True, False))),
        )
        for support in kept
    )


def said(metric, *, judge="openai:m", label=None, **more):
    scored = {"status": "scored", "value": float(label)} if label is not None else {}
    return Verdict(case_id="1", metric=metric, judge=judge, label=label, **scored | more)


@st.composite
def worlds(draw):
    """A case, its trace and its verdicts, all of them known and agreeing with each other."""
    case = draw(cases())
    retrieved = draw(subsets)
    passages = tuple(Passage(id=i, text=PIERS[i], rank=n) for n, i in enumerate(retrieved, 1))
    prompted = draw(st.sampled_from((None, tuple(retrieved), tuple(retrieved[:1]))))
    unmeasured = draw(st.sampled_from((None, None, None, "no search was seen")))
    trace = Trace(
        case_id="1", retrieved=passages, prompted=prompted, answer="a", unmeasured=unmeasured
    )
    judge = draw(st.sampled_from(("openai:m", "heuristic")))
    declined = draw(st.booleans())
    referenced = case.references and case.expects_answer is not False
    verdicts = [
        said(
            "abstention",
            judge=judge,
            status="skipped",
            reason="r",
            parts={"declined": float(declined)},
        )
    ]
    if referenced:
        right = draw(st.booleans()) and not declined
        verdicts.append(said("correctness", judge=judge, label=right))
    if declined or unmeasured:
        verdicts.append(said("faithfulness", judge=judge, status="skipped", reason="declines"))
    else:
        faithful = draw(st.booleans())
        of = draw(claims(not faithful))
        verdicts.append(said("faithfulness", judge=judge, label=faithful, claims=of))
    relevant = {passage: float(draw(st.booleans())) for passage in retrieved}
    if relevant:
        verdicts.append(said("context_relevance", judge=judge, label=True, passages=relevant))
    sufficient = draw(st.sampled_from((None, True, False)))
    if sufficient is not None and judge != "heuristic":
        verdicts.append(said("context_sufficiency", judge=judge, label=sufficient))
    return case, trace, {verdict.metric: verdict for verdict in verdicts}


def named(world, **changed):
    case, trace, verdicts = world
    facts = CaseEvidence.from_verdicts(case, trace, {**verdicts, **changed}, 5)
    return facts, *classify_failure(facts)


@settings(max_examples=400)
@given(worlds())
def test_there_is_one_primary_cause_and_the_others_follow_in_order(world):
    _, primary, reasons = named(world)
    assert primary == next(iter(reasons))
    assert all(reason.strip() for reason in reasons.values())
    if primary in {"passed", "inconclusive"}:
        assert len(reasons) == 1
    else:
        assert list(reasons) == sorted(reasons, key=ORDER.index)


@settings(max_examples=400)
@given(worlds())
def test_each_cause_has_what_it_means_and_none_stands_beside_what_it_excludes(world):
    facts, primary, reasons = named(world)
    names = set(reasons)
    if "retrieval_miss" in names:
        assert facts.outcome.missed
        assert facts.bad
    if "over_refused" in names:
        assert facts.declined
        assert not names & {"should_have_abstained", "fabricated", "distracted", "ignored_context"}
    if "should_have_abstained" in names:
        assert facts.declined is False
    if "fabricated" in names:
        assert facts.answer == "unfaithful"
    if names & {"distracted", "ignored_context"}:
        assert facts.bad or any(claim.correct is False for claim in facts.claims)
    if names & {"missing_label", "answered_from_memory"}:
        assert facts.correct
        assert facts.outcome.missed
        assert not {"missing_label", "answered_from_memory"} <= names
    if "missing_label" in names:
        assert not facts.by_heuristic
        assert facts.answer == "faithful"
    if primary == "passed":
        assert facts.correct is not False
        assert facts.answer != "unfaithful"


@settings(max_examples=400)
@given(worlds(), st.sampled_from(TELLING), st.booleans())
def test_a_verdict_that_failed_adds_no_cause_and_makes_nothing_fine(world, lost, absent):
    case, trace, verdicts = world
    if lost not in verdicts:
        return
    _, before, known = named(world)
    left = {name: verdict for name, verdict in verdicts.items() if name != lost}
    if not absent:
        left[lost] = said(lost, status="failed", reason="no JSON")
    _, after, reasons = named((case, trace, left))
    if after == "passed":
        # An answer nobody held against its reference is fine as far as it was judged.
        assert before == "passed" or (absent and lost == "correctness")
    elif after != "inconclusive":
        # Whether the answer stands in an unlisted passage is not known any more.
        unlisted = {"answered_from_memory"} if "missing_label" in known else set()
        assert set(reasons) <= set(known) | unlisted


@settings(max_examples=400)
@given(worlds(), st.sampled_from(("faithfulness", "correctness")))
def test_undecided_hides_no_cause_that_holds_whatever_the_missing_verdict_would_say(world, lost):
    if world[2].get(lost) is None or world[2][lost].status != "scored":
        return
    if world[2]["abstention"].parts["declined"]:
        return  # then neither verdict could say otherwise
    _, _, good = named(world, **{lost: said(lost, label=True)})
    _, _, bad = named(world, **{lost: said(lost, label=False)})
    _, _, left = named(world, **{lost: said(lost, status="failed", reason="no JSON")})
    either_way = set(good) & set(bad) - {"passed"}
    assert either_way <= set(left)


SHARE = Estimate(value=0.9, low=0.8, high=0.95, n=100, method="wilson")
PASSAGES = tuple(
    Passage(id=name, text=f"The {name} pier opened in 1904.", rank=rank)
    for rank, name in enumerate(("gold", "noise"), start=1)
)


def band(metric="faithfulness", ends=(0.4, 0.6)):
    return Calibration(
        metric=metric, threshold=0.5, sensitivity=SHARE, specificity=SHARE, uncertain_band=ends
    )


def verdict(metric, label=None, **more):
    scored = {"status": "scored", "value": float(label)} if label is not None else {}
    return Verdict(case_id="1", metric=metric, judge="openai:m", label=label, **scored | more)


def facts(*verdicts, calibration=None, answer="It opened in 1904.", **case):
    gold = {"relevant": ["gold"], "references": ["In 1904."]} | case
    trace = Trace(case_id="1", retrieved=PASSAGES, answer=answer)
    of = {each.metric: each for each in verdicts}
    return CaseEvidence.from_verdicts(
        Case(id="1", question="When?", **gold), trace, of, 5, calibration
    )


UNFAITHFUL = (Claim(text="It opened in 1904.", support="unsupported", probability=0.45),)


@pytest.mark.parametrize(
    ("calibration", "answer", "failure"),
    [
        (None, "unfaithful", "fabricated"),
        (band(), "unknown", "inconclusive"),
        (band(ends=(0.45, 0.45)), "unknown", "inconclusive"),
        (band(ends=(0.46, 0.6)), "unfaithful", "fabricated"),
        (band(ends=None), "unfaithful", "fabricated"),
        (band(metric="correctness"), "unfaithful", "fabricated"),
    ],
)
def test_a_probability_in_the_uncertain_band_of_its_own_metric_decides_nothing(
    calibration, answer, failure
):
    said = verdict("faithfulness", label=False, probability=0.45, claims=UNFAITHFUL)
    known = facts(said, calibration=calibration)
    assert known.answer == answer
    primary, reasons = classify_failure(known)
    assert primary == failure
    if failure == "inconclusive":
        assert "0.45" in reasons["inconclusive"]


def test_a_verdict_without_a_probability_is_never_uncertain():
    assert facts(verdict("faithfulness", label=False), calibration=band()).answer == "unfaithful"


def test_an_uncertain_verdict_keeps_its_claims_for_the_links_and_lends_them_to_no_cause():
    said = verdict("faithfulness", label=False, probability=0.5, claims=UNFAITHFUL)
    known = facts(said, calibration=band())
    assert known.claims == ()
    assert [claim.text for _, claim in known.unfaithful] == ["It opened in 1904."]


def test_what_is_certain_names_its_cause_beside_an_uncertain_verdict():
    said = verdict("faithfulness", label=True, probability=0.5)
    wrong = verdict("correctness", label=False)
    primary, reasons = classify_failure(
        facts(said, wrong, calibration=band(), relevant=["elsewhere"])
    )
    assert primary == "retrieval_miss"
    assert "the answer is wrong" in reasons["retrieval_miss"]


def test_an_uncertain_correctness_verdict_is_neither_right_nor_wrong():
    said = verdict("faithfulness", label=True), verdict("correctness", label=False, probability=0.5)
    known = facts(*said, calibration=band("correctness"))
    assert known.correct is None
    assert classify_failure(known)[0] == "inconclusive"


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_answer_declines_whatever_a_judge_says(blank):
    assert facts(answer=blank).answer == "abstained"
    assert classify_failure(facts(answer=blank))[0] == "over_refused"


def test_claims_show_that_an_answer_did_not_decline_where_no_verdict_says_so():
    assert facts(verdict("faithfulness", label=False, claims=UNFAITHFUL)).declined is False
    assert facts(verdict("faithfulness", label=False)).declined is None


def test_whether_the_unanswerable_was_answered_stays_open_where_no_verdict_tells():
    primary, reasons = classify_failure(
        facts(verdict("faithfulness", label=False), relevant=[], answerable=False)
    )
    assert primary == "inconclusive"
    assert "declined" in reasons["inconclusive"]


def test_a_heuristic_relevance_verdict_makes_no_gold_hole():
    rests = Evidence(passage_id="noise", quote="opened in 1904", start=15, end=29)
    claim = Claim(text="It opened in 1904.", support="supported", evidence=(rests,))
    said = verdict("faithfulness", label=True, claims=(claim,)), verdict("correctness", label=True)
    relevance = verdict("context_relevance", label=True, passages={"noise": 1.0})
    by_llm = facts(*said, relevance, relevant=["elsewhere"])
    assert classify_failure(by_llm)[0] == "missing_label"
    heuristic = relevance.model_copy(update={"judge": "heuristic"})
    assert (
        classify_failure(facts(*said, heuristic, relevant=["elsewhere"]))[0]
        == "answered_from_memory"
    )


ANSWERS = {
    "right": "It opened in 1904.",
    "wrong": "Gulls nest under its roof.",
    "declined": "I don't know.",
    "blank": "",
}
GOLD = {
    "listed": {"relevant": ["gold"], "references": ["It opened in 1904."]},
    "not listed": {"references": ["It opened in 1904."]},
    "without reference": {"relevant": ["gold"]},
    "unanswerable": {"answerable": False, "references": ["It opened in 1904."]},
}


def test_a_case_is_wrong_in_the_links_exactly_where_its_correctness_verdict_says_so():
    cases, traces = [], []
    for gold_name, gold in GOLD.items():
        for answer_name, answer in ANSWERS.items():
            name = f"{gold_name}, {answer_name}"
            cases.append({"id": name, "question": "When did the pier open?", **gold})
            traces.append(Trace(case_id=name, retrieved=PASSAGES, answer=answer))
    run = misslink.evaluate(goldset=cases, traces=traces, judge="heuristic", cache=None)
    labels = {v.case_id: v.label for v in run.verdicts if v.metric == "correctness"}
    assert {link.case_id: link.correct for link in run.links} == labels
    # Those that count in the table of wrong answers are those that count in the share of correct
    # ones, but for the cases of which nobody knows what they need.
    table = run.summary["link"]["wrong"]["table"]
    known = [n for n, label in labels.items() if label is not None and n.startswith("listed")]
    assert sum(table.values()) - table["left_out"] == len(known) == len(ANSWERS)
    failures = {link.case_id: link.failure for link in run.links}
    assert failures["listed, blank"] == failures["listed, declined"] == "over_refused"
    assert failures["without reference, blank"] == "over_refused"
    assert failures["unanswerable, blank"] == failures["unanswerable, declined"] == "passed"
    assert failures["unanswerable, wrong"] == "should_have_abstained"
    assert failures["not listed, blank"] == "inconclusive"
