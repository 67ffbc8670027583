"""Re-run one case of an app with given passages, judge the answer as the run did, and cache both."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from misslink.capture import Watcher, load_app
from misslink.capture.app import read_app_config
from misslink.capture.injection import InjectedSearch
from misslink.documents import DEFAULT_K, cutoff_of, manifest_of
from misslink.errors import InputError
from misslink.io.atomic import lock_open_file
from misslink.io.manifest import display_path, flatten_inputs, hash_app_code, hash_content
from misslink.judge.calibration import Calibration
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Judge
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Reason, Run, Trace, Verdict


def judging_difference(run: Run, judge: Judge, prompts: Prompts, repeats: int = 1) -> Reason | None:
    """Return how the judging of a replay differs from that of its run; None if it does not."""
    manifest = manifest_of(run)
    if manifest.judge != judge.name:
        return Reason(code="replay_other_judge", was=manifest.judge or None, now=judge.name)
    before = manifest.judge_identity
    now = flatten_inputs(judge.identity)
    for name in sorted({*before, *now} if before else ()):
        if before.get(name) != now.get(name):
            was, is_now = (values.get(name, "not given") for values in (before, now))
            return Reason(code="replay_other_setting", setting=name, was=was, now=is_now)
    put = manifest.judging.repeats
    if put is not None and put != repeats:
        return Reason(code="replay_other_repeats", was=put, now=repeats)
    for ref in manifest.prompts:
        if ref.name not in prompts.names() or prompts.load(ref.name).ref.sha256 != ref.sha256:
            return Reason(code="replay_other_prompt", prompt=ref.name)
    return None


NO_RETRIEVER = (
    "the app called no retriever that misslink could replace; to replay an app that searches in "
    "its own threads or with another client, pass a function that builds it:  def build(retriever)"
)
# What `misslink.linking.answer_outcome` reads; all of it comes from one question to the judge.
REPLAY_METRICS = (
    *("faithfulness", "context_relevance", "context_sufficiency"),
    *("abstention", "correctness", "completeness", "answer_relevance"),
)
_CACHE_FILE = "replays.jsonl"


@dataclass(frozen=True)
class RerunSettings:
    """How an app is run again and judged.

    Parameters
    ----------
    k : int or None
        Number of passages that count as context where the prompt was not observed. None: the
        run's own.
    id_key, input_key : str or None
        As in `misslink.capture.Watcher`. None: the run's own.
    app_config : path, mapping or None
        The app's call-time settings. None: the run's own file.
    prompts : Prompts
        Prompts of the judge.
    repeats : int
        Number of samples per judge call.
    concurrency : int
        Cases in progress at once, at least 1.
    criteria : tuple of JudgedMetric
        Criteria of the user's own that `prompts` ask for, judged too.
    labelled_good : frozenset of str
        Cases whose answer is good by people's labels: where it failed, the verdict is wrong.
    """

    k: int | None = None
    id_key: str | None = None
    input_key: str | None = None
    app_config: Any = None
    prompts: Prompts = BUILT_IN
    repeats: int = 1
    concurrency: int = 8
    criteria: tuple[JudgedMetric, ...] = ()
    labelled_good: frozenset[str] = frozenset()

    @property
    def metrics(self) -> list[JudgedMetric]:
        """What is judged of an answer."""
        return [*map(judged_metrics.get, REPLAY_METRICS), *self.criteria]

    def for_run(self, run: Run) -> RerunSettings:
        """Return them with the run's own values where they have none."""
        manifest = manifest_of(run)
        return replace(
            self,
            k=self.k or cutoff_of(run),
            id_key=self.id_key or manifest.id_key,
            input_key=self.input_key or manifest.input_key,
            app_config=self.app_config or manifest.app_config,
        )


DEFAULT_SETTINGS = RerunSettings()


