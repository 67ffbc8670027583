"""Check a judge with altered answers: what each alteration must change, and whether it does."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from misslink.calibration_document import AuditedChange, AuditFigures
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.protocol import Ask, Judge, unwrap_judge
from misslink.matching import claim_spans, states_absence
from misslink.registry import judged_metrics
from misslink.render.format import format_share_of
from misslink.stats import holm, mean, paired_difference, proportion
from misslink.stats.paired_tests import mcnemar_test
from misslink.text.normalization import content_words, fold, sentence_spans
from misslink.timeouts import map_concurrently
from misslink.types import Case, Claim, Estimate, Run, Verdict

CHANGES = ("padding", "passage_order", "passage_shuffle", "again")
_MIN_FILLER_WORDS = 4  # fewer are headings and fragments
_MAX_FILLER_CHARACTERS = 400  # longer ones are tables or texts without full stops
_TWO_PASSAGES = 2  # have two orders only: as they are and reversed


class AuditSample(NamedTuple):
    """The sampled cases in the run's order, and how many of them the run's judge calls good, bad."""

    cases: tuple[Case, ...]
    good: int
    bad: int


def draw_audit_sample(run: Run, metric: str, size: int, seed: int = 0) -> AuditSample:
    """Sample cases of a run, half of those that its judge calls good and half of the others.

    A flip away from a rare verdict would otherwise hardly be seen: of 50 cases of a run in which
    one in ten is bad, 5 could turn good. So shares over the sample are not shares over the run.

    Parameters
    ----------
    run : Run
        Only cases with an answer are sampled.
    metric : str
        Whose verdicts are used. In a run that was not judged by it, cases are sampled at random.
    size : int
        At least 1. Where one verdict has too few cases, the other fills up.
    seed : int

    Returns
    -------
    AuditSample
        Empty where no case has an answer, or no verdict of the metric has a label.
    """
    answered = {trace.case_id for trace in run.traces if (trace.answer or "").strip()}
    verdicts = [score for score in run.scores if score.metric == metric]
    labels = {verdict.case_id: verdict.label for verdict in verdicts if verdict.label is not None}
    rng = random.Random(seed)  # noqa: S311 (no secret)

    def shuffled(case_ids: list[str]) -> list[str]:
        return rng.sample(sorted(case_ids), min(size, len(case_ids)))

    candidates = [case.id for case in run.cases if case.id in answered]
    if verdicts:
        good = shuffled([case_id for case_id in candidates if labels.get(case_id) is True])
        bad = shuffled([case_id for case_id in candidates if labels.get(case_id) is False])
        bad_count = min(len(bad), max(size // 2, size - len(good)))
        chosen = {*good[: size - bad_count], *bad[:bad_count]}
    else:
        chosen = set(shuffled(candidates))
    return AuditSample(
        tuple(case for case in run.cases if case.id in chosen),
        good=sum(labels.get(case_id) is True for case_id in chosen),
        bad=sum(labels.get(case_id) is False for case_id in chosen),
    )


def audited_metrics() -> dict[str, JudgedMetric]:
    """The registered metrics that can be audited: it is known how their answer is padded."""
    metrics = {name: judged_metrics.get(name) for name in judged_metrics.names()}
    return {name: metric for name, metric in metrics.items() if metric.padding}


def pad_answer(subject: Subject, filler: Literal["passages", "answer"], seed: int) -> Subject | str:
    """Return the case with an answer about twice as long that says nothing new, or why not.

    Parameters
    ----------
    subject : Subject
        With an answer.
    filler : {'passages', 'answer'}
        'passages': sentences of its passages, verbatim and in random order, until the answer is
        twice as long. A faithful answer stays faithful, since each sentence is in a passage; an
        unfaithful one keeps what made it so. Questions, fragments, statements of ignorance and
        what the answer says already are left out. 'answer': its own sentences once more.
    seed : int
    """
    text = subject.answer.rstrip()
    if filler == "answer":
        return _with_trace(subject, answer=f"{text} {subject.answer.lstrip()}")
    sentences = _supported_sentences(subject)
    if not sentences:
        return "its passages hold no sentence that could be added"
    _seeded_random(subject, seed, filler).shuffle(sentences)
    for sentence in sentences:
        if len(text) >= 2 * len(subject.answer):
            break
        text = f"{text} {sentence}"
    return _with_trace(subject, answer=text)


def reorder_passages(subject: Subject, change: str, seed: int) -> Subject | str:
    """Return the case with its passages in another order, or why there is none.

    `change` is 'passage_order' (reversed) or 'passage_shuffle' (random, neither the original
    order nor its reverse).
    """
    passages = subject.context
    if len(passages) < _TWO_PASSAGES:
        return "it has fewer than two passages"
    known = [list(passages), list(passages)[::-1]]
    order = known[-1]
    if change != "passage_order":
        if len(passages) == _TWO_PASSAGES:
            return "two passages have only two orders"
        rng = _seeded_random(subject, seed, change)
        while order in known:
            order = rng.sample(passages, len(passages))
    ranked = tuple(p.model_copy(update={"rank": rank}) for rank, p in enumerate(order, 1))
    return _with_trace(subject, retrieved=ranked, prompted=tuple(p.id for p in ranked))


def _supported_sentences(subject: Subject) -> list[str]:
    """Sentences of the passages that state something and are new to the answer, each once."""
    answer = fold(subject.answer)
    unique: dict[str, str] = {}
    for passage in subject.context:
        for start, end in sentence_spans(passage.text):
            sentence = " ".join(passage.text[start:end].split())
            folded = fold(sentence)
            if (
                len(sentence) <= _MAX_FILLER_CHARACTERS
                and sentence.endswith((".", "!", "\u3002"))
                and len(content_words(sentence)) >= _MIN_FILLER_WORDS
                and claim_spans(sentence)
                and not states_absence(sentence)
                and folded.rstrip(".!") not in answer
            ):
                unique.setdefault(folded, sentence)
    return list(unique.values())


def _with_trace(subject: Subject, **changes: Any) -> Subject:
    trace = subject.trace.model_copy(update=changes)
    return Subject(subject.case, trace, subject.k, subject.prompts)


def _seeded_random(subject: Subject, seed: int, purpose: str) -> random.Random:
    """A generator that depends on the case and not on which others are audited."""
    name = f"{seed}:{purpose}:{subject.case.id}".encode("utf-8", "surrogatepass")
    return random.Random(hashlib.sha256(name).digest())  # noqa: S311 (no secret)


@dataclass(frozen=True)
class AuditedCase:
    """A judge's verdicts on one case.

    Parameters
    ----------
    answer : str
        As the app gave it.
    base : mapping of str to Verdict
        By metric, of the unchanged case.
    changed : mapping of str to mapping of str to Verdict
        By change, then by metric.
    unchanged : mapping of str to mapping of str to str
        By change, then by metric: why the case could not be changed so.
    """

    answer: str
    base: Mapping[str, Verdict]
    changed: Mapping[str, Mapping[str, Verdict]]
    unchanged: Mapping[str, Mapping[str, str]]


def is_deterministic(judge: Judge) -> bool:
    """Whether a judge gives the same answer to the same question by construction."""
    return isinstance(unwrap_judge(judge), HeuristicJudge)


async def audit_cases(
    judge: Judge,
    subjects: Sequence[Subject],
    metrics: Sequence[JudgedMetric],
    *,
    repeat: int = 1,
    seed: int = 0,
    tick: Callable[[int, int], object] = lambda _, __: None,
) -> list[AuditedCase]:
    """Judge every case unchanged and with each change, in the order of the cases.

    Parameters
    ----------
    judge : Judge
        With its response cache: replies from the audited run are not paid for again.
    subjects : sequence of Subject
    metrics : sequence of JudgedMetric
        One without a padding, such as a criterion of the user's own, is not audited for it.
    repeat : int
        The number of the sample for asking again, at least 1: one that the run has not asked for,
        or the cache would only repeat a reply. A deterministic judge is not asked again.
    seed : int
    tick : callable
        Receives how many cases are done and how many there are.

    Raises
    ------
    JudgeUnreachableError
        The judge cannot be reached; earlier replies are in the cache.
    """
    return await map_concurrently(
        subjects,
        lambda subject: _audit_case(judge, subject, metrics, repeat, seed),
        len(subjects),
        tick,
    )


def audit_asks(
    subjects: Sequence[Subject],
    metrics: Sequence[JudgedMetric],
    judge: Judge,
    *,
    repeat: int = 1,
    seed: int = 0,
) -> Iterator[Ask]:
    """Every question that `audit_cases` would ask if each case had a verdict; for a forecast."""
    seen: set[tuple[str, int]] = set()
    for subject in subjects:
        unchanged: _Variant = "", metrics, subject, 0
        variants = _variants(subject, metrics, judge, repeat, seed)
        for _, served, variant, number in (unchanged, *variants):
            if isinstance(variant, str):
                continue
            for metric in served:
                ask = metric.ask(variant)
                if isinstance(ask, Ask) and (ask.key, number) not in seen:
                    seen.add((ask.key, number))
                    yield replace(ask, repeat=number)


async def _audit_case(
    judge: Judge, subject: Subject, metrics: Sequence[JudgedMetric], repeat: int, seed: int
) -> AuditedCase:
    base = {verdict.metric: verdict for verdict in await judge_case(subject, metrics, judge)}
    # A metric without a verdict cannot flip, so its changes are not paid for.
    judged = [metric for metric in metrics if base[metric.name].label is not None]
    variants = list(_variants(subject, judged, judge, repeat, seed)) if judged else []
    calls = [
        judge_case(variant, served, judge, first_sample=number)
        for _, served, variant, number in variants
        if isinstance(variant, Subject)
    ]
    results = iter(await asyncio.gather(*calls))
    changed = defaultdict[str, dict[str, Verdict]](dict)
    unchanged = defaultdict[str, dict[str, str]](dict)
    for change, served, variant, _ in variants:
        if isinstance(variant, str):
            unchanged[change].update({metric.name: variant for metric in served})
        else:
            changed[change].update({verdict.metric: verdict for verdict in next(results)})
    return AuditedCase(subject.answer, base, changed, unchanged)


# A change, the metrics that it is for, the changed case or why there is none, and the sample.
_Variant = tuple[str, Sequence[JudgedMetric], Subject | str, int]


def _variants(
    subject: Subject, metrics: Sequence[JudgedMetric], judge: Judge, repeat: int, seed: int
) -> Iterator[_Variant]:
    for filler in dict.fromkeys(metric.padding and metric.padding.filler for metric in metrics):
        served = [m for m in metrics if (m.padding and m.padding.filler) == filler]
        padded = (
            pad_answer(subject, filler, seed) if filler else "padding may matter to this metric"
        )
        yield "padding", served, padded, 0
    for change in ("passage_order", "passage_shuffle"):
        yield change, metrics, reorder_passages(subject, change, seed), 0
    if not is_deterministic(judge):
        yield "again", metrics, subject, repeat


_TOLERATED_FLIP_RATE = 0.05  # share of verdicts that may flip by chance, as in the advice rules
_ALPHA = 0.05
_CHANGE_LABELS = {
    "padding": "Padding the answer with what adds nothing",
    "passage_order": "Reversing the order of the passages",
    "passage_shuffle": "Shuffling the passages",
}
Changes = dict[str, dict[str, AuditedChange]]  # by metric and change
_VerdictPair = tuple[AuditedCase, Verdict, Verdict]  # before and after the change


def compare_verdicts(
    cases: Sequence[AuditedCase], metrics: Sequence[str], *, again: bool, seed: int = 0
) -> Changes:
    """Compare verdicts on changed and unchanged cases, by metric and change."""
    return {
        metric: {
            change: _change_entry(cases, metric, change, again, seed)
            for change in CHANGES
            if again or change != "again"
        }
        for metric in metrics
    }


def _excess_flip_p_value(flips: int, n: int) -> float | None:
    """P(at least so many of `n` flip) if the tolerated share does; exact, None without cases."""
    from scipy.stats import binomtest

    if not n:
        return None
    return float(binomtest(flips, n, _TOLERATED_FLIP_RATE, alternative="greater").pvalue)


def _change_entry(
    cases: Sequence[AuditedCase], metric: str, change: str, again: bool, seed: int
) -> AuditedChange:
    audited = audited_metrics().get(metric)
    padding = audited.padding if audited and change == "padding" else None
    may_lower = padding is not None and padding.may_lower  # a verdict may rightly be worse
    left_out: Counter[str] = Counter()
    pairs: list[_VerdictPair] = []
    for case in cases:
        before, after = case.base[metric], case.changed.get(change, {}).get(metric)
        if before.label is None:
            left_out[f"as it stands: {before.reason or 'no verdict'}"] += 1
        elif after is None:
            left_out[case.unchanged.get(change, {}).get(metric, "not asked")] += 1
        elif after.label is None:
            left_out[f"{after.status} once changed: {after.reason or 'no verdict'}"] += 1
        else:
            pairs.append((case, before, after))
    turns = Counter((before.label, after.label) for _, before, after in pairs)
    to_good, to_bad = turns[False, True], turns[True, False]

    def share(count: int) -> Estimate:
        if pairs:
            return proportion(count, len(pairs))
        return Estimate.missing("no case has a verdict before and after")

    def flips(before: Verdict, after: Verdict) -> bool:
        return before.label != after.label and (before.label is False or not may_lower)

    # Compare with the repeated verdict: cases were sampled by their first verdict, and a verdict
    # that is bad by chance tends to be good the next time (regression to the mean).
    repeated = again and change != "again"
    rows = [
        (case, before, reference, after)
        for case, before, after in pairs
        if (reference := case.changed.get("again", {}).get(metric) if repeated else before)
        and reference.label is not None
    ]
    gained = sum(ref.label is False and after.label is True for _, _, ref, after in rows)
    lost = sum(ref.label is True and after.label is False for _, _, ref, after in rows)
    if change == "again":
        p_more = _excess_flip_p_value(to_good + to_bad, len(pairs))
    else:
        flip_pairs = [(flips(before, ref), flips(before, after)) for _, before, ref, after in rows]
        more, less = flip_pairs.count((False, True)), flip_pairs.count((True, False))
        p_more = mcnemar_test(more, less).p if rows and more > less else 1.0 if rows else None
    of_claims = (metric, change) == ("faithfulness", "padding")
    scores = [_scores(case, ref, after, of_claims=of_claims) for case, _, ref, after in rows]
    both = [pair for pair in scores if pair is not None]
    return AuditedChange.read({}).replace(
        n=len(pairs),
        good=sum(before.label is True for _, before, _ in pairs),
        bad=sum(before.label is False for _, before, _ in pairs),
        flipped=share(to_good + to_bad),
        to_good=share(to_good),
        to_bad=share(to_bad),
        shift=paired_difference([a for a, _ in both], [b for _, b in both], seed=seed).difference,
        gained=gained,
        lost=lost,
        p=mcnemar_test(gained, lost).p if rows else None,
        p_more=p_more,
        claims=_claim_flip_rate(pairs, seed) if of_claims else None,
        may_lower=may_lower,
        left_out=dict(left_out.most_common()),
    )


def _scores(
    case: AuditedCase, before: Verdict, after: Verdict, *, of_claims: bool
) -> tuple[float, float] | None:
    """The score before and after: shares of supported claims, or probabilities, or values."""
    if of_claims:
        claims = _original_claims(after, before, case.answer)
        if not claims or not before.claims:
            return None
        sides = before.claims, claims
        shares = [sum(c.support == "supported" for c in side) / len(side) for side in sides]
        return shares[0], shares[1]
    if before.probability is not None and after.probability is not None:
        return before.probability, after.probability
    if before.value is None or after.value is None:
        return None
    return before.value, after.value


def _original_claims(after: Verdict, before: Verdict, answer: str) -> list[Claim] | None:
    """The claims of a padded answer that are in the answer itself; None where one has no place."""
    original_texts = {fold(claim.text) for claim in before.claims}
    original = []
    for claim in after.claims:
        if claim.start is None and fold(claim.text) not in original_texts:
            return None
        if claim.start is None or claim.start < len(answer.rstrip()):
            original.append(claim)
    return original


def _claim_flip_rate(pairs: Sequence[_VerdictPair], seed: int) -> Estimate:
    """The mean share of a case's claims whose support changes when the answer is padded."""
    shares = []
    for case, before, after in pairs:
        claims = {fold(c.text): c for c in _original_claims(after, before, case.answer) or ()}
        both = [(c, claims[key]) for c in before.claims if (key := fold(c.text)) in claims]
        if both:
            changed = sum((a.support == "supported") != (b.support == "supported") for a, b in both)
            shares.append(changed / len(both))
    if not shares:
        return Estimate.missing("no claim was found again in the padded answer")
    return mean(shares, seed=seed)


