"""Marked texts: nothing is lost, whatever overlaps."""

from hypothesis import given
from hypothesis import strategies as st

from misslink.report.claims import TextPiece, TextSpan, locate_quote, split_text


def test_a_claim_cuts_its_text_in_three():
    assert split_text("ab cd ef", [TextSpan(3, 5, "supported", 1)]) == (
        TextPiece(0, 3),
        TextPiece(3, 5, "supported", (1,), (1,)),
        TextPiece(5, 8),
    )


def test_where_claims_overlap_the_graver_one_gives_the_colour_and_both_keep_their_number():
    spans = [TextSpan(0, 6, "supported", 1), TextSpan(3, 8, "contradicted", 2)]

    first, both, last = split_text("abcdefgh", spans)

    assert (first.kind, both.kind, last.kind) == ("supported", "contradicted", "contradicted")
    assert (first.claims, both.claims, last.claims) == ((1,), (2, 1), (2,))
    assert (first.ends, both.ends, last.ends) == ((), (1,), (2,))


def test_a_span_that_does_not_fit_the_text_is_left_out():
    assert split_text("abc", [TextSpan(1, 9, "supported", 1), TextSpan(2, 2, "quote", 2)]) == ()


def test_a_text_without_marks_has_no_pieces():
    assert split_text("", [TextSpan(0, 1, "quote", 1)]) == ()
    assert split_text("abc", []) == ()


_SPANS = st.lists(
    st.builds(
        TextSpan,
        st.integers(-2, 12),
        st.integers(-2, 12),
        st.sampled_from(("supported", "unsupported", "contradicted", "quote", "needed")),
        st.integers(1, 9),
    ),
    max_size=6,
)


@given(st.text(max_size=10), _SPANS)
def test_the_pieces_cover_the_text_and_every_fitting_span_in_full(text, spans):
    found = split_text(text, spans)
    fitting = [s for s in spans if 0 <= s.start < s.end <= len(text)]

    if not fitting:
        assert found == ()
        return
    assert "".join(text[piece.start : piece.end] for piece in found) == text
    for span in fitting:
        covered = [p for p in found if span.number in p.claims]
        assert {at for p in covered for at in range(p.start, p.end)} >= set(
            range(span.start, span.end)
        )
    assert sorted(n for p in found for n in p.ends) == sorted(s.number for s in fitting)


def test_a_quote_is_placed_by_its_offsets_else_by_looking_it_up_else_not_at_all():
    assert locate_quote("one two", 4, 7, "two") == (4, 7)
    assert locate_quote("one  “two”", None, None, 'One "TWO"') == (0, 10)
    assert locate_quote("one two", 90, 99, "two") == (4, 7)
    assert locate_quote("one two", None, None, "three") is None
    assert locate_quote("one two", None, None, "") is None
