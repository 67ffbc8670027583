"""What a sentence asserts of a claim that it holds, and what its surroundings take back."""

import sys
from pathlib import Path

import pytest

from misslink.matching.frames import frame_kind, sentence_kind

CLAIM = "The ferry leaves at nine."


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        (
            "Nothing is further from the truth than the idea that the ferry leaves at nine.",
            "denied",
        ),
        ("The assertion that the ferry leaves at nine does not hold up.", "denied"),
        ("The ferry leaves at nine (incorrect)", "denied"),
        ("| The ferry leaves at nine | false |", "denied"),
        ("A taxi driver assured us that the ferry leaves at nine.", "hearsay"),
        ("In the children's book, the ferry leaves at nine.", "hearsay"),
        ("We were often asked if the ferry leaves at nine.", "example"),
        ("If the ferry leaves at nine, I will eat my hat.", "example"),
        ("Many guests wish that the ferry leaves at nine.", "example"),
        ("Suppose the ferry leaves at nine.", "example"),
        ('Translate into French: "The ferry leaves at nine."', "example"),
        ('The vandals painted "The ferry leaves at nine" on it.', "example"),
        ("<!-- The ferry leaves at nine. -->", "example"),
    ],
)
def test_what_frames_a_claim_without_asserting_it(sentence, kind):
    assert frame_kind(sentence, 0, len(sentence), CLAIM) == kind


@pytest.mark.parametrize(
    "sentence",
    [
        "The ferry leaves at nine.",
        "The manual says that the ferry leaves at nine.",
        "Nobody denies that the ferry leaves at nine.",
        "Contrary to popular belief, the ferry leaves at nine.",
        "If the weather is fine, the ferry leaves at nine.",
        "Correction: The ferry leaves at nine.",
        '"The ferry leaves at nine," the director said.',
        # Parts of a claim in different places are no embedded claim.
        "If a ferry is late, the other one leaves at nine.",
    ],
)
def test_what_asserts_a_claim(sentence):
    assert frame_kind(sentence, 0, len(sentence), CLAIM) is None


def test_a_claim_that_supposes_is_asserted_by_what_supposes():
    sentence = "If the ferry leaves at nine, the bus waits."
    assert frame_kind(sentence, 0, len(sentence), sentence) is None
    assert frame_kind(sentence, 0, len(sentence), "The ferry leaves at nine.") == "example"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("The ferry leaves at nine. This is wrong. The pier is old.", ["denied", "denied", None]),
        ("The ferry leaves at nine. It is not a mistake.", [None, None]),
        ("Myths:\n- The ferry leaves at nine.\n- It is blue.\n\nThe pier is old.",
         [None, "denied", "denied", None]),
        ("House rules\n- The ferry leaves at nine.", [None, None]),
        ("Once upon a time there was a pier. The ferry leaves at nine.", [None, "example"]),
    ],
)  # fmt: skip
def test_sentences_are_read_with_their_surroundings(text, kinds):
    assert [sentence_kind(text, number) for number in range(len(kinds))] == kinds


ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.source
@pytest.mark.parametrize(
    ("side", "kept_back", "most"),
    [
        ("hostile", False, 0.02),
        ("hostile", True, 0.05),
        ("honest", False, 0.01),
        ("honest", True, 0.05),
    ],
)
def test_the_heuristic_judge_reads_hostile_and_honest_texts(side, kept_back, most, monkeypatch):
    kept_modules = set(sys.modules)
    from robustness import count_statements

    count = count_statements(side, kept_back=kept_back)
    assert count.attacks > 380
    assert count.silent <= most * count.attacks
    for name in set(sys.modules) - kept_modules:
        if name in {"robustness", "test_killed"}:
            del sys.modules[name]
