"""A run's label folder: the labeling plan, one journal per annotator, and label weights."""

from __future__ import annotations

import hashlib
import json
import logging
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    Strict,
    StrictBool,
    StrictInt,
    TypeAdapter,
    ValidationError,
)

from misslink.errors import InputError
from misslink.io.atomic import atomic_write
from misslink.io.manifest import answer_hash
from misslink.io.run_folder import read_json_object, read_run
from misslink.parts import by_case
from misslink.text.normalization import drop_invisible, valid_text
from misslink.types import Claim, Passage, Run, Trace

PLAN_FILE = "plan.json"
_PLAN_HINT = "delete it, and run  misslink annotate  again: the labels stay"


@dataclass(frozen=True)
class PlanStratum:
    """Cases among which those to label are drawn at random.

    Parameters
    ----------
    name : str
        What its cases have in common, for people.
    level : int
        Its place on the judge's scale, from 0; strata of one level differ by category.
    size : int
        How many cases it has.
    rate : float
        How often it is drawn from, as a multiple of what its size alone would earn it.
    """

    name: str
    level: int
    size: int
    rate: float = 1.0


@dataclass(frozen=True)
class PlanCase:
    """A case in the order of labelling.

    Parameters
    ----------
    case_id : str
    stratum : int
        Its place among the strata, from 0.
    metrics : tuple of str
        To label.
    """

    case_id: str
    stratum: int
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class LabelPlan:
    """An order of cases; every beginning of it is a stratified random sample.

    Parameters
    ----------
    cases : tuple of Planned
        In the order in which they are labelled. Within a stratum that is a random order.
    strata : tuple of Stratum
        By level, then by category.
    seed : int
    random_share : float
        In [0, 1]: the share of labels that goes to the strata by their size alone.
    by : str or None
        The metric whose score the strata go by. None: there was none.
    threshold : float or None
        The judge's own cut of that score.
    """

    cases: tuple[PlanCase, ...]
    strata: tuple[PlanStratum, ...]
    seed: int
    random_share: float
    by: str | None = None
    threshold: float | None = None

    def weights(self, metric: str, labelled: Collection[str]) -> dict[str, float]:
        """One over the chance with which each labelled case was drawn.

        Parameters
        ----------
        metric : str
        labelled : collection of str
            Ids of the cases that have a label of it; others than the planned do not count.

        Returns
        -------
        dict of str to float
            By case, those without a label of it included: cases of the stratum over labelled ones
            among them. A stratum without any counts with the nearest that has one. The weights of
            the labelled cases add up to the number of cases, and are {} where nothing is labelled.
        """
        cases = [case for case in self.cases if metric in case.metrics]
        sizes, counts = [0] * len(self.strata), [0] * len(self.strata)
        for case in cases:
            sizes[case.stratum] += 1
            counts[case.stratum] += case.case_id in labelled
        labelled_strata = [place for place, n in enumerate(counts) if n]
        if not labelled_strata:
            return {}

        def nearest(place: int) -> int:
            level = self.strata[place].level
            return min(
                labelled_strata,
                key=lambda other: (abs(self.strata[other].level - level), abs(other - place)),
            )

        merged_into = [nearest(place) for place in range(len(self.strata))]
        merged = dict.fromkeys(labelled_strata, 0)
        for place, size in enumerate(sizes):
            merged[merged_into[place]] += size
        return {
            case.case_id: merged[merged_into[case.stratum]] / counts[merged_into[case.stratum]]
            for case in cases
        }


def read_label_plan(folder: Path) -> LabelPlan | None:
    """Read the plan of a folder of labels; None where there is none.

    Raises
    ------
    InputError
        It is damaged.
    """
    path = folder / PLAN_FILE
    if not path.exists():
        return None
    data = read_json_object(path)
    try:
        plan = TypeAdapter(LabelPlan).validate_python(data)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        field = ".".join(map(str, error["loc"]))
        raise InputError(f"{error['msg']}; {_PLAN_HINT}", path=path, field=field) from None
    if any(not 0 <= case.stratum < len(plan.strata) for case in plan.cases):
        raise InputError(f"a case is of a stratum that there is not; {_PLAN_HINT}", path=path)
    return plan


