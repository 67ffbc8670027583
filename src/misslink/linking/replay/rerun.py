"""An app asked a case's question again, with passages that it is handed, and judged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.capture import Watcher, load_app
from misslink.capture.handing import Search
from misslink.judging.asking import judge_case
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.protocol import Judge
from misslink.linking.calibration import Calibration
from misslink.linking.replay.kept import Kept
from misslink.manifest import code_hash, content_hash
from misslink.prompting import BUILT_IN, Prompts
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Run, Trace, Verdict

__all__ = ["CUT_OFF", "JUDGED_BY", "NOT_ASKED", "NotKeptError", "Rerunner", "rerunner"]

CUT_OFF = 5  # what `misslink evaluate` takes, for a run whose manifest does not say
NOT_ASKED = (
    "the app asked no retriever that could be replaced; one that searches in threads of its own or "
    "with another client is replayed as a function that builds it:  def build(retriever)"
)
# What `misslink.linking.facts` reads; others would cost calls and change no outcome.
JUDGED_BY = ("faithfulness", "context_relevance", "abstention", "correctness")
_FILE = "replays.jsonl"


class NotKeptError(Exception):
    """An answer, or what a judge says of it, is not kept, and nobody was to be asked."""


class Rerunner:
    """Asks an app again with given passages, as many cases at once as you like, and judges it.

    Parameters
    ----------
    app : Runnable or callable
        An app, or a function that takes a retriever and returns one.
    judge : Judge
    k : int
        How many passages count as context where the prompt was not seen.
    id_key, input_key : str or None
        As of `misslink.capture.Watcher`.
    prompts : Prompts
        What the judge reads.
    repeats : int
        How often each question is put to the judge.
    calibration : Calibration or None
        Of the judge, as the run was linked with it.
    kept : Kept or None
        Generations of before, and where new ones go.
    work : str or None
        What tells this app and its code from others in `kept`. None: nothing is used again.

    Attributes
    ----------
    generated, reused : int
        How often the app was asked, and how often an answer of before was used.

    Raises
    ------
    InputError
        `app` is none, or builds none.
    """

    def __init__(
        self,
        app: Any,
        judge: Judge,
        *,
        k: int = CUT_OFF,
        id_key: str | None = None,
        input_key: str | None = None,
        prompts: Prompts = BUILT_IN,
        repeats: int = 1,
        calibration: Calibration | None = None,
        kept: Kept | None = None,
        work: str | None = None,
    ) -> None:
        from misslink.capture.injection import built

        self.judge = judge
        self.k = k
        self.calibration = calibration
        self.generated = 0
        self.reused = 0
        self._watcher = Watcher(built(app), id_key=id_key, input_key=input_key)
        self._metrics: list[JudgedMetric] = [judged_metrics.get(name) for name in JUDGED_BY]
        self._prompts = prompts
        self._repeats = repeats
        self._kept = kept if work is not None else None
        self._work = content_hash([work, id_key, input_key])
        read = [prompts.load(name).ref.sha256 for name in sorted(prompts.names())]
        self._terms = content_hash([judge.name, dict(judge.identity), read, repeats, k])

    async def __call__(
        self,
        case: Case,
        passages: Sequence[Passage],
        *,
        intervention: str = "",
        only_kept: bool = False,
        searches: Sequence[Search] = (),
    ) -> tuple[Trace, Mapping[str, Verdict]]:
        """Let the app answer the case from `passages`, and judge the answer.

        Parameters
        ----------
        case : Case
        passages : sequence of Passage
            What the app's search finds, best first, and any other that `searches` lacks.
        intervention : str
            What tells two generations from the same passages apart.
        only_kept : bool
            Whether neither the app nor the judge may be asked.
        searches : sequence of Search
            What each search of an app that makes several finds instead.

        Returns
        -------
        trace : Trace
            ``unmeasured`` where the app asked no retriever that could be replaced, or where the
            judge's budget is spent and the app was therefore not asked; ``error`` where it failed.
        verdicts : mapping of str to Verdict
            By metric; empty where there is no answer to judge.

        Raises
        ------
        JudgeUnreachableError
            Asking on is pointless; what the app has answered is kept.
        NotKeptError
            `only_kept`, and something is not.
        """
        handed = (passages, tuple(searches))
        trace = await self._generate(case, handed, intervention, only_kept=only_kept)
        if trace.unmeasured is not None or trace.answer is None:
            return trace, {}
        return trace, await self.judged(case, trace, only_kept=only_kept)

    async def judged(
        self, case: Case, trace: Trace, *, only_kept: bool = False
    ) -> dict[str, Verdict]:
        """The verdicts on a trace that decide its outcome, by metric; raises as `__call__`."""
        key = content_hash([self._terms, case, trace])
        found = self._kept.verdicts(key) if self._kept and only_kept else None
        if found is None:
            if only_kept:
                raise NotKeptError
            subject = Subject(case, trace, self.k, self._prompts)
            held_back = getattr(self.judge, "not_asked", 0)
            found = await judge_case(subject, self._metrics, self.judge, repeats=self._repeats)
            # What failed, or was not asked for want of budget, may be had another time.
            whole = held_back == getattr(self.judge, "not_asked", 0)
            whole = whole and all(verdict.status != "failed" for verdict in found)
            if self._kept and whole and self._kept.verdicts(key) is None:
                self._kept.put_verdicts(key, found)
        return {verdict.metric: verdict for verdict in found}

    def close(self) -> None:
        """Leave the file of generations to others."""
        if self._kept:
            self._kept.close()

    async def _generate(
        self,
        case: Case,
        handed: tuple[Sequence[Passage], tuple[Search, ...]],
        intervention: str,
        *,
        only_kept: bool,
    ) -> Trace:
        from misslink.capture.injection import injected

        passages, searches = handed
        told = [[one.query, one.name, list(one.passages)] for one in searches]
        of_searches = [told] if told else []  # as ever where there is one search
        key = content_hash([self._work, case, intervention, list(passages), *of_searches])
        known = self._kept.get(key) if self._kept else None
        if known is not None:
            self.reused += 1
            return known
        if only_kept:
            raise NotKeptError
        if getattr(self.judge, "not_asked", 0):
            spent = "the judge's budget or time is spent, so the app was not asked either"
            return Trace(case_id=case.id, unmeasured=spent)
        self.generated += 1
        id_key = self._watcher.id_key
        with injected(passages, id_key=id_key, searches=searches) as injection:
            trace = await self._watcher.watch(case)
        if trace.error is not None:
            return trace  # not kept: the app may do better next time
        if not injection.asked:
            trace = trace.model_copy(update={"unmeasured": NOT_ASKED})
        if self._kept:
            self._kept.put(key, trace, intervention=intervention)
        return trace


def rerunner(
    run: Run,
    app: Any,
    judge: Judge,
    *,
    folder: Path | None = None,
    k: int | None = None,
    id_key: str | None = None,
    input_key: str | None = None,
    prompts: Prompts = BUILT_IN,
    repeats: int = 1,
    loaded: Any = None,
) -> Rerunner:
    """Return a `Rerunner` for the app of a run, on the run's own terms.

    Parameters
    ----------
    run : Run
    app : str, Runnable or callable
        Or where to import it from. Only of one that is imported are generations used again: of an
        object nobody can tell whether it is the same.
    judge : Judge
    folder : Path or None
        The run folder, for ``replays.jsonl``. None: generations are not kept.
    k : int or None
        As of `Rerunner`; the run's own if None.
    id_key, input_key : str or None
        As of `Rerunner`; the run's own if None.
    prompts, repeats
        As of `Rerunner`.
    loaded : Runnable, callable or None
        What `app` names, where it was imported already: a file that builds its index when it is
        imported would build it once more, and take it from those who hold the first.

    Raises
    ------
    InputError
        There is no such app, `folder` cannot be written, or another process replays the run.
    """
    spec = app if isinstance(app, str) else None
    told = {name: run.manifest.get(name) for name in ("k", "id_key", "input_key")}
    cut_off = told["k"] if isinstance(told["k"], int) else CUT_OFF
    return Rerunner(
        loaded if loaded is not None else load_app(spec) if spec else app,
        judge,
        k=k or cut_off,
        id_key=id_key or (None if told["id_key"] is None else str(told["id_key"])),
        input_key=input_key or (None if told["input_key"] is None else str(told["input_key"])),
        prompts=prompts,
        repeats=repeats,
        calibration=Calibration.of_run(run),
        kept=Kept(folder / _FILE) if folder and spec else None,
        work=content_hash([spec, code_hash(spec)]) if spec else None,
    )
