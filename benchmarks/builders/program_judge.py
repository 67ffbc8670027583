"""A judge that is a program, so that a benchmark measures misslink alone: `program_judge.py:Program`.

It looks each sentence of an answer up in the passages. It takes only what misslink has had for
long, so that benchmarks can run it with an earlier source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


class Program:
    """A judge that finds a sentence in a passage or does not; it answers at once."""

    name = "benchmark:program"
    identity: Mapping[str, Any] = {"judge": "benchmark:program"}

    async def ask(self, ask: Any) -> Any:
        """Examine an answer; call each claim unrelated to the passages that were missed."""
        from misslink.judge import Reply
        from misslink.types import Usage

        if ask.name == "examination":
            said = examined(**ask.inputs)
        elif ask.name == "claim_needs":
            claims = range(1, len(ask.inputs["claims"]) + 1)
            said = {"claims": [{"claim": n, "relation": "unrelated"} for n in claims]}
        else:
            return Reply.nothing(f"this judge does not know the question '{ask.name}'")
        raw = json.dumps(said)
        usage = Usage(prompt_tokens=ask.characters // 4, completion_tokens=len(raw) // 4)
        return Reply(ask.schema.model_validate(said), raw, usage)

    async def close(self) -> None:
        """Nothing is held."""


def examined(
    *, answer: str, passages: Sequence[str], references: Sequence[str], **_: object
) -> dict[str, Any]:
    """Examine the answer sentence by sentence."""
    claims: list[dict[str, Any]] = []
    helpful: set[int] = set()
    for sentence in f"{answer} ".split(". ")[:-1]:
        at = next((n for n, text in enumerate(passages, 1) if sentence in text), None)
        if at is not None:
            helpful.add(at)
        support, quote = ("supported", sentence) if at else ("unsupported", None)
        claims.append({"claim": f"{sentence}.", "support": support, "quote": quote})
    said: dict[str, Any] = {
        "claims": claims,
        "passages": [{"passage": n, "relevant": n in helpful} for n in range(1, 6)],
        "sufficient": "yes" if len(helpful) > 1 else "partly",
        "response": "answers",
        "helpful": 4 if all(claim["quote"] for claim in claims) else 2,
    }
    if references:
        said["claims"] = [{**claim, "reference": "silent"} for claim in claims]
        said["reference_claims"] = [
            {"reference": n, "text": text, "answer": "states" if text in answer else "omits"}
            for n, text in enumerate(references, 1)
        ]
    return said
