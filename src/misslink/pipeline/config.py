"""The configuration of an evaluation, and everything opened from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.embedding import Embedder
from misslink.engines.protocol import Engine
from misslink.errors import InputError
from misslink.io import GoldSet, RunStaging
from misslink.io.labels import Labels
from misslink.judge.config import JudgeConfig
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.middleware.cache import DEFAULT_CACHE
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSession
from misslink.linking.judge_calibration import Calibration
from misslink.types import Case, Trace

Progress = Callable[[str, int, int], None]  # stage, done, total

DEFAULT_CONCURRENCY = 8


@dataclass(frozen=True)
class EvaluationConfig:
    """The options of an evaluation; `misslink.evaluate` documents each.

    Raises
    ------
    InputError
        The options contradict each other, or a number is out of range.
    """

    app: Any = None
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None
    judge: str | Judge | None = "heuristic"
    out: str | Path | None = None
    k: int = 5
    depth: int = 100
    concurrency: int = DEFAULT_CONCURRENCY
    cache: str | Path | None = DEFAULT_CACHE
    id_key: str | None = None
    input_key: str | None = None
    embedding: Any = "app"
    calibration: str | Path | None = None
    labels: Any = None
    known_only: bool = False
    terms: JudgeConfig | None = None
    seed: int = 0
    overwrite: bool = False
    only: Sequence[str] = ()
    engine: str | Engine = "local"
    ray_address: str | None = None
    workers: int | None = None
    progress: Progress | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        if (self.app is None) == (self.traces is None):
            raise InputError("give an app to run or a file of traces, one of the two")
        if self.goldset is None:
            raise InputError("give a gold set: a file with one JSON object a line")
        if self.labels is not None and self.calibration is not None:
            raise InputError(
                "give --calibration, made before, or --labels, to calibrate this run's judge on; "
                "not both"
            )
        if self.labels is not None and (self.judge is None or self.judge == "none"):
            raise InputError("labels calibrate a judge, and there is none. Name one with --judge")
        counts = (self.k, self.depth, self.concurrency)
        if any(not isinstance(count, int) or count < 1 for count in counts):
            raise InputError("k, depth and concurrency must be whole numbers of 1 or more")
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise InputError(f"--workers is {self.workers}; it must be 1 or more")

    @property
    def judge_config(self) -> JudgeConfig:
        """`terms`, or the defaults."""
        return self.terms or JudgeConfig()

    @property
    def spec(self) -> str | None:
        """Where the app is imported from; None for an object and for traces."""
        return self.app if isinstance(self.app, str) else None

    @property
    def app_name(self) -> str | None:
        """The spec or the qualified name of the app; None for traces."""
        return self.app if self.app is None or self.spec else _qualified_name(self.app)

    @property
    def embedding_name(self) -> str:
        """The spec or the qualified name of the embedding that measures misses."""
        if isinstance(self.embedding, str):
            return self.embedding
        return _qualified_name(type(self.embedding))


def _qualified_name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


@dataclass(frozen=True)
class EvaluationContext:
    """Everything that an evaluation reads, loads and opens before its first judge call."""

    config: EvaluationConfig
    gold: GoldSet
    app: Any
    engine: Engine
    recorded: Mapping[str, Trace] | None
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

    def subjects(self, traces: Mapping[str, Trace]) -> Iterator[Subject]:
        """Each case with its trace, in the gold set's order."""
        for case in self.gold.cases:
            yield Subject(case, traces[case.id], self.config.k, self.prompts)

    def tick(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self.config.progress:
            self.config.progress(stage, done, total)
