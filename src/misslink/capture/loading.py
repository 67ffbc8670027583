"""An app found by its name: ``package.module:attribute`` or ``path/to/file.py:attribute``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.importing import attribute_of, import_target, with_article

__all__ = ["check_app", "load_app"]


def load_app(spec: str, folder: Path | None = None) -> Any:
    """Import an app.

    Parameters
    ----------
    spec : str
        ``package.module:attribute`` or ``path/to/file.py:attribute``.
    folder : Path or None
        Where paths start and modules are found, as a script finds those beside it; the working
        folder if None.

    Returns
    -------
    Any
        A LangChain Runnable (chain, retriever, agent, compiled graph) or a callable that takes
        the question.

    Raises
    ------
    InputError
        The spec names nothing that imports, or something that is no app.
    """
    home = (folder or Path.cwd()).resolve()
    target, colon, attribute = spec.rpartition(":")
    if not colon or not target or not attribute:
        raise InputError(
            f"'{spec}' does not name an app; write  package.module:attribute  "
            "or  path/to/file.py:attribute"
        )
    found = attribute_of(import_target(target, home), attribute, target)
    check_app(found, spec)
    return found


def check_app(app: Any, name: str = "the app") -> None:
    """Raise InputError, saying what to name instead, where `app` cannot be asked a question."""
    problem = _why_no_app(app)
    if problem:
        raise InputError(f"{name} {problem}")


def _why_no_app(app: Any) -> str | None:
    wanted = "name a Runnable, a retriever, a compiled graph or a function of the question"
    problem = None
    if inspect.ismodule(app):
        problem = f"is a module, not an app; {wanted} in it"
    elif inspect.isclass(app):
        problem = f"is a class, not an app; name an instance of it, say  app = {app.__name__}(...)"
    elif hasattr(app, "invoke") and hasattr(app, "ainvoke"):
        pass
    elif hasattr(app, "compile") and hasattr(app, "add_node"):
        problem = "is a graph that was not compiled; name what its .compile() returns"
    elif not callable(app):
        problem = f"is {with_article(type(app).__name__)}, not an app; {wanted}"
    elif inspect.isgeneratorfunction(app) or inspect.isasyncgenfunction(app):
        problem = "yields its answer in pieces; name a function that returns the whole answer"
    elif not _takes_a_question(app):
        problem = (
            "cannot be called with one question; if it builds the app, call it in your file and "
            "name the result, say  app = build()"
        )
    return problem


def _takes_a_question(app: Any) -> bool:
    try:
        inspect.signature(app).bind("a question")
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature: the call itself will tell
        return True
    return True
