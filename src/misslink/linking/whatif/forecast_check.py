"""Check a forecast on affected cases that are generated and judged again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration
from misslink.linking.whatif.effect_model import EffectModel, MissChange, risk_after
from misslink.stats import mean
from misslink.types import Case, Estimate, Passage, Run, Trace, Verdict

RerunCase = Callable[[Case, Sequence[Passage]], Awaitable[tuple[Trace, Mapping[str, Verdict]]]]
DeeperSearch = Callable[[Case, int], Awaitable[Sequence[Passage]]]


@dataclass(frozen=True)
class OptionForecast:
    """An option, its width, and each judged case that it changes, with its trace of the option."""

    name: str | None = None  # no option changes a judged case
    width: int = 0
    changes: tuple[tuple[MissChange, Trace], ...] = ()


@dataclass(frozen=True)
class ForecastCheck:
    """How a forecast is checked.

    Parameters
    ----------
    rerun : callable
        Takes a case and passages, generates and judges again.
    sample : int
        At most this many affected cases are checked.
    deeper : callable or None
        Takes a case and a number, and returns as many passages of the app's own ranking; with it
        a larger k can be checked where the run knows only the ranks of missed passages.
    """

    rerun: RerunCase
    sample: int
    deeper: DeeperSearch | None = None

    async def run(
        self,
        option: OptionForecast,
        run: Run,
        model: EffectModel,
        texts: Mapping[str, Passage],
        seed: int,
    ) -> dict[str, Any]:
        """Return forecast and measured unfaithful answers avoided among the checked cases.

        Returns
        -------
        dict
            ``asked`` counts the answers generated; ``error`` is the mean of forecast less
            measured over those that were judged, in [-1, 1]: above 0 the forecast promises too
            much. Missing with a reason where no case could be checked.
        """
        changes, width = option.changes, option.width
        count = min(self.sample, len(changes))
        drawn = random.Random(seed).sample(changes, count)  # noqa: S311 (a sample)
        forecast: list[float] = []
        measured: list[int] = []
        skipped: list[dict[str, str]] = []
        asked = 0
        calibration = Calibration.of_run(run)
        for change, retrieved in sorted(drawn, key=lambda drawn_case: drawn_case[0].place):
            case = run.cases[change.place]
            passages = await self._passages(case, retrieved, width, texts)
            if isinstance(passages, str):
                skipped.append({"case_id": case.id, "reason": passages})
                continue
            asked += 1
            trace, verdicts = await self.rerun(case, passages)
            evidence = CaseEvidence.from_verdicts(case, trace, verdicts, width, calibration)
            reason = trace.error or trace.unmeasured
            if reason is None and evidence.answer == "unknown":
                reason = evidence.unknown_reason or "the new answer was not judged"
            if reason is not None:
                skipped.append({"case_id": case.id, "reason": reason})
                continue
            before = int(bool(change.bad))
            forecast.append(before - risk_after(model.table, change, model.pairs))
            # An answer that declines is not unfaithful.
            measured.append(before - int(evidence.answer == "unfaithful"))
        if measured:
            errors = [a - b for a, b in zip(forecast, measured, strict=True)]
            error = mean(errors, seed=seed, bounds=(-1.0, 1.0))
        elif skipped:
            reason = Counter(row["reason"] for row in skipped).most_common(1)[0][0]
            error = Estimate.missing(
                f"no affected case could be generated and judged again: {reason}"
            )
        else:
            error = Estimate.missing("no option changes a case with a judged answer")
        return {
            "option": option.name,
            "affected": len(changes),
            "asked": asked,
            "checked": len(measured),
            "forecast": sum(forecast) if measured else None,
            "measured": sum(measured) if measured else None,
            "error": error.model_dump(),
            "skipped": skipped,
        }

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
