"""A judge around an entailment or hallucination model of your own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from misslink.errors import InputError
from misslink.judge.backends.heuristic.judge import HeuristicJudge
from misslink.judge.protocol import Ask, Examination, ExaminedClaim, JudgeInfo, Reply
from misslink.text.normalization import sentence_spans

Scores = Callable[[list[tuple[str, str]]], Sequence[float]]


class EntailmentJudge:
    """A judge that takes support from a model which scores pairs of a text and a claim.

    The answer is split into sentences, each compared with each passage. The best passage decides,
    and its best sentence is the quote. Relevance and references are judged by words, as the
    heuristic judge does; so is what contradicts a claim among those that are not supported.

    Parameters
    ----------
    name : str
    score : callable
        Takes ``(text, claim)`` pairs and returns P(the text supports the claim) for each, in [0, 1].
        It runs in a thread, one call at a time.
    threshold : float
        P(supported) from which a claim is called supported. Choose it on labels of your own.
    identity : mapping or None
        What the scores depend on, such as the model's version; JSON values.
    """

    def __init__(
        self,
        name: str,
        score: Scores,
        *,
        threshold: float = 0.5,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self._words = HeuristicJudge()
        self._score = score
        self.name = name
        self.threshold = threshold
        self.identity: Mapping[str, Any] = {
            "judge": name,
            "threshold": threshold,
            "rules": self._words.identity["rules"],
            **(identity or {}),
        }
        self.info = JudgeInfo(
            note=f"{name} judges support alone; relevance and references are matched by words",
            max_concurrency=1,
        )

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination; any other question gets a reply without an answer.

        Raises
        ------
        InputError
            The scores are not one number in [0, 1] for each pair.
        """
        reply = await self._words.ask(ask)
        examination, passages = reply.parsed, ask.inputs.get("passages", ())
        if not isinstance(examination, Examination):
            return Reply.nothing(f"the judge {self.name} judges answers, not '{ask.name}'")
        if not (examination.claims and passages):
            return reply
        texts = [claim.claim for claim in examination.claims]
        chances = await self._chances([(passage, text) for text in texts for passage in passages])
        rows = [chances[i : i + len(passages)] for i in range(0, len(chances), len(passages))]
        claims: list[ExaminedClaim] = []
        probabilities = dict(reply.probabilities)
        for number, (claim, row) in enumerate(zip(examination.claims, rows, strict=True)):
            chance = max(row)
            probabilities[f"claims.{number}.support"] = {
                "supported": chance,
                "unsupported": 1 - chance,
            }
            decided: dict[str, Any] = {}
            if chance >= self.threshold:
                quote = await self._best_sentence(passages[row.index(chance)], claim.claim)
                decided = {"support": "supported", "quote": quote}
            elif claim.support == "supported":
                decided = {"support": "unsupported", "quote": None}
            claims.append(claim.model_copy(update=decided))
        parsed = examination.model_copy(update={"claims": tuple(claims)})
        return replace(reply, parsed=parsed, probabilities=probabilities)

    async def close(self) -> None:
        """Nothing is held open."""

    async def _best_sentence(self, passage: str, claim: str) -> str:
        sentences = [passage[start:end] for start, end in sentence_spans(passage)] or [passage]
        chances = await self._chances([(sentence, claim) for sentence in sentences])
        return sentences[chances.index(max(chances))]

    async def _chances(self, pairs: list[tuple[str, str]]) -> list[float]:
        scores = [float(score) for score in await asyncio.to_thread(self._score, pairs)]
        if len(scores) != len(pairs) or not all(0 <= score <= 1 for score in scores):
            raise InputError(
                f"the judge {self.name}: score returned {len(scores)} numbers for {len(pairs)} pairs,"
                f" from {min(scores, default=0):g} to {max(scores, default=0):g}; it must return"
                " P(the text supports the claim), from 0 to 1, for each pair"
            )
        return scores