def correct_changes(metrics: Changes, preferences: Mapping[str, Any] | None = None) -> AuditFigures:
    """Correct all tests for multiple testing, and state what holds.

    Parameters
    ----------
    metrics : mapping of str to mapping of str to AuditedChange
        As `compare_verdicts` returns it.
    preferences : mapping or None
        As `misslink.judge.checks.pairwise.summarize_preferences` returns it.

    Returns
    -------
    AuditFigures
        With ``answer_order`` where pairs were compared; each change with ``p_holm`` and
        ``p_more_holm``, by Holm over all tests, and ``finding``: one sentence of what holds at the
        5% level after that, or None.
    """
    orders = {} if preferences is None else {"answer_order": _answer_order(preferences)}
    changes = [*metrics.values(), orders]
    p_values = iter(
        holm(
            [p for of_one in changes for entry in of_one.values() for p in (entry.p, entry.p_more)]
        )
    )

    def corrected(metric: str, of_metric: Mapping[str, AuditedChange]) -> dict[str, AuditedChange]:
        found = {}
        for change, entry in of_metric.items():
            tested = entry.replace(p_holm=next(p_values), p_more_holm=next(p_values))
            found[change] = tested.replace(finding=_finding(metric, change, tested))
        return found

    return AuditFigures(
        metrics={metric: corrected(metric, of_metric) for metric, of_metric in metrics.items()},
        preferences=corrected("preference", orders),
    )


