"""Marks are no content: they are removed before texts are compared, and their places are known."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.matching.marks import strip_marks

FACT = "Parking costs 9 euros"


@pytest.mark.parametrize(
    "marked",
    [
        f"{FACT} [1].",
        f"{FACT} [1, 2].",
        f"{FACT} [^3].",
        f"{FACT} [doc1].",
        f"{FACT} [prices.md].",
        f"{FACT} \u30104:0\u2020prices.pdf\u3011.",
        f"{FACT} [1\u2020L3-L5].",
        f"{FACT}\u00b9.",
        f"{FACT} {{1}}.",
        f"{FACT} \u30141\u3015.",
        f"{FACT} (p. 3).",
        f"{FACT} (Source: prices.html).",
        f"{FACT} (https://example.org/p).",
        f"{FACT} (Smith et al., 2020).",
        f"{FACT}<sup>1</sup>.",
        f"1. {FACT}.",
        f"- {FACT}.",
        f"Step 3: {FACT}.",
        f"\u2460 {FACT}.",
        f"**{FACT}**.",
        f"According to passage 2, {FACT}.",
        f"<think>They ask for prices.</think>{FACT}.",
        f"## Prices\n\n{FACT}.",
        f"{FACT}.\n\nSources:\n- prices.pdf (p. 4)\n- https://example.org",
    ],
)
def test_what_is_left_of_a_marked_sentence_is_the_sentence(marked):
    assert " ".join(strip_marks(marked).text.split()) == f"{FACT}."


@pytest.mark.parametrize(
    "text",
    ["one (1) year", "x = [1, 2]", "5 m\u00b2 of wall", "A. Smith won 3 to 1.", "__main__", "[1]"],
)
def test_content_stays(text):
    assert strip_marks(text).text == text


@given(st.text(alphabet="ab1 .[]()*#|\n-", max_size=60))
def test_what_is_left_stands_at_its_places_in_the_text(text):
    plain = strip_marks(text)
    for start in range(len(plain.text)):
        left, right = plain.original(start, start + 1)
        assert text[left:right] == plain.text[start]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["*", "\n", " ", "[", "|", "<think>", "doc ", "Sources:\n- a\n", "| a |\n", "# ", "_", "`"],
)
def test_adverse_texts_take_linear_time(piece):
    size = 100_000 // len(piece)
    begun = time.process_time()
    strip_marks(piece * size)
    assert time.process_time() - begun < 5  # 0.3 s at most where this was written
