"""What an evaluation would ask and cost, before its judge is asked anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from misslink.judging.asking import judge_case
from misslink.judging.embedded import EmbeddedJudge, open_embedded
from misslink.judging.protocol import Ask, innermost
from misslink.linking.needs import foreseen_needs
from misslink.pipeline import stages
from misslink.pipeline.given import Given
from misslink.pipeline.options import Options, Progress
from misslink.registry import judged_metrics
from misslink.retrieval import outcome
from misslink.types import Trace

if TYPE_CHECKING:
    from misslink.judging.forecast import Forecast

__all__ = ["forecast_async"]


async def forecast_async(options: Options, progress: Progress | None = None) -> Forecast:
    """Say what the judge would be asked, and for how much; it is asked nothing.

    An app is run, for what is asked depends on its answers; its traces are kept beside ``out``, so
    that the run itself does not run it again.

    Raises
    ------
    InputError, AppUnreachableError
        As `misslink.evaluate_async`.
    """
    from misslink.judging.forecast import forecast

    async with stages.given(options) as line:
        caught = await stages.capture(line, progress or (lambda *_: None))
        more = await _of_links(line, caught.traces)
        return await forecast(line.subjects(caught.traces), line.metrics, line.judge, more)


async def _of_links(line: Given, traces: Mapping[str, Trace]) -> list[Ask]:
    """What linking would ask about missed passages, were the answers as the embedded judge finds.

    Which claims are unfaithful is what the judge is still to say.
    """
    if line.judge is None or isinstance(innermost(line.judge), EmbeddedJudge):
        return []
    heuristic, metric = open_embedded(), judged_metrics.get("faithfulness")
    asks = []
    for subject in line.subjects(traces):
        missed = outcome(subject.case, subject.trace, line.options.k).missed
        texts = dict.fromkeys(text for one in missed if (text := one.text or one.evidence))
        if not texts:
            continue
        (verdict,) = await judge_case(subject, [metric], heuristic)
        claims = dict.fromkeys(c.text for c in verdict.claims if c.support != "supported")
        ask = foreseen_needs(
            tuple(claims), tuple(texts), subject.case.question, prompts=line.prompts
        )
        if ask is not None:
            asks.append(ask)
    return asks
