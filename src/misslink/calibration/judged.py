"""What a judge said of one metric, case by case, with what its errors may depend on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from misslink.errors import InputError, known_names
from misslink.manifest import content_hash
from misslink.retrieval import outcome
from misslink.text import fold
from misslink.types import Case, Run, Trace, Verdict

__all__ = ["SUPPORTED", "Judged", "Verdicts", "no_metric", "of_run", "verdicts_hash"]

_HALF = 0.5
MODEL = "model"
SUPPORTED: Mapping[str, float] = {"supported": 1.0, "unsupported": 0.0, "contradicted": 0.0}


@dataclass(frozen=True)
class Judged:
    """What the judge said of one case.

    Parameters
    ----------
    case_id : str
    value, probability : float or None
        In [0, 1]. Without a value nothing is known, and ``reason`` says why.
    label : bool or None
        Good or bad by the judge's own cut.
    status : {'scored', 'skipped', 'failed'}
    reason : str or None
    claims : sequence of (float or None)
        Of each claim the probability that it is supported, else 1 or 0 as it is called.
    judge : str or None
    prompt : pair of str or None
        Name and SHA-256 of the prompt.
    length : int or None
        Characters of the answer.
    about : mapping
        What else an error may depend on: a number or a word by name.
    group : str or None
        What answers to the same question share, such as the question. None: not known.
    """

    case_id: str
    value: float | None = None
    probability: float | None = None
    label: bool | None = None
    status: str = "scored"
    reason: str | None = None
    claims: tuple[float | None, ...] = ()
    judge: str | None = None
    prompt: tuple[str, str] | None = None
    length: int | None = None
    about: Mapping[str, float | str] = field(default_factory=dict)
    group: str | None = None

    @property
    def score(self) -> float | None:
        """The probability of the good label, else the value; None where there is neither."""
        return self.value if self.probability is None else self.probability


@dataclass(frozen=True)
class Verdicts:
    """All verdicts of one metric.

    Parameters
    ----------
    items : mapping of str to Judged
        By case.
    metric : str
    name : str
        Where they are from.
    cases : frozenset of str
        Every case there is, with a verdict of this metric or not.
    judge : str or None
        As the run names it; of a cascade the whole. None: not known.
    identity : mapping of str to str
        What else the judge depends on, such as its version.
    sha256 : str or None
        Of the verdicts with the answers they are about, as `verdicts_hash` has it. None: they are
        not of a run.
    """

    items: Mapping[str, Judged]
    metric: str
    name: str
    cases: frozenset[str]
    judge: str | None
    identity: Mapping[str, str] = field(default_factory=dict)
    sha256: str | None = None

    @property
    def prompts(self) -> dict[str, str]:
        """The SHA-256 of each prompt by its name."""
        return dict(sorted({one.prompt for one in self.items.values() if one.prompt}))

    @property
    def unusable(self) -> dict[str, list[Judged]]:
        """Verdicts without a score, by status."""
        found: dict[str, list[Judged]] = {}
        for one in self.items.values():
            if one.score is None:
                found.setdefault(one.status, []).append(one)
        return found

    def own_cut(self) -> tuple[float, str]:
        """The score from which on the judge itself calls a case good, and how that is known.

        The fit of the embedded judge states its cut. Of another judge 0.5, or where its labels
        follow another cut (faithful is who has all claims supported), that one.
        """
        if self.metric == "faithfulness" and self.judge in {"embedded", "embedded:minilm"}:
            from misslink.judging.embedded.fitted import load_fit

            return load_fit(self.judge).cut, "the judge's own"
        scored = [(one.score, one.label) for one in self.items.values()]
        good = [score for score, label in scored if label and score is not None]
        bad = [score for score, label in scored if label is False and score is not None]
        least, most = min(good, default=math.inf), max(bad, default=-math.inf)
        if most < least and not most < _HALF <= least and good:
            return least, "the judge's own labels"
        return _HALF, "one half"


def of_run(run: Run, metric: str, name: str) -> Verdicts:
    """Take the verdicts of one metric from a run, with what the run knows of each case.

    Raises
    ------
    InputError
        The run has no verdict of it.
    """
    k = run.manifest.get("k")
    width = k if isinstance(k, int) and k > 0 else None
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    found = {}
    for verdict in run.verdicts:
        if verdict.metric == metric:
            case, trace = cases.get(verdict.case_id), traces.get(verdict.case_id)
            answer = trace.answer if trace else None
            found[verdict.case_id] = Judged(
                **_of_verdict(verdict),
                length=None if answer is None else len(answer),
                about=_about(case, trace, width) if case and trace else {},
                group=fold(case.question) if case else None,
            )
    if not found:
        raise no_metric(metric, {verdict.metric for verdict in run.verdicts}, name)
    judge = run.manifest.get("judge")
    inputs = run.manifest.get("inputs")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    identity = {n: str(v) for n, v in inputs.items() if n.startswith("judge_identity.")}
    return Verdicts(
        found,
        metric,
        name,
        frozenset(cases),
        str(judge) if judge else None,
        identity,
        verdicts_hash(run, metric),
    )


def verdicts_hash(run: Run, metric: str) -> str:
    """SHA-256 of a run's verdicts of one metric, with the questions and answers they are about.

    What a reply cost is left out: asked again of a ledger, the same verdicts cost nothing.
    """
    asked = {case.id: case.question for case in run.cases}
    answers = {trace.case_id: trace.answer for trace in run.traces}
    said = (
        (
            verdict.case_id,
            asked.get(verdict.case_id, ""),
            answers.get(verdict.case_id) or "",
            # Not model_dump_json, which refuses a lone surrogate.
            verdict.model_dump(mode="python", exclude={"usage", "raw"}),
        )
        for verdict in run.verdicts
        if verdict.metric == metric
    )
    return content_hash(sorted(said, key=lambda row: row[0]))


def no_metric(metric: str, metrics: Iterable[str], name: str) -> InputError:
    """Return the error that there is no verdict of a metric."""
    hint = known_names(metric, sorted(metrics), " there") if metrics else "there is no verdict"
    return InputError(f"no verdict is of the metric '{metric}'; {hint}", path=name)


def _of_verdict(verdict: Verdict) -> dict[str, Any]:
    prompt = verdict.prompt
    return {
        "case_id": verdict.case_id,
        "value": verdict.value,
        "probability": verdict.probability if verdict.status == "scored" else None,
        "label": verdict.label,
        "status": verdict.status,
        "reason": verdict.reason,
        "claims": tuple(
            SUPPORTED[claim.support] if claim.probability is None else claim.probability
            for claim in verdict.claims
        ),
        "judge": verdict.judge,
        "prompt": (prompt.name, prompt.sha256) if prompt else None,
    }


def _about(case: Case, trace: Trace, k: int | None) -> dict[str, float | str]:
    """What a run knows of a case that should not matter to the judge; without k no passages."""
    found: dict[str, float | str] = {}
    if trace.unmeasured is None and k is not None:
        found["passages"] = float(len(trace.context(k)))
        ranks = [find.rank for find in outcome(case, trace, k).found]
        if ranks:
            found["evidence_position"] = float(min(ranks))
    if case.category:
        found["category"] = case.category
    # Gold sets of several models' answers say by a tag who answered.
    return found | {tag if tag == MODEL else f"tag {tag}": word for tag, word in case.tags.items()}
