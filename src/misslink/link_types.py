"""Why a case failed: the missed passages, the needs and the failure mode of each case."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, computed_field, model_validator

from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.frozen_model import FrozenModel, Grade, Share

LostAt = Literal["index", "search", "filter", "rank", "prompt", "answer", "data", "unknown"]
MissStatus = Literal["not_retrieved", "not_indexed", "dropped_from_prompt"]
LossStep = Literal[
    "not_searched", "filtered_out", "ranked_low", "dropped_by_grader", "cut_from_prompt"
]
MissType = Literal[
    "split_evidence",
    "filtered_out",
    "duplicate_crowding",
    "below_cutoff",
    "keyword_match",
    "vocabulary_mismatch",
    "domain_mismatch",
    "ranked_low",
]
if TYPE_CHECKING:
    FailureMode = str
else:
    FailureMode = Literal[tuple(FAILURE_MODES)]  # so that a value is checked, and listed once


# The stages, and the reasons in the evidence, that say more than the failure mode they lead to.
STAGE_MODES = {"filter": ("retrieval_miss",), "rank": ("retrieval_miss",)}
REASON_MODES = {
    "passage_cut": "dropped_from_prompt",
    "passage_altered": "dropped_from_prompt",
    "stale_passage": "conflicting_sources",
    "cut_in_index": "not_indexed",
    "answered_nothing": "over_refused",
}


class CompetingPassage(FrozenModel):
    """A passage ranked above a missed one.

    ``score`` is the retriever's own; ``cosine`` that of the question and the passage;
    ``duplicate_of`` is the higher passage that it nearly duplicates.
    """

    passage_id: str
    rank: int = Field(ge=1)
    score: float | None = None
    cosine: float | None = Field(default=None, ge=-1, le=1)
    duplicate_of: str | None = None


class RetrievalMiss(FrozenModel):
    """A relevant passage that did not reach the prompt.

    Parameters
    ----------
    passage_id : str
        'evidence-N', with N from 1, if no known passage holds the evidence.
    true_rank : int or None
        Rank in a deeper search. None: not within ``depth``, or no deeper search.
    bm25_rank : int or None
        Rank by BM25, for the standalone question if one is known, among the passages of the index,
        or of the traces. None: its text is not known.
    status : {'not_retrieved', 'not_indexed', 'dropped_from_prompt'}
        Where the passage was lost.
    lost_at : {'not_searched', 'filtered_out', 'ranked_low', 'dropped_by_grader', 'cut_from_prompt'}
              or None
        The step of the app that lost it. None: not known, or not in the index.
    search : int or None
        Number of the search that returned it, or ranks it best.
    miss_type : str or None
        Why the retriever missed the passage; None unless ``status`` is 'not_retrieved'. ``also``
        lists other types that fit, ``reason`` gives the measurement in one sentence.
    depth : int or None
        Depth of the deeper search. None: no deeper search.
    distance : int or None
        Number of ranks below the cutoff. None without a rank, or if the passage was retrieved.
    score : float or None
        The retriever's score.
    measured : mapping of str to float
        Measurements by name; see `misslink.linking.miss_measurement`.
    above : sequence of CompetingPassage
        Passages ranked above it, best first.
    """

    passage_id: str
    grade: Grade = 1
    true_rank: int | None = None
    bm25_rank: int | None = None
    status: MissStatus = "not_retrieved"
    lost_at: LossStep | None = None
    search: int | None = None
    miss_type: MissType | None = None
    also: tuple[MissType, ...] = ()
    reason: str | None = None
    depth: int | None = None
    distance: int | None = None
    score: float | None = None
    evidence: str | None = None
    text: str | None = None
    measured: dict[str, float] = Field(default_factory=dict)
    above: tuple[CompetingPassage, ...] = ()

    @property
    def kind(self) -> MissStatus | MissType | None:
        """The miss type, or the status of a passage that was lost outside the retriever."""
        return self.miss_type if self.status == "not_retrieved" else self.status

    @property
    def known(self) -> bool:
        """Whether a rank or a text of it is known."""
        return bool(self.true_rank or self.bm25_rank or self.text)

    @property
    def explained(self) -> bool:
        """Whether a measurement tells why it was missed."""
        return bool(self.reason)

    def light(self) -> MissRow:
        """What is held of it where a run is too large to be held whole."""
        return MissRow(
            sys.intern(self.passage_id),
            self.kind,
            self.status,
            self.also,
            self.true_rank,
            self.depth,
            self.known,
            self.explained,
        )


class ClaimLink(FrozenModel):
    """An unfaithful claim compared with the missed passage it needed.

    Parameters
    ----------
    index : int
        Index of the claim in the faithfulness verdict, from 0.
    passage_id, true_rank, distance, score
        Of the passage, as in `RetrievalMiss`.
    relation : {'would_support', 'would_contradict', 'unrelated'}
    quote : str or None
        The sentence of the passage that supports or contradicts the claim.
    probability : float or None
        P(the passage supports the claim), if the judge reports it.
    by : str, the name of the judge
    """

    index: int
    passage_id: str
    relation: Literal["would_support", "would_contradict", "unrelated"]
    true_rank: int | None = None
    distance: int | None = None
    score: float | None = None
    quote: str | None = None
    probability: Share | None = None
    by: str = "heuristic"


class Search(FrozenModel):
    """One search of a case, from 1 in their order, by a tool or retriever.

    ``passages`` is how many it returned, ``missing`` how many relevant ones were missing before it,
    ``found`` those of them that it returned, ``recall`` their share (None: nothing was missing).
    """

    number: int = Field(ge=1)
    query: str
    tool: str = ""
    passages: int = 0
    missing: int = 0
    found: tuple[str, ...] = ()
    recall: Share | None = None


class FailureEvidence(FrozenModel):
    """What a failure mode rests on; ``claim`` is its index in the faithfulness verdict, from 0.

    ``turn`` is the earlier turn whose prompt had the passage, ``query`` what the app searched for,
    ``lost_at`` and ``search`` are those of the passage, as in `RetrievalMiss`.
    """

    failure: FailureMode
    claim: int | None = None
    passage_id: str | None = None
    quote: str | None = None
    reason_code: str
    turn: int | None = None
    query: str | None = None
    lost_at: LossStep | None = None
    search: int | None = None


class Need(FrozenModel):
    """One fact that a right answer has to have, and where it was lost.

    Parameters
    ----------
    text : str
        A claim of the reference, the labelled evidence, or the question.
    source : {'reference', 'label', 'question'}
    lost_at : str or None
        The first stage at which it is gone, whatever the answer says. Unknown: not located. None:
        it was in the prompt, and the answer states it.
    stated : {'states', 'contradicts', 'omits'} or None
        What the answer does with it. None: not judged.
    passage_id, true_rank
        The passage that holds it, and its rank in a deeper search. None: not known.
    by : {'judge', 'matcher', 'label'} or None
        Who says where it is. None: not located.
    """

    text: str
    source: Literal["reference", "label", "question"]
    lost_at: LostAt | None = None
    stated: Literal["states", "contradicts", "omits"] | None = None
    passage_id: str | None = None
    true_rank: int | None = None
    by: Literal["judge", "matcher", "label"] | None = None

    @property
    def length(self) -> int:
        """Characters of its text."""
        return len(self.text)

    def light(self) -> NeedState:
        """What is held of it where a run is too large to be held whole."""
        passage_id = self.passage_id and sys.intern(self.passage_id)
        return NeedState(self.source, self.lost_at, passage_id, self.by, self.length)


class NeedState(NamedTuple):
    """What statistics read of a need."""

    source: str
    lost_at: LostAt | None
    passage_id: str | None
    by: str | None
    length: int


class MissRow(NamedTuple):
    """What statistics read of a missed passage."""

    passage_id: str
    kind: MissStatus | MissType | None
    status: MissStatus
    also: tuple[MissType, ...]
    true_rank: int | None
    depth: int | None
    known: bool
    explained: bool


class LinkRow(NamedTuple):
    """What statistics read of a link: its outcomes, needs and misses, without their texts."""

    case_id: str
    retrieval: str
    sufficient_judge: str
    answer: str
    correct: bool | None
    complete: bool | None
    failure: FailureMode | None
    unexplained: bool
    basis: str
    owner: str | None
    failed: bool | None
    loss: str
    needs: tuple[NeedState, ...]
    missed: tuple[MissRow, ...]
    accused: tuple[FailureMode, ...]


class Link(FrozenModel):
    """Why a case failed, who fixes it, and what shows it.

    Parameters
    ----------
    retrieval : {'hit', 'partial', 'miss', 'unlabelled', 'not_needed', 'unknown'}
        By labels: all, some or none of the relevant passages reached the prompt.
    sufficient : {'yes', 'partly', 'no', 'unknown'}
        Whether the prompt held the answer: by the labels, else the judge, else the reference.
    sufficient_judge : {'yes', 'partly', 'no', 'unknown'}
        The judge's verdict.
    answer : {'faithful', 'unfaithful', 'declined', 'unknown'}
    failure : str or None
        The primary failure mode, 'passed' or 'inconclusive'; None: the answer was not judged.
    correct, complete : bool or None
    unexplained : bool
        The answer failed, and ``failure`` is 'inconclusive', as the cause is not known.
    also, notes : sequence of str
        Further failure modes; notes on a passed case.
    needs : sequence of Need
        Where each fact that a right answer has to have was lost; the owner follows from it.
    reason : str
        The evidence of the primary mode in one sentence; ``reasons`` has one for each.
    searches : sequence of Search
    basis : {'observed', 'inferred', 'replayed'}
        Inferred: by a reference or a search, not labels. Replayed: a replay confirmed it.
    """

    case_id: str
    retrieval: Literal["hit", "partial", "miss", "unlabelled", "not_needed", "unknown"]
    sufficient: Literal["yes", "partly", "no", "unknown"] = "unknown"
    sufficient_judge: Literal["yes", "partly", "no", "unknown"] = "unknown"
    answer: Literal["faithful", "unfaithful", "declined", "unknown"]
    correct: bool | None = None
    complete: bool | None = None
    failure: FailureMode | None
    unexplained: bool = False
    also: tuple[FailureMode, ...] = ()
    notes: tuple[FailureMode, ...] = ()
    needs: tuple[Need, ...] = ()
    evidence: tuple[FailureEvidence, ...] = ()
    reason: str
    reasons: dict[FailureMode, str] = Field(default_factory=dict)
    missed: tuple[RetrievalMiss, ...] = ()
    claims: tuple[ClaimLink, ...] = ()
    searches: tuple[Search, ...] = ()
    basis: Literal["observed", "inferred", "replayed"] = "observed"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def owner(self) -> str | None:
        """Who can fix it: retriever, index, prompt, generator, gold_set, judge, none; None: not known."""
        return None if self.failure is None else FAILURE_MODES[self.failure].owner

    @computed_field  # type: ignore[prop-decorator]
    @property
    def failed(self) -> bool | None:
        """Whether the answer failed, also where the cause is not known; None: not decided."""
        if self.unexplained or self.failure in FAILURES:
            return True
        return None if self.failure in (None, "inconclusive") else False

    @property
    def loss(self) -> str:
        """The stage or the reason of a loss, where the owner rests on one; else the mode."""
        stages = (need.lost_at for need in self.needs if need.true_rank or need.lost_at != "rank")
        fits = (stage for stage in stages if stage and self.failure in STAGE_MODES.get(stage, ()))
        reasons = (item.reason_code.removesuffix("_for_claim") for item in self.evidence)
        told = (code for code in reasons if REASON_MODES.get(code) == self.failure)
        return next(fits, None) or next(told, self.failure or "inconclusive")

    @property
    def accused(self) -> tuple[FailureMode, ...]:
        """The modes for which the evidence names a passage."""
        return tuple(
            dict.fromkeys(item.failure for item in self.evidence if item.passage_id is not None)
        )

    def light(self) -> LinkRow:
        """What is held of it where a run is too large to be held whole."""
        return LinkRow(
            sys.intern(self.case_id),
            self.retrieval,
            self.sufficient_judge,
            self.answer,
            self.correct,
            self.complete,
            self.failure,
            self.unexplained,
            self.basis,
            self.owner,
            self.failed,
            sys.intern(self.loss),
            tuple(need.light() for need in self.needs),
            tuple(miss.light() for miss in self.missed),
            self.accused,
        )

    @model_validator(mode="before")
    @classmethod
    def _check_written(cls, data: Any) -> Any:
        """Drop the computed fields of a link that was written as JSON."""
        if not isinstance(data, dict):
            return data
        if data.get("unexplained") and data.get("failure") != "inconclusive":
            raise ValueError("'unexplained' belongs to the failure mode 'inconclusive' alone")
        return {key: value for key, value in data.items() if key not in ("owner", "failed")}
