"""Everything that an evaluation opens before the first judge call."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.calibration.inter_annotator import load_labels
from misslink.capture import load_app
from misslink.capture.app import read_app_config
from misslink.capture.passages import passage_from
from misslink.case_fields import tag_turns
from misslink.documents import DEFAULT_K
from misslink.embedding import Embedder, open_embedder
from misslink.engines.protocol import Engine
from misslink.errors import InputError
from misslink.io import GoldSet, RunStaging, read_goldset
from misslink.io.corpus import read_corpus
from misslink.io.labels import Labels
from misslink.io.manifest import display_path, flatten_inputs, hash_app_code, hash_content
from misslink.io.run_folder import RUN_PARTS
from misslink.io.trace_formats import read_recording
from misslink.judge.calibration import Calibration, check_judge, read_calibration_document
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.prompts import Prompts
from misslink.judge.readings import ALWAYS_READ
from misslink.judge.session import JudgeSession, open_judge
from misslink.metrics.rubric import load_prompts, read_rubrics
from misslink.parts import PartWriter, by_case
from misslink.pipeline.config import EvaluationConfig
from misslink.registry import engines, judged_metrics
from misslink.types import Passage, Trace

_HASH_DIGITS = 16


@dataclass(frozen=True)
class EvaluationContext:
    """Everything that an evaluation reads, loads and opens before its first judge call."""

    config: EvaluationConfig
    gold: GoldSet
    app: Any
    app_config: Mapping[str, Any]
    engine: Engine
    recorded: Sequence[Trace] | None
    corpus: tuple[Passage, ...] | None
    judge: JudgeSession | None
    calibration: Calibration | None
    calibration_document: Mapping[str, Any] | None
    labels: Labels | None
    embedder: Embedder | None
    metrics: tuple[JudgedMetric, ...]
    prompts: Prompts
    k: int  # the given one; once the app has run, the number of passages it puts in its prompt
    inputs: Mapping[str, str] = field(default_factory=dict)  # another run if one of them changes
    work: str = ""  # hash of what the app's traces depend on
    staging: RunStaging | None = None

    @property
    def judge_name(self) -> str:
        """The name of the judge, or 'none'."""
        return self.judge.name if self.judge else "none"

    @property
    def app_settings(self) -> dict[str, Any]:
        """The options on which traces depend."""
        config = self.config
        settings = hash_content(self.app_config)[:_HASH_DIGITS] if self.app_config else None
        return {
            "app": display_path(config.spec) if config.spec else config.app_name,
            **config.deciding("traces"),
            "app_config": settings,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The options on which results depend."""
        return {
            **self.app_settings,
            "judge": self.judge_name,
            "embedding": self.config.embedding_name,
            **self.config.deciding("results"),
        }

    def subjects(self, traces: Sequence[Trace]) -> Iterator[Subject]:
        """Each case with its trace, in the gold set's order."""
        readings = self.judge.readings if self.judge else ALWAYS_READ
        for case, trace in zip(self.gold.cases, traces, strict=True):
            yield Subject(case, trace, self.k, self.prompts, readings)

    def open_part(self, name: str) -> PartWriter[Any]:
        """Open a part of the run, whose items are written as they are made."""
        return self.staging.open_part(name) if self.staging else PartWriter(RUN_PARTS[name])

    def tick(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self.config.progress:
            self.config.progress(stage, done, total)


@asynccontextmanager
async def open_context(config: EvaluationConfig) -> AsyncIterator[EvaluationContext]:
    """Read, load and open everything that `config` names, and close it at the end.

    Raises
    ------
    InputError
        Something in `config` is wrong. No judge call was made.
    """
    whole, recorded = _read_cases(config)
    gold = _select_cases(config, whole)
    corpus = _read_corpus(config)
    rubrics = read_rubrics(config.metrics)
    metrics = [*map(judged_metrics.get, judged_metrics.names()), *rubrics]
    metrics.sort(key=lambda metric: metric.level)
    labels = _read_labels(config, whole, gold, [metric.name for metric in metrics])
    terms = config.judging
    prompts = load_prompts(terms.prompts, rubrics)
    document, calibration = None, None
    if config.calibration:
        document = read_calibration_document(config.calibration)
        calibration = Calibration.from_document(document, config.calibration)
    app_config = read_app_config(config.app_config)
    app = load_app(config.spec) if config.spec else config.app
    async with AsyncExitStack() as stack:
        engine = config.engine
        if isinstance(engine, str):
            engine = engines.get(engine)(config.ray_address, config.workers)
        stack.push_async_callback(engine.close)
        judge = open_judge(
            config.judge,
            cache=Path(config.cache) if config.cache else None,
            concurrency=engine.at_once("judge", config.concurrency),
            terms=terms,
            reach=engine.reach,
        )
        if judge:
            stack.push_async_callback(judge.close)
        embedder = open_named_embedder(config.embedding)
        if embedder:
            stack.callback(embedder.close)
        context = EvaluationContext(
            config=config,
            gold=gold,
            app=app,
            app_config=app_config,
            engine=engine,
            recorded=recorded,
            corpus=corpus,
            judge=judge,
            calibration=calibration,
            calibration_document=document,
            labels=labels,
            embedder=embedder,
            metrics=tuple(metrics),
            prompts=prompts,
            k=config.k or DEFAULT_K,
        )
        hashes = {name: prompts.load(name).ref.sha256 for name in prompts.names()}
        if document is not None and judge:
            check_judge(
                document,
                config.calibration or "",
                judge=judge.name,
                prompts=hashes,
                identity=flatten_inputs({"judge_identity": judge.identity}),
            )
        context = _hash_inputs(context, hashes, selected=gold is not whole)
        if config.out:
            staging = RunStaging(
                Path(config.out),
                context.inputs,
                context.work,
                cases=len(gold.cases),
                overwrite=config.overwrite,
            )
            context = replace(context, staging=stack.enter_context(staging))
        yield context


def open_named_embedder(name: Any) -> Embedder | None:
    """Open the embedding that the user named; None for 'app' and 'none'."""
    return None if isinstance(name, str) and name in {"app", "none"} else open_embedder(name)


def _hash_inputs(
    context: EvaluationContext, prompt_hashes: Mapping[str, str], *, selected: bool
) -> EvaluationContext:
    """Add what identifies this run and its traces: options, and the hashes of everything read."""
    config, terms = context.config, context.config.judging

    def short_hash(value: Any) -> str | None:
        return None if value is None else hash_content(value)[:_HASH_DIGITS]

    # Two app objects cannot be compared: each call with one counts as another run.
    is_object = context.recorded is None and config.spec is None
    call_id = uuid.uuid4().hex if is_object else None
    inputs = flatten_inputs(
        {
            **context.settings,
            "app object (new at each call)": call_id,
            "goldset": short_hash(context.gold.cases),
            "cases": [case.id for case in context.gold.cases] if selected else None,
            "traces": short_hash(context.recorded and by_case(context.recorded)),
            "corpus": short_hash(context.corpus),
            "repeats": terms.repeats,
            "context_length": terms.context_length,
            "calibration": context.calibration and hash_content(context.calibration),
            "labels": _hash_labels(context.labels),
            "judge_identity": context.judge and context.judge.identity,
            "prompts": {name: sha256[:_HASH_DIGITS] for name, sha256 in prompt_hashes.items()},
        }
    )
    code = hash_app_code(config.spec) if config.spec else call_id
    work = hash_content([context.gold.cases, list(context.app_settings.values()), code])
    return replace(context, inputs=inputs, work=work)


def _hash_labels(labels: Labels | None) -> str | None:
    """SHA-256 of the labels, whatever file and line they are from; None without labels."""
    if labels is None:
        return None
    rows = [asdict(replace(label, line=None)) for label in labels.items]
    return hash_content(sorted(rows, key=lambda row: str(sorted(row.items(), key=str))))


def _read_cases(config: EvaluationConfig) -> tuple[GoldSet, Sequence[Trace] | None]:
    """Read the gold set, and the recorded traces of its cases if there are any."""
    recorded = None
    if config.traces is None:
        gold = read_goldset(() if config.goldset is None else config.goldset)
    else:
        recording = read_recording(config.traces)
        gold = recording.gold() if config.goldset is None else read_goldset(config.goldset)
        recorded = recording.match(gold)
        gold = gold.add_histories(recorded)
    return replace(gold, cases=tag_turns(gold.cases)), recorded


def _select_cases(config: EvaluationConfig, gold: GoldSet) -> GoldSet:
    """Return the cases to evaluate; `gold` itself if no option selects any."""
    if config.only:
        gold = gold.only(config.only)
    if config.sample is None or config.sample >= len(gold.cases):
        return gold
    # Sorted, so that the order of the file does not matter.
    ids = sorted(case.id for case in gold.cases)
    return gold.only(random.Random(config.seed).sample(ids, config.sample))  # noqa: S311 (no secret)


def _read_labels(
    config: EvaluationConfig, whole: GoldSet, gold: GoldSet, judged: Sequence[str]
) -> Labels | None:
    """Read the human labels of the evaluated cases; those of other cases of the `whole` are fine.

    Raises
    ------
    InputError
        They cannot be read, or are of unknown cases, or of a metric that is not in `judged`.
    """
    if config.labels is None:
        return None
    labels = load_labels(config.labels)
    labels.check_metrics(judged)
    labels = labels.select_cases(
        [case.id for case in whole.cases], display_path(whole.name), leave_out=config.known_only
    )
    evaluated = {case.id for case in gold.cases}
    items = tuple(label for label in labels.items if label.case_id in evaluated)
    return replace(labels, items=items)


def _read_corpus(config: EvaluationConfig) -> tuple[Passage, ...] | None:
    if config.corpus is None:
        return None
    if isinstance(config.corpus, str | Path):
        return read_corpus(config.corpus)
    by_id: dict[str, Passage] = {}
    for item in config.corpus:
        if isinstance(item, Passage):
            passage = item
        else:
            passage = passage_from(item, rank=len(by_id) + 1, id_key=config.id_key)
        if by_id.setdefault(passage.id, passage).text != passage.text:
            problem = f"two passages have the id '{passage.id}'; ids name one passage each"
            raise InputError(problem, path="the corpus")
    return tuple(by_id.values())
