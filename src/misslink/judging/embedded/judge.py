"""The embedded judge: no key, no server, no network, and the same answer every time.

A heuristic. It holds each sentence of an answer against the passages by shared words, word order,
numbers and names (`lexical`), and in `embedded:minilm` by sentence similarity too; a logistic fit
on human labels turns that into P(supported). It understands nothing: `figures` says how often it
is right.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from misslink.errors import InputError
from misslink.judging.embedded.abstention import claim_spans, declines
from misslink.judging.embedded.agreement import agree_at_start, carries
from misslink.judging.embedded.fitted import Fit, figures, load_fit
from misslink.judging.embedded.lexical import Context, Match
from misslink.judging.embedded.minilm import SentenceSimilarity
from misslink.judging.embedded.relevance import RELEVANT, passage_relevance, response_of
from misslink.judging.examination import (
    ClaimSaid,
    ClaimSaidWithReference,
    Examination,
    ExaminationWithReference,
    PassageSaid,
    ReferenceSaid,
)
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.registry import judges
from misslink.text import sentences
from misslink.types import Support

__all__ = ["EmbeddedJudge", "figures", "hold", "open_embedded", "relations", "rules_version"]

_CITATION = re.compile(r"\s*\[\^?\d{1,3}(?:\s*[-,;\u2013]\s*\d{1,3})*\]")  # "[2, 3]" is no number

# The modules that decide.
RULES = (
    *("abstention", "agreement", "conflict", "judge", "fitted", "lexical", "minilm"),
    *("numerals", "polarity", "relevance"),
)
Held = tuple[Match, float]  # a claim's match and its P(supported)


class EmbeddedJudge:
    """Answers the examination from its structured inputs.

    Parameters
    ----------
    fit : Fit
    similarity : SentenceSimilarity or None
        What the fit's features beyond the lexical ones need.
    """

    def __init__(self, fit: Fit, similarity: SentenceSimilarity | None = None) -> None:
        self.name = fit.name
        self.threshold = fit.cut
        self.note: str = figures()[fit.name]["note"]
        self.identity: Mapping[str, Any] = {
            "judge": fit.name,
            "coefficients": fit.version,
            "rules": rules_version(),
        }
        self._fit = fit
        self._similarity = similarity

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination; any other question gets a reply without an answer."""
        if {"question", "statements", "cited"} <= set(ask.inputs):
            return self._citations(ask)
        if not {"question", "passages", "answer"} <= set(ask.inputs):
            problem = f"the judge {self.name} knows the examination only, not '{ask.name}'"
            return Reply(parsed=None, raw="", problem=problem)
        if self._similarity is None:
            return self._examine(**ask.inputs)
        return await asyncio.to_thread(self._examine, **ask.inputs)

    async def close(self) -> None:
        """Nothing is held open."""

    def _citations(self, ask: Ask) -> Reply:
        """Hold every statement against each passage it cites."""
        said = []
        for number, statement in enumerate(ask.inputs["statements"], start=1):
            for passage in statement["passages"]:
                context = Context((ask.inputs["cited"][passage],), ask.inputs["question"])
                ((match, probability),) = self._hold([statement["text"]], context)
                supported = self._support(match, probability) == "supported"
                quote = match.best.text if match.best and supported else None
                pair = {"statement": number, "passage": passage, "quote": quote}
                said.append({**pair, "supported": "yes" if supported else "no"})
        return Reply(ask.schema.model_validate({"citations": said}), raw="")

    def _examine(
        self,
        question: str,
        passages: Sequence[str],
        answer: str,
        references: Sequence[str] = (),
    ) -> Reply:
        spans = [] if declines(answer) else claim_spans(answer)
        texts = [answer[start:end] for start, end in spans]
        held = self._hold(texts, Context(passages, question))
        said = [self._said(text, *each) for text, each in zip(texts, held, strict=True)]
        relevance = [passage_relevance(question, passage) for passage in passages]
        quotes = [claim.quote for claim in said if claim.quote and claim.support == "supported"]
        response, response_probability = response_of(question, answer, quotes)
        parsed = Examination(
            claims=tuple(said),
            passages=tuple(
                PassageSaid(passage=number, relevant=probability >= RELEVANT)
                for number, probability in enumerate(relevance, start=1)
            ),
            response=response,
        )
        return Reply(
            parsed=self._with_references(parsed, question, answer, references)
            if references
            else parsed,
            raw="",
            probabilities={
                **{
                    f"claims.{i}.support": {"supported": p, "unsupported": 1 - p}
                    for i, (_, p) in enumerate(held)
                },
                **{
                    f"passages.{i}.relevant": {"true": p, "false": 1 - p}
                    for i, p in enumerate(relevance)
                },
                "response": {"answers": response_probability, "evades": 1 - response_probability},
            },
        )

    def _with_references(
        self, said: Examination, question: str, answer: str, references: Sequence[str]
    ) -> ExaminationWithReference:
        """Hold the claims against the references, and the references' claims against the answer."""
        agreement: dict[Support, Literal["agrees", "contradicts", "silent"]] = {
            "supported": "agrees",
            "contradicted": "contradicts",
            "unsupported": "silent",
        }
        statement: dict[Support, Literal["states", "contradicts", "omits"]] = {
            "supported": "states",
            "contradicted": "contradicts",
            "unsupported": "omits",
        }
        by_references = self._agree(
            [claim.text for claim in said.claims], references, question, of_reference=False
        )
        if by_references:
            first = agree_at_start(answer, references)
            by_references[0] = first or by_references[0]
        wanted: list[tuple[int, str, Support]] = []
        for number, reference in enumerate(references, start=1):
            # A reference of one word, "None." say, is an answer all the same.
            spans = claim_spans(reference) or sentences(reference)
            texts = [reference[start:end] for start, end in spans]
            found = self._agree(texts, (answer,), question, of_reference=True)
            if found:
                found[0] = agree_at_start(reference, (answer,)) or found[0]
            wanted += ((number, text, each) for text, each in zip(texts, found, strict=True))
        return ExaminationWithReference(
            claims=tuple(
                ClaimSaidWithReference(**dict(claim), reference=agreement[each])
                for claim, each in zip(said.claims, by_references, strict=True)
            ),
            passages=said.passages,
            response=said.response,
            reference_claims=tuple(
                ReferenceSaid(reference=number, text=text, answer=statement[each])
                for number, text, each in wanted
            ),
        )

    def _agree(
        self, claims: Sequence[str], texts: Sequence[str], question: str, *, of_reference: bool
    ) -> list[Support]:
        """Hold claims against what should say the same; a short reference must be met in full."""
        found: list[Support] = []
        for claim, held in zip(claims, self._hold(claims, Context(texts, question)), strict=True):
            support, best = self._support(*held), held[0].best
            if of_reference:
                met = carries(texts, claim, question)
            else:
                met = best is None or carries((claim,), best.text, question)
            found.append("unsupported" if support == "supported" and not met else support)
        return found

    def _hold(self, claims: Sequence[str], context: Context) -> list[Held]:
        return hold(claims, context, self._fit, self._similarity)

    def _support(self, match: Match, probability: float) -> Support:
        if match.conflict is not None:
            return "contradicted"
        return "supported" if probability >= self._fit.cut else "unsupported"

    def _said(self, text: str, match: Match, probability: float) -> ClaimSaid:
        support = self._support(match, probability)
        rests_on = match.best if support != "unsupported" else None
        return ClaimSaid(text=text, support=support, quote=rests_on and rests_on.text)