def write_label_plan(folder: Path, plan: LabelPlan) -> Path:
    """Write the plan into a folder of labels, whole or not at all."""
    text = json.dumps(asdict(plan), indent=1, ensure_ascii=False, allow_nan=False)
    return atomic_write(text + "\n", folder / PLAN_FILE)


ItemKey = tuple[str, str, int | None]  # a case, a metric, and a claim or None

MAX_NAME_LENGTH = 40
_NAME_SIGNS = frozenset("_-. ")  # in a name besides letters, their marks and digits


def normalize_name(name: str) -> str:
    """Return a name in Unicode's form NFC, in which names are compared and stored."""
    return unicodedata.normalize("NFC", name)


def is_annotator_name(name: str) -> bool:
    """Whether a name may be an annotator's: it is a file's too, and of no other folder.

    Letters and digits of any script, in one way of writing them, with single blanks inside.

    >>> is_annotator_name("ada-2"), is_annotator_name("Zo\u00eb M\u00fcller"), is_annotator_name("\u674e\u96f7")
    (True, True, True)
    >>> is_annotator_name("../ada"), is_annotator_name(".ada"), is_annotator_name("ada "), is_annotator_name("")
    (False, False, False, False)
    """
    if not 1 <= len(name) <= MAX_NAME_LENGTH or name != normalize_name(name):
        return False
    kinds = [unicodedata.category(sign) for sign in name]
    if not (kinds[0][0] == "L" or kinds[0] == "Nd" or name[0] == "_") or name[-1] in ". ":
        return False
    allowed = all(
        kind[0] in "LM" or kind == "Nd" or sign in _NAME_SIGNS
        for kind, sign in zip(kinds, name, strict=True)
    )
    return allowed and "  " not in name and drop_invisible(name) == name


