"""What of a case a format has no place for: kept in its metadata, or counted as lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from misslink.goldset.logs.said import decoded
from misslink.types import Case

__all__ = ["KEPT", "beside", "lost", "restored"]

KEPT = "misslink"  # the key of metadata under which the rest of a case stands


def beside(case: Case, held: Collection[str]) -> dict[str, Any]:
    """Return metadata with the fields of a case that the format itself does not hold."""
    rest = case.model_dump(mode="json", exclude_defaults=True, exclude=set(held))
    return {KEPT: rest} if rest else {}


def restored(metadata: Any) -> dict[str, Any]:
    """Return the fields that `beside` put into metadata; other people's metadata become tags.

    What is no text, number or truth value is left where it is.
    """
    metadata = decoded(metadata)
    if not isinstance(metadata, Mapping):
        return {}
    kept = decoded(metadata.get(KEPT))
    fields = dict(kept) if isinstance(kept, Mapping) else {}
    tags = {
        str(name): str(value)
        for name, value in metadata.items()
        if name != KEPT and isinstance(value, str | int | float) and str(value).strip()
    }
    if tags:
        own = fields.get("tags")
        fields["tags"] = {**tags, **(own if isinstance(own, Mapping) else {})}
    return fields


def lost(cases: Iterable[Case], held: Collection[str]) -> Counter[str]:
    """Count the cases that have something in fields which a format does not hold."""
    counts: Counter[str] = Counter()
    for case in cases:
        counts.update(case.model_dump(exclude_defaults=True, exclude=set(held)).keys())
    return counts
