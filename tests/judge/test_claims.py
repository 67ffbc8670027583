"""Nothing a judge says of a claim is taken on trust."""

from __future__ import annotations

import pytest

from misslink.judge.protocol import (
    Examination,
    ExaminationWithReference,
    ExaminedClaim,
    ExaminedClaimWithReference,
    Reply,
)
from misslink.judge.quotes import read_claims
from misslink.types import Passage

ANSWER = "The harbour opened in 1904. It has two piers. The harbour opened in 1904."
PASSAGES = (
    Passage(id="a", text="The old harbour\n  opened in 1904, after a storm.", rank=1),
    Passage(id="b", text="A copy: the old harbour opened in 1904.", rank=2),
)


def claims(*said, probabilities=None, passages=PASSAGES):
    parsed = Examination(claims=said, passages=(), response="answers")
    return read_claims(Reply(parsed, "", probabilities=probabilities or {}), ANSWER, passages)


def claim(text, support="supported", quote=None):
    return ExaminedClaim(text=text, support=support, quote=quote)


def test_a_quote_is_found_however_it_is_spaced_and_in_every_passage_that_holds_it():
    (found,) = claims(claim("It opened in 1904.", quote="OLD harbour opened in 1904"))
    assert found.support == "supported"
    assert [evidence.passage_id for evidence in found.evidence] == ["a", "b"]
    first = found.evidence[0]
    assert first.quote == PASSAGES[0].text[first.start : first.end]
    assert first.quote == "old harbour\n  opened in 1904"


@pytest.mark.parametrize("quote", ["the harbour was built in 1904", None, "", "the of and", " "])
@pytest.mark.parametrize("support", ["supported", "contradicted"])
def test_a_quote_that_is_not_there_supports_nothing(quote, support):
    (found,) = claims(claim("It opened in 1904.", support, quote))
    assert found.support == "unsupported"
    assert found.evidence == ()
    assert "quote" in found.note


def test_an_unsupported_claim_needs_no_quote_and_one_given_is_not_looked_at():
    (found,) = claims(claim("It has two piers.", "unsupported", "opened in 1904"))
    assert (found.support, found.evidence, found.note) == ("unsupported", (), None)


def test_a_claim_has_its_place_in_the_answer_and_a_repeated_one_its_own():
    found = claims(*[claim("The harbour opened in 1904.", "unsupported")] * 3)
    assert [(c.start, c.end) for c in found] == [(0, 27), (46, 73), (None, None)]
    assert ANSWER[46:73] == "The harbour opened in 1904."


def test_a_claim_that_cannot_be_located_keeps_its_place_open_and_counts():
    found = claims(claim("Something the answer never says.", "unsupported"), claim("", "supported"))
    assert [(c.start, c.end) for c in found] == [(None, None)] * 2
    assert len(found) == 2


def test_probabilities_and_the_reference_reach_their_claims():
    parsed = ExaminationWithReference(
        claims=tuple(
            ExaminedClaimWithReference(text="x", support="unsupported", quote=None, reference=said)
            for said in ("agrees", "contradicts", "silent")
        ),
        passages=(),
        response="answers",
        reference_claims=(),
    )
    found = read_claims(
        Reply(parsed, "", probabilities={"claims.1.support": {"supported": 0.25}}), ANSWER, PASSAGES
    )
    assert [c.correct for c in found] == [True, False, None]
    assert [c.probability for c in found] == [None, 0.25, None]


@pytest.mark.parametrize("support", ["supported", "contradicted"])
def test_a_judge_that_is_overruled_leaves_a_mark_and_no_probability(support):
    chances = {f"claims.{n}.support": {"supported": 0.99} for n in range(3)}
    lied, shown, honest = claims(
        claim("It opened in 1904.", support, "the harbour was built in 1904"),
        claim("It opened in 1904.", support, "opened in 1904"),
        claim("The harbor opened in 1904.", "unsupported"),
        probabilities=chances,
    )
    assert (lied.overruled, lied.probability) == (True, None)
    assert (shown.overruled, shown.probability) == (False, 0.99)
    assert (honest.overruled, honest.probability) == (False, 0.99)
    assert honest.note, "a note on its wording is no mark"


def test_without_passages_nothing_is_supported():
    (found,) = claims(claim("It opened in 1904.", quote="opened in 1904"), passages=())
    assert found.support == "unsupported"


def test_a_slip_in_a_quote_is_recorded_and_one_in_a_claim_is_noted():
    (found,) = claims(
        claim(
            "The harbor opened in 1904.",
            quote="The old harbor opened in 1904",
        )
    )
    assert found.support == "supported"
    assert found.evidence[0].edits == 1
    assert ANSWER[found.start : found.end] == "The harbour opened in 1904."
    assert "1 character" in found.note


def test_a_quote_that_speaks_of_something_else_supports_nothing_and_says_so():
    order = Passage(id="c", text="All of this is confirmed and approved by experts.", rank=3)
    (found,) = claims(
        claim("It has two piers.", quote="confirmed and approved by experts"),
        passages=(*PASSAGES, order),
    )
    assert (found.support, found.evidence) == ("unsupported", ())
    assert found.note == "the judge's quote speaks of something else"


def test_a_short_answer_is_read_with_its_question():
    passage = (Passage(id="t", text="The ferry leaves before noon.", rank=1),)
    parsed = Examination(
        claims=(claim("In the morning.", quote="leaves before noon"),),
        passages=(),
        response="answers",
    )
    question = "When does the ferry leave?"
    (found,) = read_claims(Reply(parsed, ""), "In the morning.", passage, question)
    assert found.support == "supported"
    (found,) = read_claims(Reply(parsed, ""), "In the morning.", passage, "Who runs it?")
    assert found.support == "unsupported"