_Count = Annotated[StrictInt, Field(ge=0)]
_ValidText = Annotated[
    str, BeforeValidator(lambda text: valid_text(text) if isinstance(text, str) else text)
]


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal: a label, or another event of one item."""

    # undone: the last label is withdrawn. revealed: the annotator requested the judge's verdict
    # before labelling. shown: the verdict was displayed after the case was labelled.
    event: Literal["label", "undone", "revealed", "shown"]
    case_id: Annotated[_ValidText, Field(min_length=1)]
    metric: Annotated[_ValidText, Field(min_length=1)]
    annotator: str
    claim: _Count | None = None  # index, from 0; None: the whole answer
    # In [0, 1], 1 is good; None: skipped.
    label: Annotated[float, Strict(), Field(ge=0, le=1)] | None = None
    comment: _ValidText = ""
    judge_shown: StrictBool = False  # whether the annotator had seen the judge's verdict
    of: str | None = None  # hash of the labelled content; None: unknown
    answer_hash: str | None = None  # SHA-256 of the labelled answer alone, for readers of the file
    at: str = ""  # ISO 8601
    # From 0 (bad) up. `label` is then 1 for grades from 1, for readers without grades.
    grade: _Count | None = None

    @property
    def item(self) -> ItemKey:
        """What it is about."""
        return self.case_id, self.metric, self.claim

    def line(self) -> str:
        """It as one line of JSON, without its end."""
        fields = {
            name: value
            for name, value in asdict(self).items()
            if value is not None and value is not False and value != ""
        }
        if self.event == "label":
            del fields["event"]
            whole = self.label is not None and self.label.is_integer()
            fields["label"] = round(self.label or 0) if whole else self.label
        return json.dumps({**fields, "at": self.at}, ensure_ascii=False, allow_nan=False)


@cache
def _entry_adapter() -> TypeAdapter[JournalEntry]:
    return TypeAdapter(JournalEntry)  # 20 ms, which most commands need not spend


@dataclass(frozen=True)
class LabelJournal:
    """A journal as it was read.

    Parameters
    ----------
    entries : tuple of Entry
    whole : int
        Bytes up to the end of the last whole line.
    cut : bool
        Whether an incomplete line follows, as a killed process leaves it.
    """

    entries: tuple[JournalEntry, ...]
    whole: int
    cut: bool


def read_journal(path: Path) -> LabelJournal:
    """Read what one person labelled.

    Parameters
    ----------
    path : Path
        `NAME.jsonl`, in which NAME labelled. An empty file is fine.

    Raises
    ------
    InputError
        It cannot be read, or a line other than the last is none of a journal.
    """
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None
    *lines, last_line = raw.split(b"\n")
    annotator, entries = normalize_name(path.stem), []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                entries.append(_parse_entry(line, annotator))
            except ValueError as why:
                raise InputError(
                    f"{why}; fix this line or remove it", path=path, line=number
                ) from None
    cut = False
    if last_line.strip():
        try:
            entries.append(_parse_entry(last_line, annotator))
        except ValueError:
            cut = True
    return LabelJournal(tuple(entries), len(raw) - len(last_line) if cut else len(raw), cut)


def label_history(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """Return the labels that were not taken back, oldest first."""
    labels: list[JournalEntry | None] = []
    places: dict[ItemKey, list[int]] = {}
    for entry in entries:
        if entry.event == "label":
            places.setdefault(entry.item, []).append(len(labels))
            labels.append(entry)
        elif entry.event == "undone" and places.get(entry.item):
            labels[places[entry.item].pop()] = None
    return [entry for entry in labels if entry is not None]


def current_labels(entries: Iterable[JournalEntry]) -> dict[ItemKey, JournalEntry]:
    """Return the label of each item that holds in the end, skipped ones among them."""
    return {entry.item: entry for entry in label_history(entries)}


def _parse_entry(line: bytes, annotator: str) -> JournalEntry:
    """Raise ValueError with what is wrong."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("this is not JSON") from None
    if not isinstance(data, dict):
        raise ValueError("this is not a JSON object")  # noqa: TRY004 (callers catch one)
    if data.get("annotator", annotator) != annotator:
        raise ValueError(f"this label is by another annotator, and the file belongs to {annotator}")
    data = {"event": "label", **data, "annotator": annotator}
    if data["event"] == "label" and "label" not in data:
        raise ValueError("it has no label")
    try:
        return _entry_adapter().validate_python({k: v for k, v in data.items() if v is not None})
    except ValidationError as invalid:
        error = invalid.errors()[0]
        raise ValueError(f"its {'.'.join(map(str, error['loc']))}: {error['msg']}") from None


LABELS_FOLDER = "labels"  # of a run
_CLAIM_METRIC = "faithfulness"  # the metric whose claims can be labelled
_REFERENCE_METRIC = "correctness"  # the metric that goes by the reference answers
_HASH_DIGITS = 16  # of the hash of what was labelled
_log = logging.getLogger(__name__)


# With one over the chance of being drawn, and what it was drawn from.
WeightedLabel = tuple[JournalEntry, float | None, str | None]


class ShownContent:
    """What a person saw who labelled an item of a run, as a hash.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        k = run.manifest.get("k")
        self._k = k if isinstance(k, int) and k > 0 else None
        self._cases = by_case(run.cases)
        self._traces = by_case(run.traces)
        self._claims = by_case(run.verdicts_of(_CLAIM_METRIC))

    def passages(self, trace: Trace) -> tuple[Passage, ...]:
        """Return the known passages that an answer was written from."""
        return trace.context(len(trace.retrieved) if self._k is None else self._k)

    def claims(self, case_id: str) -> tuple[Claim, ...]:
        """The claims that the judge found in an answer."""
        verdict = self._claims.get(case_id)
        return verdict.claims if verdict else ()

    def answer_hash(self, case_id: str) -> str | None:
        """Return the hash of a case's answer; None where it has none."""
        trace = self._traces.get(case_id)
        return None if trace is None or trace.answer is None else answer_hash(trace.answer)

    def content_hash(self, case_id: str, metric: str, claim: int | None) -> str | None:
        """Return the hash of what an item shows: None where the run has no such item any more."""
        case, trace = self._cases.get(case_id), self._traces.get(case_id)
        if case is None or trace is None or not (trace.answer or "").strip():
            return None
        claims = self.claims(case_id)
        if claim is not None and (metric != _CLAIM_METRIC or claim >= len(claims)):
            return None
        shown: dict[str, object] = {"answer": trace.answer, "question": case.question}
        if case.history:  # a case without one has the hash that older labels have
            shown["history"] = [message.model_dump() for message in case.history]
            shown["standalone_question"] = case.standalone_question
        if claim is not None:
            shown["claim"] = claims[claim].text
        if metric == _REFERENCE_METRIC:
            shown["references"] = list(case.references)
        elif metric != "answer_relevance":  # which is of the question and the answer alone
            shown["passages"] = [passage.text for passage in self.passages(trace)]
        digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode())
        return digest.hexdigest()[:_HASH_DIGITS]


