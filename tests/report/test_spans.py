"""Marked texts: nothing is lost, whatever overlaps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from misslink.report.spans import Piece, Span, pieces, place


def test_a_claim_cuts_its_text_in_three():
    assert pieces("ab cd ef", [Span(3, 5, "supported", "c1", "q1", 1)]) == (
        Piece("ab "),
        Piece("cd", "supported", "q1", ("c1",), (1,)),
        Piece(" ef"),
    )


def test_where_claims_overlap_the_graver_one_gives_the_colour_and_both_keep_their_anchor():
    spans = [Span(0, 6, "supported", "c1", "q1", 1), Span(3, 8, "contradicted", "c2", "m2", 2)]

    first, both, last = pieces("abcdefgh", spans)

    assert (first.kind, both.kind, last.kind) == ("supported", "contradicted", "contradicted")
    assert (first.anchors, both.anchors, last.anchors) == (("c1",), ("c2",), ())
    assert (first.ends, both.ends, last.ends) == ((), (1,), (2,))


def test_a_span_that_does_not_fit_the_text_is_left_out():
    assert pieces("abc", [Span(1, 9, "supported", "c1"), Span(2, 2, "quote", "c2")]) == (
        Piece("abc"),
    )


def test_an_empty_text_has_no_pieces():
    assert pieces("", [Span(0, 1, "quote", "q")]) == ()


_SPANS = st.lists(
    st.builds(
        Span,
        st.integers(-2, 12),
        st.integers(-2, 12),
        st.sampled_from(("supported", "unsupported", "contradicted", "quote", "needed")),
        st.uuids().map(str),
    ),
    max_size=6,
)


@given(st.text(max_size=10), _SPANS)
def test_the_pieces_are_the_text_and_every_fitting_anchor_comes_once(text, spans):
    found = pieces(text, spans)

    assert "".join(piece.text for piece in found) == text
    fitting = [s.anchor for s in spans if 0 <= s.start < s.end <= len(text)]
    assert sorted(a for piece in found for a in piece.anchors) == sorted(fitting)


def test_a_quote_is_placed_by_its_offsets_else_by_looking_it_up_else_not_at_all():
    assert place("one two", 4, 7, "two") == (4, 7)
    assert place("one  “two”", None, None, 'One "TWO"') == (0, 10)
    assert place("one two", 90, 99, "two") == (4, 7)
    assert place("one two", None, None, "three") is None
    assert place("one two", None, None, "") is None
