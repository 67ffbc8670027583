"""Check an option on cases that it changes, and on cases that it leaves as they are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration
from misslink.linking.whatif.comparison import OptionResult, RetrievalBaseline
from misslink.linking.whatif.effect_model import (
    ExposureChange,
    Transition,
    avoided_failures,
    has_failed,
)
from misslink.types import Case, Estimate, Passage, Reason, Run, Trace, Verdict

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
        result: OptionResult,
        changes: Sequence[ExposureChange],
        run: Run,
        texts: Mapping[str, Passage],
        seed: int,
    ) -> tuple[Estimate, dict[str, Any]]:
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
            if exposed is not None and (failure := has_failed(link)) is not None
        }
        changed = {change.place for change in changes}
        generator = random.Random(seed)  # noqa: S311 (a sample)
        strata: dict[str, dict[str, int]] = {}
        transitions, skipped, reasons = list[Transition](), list[dict[str, str]](), Counter[str]()
        for name in ("changed", "unchanged"):
            places = [place for place in failed if (place in changed) == (name == "changed")]
            after: dict[int, bool] = {}
            for place in sorted(generator.sample(places, min(self.sample, len(places)))):
                outcome = await self._fails(run, place, result, texts)
                if isinstance(outcome, str):
                    reasons[outcome] += 1
                    skipped.append({"case_id": run.cases[place].id, "reason": outcome})
                else:
                    after[place] = outcome
            if places and not after:
                strata[name] = {"cases": len(places)}
                continue
            strata[name] = {
                "cases": len(places),
                "checked": len(after),
                "failed_before": sum(failed[place] for place in after),
                "failed_after": sum(after.values()),
            }
            for before in (True, False):
                seen = [after[place] for place in after if failed[place] == before]
                cases = sum(failed[place] == before for place in places)
                transitions.append(Transition(before, cases, (sum(seen), len(seen))))
        checked = sum(stratum.get("checked", 0) for stratum in strata.values())
        reason = reasons.most_common(1)[0][0] if reasons else None
        document = {"asked": checked + len(skipped), **strata, "reason": reason, "skipped": skipped}
        if not failed or any(s["cases"] and not s.get("checked") for s in strata.values()):
            code = Reason(code="nothing_rerun", why=reason or "no case was judged")
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
        evidence = CaseEvidence.from_verdicts(
            case, trace, verdicts, result.width, Calibration.of_run(run)
        )
        if reason := trace.error or trace.unmeasured:
            return reason
        if evidence.failed:
            return True
        return evidence.unknown_reason or False

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
        return f"{unseen} of the {width} passages are not known, as the app shows no deeper ranks"
