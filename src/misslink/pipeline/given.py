"""What an evaluation starts from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from misslink.embedding import Embedder
from misslink.engines.protocol import Engine
from misslink.files import GoldSet, Staging
from misslink.files.labels import Labels
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.opening import Opened
from misslink.linking import Calibration
from misslink.pipeline.options import Options
from misslink.prompting import Prompts
from misslink.types import Trace

__all__ = ["Given"]


@dataclass(frozen=True)
class Given:
    """What an evaluation starts from: everything read, loaded and opened, nothing asked yet."""

    options: Options
    gold: GoldSet
    app: Any
    engine: Engine
    brought: Mapping[str, Trace] | None
    judge: Opened | None
    calibration: Calibration | None
    calibration_document: Mapping[str, Any] | None
    labels: Labels | None
    embedder: Embedder | None
    metrics: tuple[JudgedMetric, ...]
    prompts: Prompts
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    work: str
    staging: Staging | None

    def subjects(self, traces: Mapping[str, Trace]) -> Iterator[Subject]:
        """Each case with its trace, in the gold set's order."""
        for case in self.gold.cases:
            yield Subject(case, traces[case.id], self.options.k, self.prompts)
