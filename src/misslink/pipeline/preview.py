"""What an evaluation would ask and cost, before its judge is asked anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from misslink.pipeline import stages
from misslink.pipeline.options import Options, Progress

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
        return await forecast(line.subjects(caught.traces), line.metrics, line.judge)
