"""What is told of a gold set: where it came from, how many there are, why none could be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError
from misslink.goldset.generating.asks import PROMPTS
from misslink.goldset.generating.gold import rejects_of
from misslink.goldset.generating.opened import Made
from misslink.goldset.generating.rounds import Outcome
from misslink.judging.opening import Opened
from misslink.manifest import content_hash, shown_path

__all__ = ["about", "document", "refuse_in_vain"]


def refuse_in_vain(found: Outcome, judge: Opened) -> None:
    """Raise what stands in the way where not one question came of it."""
    if found.accepted:
        return
    if found.stopped is not None:
        raise InputError(
            f"no question was finished: {found.stopped}; what was said is in the ledger"
        )
    reasons = {one.reason for one in found.rejected}
    if reasons == {"no_reply"}:
        raise JudgeUnreachableError(
            f"no reply of {judge.name} could be read ({found.rejected[0].sentence}); try it with  "
            "misslink judge ping"
        )
    table = ", ".join(f"{count} {why}" for why, count in rejects_of(found)["rejected"].items())
    raise InputError(
        f"none of {found.candidates} candidates could be accepted ({table}); see them with "
        "--rejects FILE, or name a stronger judge"
    )


def about(made: Made, found: Outcome, n: int, seed: int) -> dict[str, Any]:
    """Return what a gold set was made by; nothing that differs from one run of it to the next."""
    judge, sources = made.judge, made.sources
    embedder = made.index.embedder
    return {
        "judge": judge.name,
        "judge_identity": dict(judge.identity),
        "prompts": {name: made.prompts.load(name).ref.sha256 for name in PROMPTS},
        "corpus": sources.name,
        "corpus_fingerprint": sources.fingerprint,
        "passages": len(sources.passages),
        "embedding": None if embedder is None else embedder.name,
        "settings": made.settings.model_dump(mode="json"),
        "settings_sha256": content_hash(made.settings.model_dump(mode="json")),
        "seed": seed,
        "wanted": n,
        "written": len(found.accepted),
        "by_category": found.by_category,
        "missing": found.missing,
        "candidates": found.candidates,
        "rejected": rejects_of(found)["rejected"],
    }


def document(
    made: Made, found: Outcome, gold: Path | None, n: int, usage: dict[str, Any]
) -> dict[str, Any]:
    """Return what the command prints with --json."""
    sources = made.sources
    return {
        "goldset": None if gold is None else shown_path(gold),
        "written": len(found.accepted),
        "wanted": n,
        "candidates": found.candidates,
        "by_category": found.by_category,
        "missing": found.missing,
        "stopped": found.stopped,
        "unfinished": len(found.unfinished),
        **rejects_of(found),
        "corpus": {
            "source": sources.name,
            "fingerprint": sources.fingerprint,
            "passages": len(sources.passages),
            "documents_cut": sources.cut,
            "skipped": dict(sources.skipped),
        },
        "judge": made.judge.name,
        "usage": usage,
    }
