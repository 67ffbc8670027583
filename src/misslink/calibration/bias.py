"""What the judge's errors depend on that should not matter: length, passages, place, kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from misslink.calibration.judged import MODEL
from misslink.calibration.logistic import Effect, firth
from misslink.calibration.matched import longer, of_kind
from misslink.calibration.pairs import Pair, calls
from misslink.stats import holm
from misslink.stats.written import percent
from misslink.types import Estimate

__all__ = ["bias", "findings"]

_FEWEST = 5  # cases of a kind, and of the rest, to say anything of it
_MOST_KINDS = 12  # of one name; the most frequent ones are looked at
_MOST_TAGS = 20
_ALPHA = 0.05
_ALWAYS = ("length", "passages", "evidence_position", "category", "model")
_WORDS = {
    "length": "longer answers",
    "passages": "more passages",
    "evidence_position": "evidence that stands later",
}


def bias(pairs: Sequence[Pair], threshold: float) -> dict[str, dict[str, Any]]:
    """Regress the judge's errors, and its calls given people's label, on what should not matter.

    Parameters
    ----------
    pairs : sequence of Pair
    threshold : float

    Returns
    -------
    dict
        By name, such as 'length' or 'category: law' (that kind against all others), each with
        ``coefficient`` (log-odds of an error per ``unit``), ``p``, ``p_holm`` (over all), ``pull``
        (log-odds of the call good, the label held constant: above 0 it is too kind), ``unit`` and
        ``finding``, a sentence. Numbers that no case has stand there as missing, with a reason.
        'length' and each kind of 'model' have ``matched`` too: what is left within a question,
        among answers that people judge alike, as of `misslink.calibration.matched`, with
        ``p_holm`` over all of these and a ``finding``.

    Notes
    -----
    Each is regressed by itself, by Firth's logistic regression: labels are too few to part what
    goes together, and two that do will both show.
    """
    called = calls(pairs, threshold)
    found: dict[str, dict[str, Any]] = {}
    for name, kind, known in _columns(pairs):
        columns = [(places, float(number)) for places, number in known]
        cases = [place for place, _ in columns]
        numbers = [number for _, number in columns]
        errors = [called[place] != pairs[place].good for place in cases]
        labels = [float(pairs[place].good) for place in cases]
        effect = _held(firth(errors, numbers), errors)
        pull = firth([called[place] for place in cases], numbers, [labels])
        unit = "that kind against the others" if kind else f"{_spread(numbers):.4g} (one SD)"
        found[name] = {
            "coefficient": _natural(effect.coefficient, numbers) if kind else effect.coefficient,
            "p": effect.p,
            "pull": _natural(pull.coefficient, numbers) if kind else pull.coefficient,
            "pull_p": pull.p,
            "n": len(numbers),
            "unit": unit,
        }
    names = list(found)
    for one in ("p", "pull_p"):
        for name, p in zip(names, holm([found[n][one] for n in names]), strict=True):
            found[name][f"{one}_holm"] = p
    for name, entry in found.items():
        entry["finding"] = _finding(name, entry)
    _missing(found)
    _match(found, pairs)
    return found


def findings(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Everything that holds beyond chance, with what holds within questions.

    Parameters
    ----------
    found : mapping of str to mapping
        As `bias` returns it.
    """
    told: list[str] = []
    for entry in found.values():
        matched = entry.get("matched") or {}
        told += [each for each in (entry["finding"], matched.get("finding")) if each]
    return told


def _match(found: dict[str, dict[str, Any]], pairs: Sequence[Pair]) -> None:
    """Add what is left of length and model within a question, among answers judged alike."""
    matched = {"length": longer(pairs)}
    for name in found:
        kind, _, word = name.partition(": ")
        if kind == MODEL and word:
            matched[name] = of_kind(pairs, MODEL, word)
    ps = holm([each["p"] for each in matched.values()])
    for (name, each), p in zip(matched.items(), ps, strict=True):
        each["p_holm"] = p
        each["finding"] = _of_matched(name, each)
        found[name]["matched"] = each


def _of_matched(name: str, matched: Mapping[str, Any]) -> str | None:
    """What holds between answers to the same question beyond chance."""
    share = matched.get("longer_preferred") or matched["preferred"]
    if share.value is None or matched["p_holm"] is None or matched["p_holm"] >= _ALPHA:
        return None
    which = "the longer one" if name == "length" else f"the one with the {name.replace(': ', ' ')}"
    return (
        f"of two answers to one question that people judge alike, {which} is scored higher in"
        f" {percent(share)} of {share.n} pairs"
    )


