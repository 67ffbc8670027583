"""How often named owners are right, by what a run has: measured by ``benchmarks/linking/attribution_kinds.py``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from misslink.documents import OwnerReliability
from misslink.matching import rules_version
from misslink.stats import proportion
from misslink.types import Case, Estimate, Reason

_FIGURES = files("misslink.linking") / "reliability.json"
_GIVEN = ("labels", "references", "corpus")


@cache
def linking_rules() -> str:
    """SHA-256 (16 digits) of the code that names owners: figures of other code are not printed."""
    package = files("misslink")
    sources = [file for file in (package / "linking").iterdir() if file.name.endswith(".py")]
    sources = [*sorted(sources, key=str), package / "judge" / "calibration.py"]  # its band decides
    content = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(rules_version().encode() + content).hexdigest()[:16]


def find_given(cases: Sequence[Case], *, corpus: bool) -> tuple[str, ...]:
    """Return which of labels, references and corpus a run has."""
    has = (
        any(case.relevant or case.relevant_any or case.evidence for case in cases),
        any(case.references for case in cases),
        corpus,
    )
    return tuple(name for name, there in zip(_GIVEN, has, strict=True) if there)


def owner_reliability(given: Sequence[str], judge: str) -> OwnerReliability:
    """Return how often named owners are right, where it was measured for this judge and this data.

    Parameters
    ----------
    given : sequence of str
        Of 'labels', 'references' and 'corpus'.
    judge : str
        Only the heuristic judge is measured; of others a selftest tells.
    """
    figures: dict[str, Any] = json.loads(_FIGURES.read_text(encoding="utf-8"))
    row = figures["heuristic"].get(", ".join(given)) if judge == "heuristic" else None
    told = {"given": tuple(given), "judge": judge}
    if row is None or not row["named"] or figures["rules"] != linking_rules():
        missing = Estimate.missing(Reason(code="owners_not_measured"))
        return OwnerReliability(**told, owner_right=missing, named=missing, source=None)
    return OwnerReliability(
        **told,
        owner_right=proportion(row["right"], row["named"]),
        named=proportion(row["named_failures"], row["failures"]),
        source="bench",
    )