def nothing_compared_reason(metrics: Changes) -> str | None:
    """Why nothing could be compared, as part of a sentence; None: something could."""
    entries = [entry for changes in metrics.values() for entry in changes.values()]
    if any(entry.n for entry in entries):
        return None
    reasons: Counter[str] = Counter()
    for entry in entries:
        reasons.update(entry.left_out)
    if not reasons:
        return "no case could be asked about"
    ((reason, count),) = reasons.most_common(1)
    return f"no verdict could be compared, in {count} of {reasons.total()} because {reason}"


def audit_notes(
    judge: Judge, cases: Sequence[AuditedCase], sample: AuditSample, metric: str, skipped: int
) -> list[str]:
    """State what a reader of an audit must know, as sentences.

    Parameters
    ----------
    judge : Judge
    cases : sequence of AuditedCase
    sample : AuditSample
    metric : str
        By whose verdicts the cases were sampled.
    skipped : int
        Questions that were not asked because of a limit.
    """
    notes = []
    if sample.good or sample.bad:
        notes.append(
            f"In {sample.good} of the {len(sample.cases)} cases the run's verdict on"
            f" {metric.replace('_', ' ')} is good, in {sample.bad} it is bad. The cases were"
            " sampled by it, so shares over them are not shares over the run."
        )
    if sample.cases and not (sample.good and sample.bad):
        notes.append("All cases have the same verdict, so a change can move it in one way only.")
    if is_deterministic(judge):
        notes.append(
            f"{judge.name} always gives the same reply to the same question, so it was not asked"
            " again: every flip comes from the change."
        )
    if skipped:
        notes.append(
            f"{skipped} questions were not asked because the budget or the time is used up. Run"
            " the same command with a higher limit to continue."
        )
    failed = Counter(
        verdict.reason or "no reason"
        for case in cases
        for verdicts in (case.base, *case.changed.values())
        for verdict in verdicts.values()
        if verdict.status == "failed"
    )
    if failed:
        ((reason, count),) = failed.most_common(1)
        notes.append(
            f"{failed.total()} verdicts failed and count nowhere, {count} of them because {reason}."
        )
    return notes


