"""A context longer than the judge's is examined in parts, and nothing of it is cut silently."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from misslink.judging.endings import too_long
from misslink.judging.examination import Examination, LabelAlone, examine
from misslink.judging.protocol import Ask, Judge, Reply, innermost, longest_reply, total_usage
from misslink.judging.wrappers.merging import (
    ExaminationPart,
    Part,
    examine_part,
    merge,
    raws,
)
from misslink.judging.wrappers.packing import Piece, fill, size_of, tokens
from misslink.prompting import BUILT_IN, Prompts
from misslink.text import sentences

__all__ = ["InParts"]

_LEAST_ROOM = 64  # tokens for passages; a smaller part says nothing
_HALVINGS = 4  # down to a sixteenth; who refuses that as well refuses for another reason
_REFUSED_PART = "not answered"
_EXAMINED = frozenset({"question", "passages", "answer"})
_STATED = re.compile(r"context (?:length|size|window)\D{0,30}?(\d{3,7})\b", re.IGNORECASE)


class _Case(NamedTuple):
    """What an examination is about."""

    question: str
    passages: tuple[str, ...]
    answer: str
    references: tuple[str, ...]
    repeat: int

    @property
    def pieces(self) -> list[Piece]:
        """The passages, each in one piece."""
        return [Piece(number, text) for number, text in enumerate(self.passages, start=1)]


class InParts:
    """A judge whose examinations fit its context; it goes around every other wrapper.

    Where an examination would be longer than the context, its passages are packed in order into
    parts that fit. The first part yields the claims, later ones hold these claims against their
    passages, and the replies are merged. A judge that refuses a question for its length teaches
    how much it takes, should nobody have said so before.

    Parameters
    ----------
    judge : Judge
    prompts : Prompts
        Where the parts' prompts, ``examination`` and ``examination_part``, are read from.
    context_length : int or None
        How many tokens prompt and reply may have together. None: what the innermost judge's
        ``context_length`` says, and without one no limit is known.
    """

    def __init__(
        self, judge: Judge, prompts: Prompts = BUILT_IN, context_length: int | None = None
    ) -> None:
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self._innermost = innermost(judge)
        self._prompts = prompts
        self._given = context_length
        self._learned: int | None = None

    async def ask(self, ask: Ask) -> Reply:
        """Answer, in parts where an examination is too long for one question.

        Returns
        -------
        Reply
            Without `parsed` where a part fails, or where the question, the answer and the
            references alone are too long for the judge.
        """
        case = _case_of(ask)
        if case is None:
            return await self.judge.ask(ask)
        limit = self._limit()
        if limit is None or self._put_whole(ask, case, limit):
            reply = await self.judge.ask(ask)
            refused = _refusal(reply)
            if refused is None:
                return reply
            limit = self._shorter(refused, self._needed(ask, case))
        reply = await self._in_parts(case, limit)
        for _ in range(_HALVINGS):
            refused = _refusal(reply)
            if refused is None:
                break
            limit = self._shorter(refused, limit)
            reply = await self._in_parts(case, limit)
        if reply.came:
            self._learn(limit)
        return reply

    async def foresee(self, ask: Ask) -> tuple[Ask, ...]:
        """Return the questions that would be put, the answer's sentences standing for its claims.

        What a judge would teach by refusing is not foreseen.
        """
        case, limit = _case_of(ask), self._limit()
        if case is None or limit is None or self._put_whole(ask, case, limit):
            return (ask,)
        room = limit - self._reply_room(case)
        for_passages = room - size_of(self._examine(case, ()))
        if for_passages < _LEAST_ROOM:
            return ()  # too long even without a passage: it is not asked
        taken, rest = fill(case.pieces, for_passages)
        asks = [self._examine(case, taken)]
        claims = [case.answer[start:end] for start, end in sentences(case.answer)]
        alone = size_of(self._hold(case, claims, ()))
        while rest:
            group, rest = fill(rest, max(room - alone, _LEAST_ROOM))
            asks.append(self._hold(case, claims, group))
        return tuple(asks)

    async def close(self) -> None:
        """Close the judge."""
        await self.judge.close()

    def _needed(self, ask: Ask, case: _Case) -> int:
        return size_of(ask) + self._reply_room(case)

    def _limit(self) -> int | None:
        said = self._given or getattr(self._innermost, "context_length", None)
        known = [length for length in (said, self._learned) if length]
        return min(known, default=None)

    def _put_whole(self, ask: Ask, case: _Case, limit: int) -> bool:
        """Whether a question fits, or was answered whole before its judge's length was known."""
        return self._needed(ask, case) <= limit or self._kept(ask)

    def _reply_room(self, case: _Case) -> int:
        """Tokens that the reply may need: claims with quotes, passages, reference claims.

        The claims are about as long as the answer, so are their quotes, and as much is for the
        fields around them; of a reference the claims and their fields.
        """
        most = longest_reply(self._innermost)
        written = 3 * tokens(case.answer) + 2 * sum(map(tokens, case.references))
        return min(most, 256 + written + 16 * len(case.passages))

    def _shorter(self, refusal: str, tried: int) -> int:
        """How much to try after a refusal: what the judge says it takes, or half as much."""
        stated = _STATED.search(refusal)
        if stated and int(stated.group(1)) < tried:
            return int(stated.group(1))
        return tried // 2

    def _learn(self, limit: int) -> None:
        """Remember a length that the judge takes, also for a later run with the same ledger."""
        self._learned = min(limit, self._learned or limit)
        bare = self._innermost
        if getattr(bare, "context_length", 0) is None:
            bare.context_length = self._learned  # type: ignore[attr-defined]

    def _kept(self, ask: Ask) -> bool:
        """Whether a ledger holds the reply to the whole question."""
        judge: Judge | None = self.judge
        while judge is not None:
            holds = getattr(judge, "holds", None)
            if holds is not None:
                return bool(holds(ask))
            judge = getattr(judge, "judge", None)
        return False

    async def _in_parts(self, case: _Case, limit: int) -> Reply:
        alone = size_of(self._examine(case, ())) + self._reply_room(case)
        if limit - alone < _LEAST_ROOM:
            what = "the question, the answer and the references"
            return Reply.nothing(_no_room(what, alone, limit))
        taken, rest = fill(case.pieces, limit - alone)
        first = await self.judge.ask(self._examine(case, taken))
        if not isinstance(first.parsed, Examination):
            return await self._one_word(case, first, rest, limit - alone)
        claims = [claim.text for claim in first.parsed.claims]
        alone = size_of(self._hold(case, claims, ())) + self._reply_room(case)
        if rest and limit - alone < _LEAST_ROOM:
            problem = _no_room("the answer and its claims", alone, limit)
            return replace(_together([first]), parsed=None, problem=problem)
        groups: list[list[Piece]] = []
        while rest:
            group, rest = fill(rest, limit - alone)
            groups.append(group)
        later = await asyncio.gather(
            *(self.judge.ask(self._hold(case, claims, group)) for group in groups),
            return_exceptions=True,  # those under way come home, whatever becomes of one
        )
        parts = [Part(tuple(taken), first)]
        for group, reply in zip(groups, later, strict=True):
            if isinstance(reply, BaseException):
                raise reply
            parts.append(Part(tuple(group), reply))
        return _failure(parts) or merge(parts, case.question)

    async def _one_word(self, case: _Case, first: Reply, rest: Sequence[Piece], room: int) -> Reply:
        """What a judge says that can give a label only: yes if any part supports the answer."""
        replies = [first]
        while rest and isinstance(replies[-1].parsed, LabelAlone):
            if replies[-1].parsed.supported == "yes":
                break
            group, rest = fill(rest, room)
            whole = self._examine(case, group)
            question = whole.alone() if whole.alone else whole
            replies.append(await self.judge.ask(replace(question, repeat=case.repeat)))
        last = replies[-1]
        if len(replies) == 1 and not rest:
            return last
        if isinstance(last.parsed, LabelAlone) and last.parsed.supported == "no":
            problem = (
                "the judge can give one word only, and no part of the passages alone supports the "
                "whole answer; use a judge with a longer context"
            )
            return replace(_together(replies), parsed=None, problem=problem)
        return _together(replies)

    def _examine(self, case: _Case, pieces: Sequence[Piece]) -> Ask:
        texts = tuple(piece.text for piece in pieces)
        ask = examine(case.question, texts, case.answer, case.references, prompts=self._prompts)
        return replace(ask, repeat=case.repeat)

    def _hold(self, case: _Case, claims: Sequence[str], pieces: Sequence[Piece]) -> Ask:
        texts = [piece.text for piece in pieces]
        return examine_part(
            case.question,
            case.answer,
            claims,
            texts,
            prompts=self._prompts,
            repeat=case.repeat,
        )


