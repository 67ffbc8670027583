"""What an evaluation is asked to do, checked before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink.engines.protocol import Engine
from misslink.errors import InputError
from misslink.judging.protocol import Judge
from misslink.judging.terms import Terms
from misslink.judging.wrappers.ledger_file import DEFAULT_LEDGER as LEDGER
from misslink.types import Case, Trace

__all__ = ["CONCURRENCY", "LEDGER", "Options", "Progress"]

Progress = Callable[[str, int, int], None]  # stage, done, total

CONCURRENCY = 8


@dataclass(frozen=True)
class Options:
    """What an evaluation is asked to do; `evaluate_async` says what each means.

    Raises
    ------
    InputError
        They do not go together, or a number is out of range.
    """

    app: Any = None
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None
    judge: str | Judge | None = "embedded"
    out: str | Path | None = None
    k: int = 5
    depth: int = 100
    concurrency: int = CONCURRENCY
    ledger: str | Path | None = LEDGER
    id_key: str | None = None
    input_key: str | None = None
    embedding: Any = "app"
    calibration: str | Path | None = None
    labels: Any = None
    known_only: bool = False
    terms: Terms = field(default_factory=Terms)
    seed: int = 0
    overwrite: bool = False
    only: Sequence[str] = ()
    engine: str | Engine = "local"
    ray_address: str | None = None
    workers: int | None = None

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
            raise InputError("labels are held against a judge; name one with --judge")
        counts = (self.k, self.depth, self.concurrency)
        if any(not isinstance(count, int) or count < 1 for count in counts):
            raise InputError("k, depth and concurrency must be whole numbers of 1 or more")
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise InputError(f"--workers is {self.workers}; it must be 1 or more")

    @property
    def spec(self) -> str | None:
        """Where the app is imported from; None for an object and for traces."""
        return self.app if isinstance(self.app, str) else None

    @property
    def app_name(self) -> str | None:
        """What the app object is called; None for traces."""
        if self.app is None or self.spec:
            return self.spec
        named = self.app if hasattr(self.app, "__qualname__") else type(self.app)
        return f"{named.__module__}.{named.__qualname__}"

    @property
    def embedding_name(self) -> str:
        """What the embedding that misses are measured by is called."""
        if isinstance(self.embedding, str):
            return self.embedding
        return f"{type(self.embedding).__module__}.{type(self.embedding).__qualname__}"
