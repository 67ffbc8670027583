"""A judge that knows what every text of a world asserts, and one that errs at set rates."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from faults.facts import World
from faults.kinds import Staged
from misslink.judge.examination import (
    Examination,
    ExaminationWithReference,
    ExaminedClaimWithReference,
    ExaminedPassage,
    ExaminedReferenceClaim,
)
from misslink.judge.protocol import Ask, Reply
from misslink.linking.claim_support import ClaimNeed, ClaimNeeds


class OracleJudge:
    """Judges by the facts; right in everything, or wrong about single claims at given rates.

    Parameters
    ----------
    world : World
    staged : mapping of str to Staged
        By question.
    sensitivity, specificity : float
        P(a supported claim is called supported), P(another is not), each claim drawn by itself.
    """

    def __init__(
        self,
        world: World,
        staged: Mapping[str, Staged],
        *,
        sensitivity: float = 1.0,
        specificity: float = 1.0,
    ) -> None:
        self.world, self.staged = world, staged
        self.sensitivity, self.specificity = sensitivity, specificity
        exact = sensitivity == specificity == 1.0
        self.name = "oracle" if exact else "noisy oracle"
        self.identity: Mapping[str, Any] = {
            "judge": "oracle",
            "sensitivity": sensitivity,
            "specificity": specificity,
        }

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination or a question about claims and passages."""
        if ask.name == "claim_needs":
            return self._claim_needs(ask.inputs["claims"], ask.inputs["passages"])
        return self._examine(ask.inputs)

    async def close(self) -> None:
        """Nothing is held open."""

    def _examine(self, inputs: Mapping[str, Any]) -> Reply:
        staged = self.staged[inputs["question"]]
        passages, references = inputs["passages"], inputs["references"]
        there = self.world.says(passages)
        wanted = {fact.key for fact in staged.asked}
        found = sum(bool(there.get(fact.key, set()) & {fact.value}) for fact in staged.asked)
        common: dict[str, Any] = {
            "claims": tuple(
                self._examine_claim(text, passages, references) for text in staged.claims
            ),
            "passages": tuple(
                ExaminedPassage(
                    passage=number,
                    relevant=any(fact.key in wanted for fact in self.world.asserted.get(text, ())),
                )
                for number, text in enumerate(passages, start=1)
            ),
            "sufficient": "yes" if found == len(staged.asked) else "partly" if found else "no",
            "response": staged.response,
        }
        if not references:
            return Reply(Examination(**common), raw="")
        stated = self.world.says(staged.claims)
        if staged.states_reference:
            stated = self.world.says(staged.reference_claims)
        parts = []
        for text in staged.reference_claims:
            (fact,) = self.world.asserted[text]
            values = stated.get(fact.key, set())
            answer = "states" if fact.value in values else "contradicts" if values else "omits"
            parts.append(ExaminedReferenceClaim(reference=1, text=text, answer=answer))
        return Reply(ExaminationWithReference(**common, reference_claims=tuple(parts)), raw="")

    def _examine_claim(
        self, text: str, passages: Sequence[str], references: Sequence[str]
    ) -> ExaminedClaimWithReference:
        staged_facts = self.world.asserted[text]
        support, quote = "unsupported", None
        for passage in passages:
            relation = self._relation(text, passage)
            if relation == "would_support":
                support, quote = "supported", passage
                break
            if relation == "would_contradict":
                support, quote = "contradicted", passage
        support, quote = self._err(text, support, quote, passages)
        (fact,) = staged_facts
        values = {
            known.value
            for reference in references
            for known in self.world.asserted.get(reference, ())
            if known.key == fact.key
        }
        compared = "agrees" if fact.value in values else "contradicts" if values else "silent"
        return ExaminedClaimWithReference(
            claim=text, support=support, quote=quote, reference=compared
        )

    def _err(
        self, text: str, support: str, quote: str | None, passages: Sequence[str]
    ) -> tuple[str, str | None]:
        """Take a supported claim for an unsupported one, or the other way round, by chance."""
        drawn = random.Random(f"{self.name}-{text}-{len(passages)}").random()  # noqa: S311
        if support == "supported" and drawn > self.sensitivity:
            return "unsupported", None
        if support != "supported" and drawn > self.specificity and passages:
            return "supported", passages[0]
        return support, quote

    def _relation(self, claim: str, passage: str) -> str:
        there = self.world.says([passage])
        for fact in self.world.asserted.get(claim, ()):
            values = there.get(fact.key)
            if values:
                return "would_support" if fact.value in values else "would_contradict"
        return "unrelated"

    def _claim_needs(self, claims: Sequence[str], passages: Sequence[str]) -> Reply:
        needs = []
        for number, claim in enumerate(claims, start=1):
            relations = [self._relation(claim, passage) for passage in passages]
            best = next(
                (r for r in ("would_support", "would_contradict") if r in relations), "unrelated"
            )
            place = relations.index(best) if best != "unrelated" else None
            needs.append(
                ClaimNeed(
                    claim=number,
                    relation=best,  # type: ignore[arg-type]
                    passage=None if place is None else place + 1,
                    quote=None if place is None else passages[place],
                )
            )
        return Reply(ClaimNeeds(claims=tuple(needs)), raw="")