def journal_files(folder: Path) -> dict[str, Path]:
    """Return each annotator's file, by name."""
    paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    names = {
        normalize_name(path.stem): path for path in paths if path.is_file()
    }  # some disks decompose
    return {name: path for name, path in names.items() if is_annotator_name(name)}


def read_label_folder(
    folder: Path, *, only: str | None = None, seen: ShownContent | None = None
) -> tuple[list[WeightedLabel], list[str]]:
    """Read the labels that `misslink annotate` writes.

    Parameters
    ----------
    folder : Path
    only : str or None
        Return the labels of this annotator alone.
    seen : ShownContent or None
        What the run shows; None: read from the run around the folder, if it lies in one.

    Returns
    -------
    labels : list
        The labels that hold, by annotator, with their weights and strata; without what was skipped and
        without labels of answers that the run no longer has.
    notes : list of str
        What a reader must know, a sentence each.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder", path=folder)
    run = folder.resolve().parent
    if seen is None and (run / "manifest.json").is_file():
        seen = ShownContent(read_run(run))
    files, notes = journal_files(folder), list[str]()
    ours = {PLAN_FILE, *(path.name for path in files.values())}
    for path in sorted(folder.iterdir()):
        if path.name not in ours and not path.name.startswith("."):
            notes.append(
                f"{path}: misslink annotate did not write this file, so its labels are not read"
            )
    labels: list[JournalEntry] = []
    for path in files.values():
        journal = read_journal(path)
        if journal.cut:
            notes.append(f"{path}: its last line is cut off, and was not saved; it is left out")
        current = current_labels(journal.entries).values()
        labels += [entry for entry in current if entry.label is not None]
    usable = labels
    if seen is not None:
        shown = [seen.content_hash(*entry.item) for entry in labels]
        pairs = zip(labels, shown, strict=True)
        usable = [
            # A label of before has the hash of all that was shown, and this is its answer.
            replace(entry, answer_hash=seen.answer_hash(entry.case_id)) if entry.of else entry
            for entry, now in pairs
            if now is not None and entry.of in {None, now}
        ]
    if changed := len(labels) - len(usable):
        notes.append(
            f"{folder}: labels left out since the run no longer has their answers: {changed}; "
            "misslink annotate asks for them again"
        )
    plan = read_label_plan(folder)
    weights = None if plan is None else _case_weights(plan, usable)
    if usable and weights is None:
        why = "there is no plan.json" if plan is None else "some labels are not of its plan"
        notes.append(f"{folder}: {why}, so all labels count the same")
    strata = {case.case_id: str(case.stratum) for case in plan.cases} if plan and weights else {}
    weighted = [
        (
            entry,
            None if weights is None else weights[entry.case_id, entry.metric],
            strata.get(entry.case_id),
        )
        for entry in usable
        if only is None or entry.annotator == only
    ]
    return weighted, notes


def _case_weights(
    plan: LabelPlan, entries: Iterable[JournalEntry]
) -> Mapping[tuple[str, str], float] | None:
    """The weight of each labelled case of a metric; None where one was not planned."""
    labelled: dict[str, set[str]] = {}
    for entry in entries:
        labelled.setdefault(entry.metric, set()).add(entry.case_id)
    weights: dict[tuple[str, str], float] = {}
    for metric, cases in labelled.items():
        of_case = plan.weights(metric, cases)
        if not cases <= set(of_case):
            return None
        weights |= {(case_id, metric): of_case[case_id] for case_id in cases}
    return weights
