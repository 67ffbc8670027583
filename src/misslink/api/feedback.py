"""What one answer is worth, and why, for optimizers of prompts and settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from misslink.documents import cutoff_of
from misslink.errors import InputError
from misslink.failure_modes import FAILURE_MODES
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.pipeline.evaluate import evaluate
from misslink.render.format import shorten
from misslink.render.need_sentences import STAGES, describe_need
from misslink.types import Case, Link, Need, Run, Trace

_CASE_FIELDS = {*Case.model_fields, "query", "reference"}
_TEXT_LENGTH = 300  # characters of a quoted text


class Feedback(TypedDict):
    """A score from 0 to 1, None where it could not be decided, and what to change."""

    score: float | None
    text: str


def feedback(
    case: Mapping[str, Any],
    *,
    judge: str | Judge = "heuristic",
    corpus: Any = None,
    k: int | None = None,
    cache: str | Path | None = DEFAULT_CACHE,
    judge_config: JudgeConfig | None = None,
) -> Feedback:
    """Return the score of one answer, and what to change by owner and claim.

    Parameters
    ----------
    case : mapping
        Fields of a case and its trace: ``question``, ``answer``, ``retrieved``, and where known
        ``reference``, ``relevant`` and ``prompt``.
    judge, judge_config
        As of `misslink.evaluate`.
    corpus : path, iterable or None
        As of `misslink.evaluate`; with it, missed passages are looked up.
    k : int or None
        Passages that stand for the prompt where it is not given.
    cache : path or None
        Response cache of the judge, so that no answer is paid twice. None: no cache.

    Returns
    -------
    dict
        ``score``: 1 for an answer that passes. A failed one has half the mean over its claims
        (supported: 1) and its needed facts (stated: 1, else the share of the stages from index to
        answer that the fact passed). None: not decided. ``text`` names the owner, the failure, its
        evidence, each lost fact and each bad claim. What may hold texts under test is quoted as
        JSON.

    Raises
    ------
    InputError
        A field is missing or wrong.

    Examples
    --------
    >>> import misslink
    >>> fare = {"retrieved": [{"id": "fare", "text": "The fare is 12 crowns."}]}
    >>> asked = {"question": "What is the fare?", "reference": "The fare is 12 crowns."}
    >>> misslink.feedback({**fare, **asked, "answer": "The fare is 12 crowns."})["score"]
    1.0
    """
    if "question" not in case and "query" not in case:
        raise InputError("the case has no question; give question, retrieved and answer")
    about = {name: value for name, value in case.items() if name in _CASE_FIELDS}
    about.setdefault("id", "case")
    trace = {name: value for name, value in case.items() if name in Trace.model_fields}
    run = evaluate(
        goldset=[about],
        traces=[{**trace, "case_id": about["id"]}],
        judge=judge,
        corpus=corpus,
        k=k,
        cache=cache,
        judge_config=judge_config,
        embedding="none",
    )
    link = run.links[0]
    if link.failed is None:
        return Feedback(score=None, text=f"Not decided: {_quoted(link.reason)}.")
    if not link.failed:
        return Feedback(score=1.0, text="The answer passes.")
    return Feedback(score=_progress(run, link) / 2, text="\n".join(_lines(run, link)))


def _progress(run: Run, link: Link) -> float:
    """Mean over claims (1: supported) and needed facts (how many stages of the pipeline they passed).

    So a change that brings a fact further counts before the answer states it.
    """
    claims = [claim for verdict in run.verdicts_of("faithfulness") for claim in verdict.claims]
    parts = [float(claim.support == "supported") for claim in claims]
    parts += [_stages_passed(need) / len(STAGES) for need in link.needs]
    return sum(parts) / len(parts) if parts else 0.0


def _stages_passed(need: Need) -> int:
    if need.lost_at is None or need.stated == "states":
        return len(STAGES)
    return STAGES.index(need.lost_at) if need.lost_at in STAGES else 0


def _lines(run: Run, link: Link) -> Iterator[str]:
    mode = FAILURE_MODES[link.failure or "inconclusive"]
    yield f"Owner: {mode.owner}. {mode.label}. {mode.action}"
    yield f"Evidence: {_quoted(link.reason)}."
    for need in link.needs:
        if need.lost_at is not None:
            what, how = describe_need(need, run.traces[0], cutoff_of(run))
            yield f"Needed fact {_quoted(need.text)}: {what.lower()} ({how})."
    for verdict in run.verdicts_of("faithfulness"):
        for claim in verdict.claims:
            if claim.support != "supported":
                yield f"Claim {_quoted(claim.text)} is {claim.support}."


def _quoted(text: str) -> str:
    """A text under test, as data in what an optimizer's model reads."""
    return json.dumps(shorten(text, _TEXT_LENGTH), ensure_ascii=False)
