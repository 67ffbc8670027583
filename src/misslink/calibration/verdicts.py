"""The verdicts of one metric to calibrate, from a run or a file."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.documents import manifest_of
from misslink.errors import InputError, did_you_mean, known_names
from misslink.field_markers import varying_fields
from misslink.io.jsonl import SourceItem
from misslink.io.labels import parse_id
from misslink.io.manifest import answer_hash, hash_content
from misslink.io.rows import read_rows
from misslink.parts import by_case, case_ids
from misslink.retrieval import case_exposures, cluster_cases, retrieval_outcome
from misslink.text.normalization import fold
from misslink.types import Case, Reason, Run, Trace, Verdict

MODEL_TAG = "model"
_SUPPORT = {"supported": 1.0, "unsupported": 0.0, "contradicted": 0.0}
_VALUE_FIELDS = {"value", "probability"}
_OTHER_FIELDS = {
    *("case_id", "metric", "status", "label", "reason", "claims", "judge", "prompt", "answer"),
    *("passages", "category", MODEL_TAG, "evidence_position", "tags", "group", "question"),
}
_BOOLEAN_WORDS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The judge's verdict on one case.

    Parameters
    ----------
    case_id : str
    value, probability : float or None
        In [0, 1]. None: not measured, see ``reason``.
    label : bool or None
        Good or bad by the judge's own cut.
    status : {'scored', 'skipped', 'failed'}
    reason : str or None
    claims : sequence of (float or None)
        For each claim the probability that it is supported, else 1 or 0.
    judge : str or None
    prompt : pair of str or None
        Name and SHA-256 of the prompt.
    length : int or None
        Characters of the answer.
    answer_hash : str or None
        SHA-256 of the answer. None: it is not known.
    covariates : mapping
        What else an error may depend on: a number or a word by name.
    group : str or None
        Shared by answers to the same question. None: not known.
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
    answer_hash: str | None = None
    covariates: Mapping[str, float | str] = field(default_factory=dict)
    group: str | None = None

    @property
    def score(self) -> float | None:
        """The probability of the good label, else the value; None if there is neither."""
        return self.value if self.probability is None else self.probability


@dataclass(frozen=True)
class MetricVerdicts:
    """All verdicts of one metric.

    Parameters
    ----------
    items : mapping of str to JudgedCase
        By case.
    metric : str
    name : str
        Where they are from.
    cases : frozenset of str
        All cases, with a verdict of this metric or not.
    judge : str or None
        As the run names it; of a cascade the whole. None: not known.
    identity : mapping of str to str
        What else the judge depends on, such as its version.
    sha256 : str or None
        See `hash_verdicts`. None: they are not from a run.
    exposures : mapping of str to str
        How much of what a case needs was in the prompt: 'none', 'some' or 'all', where it is known.
    clusters : mapping of str to hashable
        The cluster of each case, see `misslink.retrieval.cluster_cases`.
    metrics : frozenset of str
        All metrics of the file or run.
    """

    items: Mapping[str, JudgedCase]
    metric: str
    name: str
    cases: frozenset[str]
    judge: str | None
    identity: Mapping[str, str] = field(default_factory=dict)
    sha256: str | None = None
    exposures: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, Hashable] = field(default_factory=dict)
    metrics: frozenset[str] = frozenset()

    @property
    def prompts(self) -> dict[str, str]:
        """The SHA-256 of each prompt by its name."""
        return dict(sorted({case.prompt for case in self.items.values() if case.prompt}))

    @property
    def unusable(self) -> dict[str, list[JudgedCase]]:
        """Verdicts without a score, by status."""
        cases: dict[str, list[JudgedCase]] = {}
        for case in self.items.values():
            if case.score is None:
                cases.setdefault(case.status, []).append(case)
        return cases

    def scores(self) -> dict[str, float]:
        """Return the score of each case that has one."""
        return {id_: case.score for id_, case in self.items.items() if case.score is not None}

    def decision_threshold(self) -> tuple[float, str]:
        """Return the score from which on the judge itself calls a case good, and its source.

        The heuristic judge states its cut. For another judge 0.5, or the cut that its labels
        follow if it is another one (fully faithful: all claims supported).
        """
        if self.metric == "faithfulness" and self.judge == "heuristic":
            from misslink.matching import load_fit

            return load_fit().cut, str(Reason(code="cut_of_judge"))
        scored = [(case.score, case.label) for case in self.items.values()]
        good = [score for score, label in scored if label and score is not None]
        bad = [score for score, label in scored if label is False and score is not None]
        least, most = min(good, default=math.inf), max(bad, default=-math.inf)
        if most < least and not most < 1 / 2 <= least and good:
            return least, str(Reason(code="cut_of_labels"))
        return 1 / 2, str(Reason(code="cut_of_half"))


def verdicts_from_run(run: Run, metric: str, name: str, labelled: Container[str]) -> MetricVerdicts:
    """Return the verdicts of one metric of a run, with what it knows of each labelled case.

    Raises
    ------
    InputError
        The run has no verdict of the metric.
    """
    manifest = manifest_of(run)
    cases = by_case(run.cases)
    traces = by_case(run.traces)
    scores, items = run.scores, dict[str, JudgedCase]()
    for place, score in enumerate(scores):
        if score.metric != metric:
            continue
        judged = JudgedCase(
            case_id=score.case_id,
            value=score.value,
            probability=score.probability if score.status == "scored" else None,
            label=score.label,
            status=score.status,
            reason=score.reason,
            judge=score.judge,
            prompt=(score.prompt.name, score.prompt.sha256) if score.prompt else None,
        )
        if score.case_id in labelled:
            case, trace = cases.get(score.case_id), traces.get(score.case_id)
            answer = trace.answer if trace else None
            judged = replace(
                judged,
                claims=tuple(
                    _SUPPORT[claim.support] if claim.probability is None else claim.probability
                    for claim in run.verdicts[place].claims
                ),
                length=None if answer is None else len(answer),
                answer_hash=None if answer is None else answer_hash(answer),
                covariates=_run_covariates(case, trace, manifest.k) if case and trace else {},
                group=fold(case.question) if case else None,
            )
        items[score.case_id] = judged
    if not items:
        raise _missing_metric_error(metric, {score.metric for score in scores}, name)
    return MetricVerdicts(
        items,
        metric,
        name,
        frozenset(cases),
        manifest.judge or None,
        {f"judge_identity.{name}": value for name, value in manifest.judge_identity.items()},
        hash_verdicts(run, metric),
        case_exposures(run.outcomes)[1],
        cluster_cases(run.cases),
        frozenset(score.metric for score in scores),
    )


def hash_verdicts(run: Run, metric: str) -> str:
    """Return the SHA-256 of a run's verdicts of one metric, with their questions and answers.

    Token usage is left out: replayed from a response cache, the same verdicts cost nothing.
    """
    questions, answers = by_case(run.cases), by_case(run.traces)
    verdicts = run.verdicts_of(metric)
    ids = case_ids(verdicts)
    rows = (
        (
            verdict.case_id,
            questions[verdict.case_id].question if verdict.case_id in questions else "",
            (verdict.case_id in answers and answers[verdict.case_id].answer) or "",
            # Not model_dump_json, which refuses a lone surrogate.
            verdict.model_dump(mode="python", exclude=varying_fields(Verdict)),
        )
        for verdict in map(verdicts.__getitem__, sorted(range(len(ids)), key=ids.__getitem__))
    )
    return hash_content(rows)


def _missing_metric_error(metric: str, metrics: Iterable[str], name: str) -> InputError:
    hint = known_names(metric, sorted(metrics), " there") if metrics else "there is no verdict"
    return InputError(f"no verdict is of the metric '{metric}'; {hint}", path=name)


def _run_covariates(case: Case, trace: Trace, k: int | None) -> dict[str, float | str]:
    """What should not matter to the judge; without k no passages."""
    covariates: dict[str, float | str] = {}
    if trace.unmeasured is None and k is not None:
        covariates["passages"] = float(len(trace.context(k)))
        ranks = [find.rank for find in retrieval_outcome(case, trace, k).found]
        if ranks:
            covariates["evidence_position"] = float(min(ranks))
    if case.category:
        covariates["category"] = case.category
    # Gold sets with answers of several models name the model in a tag.
    tags = {tag if tag == MODEL_TAG else f"tag {tag}": word for tag, word in case.tags.items()}
    return covariates | tags


def read_verdicts(
    source: str | Path | Iterable[Mapping[str, Any]] | Any, metric: str
) -> MetricVerdicts:
    """Read verdicts from a file: those of a run folder, or any with three fields.

    Parameters
    ----------
    source : path, pandas frame, or iterable of mappings
        ``case_id, metric, value`` and optionally ``probability``; ``status, label, reason,
        claims, judge, prompt`` as in a run; ``answer`` (or ``answer_hash``), ``passages`` (how many), ``category``,
        ``model``, ``evidence_position`` and ``tags`` for the bias audit; ``group``, else
        ``question``, shared by answers to the same question. Other fields are ignored.
    metric : str

    Raises
    ------
    InputError
        The file cannot be read, lacks a field or the metric, or has a case twice.
    """
    name = str(source) if isinstance(source, str | Path) else "verdicts"
    items: dict[str, JudgedCase] = {}
    places: dict[str, SourceItem] = {}
    cases: set[str] = set()
    metrics: set[str] = set()
    valued = False
    for item in read_rows(source, name):
        row = item.data
        for required in ("case_id", "metric"):
            if required not in row:
                raise item.error("this field is required", required)
        case_id = parse_id(row["case_id"])
        if case_id is None:
            raise item.error("an id must be text", "case_id")
        cases.add(case_id)
        row_metric = str(row["metric"]).strip()
        metrics.add(row_metric)
        if row_metric != metric:
            continue
        if case_id in items:
            where = places[case_id].first_place(item)
            first = where and f" (first {where})"
            problem = f"the case '{case_id}' has two verdicts of {metric}{first}; keep one"
            raise item.error(problem, "case_id")
        _check_value_names(item)
        items[case_id], places[case_id] = _case_from_row(case_id, row), item
        valued |= not _VALUE_FIELDS.isdisjoint(row) or row.get("status", "scored") != "scored"
    if not items:
        raise _missing_metric_error(metric, metrics, name)
    if not valued:
        raise places[next(iter(places))].error("this field is required; add it", "value")
    judges = {case.judge for case in items.values() if case.judge}
    judge = judges.pop() if len(judges) == 1 else None
    return MetricVerdicts(items, metric, name, frozenset(cases), judge, metrics=frozenset(metrics))


def _check_value_names(item: SourceItem) -> None:
    """Refuse a misspelt name of the value, which would count as none."""
    if _VALUE_FIELDS.isdisjoint(item.data):
        for field in item.data.keys() - _OTHER_FIELDS:
            if hint := did_you_mean(field, _VALUE_FIELDS):
                raise item.error(f"there is no such field; {hint}", field)


def _case_from_row(case_id: str, row: Mapping[str, Any]) -> JudgedCase:
    """One line; an invalid number makes its verdict a failed one."""
    status, reason = str(row.get("status", "scored")), _text(row.get("reason"))
    numbers: dict[str, float | None] = {}
    for name in ("value", "probability"):
        numbers[name], problem = _parse_share(name, row.get(name))
        if problem:
            status, reason = "failed", problem
    if status == "scored" and all(number is None for number in numbers.values()):
        status, reason = "failed", reason or "it has no value"
    if status != "scored":
        numbers = dict.fromkeys(numbers)
    claims = row.get("claims")
    claims = [c for c in claims if isinstance(c, Mapping)] if isinstance(claims, list) else []
    answer, hashed = _text(row.get("answer")), _text(row.get("answer_hash"))
    if answer is not None:
        hashed = answer_hash(answer)
    else:
        answer = " ".join(str(claim.get("text", "")) for claim in claims)
    prompt, label = row.get("prompt"), row.get("label")
    group, question = row.get("group"), _text(row.get("question"))
    group = None if group is None else parse_id(group)
    return JudgedCase(
        case_id=case_id,
        **numbers,
        label=label
        if isinstance(label, bool)
        else _BOOLEAN_WORDS.get(str(label).strip().casefold()),
        status=status,
        reason=reason,
        claims=tuple(map(_claim_support, claims)),
        judge=_text(row.get("judge")),
        prompt=(str(prompt["name"]), str(prompt["sha256"]))
        if isinstance(prompt, Mapping) and prompt.get("name") and prompt.get("sha256")
        else None,
        length=len(answer) or None,
        answer_hash=hashed,
        covariates=_row_covariates(row),
        group=f"group {group}"
        if group is not None
        else (fold(question) or None if question else None),
    )


def _parse_share(name: str, value: object) -> tuple[float | None, str | None]:
    if value is None:
        return None, None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None, f"its {name} is not a number"
    if not 0 <= number <= 1:
        return None, f"its {name} of {number:.4g} is not between 0 and 1"
    return number, None


def _claim_support(claim: Mapping[str, Any]) -> float | None:
    number, problem = _parse_share("probability", claim.get("probability"))
    if number is None and not problem:
        return _SUPPORT.get(str(claim.get("support")))
    return number


def _row_covariates(row: Mapping[str, Any]) -> dict[str, float | str]:
    covariates: dict[str, float | str] = {}
    passages = row.get("passages")
    count = len(passages) if isinstance(passages, Mapping | list) else passages
    for name, value in (("passages", count), ("evidence_position", row.get("evidence_position"))):
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(number):
            covariates[name] = number
    for name in ("category", MODEL_TAG):
        if word := _text(row.get(name)):
            covariates[name] = word
    tags = row.get("tags")
    if isinstance(tags, Mapping):
        covariates |= {f"tag {tag}": str(word) for tag, word in tags.items()}
    return covariates


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