def _answer_order(preferences: Mapping[str, Any]) -> AuditedChange:
    """How often the order of two answers decides which is better, and which place it favors."""
    flipped = Estimate.model_validate(preferences["position_flips"])
    places = {name: int(preferences["positions"][name]) for name in ("first", "second")}
    p = p_more = None
    if flipped.value is not None:
        p = mcnemar_test(places["first"], places["second"]).p
        p_more = _excess_flip_p_value(round(flipped.value * flipped.n), flipped.n)
    return AuditedChange.read({}).replace(
        n=flipped.n,
        flipped=flipped,
        p=p,
        p_more=p_more,
        left_out=dict(preferences["left_out"]),
        places=places,
    )


def _finding(metric: str, change: str, entry: AuditedChange) -> str | None:
    gained, lost = entry.gained or 0, entry.lost or 0
    one_sided = entry.p_holm is not None and entry.p_holm < _ALPHA
    # A change that may rightly lower a verdict is no finding where it does.
    one_sided = one_sided and (gained > lost or not entry.may_lower)
    more_flips = entry.p_more_holm is not None and entry.p_more_holm < _ALPHA
    if not one_sided and not more_flips:
        return None
    flipped = entry.flipped
    if change == "answer_order":
        places = entry.places
        favored = "first" if places["first"] > places["second"] else "second"
        direction = f", in favor of the one shown {favored}" if one_sided else ""
        pairs = format_share_of(flipped, "pair") + direction
        return f"Which of two answers is better changes with their order in {pairs}."
    label = metric.replace("_", " ")
    if change == "again":
        cases = format_share_of(flipped, "case")
        return f"Asked again, the judge changes its verdict on {label} in {cases}."
    if entry.may_lower and entry.to_good is not None:
        cases = format_share_of(entry.to_good, "case")
        return f"{_CHANGE_LABELS[change]} turns {label} good in {cases}."
    better = "good" if gained > lost else "bad"
    direction = f", more often to {better}" if one_sided else ""
    return f"{_CHANGE_LABELS[change]} turns {format_share_of(flipped, 'verdict')} on {label}{direction}."
