"""Links into the report page, and the command that evaluates one case again."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from urllib.parse import quote

from misslink.documents import Manifest
from misslink.failure_modes import FAILURE_MODES
from misslink.parts import case_ids
from misslink.pipeline.config import EvaluationConfig
from misslink.types import Case

# What the explorer can be narrowed by; several of them combine by AND.
FILTERS = (
    "state",
    "owner",
    "failure",
    "retrieval",
    "answer",
    "correct",
    "lost_at",
    "miss_type",
    "category",
    "tier",
    "tag",
    "metric",
    "people",
    "ids",
    "q",
    "sort",
)
# What the filter "correct" holds for what a link says; "" where it says nothing.
CORRECT_VALUES = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True)
class LinkedCases:
    """How many cases there are of something, and the fragment that shows them, "" where none does."""

    label: str
    cases: int
    fragment: str


def mode_label(failure: str) -> str:
    """The glossary's name of a failure mode."""
    return FAILURE_MODES[failure].label if failure in FAILURE_MODES else failure


def case_fragment(number: int) -> str:
    """The fragment that opens one case, by its place in the gold set, from 1.

    Examples
    --------
    >>> case_fragment(12)
    'case=12'
    """
    return f"case={number}"


def number_cases(cases: Sequence[Case]) -> dict[str, int]:
    """The number of each case, its place in the gold set from 1, by its id."""
    return {case_id: number for number, case_id in enumerate(case_ids(cases), 1)}


def view_fragment(**filters: str | Iterable[int]) -> str:
    """The fragment of the cases that fit all of `filters`; numbers are those of cases.

    Parameters
    ----------
    **filters
        Named as in `FILTERS`; a tag is written ``NAME:VALUE``.

    Raises
    ------
    ValueError
        A filter has another name.

    Examples
    --------
    >>> view_fragment(failure="retrieval_miss", tag="language:de & fr")
    'failure=retrieval_miss&tag=language%3Ade%20%26%20fr'
    >>> view_fragment(ids=[3, 5])
    'ids=3,5'
    """
    if unknown := sorted(set(filters) - set(FILTERS)):
        raise ValueError(f"the explorer has no filter called {', '.join(unknown)}")
    return "&".join(f"{name}={_filter_value(given)}" for name, given in filters.items())


def _filter_value(given: str | Iterable[int]) -> str:
    if isinstance(given, str):
        return quote(given, safe="", errors="replace")  # half a surrogate pair has no UTF-8
    return ",".join(str(number) for number in given)


_EVALUATE = ("misslink", "evaluate")
# The case has its own --case and --out.
_DROPPED_OPTIONS = (
    "--out",
    *(
        field.metadata.get("flag", f"--{field.name.replace('_', '-')}")
        for field in fields(EvaluationConfig)
        if field.metadata.get("decides") == "cases"
    ),
)
_DROPPED_FLAGS = ("--overwrite", "--json", "--dry-run")
# Of a run that another command made: what its manifest tells, by the option that sets it.
_MANIFEST_OPTIONS = (
    *("judge", "k", "depth", "id_key", "input_key", "app_config", "embedding", "seed"),
)


@dataclass(frozen=True)
class CaseCommand:
    """``head`` is followed by ``--case=ID``, then by ``--out`` with ``out`` and the case's number.

    Where no command can do it both are "", and ``reason`` says why. ``annotate`` labels a case.
    """

    head: str
    out: str
    reason: str = ""
    annotate: str = ""


def build_case_command(manifest: Manifest, folder: str = "") -> CaseCommand:
    """Build the command that evaluates one case, from the run's own command or its manifest.

    The manifest is untrusted: every word is quoted for the shell again.

    Examples
    --------
    >>> command = "misslink evaluate a.py:app --goldset g.jsonl --out reports/a"
    >>> build_case_command(Manifest.read({"command": command}))
    CaseCommand(head='misslink evaluate a.py:app --goldset g.jsonl', out='reports/a-case-', reason='', annotate='misslink annotate reports/a')
    """
    try:
        words = shlex.split(manifest.command or "")
    except ValueError:
        words = []
    if tuple(words[:2]) == _EVALUATE:
        folder = _option_value(words, "--out") or folder
        words = list(_reusable_words(words))
    else:
        words = _command_from_manifest(manifest)
    unsafe = _has_control_characters(folder)
    annotate = f"misslink annotate {shlex.quote(folder)}" if folder and not unsafe else ""
    if not words:
        reason = "it was started from Python, on objects that no command can name"
        return CaseCommand("", "", reason, annotate)
    if unsafe or any(map(_has_control_characters, words)):
        return CaseCommand("", "", "its command has control characters", annotate)
    base = folder.rstrip("/") or "reports/one"
    return CaseCommand(shlex.join(words), f"{shlex.quote(base)}-case-", annotate=annotate)


def quote_case_id(case_id: str) -> str | None:
    r"""Quote an id for a shell; None where it holds what is not safe to paste into one.

    Examples
    --------
    >>> quote_case_id("c 7"), quote_case_id("it's"), quote_case_id("\x1b[2J")
    ("'c 7'", '\'it\'"\'"\'s\'', None)
    """
    return None if _has_control_characters(case_id) else shlex.quote(case_id)


def _has_control_characters(text: str) -> bool:
    """Control characters, line ends, lone surrogates, and what turns the reading direction."""
    return any(
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in text
    )


def _option_value(words: Sequence[str], option: str) -> str:
    value = ""
    for position, word in enumerate(words):
        if word == option and position + 1 < len(words):
            value = words[position + 1]
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def _reusable_words(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command except options for cases, output and progress."""
    skip = False
    for word in words:
        if skip or word in _DROPPED_OPTIONS or word in _DROPPED_FLAGS:
            skip = not skip and word in _DROPPED_OPTIONS
        elif not word.startswith(tuple(f"{option}=" for option in _DROPPED_OPTIONS)):
            yield word


def _command_from_manifest(manifest: Manifest) -> list[str]:
    """The same from a manifest; nothing where the app or the gold set is no file."""
    app, traces, goldset = manifest.app or "", manifest.traces, manifest.goldset or ""
    if not re.search(r"\.\w+$", goldset) or not (traces or ":" in app):
        return []
    words = [*_EVALUATE, *(["--traces", traces] if traces else [app]), "--goldset", goldset]
    for name in _MANIFEST_OPTIONS:
        value = getattr(manifest, name, None)
        if value not in (None, ""):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words
