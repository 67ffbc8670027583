"""Data models, in the order in which an evaluation makes them.

``Case``, a question of the gold set; ``Trace``, what the app did; ``Verdict``, the judge's result with
its ``Claim``s; ``Link``, why the case failed; ``Run``, all of them. Every printed number is an
``Estimate``. A value that could not be computed is None with a reason, never 0.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    AliasChoices,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_serializer,
    model_validator,
)

from misslink import case_fields
from misslink.case_fields import EvidenceSpan, Message
from misslink.field_markers import Varying
from misslink.frozen_model import FrozenModel, Grade, Reason, Share, share
from misslink.link_types import (
    ClaimLink,
    CompetingPassage,
    FailureEvidence,
    FailureMode,
    Link,
    LinkRow,
    LossStep,
    LostAt,
    MissRow,
    MissStatus,
    MissType,
    Need,
    NeedState,
    RetrievalMiss,
    Search,
)
from misslink.parts import Part, light_items
from misslink.registry import exporters, late_function
from misslink.trace_types import (
    VECTOR_QUERY,
    Observed,
    Passage,
    RetrieverCall,
    Trace,
    TraceRow,
    Usage,
)

__all__ = [
    "RUN_FORMAT",
    "VECTOR_QUERY",
    "Case",
    "Claim",
    "ClaimLink",
    "CompetingPassage",
    "Estimate",
    "Evidence",
    "FailureEvidence",
    "FailureMode",
    "FrozenModel",
    "Grade",
    "Link",
    "LinkRow",
    "LossStep",
    "LostAt",
    "MissRow",
    "MissStatus",
    "MissType",
    "Missed",
    "Need",
    "NeedState",
    "Observed",
    "Outcome",
    "Passage",
    "PromptRef",
    "Reason",
    "Repeats",
    "RetrievalMiss",
    "RetrieverCall",
    "Run",
    "Scored",
    "Search",
    "Share",
    "Status",
    "Support",
    "Trace",
    "TraceRow",
    "Usage",
    "Verdict",
]

RUN_FORMAT = 2  # of run folders; raised when their content changes, and no other format is read

Support = Literal["supported", "contradicted", "unsupported"]
Status = Literal["scored", "skipped", "failed"]


class Case(FrozenModel):
    """One question of the gold set.

    Parameters
    ----------
    id : str
        Unique in its gold set. Default: a hash of the question.
    question : str
        The question for the app. Alias: ``query``.
    relevant : mapping of str to int
        Passage id to grade: 0 judged not relevant, 1 relevant, 2 highly relevant. A list of ids
        or a single id means grade 1.
    relevant_any : sequence of sequences of str
        Alternative sets of passage ids. Each set is sufficient.
    evidence : mapping of str to int
        Verbatim text to grade. A list of texts or a single text means grade 1. If given, relevance
        is decided by the evidence, not by the ids. A list of spans of documents, each with ``id``,
        ``start``, ``end`` and ``quote``, gives its quotes, and ``spans``.
    spans : sequence of EvidenceSpan
        The evidence as spans of documents, written and read as ``evidence``.
    references : sequence of str
        Acceptable answers. Alias: ``reference``, with one text or several.
    answerable : bool or None
        Whether the corpus holds an answer. None: unknown.
    category, tier, group : str or None
        For reports and gates; cases of a ``group`` vary together (None: those that share passages).
    tags : mapping of str to str
        Free-form labels.
    history : sequence of Message
        Earlier messages of the conversation, oldest first, with ``role`` and ``content``.
    standalone_question : str or None
        The question as it can be understood without the history.
    epoch : mapping or None
        Of a promoted case: the judge that named its expected owner. Not written.
    """

    id: str = Field(min_length=1)
    question: str = Field(min_length=1, validation_alias=AliasChoices("question", "query"))
    relevant: dict[str, Grade] = Field(default_factory=dict)
    relevant_any: tuple[tuple[str, ...], ...] = ()
    evidence: dict[str, Grade] = Field(default_factory=dict)
    spans: tuple[EvidenceSpan, ...] = Field(default=(), exclude=True, repr=False)
    references: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("references", "reference")
    )
    answerable: bool | None = None
    category: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    tier: str | None = None
    group: str | None = None
    asked_at: dt.datetime | dt.date | None = None
    history: tuple[Message, ...] = ()
    standalone_question: str | None = None
    epoch: dict[str, JsonValue] | None = Field(default=None, exclude=True, repr=False)

    _id_from_content = model_validator(mode="before")(case_fields.fill_missing_id)
    _spans_as_evidence = model_validator(mode="before")(case_fields.read_spans)
    _number_as_id = field_validator("id", "group", mode="before")(case_fields.read_number_as_id)
    _question_has_text = field_validator("question")(case_fields.check_question_text)
    _graded = field_validator("relevant", "evidence", mode="before")(case_fields.read_grades)
    _evidence_has_text = field_validator("evidence")(case_fields.check_evidence_text)
    _one_or_many = field_validator("references", mode="before")(case_fields.read_one_or_many)
    _spans_apart = field_validator("spans")(case_fields.check_spans)
    _sets_of_ids = field_validator("relevant_any", mode="before")(case_fields.read_id_sets)
    _history_alternates = field_validator("history")(case_fields.check_history)
    _tags_as_text = field_validator("tags", mode="before")(case_fields.read_tags)

    @model_serializer(mode="wrap")
    def _spans_in_place_of_quotes(self, handler: SerializerFunctionWrapHandler) -> Any:
        fields: dict[str, Any] = handler(self)
        if self.spans and "evidence" in fields:
            fields["evidence"] = [span.model_dump(exclude_defaults=True) for span in self.spans]
        return fields

    @property
    def case_id(self) -> str:
        """Its id, by the name that it has in traces, verdicts and links."""
        return self.id

    @property
    def judged_question(self) -> str:
        """The standalone question, or the question where none is given."""
        return self.standalone_question or self.question

    @property
    def asked(self) -> tuple[str, str, tuple[Message, ...]]:
        """What makes it the same question in two gold sets: its texts and the earlier messages."""
        return self.question.strip(), self.judged_question.strip(), self.history

    @property
    def expects_answer(self) -> bool | None:
        """Whether the app ought to answer; a case that lists relevant passages can be answered.

        None where neither ``answerable`` nor any relevant passage says so.
        """
        if self.answerable is not None:
            return self.answerable
        listed = any(self.relevant.values()) or any(self.evidence.values()) or self.relevant_any
        return True if listed else None


class Evidence(FrozenModel):
    """A quote found in a passage; ``start`` and ``end`` are character offsets into its text.

    ``edits`` is how many characters the judge wrote otherwise than the passage, after folding.
    """

    passage_id: str
    quote: str
    start: int | None = None
    end: int | None = None
    edits: int = Field(default=0, ge=0)


class Claim(FrozenModel):
    """One atomic statement of an answer.

    Parameters
    ----------
    text, span : str
        The claim, clear by itself, and its words in the answer.
    start, end : int or None
        Character offsets of the span. None: the judge worded it so that it cannot be located.
    support : {'supported', 'contradicted', 'unsupported'}
        By the passages the model saw.
    evidence : sequence of Evidence
        Quotes that were looked up and found in passages.
    messages : sequence of Evidence
        The same in earlier messages, if no passage decides it; the ids are their numbers, from 1.
    probability : float or None
        P(supported), if the judge gives one and was not overruled.
    correct : bool or None
        Whether the reference answer agrees. None: not judged, or the reference is silent.
    note : str or None
        A remark for readers, such as why the judge was overruled.
    overruled : bool
        Its quote failed the check: the claim is unsupported, without a probability.
    partly, weak : bool
        Unsupported, but a part of it is in the passages; supported by quotes that do not decide it.
    """

    text: str
    span: str | None = None
    start: int | None = None
    end: int | None = None
    support: Support
    evidence: tuple[Evidence, ...] = ()
    messages: tuple[Evidence, ...] = ()
    probability: Share | None = None
    correct: bool | None = None
    note: str | None = None
    overruled: bool = False
    partly: bool = False
    weak: bool = False


class PromptRef(FrozenModel):
    """Identity of a prompt: its name, its version and the SHA-256 of its file."""

    name: str
    version: int
    sha256: str


class Repeats(FrozenModel):
    """Several samples of one verdict, in order.

    ``spread`` is the standard deviation (n - 1) of the values, ``flipped`` the share of labels that
    differ from the most frequent one; None where fewer than two samples have one.
    """

    values: tuple[Share | None, ...]
    labels: tuple[bool | None, ...]
    spread: float | None = Field(default=None, ge=0)
    flipped: Share | None = None


class ClaimState(NamedTuple):
    """What statistics read of a claim."""

    support: Support
    overruled: bool


class ScoreRow(NamedTuple):
    """What statistics read of a verdict: all but texts, its scores of passages and the reply."""

    case_id: str
    metric: str
    status: Status
    value: float | None
    label: bool | None
    probability: float | None
    claims: tuple[ClaimState, ...]
    parts: Mapping[str, float | None]
    repeats: Repeats | None
    reason: str | None
    judge: str
    prompt: PromptRef | None
    usage: Usage | None
    standalone_question: str | None


class Verdict(FrozenModel):
    """The judge's result for one metric of one case.

    Parameters
    ----------
    status : {'scored', 'skipped', 'failed'}
        Skipped: there was nothing to judge. Failed: the judge returned nothing usable.
    value : float or None
        In [0, 1]. None unless scored; ``reason`` then says why.
    label : bool or None, True where it is good (faithful, relevant, correct)
    probability : float or None
        P(good label), if the judge reports it.
    passages : mapping of str to float or None
        Score of each passage by id, for metrics about passages. None: no score.
    parts : mapping of str to float or None
        Components of the value, such as precision and recall; each in [0, 1].
    repeats : Repeats or None
        The samples, if the judge answered several times. ``value``, ``probability`` and ``parts``
        are then means, ``label`` is the most frequent (bad on a tie), and the other fields are
        those of the first sample with that label.
    judge : str
        Name of the judge. In a cascade, the member that decided.
    usage, raw
        Cost and text of the reply. If one reply serves several metrics, only the first has them,
        so that sums count the reply once. Every failed metric has the text.
    standalone_question : str or None
        The question as the judge reads it after the history, with the first metric of a reply.
    """

    case_id: str
    metric: str
    status: Status
    value: Share | None = None
    label: bool | None = None
    probability: Share | None = None
    claims: tuple[Claim, ...] = ()
    passages: dict[str, Share | None] = Field(default_factory=dict)
    parts: dict[str, Share | None] = Field(default_factory=dict)
    repeats: Repeats | None = None
    reason: str | None = None
    judge: str
    prompt: PromptRef | None = None
    usage: Annotated[Usage | None, Varying] = None  # a cached reply costs nothing
    raw: Annotated[str | None, Varying] = None
    standalone_question: str | None = None

    def light(self) -> ScoreRow:
        """What is held of it where a run is too large to be held whole."""
        return ScoreRow(
            sys.intern(self.case_id),
            sys.intern(self.metric),
            share(self.status),
            share(self.value),
            self.label,
            share(self.probability),
            share(tuple(ClaimState(claim.support, claim.overruled) for claim in self.claims)),
            _same_parts(*self.parts.items()),
            self.repeats,
            share(self.reason),
            sys.intern(self.judge),
            share(self.prompt),
            share(self.usage),
            self.standalone_question,
        )

    @model_validator(mode="after")
    def _check_value_and_status(self) -> Verdict:
        if (self.status == "scored") != (self.value is not None):
            raise ValueError("a verdict has a value exactly when its status is 'scored'")
        if self.status != "scored" and not self.reason:
            raise ValueError("a verdict without a value needs a reason")
        return self


class Estimate(FrozenModel):
    """A point estimate with its 95% interval, the number of cases, and the method.

    A number that could not be computed has None for ``value``, ``low`` and ``high``, and a
    ``reason``. So has a single end that is not bounded (a risk ratio over an empty cell).
    """

    value: float | None
    low: float | None
    high: float | None
    n: int = Field(ge=0)
    method: str
    reason: str | None = None
    reason_code: Reason | None = None

    @model_validator(mode="after")
    def _missing_says_why(self) -> Estimate:
        if (self.value is None or self.low is None or self.high is None) and not self.reason:
            raise ValueError("an estimate without a value or an end needs a reason")
        return self

    @classmethod
    def missing(cls, reason: str | Reason, *, n: int = 0, method: str = "none") -> Estimate:
        """An estimate that could not be computed."""
        missing = {"value": None, "low": None, "high": None, "n": n, "method": method}
        code = reason if isinstance(reason, Reason) else None
        return cls(**missing, reason=str(reason), reason_code=code)

    @property
    def why(self) -> str | Reason:
        """Why it has no value or an open end, as another estimate takes it over."""
        return self.reason_code or self.reason or ""

    @classmethod
    def partial(
        cls,
        value: float,
        low: float | None,
        high: float | None,
        reason: Reason,
        *,
        n: int,
        method: str,
    ) -> Estimate:
        """An estimate whose interval may lack an end; `reason` is used only where one is missing."""
        ends: dict[str, Any] = {"value": value, "low": low, "high": high, "n": n, "method": method}
        if low is not None and high is not None:
            return cls(**ends)
        return cls(**ends, reason=str(reason), reason_code=reason)


_same_parts = lru_cache(1 << 14)(lambda *parts: {sys.intern(name): share(x) for name, x in parts})
Scored = Verdict | ScoreRow
Outcome = Link | LinkRow
Missed = RetrievalMiss | MissRow
ItemT = TypeVar("ItemT")


def _keep_part(value: Any, validate: Callable[[Any], Sequence[ItemT]]) -> Sequence[ItemT]:
    """A part of a run folder as it is: its items were validated when it was opened."""
    return value if isinstance(value, Part) else tuple(validate(value))


Items = Annotated[Sequence[ItemT], WrapValidator(_keep_part)]


class Run(FrozenModel):
    """The result of one evaluation; writing and reading its folder loses nothing.

    ``map`` is the embedding map; later commands add the other documents (`misslink.documents`).
    """

    manifest: dict[str, JsonValue]
    cases: Items[Case]
    traces: Items[Trace]
    verdicts: Items[Verdict]
    links: Items[Link]
    summary: dict[str, JsonValue]
    replay: dict[str, JsonValue] | None = None
    whatif: dict[str, JsonValue] | None = None
    map: dict[str, JsonValue] | None = None
    calibration: dict[str, JsonValue] | None = None
    audit: dict[str, JsonValue] | None = None
    selftest: dict[str, JsonValue] | None = None

    @classmethod
    def read(cls, path: str | Path) -> Run:
        """Read a run folder, or the address of one in remote storage, with its labels applied."""
        run = late_function("read_complete_run", Run)(path, anywhere=True)
        return late_function("apply_labels", Run)(run)

    @cached_property
    def metrics(self) -> Mapping[str, Estimate]:
        """The metrics of the run by name, and any other metric that `misslink.gate` takes."""
        return late_function("run_metrics", Mapping[str, Estimate])(self)  # type: ignore[type-abstract]

    @cached_property
    def parsed(self) -> dict[str, Any]:
        """Documents that `misslink.documents` has parsed, by name."""
        return {}

    @property
    def scores(self) -> Sequence[Scored]:
        """The verdicts, each with at least what a `ScoreRow` has."""
        return light_items(self.verdicts)

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """The links, each with at least what a `LinkRow` has."""
        return light_items(self.links)

    def verdicts_of(self, metric: str) -> Sequence[Verdict]:
        """The verdicts of one metric."""
        places = [place for place, score in enumerate(self.scores) if score.metric == metric]
        if isinstance(self.verdicts, Part):
            return self.verdicts.select(places)
        return [self.verdicts[place] for place in places]

    @property
    def headline(self) -> str:
        """How many answers fail and why, in a few sentences."""
        return late_function("describe_run", str)(self)

    def __repr__(self) -> str:
        counts = Counter(str(link.failure) for link in self.outcomes).most_common()
        modes = ", ".join(f"{name} {count}" for name, count in counts)
        judge = self.summary.get("judge") or self.manifest.get("judge")
        return f"Run({len(self.cases)} cases, judge {judge}; {modes or 'not linked'})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """What a notebook shows: failure modes, owners, the first step and a link to the report."""
        return late_function("run_html", str)(self)

    def to_pandas(self) -> Any:
        """Return a DataFrame with one row per case: outcomes, failure mode and judged metrics."""
        return late_function("run_frame", object)(self)

    def html(self, path: str | Path) -> Path:
        """Write the report, a single self-contained page, and return its path."""
        written: Path = exporters.get("html")(self, Path(path))
        return written
