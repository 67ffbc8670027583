"""How many failures an option would avoid: forecast from the run, or checked by running cases again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from misslink.documents import CheckedStratum, OptionCheck, SkippedCase
from misslink.judge.calibration import Calibration
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.whatif.options import OptionResult, RetrievalBaseline
from misslink.retrieval.outcomes import EXPOSURE_BY_LABELS
from misslink.types import Case, Estimate, Passage, Reason, Run, Trace, Verdict

_DRAWS = 20_000
_PRIOR = 0.75  # cases added to each cell, as attributable_fraction of misslink.stats does
_LEVEL = 0.95
# Replayed cases of each kind below which a share is too rough to be better than the association:
# of 10 the posterior's interval of a half is still 60 points wide.
MIN_PAIRS = 10
_FAILED_OUTCOMES = ("unfaithful", "wrong", "incomplete", "declined")


class ExposureChange(NamedTuple):
    """A case that an option gives more or fewer of its relevant passages; ``place`` in the run."""

    place: int
    after: str
    better: bool
    failed: bool | None


class Transition(NamedTuple):
    """Cases alike, and how many of those that show it failed under the change, of how many."""

    failed: bool
    cases: int
    seen: tuple[int, int]


def avoided_failures(transitions: Iterable[Transition], n: int, method: str, seed: int) -> Estimate:
    """Return how many fewer cases would fail.

    The interval holds the middle 95% of 20,000 draws: of each share from its posterior, with 0.75
    cases added to failed and passed, and of the cases from the binomial distribution.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    value, drawn, shares = 0.0, np.zeros(_DRAWS), dict[tuple[int, int], Any]()
    for failed, cases, (failures, of) in transitions:
        # Cases of the same level share its risk, so its error does not average out.
        if (failures, of) not in shares:
            shares[failures, of] = generator.beta(failures + _PRIOR, of - failures + _PRIOR, _DRAWS)
        value += cases * (failed - (failures / of if of else 0.5))
        drawn += cases * failed - generator.binomial(cases, shares[failures, of])
    low, high = map(float, np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=method)


@dataclass(frozen=True)
class EffectModel:
    """What a forecast is made from.

    Parameters
    ----------
    risks : mapping of str to (int, int)
        How many of the cases of each exposure failed, of how many.
    replayed : mapping of bool to (int, int), or None
        Of cases that failed and that did not: how many failed with the missed passages, of how many.
        None: no replay, or fewer than 10 of a kind.
    """

    risks: Mapping[str, tuple[int, int]]
    replayed: Mapping[bool, tuple[int, int]] | None = None

    @classmethod
    def from_run(cls, run: Run) -> EffectModel:
        """The replay where it is large enough, else the association of the run."""
        counts = Counter[tuple[str, bool | None]](
            (link.retrieval, link.failed) for link in run.links
        )
        risks = {
            level: (counts[level, True], counts[level, True] + counts[level, False])
            for level in EXPOSURE_BY_LABELS
        }
        missed = {link.case_id for link in run.links if link.retrieval in {"miss", "partial"}}
        replayed = {True: [0, 0], False: [0, 0]}
        rows: Any = (run.replay or {}).get("cases") or ()
        for case in rows:
            after = (case.get("outcomes") or {}).get("missed_passage")
            if case.get("case_id") in missed and after in (*_FAILED_OUTCOMES, "good"):
                counted = replayed[case.get("failure") != "passed"]
                counted[0] += after in _FAILED_OUTCOMES
                counted[1] += 1
        enough = min(of for _, of in replayed.values()) >= MIN_PAIRS
        pairs = {failed: (count, of) for failed, (count, of) in replayed.items()}
        return cls(risks, pairs if enough else None)

    @property
    def notes(self) -> tuple[Reason, ...]:
        """How far a forecast is to be believed."""
        if self.replayed is None:
            return (Reason(code="forecast_by_association"),)
        counts = {
            f"{name}_{end}": number
            for name, failed in (("still", True), ("turned", False))
            for end, number in zip(("failed", "of"), self.replayed[failed], strict=True)
        }
        return (Reason(code="forecast_by_replay", **counts),)

    def avoided(self, changes: Iterable[ExposureChange], seed: int = 0) -> Estimate:
        """Return the failures that the changes would avoid; negative where there would be more.

        By association a case takes the risk of its new exposure. With a replay, a case that gets all
        it needs takes the share of replayed cases that failed with the missed passages, among those
        that failed, or did not, as it does. Cases that were not judged do not count.
        """
        judged = [change for change in changes if change.failed is not None]
        n = sum(of for _, of in self.risks.values())
        groups = Counter((bool(c.failed), c.after, c.better) for c in judged)
        transitions = []
        for (failed, after, better), cases in groups.items():
            seen = self.risks[after]
            if self.replayed is not None and better and after == "hit":
                seen = self.replayed[failed]
            elif not seen[1]:
                return Estimate.missing(Reason(code="no_judged_exposure", exposure=after), n=n)
            transitions.append(Transition(failed, cases, seen))
        method = "association" if self.replayed is None else "replay"
        if not n:
            return Estimate.missing(Reason(code="nothing_judged_and_labelled"))
        return avoided_failures(transitions, n, f"{method}, binomial", seed)


