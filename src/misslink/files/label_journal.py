"""What one person labelled, line by line as it was said: a label, one taken back, a look."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from misslink.errors import InputError
from misslink.text import valid_text

__all__ = [
    "Entry", "Item", "Journal", "composed", "history", "is_name", "read_journal", "standing",
]  # fmt: skip

Item = tuple[str, str, int | None]  # a case, a metric, and a claim or None

LONGEST_NAME = 40
_SIGNS = frozenset("_-. ")  # in a name besides letters, their marks and digits
_UNSEEN = re.compile(  # letters and marks that nobody sees: fillers, variation selectors
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_WAY_OUT = "mend this line or take it out"


def composed(name: str) -> str:
    """Return a name in the one way of writing it (NFC) in which it is compared and kept."""
    return unicodedata.normalize("NFC", name)


def is_name(name: str) -> bool:
    """Whether a name may be an annotator's: it is a file's too, and of no other folder.

    Letters and digits of any script, in one way of writing them, with single blanks inside.

    >>> is_name("ada-2"), is_name("Zo\u00eb M\u00fcller"), is_name("\u674e\u96f7")
    (True, True, True)
    >>> is_name("../ada"), is_name(".ada"), is_name("ada "), is_name("")
    (False, False, False, False)
    """
    if not 1 <= len(name) <= LONGEST_NAME or name != composed(name):
        return False
    kinds = [unicodedata.category(sign) for sign in name]
    if not (kinds[0][0] == "L" or kinds[0] == "Nd" or name[0] == "_") or name[-1] in ". ":
        return False
    told = all(
        kind[0] in "LM" or kind == "Nd" or sign in _SIGNS
        for kind, sign in zip(kinds, name, strict=True)
    )
    return told and "  " not in name and _UNSEEN.search(name) is None


@dataclass(frozen=True)
class Entry:
    """One line of a journal.

    Parameters
    ----------
    event : {'label', 'undone', 'revealed', 'shown'}
        A label; the last label of this item taken back; the judge's opinion of it was asked for
        before it was labelled, or was shown once everything of its case was.
    case_id, metric, annotator : str
    claim : int or None
        The claim's place, from 0. None: the whole answer.
    label : float or None
        In [0, 1], 1 is good. None: skipped.
    comment : str
    judge_shown : bool
        Whether the judge's opinion had been seen.
    of : str or None
        Hash of what was labelled. None: not known.
    at : str
        When, as ISO 8601.
    grade : int or None
        Of a label on a scale: 0 is bad, the higher the better; `label` then says whether it is 1
        or more, for whoever reads no grades. None: a label of good or bad, or skipped.
    """

    event: Literal["label", "undone", "revealed", "shown"]
    case_id: str
    metric: str
    annotator: str
    claim: int | None = None
    label: float | None = None
    comment: str = ""
    judge_shown: bool = False
    of: str | None = None
    at: str = ""
    grade: int | None = None

    @property
    def item(self) -> Item:
        """What it is about."""
        return self.case_id, self.metric, self.claim

    def line(self) -> str:
        """It as one line of JSON, without its end."""
        said: dict[str, Any] = {} if self.event == "label" else {"event": self.event}
        said |= {"case_id": self.case_id, "metric": self.metric}
        if self.claim is not None:
            said["claim"] = self.claim
        if self.event == "label":
            whole = self.label is not None and self.label.is_integer()
            said["label"] = int(self.label) if whole and self.label is not None else self.label
        if self.grade is not None:
            said["grade"] = self.grade
        said["annotator"] = self.annotator
        if self.comment:
            said["comment"] = self.comment
        if self.judge_shown:
            said["judge_shown"] = True
        if self.of is not None:
            said["of"] = self.of
        return json.dumps({**said, "at": self.at}, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Journal:
    """A journal as it was read.

    Parameters
    ----------
    entries : tuple of Entry
    whole : int
        Bytes up to the end of the last whole line.
    cut : bool
        Whether half a line stands behind them, as a process leaves it that was killed.
    """

    entries: tuple[Entry, ...]
    whole: int
    cut: bool


def read_journal(path: Path) -> Journal:
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
    *lines, rest = raw.split(b"\n")
    annotator, entries = composed(path.stem), []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                entries.append(_entry(json.loads(line), annotator))
            except (ValueError, RecursionError) as problem:
                why = str(problem) if isinstance(problem, _NoEntryError) else "this is not JSON"
                raise InputError(f"{why}; {_WAY_OUT}", path=path, line=number) from None
    cut = False
    if rest.strip():
        try:
            entries.append(_entry(json.loads(rest), annotator))
        except (ValueError, RecursionError):
            cut = True
    return Journal(tuple(entries), len(raw) - len(rest) if cut else len(raw), cut)


def history(entries: Iterable[Entry]) -> list[Entry]:
    """Return the labels that were not taken back, oldest first."""
    found: list[Entry | None] = []
    places: dict[Item, list[int]] = {}
    for entry in entries:
        if entry.event == "label":
            places.setdefault(entry.item, []).append(len(found))
            found.append(entry)
        elif entry.event == "undone" and places.get(entry.item):
            found[places[entry.item].pop()] = None
    return [entry for entry in found if entry is not None]


def standing(entries: Iterable[Entry]) -> dict[Item, Entry]:
    """Return the label of each item that holds in the end, skipped ones among them."""
    return {entry.item: entry for entry in history(entries)}


class _NoEntryError(ValueError):
    """A line is no line of a journal; the message says why."""


def _entry(data: Any, annotator: str) -> Entry:
    if not isinstance(data, Mapping):
        raise _NoEntryError("this is no JSON object")
    event = data.get("event", "label")
    if event not in {"label", "undone", "revealed", "shown"}:
        raise _NoEntryError("its event is none that misslink annotate writes")
    for name in ("case_id", "metric"):
        if not isinstance(data.get(name), str) or not data[name]:
            raise _NoEntryError(f"its {name} must be a text")
    if data.get("annotator", annotator) != annotator:
        raise _NoEntryError(f"it is another annotator's than {annotator}, whose file this is")
    label, claim = data.get("label"), data.get("claim")
    if event == "label" and "label" not in data:
        raise _NoEntryError("it has no label")
    if label is not None and not _is_share(label):
        raise _NoEntryError("its label must be a number from 0 (bad) to 1 (good), or null")
    if claim is not None and not _is_count(claim):
        raise _NoEntryError("its claim must be 0, 1, 2, ...")
    of, grade = data.get("of"), data.get("grade")
    if grade is not None and not _is_count(grade):
        raise _NoEntryError("its grade must be 0, 1, 2, ...")
    return Entry(
        event=event,
        case_id=valid_text(data["case_id"]),
        metric=valid_text(data["metric"]),
        annotator=annotator,
        claim=claim,
        label=None if label is None else float(label),
        comment=valid_text(str(data.get("comment") or "")),
        judge_shown=data.get("judge_shown") is True,
        of=of if isinstance(of, str) else None,
        at=str(data.get("at") or ""),
        grade=grade,
    )


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= 1


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
