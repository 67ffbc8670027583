"""How each replayed answer turned out, and what follows: net effects and the causal fraction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from misslink.documents import (
    ReplayedArm,
    ReplayedCase,
    ReplayedFailure,
    ReplayFigures,
    SkippedReplay,
)
from misslink.failure_modes import FAILURE_MODES, MISS_MODES
from misslink.judge.calibration import Calibration
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.replay.plan import GOOD, replay_group
from misslink.linking.replay.sequence import ARMS, PLACEBO, CauseEvidence, confirm
from misslink.parts import by_case
from misslink.stats import proportion
from misslink.types import Case, Estimate, Reason, Run, Trace, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

APP_FAILED = "the app failed"
JUDGE = "judge"
MISSED = ARMS[1]
# Who can fix what an arm takes away; of the last, where it does not help.
ARM_OWNERS = dict(
    zip(ARMS, ("prompt", "retriever", "prompt", "generator", "generator"), strict=True)
)
# Replayed failures below which there is no causal fraction: its interval is wider than 60 points.
MIN_REPLAYED = 10
_METHOD = "paired net effect, dirichlet"  # of the causal fraction
_DRAWS = 20_000
_LEVEL = 0.95
_PRIOR = 0.5  # cases added to the answers of each kind: failed or not, with a missed passage or not
# Cases added to those that the treatment alone turned, and to those that the placebo alone did. Of
# 0.25, 0.5, 0.75 and 1 the one whose intervals cover best over 5 to 100 cases.
_EFFECT_PRIOR = 0.75
_NO_CASE = Reason(code="nothing_replayed")


@dataclass(frozen=True)
class ReplayOutcome:
    """Whether an answer is bad (unfaithful, wrong, incomplete or declined), and in which way.

    Parameters
    ----------
    bad : bool or None
        None: unknown, and ``name`` is 'inconclusive'.
    name : {'unfaithful', 'wrong', 'incomplete', 'declined', 'good', 'inconclusive'}
    reason : str or None
        Why it is unknown.
    correct : bool or None
    """

    bad: bool | None
    name: str
    reason: str | None = None
    correct: bool | None = None


def replay_outcome(
    case: Case,
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    k: int,
    injected: frozenset[str] = frozenset(),
    calibration: Calibration | None = None,
) -> ReplayOutcome:
    """Return how an answer turned out.

    `injected` are ids of passages that must have reached the prompt; otherwise nothing is known.
    """
    known = AnswerOutcome.from_verdicts(case, trace, verdicts, k, calibration)
    dropped = injected - {passage.id for passage in trace.context(k)}
    reason = trace.unmeasured
    if reason is None and trace.answer is None:
        reason = (
            f"{APP_FAILED}: {trace.error}" if trace.error else str(Reason(code="no_answer_given"))
        )
    elif reason is None and dropped:
        reason = str(Reason(code="injected_in_vain", passage=min(dropped)))
    elif reason is None and known.failed(known.sufficient_judge):
        name = "unfaithful" if known.answer == "unfaithful" else "wrong"
        if known.declined:
            name = "declined"
        elif name == "wrong" and known.correct is not False and known.complete is False:
            name = "incomplete"
        return ReplayOutcome(bad=True, name=name, correct=known.correct)
    elif reason is None:
        reason = known.unknown_reason
        if known.answer == "declined" and known.correct is None:
            reason = str(Reason(code="declined_unknown"))
    if reason is not None:
        return ReplayOutcome(None, "inconclusive", reason)
    return ReplayOutcome(bad=False, name="good", correct=known.correct)


@dataclass(frozen=True)
class ReplayRecord:
    """One case: how its answer turned out in the run and, the first time, in each arm.

    Parameters
    ----------
    group : str
        Its failure mode or ``GOOD``.
    skipped : str or None
        Why nothing follows from it.
    finding : CauseEvidence or None
        The likeliest cause; None: no arm was tried, or the answer was good.
    owner : str or None
        Who can fix that cause.
    settled : bool
        Whether it is beyond doubt without a test: the verdict was wrong.
    placebos : mapping of str to ReplayOutcome
        The first placebo of each arm that had one.
    held, tried : mapping of str to int
        How many answers each arm and the placebos gave, and how many were good.
    """

    case_id: str
    group: str
    outcomes: Mapping[str, ReplayOutcome] = field(default_factory=dict)
    skipped: str | None = None
    note: str | None = None
    finding: CauseEvidence | None = None
    owner: str | None = None
    settled: bool = False
    placebos: Mapping[str, ReplayOutcome] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    tried: Mapping[str, int] = field(default_factory=dict)

    @property
    def placebo(self) -> ReplayOutcome | None:
        """The placebo of the missed passages, else of the first arm that needed one."""
        return self.placebos.get(MISSED) or next(iter(self.placebos.values()), None)

    def turned(self, arm: str) -> bool:
        """Whether the arm turned a bad answer good, or in the group of good answers a good one bad."""
        good = self.group == GOOD
        before, after = self.outcomes["observed"], self.outcomes.get(arm)
        after = self.placebo if arm == PLACEBO else after
        return before.bad is (not good) and after is not None and after.bad is good

    @property
    def flaky(self) -> bool | None:
        """Whether one of the run's and the placebo's answers is good, or correct, and the other not.

        None: not known. A bad answer that is bad in another way answers another prompt, no more.
        """
        before, after = self.outcomes["observed"], self.placebo
        if after is None or None in (before.bad, after.bad):
            return None
        return before.bad != after.bad or {before.correct, after.correct} == {True, False}

    @property
    def paired(self) -> bool:
        """Whether the missed passages were tried beside their placebo."""
        return MISSED in self.outcomes and MISSED in self.placebos

    @property
    def effect(self) -> int:
        """1 if the answer is good with the missed passages and bad with the placebo, -1 the reverse."""
        return bool(self.placebos[MISSED].bad) - bool(self.outcomes[MISSED].bad)


def share_of(turned: Sequence[bool]) -> Estimate:
    """The share of cases that are true, or why there is none."""
    return proportion(sum(turned), len(turned)) if turned else Estimate.missing(_NO_CASE)


def net_effect(records: Sequence[ReplayRecord], seed: int = 0) -> Estimate:
    """Share of cases that the treatment turned, less that of the placebo, paired by case."""
    if not records:
        return Estimate.missing(_NO_CASE)
    turned = [record.turned(MISSED) - record.turned(PLACEBO) for record in records]
    value, drawn = _draw_effects([(effect, 1.0) for effect in turned], seed)
    return _drawn_estimate(value, drawn, len(records))


def _draw_effects(
    weighted: Sequence[tuple[int, float]], seed: int
) -> tuple[float, NDArray[np.float64]]:
    """The mean of effects, each with its weight, and draws from its posterior."""
    import numpy as np

    cells = Counter(weighted)
    effects, scales = np.array(list(cells)).T
    counts = np.array(list(cells.values()), dtype=float)
    total = counts @ scales
    scale = total / len(weighted)
    effects, scales = np.append(effects, (1, -1)), np.append(scales, (scale, scale))
    counts = np.append(counts, (_EFFECT_PRIOR, _EFFECT_PRIOR))
    drawn = np.random.default_rng(seed).gamma(counts, size=(_DRAWS, len(counts))) * scales
    # The two added cases cancel out in the value, and only there.
    return float(counts * scales @ effects / total), drawn @ effects / drawn.sum(axis=1)


def _drawn_estimate(value: float, drawn: NDArray[np.float64], n: int) -> Estimate:
    """The middle 95% of the draws, with the value."""
    import numpy as np

    low, high = map(float, np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=_METHOD)


def confirmed_cases(records: Sequence[ReplayRecord]) -> set[str]:
    """Ids of the failed cases whose cause replay confirms."""
    tested = {r.case_id: r.finding for r in records if r.finding is not None and not r.settled}
    stands = confirm(tested.values(), len(tested))
    ids = {case_id for case_id, holds in zip(tested, stands, strict=True) if holds}
    return ids | {record.case_id for record in records if record.settled}


def causal_fraction(
    failed: int, missed: Mapping[str, int], records: Sequence[ReplayRecord], *, seed: int = 0
) -> Estimate:
    """Estimate the share of failed answers that the missed passages cause.

    That is how many more answers are good with the missed passages than with irrelevant ones in their
    place, among all answers that missed a passage, over the failed answers of the run. A good answer
    that the placebo breaks and the missed passages save counts too: where an app reacts to any change
    of its prompt, it was good by luck, and as many of the failed ones turn good by luck.

    Parameters
    ----------
    failed : int
        Failed answers of the run.
    missed : mapping of str to int
        How many answers missed a passage, by failure mode or ``GOOD``.
    records : sequence of ReplayRecord
        A random sample of each of these. Failure modes without any are taken to be like the other
        ones; without good answers, these count as unmoved.
    seed : int

    Returns
    -------
    Estimate
        n is the number of replayed answers; missing below ``MIN_REPLAYED`` failures, which is also
        where fewer failed answers missed a passage at all.

    Notes
    -----
    Each replayed case stands for several of its mode where not all were replayed. The interval is
    the middle 95% of 20,000 draws: the number of answers that missed a passage for each failed answer
    from its Dirichlet posterior, times the weighted effect from one with 0.75 cases added to those
    that are good with the treatment alone, and to those with the placebo alone.
    ``benchmarks/linking/replay.md`` measures its coverage.

    References
    ----------
    Agresti and Min (2005), on added cases in intervals of matched pairs. Pearl (2009), Causality,
    chapter 9, on attribution.

    Examples
    --------
    >>> good, bad = ReplayOutcome(False, "good"), ReplayOutcome(True, "wrong")
    >>> arms, placebos = {"observed": bad, "missed_passage": good}, {"missed_passage": bad}
    >>> mode = "retrieval_miss"
    >>> records = [ReplayRecord(str(n), mode, arms, placebos=placebos) for n in range(20)]
    >>> causal_fraction(40, {"retrieval_miss": 20}, records).value
    0.5
    """
    import numpy as np

    if not failed:
        return Estimate.missing(Reason(code="nothing_failed"), method=_METHOD)
    with_miss = sum(missed.values()) - missed.get(GOOD, 0)
    if not with_miss:
        return Estimate.missing(Reason(code="no_failed_miss"), method=_METHOD)
    counts = Counter(record.group for record in records)
    replayed = len(records) - counts[GOOD]
    if replayed < MIN_REPLAYED:
        why = Reason(code="few_replayed", n=replayed, needed=MIN_REPLAYED)
        return Estimate.missing(why, n=replayed, method=_METHOD)
    good = missed.get(GOOD, 0) if counts[GOOD] else 0
    seen = sum(missed[group] for group in counts if group != GOOD)
    weights = {group: missed[group] / count for group, count in counts.items()}
    weights |= {group: w * with_miss / seen for group, w in weights.items() if group != GOOD}
    value, drawn = _draw_effects([(each.effect, weights[each.group]) for each in records], seed)
    cells = [with_miss, failed - with_miss, good]
    generator = np.random.default_rng([seed, 1])
    bad, other, spared = (generator.gamma(cell + _PRIOR, size=_DRAWS) for cell in cells)
    shares = (bad + spared * bool(good)) / (bad + other)
    value *= (with_miss + good) / failed
    return _drawn_estimate(min(value, 1.0), np.clip(shares * drawn, -1, 1), len(records))


def replay_figures(
    run: Run, records: Sequence[ReplayRecord], *, seed: int, difference: Reason | None
) -> ReplayFigures:
    """Return the figures of ``replay.json``.

    Parameters
    ----------
    run : Run
    records : sequence of ReplayRecord
        Skipped ones among them.
    seed : int
    difference : Reason or None
        How the replay's judge differs from the run's: then there is no causal fraction, because the
        failed answers were counted by another judge.
    """
    cases = by_case(run.cases)
    usable = [record for record in records if record.skipped is None]
    failures = [record for record in usable if record.group != GOOD]
    good = [record for record in usable if record.group == GOOD]
    group_of = {link.case_id: replay_group(link, cases[link.case_id]) for link in run.links}
    drawn_from = Counter(name for name in group_of.values() if name is not None)
    missed = Counter(
        name for link in run.links if link.missed and (name := group_of[link.case_id]) is not None
    )
    failed = sum(bool(link.failed) for link in run.links)
    paired = [record for record in usable if record.paired]
    causal = causal_fraction(failed, missed, paired, seed=seed)
    if difference is not None:
        causal = Estimate.missing(Reason(code="judged_otherwise", how=str(difference)))
    confirmed = confirmed_cases(failures)
    owners = {link.case_id: link.owner for link in run.links}
    by_mode = {}
    for mode in FAILURE_MODES:
        if mode in MISS_MODES or (mode in drawn_from and mode != GOOD):
            group = [record for record in failures if record.group == mode]
            pairs = [record for record in group if record.paired]
            as_named = [
                record.case_id in confirmed and record.owner == owners[record.case_id]
                for record in group
            ]
            by_mode[mode] = ReplayedFailure(
                cases=drawn_from[mode],
                replayed=len(group),
                fixed=_turned_share(pairs, MISSED),
                placebo_fixed=_turned_share(pairs, PLACEBO),
                net_fixed=net_effect(pairs, seed),
                confirmed=share_of(as_named),
            )
    differing = [record.flaky for record in usable]
    calls = sum(sum(record.tried.values()) for record in failures)
    told = [record for record in failures if record.case_id in confirmed]
    return ReplayFigures(
        causal_fraction=causal,
        failed=failed,
        failures=by_mode,
        owners=dict(Counter(record.owner for record in told if record.owner).most_common()),
        arms=_arm_rows(failures),
        calls_per_failure=calls / len(failures) if failures else None,
        fixed=_turned_share([r for r in failures if r.paired], MISSED),
        broken=_turned_share(good, MISSED),
        placebo_broken=_turned_share(good, PLACEBO),
        net_broken=net_effect(good, seed),
        flaky=share_of([differs for differs in differing if differs is not None]),
        cases=tuple(
            ReplayedCase(
                case_id=record.case_id,
                failure=record.group,
                turned=record.turned(MISSED),
                flaky=record.flaky,
                confirmed=record.case_id in confirmed if record.group != GOOD else None,
                cause=record.finding.cause
                if record.finding and record.case_id in confirmed
                else None,
                owner=record.owner if record.case_id in confirmed else None,
                outcomes={
                    name: outcome.name
                    for name, outcome in (*record.outcomes.items(), (PLACEBO, record.placebo))
                    if outcome is not None
                },
                e=record.finding.e if record.finding and not record.settled else None,
                tried=dict(record.tried),
                held={arm: record.held.get(arm, 0) for arm in record.tried},
                note=record.note,
            )
            for record in usable
        ),
        skipped=tuple(
            SkippedReplay(case_id=record.case_id, failure=record.group, reason=record.skipped)
            for record in records
            if record.skipped is not None
        ),
    )


def _arm_rows(failures: Sequence[ReplayRecord]) -> tuple[ReplayedArm, ...]:
    """What each arm did to the failed answers on which it was tried, the first time."""
    rows = [
        ReplayedArm(
            arm="other_judge",
            owner=JUDGE,
            tried=len(failures),
            held=share_of([record.settled for record in failures]),
            placebo_held=Estimate.missing(Reason(code="judge_without_placebo")),
        )
    ]
    for arm, owner in ARM_OWNERS.items():
        known = [r for r in failures if arm in r.outcomes]
        placebos = [r.placebos[arm] for r in failures if arm in r.placebos]
        rows.append(
            ReplayedArm(
                arm=arm,
                owner=owner,
                tried=len(known),
                held=share_of([r.outcomes[arm].bad is False for r in known]),
                placebo_held=share_of([not p.bad for p in placebos]),
            )
        )
    return tuple(rows)


def _turned_share(records: Sequence[ReplayRecord], arm: str) -> Estimate:
    return share_of([record.turned(arm) for record in records])
