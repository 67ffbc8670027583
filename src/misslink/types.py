"""The nouns of misslink: what a gold set, a trace, a verdict, a link and a run are.

All are pydantic models, frozen and closed (an unknown field is an error). A value that does
not exist is ``None`` with a status and a reason beside it, never 0 and never NaN.
"""

from __future__ import annotations

import datetime as dt
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

from misslink import lenient
from misslink.registry import exporters

__all__ = [
    "FORMAT",
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
    "Repeats",
    "RetrieverCall",
    "Rival",
    "Run",
    "Status",
    "Subtype",
    "Support",
    "Trace",
    "Usage",
    "Verdict",
]

FORMAT = 1  # of run folders: raised when an older misslink could not read what this one writes

Grade = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Support = Literal["supported", "contradicted", "unsupported"]
Status = Literal["scored", "skipped", "failed"]
Subtype = Literal[
    "not_indexed",
    "dropped_before_prompt",
    "below_cutoff",
    "ranking",
    "vocabulary_mismatch",
    "domain_mismatch",
    "split_evidence",
    "duplicate_crowding",
]
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
    relevant: dict[str, Grade] = Field(default_factory=dict)
    relevant_any: tuple[tuple[str, ...], ...] = ()
    evidence: dict[str, Grade] = Field(default_factory=dict)
    references: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("references", "reference")
    )
    answerable: bool | None = None
    category: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    tier: str | None = None
    asked_at: dt.datetime | dt.date | None = None

    _id_from_content = model_validator(mode="before")(lenient.id_from_content)
    _number_as_id = field_validator("id", mode="before")(lenient.number_as_id)
    _question_has_text = field_validator("question")(lenient.question_has_text)
    _graded = field_validator("relevant", "evidence", mode="before")(lenient.graded)
    _evidence_has_text = field_validator("evidence")(lenient.evidence_has_text)
    _one_or_many = field_validator("references", mode="before")(lenient.one_or_many)
    _sets_of_ids = field_validator("relevant_any", mode="before")(lenient.sets_of_ids)
    _tags_as_text = field_validator("tags", mode="before")(lenient.tags_as_text)

    @property
    def expects_answer(self) -> bool | None:
        """Whether the app ought to answer; a case that lists relevant passages can be answered.

        None where neither ``answerable`` nor any relevant passage says so.
        """
        if self.answerable is not None:
            return self.answerable
        listed = any(self.relevant.values()) or any(self.evidence.values()) or self.relevant_any
        return True if listed else None


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
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


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

    _number_as_id = field_validator("case_id", mode="before")(lenient.number_as_id)

    def context(self, k: int) -> tuple[Passage, ...]:
        """The passages the answer was written from, best first.

        Those that reached the prompt, however many; where the prompt was not seen, the first `k`.
        """
        if self.prompted is None:
            return self.retrieved[:k]
        reached = set(self.prompted)
        return tuple(passage for passage in self.retrieved if passage.id in reached)


