"""What holds of the failure modes of any case, whatever was retrieved, said and judged."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from misslink.failure_modes import FAILURES
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.owners import link_case
from misslink.types import Case, Claim, Evidence, Passage, Trace, Verdict

IDS = ("a", "b", "c", "d")
TEXTS = {
    name: f"Pier {name} opened in 190{n}, and its lamps burn until the last ferry has left."
    for n, name in enumerate(IDS)
}
TELLING = ("faithfulness", "correctness", "abstention")
subsets = st.lists(st.sampled_from(IDS), unique=True, max_size=3)


# Made once, since a strategy that is made in each draw is checked in each.
labels = st.one_of(
    st.builds(lambda ids: {"relevant": ids}, subsets),
    st.builds(
        lambda grades: {"relevant": grades},
        st.dictionaries(st.sampled_from(IDS), st.integers(0, 2), max_size=3),
    ),
    st.builds(lambda sets: {"relevant_any": sets}, st.lists(subsets, max_size=3)),
    st.builds(lambda ids: {"evidence": [TEXTS[i] for i in ids]}, subsets),
)
claimed = st.lists(st.sampled_from(("supported", "unsupported", "contradicted")), max_size=3)


@st.composite
def cases(draw):
    gold = draw(labels)
    references = draw(st.sampled_from(((), ("In 1900.",))))
    answerable = draw(st.sampled_from((None, True, False)))
    return Case(id="1", question="q", references=references, answerable=answerable, **gold)


@st.composite
def claims(draw, unfaithful):
    supports = draw(claimed)
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
    verdicts = {**verdicts, **changed}
    known = AnswerOutcome.from_verdicts(case, trace, verdicts, 5)
    return known, asyncio.run(link_case(case, trace, verdicts, 5))


def has_one_primary_mode_and_evidence_for_each_that_is_named(known, link):
    assert link.reason.strip()
    names = (link.failure, *link.also)
    assert len(set(names)) == len(names)
    assert list(link.also) == [n for n in link.also if n in FAILURES]
    if link.failure in FAILURES:
        assert known.failed(link.sufficient)
        assert {item.failure for item in link.evidence} == set(names)
        claims = [item.claim for item in link.evidence if item.claim is not None]
        assert len(set(claims)) == len(claims)  # each bad claim is explained once
    else:
        assert link.also == ()
        # Words that the prompt lacks, and the reference has, speak against the passages.
        passed = known.states_reference or not known.failed(link.sufficient)
        assert link.failure == "inconclusive" or passed


STAGES = {
    "retrieval_miss": {"rank", "filter", "unknown"},
    "not_indexed": {"index"},
    "dropped_from_prompt": {"prompt"},
}


def follows_from_the_needs_table(known, link):
    names = {link.failure, *link.also}
    lost = {need.lost_at for need in link.needs}
    supports = {claim.support for claim in known.claims if claim.evidence}
    for mode, stages in STAGES.items():
        if mode in names:
            assert lost & stages
    told = link.sufficient_judge == "yes" and link.retrieval != "not_needed"
    if (
        told and "conflicting_sources" not in names
    ):  # of which one copy does not belong in the index
        assert not lost & {"rank", "filter", "index", "unknown"}  # whatever is labelled
    if "over_refused" in names:
        assert known.declined
        assert names == {"over_refused"}
    if "should_have_abstained" in names:
        assert known.has_no_answer
        assert known.declined is False
    if "contradicts_context" in names:
        misread = any(item.reason_code == "states_reference" for item in link.evidence)
        assert "contradicted" in supports or misread
    if "gold_suspect" in names:
        assert known.has_no_answer or any(claim.support == "supported" for claim in known.claims)
    if "incomplete" in names:
        assert known.answer == "faithful"
    if link.notes:
        assert link.failure == "passed"
        assert known.correct
    if link.failure == "passed":
        assert known.correct is not False or known.declined
        assert known.answer != "unfaithful"
        assert lost <= {None, "rank", "filter", "index", "prompt", "unknown"}
    assert all(need.stated in {None, "states"} for need in link.needs if need.lost_at is None)


def passes_no_more_without(lost, absent, world, before):
    case, trace, verdicts = world
    left = {name: verdict for name, verdict in verdicts.items() if name != lost}
    if not absent:
        left[lost] = said(lost, status="failed", reason="no JSON")
    _, after = attributed((case, trace, left))
    if after.failure == "passed":
        # An answer that nobody compared with its reference passed as far as it was judged.
        assert before.failure == "passed" or (absent and lost == "correctness")


@given(worlds(), st.sampled_from(TELLING), st.booleans())
def test_the_failure_modes_of_any_case(world, lost, absent):
    """Drawing a world takes longer than looking at it, so that all is asked of each."""
    known, link = attributed(world)
    has_one_primary_mode_and_evidence_for_each_that_is_named(known, link)
    follows_from_the_needs_table(known, link)
    if lost in world[2]:
        passes_no_more_without(lost, absent, world, link)
