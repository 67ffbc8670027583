"""The audit of a judge as JSON values: what holds beyond chance, over all that was looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from misslink.judging.audits.asking import Heard, deterministic
from misslink.judging.audits.numbers import TOLERATED, more_often_than
from misslink.judging.audits.sample import Sample
from misslink.judging.protocol import Judge
from misslink.stats import holm
from misslink.stats.mcnemar import mcnemar
from misslink.stats.written import percent
from misslink.types import Estimate

__all__ = ["in_vain", "notes", "settled"]

_ALPHA = 0.05
_TESTS = ("p", "p_more")
_DONE = {
    "padding": "Padding the answer with what adds nothing",
    "passage_order": "Turning the order of the passages round",
    "passage_shuffle": "Shuffling the passages",
}
_Entry = MutableMapping[str, Any]


def settled(
    metrics: Mapping[str, Mapping[str, _Entry]], preferred: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Correct all tests together for how many they are, and say what holds.

    Parameters
    ----------
    metrics : mapping of str to mapping of str to mapping
        As of `misslink.judging.audits.numbers.compared`.
    preferred : mapping or None
        What two orders of each pair of answers brought, as `misslink.answer.preference.preference`
        returns it.

    Returns
    -------
    dict
        ``metrics`` and, where pairs were compared, ``preferences`` with its ``answer_order``: each
        entry with ``p_holm`` and ``p_more_holm``, by Holm over everything that was looked at, and
        ``finding``: one sentence of what holds at the 5 % level after that, or None. As JSON
        values.
    """
    found: dict[str, Any] = {
        "metrics": {
            metric: {change: dict(entry) for change, entry in changes.items()}
            for metric, changes in metrics.items()
        }
    }
    if preferred is not None:
        found["preferences"] = {"answer_order": _of_order(preferred)}
    entries = list(_entries(found))
    tests = [(entry, name) for _, _, entry in entries for name in _TESTS]
    for (entry, name), p in zip(tests, holm([e[n] for e, n in tests]), strict=True):
        entry[f"{name}_holm"] = p
    for metric, change, entry in entries:
        entry["finding"] = _finding(metric, change, entry)
    plain: dict[str, Any] = _plain(found)
    return plain


def in_vain(metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str | None:
    """Why nothing could be compared, as part of a sentence; None: something could."""
    entries = [entry for changes in metrics.values() for entry in changes.values()]
    if any(entry["n"] for entry in entries):
        return None
    reasons: Counter[str] = Counter()
    for entry in entries:
        reasons.update(entry["left_out"])
    if not reasons:
        return "no case could be asked about"
    ((reason, count),) = reasons.most_common(1)
    return f"no verdict could be compared, in {count} of {reasons.total()} because {reason}"


def notes(
    judge: Judge, heard: Sequence[Heard], sample: Sample, metric: str, not_asked: int
) -> list[str]:
    """Say what a reader of an audit must know, as sentences.

    Parameters
    ----------
    judge : Judge
    heard : sequence of Heard
    sample : Sample
    metric : str
        By whose verdicts the cases were drawn.
    not_asked : int
        Questions that were not put, on purpose.
    """
    found = []
    plain = metric.replace("_", " ")
    if sample.good or sample.bad:
        found.append(
            f"Of the {len(sample.cases)} cases the run's verdict on {plain} is good in"
            f" {sample.good} and bad in {sample.bad}: they were drawn by it, so shares over them"
            " are not shares over the run."
        )
    if sample.cases and not (sample.good and sample.bad):
        found.append("They have one call only, so a change can move verdicts in one way only.")
    if deterministic(judge):
        found.append(
            f"{judge.name} is a program that says the same to the same question, so it was not"
            " asked again: whatever flips, flips for what was changed."
        )
    if not_asked:
        found.append(
            f"{not_asked} questions were not put, since the budget or the time is used up; the same"
            " command with more of it goes on."
        )
    failed = Counter(
        verdict.reason or "no reason"
        for one in heard
        for verdicts in (one.base, *one.changed.values())
        for verdict in verdicts.values()
        if verdict.status == "failed"
    )
    if failed:
        ((reason, count),) = failed.most_common(1)
        found.append(
            f"{failed.total()} verdicts failed and count nowhere, {count} of them because {reason}."
        )
    return found


def _entries(found: Mapping[str, Any]) -> Iterator[tuple[str, str, _Entry]]:
    for metric, changes in found["metrics"].items():
        for change, entry in changes.items():
            yield metric, change, entry
    for change, entry in found.get("preferences", {}).items():
        yield "preference", change, entry


def _of_order(preferred: Mapping[str, Any]) -> dict[str, Any]:
    """How often the order of two answers decides which is better, and which place it favours."""
    flipped = Estimate.model_validate(preferred["position_flips"])
    places = {name: int(preferred["positions"][name]) for name in ("first", "second")}
    flips = 0 if flipped.value is None else round(flipped.value * flipped.n)
    tested = flipped.value is not None
    return {
        "n": flipped.n,
        "flipped": flipped,
        "places": places,
        "p": mcnemar(places["first"], places["second"]).p if tested else None,
        "p_more": more_often_than(TOLERATED, flips, flipped.n) if tested else None,
        "left_out": dict(preferred["left_out"]),
    }


def _finding(metric: str, change: str, entry: Mapping[str, Any]) -> str | None:
    turned = entry["p_holm"] is not None and entry["p_holm"] < _ALPHA
    more = entry["p_more_holm"] is not None and entry["p_more_holm"] < _ALPHA
    if change == "answer_order":
        return _of_places(entry, turned, more)
    # That what may rightly lower a verdict lowers it is no finding.
    to_good = entry["gained"] > entry["lost"]
    turned = turned and (to_good or not entry["may_lower"])
    if not turned and not more:
        return None
    plain = metric.replace("_", " ")
    if change == "again":
        return (
            f"Asked the same again, the judge says otherwise of {plain} in"
            f" {percent(entry['flipped'])} of {entry['n']} cases."
        )
    done = _DONE[change]
    if entry["may_lower"]:
        return f"{done} turns {plain} good in {percent(entry['to_good'])} of {entry['n']} cases."
    said = f"{done} turns {percent(entry['flipped'])} of {entry['n']} verdicts on {plain}"
    if turned:
        said += f", {'more often to good' if to_good else 'more often to bad'}"
    return f"{said}."


def _of_places(entry: Mapping[str, Any], turned: bool, more: bool) -> str | None:
    if not turned and not more:
        return None
    said = (
        f"Which of two answers is better changes with their order in {percent(entry['flipped'])}"
        f" of {entry['n']} pairs"
    )
    if turned:
        first, second = entry["places"]["first"], entry["places"]["second"]
        said += f", in favour of the one shown {'first' if first > second else 'second'}"
    return f"{said}."


def _plain(item: Any) -> Any:
    """JSON values alone."""
    if isinstance(item, Estimate):
        return item.model_dump(mode="json")
    if isinstance(item, Mapping):
        return {str(name): _plain(value) for name, value in item.items()}
    if isinstance(item, Sequence) and not isinstance(item, str):
        return [_plain(one) for one in item]
    return item
