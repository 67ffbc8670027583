"""Cases and traces as JSON Lines, without the fields that say nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

__all__ = ["as_lines", "objects_as_lines"]


def as_lines(items: Iterable[BaseModel]) -> str:
    """Return models as one JSON object a line."""
    return "".join(item.model_dump_json(exclude_defaults=True) + "\n" for item in items)


def objects_as_lines(items: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as one JSON object a line."""
    return "".join(json.dumps(item, ensure_ascii=False, allow_nan=False) + "\n" for item in items)