def _case_of(ask: Ask) -> _Case | None:
    """What `ask` is about where it is an examination, which can be put in parts."""
    inputs = ask.inputs
    known = inputs.keys() >= _EXAMINED
    if not (known and ask.structured and issubclass(ask.schema, Examination)):
        return None
    return _Case(
        question=inputs["question"],
        passages=tuple(inputs["passages"]),
        answer=inputs["answer"],
        references=tuple(inputs.get("references", ())),
        repeat=ask.repeat,
    )


def _refusal(reply: Reply) -> str | None:
    """How a question was refused for its length; None where it was not."""
    problem = reply.problem or ""
    about_a_part = problem.startswith(_REFUSED_PART)  # the parts before it came
    refused = about_a_part or not reply.came
    return problem if refused and too_long(problem) else None


def _no_room(what: str, needed: int, limit: int) -> str:
    return (
        f"{what} need about {needed + _LEAST_ROOM:,} tokens with the reply and a sentence or two "
        f"of a passage, and the judge takes {limit:,} (--context-length); use a judge that takes "
        "more"
    )


def _together(replies: Sequence[Reply]) -> Reply:
    """The last reply with what all of them said and used."""
    return replace(
        replies[-1],
        raw=raws(replies),
        usage=total_usage(replies),
        from_ledger=all(reply.from_ledger for reply in replies),
    )


def _failure(parts: Sequence[Part]) -> Reply | None:
    """The failed reply of all parts where a part failed, else None."""
    replies = [part.reply for part in parts]
    for number, reply in enumerate(replies[1:], start=2):
        if isinstance(reply.parsed, ExaminationPart):
            continue
        why = reply.problem or "the reply is no answer to what was asked"
        about = "failed" if reply.came else _REFUSED_PART
        problem = f"{about}, part {number} of {len(parts)} of the passages: {why}"
        return replace(_together(replies), parsed=None, probabilities={}, problem=problem)
    return None
