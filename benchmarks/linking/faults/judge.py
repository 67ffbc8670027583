"""The exact judge: it knows what was planted, so what it says of an answer is true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from faults.planting import Plant
from misslink.judge.examination import (
    Examination,
    ExaminationWithReference,
    ExaminedClaimWithReference,
    ExaminedPassage,
    ExaminedReferenceClaim,
)
from misslink.judge.protocol import Ask, Reply

__all__ = ["ExactJudge"]


class ExactJudge:
    """Examines every answer by what was planted for its question."""

    name = "exact"
    identity: ClassVar[Mapping[str, Any]] = {"judge": "exact"}

    def __init__(self, plants: Mapping[str, Plant]) -> None:
        self._plants = plants

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination; of anything else no truth was planted."""
        if not {"question", "passages", "answer", "references"} <= set(ask.inputs):
            return Reply.nothing(f"the exact judge knows the examination only, not '{ask.name}'")
        plant = self._plants[ask.inputs["question"]]
        if ask.inputs["answer"] != plant.answer:
            return Reply.nothing("the app did not say what was planted")
        passages = ask.inputs["passages"]
        there = plant.helps.intersection(passages)
        common: dict[str, Any] = {
            "claims": tuple(
                ExaminedClaimWithReference(
                    claim=claim.text,
                    support=claim.support,
                    quote=claim.quote,
                    reference=claim.reference,
                )
                for claim in plant.said
            ),
            "passages": tuple(
                ExaminedPassage(passage=number, relevant=text in there)
                for number, text in enumerate(passages, start=1)
            ),
            "sufficient": "yes" if there == plant.helps else "partly" if there else "no",
            "response": plant.response,
        }
        references = ask.inputs["references"]
        if not references:
            return Reply(Examination(**common), raw="")
        stated = tuple(
            ExaminedReferenceClaim(reference=number, text=text, answer=plant.states)
            for number, text in enumerate(references, start=1)
        )
        return Reply(ExaminationWithReference(**common, reference_claims=stated), raw="")

    async def close(self) -> None:
        """Nothing is held open."""
