"""A made-up model that proposes instructions: it changes what the feedback names, or guesses.

It stands for the language model that DSPy and GEPA ask for better instructions. Feedback that names
no owner leaves it the same edits, without a hint which of them to try.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from ferry_desk import (
    ANSWER,
    EVERY_PART,
    LENGTHS,
    ONLY_PASSAGES,
    PASSAGE_COUNTS,
    RULES,
    SAY_SO,
    SEARCH,
    numbers,
)

# What a model understands from the first line of a feedback, as the edit to make.
_MEANT = {
    "Owner: retriever.": "passages",
    "Owner: prompt.": "characters",
    "Fabricated.": ONLY_PASSAGES,
    "Incomplete.": EVERY_PART,
    "Should have abstained.": SAY_SO,
}
_EDITS = ("passages", "characters", *RULES)


class MadeUpReader:
    """Proposes one edit at a time; takes the place of GEPA's and DSPy's reflection model."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def __call__(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """Return all instructions, one of them changed."""
        read = str(reflective_dataset)
        meant = [edit for words, edit in _MEANT.items() if words in read]
        return candidate | self._edited(candidate, self.draw.choice(meant or _EDITS))

    def _edited(self, instructions: dict[str, str], edit: str) -> dict[str, str]:
        count, length = numbers(instructions["search"])
        if edit == "passages":
            count = self.draw.choice([c for c in PASSAGE_COUNTS if c != count])
        elif edit == "characters":
            length = self.draw.choice([c for c in LENGTHS if c != length])
        else:
            rules = {rule for rule in RULES if rule in instructions["answer"]} ^ {edit}
            answer = " ".join([ANSWER, *(rule for rule in RULES if rule in rules)])
            return {"answer": answer}
        return {"search": SEARCH.format(count, length)}
