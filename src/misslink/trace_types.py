"""What the app did for each case: retrieved passages, retriever calls, prompt and answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue, field_validator, model_validator

from misslink import case_fields
from misslink.case_fields import Message
from misslink.field_markers import Varying
from misslink.frozen_model import FrozenModel, Reason, share


class Usage(FrozenModel):
    """Tokens a model reported; None where it reported none."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @classmethod
    def total(cls, usages: Iterable[Usage | None]) -> Usage | None:
        """Return the sum; a count that none of them has is None, and so is the sum of none."""
        known = [usage for usage in usages if usage is not None]
        counts = {
            name: [count for usage in known if (count := getattr(usage, name)) is not None]
            for name in cls.model_fields
        }
        return cls(**{name: sum(c) if c else None for name, c in counts.items()}) if known else None


class Passage(FrozenModel):
    """A retrieved chunk; ``rank`` counts from 1, ``score`` is the retriever's own or None."""

    id: str
    text: str = ""
    rank: int = Field(ge=1)
    score: Annotated[float | None, Varying] = None  # a rebuilt index differs in the last digits
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


VECTOR_QUERY = "(a vector)"  # the query of a search that was made with a vector


class RetrieverCall(FrozenModel):
    """One search by a retriever or a tool; ``tool`` is the agent's tool that made it, if any."""

    query: str
    passages: tuple[str, ...]
    retriever: str = ""
    tool: str = ""
    nested: bool = False


class PassagePlace(NamedTuple):
    """What statistics read of a passage of a trace."""

    id: str
    rank: int


class CallRow(NamedTuple):
    """What statistics read of a retriever call."""

    nested: bool


class TraceRow(NamedTuple):
    """What statistics read of a trace: its numbers and ids, and which texts it has."""

    case_id: str
    retrieved: tuple[PassagePlace, ...]
    deeper: tuple[PassagePlace, ...]
    characters: int
    prompted_count: int | None
    shown: tuple[str, ...]
    answered: bool
    prompt: bool
    history: bool
    latency_s: float | None
    usage: Usage | None
    error: str | None
    unmeasured: str | None
    unmatched: Reason | None
    calls: tuple[CallRow, ...]
    depth: int | None


class Trace(FrozenModel):
    """What the app did for one case: retrieval calls, prompt and answer.

    Parameters
    ----------
    retrieved : sequence of Passage
        Best first, without duplicates. A passage returned by several calls has its best rank.
    prompted, prompt : sequence of str, str, or None
        Ids of the retrieved passages in the prompt, and its text. None: misslink did not see it.
    shown : mapping of str to str
        The part in the prompt of each passage that is there in part, or in other words. A passage
        of ``prompted`` that is not in it was shown whole.
    model_calls : int or None
        Number of model calls that misslink saw. None: it saw none, or the app says what it prompted.
    latency_s : float or None, in seconds
    error, traceback : str or None
        The exception that the app raised, with the place in the user's code.
    unmeasured : str or None
        Why misslink does not know the retrieved passages. Not the same as no retrieved passages.
    unmatched : Reason or None
        Why the retrieved passages cannot be compared with the labelled ids.
    calls : sequence of RetrieverCall
        Every retriever call, including nested ones.
    graded : sequence of str
        Ids of retrieved passages that another model call than that of the answer was shown.
    deeper : sequence of Passage
        Missed relevant passages, with their rank in a deeper search.
    deeper_calls : mapping of str to int
        Number of the search, from 1, that ranks each of these best.
    depth : int or None
        Depth of that search. None: no deeper search.
    notes : sequence of str
        Readable notes on what misslink could not capture.
    trace_id, span_id : str or None
        Ids of the trace and its root span in the tool that recorded them.
    response_id : str or None
        Id of the model's reply, as its provider gave it.
    history : sequence of Message
        Earlier messages of the conversation, in recorded traces.
    """

    case_id: str
    retrieved: tuple[Passage, ...] = ()
    prompted: tuple[str, ...] | None = None
    prompt: str | None = None
    shown: dict[str, str] = Field(default_factory=dict)
    model_calls: int | None = Field(default=None, ge=0)
    answer: str | None = None
    latency_s: Annotated[float | None, Varying] = Field(default=None, ge=0, le=1e9)
    usage: Annotated[Usage | None, Varying] = None
    error: str | None = None
    traceback: str | None = None
    unmeasured: str | None = None
    unmatched: Reason | None = None
    calls: tuple[RetrieverCall, ...] = ()
    graded: tuple[str, ...] = ()
    deeper: tuple[Passage, ...] = ()
    deeper_calls: dict[str, int] = Field(default_factory=dict)
    depth: int | None = None
    notes: Annotated[tuple[str, ...], Varying] = ()
    trace_id: Annotated[str | None, Varying] = None
    span_id: Annotated[str | None, Varying] = None
    response_id: Annotated[str | None, Varying] = None
    history: tuple[Message, ...] = ()

    _visible_answer = field_validator("answer")(case_fields.empty_if_blank)
    _history_alternates = field_validator("history")(case_fields.check_history)
    _number_as_id = field_validator("case_id", mode="before")(case_fields.read_number_as_id)

    @model_validator(mode="after")  # one before it would make objects of all JSON first
    def _shown_is_prompted(self) -> Trace:
        """Count the passages with a part in the prompt among those in it."""
        if self.shown:
            prompted = tuple(dict.fromkeys((*(self.prompted or ()), *self.shown)))
            object.__setattr__(self, "prompted", prompted)
        return self

    @property
    def answered(self) -> bool:
        """Whether the app gave an answer, also an empty one."""
        return self.answer is not None

    @property
    def characters(self) -> int:
        """Those of all retrieved passages."""
        return sum(len(passage.text) for passage in self.retrieved)

    @property
    def prompted_count(self) -> int | None:
        """How many passages are in the prompt; None: misslink did not see it."""
        return None if self.prompted is None else len(self.prompted)

    def light(self) -> TraceRow:
        """What is held of it where a run is too large to be held whole."""
        return TraceRow(
            sys.intern(self.case_id),
            _passage_rows(self.retrieved),
            _passage_rows(self.deeper),
            self.characters,
            self.prompted_count,
            tuple(map(sys.intern, self.shown)),
            self.answered,
            bool(self.prompt),
            bool(self.history),
            self.latency_s,
            share(self.usage),
            share(self.error),
            share(self.unmeasured),
            share(self.unmatched),
            share(tuple(CallRow(call.nested) for call in self.calls)),
            self.depth,
        )

    def context(self, k: int) -> tuple[Passage, ...]:
        """What the model saw: the retrieved passages in the prompt, each with its shown part.

        Where the prompt was not seen, the first `k` passages stand for it.
        """
        if self.prompted is None:
            return self.retrieved[:k]
        reached, parts = set(self.prompted), self.shown
        return tuple(
            passage.model_copy(update={"text": parts[passage.id]})
            if passage.id in parts
            else passage
            for passage in self.retrieved
            if passage.id in reached
        )


_passage_row = lru_cache(1 << 14)(lambda name, rank: PassagePlace(sys.intern(name), rank))


def _passage_rows(passages: Iterable[Passage]) -> tuple[PassagePlace, ...]:
    return tuple(_passage_row(passage.id, passage.rank) for passage in passages)


Observed = Trace | TraceRow
