from __future__ import annotations

import itertools

import pytest

from misslink.judge.middleware.long_context import (
    PassagePiece,
    estimate_tokens,
    fill_budget,
    split_piece,
)


def test_a_cut_passage_loses_nothing_and_shares_a_sentence():
    text = " ".join(f"Sentence number {n} speaks of things." for n in range(60))
    pieces = split_piece(PassagePiece(4, text), 150)
    assert len(pieces) > 2
    assert all(piece.passage == 4 and piece.size <= 150 for piece in pieces)
    assert pieces[0].text[:10] == text[:10]
    assert pieces[-1].text[-10:] == text[-10:]
    for before, after in itertools.pairwise(pieces):
        shared = after.text[: after.text.index(".") + 1]
        assert before.text.endswith(shared)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{n:05d}" for n in range(800)),
        "".join(chr(0x4E00 + n) for n in range(2000)),
        " ".join(f"word{n}" for n in range(900)),
        " ".join(f"a{n}." for n in range(500)),
    ],
    ids=["digits", "han", "words", "short sentences"],
)
def test_text_without_sentences_is_cut_too(text):
    pieces = split_piece(PassagePiece(1, text), 200)
    assert all(piece.size <= 200 for piece in pieces)
    at = 0
    for piece in pieces:  # each begins where the last one ended, or before
        start = text.index(piece.text)
        assert not text[at:start].strip()
        at = max(at, start + len(piece.text))
    assert not text[at:].strip()


def test_a_part_is_filled_in_order_and_never_empty():
    pieces = [PassagePiece(1, "one"), PassagePiece(2, "two " * 400), PassagePiece(3, "three")]
    taken, rest = fill_budget(pieces, 100)
    assert [piece.passage for piece in taken] == [1]
    assert {piece.passage for piece in rest} == {2, 3}
    assert fill_budget([], 100) == ([], [])
    assert fill_budget([PassagePiece(1, "")], 30)[0] == [PassagePiece(1, "")]


def test_tokens_are_estimated_from_above():
    assert estimate_tokens("") == 0
    assert estimate_tokens("The night ferry leaves at eleven.") >= 7
    assert estimate_tokens("夜のフェリー") >= 6
