"""What holds of the failure modes of any case, whatever was retrieved, said and judged."""

from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.linking.attribution_rules import attribute_failure
from misslink.linking.case_evidence import CaseEvidence
from misslink.types import Case, Claim, Evidence, Passage, Trace, Verdict

IDS = ("a", "b", "c", "d")
TEXTS = {
    name: f"Pier {name} opened in 190{n}, and its lamps burn until the last ferry has left."
    for n, name in enumerate(IDS)
}
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
            st.builds(lambda ids: {"evidence": [TEXTS[i] for i in ids]}, subsets),
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
    passages = tuple(Passage(id=i, text=TEXTS[i], rank=n) for n, i in enumerate(retrieved, 1))
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


def attributed(world, **changed):
    case, trace, verdicts = world
    evidence = CaseEvidence.from_verdicts(case, trace, {**verdicts, **changed}, 5)
    return evidence, attribute_failure(evidence, {})


@settings(max_examples=400)
@given(worlds())
def test_there_is_one_primary_mode_and_evidence_for_each_that_is_named(world):
    evidence, attribution = attributed(world)
    assert attribution.reason.strip()
    names = (attribution.failure, *attribution.also)
    assert len(set(names)) == len(names)
    assert list(attribution.also) == [n for n in attribution.also if n in FAILURES]
    if attribution.failure in FAILURES:
        assert evidence.failed
        assert {item.failure for item in attribution.evidence} == set(names)
        claims = [item.claim for item in attribution.evidence if item.claim is not None]
        assert len(set(claims)) == len(claims)  # each bad claim is explained once
    else:
        assert attribution.also == ()
        assert attribution.failure == "inconclusive" or not evidence.failed


@settings(max_examples=400)
@given(worlds())
def test_each_mode_has_the_evidence_that_it_requires(world):
    evidence, attribution = attributed(world)
    names = {attribution.failure, *attribution.also}
    supports = {claim.support for claim in evidence.claims if claim.evidence}
    if names & {"retrieval_miss", "not_indexed", "dropped_from_prompt"}:
        assert evidence.sufficient is False
    if evidence.retrieval in {"unlabelled", "unknown"} and evidence.sufficient is not True:
        assert {FAILURE_MODES[name].owner for name in names & FAILURES} <= {"index", "retriever"}
    if "over_refused" in names:
        assert evidence.declined
        assert names == {"over_refused"}
    if "should_have_abstained" in names:
        assert evidence.case.expects_answer is False
        assert evidence.declined is False
    if "contradicts_context" in names:
        misread = any(item.reason_code == "states_reference" for item in attribution.evidence)
        assert "contradicted" in supports or misread
    if "gold_suspect" in names:
        assert evidence.case.expects_answer is False or any(
            claim.correct is False and claim.support == "supported" for claim in evidence.claims
        )
    if names & {"ignored_context", "incomplete"}:
        assert evidence.sufficient is True
    if "incomplete" in names:
        assert evidence.answer == "faithful"
    if attribution.notes:
        assert attribution.failure == "passed"
        assert evidence.correct
        assert evidence.outcome.retrieval in {"miss", "partial"}
    if attribution.failure == "passed":
        assert evidence.correct is not False or evidence.declined
        assert evidence.answer != "unfaithful"


@settings(max_examples=400)
@given(worlds(), st.sampled_from(TELLING), st.booleans())
def test_a_verdict_that_failed_makes_nothing_pass(world, lost, absent):
    case, trace, verdicts = world
    if lost not in verdicts:
        return
    _, before = attributed(world)
    left = {name: verdict for name, verdict in verdicts.items() if name != lost}
    if not absent:
        left[lost] = said(lost, status="failed", reason="no JSON")
    _, after = attributed((case, trace, left))
    if after.failure == "passed":
        # An answer that nobody compared with its reference passed as far as it was judged.
        assert before.failure == "passed" or (absent and lost == "correctness")