def _missing(found: dict[str, dict[str, Any]]) -> None:
    """Add what no case tells, as missing."""
    for name in _ALWAYS:
        if not any(each == name or each.startswith(f"{name}: ") for each in found):
            reason = f"too few labelled cases tell their {_plain(name)}, or all the same"
            nothing = Estimate.missing(reason)
            found[name] = {"coefficient": nothing, "p": None, "p_holm": None, "n": 0}
            found[name] |= {"pull": nothing, "pull_p": None, "pull_p_holm": None}
            found[name] |= {"unit": None, "finding": None}


def _columns(
    pairs: Sequence[Pair],
) -> Iterable[tuple[str, bool, list[tuple[int, float]]]]:
    """Each number or kind: its name, whether it is a kind, and (place of the case, number)."""
    sizes = [(at, pair.judged.length) for at, pair in enumerate(pairs)]
    lengths = [(at, float(size)) for at, size in sizes if size is not None]
    yield from _if_varied("length", lengths)
    names = Counter(name for pair in pairs for name in pair.judged.about)
    tags = [name for name, _ in names.most_common() if name not in _ALWAYS][:_MOST_TAGS]
    for name in [*(each for each in _ALWAYS if each in names), *tags]:
        known = [
            (at, pair.judged.about[name])
            for at, pair in enumerate(pairs)
            if name in pair.judged.about
        ]
        numbers = [(at, value) for at, value in known if isinstance(value, float)]
        yield from _if_varied(name, numbers)
        words = [(at, value) for at, value in known if isinstance(value, str)]
        kinds = Counter(word for _, word in words)
        if len(kinds) > 1:
            # The kinds of a pair mirror each other: one of them says it all.
            shown = kinds.most_common(_MOST_KINDS) if len(kinds) > 2 else kinds.most_common()[1:]  # noqa: PLR2004
            for word, times in shown:
                if min(times, len(words) - times) >= _FEWEST:
                    yield (
                        f"{name}: {word}",
                        True,
                        [(at, float(value == word)) for at, value in words],
                    )


def _if_varied(
    name: str, numbers: list[tuple[int, float]]
) -> Iterable[tuple[str, bool, list[tuple[int, float]]]]:
    varied = len({number for _, number in numbers}) > 1
    if len(numbers) >= 2 * _FEWEST and varied:
        yield name, False, numbers


def _held(effect: Effect, errors: Sequence[bool]) -> Effect:
    """Say in the judge's terms why there is no effect to be seen."""
    if effect.coefficient.value is not None:
        return effect
    reason = "the judge makes only errors" if any(errors) else "the judge makes no error here"
    return Effect(Estimate.missing(reason, n=len(errors), method=effect.coefficient.method), None)


def _spread(numbers: Sequence[float]) -> float:
    centre = sum(numbers) / len(numbers)
    return float((sum((number - centre) ** 2 for number in numbers) / len(numbers)) ** 0.5)


def _natural(estimate: Estimate, numbers: Sequence[float]) -> Estimate:
    """Per unit, where it is per standard deviation."""
    spread = _spread(numbers)
    ends = {
        name: None if number is None else number / spread
        for name, number in (
            ("value", estimate.value),
            ("low", estimate.low),
            ("high", estimate.high),
        )
    }
    return estimate.model_copy(update=ends)


def _finding(name: str, entry: dict[str, Any]) -> str | None:
    """What can be told beyond chance, over all that was looked at."""
    words = _WORDS.get(name, f"answers with the {name.removeprefix('tag ').replace(': ', ' ', 1)}")
    said = []
    coefficient, pull = entry["coefficient"].value, entry["pull"].value
    if coefficient is not None and entry["p_holm"] is not None and entry["p_holm"] < _ALPHA:
        said.append(f"the judge errs {'more' if coefficient > 0 else 'less'} on {words}")
    if pull is not None and entry["pull_p_holm"] is not None and entry["pull_p_holm"] < _ALPHA:
        said.append(f"it is too {'kind to' if pull > 0 else 'hard on'} {words}")
    return "; ".join(said) or None


def _plain(name: str) -> str:
    return name.replace("_", " ")
