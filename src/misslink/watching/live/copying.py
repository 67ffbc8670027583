"""An input copied, so that what one variant does to it another one does not see."""

from __future__ import annotations

from typing import Any

__all__ = ["containers_copied"]


def containers_copied(asked: Any) -> Any:
    """Return an app's input with its own dicts and lists, at every depth; what they hold is shared.

    Raises
    ------
    RecursionError
        It holds itself.
    """
    if type(asked) is dict:
        return {key: containers_copied(value) for key, value in asked.items()}
    if type(asked) is list:
        return [containers_copied(value) for value in asked]
    return asked