def add_evidence(trace: Trace, evidence: Sequence[Passage], k: int) -> Trace:
    """Return the trace as if `evidence` had been in its prompt too, for the judge to read."""
    context = trace.context(k)
    ids = {passage.id for passage in context}
    whole = {passage.id: passage for passage in evidence}
    read = [whole.get(p.id, p) if p.id in trace.shown else p for p in context]
    read += [passage for passage in evidence if passage.id not in ids]
    if read == [*context] or trace.unmeasured is not None or trace.answer is None:
        return trace
    return _with_context(trace, read)


def reorder_context(trace: Trace, k: int, *, turn: int) -> Trace:
    """Return the trace with what its model saw in another order, for the judge to read it anew."""
    backwards = trace.context(k)[::-1]
    turn = (turn - 1) % max(len(backwards), 1)
    return _with_context(trace, [*backwards[turn:], *backwards[:turn]])


def _with_context(trace: Trace, read: Sequence[Passage]) -> Trace:
    seen = tuple(
        passage if passage.rank == rank else passage.model_copy(update={"rank": rank})
        for rank, passage in enumerate(read, start=1)
    )
    prompted = tuple(passage.id for passage in seen)
    return trace.model_copy(update={"retrieved": seen, "prompted": prompted, "shown": {}})


class ReplayCache:
    """The generations of replays and their verdicts, by key, in a file that is only appended to.

    Verdicts are saved here too, because the next replay may have another response cache or none. One
    process holds the file until `close`: two replays of one run would each pay for the same generations.

    Parameters
    ----------
    path : Path or None
        Need not exist yet. None: in memory only.

    Raises
    ------
    InputError
        The file cannot be read or written, or another process holds it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._traces: dict[str, Trace] = {}
        self._verdicts: dict[str, tuple[Verdict, ...]] = {}
        self._file: BinaryIO | None = None
        if path is None:
            return
        busy = (
            "another misslink is replaying this run; wait for it, then the same command takes over "
            "its answers"
        )
        try:
            # Open to the end: a run that is evaluated anew meanwhile moves it to its new folder.
            self._file = path.open("a+b", buffering=0)
            lock_open_file(self._file, path.parent, busy)
            self._file.seek(0)
            text = self._file.read().decode("utf-8", errors="replace")
            if text and not text.endswith("\n"):  # the process that wrote it was killed
                self._file.write(b"\n")
        except OSError as problem:
            raise _write_error(path, problem.strerror) from None
        for line in filter(None, text.split("\n")):
            # Half a line, or one of another version: the app is asked again.
            with contextlib.suppress(ValueError, KeyError, TypeError, ValidationError):
                data = json.loads(line)
                if "verdicts" in data:
                    verdicts = tuple(Verdict.model_validate(row) for row in data["verdicts"])
                    self._verdicts[data["key"]] = verdicts
                else:
                    self._traces[data["key"]] = Trace.model_validate(data["trace"])

    def get(self, key: str) -> Trace | None:
        """The trace kept under `key`; None where there is none."""
        return self._traces.get(key)

    def put(self, key: str, trace: Trace, *, intervention: str) -> None:
        """Keep a trace, on disk before it is used.

        Raises
        ------
        InputError
            The disk is full, or the file can no longer be written.
        """
        self._traces[key] = trace
        context = {"case_id": trace.case_id, "intervention": intervention}
        self._write({"key": key, **context, "trace": trace.model_dump(mode="json")})

    def verdicts(self, key: str) -> tuple[Verdict, ...] | None:
        """The verdicts kept under `key`; None where there are none."""
        return self._verdicts.get(key)

    def store_verdicts(self, key: str, verdicts: Sequence[Verdict]) -> None:
        """Keep what was said of an answer; raises as `put`."""
        self._verdicts[key] = tuple(verdicts)
        self._write(
            {"key": key, "verdicts": [verdict.model_dump(mode="json") for verdict in verdicts]}
        )

    def _write(self, data: Mapping[str, Any]) -> None:
        if self.path is None or self._file is None:
            return
        remaining = memoryview(json.dumps(data, ensure_ascii=False).encode() + b"\n")
        try:
            if not os.fstat(self._file.fileno()).st_nlink:
                raise _write_error(self.path, "it was removed")
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as problem:
            raise _write_error(self.path, problem.strerror) from None

    def close(self) -> None:
        """Close and unlock the file; cached generations can still be read."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _write_error(path: Path, why: str | None) -> InputError:
    return InputError(
        f"it cannot be written ({why}); replay saves the app's answers in the run "
        "folder, so make room there or copy the run elsewhere",
        path=path,
    )


