"""Examine a context that is longer than the judge's in parts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from misslink.judge import examination, protocol
from misslink.judge.backends.response_parsing import is_length_error
from misslink.judge.judged_metric import parsed_examination
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.tokens import BYTES_PER_TOKEN, MARGIN, estimate_ask_tokens, estimate_tokens
from misslink.matching import verify_quote
from misslink.text.normalization import sentence_spans
from misslink.types import Support

_FENCE_TOKENS = 24  # tokens: both delimiters of a passage, its number and the boundary
_STRETCHES_PER_PIECE = 4  # without sentences it is cut in quarters, so that one can overlap


@dataclass(frozen=True)
class PassagePiece:
    """A passage or a part of one.

    Parameters
    ----------
    passage : int
        The number of the passage, from 1.
    text : str
    """

    passage: int
    text: str

    @property
    def size(self) -> int:
        """Its tokens in a prompt, with the fence around it; an estimate from above."""
        return estimate_tokens(self.text) + _FENCE_TOKENS


def split_piece(piece: PassagePiece, room: int) -> list[PassagePiece]:
    """Cut a piece into pieces of at most `room` tokens, at the ends of sentences.

    Neighbours share a sentence, so that what spans a cut is whole in one of them. A sentence
    longer than the room is cut between words, or between characters where it has no blank.

    Parameters
    ----------
    piece : Piece
    room : int
        Tokens, fence included; more than a fence takes.

    Returns
    -------
    list of Piece
        The piece itself where it fits. Every character but blanks is in one of them.
    """
    if piece.size <= room:
        return [piece]
    space = max(room - _FENCE_TOKENS, 1)
    units = _split_units(piece.text, space)
    pieces: list[PassagePiece] = []
    first = 0
    while True:
        last = first
        start = units[first][0]
        while (
            last + 1 < len(units)
            and estimate_tokens(piece.text[start : units[last + 1][1]]) <= space
        ):
            last += 1
        pieces.append(PassagePiece(piece.passage, piece.text[start : units[last][1]]))
        if last + 1 == len(units):
            return pieces
        following = piece.text[units[last][0] : units[last + 1][1]]
        overlaps = last > first and estimate_tokens(following) <= space
        first = last if overlaps else last + 1


def fill_budget(
    pieces: Sequence[PassagePiece], room: int
) -> tuple[list[PassagePiece], list[PassagePiece]]:
    """Take pieces, in order, while they fit into `room` tokens; cut those that never would.

    Returns
    -------
    taken, rest : list of Piece
        `taken` is empty only where `pieces` is.
    """
    queue = [part for piece in pieces for part in split_piece(piece, room)]
    used = 0
    for place, piece in enumerate(queue):
        used += piece.size
        if used > room and place:
            return queue[:place], queue[place:]
    return queue, []


def _split_units(text: str, space: int) -> list[tuple[int, int]]:
    """What is never cut again: sentences, or stretches of words where a sentence is too long."""
    units: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if estimate_tokens(text[start:end]) <= space:
            units.append((start, end))
        else:
            units += _split_stretches(text, start, end, space)
    return units


def _split_stretches(text: str, start: int, end: int, space: int) -> list[tuple[int, int]]:
    """Stretches that end behind a blank, if they have one; of four bytes a character they fit, too."""
    longest = max(int(space * BYTES_PER_TOKEN / MARGIN) // _STRETCHES_PER_PIECE, 1)
    stretch = re.compile(rf".{{1,{longest}}}(?:(?<=\s)|\Z)|.{{1,{longest}}}", re.DOTALL)
    return [found.span() for found in stretch.finditer(text, start, end)]


_LabelProbabilities = Mapping[str, float]


class PartClaim(examination.QuotedPart):
    """What the passages of one part say of a claim (from 1)."""

    claim: int
    quotes: tuple[str, ...] = ()
    support: examination.JudgedSupport


class ExaminationPart(BaseModel):
    """What is said of the second and every later part of a long context."""

    model_config = ConfigDict(frozen=True)

    claims: tuple[PartClaim, ...]
    passages: tuple[examination.ExaminedPassage, ...]
    sufficient: Literal["yes", "partly", "no"] | None = None


@dataclass(frozen=True)
class ContextPart:
    """Pieces of passages, and the reply about them."""

    pieces: tuple[PassagePiece, ...]
    reply: protocol.Reply


def examine_part(
    ask: protocol.Ask, claims: Sequence[str], passages: Sequence[str], prompts: Prompts
) -> protocol.Ask:
    """Ask what some of the passages say of claims that are already known.

    Parameters
    ----------
    ask : Ask
        The examination.
    claims, passages : sequence of str
        Numbered from 1 in the prompt and in the reply.
    prompts : Prompts
        Where ``examination_part`` is read from.
    """
    kept = {name: ask.inputs[name] for name in ("question", "answer")}
    history = tuple(ask.inputs.get("history", ()))
    inputs = {**kept, "claims": tuple(claims), "passages": tuple(passages), "history": history}
    part = protocol.Ask.rendered(prompts.load("examination_part"), inputs, ExaminationPart)
    return replace(part, repeat=ask.repeat)


def merge_parts(parts: Sequence[ContextPart], question: str) -> protocol.Reply:
    """Merge the replies about the parts into one.

    A claim is supported where a part supports it with a quote verified in that part, else
    contradicted where one contradicts it with such a quote. A statement whose quote is not verified
    decides only where there is no better one. A passage is relevant where any piece of it is. The
    context is as sufficient as the best part alone. Where the judge refused a part, and no other part
    settles the matter, the whole counts as refused. The response, its helpfulness and the references
    come from the first part.

    The first reply has an Examination, the others an ExaminationPart. The ``raw`` of the result has
    one JSON line per part, and its probabilities are those of the parts that decide.
    """
    first = parsed_examination(parts[0].reply)
    chances: dict[str, _LabelProbabilities | None] = {  # None: of no part that decides
        place: chance
        for place, chance in parts[0].reply.probabilities.items()
        if not place.startswith("passages.")
    }
    claims = []
    for number, claim in enumerate(first.claims):
        votes = _claim_votes(parts, number, claim.text, question)
        answered = [vote for vote in votes if vote.chance != {}]
        best = max(answered or votes, key=lambda vote: vote[:3])
        if len(answered) < len(votes) and not best.has_quote:
            best = best._replace(support="unsupported", chance={})
        quote_refused = not best.has_quote and any(vote.quote_refused for vote in votes)
        quotes = best.quotes if best.support != "unsupported" else ()
        claims.append(claim.model_copy(update={"support": best.support, "quotes": quotes}))
        chances[f"claims.{number}.support"] = best.chance
        chances[f"claims.{number}.quote"] = {} if quote_refused else None
    passages, relevance = _merge_relevance(parts)
    chances |= {f"passages.{place}.relevant": chance for place, chance in enumerate(relevance)}
    sufficient, chances["sufficient"] = _merge_sufficiency(parts)
    update = {"claims": tuple(claims), "passages": passages, "sufficient": sufficient}
    replies = [part.reply for part in parts]
    return replace(
        _combine_replies(replies),
        parsed=first.model_copy(update=update),
        probabilities={place: of for place, of in chances.items() if of is not None},
        judge=next((reply.judge for reply in replies if reply.judge), None),
    )


class _ClaimVote(NamedTuple):
    """What a part says of a claim; the heaviest by its first three values decides.

    Without a verified quote either label weighs more than "unsupported": `read_claims` searches for
    the quote in all passages and reports what is wrong with it.
    """

    has_quote: bool
    weight: int
    likely: float
    support: Support
    quotes: tuple[str, ...]
    chance: _LabelProbabilities | None
    quote_refused: bool


def _claim_votes(
    parts: Sequence[ContextPart], number: int, claim: str, question: str
) -> list[_ClaimVote]:
    """What every part says of the claim at `number`; one that leaves it out says nothing."""
    votes = []
    for part in parts:
        chances = part.reply.probabilities
        for place, said in enumerate(getattr(part.reply.parsed, "claims", ())):
            if number != (said.claim - 1 if isinstance(said, PartClaim) else place):
                continue
            support: Support = "unsupported" if said.support == "partly" else said.support
            has_quote = support != "unsupported" and any(
                verify_quote(quote, piece.text, claim, question, supports=support == "supported")
                for quote in said.quotes
                for piece in part.pieces
            )
            weight = ("unsupported", "contradicted", "supported").index(support)
            chance = chances.get(f"claims.{place}.support")
            likely = (chance or {}).get("supported", 0.0)
            refused = chances.get(f"claims.{place}.quote") == {}
            votes.append(
                _ClaimVote(has_quote, weight, likely, support, said.quotes, chance, refused)
            )
    return votes


def _merge_relevance(
    parts: Sequence[ContextPart],
) -> tuple[tuple[examination.ExaminedPassage, ...], list[_LabelProbabilities | None]]:
    """Relevance by the passages' own numbers; those that no part speaks of are left out."""
    best: dict[int, tuple[bool, bool, float, _LabelProbabilities | None]] = {}
    for part in parts:
        for place, passage in enumerate(getattr(part.reply.parsed, "passages", ())):
            if not 1 <= passage.passage <= len(part.pieces):
                continue
            number = part.pieces[passage.passage - 1].passage
            chance = part.reply.probabilities.get(f"passages.{place}.relevant")
            likely = (chance or {}).get("true", 0.0)
            candidate = passage.relevant, chance == {}, likely, chance
            if number not in best or candidate[:3] > best[number][:3]:
                best[number] = candidate
    numbers = sorted(best)
    passages = tuple(examination.ExaminedPassage(passage=n, relevant=best[n][0]) for n in numbers)
    return passages, [best[n][3] for n in numbers]


