"""What a judge said of the parts of a long context, as one examination."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judging.examination import Examination, PassageSaid
from misslink.judging.protocol import Ask, Reply, total_usage
from misslink.judging.quotes import verified
from misslink.judging.wrappers.packing import Piece
from misslink.prompting import Prompts
from misslink.types import Support

__all__ = ["ClaimHeld", "ExaminationPart", "Part", "examine_part", "merge", "raws"]

_Chance = Mapping[str, float]


class ClaimHeld(BaseModel):
    """What the passages of one part say of a claim (from 1)."""

    model_config = ConfigDict(frozen=True)

    claim: int
    support: Support
    quote: str | None = None


class ExaminationPart(BaseModel):
    """What is said of the second and every later part of a long context."""

    model_config = ConfigDict(frozen=True)

    claims: tuple[ClaimHeld, ...]
    passages: tuple[PassageSaid, ...]
    sufficient: Literal["yes", "partly", "no"] | None = None


@dataclass(frozen=True)
class Part:
    """Pieces of passages, and the reply about them."""

    pieces: tuple[Piece, ...]
    reply: Reply


def examine_part(
    question: str,
    answer: str,
    claims: Sequence[str],
    passages: Sequence[str],
    *,
    prompts: Prompts,
    repeat: int = 0,
) -> Ask:
    """Ask what some of the passages say of claims that are already known.

    Parameters
    ----------
    question, answer : str
    claims : sequence of str
        Numbered from 1 in the prompt and in the reply.
    passages : sequence of str
        Numbered from 1 too.
    prompts : Prompts
        Where ``examination_part`` is read from.
    repeat : int
        Which sample is wanted, from 0.
    """
    inputs = {
        "question": question,
        "answer": answer,
        "claims": tuple(claims),
        "passages": tuple(passages),
    }
    return Ask.rendered(prompts.load("examination_part"), inputs, ExaminationPart, repeat=repeat)


def merge(parts: Sequence[Part], question: str) -> Reply:
    """Make one reply of those about the parts.

    A claim is supported where a part supports it with a quote that stands in that part, else
    contradicted where one contradicts it with such a quote. What is said with a quote that does
    not stand in its part decides only where nothing better is said. A passage is
    relevant where any piece of it is. The context is sufficient as far as the best part is alone.
    What concerns the answer only (the response, its helpfulness, the references) is what the first
    part says.

    Parameters
    ----------
    parts : sequence of Part
        At least one. The first reply holds an Examination, the others an ExaminationPart.
    question : str
        What short claims answer, for the check of their quotes.

    Returns
    -------
    Reply
        Whose ``raw`` has one JSON line a part, and each probability of the part that decides.
    """
    first = parts[0].reply.parsed
    if not isinstance(first, Examination):
        raise TypeError(f"expected an Examination, got {type(first).__name__}")
    chances: dict[str, _Chance] = {
        place: chance
        for place, chance in parts[0].reply.probabilities.items()
        if not place.startswith("passages.")
    }
    claims = []
    for number, claim in enumerate(first.claims):
        best = max(_votes(parts, number, claim.text, question), key=lambda vote: vote.weight)
        quote = best.quote if best.support != "unsupported" else None
        claims.append(claim.model_copy(update={"support": best.support, "quote": quote}))
        _set(chances, f"claims.{number}.support", best.chance)
    passages, relevance = _passages(parts)
    for place, chance in enumerate(relevance):
        _set(chances, f"passages.{place}.relevant", chance)
    sufficient, chance = _sufficient(parts)
    _set(chances, "sufficient", chance)
    update = {"claims": tuple(claims), "passages": passages, "sufficient": sufficient}
    replies = [part.reply for part in parts]
    return Reply(
        parsed=first.model_copy(update=update),
        raw=raws(replies),
        usage=total_usage(replies),
        probabilities=chances,
        from_ledger=all(reply.from_ledger for reply in replies),
        judge=next((reply.judge for reply in replies if reply.judge), None),
    )


def raws(replies: Sequence[Reply]) -> str:
    """What came, one JSON line a part; empty where nothing came."""
    lines = (
        json.dumps({"part": number, "raw": reply.raw}, ensure_ascii=False)
        for number, reply in enumerate(replies, start=1)
        if reply.raw
    )
    return "\n".join(lines)


@dataclass(frozen=True)
class _Vote:
    support: Support
    quote: str | None
    found: bool
    chance: _Chance | None

    @property
    def weight(self) -> tuple[bool, int, float]:
        """The heaviest vote decides.

        Without its quote either word weighs more than nothing: whoever reads the claims looks for
        the quote in all passages, and says what is wrong with it.
        """
        order = {"supported": 2, "contradicted": 1, "unsupported": 0}
        likely = (self.chance or {}).get("supported", 0.0)
        shown = self.found and self.support != "unsupported"
        return shown, order[self.support], likely


def _votes(parts: Sequence[Part], number: int, claim: str, question: str) -> list[_Vote]:
    """What every part says of the claim at `number`; one that leaves it out says nothing."""
    votes = []
    for part in parts:
        said = part.reply.parsed
        if isinstance(said, Examination):
            found = [(number, said.claims[number].support, said.claims[number].quote)]
        elif isinstance(said, ExaminationPart):
            found = [
                (place, held.support, held.quote)
                for place, held in enumerate(said.claims)
                if held.claim == number + 1
            ]
        else:
            found = []
        votes += [
            _Vote(
                support,
                quote,
                _stands(quote, claim, question, part),
                _chance(part, f"claims.{place}.support"),
            )
            for place, support, quote in found
        ]
    return votes


def _stands(quote: str | None, claim: str, question: str, part: Part) -> bool:
    """Whether a quote is in one of the part's pieces, and speaks of the claim."""
    texts = [piece.text for piece in part.pieces]
    return quote is not None and any(
        verified(quote, text, claim, question, context=texts) for text in texts
    )


def _passages(parts: Sequence[Part]) -> tuple[tuple[PassageSaid, ...], list[_Chance | None]]:
    """Relevance by the passages' own numbers; those that no part speaks of are left out."""
    said: dict[int, tuple[bool, float, _Chance | None]] = {}
    for part in parts:
        for place, passage in enumerate(getattr(part.reply.parsed, "passages", ())):
            if not 1 <= passage.passage <= len(part.pieces):
                continue
            number = part.pieces[passage.passage - 1].passage
            chance = _chance(part, f"passages.{place}.relevant")
            found = passage.relevant, (chance or {}).get("true", 0.0), chance
            if number not in said or found[:2] > said[number][:2]:
                said[number] = found
    numbers = sorted(said)
    passages = tuple(PassageSaid(passage=n, relevant=said[n][0]) for n in numbers)
    return passages, [said[n][2] for n in numbers]


def _sufficient(
    parts: Sequence[Part],
) -> tuple[Literal["yes", "partly", "no"] | None, _Chance | None]:
    order: tuple[Literal["yes", "partly", "no"], ...] = ("yes", "partly", "no")
    for label in order:
        saying = [p for p in parts if getattr(p.reply.parsed, "sufficient", None) == label]
        if saying:
            return label, _chance(saying[0], "sufficient")
    return None, None


def _chance(part: Part, place: str) -> _Chance | None:
    return part.reply.probabilities.get(place)


def _set(chances: dict[str, _Chance], place: str, chance: _Chance | None) -> None:
    """Enter a probability, or take out that of a part that does not decide."""
    if chance is None:
        chances.pop(place, None)
    else:
        chances[place] = chance