def check_replaceable(run: Run, app: str) -> None:
    """Raise InputError where the run shows that its own app cannot be given other passages."""
    from misslink.capture.hooks import retriever_parameter

    manifest = manifest_of(run)
    watched = manifest.app == display_path(app) and not manifest.traces
    if not watched or any(trace.calls for trace in run.traces):
        return
    if retriever_parameter(load_app(app)) is None:
        raise InputError(f"in the run {NO_RETRIEVER}, named with --app")


class NotCachedError(Exception):
    """An answer or its verdicts are not cached, and no call may be made."""


class Rerunner:
    """Re-runs an app with given passages and judges the answers; calls may run concurrently.

    Parameters
    ----------
    app : Runnable or callable
        An app, or a function that takes a retriever and returns one.
    judge : Judge
    settings : RerunSettings
    calibration : Calibration or None
        The judge's calibration that the run was linked with.
    kept : ReplayCache or None
        Cached generations; new ones are added.
    work : str or None
        Identifies the app and its code in `kept`. None: nothing is reused.

    Attributes
    ----------
    generated, reused : int
        Number of app calls, and of answers reused from the cache.

    Raises
    ------
    InputError
        `app` is not an app and does not build one.
    """

    def __init__(
        self,
        app: Any,
        judge: Judge,
        settings: RerunSettings = DEFAULT_SETTINGS,
        *,
        calibration: Calibration | None = None,
        kept: ReplayCache | None = None,
        work: str | None = None,
    ) -> None:
        from misslink.capture.hooks import build_app

        self.judge = judge
        self.k = settings.k or DEFAULT_K
        self.calibration = calibration
        self.generated = 0
        self.reused = 0
        id_key, input_key = settings.id_key, settings.input_key
        own = read_app_config(settings.app_config)
        self._watcher = Watcher(build_app(app), id_key=id_key, input_key=input_key, settings=own)
        self._metrics = settings.metrics
        self._settings = settings
        self._kept = kept if work is not None else None
        self._work = hash_content([work, id_key, input_key, *([own] if own else [])])
        prompts = settings.prompts
        read = [prompts.load(name).ref.sha256 for name in sorted(prompts.names())]
        identity = dict(judge.identity)
        self._terms = hash_content([judge.name, identity, read, settings.repeats, self.k])

    async def __call__(
        self,
        case: Case,
        passages: Sequence[Passage] | None,
        *,
        intervention: str = "",
        only_kept: bool = False,
        searches: Sequence[InjectedSearch] = (),
        evidence: Sequence[Passage] = (),
        asked: Case | None = None,
    ) -> tuple[Trace, Mapping[str, Verdict]]:
        """Run the app on the case with `passages`, and judge the answer.

        Parameters
        ----------
        case : Case
        passages : sequence of Passage or None
            What the app's search returns, best first; also for any search that `searches` lacks.
            None: what it finds itself.
        intervention : str
            Distinguishes two generations from the same passages.
        only_kept : bool
            Use cached results only: no app call and no judge call.
        searches : sequence of InjectedSearch
            What each search returns instead, for an app that searches more than once.
        evidence : sequence of Passage
            Further passages for the judge alone.
        asked : Case or None
            What the app is asked in its place.

        Returns
        -------
        trace : Trace
            With `evidence`, as the judge has read it.
            ``unmeasured`` where the app used no retriever that misslink could replace, or where the
            judge's budget was spent before the app call; ``error`` where the app failed.
        verdicts : mapping of str to Verdict
            By metric; empty without an answer to judge.

        Raises
        ------
        JudgeUnreachableError
            The judge cannot be reached; the app's answers are cached.
        NotCachedError
            `only_kept` is set, and a result is not cached.
        """
        trace = await self._generate(
            asked or case, passages, searches, intervention, only_kept=only_kept
        )
        if trace.unmeasured is not None or trace.answer is None:
            return trace, {}
        trace = add_evidence(trace, evidence, self.k)
        return trace, await self.judged(case, trace, only_kept=only_kept)

    async def judged(
        self, case: Case, trace: Trace, *, only_kept: bool = False
    ) -> dict[str, Verdict]:
        """The verdicts on a trace that decide its outcome, by metric; raises as `__call__`."""
        key = hash_content([self._terms, case, trace])
        verdicts = self._kept.verdicts(key) if self._kept and only_kept else None
        if verdicts is None:
            if only_kept:
                raise NotCachedError
            subject = Subject(case, trace, self.k, self._settings.prompts)
            refused_before = getattr(self.judge, "not_asked", 0)
            repeats = self._settings.repeats
            verdicts = await judge_case(subject, self._metrics, self.judge, repeats=repeats)
            # What failed, or was not asked for want of budget, may be had another time.
            whole = refused_before == getattr(self.judge, "not_asked", 0)
            whole = whole and all(verdict.status != "failed" for verdict in verdicts)
            if self._kept and whole and self._kept.verdicts(key) is None:
                self._kept.store_verdicts(key, verdicts)
        return {verdict.metric: verdict for verdict in verdicts}

    def close(self) -> None:
        """Leave the file of generations to others."""
        if self._kept:
            self._kept.close()

    async def _generate(
        self,
        case: Case,
        passages: Sequence[Passage] | None,
        searches: Sequence[InjectedSearch],
        intervention: str,
        *,
        only_kept: bool,
    ) -> Trace:
        from misslink.capture.hooks import inject_passages

        search_key = [[search.query, search.name, list(search.passages)] for search in searches]
        of_searches = [search_key] if search_key else []  # as ever where there is one search
        key = hash_content(
            [self._work, case, intervention, passages and list(passages), *of_searches]
        )
        cached = self._kept.get(key) if self._kept else None
        if cached is not None:
            self.reused += 1
            return cached
        if only_kept:
            raise NotCachedError
        if getattr(self.judge, "not_asked", 0):
            return Trace(case_id=case.id, unmeasured=str(Reason(code="budget_spent")))
        self.generated += 1
        id_key = self._watcher.id_key
        if passages is None:
            trace, is_asked = await self._watcher.watch(case), True
        else:
            with inject_passages(passages, id_key=id_key, searches=searches) as injection:
                trace = await self._watcher.watch(case)
            is_asked = injection.asked > 0
        if trace.error is not None:
            return trace  # not kept: the app may do better next time
        if not is_asked:
            trace = trace.model_copy(update={"unmeasured": NO_RETRIEVER})
        if self._kept:
            self._kept.put(key, trace, intervention=intervention)
        return trace


def open_rerunner(
    run: Run,
    app: Any,
    judge: Judge,
    *,
    settings: RerunSettings = DEFAULT_SETTINGS,
    folder: Path | None = None,
    loaded: Any = None,
) -> Rerunner:
    """Return a `Rerunner` for the app of a run, with the run's own settings.

    Parameters
    ----------
    run : Run
    app : str, Runnable or callable
        An app, or where to import it from. Generations are reused only for an imported app, because
        misslink cannot identify the code of an object.
    judge : Judge
    settings : RerunSettings
    folder : Path or None
        Run folder for ``replays.jsonl``. None: generations are not cached.
    loaded : Runnable, callable or None
        What `app` names, if it is already imported. A second import could build the app's index
        again and lock out users of the first one.

    Raises
    ------
    InputError
        There is no such app, `folder` cannot be written, or another process replays the run.
    """
    spec = app if isinstance(app, str) else None
    return Rerunner(
        loaded if loaded is not None else load_app(spec) if spec else app,
        judge,
        settings.for_run(run),
        calibration=Calibration.of_run(run),
        kept=ReplayCache(folder / _CACHE_FILE) if folder and spec else None,
        work=hash_content([spec, hash_app_code(spec)]) if spec else None,
    )