def _merge_sufficiency(
    parts: Sequence[ContextPart],
) -> tuple[Literal["yes", "partly", "no"] | None, _LabelProbabilities | None]:
    chances = [part.reply.probabilities.get("sufficient") for part in parts]
    said = [getattr(part.reply.parsed, "sufficient", None) for part in parts]
    refused = {} in chances
    labels: tuple[Literal["yes", "partly", "no"], ...] = ("yes", "partly", "no")
    for label in labels[:1] if refused else labels:
        if label in said:
            return label, chances[said.index(label)]
    return None, {} if refused else None


_MIN_PASSAGE_TOKENS = 64  # tokens for passages; a smaller part says nothing
_MAX_HALVINGS = 4  # down to a sixteenth; who refuses that as well refuses for another reason
_PART_REFUSED = "not answered"
_STATED_LENGTH = re.compile(r"context (?:length|size|window)\D{0,30}?(\d{3,7})\b", re.IGNORECASE)


class LongContextJudge(protocol.JudgeLayer):
    """A judge whose examinations fit its context; it wraps all other middleware.

    Where an examination is longer than the context, its passages are packed in order into parts that
    fit. The first part yields the claims, later parts compare these claims with their passages, and
    the replies are merged. Where the context length is unknown, it is learned from refusals.

    Parameters
    ----------
    judge : Judge
    prompts : Prompts
        Where the prompts ``examination`` and ``examination_part`` are read from.
    context_length : int or None
        Maximum tokens of prompt and reply together. None: the innermost judge's, if it is known.
    """

    def __init__(
        self, judge: protocol.Judge, prompts: Prompts = BUILT_IN, context_length: int | None = None
    ) -> None:
        super().__init__(judge)
        self._innermost = protocol.unwrap_judge(judge)
        self._prompts = prompts
        self._given = context_length
        self._learned: int | None = None

    async def ask(self, ask: protocol.Ask) -> protocol.Reply:
        """Answer, in parts where an examination is too long for one question.

        Returns
        -------
        Reply
            Without `parsed` where a part fails, or where the question, the answer and the
            references alone are too long for the judge.
        """
        if not issubclass(ask.schema, examination.Examination):
            return await self.judge.ask(ask)
        limit = self._limit()
        if limit is None or self._fits_whole(ask, limit):
            reply = await self.judge.ask(ask)
            if _length_refusal(reply) is None:
                return reply
            limit = estimate_ask_tokens(ask) + self._reply_room(ask)
        else:
            reply = await self._in_parts(ask, limit, self.judge.ask)
        for _ in range(_MAX_HALVINGS):
            refused = _length_refusal(reply)
            if refused is None:
                break
            limit = _shorter(refused, limit)
            reply = await self._in_parts(ask, limit, self.judge.ask)
        if reply.came:
            self._learned = min(limit, self._learned or limit)
            learn = protocol.judge_info(self._innermost).learn
            if learn is not None:  # also for a later run with the same cache
                learn({"context_length": self._learned})
        return reply

    async def planned_asks(self, ask: protocol.Ask) -> tuple[protocol.Ask, ...]:
        """Return the questions that would be put, the answer's sentences standing for its claims.

        What a judge would teach by refusing is not foreseen.
        """
        limit = self._limit()
        is_examination = issubclass(ask.schema, examination.Examination)
        if not is_examination or limit is None or self._fits_whole(ask, limit):
            return (ask,)
        planned: list[protocol.Ask] = []

        async def plan(part: protocol.Ask) -> protocol.Reply:
            planned.append(part)
            if part.schema is ExaminationPart:
                return protocol.Reply(ExaminationPart(claims=(), passages=()), "")
            answer = ask.inputs["answer"]
            claims = tuple(
                examination.ExaminedClaim(span=answer[start:end], support="unsupported")
                for start, end in sentence_spans(answer)
            )
            return protocol.Reply(
                examination.Examination(claims=claims, passages=(), response="answers"), ""
            )

        await self._in_parts(ask, limit, plan)
        return tuple(planned)

    def _limit(self) -> int | None:
        stated = self._given or protocol.judge_info(self._innermost).context_length
        limits = [length for length in (stated, self._learned) if length]
        return min(limits, default=None)

    def _fits_whole(self, ask: protocol.Ask, limit: int) -> bool:
        """Whether a question fits, or was answered whole before its judge's length was known."""
        if estimate_ask_tokens(ask) + self._reply_room(ask) <= limit:
            return True
        caches = (getattr(layer, "is_cached", None) for layer in protocol.layers(self.judge))
        return any(is_cached(ask) for is_cached in caches if is_cached is not None)

    def _reply_room(self, ask: protocol.Ask) -> int:
        """Tokens that the reply may need: claims with quotes, passages, reference claims.

        The claims are about as long as the answer, so are their quotes, and as much is for the
        fields around them; of a reference the claims and their fields.
        """
        inputs, most = ask.inputs, protocol.judge_info(self._innermost).max_tokens
        references = sum(map(estimate_tokens, inputs.get("references", ())))
        written = 3 * estimate_tokens(inputs["answer"]) + 2 * references
        return min(most, 256 + written + 16 * len(inputs["passages"]))

    async def _in_parts(
        self,
        ask: protocol.Ask,
        limit: int,
        put: Callable[[protocol.Ask], Awaitable[protocol.Reply]],
    ) -> protocol.Reply:
        alone = estimate_ask_tokens(self._examine(ask, ())) + self._reply_room(ask)
        if limit - alone < _MIN_PASSAGE_TOKENS:
            asked = "conversation" if ask.inputs.get("history") else "question"
            subject = f"the {asked}, the answer and the references"
            return protocol.Reply.nothing(_too_long_message(subject, alone, limit))
        passages = enumerate(ask.inputs["passages"], start=1)
        whole = [PassagePiece(number, text) for number, text in passages]
        taken, remaining = fill_budget(whole, limit - alone)
        first = await put(self._examine(ask, taken))
        if not isinstance(first.parsed, examination.Examination):
            return first
        examine_rest = partial(
            examine_part, ask, [claim.text for claim in first.parsed.claims], prompts=self._prompts
        )
        alone = estimate_ask_tokens(examine_rest(())) + self._reply_room(ask)
        if remaining and limit - alone < _MIN_PASSAGE_TOKENS:
            problem = _too_long_message("the answer and its claims", alone, limit)
            return replace(_combine_replies([first]), parsed=None, problem=problem)
        groups = [taken]
        while remaining:
            group, remaining = fill_budget(remaining, limit - alone)
            groups.append(group)
        later = await asyncio.gather(
            *(put(examine_rest([piece.text for piece in group])) for group in groups[1:]),
            return_exceptions=True,  # those under way come home, whatever becomes of one
        )
        parts = []
        for group, reply in zip(groups, [first, *later], strict=True):
            if isinstance(reply, BaseException):
                raise reply
            parts.append(ContextPart(tuple(group), reply))
        return _failed_part(parts) or merge_parts(parts, ask.inputs["question"])

    def _examine(self, ask: protocol.Ask, pieces: Sequence[PassagePiece]) -> protocol.Ask:
        inputs = {**ask.inputs, "passages": tuple(piece.text for piece in pieces)}
        return replace(examination.examine(**inputs, prompts=self._prompts), repeat=ask.repeat)