RerunCase = Callable[[Case, Sequence[Passage]], Awaitable[tuple[Trace, Mapping[str, Verdict]]]]
DeeperSearch = Callable[[Case, int], Awaitable[Sequence[Passage]]]


@dataclass(frozen=True)
class ForecastCheck:
    """How an option is checked.

    Parameters
    ----------
    rerun : callable
        Takes a case and passages, generates and judges again.
    sample : int
        At most this many cases that the option changes are run again, and as many that it leaves
        with the same relevant passages.
    deeper : callable or None
        Takes a case and a number, and returns as many passages of the app's own ranking; with it
        a larger k can be checked where the run knows only the ranks of missed passages.
    """

    rerun: RerunCase
    sample: int
    deeper: DeeperSearch | None = None

    async def run(
        self,
        option: str,
        result: OptionResult,
        changes: Sequence[ExposureChange],
        run: Run,
        texts: Mapping[str, Passage],
        seed: int,
    ) -> tuple[Estimate, OptionCheck]:
        """Return the failures that the option avoids in all judged cases, and what was run again.

        The cases that the option changes and the others are two strata; each case takes the share
        of rerun cases of its stratum that failed, among those that failed, or did not, as it did.
        The estimate is missing where no case of a stratum could be run again.
        """
        baseline = RetrievalBaseline.from_run(run)
        failed = {
            place: failure
            for place, (link, exposed) in enumerate(
                zip(baseline.links, baseline.outcomes(), strict=True)
            )
            if exposed is not None and (failure := link.failed) is not None
        }
        changed = {change.place for change in changes}
        generator = random.Random(seed)  # noqa: S311 (a sample)
        strata: dict[str, CheckedStratum] = {}
        transitions, skipped, reasons = list[Transition](), list[SkippedCase](), Counter[str]()
        for name in ("changed", "unchanged"):
            places = [place for place in failed if (place in changed) == (name == "changed")]
            after: dict[int, bool] = {}
            for place in sorted(generator.sample(places, min(self.sample, len(places)))):
                outcome = await self._fails(run, place, result, texts)
                if isinstance(outcome, str):
                    reasons[outcome] += 1
                    skipped.append(SkippedCase(case_id=run.cases[place].id, reason=outcome))
                else:
                    after[place] = outcome
            if places and not after:
                strata[name] = CheckedStratum(
                    cases=len(places), checked=None, failed_before=None, failed_after=None
                )
                continue
            strata[name] = CheckedStratum(
                cases=len(places),
                checked=len(after),
                failed_before=sum(failed[place] for place in after),
                failed_after=sum(after.values()),
            )
            for before in (True, False):
                seen = [after[place] for place in after if failed[place] == before]
                cases = sum(failed[place] == before for place in places)
                transitions.append(Transition(before, cases, (sum(seen), len(seen))))
        checked = sum(stratum.checked or 0 for stratum in strata.values())
        reason = reasons.most_common(1)[0][0] if reasons else None
        document = OptionCheck(
            option=option,
            asked=checked + len(skipped),
            changed=strata["changed"],
            unchanged=strata["unchanged"],
            reason=reason,
            skipped=tuple(skipped),
        )
        if not failed or any(s.cases and not s.checked for s in strata.values()):
            code = Reason(code="nothing_rerun", why=reason or str(Reason(code="nothing_judged")))
            return Estimate.missing(code, n=checked), document
        return avoided_failures(transitions, checked, "rerun, binomial", seed), document

    async def _fails(
        self, run: Run, place: int, result: OptionResult, texts: Mapping[str, Passage]
    ) -> bool | str:
        """Whether a case fails with the option's passages; or why that is not known."""
        case = run.cases[place]
        passages = await self._passages(case, result.traces[place], result.width, texts)
        if isinstance(passages, str):
            return passages
        trace, verdicts = await self.rerun(case, passages)
        known = AnswerOutcome.from_verdicts(
            case, trace, verdicts, result.width, Calibration.of_run(run)
        )
        if reason := trace.error or trace.unmeasured:
            return reason
        if known.failed(known.sufficient_judge):
            return True
        return known.unknown_reason or False

    async def _passages(
        self, case: Case, trace: Trace, width: int, texts: Mapping[str, Passage]
    ) -> Sequence[Passage] | str:
        """The option's passages, all with their texts; or why they are not known."""
        retrieved = trace.retrieved[:width]
        passages = [
            passage if passage.text else passage.model_copy(update={"text": texts[passage.id].text})
            for passage in retrieved
            if passage.text or passage.id in texts
        ]
        unseen = len(retrieved) - len(passages)
        if not unseen:
            return passages
        if self.deeper is not None:
            deeper = [passage for passage in await self.deeper(case, width) if passage.text]
            if deeper:
                return deeper[:width]
        return str(Reason(code="deeper_unseen", n=unseen, of=width))