def hold(
    claims: Sequence[str],
    context: Context,
    fit: Fit,
    similarity: SentenceSimilarity | None = None,
) -> list[Held]:
    """Hold claims against passages: for each its match and P(supported).

    Parameters
    ----------
    claims : sequence of str
        Numbers in brackets, as citations are written, are not held.
    context : Context
    fit : Fit
    similarity : SentenceSimilarity or None
        Needed by a fit that has the feature ``distance``, 1 minus the nearest sentence's cosine.
    """
    bare = [_CITATION.sub("", claim) for claim in claims]
    matches = [context.match(claim) for claim in bare]
    more: list[tuple[float, ...]] = [()] * len(bare)
    if similarity is not None:
        nearest = similarity.nearest(bare, [sentence.text for sentence in context.sentences])
        more = [(1 - cosine,) for cosine in nearest]
    return [(m, fit.probability(m, extra)) for m, extra in zip(matches, more, strict=True)]


def relations(
    claims: Sequence[str], context: Context
) -> list[tuple[Literal["would_support", "would_contradict", "unrelated"], str | None, float]]:
    """What passages would have said of claims, by the lexical judge; a heuristic.

    Parameters
    ----------
    claims : sequence of str
    context : Context
        Of the passages.

    Returns
    -------
    list of (relation, quote, probability)
        For each claim 'would_support', 'would_contradict' or 'unrelated' (also where either text
        is empty); the sentence that says so, verbatim, None where they are unrelated; and
        P(the passages support the claim).
    """
    fit = load_fit("embedded")
    return [
        (*_relation(match, probability, fit.cut), probability)
        for match, probability in hold(claims, context, fit)
    ]


def _relation(
    match: Match, probability: float, cut: float
) -> tuple[Literal["would_support", "would_contradict", "unrelated"], str | None]:
    if match.best is None or (match.conflict is None and probability < cut):
        return "unrelated", None
    return "would_support" if match.conflict is None else "would_contradict", match.best.text


@cache
def rules_version() -> str:
    """SHA-256, 16 digits, of the code that decides; a kept reply of other rules is not reused."""
    package = files("misslink")
    sources = [package.joinpath("text.py")]
    sources += [package.joinpath("judging", "embedded", f"{name}.py") for name in RULES]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


@judges.register("embedded")
def open_embedded(argument: str | None = None) -> Judge:
    """Open the judge ``embedded`` or ``embedded:minilm``.

    Raises
    ------
    InputError
        `argument` is neither None nor 'minilm'.
    MissingExtraError
        What ``embedded:minilm`` needs is not installed.
    """
    if argument is None:
        return EmbeddedJudge(load_fit("embedded"))
    if argument != "minilm":
        raise InputError(
            f"there is no judge 'embedded:{argument}'; say embedded or embedded:minilm"
        )
    return EmbeddedJudge(load_fit("embedded:minilm"), SentenceSimilarity())