def _shorter(refusal: str, tried: int) -> int:
    """How much to try after a refusal: what the judge says it takes, or half as much."""
    stated = _STATED_LENGTH.search(refusal)
    if stated and int(stated.group(1)) < tried:
        return int(stated.group(1))
    return tried // 2


def _length_refusal(reply: protocol.Reply) -> str | None:
    """How a question was refused for its length; None where it was not."""
    problem = reply.problem or ""
    about_a_part = problem.startswith(_PART_REFUSED)  # the parts before it came
    refused = about_a_part or not reply.came
    return problem if refused and is_length_error(problem) else None


def _too_long_message(subject: str, needed: int, limit: int) -> str:
    return (
        f"{subject} need about {needed + _MIN_PASSAGE_TOKENS:,} tokens with the reply and a sentence or two "
        f"of a passage, and the judge takes {limit:,} (setting context_length); use a judge that takes "
        "more"
    )


def _combine_replies(replies: Sequence[protocol.Reply]) -> protocol.Reply:
    """The last reply with what all of them said, one JSON line a part, and used."""
    lines = (
        json.dumps({"part": number, "raw": reply.raw}, ensure_ascii=False)
        for number, reply in enumerate(replies, start=1)
        if reply.raw
    )
    return replace(
        replies[-1],
        raw="\n".join(lines),
        usage=protocol.total_usage(replies),
        from_cache=all(reply.from_cache for reply in replies),
    )


def _failed_part(parts: Sequence[ContextPart]) -> protocol.Reply | None:
    """The failed reply of all parts where a part failed, else None."""
    replies = [part.reply for part in parts]
    for number, reply in enumerate(replies[1:], start=2):
        if isinstance(reply.parsed, ExaminationPart):
            continue
        why = reply.problem or "the reply does not answer the question"
        about = "failed" if reply.came else _PART_REFUSED
        problem = f"{about}, part {number} of {len(parts)} of the passages: {why}"
        return replace(_combine_replies(replies), parsed=None, probabilities={}, problem=problem)
    return None
