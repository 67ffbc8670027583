"""Stale labels and what is proposed for them; what is taken is marked, and says the same."""

import pytest

from checked_sets import TEXTS, a_case, corpus, evidence_text, gold_of, passage_text
from misslink.goldset.checks import check_goldset
from misslink.goldset.checks.passage_search import PassageSearch
from misslink.goldset.checks.protocol import CheckInputs, accepted_proposals, apply_proposals
from misslink.types import Passage


def reworded(at, old, new):
    return [
        p.model_copy(update={"text": p.text.replace(old, new)}) if p.id == f"doc#{at}" else p
        for p in corpus()
    ]


def stale(corpus_now, cases, **more):
    return check_goldset(gold_of(cases), CheckInputs(corpus=PassageSearch(corpus_now), **more))


def test_evidence_that_the_earlier_corpus_held_is_stale_and_matched_again():
    now = reworded(1, "lived by its", "mostly lived by its")
    (found,) = stale(now, [a_case(1, "evidence")], before=TEXTS)
    (proposal,) = found.proposals
    assert (found.check, found.severity, proposal.passage) == ("stale", "error", "doc#1")
    assert "mostly lived by its herring nets" in proposal.after
    (case,) = apply_proposals([a_case(1, "evidence")], accepted_proposals([found], 0.8))
    assert case.tags == {"rematched": "evidence"}
    assert stale(now, [case], before=TEXTS) == ()


def test_evidence_that_the_earlier_gold_set_had_is_stale():
    now = reworded(1, "lived by its", "mostly lived by its")
    earlier = gold_of([a_case(1, "evidence")], "old.jsonl")
    (found,) = stale(now, [a_case(1, "evidence")], baseline=earlier)
    assert found.check == "stale"
    (found,) = stale(now, [a_case(1, "evidence")], baseline=gold_of([a_case(2, "evidence")]))
    assert found.check == "evidence"


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("A refund takes 7 days from the return.", "A refund takes 14 days from the return."),
        ("Parcels are opened before weighing.", "Parcels are not opened before weighing."),
        ("Parcels over two kilos go by ship.", "Parcels over five kilos go by ship."),
    ],
)  # fmt: skip
def test_what_has_another_number_or_negation_is_proposed_and_never_taken(was, now):
    case = a_case(1, evidence={was: 1}, relevant={})
    (found,) = stale([Passage(id="p", text=now, rank=1)], [case])
    (proposal,) = found.proposals
    assert proposal.meaning
    assert proposal.after == now
    assert accepted_proposals([found], 0.5) == []


def test_an_id_whose_text_has_another_id_now_is_proposed_by_its_text():
    now = [p.model_copy(update={"id": f"new-{p.id}"}) for p in corpus()]
    cases = [a_case(1, relevant={"doc#1": 2, "doc#3": 0}, relevant_any=[["doc#1"]]), a_case(2)]
    found = stale(now, cases, before=TEXTS)
    assert {(one.check, one.severity) for one in found} == {
        ("stale", "error"), ("unreachable", "note"),
    }  # fmt: skip
    first, second = apply_proposals(cases, accepted_proposals(found, 0.9))
    assert first.relevant == {"new-doc#1": 2, "doc#3": 0}
    assert first.relevant_any == (("new-doc#1",),)
    assert second.relevant == {"new-doc#2": 1}
    assert first.tags == {"rematched": "relevant"}


def test_a_score_under_the_line_is_not_taken():
    now = reworded(1, "lived by its", "mostly lived by its")
    found = stale(now, [a_case(1, "evidence")])
    (proposal,) = found[0].proposals
    assert accepted_proposals(found, proposal.score) == [proposal]
    assert accepted_proposals(found, proposal.score + 0.001) == []


def test_grades_tags_and_what_is_not_stale_stay():
    now = reworded(1, "lived by its", "mostly lived by its")
    second = "Every spring herring nets were counted"
    case = a_case(
        1, evidence={evidence_text(1): 2, second: 1}, tags={"owner": "x", "rematched": "relevant"}
    )
    (after,) = apply_proposals([case], accepted_proposals(stale(now, [case]), 0.8))
    assert sorted(after.evidence.values()) == [1, 2]
    assert after.evidence[second] == 1
    assert after.tags == {"owner": "x", "rematched": "relevant and evidence"}


def test_two_labels_that_become_one_keep_the_better_grade():
    now = [Passage(id="p", text=passage_text(1), rank=1)]
    wrong = [evidence_text(1).replace("old", word) for word in ("olde", "olden")]
    case = a_case(1, evidence={wrong[0]: 1, wrong[1]: 2}, relevant={})
    (after,) = apply_proposals([case], accepted_proposals(stale(now, [case]), 0.8))
    assert list(after.evidence.values()) == [2]


def test_nothing_is_proposed_that_is_not_half_alike():
    case = a_case(1, evidence={"Wholly different words about tides": 1})
    (found,) = stale(corpus(), [case])
    assert found.proposals == ()
