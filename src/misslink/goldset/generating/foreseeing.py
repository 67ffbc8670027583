"""What generating would ask and cost: the same line with a stand-in for the judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from misslink.goldset.generating.asks import (
    Compared,
    Elsewhere,
    FromEvidence,
    Negative,
    Quote,
    Recalled,
    Rewritten,
    Written,
)
from misslink.judging.forecast import Forecast, forecast
from misslink.judging.opening import Opened
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.judging.tokenrates import CHARACTERS
from misslink.judging.wrappers.ledger import Ledger
from misslink.text import sentences

__all__ = ["StandIn", "foreseen"]

_QUESTION_WORDS = 12  # of a question of medium length
_LETTERS = 6  # of a word with the blank behind it


class StandIn:
    """Answers as the ledger does where it can, else as a writer would whose every question stands.

    Nobody is asked. What would be asked is collected, with the length of what would be answered.

    Parameters
    ----------
    judge : Opened

    Attributes
    ----------
    asks : list of Ask
        What the ledger does not answer, each once.
    from_ledger : int
        What it does.
    written : int
        Characters of the replies to `asks`.
    """

    def __init__(self, judge: Opened) -> None:
        self.name = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.asks: list[Ask] = []
        self.from_ledger = 0
        self.written = 0
        self._ledger = _ledger(judge.judge)
        self._put: set[str] = set()

    async def ask(self, ask: Ask) -> Reply:
        """Answer; see the class."""
        again = ask.key in self._put
        self._put.add(ask.key)
        if self._ledger is not None and self._ledger.holds(ask):
            self.from_ledger += not again
            return await self._ledger.ask(ask)
        said = _said(ask)
        raw = said.model_dump_json()
        if not again:
            self.asks.append(ask)
            self.written += len(raw)
        return Reply(said, raw)

    async def close(self) -> None:
        """Close nothing: the judge is not this one's."""


async def foreseen(judge: Opened, stand_in: StandIn) -> Forecast:
    """Return the forecast of what a stand-in was asked.

    Parameters
    ----------
    judge : Opened
        Whose ledger and prices count.
    stand_in : StandIn
        That has been asked everything.

    Raises
    ------
    InputError
        The ledger cannot be read.
    """
    found = await forecast((), (), judge, stand_in.asks)
    tokens = round(stand_in.written / CHARACTERS)
    price = judge.price
    basis = (
        "at least so many: every candidate is taken to be accepted at once, and each that is not "
        "costs its questions again; prompt tokens as the messages have them, completion tokens as "
        "a writer needs who quotes one sentence a passage"
    )
    return replace(
        found,
        from_ledger=stand_in.from_ledger,
        completion_tokens=tokens,
        cost=price.of(found.prompt_tokens, tokens) if price else None,
        basis=basis if found.calls else "nothing is to be asked",
    )


def _ledger(judge: Judge | None) -> Ledger | None:
    while judge is not None and not isinstance(judge, Ledger):
        judge = getattr(judge, "judge", None)
    return judge


def _said(ask: Ask) -> BaseModel:
    """What a writer would answer whose questions are all accepted."""
    texts: Sequence[str] = ask.inputs.get("passages") or ()
    if ask.schema in (Negative, Rewritten):
        return ask.schema(question=_question(ask))
    if ask.schema is Written:
        first = [_first(text) for text in texts]
        quotes = tuple(Quote(passage=n, quote=quote) for n, quote in enumerate(first, 1))
        return Written(question=_question(ask), reference=" ".join(first), quotes=quotes)
    if ask.schema is FromEvidence:
        return FromEvidence(answer=" ".join(ask.inputs["evidence"]))
    if ask.schema is Recalled:
        return Recalled(answer=None)
    if ask.schema is Compared:
        agreed = [{"answer": n, "agrees": "yes"} for n, _ in enumerate(ask.inputs["answers"], 1)]
        return Compared.model_validate({"answers": agreed})
    told = [{"passage": n, "answers": "no", "quote": None} for n, _ in enumerate(texts, 1)]
    return Elsewhere.model_validate({"passages": told})


def _question(ask: Ask) -> str:
    """A question like no other, of words that no passage has."""
    digest = hashlib.sha256(json.dumps([ask.key]).encode()).hexdigest() * 2
    letters = digest.translate(str.maketrans("0123456789", "ghijklmnop"))
    words = (letters[at : at + _LETTERS - 1] for at in range(0, len(letters), _LETTERS))
    return " ".join([*words][:_QUESTION_WORDS]) + "?"


def _first(text: str) -> str:
    """The first sentence of a passage that has a word."""
    spans = sentences(text)
    said = (text[start:end] for start, end in spans)
    return next((one for one in said if any(map(str.isalnum, one))), text.strip())
