"""A gold set and traces from logs of a live app, with personal data masked first of all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from misslink.embedding import Embedder
from misslink.errors import InputError
from misslink.goldset.logs.choosing import CLUSTERED, Chosen, Shares, choose
from misslink.goldset.logs.failures import SIGNALS, failing, not_understood
from misslink.goldset.logs.grouping import grouped
from misslink.goldset.logs.masking import Masker, without_numbers
from misslink.goldset.logs.request import Log, Request
from misslink.types import Case, Passage, Trace

__all__ = ["Picked", "pick"]

_MASK = re.compile(r"<[A-Z][A-Z0-9_]*>")
_UNSEEN = "the log does not say what was retrieved"
_SHOWN = 3


@dataclass(frozen=True)
class Picked:
    """What was picked.

    Parameters
    ----------
    cases : sequence of Case
        Of each only what the log holds: no relevant passage and no reference answer.
    traces : sequence of Trace
        Of the cases whose request has an answer or retrieved passages.
    document : dict
        What ``--json`` prints, but for the files' names.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    document: dict[str, Any]


async def pick(
    log: Log,
    n: int = 100,
    *,
    shares: Shares | None = None,
    masker: Masker | None = None,
    embedder: Embedder | None = None,
    seed: int = 0,
) -> Picked:
    """Pick questions from a log.

    Parameters
    ----------
    log : Log
        Of `read_logs`.
    n : int
        How many questions, at least 1; fewer where the log has fewer that differ.
    shares : Shares, optional
        0.4 head, 0.4 tail and 0.2 failures by default.
    masker : Masker, optional
        Every text goes through it before anything else sees it.
    embedder : Embedder, optional
        Clusters the tail by meaning; it is given masked questions alone. Without it words count.
    seed : int

    Raises
    ------
    InputError
        There is no question left to pick.
    """
    masker = masker or Masker()
    for request in log.requests:
        for text in (request.question, request.answer, request.error, request.category):
            masker.reserve(text or "")
        for passage in request.passages or ():
            masker.reserve(passage.text)
    failures = failing(log.requests)
    strange = not_understood(log.requests)
    requests, kept, left = [], [], Counter(log.left_out)
    for request, signals in zip(log.requests, failures, strict=True):
        question = masker.masked(request.question)
        if any(sign.isalnum() for sign in _MASK.sub("", without_numbers(question))):
            requests.append(replace(request, question=question))
            kept.append(signals)
        else:
            left["questions of nothing but personal data or signs"] += 1
    if not requests:
        raise InputError("no question is left in the logs once personal data are masked")
    groups = grouped([request.question for request in requests])
    chosen = await choose(
        requests,
        groups,
        kept,
        n,
        shares or Shares(),
        vectors=None if embedder is None else embedder.queries,
        seed=seed,
    )
    cases = [_case(one, requests[one.request], masker) for one in chosen]
    traces = [
        _trace(case.id, requests[one.request], masker)
        for case, one in zip(cases, chosen, strict=True)
    ]
    document = {
        "requests": len(requests),
        "different": len(groups),
        "wanted": n,
        "written": len(cases),
        "chosen": {
            why: sum(one.why == why for one in chosen) for why in ("head", "failure", "tail")
        },
        "requests_covered": sum(len(one.group.members) for one in chosen),
        "failing": {signal: sum(signal in signals for signals in kept) for signal in SIGNALS},
        "with_trace": sum(trace is not None for trace in traces),
        "masked": dict(sorted(masker.counts.items())),
        "tail_by": "words" if embedder is None else embedder.name,
        "columns": dict(log.columns),
        "left_out": dict(left),
        "notes": _notes(
            log,
            chosen,
            len(groups),
            n,
            {masker.masked(word): count for word, count in strange.items()},
        ),
        "seed": seed,
    }
    return Picked(tuple(cases), tuple(trace for trace in traces if trace), document)


def _case(one: Chosen, request: Request, masker: Masker) -> Case:
    tags = {"origin": "logs", "chosen": one.why, "asked": str(len(one.group.members))}
    if one.signals:
        tags |= {"failed": str(one.failed), "failure": ",".join(one.signals)}
    return Case.model_validate(
        {
            "question": " ".join(request.question.split()),
            "category": masker.masked(request.category) if request.category else None,
            "tags": tags,
            "asked_at": request.at.date() if request.at else None,  # the hour would tell who it was
        }
    )


def _trace(case_id: str, request: Request, masker: Masker) -> Trace | None:
    if request.answer is None and request.passages is None:
        return None
    retrieved: dict[str, Passage] = {}
    for passage in request.passages or ():
        name = masker.masked_id(passage.id)
        update = {"id": name, "text": masker.masked(passage.text), "rank": len(retrieved) + 1}
        retrieved.setdefault(name, passage.model_copy(update=update))
    return Trace(
        case_id=case_id,
        retrieved=tuple(retrieved.values()),
        answer=masker.masked(request.answer) if request.answer else None,
        latency_s=request.latency_s,
        error=masker.masked(request.error) if request.error else None,
        unmeasured=_UNSEEN if request.passages is None else None,
    )


def _notes(
    log: Log, chosen: Sequence[Chosen], different: int, n: int, strange: Mapping[str, int]
) -> list[str]:
    """What a person should know of how it was picked."""
    notes = []
    if len(chosen) < n:
        notes.append(
            f"The logs hold {different:,} different questions, fewer than the {n:,} wanted."
        )
    if not any(len(one.group.members) > 1 for one in chosen):
        notes.append("No question was asked twice, so there is no head: the tail has its share.")
    others = different - sum(one.why != "tail" for one in chosen)
    if others > CLUSTERED and any(one.why == "tail" for one in chosen):
        notes.append(
            f"The tail is one of each kind of {CLUSTERED:,} questions, drawn from {others:,}."
        )
    if not any(request.feedback is not None for request in log.requests):
        notes.append(
            "The logs hold no feedback of users (--column feedback=NAME says where it is)."
        )
    if not any(request.session for request in log.requests):
        notes.append("The logs name no sessions, so asking again cannot be seen.")
    if strange:
        told = ", ".join(f"'{word[:40]}'" for word in list(strange)[:_SHOWN])
        notes.append(f"{sum(strange.values()):,} feedbacks were not understood, such as {told}.")
    notes.append(
        "Names are masked only by a list (--mask-names); read the questions before you share them."
    )
    return notes
