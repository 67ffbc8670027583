"""The options of an evaluation, each with its help and with what depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from misslink.errors import InputError
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig, option_field

if TYPE_CHECKING:  # the command line reads the options and need not load these
    from misslink.engines.protocol import Engine
    from misslink.judge.protocol import Judge
    from misslink.metrics.rubric import Rubric
    from misslink.types import Case, Passage, Trace

_MAP_METHODS = ("umap", "pca", "none")
Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The options of an evaluation; `misslink.evaluate` documents each.

    A field with a help text is an option of the command of the same name. ``decides`` says what
    depends on its value: which cases are evaluated, the app's traces, or the results alone.

    Raises
    ------
    InputError
        The options contradict each other, or a number is out of range.
    """

    app: Any = None
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = option_field(
        None, "Gold set: file, folder, glob pattern or URL.", show_default="made from --traces"
    )
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = option_field(
        None, "Evaluate recorded traces instead of calling an app."
    )
    corpus: str | Path | Sequence[Passage | Mapping[str, Any]] | None = option_field(
        None,
        "Corpus of the app: JSONL, CSV, folder or chroma:FOLDER.",
        show_default="the app's own index",
    )
    only: Sequence[str] = option_field(
        (),
        "Evaluate only the case with this id; repeatable.",
        flag="--case",
        type=list[str],
        show_default="all",
        decides="cases",
    )
    sample: int | None = option_field(
        None,
        "Evaluate a random sample of this many cases, drawn by --seed.",
        min=1,
        show_default="all",
        decides="cases",
    )
    judge: str | Judge | None = option_field(
        "heuristic",
        "Judge: heuristic, openai:MODEL, none, or another (see above).",
        envvar="MISSLINK_JUDGE",
    )
    metrics: Sequence[str | Rubric] = option_field(
        (),
        "Criterion of your own, judged too: rubric:FILE; repeatable.",
        flag="--metric",
        type=list[str],
        show_default=False,
    )
    out: str | Path | None = option_field(
        None, "Run folder to write, or a URL.", show_default="reports/DATE-TIME"
    )
    k: int | None = option_field(
        None,
        "Cutoff: number of first passages that count.",
        min=1,
        show_default="as many as the app's prompt holds, else 5",
        decides="traces",
    )
    ks: str | Sequence[int] = option_field(
        "1,5,10", "Cutoffs of recall beside --k, comma-separated.", type=str, decides="results"
    )
    depth: int = option_field(
        100, "Depth of the search for missed passages.", min=1, decides="traces"
    )
    concurrency: int = option_field(8, "Cases in flight at once.", min=1)
    engine: str | Engine = option_field(
        "local", "Engine: local (this process), ray (a cluster) or batch (batch API)."
    )
    ray_address: str | None = option_field(
        None, "Ray cluster: auto, or HOST:PORT.", show_default="a local cluster"
    )
    workers: int | None = option_field(
        None, "Number of Ray workers.", min=1, show_default="one per processor"
    )
    cache: str | Path | None = option_field(
        DEFAULT_CACHE, "Response cache of the judge, or none.", type=Path | None
    )
    id_key: str | None = option_field(None, "Metadata key of the passage id.", decides="traces")
    input_key: str | None = option_field(
        None, "Input key of the app for the question.", decides="traces"
    )
    app_config: str | Path | Mapping[str, Any] | None = option_field(
        None,
        "Call-time settings of the app (YAML, JSON, TOML).",
        type=Path | None,
        show_default=False,
    )
    app_timeout: float | None = option_field(
        None, "Seconds the app may take for a case.", show_default="no limit"
    )
    embedding: Any = option_field(
        "app", "Embedding: app, minilm, PROVIDER:MODEL, FILE.py:NAME, none."
    )
    map_method: str = option_field(
        "umap",
        "Map of the report: umap (where installed), pca or none.",
        flag="--map",
        decides="results",
    )
    calibration: str | Path | None = option_field(
        None,
        "Earlier calibration.json, to correct rates for the judge's errors.",
        type=Path | None,
        show_default=False,
    )
    labels: Any = option_field(
        None,
        "Human labels to calibrate the judge (CSV, JSONL); repeatable.",
        type=list[Path] | None,
        show_default=False,
    )
    known_only: bool = option_field(False, "Ignore labels of unknown cases.")
    seed: int = option_field(0, "Random seed for samples and intervals.", min=0, decides="results")
    overwrite: bool = option_field(False, "Replace a run of other inputs.")
    judge_config: JudgeConfig | None = None
    progress: Progress | None = None
    command: str | None = None

    def __post_init__(self) -> None:
        if (self.app is None) == (self.traces is None):
            raise InputError("give an app, such as app.py:chain, or --traces FILE, and not both")
        if self.goldset is None and self.traces is None:
            raise InputError("give a gold set: a file with one JSON object a line")
        if self.labels is not None and self.calibration is not None:
            raise InputError(
                "give --calibration, made before, or --labels, to calibrate this run's judge on; "
                "not both"
            )
        if self.labels is not None and (self.judge is None or self.judge == "none"):
            raise InputError("labels calibrate a judge, and there is none. Name one with --judge")
        self._check_values()

    @property
    def recall_cutoffs(self) -> list[int]:
        """`ks` as numbers.

        Raises
        ------
        InputError
            One of them is no cutoff.
        """
        given = self.ks.split(",") if isinstance(self.ks, str) else list(self.ks)
        values = [str(k).strip() for k in given]
        if wrong := [k for k in values if k and not (k.isdecimal() and int(k))]:
            raise InputError(f"--ks has {wrong[0]!r}; give whole numbers of 1 or more: 1,5,10")
        return sorted({int(k) for k in values if k})

    def _check_values(self) -> None:
        """Raise InputError if the value of an option is out of range, or of another kind."""
        for field in fields(self):
            value, least = getattr(self, field.name), field.metadata.get("min")
            if least is None or value == field.default:
                continue
            if not isinstance(value, int) or value < least:
                flag = f"--{field.name.replace('_', '-')}"
                raise InputError(f"{flag} is {value}; give a whole number of {least} or more")
        _ = self.recall_cutoffs
        if self.map_method not in _MAP_METHODS:
            raise InputError(f"--map is '{self.map_method}'; give umap, pca or none")
        for name in ("out", "cache", "calibration"):
            path = getattr(self, name)
            if not isinstance(path, str | PathLike | None):
                raise InputError(f"{name} is {path!r}; give a path")
        if self.app_timeout is not None and not self.app_timeout > 0:
            raise InputError(f"--app-timeout is {self.app_timeout}; give seconds, more than 0")

    def deciding(self, what: Literal["traces", "results"]) -> dict[str, Any]:
        """The options whose values decide the app's traces, or the results."""
        names = [field.name for field in fields(self) if field.metadata.get("decides") == what]
        return {name: getattr(self, name) for name in names}

    @property
    def judging(self) -> JudgeConfig:
        """The judge's settings, or the defaults."""
        return self.judge_config or JudgeConfig()

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


class EvaluationOptions(TypedDict, total=False):
    """The options of `misslink.evaluate` that have names only, as type checkers read them."""

    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None
    corpus: str | Path | Sequence[Passage | Mapping[str, Any]] | None
    only: Sequence[str]
    sample: int | None
    judge: str | Judge | None
    metrics: Sequence[str | Rubric]
    out: str | Path | None
    k: int | None
    ks: str | Sequence[int]
    depth: int
    concurrency: int
    engine: str | Engine
    ray_address: str | None
    workers: int | None
    cache: str | Path | None
    id_key: str | None
    input_key: str | None
    app_config: str | Path | Mapping[str, Any] | None
    app_timeout: float | None
    embedding: Any
    map_method: str
    calibration: str | Path | None
    labels: Any
    known_only: bool
    seed: int
    overwrite: bool
    judge_config: JudgeConfig | None
    progress: Progress | None
    command: str | None


def _qualified_name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
