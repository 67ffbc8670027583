"""What the judge's errors depend on that should not matter: length, passages, position."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from misslink.calibration.inter_annotator import LabelPair, judge_calls
from misslink.calibration.verdicts import MODEL_TAG
from misslink.calibration_document import Bias, MatchedPairsDocument
from misslink.render.reasons import describe_reasons
from misslink.stats import holm, mean
from misslink.stats.intervals import (
    LEVEL,
    Floats,
    critical_value,
    student_quantile,
    wilson_interval,
)
from misslink.stats.paired_tests import mcnemar_test
from misslink.types import Estimate, Reason

_METHOD = "wilson, clustered"
_NEWTON_STEPS = 100
_TOLERANCE = 1e-9
_MAX_STEP = 2.0  # the longest step of Newton's method, of log-odds per standard deviation
_MAX_LOG_ODDS = 60.0  # log-odds per standard deviation beyond which no end is looked for
_HALVINGS = 24
_FIRTH_METHOD = "firth, profile"
_MAX_ANSWERS = 60  # answers to one question that are compared pairwise


def length_preference(pairs: Sequence[LabelPair]) -> MatchedPairsDocument:
    """Compare, within each question, the longer of two answers with the shorter.

    Returns
    -------
    MatchedPairsDocument
        As `category_preference`, with ``longer_preferred`` in place of ``preferred``.
    """
    found = _compare_pairs(pairs, lambda pair: pair.judged.length)
    return found.replace(longer_preferred=found.preferred, preferred=None)


def category_preference(
    pairs: Sequence[LabelPair], name: str, category: str
) -> MatchedPairsDocument:
    """Compare, within each question, an answer of one category with one of another.

    Only answers with the same label are compared: neither the question nor the quality by human
    labels can then explain a difference of scores.

    Parameters
    ----------
    pairs : sequence of LabelPair
        Of all questions; those without a group are not compared.
    name, category : str
        A covariate, such as 'model', and its value.

    Returns
    -------
    MatchedPairsDocument
        ``pairs``
            Pairs of answers to one question with the same label, one of the category and one not;
            ``ties`` of them have the same score. ``questions``: those that have any.
        ``preferred``
            Estimate: the share of the other pairs in which the one of the category has the higher
            score. Its interval is Wilson's for the effective number of independent pairs, since
            pairs of one question are correlated, with Student's quantile.
        ``difference``
            Estimate: how much higher it is scored, in standard deviations of all scores, as the
            mean over questions of their mean pair.
        ``p``
            Exact sign test over questions: in how many the majority of pairs goes either way. None
            without a pair.

    References
    ----------
    Korn and Graubard (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data (the effective sample size, here in Wilson's
    interval). Dixon and Mood (1946), The statistical sign test.
    """

    def is_category(pair: LabelPair) -> bool | None:
        word = pair.judged.covariates.get(name)
        return None if word is None else word == category

    return _compare_pairs(pairs, is_category)


def _compare_pairs(
    pairs: Sequence[LabelPair], number_of: Callable[[LabelPair], float | None]
) -> MatchedPairsDocument:
    """Compare, within each question, the answer of the larger number with the other one."""
    groups: dict[str, list[LabelPair]] = {}
    for pair in pairs:
        if pair.judged.group is not None:
            groups.setdefault(pair.judged.group, []).append(pair)
    groups = {name: group for name, group in groups.items() if len(group) > 1}
    questions = []  # the score differences of the pairs of each question
    for group in groups.values():
        thinned = group[:: -(-len(group) // _MAX_ANSWERS)]
        differences = []
        for first, second in combinations(thinned, 2):
            a, b = number_of(first), number_of(second)
            if first.good == second.good and a is not None and b is not None and a != b:
                differences.append((first.score - second.score) * (1 if a > b else -1))
        if differences:
            questions.append(differences)
    wins = [(sum(d > 0 for d in pair), sum(d < 0 for d in pair)) for pair in questions]
    up, down = sum(won > losses for won, losses in wins), sum(won < losses for won, losses in wins)
    flat = [difference for differences in questions for difference in differences]
    return MatchedPairsDocument(
        pairs=len(flat),
        ties=flat.count(0.0),
        questions=len(questions),
        preferred=_preference_estimate(wins, has_groups=bool(groups)),
        longer_preferred=None,
        difference=_difference_estimate(questions, [pair.score for pair in pairs]),
        p=mcnemar_test(up, down).p if questions else None,
        p_holm=None,
        finding=None,
    )


def _preference_estimate(wins: Sequence[tuple[int, int]], *, has_groups: bool) -> Estimate:
    """The share of untied pairs that go one way, with an interval that respects clusters."""
    untied = [(won, won + losses) for won, losses in wins if won + losses]
    n, count = sum(size for _, size in untied), len(untied)
    if not n:
        reason = Reason(code="no_labelled_pair")
        if has_groups:
            reason = Reason(code="no_differing_pair")
        if wins:
            reason = Reason(code="only_tied_pairs")
        return Estimate.missing(reason, method=_METHOD)
    share = sum(won for won, _ in untied) / n
    alone = share * (1 - share) / n
    # How many independent pairs these are worth, at most their number: by the variance of the
    # ratio of wins to pairs over questions, against that of independent pairs. If all go one way,
    # a question is worth one.
    effective, quantile = float(count), critical_value(LEVEL)
    if count > 1 and alone:
        spread = sum((won - share * size) ** 2 for won, size in untied)
        clustered = spread / n**2 * count / (count - 1)
        effective = float(n) if clustered <= alone else max(n * alone / clustered, 1.0)
        if any(size > 1 for _, size in untied):
            quantile = student_quantile(LEVEL, count - 1)
    low, high = wilson_interval(share, effective, quantile)
    return Estimate(value=share, low=low, high=high, n=n, method=_METHOD)


def _difference_estimate(questions: Sequence[Sequence[float]], scores: Sequence[float]) -> Estimate:
    if not questions:
        return Estimate.missing(Reason(code="no_pair"))
    spread = statistics.pstdev(scores)
    if not spread:
        return Estimate.missing(Reason(code="one_score"))
    means = [sum(differences) / len(differences) / spread for differences in questions]
    return mean(means, bounds=None)


_MIN_CASES = 5  # of a category, and of the rest
_MAX_CATEGORIES = 12  # of one covariate; the most frequent ones
_MAX_TAGS = 20
_ALPHA = 0.05
_REPORTED_COVARIATES = ("length", "passages", "evidence_position", "category", "model")


def measure_bias(pairs: Sequence[LabelPair], threshold: float) -> dict[str, Bias]:
    """Regress the judge's errors, and its calls given the label, on what should not matter.

    Parameters
    ----------
    pairs : sequence of LabelPair
    threshold : float

    Returns
    -------
    dict
        By name, such as 'length' or 'category: law' (that category against all others), each with
        ``coefficient`` (log-odds of an error per ``unit``), ``p``, ``p_holm`` (over all), ``pull``
        (log-odds of the call good, the label held constant: above 0 it is too lenient), ``unit``
        and ``finding``, a sentence. A covariate that no case has is missing, with a reason.
        'length' and each category of 'model' have ``matched`` too: the difference within a
        question, among answers with the same label (`category_preference`), with
        ``p_holm`` over all of these and a ``finding``.

    Notes
    -----
    Each covariate is regressed by itself, by Firth's logistic regression: labels are too few to
    separate correlated covariates, and both will show.
    """
    called = judge_calls(pairs, threshold)
    entries: dict[str, Bias] = {}
    for name, is_category, column in _covariate_columns(pairs):
        numbers = [float(number) for _, number in column]
        labels = [float(pairs[case].good) for case, _ in column]
        calls = [called[case] for case, _ in column]
        errors = [call != bool(label) for call, label in zip(calls, labels, strict=True)]
        effect, pull = firth_regression(errors, numbers), firth_regression(calls, numbers, [labels])
        coefficient = effect.coefficient
        if coefficient.value is None:
            only = Reason(code="only_judge_errors" if any(errors) else "no_judge_error")
            coefficient = Estimate.missing(only, n=len(errors), method=coefficient.method)
        spread = statistics.pstdev(numbers)
        scale = spread if is_category else 1.0
        entries[name] = Bias(
            coefficient=_divided(coefficient, scale),
            pull=_divided(pull.coefficient, scale),
            p=None if effect.coefficient.value is None else effect.p,
            p_holm=None,
            pull_p=pull.p,
            pull_p_holm=None,
            n=len(numbers),
            unit=str(Reason(code="coefficient_unit", sd=None if is_category else spread)),
            finding=None,
            matched=None,
        )
    corrected = (
        holm([entry.p for entry in entries.values()]),
        holm([entry.pull_p for entry in entries.values()]),
    )
    for name, p, pull_p in zip(list(entries), *corrected, strict=True):
        entry = entries[name].replace(p_holm=p, pull_p_holm=pull_p)
        entries[name] = entry.replace(finding=_covariate_finding(name, entry))
    for name in _REPORTED_COVARIATES:
        if not any(entry == name or entry.startswith(f"{name}: ") for entry in entries):
            missing = Estimate.missing(Reason(code="covariate_unknown", covariate=name))
            entries[name] = Bias(
                coefficient=missing,
                pull=missing,
                p=None,
                p_holm=None,
                pull_p=None,
                pull_p_holm=None,
                n=0,
                unit=None,
                finding=None,
                matched=None,
            )
    _add_matched_pairs(entries, pairs)
    return entries


def bias_findings(entries: Mapping[str, Bias]) -> list[str]:
    """Return all findings beyond chance, including those within questions."""
    findings: list[str | None] = []
    for entry in entries.values():
        findings += [entry.finding, entry.matched.finding if entry.matched else None]
    return [finding for finding in findings if finding]


def _add_matched_pairs(entries: dict[str, Bias], pairs: Sequence[LabelPair]) -> None:
    """Add the effect of length and model within a question, among answers with one label."""
    matched = {"length": length_preference(pairs)}
    for name in entries:
        covariate, _, category = name.partition(": ")
        if covariate == MODEL_TAG and category:
            matched[name] = category_preference(pairs, MODEL_TAG, category)
    corrected = holm([entry.p for entry in matched.values()])
    for (name, entry), p in zip(matched.items(), corrected, strict=True):
        share, finding = entry.longer_preferred or entry.preferred, None
        if share and share.value is not None and p is not None and p < _ALPHA:
            finding = str(Reason(code="pair_preference", covariate=name, share=share))
        entries[name] = entries[name].replace(matched=entry.replace(p_holm=p, finding=finding))


def _covariate_columns(
    pairs: Sequence[LabelPair],
) -> Iterator[tuple[str, bool, list[tuple[int, float]]]]:
    """Each number or category: its name, whether it is a category, and (case, number)."""
    rows: list[dict[str, float | str]] = []
    for pair in pairs:
        length = pair.judged.length
        own: dict[str, float | str] = {} if length is None else {"length": float(length)}
        rows.append(own | dict(pair.judged.covariates))
    names = Counter(name for row in rows for name in row)
    tags = [name for name, _ in names.most_common() if name not in _REPORTED_COVARIATES]
    for name in (*(n for n in _REPORTED_COVARIATES if n in names), *tags[:_MAX_TAGS]):
        column = [(case, row[name]) for case, row in enumerate(rows) if name in row]
        numbers = [(case, value) for case, value in column if isinstance(value, float)]
        if len(numbers) >= 2 * _MIN_CASES and len({number for _, number in numbers}) > 1:
            yield name, False, numbers
        words = [(case, value) for case, value in column if isinstance(value, str)]
        counts = Counter(word for _, word in words).most_common()
        # Two categories mirror each other: one of them tells it all.
        categories = counts[:_MAX_CATEGORIES] if len(counts) > 2 else counts[1:]
        for word, times in categories:
            if min(times, len(words) - times) >= _MIN_CASES:
                yield f"{name}: {word}", True, [(case, float(w == word)) for case, w in words]


def _divided(estimate: Estimate, spread: float) -> Estimate:
    """Per unit instead of per standard deviation."""
    ends = {name: getattr(estimate, name) for name in ("value", "low", "high")}
    return estimate.model_copy(
        update={name: end if end is None else end / spread for name, end in ends.items()}
    )


def _covariate_finding(name: str, entry: Bias) -> str | None:
    """The effects beyond chance, over all covariates."""
    findings = []
    coefficient, pull = entry.coefficient.value, entry.pull.value if entry.pull else None
    if coefficient is not None and entry.p_holm is not None and entry.p_holm < _ALPHA:
        findings.append(Reason(code="errors_by_covariate", covariate=name, more=coefficient > 0))
    if pull is not None and entry.pull_p_holm is not None and entry.pull_p_holm < _ALPHA:
        findings.append(Reason(code="pull_by_covariate", covariate=name, lenient=pull > 0))
    return describe_reasons(findings) or None


@dataclass(frozen=True)
class RegressionEffect:
    """How an outcome depends on one number.

    Parameters
    ----------
    coefficient : Estimate
        Change of the log-odds of the outcome per standard deviation of the number.
    p : float or None
        Of the penalised likelihood-ratio test of no effect. None: not computed.
    """

    coefficient: Estimate
    p: float | None


def firth_regression(
    outcome: Sequence[bool], number: Sequence[float], others: Sequence[Sequence[float]] = ()
) -> RegressionEffect:
    """Regress a yes-or-no outcome on a number, with others held constant.

    Parameters
    ----------
    outcome : sequence of bool
        One a case.
    number : sequence of float
        Of the same cases; standardised here.
    others : sequence of sequences of float
        Each of the same cases.

    Returns
    -------
    Effect
        Missing where the outcome or the number does not vary.

    Raises
    ------
    ValueError
        The lengths differ.

    Notes
    -----
    The likelihood is multiplied by the square root of the information's determinant, which takes
    out the bias of few cases and leaves every estimate finite, also where the number parts the
    outcomes fully. The interval inverts the profile of that likelihood.

    References
    ----------
    Firth (1993), Bias reduction of maximum likelihood estimates. Heinze and Schemper (2002), A
    solution to the problem of separation in logistic regression.

    Examples
    --------
    Of a yes-or-no number it is the log odds ratio with half a case more in each cell, here
    log(3.5^2 / 1.5^2) = 1.695; a standard deviation is half of the way from no to yes.

    >>> found = firth_regression([1, 1, 1, 0, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0])
    >>> round(found.coefficient.value / 0.5, 3)
    1.695
    """
    from scipy.special import chdtrc, chdtri

    n = len(outcome)
    if any(len(column) != n for column in (number, *others)):
        raise ValueError("outcome and numbers are not of the same cases")
    y = np.array(outcome, dtype=float)
    columns = [np.array(column, dtype=float) for column in (number, *others)]
    if not n or y.min() == y.max():
        reason = Reason(code="constant_outcome" if n else "no_cases")
        return RegressionEffect(Estimate.missing(reason, n=n, method=_FIRTH_METHOD), None)
    if columns[0].std() <= _TOLERANCE * max(1.0, float(np.abs(columns[0]).max())):
        reason = Reason(code="constant_number")
        return RegressionEffect(Estimate.missing(reason, n=n, method=_FIRTH_METHOD), None)
    varying_columns = [columns[0], *(column for column in columns[1:] if column.std() > 0)]
    scaled = [(column - column.mean()) / column.std() for column in varying_columns]
    rows, times = np.unique(np.column_stack([*scaled, y]), axis=0, return_counts=True)
    table = _WeightedRows(np.column_stack([np.ones(len(rows)), rows[:, :-1]]), rows[:, -1], times)
    if np.linalg.matrix_rank(table.x) < table.x.shape[1]:
        reason = Reason(code="collinear_number")
        return RegressionEffect(Estimate.missing(reason, n=n, method=_FIRTH_METHOD), None)
    value, best = _fit_penalized(table, np.zeros(len(varying_columns) + 1), None)
    drop = float(chdtri(1, 1 - LEVEL)) / 2  # of the log-likelihood, at both ends
    start = value

    def below(coefficient: float) -> float:
        nonlocal start  # the next place is near
        start, height = _fit_penalized(table, start, coefficient)
        return best - drop - height

    low, high = (_profile_end(below, float(value[1]), side) for side in (-1.0, 1.0))
    p = float(chdtrc(1, max(2 * (best - _fit_penalized(table, value, 0.0)[1]), 0.0)))
    coefficient = Estimate.partial(
        float(value[1]), low, high, Reason(code="open_interval"), n=n, method=_FIRTH_METHOD
    )
    return RegressionEffect(coefficient, p)


@dataclass(frozen=True)
class _WeightedRows:
    """Distinct rows: their numbers, their outcome, and how many cases have them."""

    x: Floats
    y: Floats
    times: NDArray[np.int64]

    def chances(self, coefficients: Floats) -> Floats:
        """The chance of the outcome in each row."""
        from scipy.special import expit

        chances: Floats = expit(self.x @ coefficients)
        return chances

    def information(self, chance: Floats) -> Floats:
        """Fisher's information."""
        return (self.x * (self.times * chance * (1 - chance))[:, None]).T @ self.x

    def likelihood(self, coefficients: Floats) -> float:
        """The penalised log-likelihood."""
        line = self.x @ coefficients
        sign, determinant = np.linalg.slogdet(self.information(self.chances(coefficients)))
        penalty = float(determinant) / 2 if sign > 0 else -np.inf
        return float(self.times @ (self.y * line - np.logaddexp(0, line))) + penalty


def _fit_penalized(table: _WeightedRows, start: Floats, held: float | None) -> tuple[Floats, float]:
    """The best coefficients, the second held where it is given, and their log-likelihood."""
    coefficients, x = start.copy(), table.x
    if held is not None:
        coefficients[1] = held
    free = np.array([place for place in range(len(coefficients)) if held is None or place != 1])
    level = table.likelihood(coefficients)
    for _ in range(_NEWTON_STEPS):
        chance = table.chances(coefficients)
        information = table.information(chance)
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = chance * (1 - chance) * ((x @ inverse) * x).sum(axis=1)
        score = x.T @ (table.times * (table.y - chance + leverage * (0.5 - chance)))
        step = np.zeros(len(coefficients))
        step[free] = np.linalg.lstsq(information[np.ix_(free, free)], score[free], rcond=None)[0]
        step *= min(1.0, _MAX_STEP / max(float(np.abs(step).max()), _TOLERANCE))
        moved, size = table.likelihood(coefficients + step), 1.0
        while moved < level and size > _TOLERANCE:
            size /= 2
            moved = table.likelihood(coefficients + size * step)
        if moved < level:
            break
        coefficients, gain, level = coefficients + size * step, moved - level, moved
        if gain < _TOLERANCE:
            break
    return coefficients, level


def _profile_end(below: Callable[[float], float], value: float, side: float) -> float | None:
    """Where the profile has dropped far enough, on one side of the value; None beyond all."""
    inside, outside = value, value + side / 4
    while below(outside) < 0:
        inside, outside = outside, value + 2 * (outside - value)
        if abs(outside) > _MAX_LOG_ODDS:
            return None
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if below(middle) > 0 else (middle, outside)
    return (inside + outside) / 2
