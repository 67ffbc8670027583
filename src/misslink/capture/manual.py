"""Record a search that misslink cannot see."""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any

_log = logging.getLogger("misslink")


def record_retrieval(query: str, passages: Any, *, name: str = "search") -> None:
    """Record a search of the app, such as one by a raw client; does nothing outside an evaluation.

    Call it where the app searches: in the case's own thread or task, or one that inherits its context.

    Parameters
    ----------
    query : str
    passages : list
        Best first: documents, texts, ids (where none has a blank), ``{"id", "text", "score"}``, pairs
        of a document and its score, or chromadb's own result.
    name : str
        Name of the search in the report.

    Raises
    ------
    InputError
        `passages` is something else.

    Examples
    --------
    >>> import misslink
    >>> misslink.record_retrieval("When?", [{"id": "times", "text": "The ferry leaves at seven."}])
    """
    module = sys.modules.get("misslink.capture.recorder")
    recorder = module.CURRENT_RECORDER.get() if module else None
    if recorder is None:
        hooks = sys.modules.get("misslink.capture.vectorstore_hooks")
        if hooks is not None and hooks.is_recording():
            _warn_of_lost_search()
        return  # the app runs in production, where this costs nothing
    recorder.record(str(query), passages, name)


@cache
def _warn_of_lost_search() -> None:
    _log.warning(
        "record_retrieval was called outside of a case's thread, so its search belongs to no case; "
        "start the thread with contextvars.copy_context().run"
    )
