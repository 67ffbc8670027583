"""Everything that an evaluation opens before its first judge call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.embedding import Embedder
from misslink.engines.protocol import Engine
from misslink.io import GoldSet, RunStaging
from misslink.io.labels import Labels
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.prompts import Prompts
from misslink.judge.session import JudgeSession
from misslink.linking.judge_calibration import Calibration
from misslink.types import Passage, Trace

if TYPE_CHECKING:
    from misslink.pipeline.evaluate import EvaluationConfig

DEFAULT_K = 5  # where no prompt was seen

Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(frozen=True)
class EvaluationContext:
    """Everything that an evaluation reads, loads and opens before its first judge call."""

    config: EvaluationConfig
    gold: GoldSet
    app: Any
    app_config: Mapping[str, Any]
    engine: Engine
    recorded: Mapping[str, Trace] | None
    corpus: tuple[Passage, ...] | None
    judge: JudgeSession | None
    calibration: Calibration | None
    calibration_document: Mapping[str, Any] | None
    labels: Labels | None
    embedder: Embedder | None
    metrics: tuple[JudgedMetric, ...]
    prompts: Prompts
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    work: str
    staging: RunStaging | None
    k: int  # the given one; else, once the traces are there, as many as the app puts in its prompt

    def subjects(self, traces: Mapping[str, Trace]) -> Iterator[Subject]:
        """Each case with its trace, in the gold set's order."""
        for case in self.gold.cases:
            yield Subject(case, traces[case.id], self.k, self.prompts)

    def tick(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self.config.progress:
            self.config.progress(stage, done, total)