class Evidence(Noun):
    """A quote found in a passage; ``start`` and ``end`` are character offsets into its text.

    ``edits`` is how many characters the judge wrote otherwise than the passage, after folding.
    """

    passage_id: str
    quote: str
    start: int | None = None
    end: int | None = None
    edits: int = Field(default=0, ge=0)


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
        P(supported), where the judge gives one and was not overruled.
    correct : bool or None
        Whether the reference answer agrees. None: not judged, or the reference is silent.
    note : str or None
        What a reader must know of it: why the judge's word was not taken, or how it was worded.
    overruled : bool
        Whether the judge's word on its support was not taken, because its quote did not hold: it
        is then unsupported, without a probability.
    """

    text: str
    start: int | None = None
    end: int | None = None
    support: Support
    evidence: tuple[Evidence, ...] = ()
    probability: Share | None = None
    correct: bool | None = None
    note: str | None = None
    overruled: bool = False


class PromptRef(Noun):
    """Which prompt was asked: its name, version and the SHA-256 of its file."""

    name: str
    version: int
    sha256: str


class Repeats(Noun):
    """Several samples of one verdict, in order.

    ``spread`` is the standard deviation (n - 1) of the values, ``flipped`` the share of labels
    that differ from the most frequent one; None where fewer than two samples have one.
    """

    values: tuple[Share | None, ...]
    labels: tuple[bool | None, ...]
    spread: float | None = Field(default=None, ge=0)
    flipped: Share | None = None


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
    repeats : Repeats or None
        The samples, where the judge was asked several times: then ``value``, ``probability`` and
        ``parts`` are means over them, ``label`` the most frequent one (bad on a tie), and the
        rest that of the first sample with that label.
    judge : str
        Who said it; of a cascade the member that did.
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
    passages: dict[str, Share | None] = Field(default_factory=dict)
    parts: dict[str, Share | None] = Field(default_factory=dict)
    repeats: Repeats | None = None
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


class Rival(Noun):
    """A passage that stood above a missed one.

    ``score`` is the retriever's own; ``cosine`` that of the question and the passage;
    ``duplicate_of`` the passage above it that says nearly the same.
    """

    passage_id: str
    rank: int = Field(ge=1)
    score: float | None = None
    cosine: float | None = Field(default=None, ge=-1, le=1)
    duplicate_of: str | None = None


class Missed(Noun):
    """A needed passage that did not reach the prompt.

    Parameters
    ----------
    passage_id : str
        Where relevance was given as evidence and no passage that carries it is known: 'evidence-N',
        N counting from 1.
    grade : int
    true_rank : int or None
        Its rank when the retriever is asked deeper. None: not within ``depth``, or not asked.
    subtype : str or None
        Why it was missed, as far as it was measured; ``also`` are others that fit, ``reason`` the
        measurement behind it in one sentence.
    depth : int or None
        How deep the retriever was asked. None: it was not.
    distance : int or None
        How many ranks it stands behind the last that counts; None without a rank, or where it
        was retrieved.
    score : float or None
        The retriever's own.
    evidence, text : str or None
    measured : mapping of str to float
        What was measured of it, by name; see `misslink.linking.measuring`.
    above : sequence of Rival
        What stood above it, best first.
    """

    passage_id: str
    grade: Grade = 1
    true_rank: int | None = None
    subtype: Subtype | None = None
    also: tuple[Subtype, ...] = ()
    reason: str | None = None
    depth: int | None = None
    distance: int | None = None
    score: float | None = None
    evidence: str | None = None
    text: str | None = None
    measured: dict[str, float] = Field(default_factory=dict)
    above: tuple[Rival, ...] = ()


class ClaimLink(Noun):
    """An unfaithful claim held against the missed passage it needed.

    Parameters
    ----------
    index : int
        The claim's place in the faithfulness verdict, from 0.
    passage_id : str
    relation : {'would_support', 'would_contradict', 'unrelated'}
        What the passage would have said of the claim.
    true_rank, distance, score
        Of the passage, as `Missed` has them.
    quote : str or None
        The sentence of the passage that says so.
    probability : float or None
        P(the passage supports the claim), where the judge gives one.
    by : str
        The judge that said so.
    """

    index: int
    passage_id: str
    relation: Literal["would_support", "would_contradict", "unrelated"]
    true_rank: int | None = None
    distance: int | None = None
    score: float | None = None
    quote: str | None = None
    probability: Share | None = None
    by: str = "embedded"


class Link(Noun):
    """Why a case failed: the retrieval outcome, the answer outcome, and the cause.

    ``retrieval`` is 'unknown' where what was retrieved was not seen. ``reasons`` holds the
    evidence for the primary cause and for every contributing one; ``basis`` is 'replayed' where
    a replay has confirmed the cause.
    """

    case_id: str
    retrieval: Literal["hit", "partial", "miss", "none_needed", "unknown"]
    answer: Literal["faithful", "unfaithful", "abstained", "unknown"]
    correct: bool | None = None
    cause: Cause
    contributing: tuple[Cause, ...] = ()
    reason: str
    reasons: dict[Cause, str] = Field(default_factory=dict)
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
    """Everything one evaluation found; it round-trips through its folder without loss.

    ``replay``, ``whatif`` and ``map`` are the documents that later commands add, or None;
    ``calibration`` is how its judge agrees with human labels, as it was given, and ``audit`` what
    it does when only what must not matter is changed.
    """

    manifest: dict[str, JsonValue]
    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    verdicts: tuple[Verdict, ...]
    links: tuple[Link, ...]
    summary: dict[str, JsonValue]
    replay: dict[str, JsonValue] | None = None
    whatif: dict[str, JsonValue] | None = None
    map: dict[str, JsonValue] | None = None
    calibration: dict[str, JsonValue] | None = None
    audit: dict[str, JsonValue] | None = None

    def html(self, path: str | Path) -> Path:
        """Write the report, a single self-contained page, and return its path."""
        write: Any = exporters.get("html")
        written: Path = write(self, Path(path))
        return written
