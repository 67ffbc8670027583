"""Every error that misslink raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class MisslinkError(Exception):
    """A mistake or an outage that the user can act on: one sentence, never a traceback."""

    exit_code = 2


class InputError(MisslinkError):
    """Something given to misslink is wrong.

    Parameters
    ----------
    problem : str
        What is wrong and what to do about it, as one sentence.
    path : str or None
        The file it was found in.
    line : int or None
        The line of that file, counted from 1.
    field : str or None
        The field of that line.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: object = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        place = "" if path is None else str(path)
        if line is not None:
            place += f", line {line}" if place else f"line {line}"
        if field is not None:
            place += f", field '{field}'" if place else f"field '{field}'"
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.field = field


class MissingExtraError(InputError):
    """An optional package is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed: run  pip install 'misslink[{extra}]'")
        self.extra = extra


class JudgeUnreachableError(MisslinkError):
    """The judge refuses every request, or its address does not respond."""

    exit_code = 3


class AppUnreachableError(MisslinkError):
    """The app under test answers no question at all."""

    exit_code = 3


class EngineUnreachableError(MisslinkError):
    """The cluster cannot be reached, or gives no worker."""

    exit_code = 3


def did_you_mean(
    name: str, known: Iterable[str], *, most: int = 1, written: Callable[[str], str] = str
) -> str:
    """Return the question whether the nearest of the known names was meant, or nothing.

    Parameters
    ----------
    name : str
        The unknown name.
    known : iterable of str
        The known names; may be empty.
    most : int
        How many names are offered, at least 1.
    written : callable
        How a known name is formatted.

    >>> did_you_mean("opanai", ["heuristic", "openai"])
    "did you mean 'openai'?"
    """
    near = difflib.get_close_matches(name, list(known), n=most)
    return f"did you mean {' or '.join(repr(written(each)) for each in near)}?" if near else ""


def known_names(name: str, known: Iterable[str], noun: str = "") -> str:
    """Return `did_you_mean` and all known names, for the end of a message.

    >>> known_names("opanai", ["heuristic", "openai"])
    "did you mean 'openai'? Known: heuristic, openai"
    >>> known_names("md", ["html", "markdown"])
    "did you mean 'markdown'? Known: html, markdown"
    """
    names = list(known)
    hint = did_you_mean(name, names) or _abbreviation_hint(name, names)
    return f"{f'{hint} Known' if hint else 'known'}{noun}: {', '.join(names)}"


def _abbreviation_hint(name: str, known: Iterable[str]) -> str:
    """Return the question whether `name` stands for a known name: its first letter and more."""
    short = name.casefold()
    for whole in known:
        rest = iter(whole.casefold())
        if len(short) > 1 and short[0] == whole[:1].casefold() and all(x in rest for x in short):
            return f"did you mean {whole!r}?"
    return ""
