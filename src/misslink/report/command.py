"""The command that evaluates one case of a run again, into a folder of its own."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import text_in

__all__ = ["Command", "one_case", "quoted"]

_EVALUATE = ("misslink", "evaluate")
_WITH_VALUE = ("--out", "--case")
_ALONE = ("--overwrite", "--json", "--dry-run")
# Of a run that another command made: what its manifest tells, by the option that sets it.
_TOLD = ("judge", "k", "depth", "id_key", "input_key", "embedding", "seed")


@dataclass(frozen=True)
class Command:
    """``head`` is followed by ``--case=ID``, then by ``--out`` with ``out`` and the case's number.

    Where no command can do it both are "", and ``reason`` says why.
    """

    head: str
    out: str
    reason: str = ""


def one_case(manifest: Mapping[str, JsonValue], folder: str = "") -> Command:
    """Build the command from the one that the run was made by, else from what its manifest tells.

    Parameters
    ----------
    manifest : mapping
        Anybody's: every word is quoted for a shell anew.
    folder : str
        The run folder, where known.

    Examples
    --------
    >>> one_case({"command": "misslink evaluate a.py:app --goldset g.jsonl --out reports/a"})
    Command(head='misslink evaluate a.py:app --goldset g.jsonl', out='reports/a-case-', reason='')
    """
    try:
        words = shlex.split(text_in(manifest, "command"))
    except ValueError:
        words = []
    out = folder
    if tuple(words[:2]) == _EVALUATE:
        out = _given(words, "--out") or folder
        words = list(_kept(words))
    else:
        words = _told(manifest)
    if not words:
        return Command("", "", "it was started from Python, on objects that no command can name")
    base = out.rstrip("/") or "reports/one"
    if any(_controls(word) for word in (*words, base)):
        return Command("", "", "its command holds control characters")
    return Command(shlex.join(words), f"{shlex.quote(base)}-case-")


def quoted(case_id: str) -> str | None:
    r"""Quote an id for a shell; None where it holds what is not safe to paste into one.

    Examples
    --------
    >>> quoted("c 7"), quoted("it's"), quoted("\x1b[2J")
    ("'c 7'", '\'it\'"\'"\'s\'', None)
    """
    return None if _controls(case_id) else shlex.quote(case_id)


def _controls(text: str) -> bool:
    """Control characters, line ends, lone surrogates, and what turns the reading direction."""
    return any(unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in text)


def _given(words: Sequence[str], option: str) -> str:
    found = ""
    for at, word in enumerate(words):
        if word == option and at + 1 < len(words):
            found = words[at + 1]
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found


def _kept(words: Sequence[str]) -> Iterator[str]:
    """The words without those that say what is evaluated, where it goes, and how it is told."""
    skip = False
    for word in words:
        if skip or word in _WITH_VALUE or word in _ALONE:
            skip = not skip and word in _WITH_VALUE
        elif not word.startswith(tuple(f"{option}=" for option in _WITH_VALUE)):
            yield word


def _told(manifest: Mapping[str, JsonValue]) -> list[str]:
    """The same from a manifest; nothing where the app or the gold set is no file."""
    app, traces = text_in(manifest, "app"), text_in(manifest, "traces")
    goldset = text_in(manifest, "goldset")
    if not re.search(r"\.\w+$", goldset) or not (traces or ":" in app):
        return []
    words = [*_EVALUATE, *(["--traces", traces] if traces else [app]), "--goldset", goldset]
    for name in _TOLD:
        value = manifest.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words
