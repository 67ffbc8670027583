"""A judge of one's own in one file: ``path/to/judge.py:name`` or ``package.module:name``."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.importing import attribute_of, import_target, with_article
from misslink.judging.protocol import Ask, Judge, Reply

__all__ = ["OwnJudge", "is_own", "load_judge"]

_PARTS = ("name", "identity", "ask", "close")
_FILE = re.compile(r"(?P<target>.+\.py)(?::(?P<name>.*))?", re.DOTALL)
_MODULE = re.compile(r"(?P<target>[^\W\d]\w*(?:\.[^\W\d]\w*)+):(?P<name>.*)", re.DOTALL)


def is_own(spec: str) -> bool:
    """Whether `spec` names a judge in a file or module, and no registered one.

    A file ends with ``.py``, a module has a dot in it; no registered judge's name has either.
    """
    return _split(spec) is not None


def load_judge(spec: str, options: Mapping[str, Any] | None = None) -> Judge:
    """Import a judge of somebody's own.

    Parameters
    ----------
    spec : str
        ``path/to/judge.py:name`` or ``package.module:name``, from the working folder. The name is
        a judge, or a class or function that makes one.
    options : mapping or None
        Such as ``temperature``, for a class or function that has a parameter of that name.

    Returns
    -------
    Judge
        Whose identity holds the SHA-256 of its file, so that replies of other code are not taken
        for its own. A change in a module that the file imports does not show there.

    Raises
    ------
    InputError
        There is no such file or name, it cannot be imported, or it is no judge; or an option is
        given that it does not take.
    """
    found = _split(spec)
    target, name = found if found is not None else ("", "")
    if not (target and name):
        raise InputError(
            f"'{spec}' does not name a judge; write  path/to/judge.py:name  or  package.module:name"
        )
    module = import_target(target, Path.cwd())
    thing = attribute_of(module, name, target)
    judge = _made(thing, spec, options or {})
    _check(judge, spec)
    source = getattr(module, "__file__", None)
    content = Path(source).read_bytes() if source else b""
    return OwnJudge(judge, spec, hashlib.sha256(content).hexdigest())


class OwnJudge:
    """A judge of somebody's own, known by the content of its file too.

    Parameters
    ----------
    judge : Judge
    spec : str
        How it was named, for messages.
    sha256 : str
        Of its file.
    """

    def __init__(self, judge: Judge, spec: str, sha256: str) -> None:
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = {**judge.identity, "file_sha256": sha256}
        self.note: str | None = getattr(judge, "note", None)
        self._spec = spec

    async def ask(self, ask: Ask) -> Reply:
        """Answer, as the judge does.

        Raises
        ------
        InputError
            What it returns is no Reply.
        """
        reply = await self.judge.ask(ask)
        if not isinstance(reply, Reply):
            raise InputError(
                f"the judge {self._spec} returned {type(reply).__name__}; its ask must return a "
                "misslink.judging.protocol.Reply"
            )
        return reply

    async def close(self) -> None:
        """Close the judge."""
        await self.judge.close()


def _split(spec: str) -> tuple[str, str] | None:
    match = _FILE.fullmatch(spec.strip()) or _MODULE.fullmatch(spec.strip())
    return match and (match["target"], (match["name"] or "").strip())


def _made(thing: Any, spec: str, options: Mapping[str, Any]) -> Any:
    """The judge that `thing` is or makes."""
    is_judge = not inspect.isclass(thing) and hasattr(thing, "ask")
    if is_judge or not callable(thing):
        if options:
            raise InputError(f"the judge {spec} has no {', '.join(options)}; leave it out")
        return thing
    taken: Mapping[str, inspect.Parameter]
    try:
        taken = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # a builtin without a signature: the call itself will tell
        taken = {}
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    foreign = [option for option in options if not takes_all and option not in taken]
    if foreign:
        raise InputError(f"the judge {spec} has no {', '.join(foreign)}; leave it out")
    try:
        return thing(**options)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{spec} made no judge: {type(error).__name__}: {error}; it is called without "
            "arguments beside the options given"
        ) from error


def _check(judge: Any, spec: str) -> None:
    lacking = [part for part in _PARTS if not hasattr(judge, part)]
    if lacking:
        raise InputError(
            f"{spec} is {with_article(type(judge).__name__)} and no judge, it lacks "
            f"{', '.join(lacking)}; see misslink.judging.protocol.Judge"
        )
    for part in ("ask", "close"):
        if not inspect.iscoroutinefunction(getattr(judge, part)):
            raise InputError(f"{spec}: its {part} must be a function declared with  async def")
    if not isinstance(judge.name, str) or not judge.name.strip():
        raise InputError(f"{spec}: its name must be a text that is not empty")
    try:
        json.dumps(dict(judge.identity), sort_keys=True)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"{spec}: its identity must be a mapping of JSON values, such as "
            f'{{"model": "mine", "version": 1}} ({problem})'
        ) from None
