"""The nouns of misslink: what a gold set, a trace, a verdict, a link and a run are.

All are pydantic models, frozen and closed (an unknown field is an error). A value that does
not exist is ``None`` with a status and a reason beside it, never 0 and never NaN.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)

from misslink.registry import exporters

__all__ = [
    "Case",
    "Cause",
    "Claim",
    "ClaimLink",
    "Estimate",
    "Evidence",
    "Link",
    "Missed",
    "Passage",
    "PromptRef",
    "RetrieverCall",
    "Run",
    "Status",
    "Support",
    "Trace",
    "Usage",
    "Verdict",
]

Grade = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Support = Literal["supported", "contradicted", "unsupported"]
Status = Literal["scored", "skipped", "failed"]
Cause = Literal[
    "retrieval_miss",
    "should_have_abstained",
    "over_refused",
    "distracted",
    "fabricated",
    "ignored_context",
    "gold_hole",
    "right_by_memory",
    "undecided",
    "fine",
]


class Noun(BaseModel):
    """Frozen, closed, and without NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class Case(Noun):
    """One question of the gold set.

    Parameters
    ----------
    id : str
        Unique in its gold set; a hash of the question where the file gives none.
    question : str
        What is asked (``query`` is understood too).
    relevant : mapping of str to int
        Passage id to grade: 0 judged not relevant, 1 relevant, 2 highly relevant. A list of ids
        or a single id means grade 1.
    relevant_any : sequence of sequences of str
        Alternative sets of passage ids, each of which suffices.
    evidence : mapping of str to int
        Verbatim text to grade. A list of texts or a single text means grade 1. Where given, the
        unit of relevance is the evidence, not the id.
    references : sequence of str
        Acceptable answers (``reference`` with one text or several is understood too).
    answerable : bool or None
        Whether the corpus holds an answer. None: not said.
    category, tier : str or None
    tags : mapping of str to str
    asked_at : date or datetime or None
    """

    id: str = Field(min_length=1)
    question: str = Field(min_length=1, validation_alias=AliasChoices("question", "query"))
    relevant: dict[str, Grade] = {}
    relevant_any: tuple[tuple[str, ...], ...] = ()
    evidence: dict[str, Grade] = {}
    references: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("references", "reference")
    )
    answerable: bool | None = None
    category: str | None = None
    tags: dict[str, str] = {}
    tier: str | None = None
    asked_at: dt.datetime | dt.date | None = None

    @model_validator(mode="before")
    @classmethod
    def _id_from_content(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("id") is not None:
            return data
        question = data.get("question", data.get("query"))
        if not isinstance(question, str):
            return {**data, "id": "none"}  # the question's own error is the one to show
        digest = hashlib.sha256(question.encode()).hexdigest()[:12]
        return {**data, "id": f"q-{digest}"}

    @field_validator("id", mode="before")
    @classmethod
    def _number_as_id(cls, value: Any) -> Any:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return str(value) if is_number else value

    @field_validator("question")
    @classmethod
    def _question_has_text(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("the question is blank")
        return value

    @field_validator("relevant", "evidence", mode="before")
    @classmethod
    def _graded(cls, value: Any) -> Any:
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {_named(name): grade for name, grade in value.items()}
        return {_named(item): 1 for item in _items(value)}

    @field_validator("evidence")
    @classmethod
    def _evidence_has_text(cls, value: dict[str, int]) -> dict[str, int]:
        if any(not text.strip() for text in value):
            raise ValueError("an evidence text is empty; leave it out or quote the passage")
        return value

    @field_validator("references", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        texts = () if value is None else _items(value)
        return tuple(text for text in texts if not isinstance(text, str) or text.strip())

    @field_validator("relevant_any", mode="before")
    @classmethod
    def _sets_of_ids(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return () if value is None else value
        return tuple(tuple(map(_named, _items(ids))) for ids in value)

    @field_validator("tags", mode="before")
    @classmethod
    def _tags_as_text(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return {str(tag): "yes" for tag in value}
        if isinstance(value, Mapping):
            return {str(name): str(tag) for name, tag in value.items()}
        return {} if value is None else value

    @property
    def expects_answer(self) -> bool | None:
        """Whether the app ought to answer; a case that lists relevant passages can be answered.

        None where neither ``answerable`` nor any relevant passage says so.
        """
        if self.answerable is not None:
            return self.answerable
        listed = any(self.relevant.values()) or any(self.evidence.values()) or self.relevant_any
        return True if listed else None


def _items(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else (value,)


def _named(item: Any) -> str:
    """Return an id or a text as it stands in a gold set; a number is an id too."""
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, str) and item.strip():
        return item
    raise ValueError("give ids or texts that are not empty, or an object of them to grades")


class Usage(Noun):
    """Tokens a model reported; None where it reported none."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Passage(Noun):
    """A retrieved chunk; ``rank`` counts from 1, ``score`` is the retriever's own or None."""

    id: str
    text: str = ""
    rank: int = Field(ge=1)
    score: float | None = None
    metadata: dict[str, JsonValue] = {}


class RetrieverCall(Noun):
    """One call of one retriever, as LangChain reported it."""

    query: str
    passages: tuple[str, ...]
    retriever: str = ""
    nested: bool = False


class Trace(Noun):
    """What the app did for one case.

    Parameters
    ----------
    case_id : str
    retrieved : sequence of Passage
        Best first, without repetitions. Of several retriever calls, a passage keeps its best rank.
    prompted : sequence of str or None
        Ids of the retrieved passages whose text reached the model. None: the prompt was not seen.
    answer : str or None
    latency_s : float or None
    usage : Usage or None
    error : str or None
        What the app raised.
    unmeasured : str or None
        Why it is not known what was retrieved, where it is not; that is not the same as nothing.
    calls : sequence of RetrieverCall
        Every retriever call, nested ones too.
    deeper : sequence of Passage
        Needed passages that were missed, at the rank they have when the retriever is asked deeper.
    depth : int or None
        How deep it was asked. None: it was not.
    notes : sequence of str
        What could not be seen, for people.
    """

    case_id: str
    retrieved: tuple[Passage, ...] = ()
    prompted: tuple[str, ...] | None = None
    answer: str | None = None
    latency_s: float | None = Field(default=None, ge=0)
    usage: Usage | None = None
    error: str | None = None
    unmeasured: str | None = None
    calls: tuple[RetrieverCall, ...] = ()
    deeper: tuple[Passage, ...] = ()
    depth: int | None = None
    notes: tuple[str, ...] = ()

    @field_validator("case_id", mode="before")
    @classmethod
    def _number_as_id(cls, value: Any) -> Any:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return str(value) if is_number else value

    def context(self, k: int) -> tuple[Passage, ...]:
        """The passages the answer was written from, best first.

        Those that reached the prompt, however many; where the prompt was not seen, the first `k`.
        """
        if self.prompted is None:
            return self.retrieved[:k]
        reached = set(self.prompted)
        return tuple(passage for passage in self.retrieved if passage.id in reached)


class Evidence(Noun):
    """A quote found in a passage; ``start`` and ``end`` are character offsets into its text."""

    passage_id: str
    quote: str
    start: int | None = None
    end: int | None = None


class Claim(Noun):
    """One atomic statement of an answer.

    Parameters
    ----------
    text : str
    start, end : int or None
        Character offsets into the answer. None: the judge worded it so that it cannot be located.
    support : {'supported', 'contradicted', 'unsupported'}
        By the passages the model saw.
    evidence : sequence of Evidence
        Quotes that were looked up and found.
    probability : float or None
        P(supported), where the judge gives one.
    correct : bool or None
        Whether the reference answer agrees. None: not judged, or the reference is silent.
    note : str or None
        Why a judge's word was not taken, say for a quote that is in no passage.
    """

    text: str
    start: int | None = None
    end: int | None = None
    support: Support
    evidence: tuple[Evidence, ...] = ()
    probability: Share | None = None
    correct: bool | None = None
    note: str | None = None


class PromptRef(Noun):
    """Which prompt was asked: its name, version and the SHA-256 of its file."""

    name: str
    version: int
    sha256: str


class Verdict(Noun):
    """What a judge said of one metric of one case.

    Parameters
    ----------
    case_id, metric : str
    status : {'scored', 'skipped', 'failed'}
        Skipped: there was nothing to judge. Failed: the judge gave nothing usable.
    value : float or None
        In [0, 1]; None unless scored, and ``reason`` then says why.
    label : bool or None
        The verdict as good (faithful, relevant, correct) or bad. None: no value.
    probability : float or None
        P(good label), where the judge gives one.
    claims : sequence of Claim
    passages : mapping of str to float or None
        What was said of each passage, by id, where the metric is about passages. None: nothing.
    parts : mapping of str to float or None
        What the value is made of, such as precision and recall; each in [0, 1].
    judge : str
    prompt : PromptRef or None
    usage, raw
        What the reply cost, and its text. One reply serves several metrics: they stand on the
        first of them (the text on every failed one too), so that sums count a reply once.
    """

    case_id: str
    metric: str
    status: Status
    value: Share | None = None
    label: bool | None = None
    probability: Share | None = None
    claims: tuple[Claim, ...] = ()
    passages: dict[str, Share | None] = {}
    parts: dict[str, Share | None] = {}
    reason: str | None = None
    judge: str
    prompt: PromptRef | None = None
    usage: Usage | None = None
    raw: str | None = None

    @model_validator(mode="after")
    def _value_goes_with_status(self) -> Verdict:
        if (self.status == "scored") != (self.value is not None):
            raise ValueError("a verdict has a value exactly when its status is 'scored'")
        if self.status != "scored" and not self.reason:
            raise ValueError("a verdict without a value needs a reason")
        return self


class Missed(Noun):
    """A needed passage that did not reach the prompt.

    ``true_rank`` is its rank when the retriever is asked deeper; None: not within ``depth`` (or
    not asked, then ``depth`` is None too). Where relevance was given as evidence and no passage
    that carries it is known, ``passage_id`` is 'evidence-N', N counting from 1.
    """

    passage_id: str
    grade: Grade = 1
    true_rank: int | None = None
    subtype: (
        Literal[
            "not_indexed",
            "dropped_before_prompt",
            "below_cutoff",
            "ranking",
            "vocabulary_mismatch",
            "domain_mismatch",
            "split_evidence",
        ]
        | None
    ) = None
    depth: int | None = None
    score: float | None = None
    evidence: str | None = None
    text: str | None = None


class ClaimLink(Noun):
    """An unfaithful claim held against the missed passage it needed.

    ``index`` is the claim's place in the faithfulness verdict, from 0; ``quote`` the sentence of
    the missed passage nearest to it; ``by`` the judge that said so.
    """

    index: int
    passage_id: str
    relation: Literal["would_support", "would_contradict", "unrelated"]
    true_rank: int | None = None
    quote: str | None = None
    by: str = "embedded"


class Link(Noun):
    """Why a case failed: the retrieval outcome, the answer outcome, and the cause.

    ``retrieval`` is 'unknown' where what was retrieved was not seen.
    """

    case_id: str
    retrieval: Literal["hit", "partial", "miss", "none_needed", "unknown"]
    answer: Literal["faithful", "unfaithful", "abstained", "unknown"]
    correct: bool | None = None
    cause: Cause
    contributing: tuple[Cause, ...] = ()
    reason: str
    missed: tuple[Missed, ...] = ()
    claims: tuple[ClaimLink, ...] = ()
    basis: Literal["observed", "replayed"] = "observed"


class Estimate(Noun):
    """A number fit to be read: its value, a 95 % interval, what it rests on and how.

    ``value``, ``low`` and ``high`` are None together, and ``reason`` then says why. An end that
    is not bounded (a risk ratio over an empty cell) is None with a reason, the value standing.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int = Field(ge=0)
    method: str
    reason: str | None = None

    @model_validator(mode="after")
    def _missing_says_why(self) -> Estimate:
        if (self.value is None or self.low is None or self.high is None) and not self.reason:
            raise ValueError("an estimate without a value or an end needs a reason")
        return self

    @classmethod
    def missing(cls, reason: str, *, n: int = 0, method: str = "none") -> Estimate:
        """An estimate that could not be computed."""
        return cls(value=None, low=None, high=None, n=n, method=method, reason=reason)


class Run(Noun):
    """Everything one evaluation found; it round-trips through its folder without loss."""

    manifest: dict[str, JsonValue]
    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    verdicts: tuple[Verdict, ...]
    links: tuple[Link, ...]
    summary: dict[str, JsonValue]

    def html(self, path: str | Path) -> Path:
        """Write the report, a single self-contained page, and return its path."""
        write: Any = exporters.get("html")
        written: Path = write(self, Path(path))
        return written
