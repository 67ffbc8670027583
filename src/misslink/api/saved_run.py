"""A run and its folder: read both, reopen the run's judge and settings, add results to the folder."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from misslink.calibration.labelled_failures import judged_run
from misslink.documents import manifest_of, summary_of
from misslink.errors import InputError
from misslink.io import add_to_run, read_complete_run, read_run
from misslink.io.manifest import display_path, flatten_inputs
from misslink.io.run_folder import report_file
from misslink.io.score_tables import is_score_table, read_score_table
from misslink.io.storage import redact_url
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig, is_custom_judge
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSession, open_judge, open_needed_judge
from misslink.linking.replay import RerunSettings
from misslink.metrics.rubric import Rubric, load_prompts
from misslink.registry import exporters
from misslink.report.cases import page_size
from misslink.report.page import write_page
from misslink.types import Link, Run


@dataclass(frozen=True)
class SavedRun:
    """A run and its folder.

    Parameters
    ----------
    run : Run
    folder : Path or None
        None: a run in memory.
    keeps_results : bool
        Whether what is found out about the run is added to its folder.
    column : str
        Its name in the column ``run`` of a score table, which `folder` then is.
    """

    run: Run
    folder: Path | None
    keeps_results: bool = True
    column: str = ""

    @classmethod
    def open(cls, run: Run | SavedRun | str | Path, *, anywhere: bool = False) -> SavedRun:
        """Return a run, as its judge says, with its folder; one in memory has none.

        `anywhere`: a URL is read, too.
        """
        if isinstance(run, SavedRun):
            return run
        if isinstance(run, Run):
            return cls(judged_run(run), None)
        return cls(read_complete_run(run, anywhere=anywhere), Path(run))

    @classmethod
    def open_all(cls, source: Any) -> list[SavedRun]:
        """Return a run with its folder, or the runs of a score table."""
        if not is_score_table(source):
            return [cls.open(source, anywhere=True)]
        file = Path(source) if isinstance(source, str | Path) else None
        runs = read_score_table(source)
        named = file is None or file.is_file()  # else the name is behind the file's
        return [cls(run, file, False, name if named else "") for name, run in runs.items()]  # noqa: FBT003

    @property
    def name(self) -> str:
        """What outputs call it: the folder, or that which the run was written to."""
        if self.folder is None:
            return self.column or summary_of(self.run).run or ""
        place = display_path(redact_url(self.folder))
        return f"{place}#{self.column}" if self.column else place

    def save(
        self,
        name: Literal["replay", "whatif", "calibration", "audit", "selftest"],
        document: Mapping[str, Any],
        links: Sequence[Link] | None = None,
    ) -> None:
        """Add a document, and changed links, to the folder, unless it holds another run now."""
        if self.folder is None or not self.keeps_results:
            return
        now = read_run(self.folder, known=self.run)
        if now.manifest != self.run.manifest:
            raise InputError(
                "the folder holds another run since this command started, so the result is not "
                "saved; repeat the command",
                path=self.folder,
            )
        fresh = now if links is None else now.model_copy(update={"links": tuple(links)})
        add_to_run(self.folder, fresh, name, document, report_writers(self.folder))


def report_writers(folder: Path) -> dict[str, Callable[[Run, Path], Path]]:
    """Return the writers of the reports that a run folder has; the HTML page is always included."""
    forms = {
        form: exporters.get(form)
        for form in exporters.names()
        if form == "html" or (folder / report_file(form)).exists()
    }
    with (folder / "cases.jsonl").open("rb") as lines:
        cases = sum(not line.isspace() for line in lines)
    if page_size(cases) < cases:  # each file of its own, so that all are put in place at once
        table = report_file("parquet")
        forms |= {"html": partial(write_page, table=table), "parquet": exporters.get("parquet")}
    return {report_file(form): write for form, write in forms.items()}


def config_as_in_run(run: Run, judge: str | Judge | None, **given: Any) -> JudgeConfig:
    """The judge settings in `given`, else those of the run; another judge has its own defaults."""
    judging = manifest_of(run).judging
    defaults: dict[str, Any] = {"prompts": judging.prompts, "repeats": judging.repeats}
    if judge is None and not is_custom_judge(_judge_spec(run)):
        names = ("temperature", "max_tokens", "cascade_check")
        defaults |= {name: _identity_number(run, name) for name in names}
    settings = defaults | {name: value for name, value in given.items() if value is not None}
    return JudgeConfig(**{name: value for name, value in settings.items() if value is not None})


@dataclass(frozen=True)
class RunJudging:
    """How the answers of a run, or new ones to its questions, are judged.

    Parameters
    ----------
    run : Run
    judge : str, Judge or None
        None: the run's own.
    config : JudgeConfig
    cache : Path or None
        Response cache. None: no cache.
    concurrency : int
        Cases in progress at once.
    rubrics : tuple of Rubric
        Criteria of the user's own, judged too.
    """

    run: Run
    judge: str | Judge | None
    config: JudgeConfig
    cache: Path | None = DEFAULT_CACHE
    concurrency: int = 8
    rubrics: tuple[Rubric, ...] = ()

    @property
    def prompts(self) -> Prompts:
        """The prompts, which ask for the criteria, too."""
        return load_prompts(self.config.prompts, self.rubrics)

    def rerun_settings(self, **more: Any) -> RerunSettings:
        """Return how an app is run again and judged so."""
        return RerunSettings(
            prompts=self.prompts,
            repeats=self.config.repeats,
            concurrency=self.concurrency,
            criteria=self.rubrics,
            **more,
        )

    @asynccontextmanager
    async def open(self, *, dry_run: bool = False) -> AsyncIterator[JudgeSession]:
        """Open the named judge, else the run's judge at the address that the run used.

        Passages are not sent to another address because an environment variable is missing.
        """
        spec, terms = self.judge or _judge_spec(self.run), self.config
        if self.judge is None:
            if spec == "none":
                raise InputError("this run was not judged; name a judge with --judge")
            if terms.base_url is None:
                session = open_judge(spec, cache=None, concurrency=1, terms=terms)
                await _check_judge_address(self.run, session)
        async with open_needed_judge(
            spec,
            cache=self.cache,
            concurrency=self.concurrency,
            terms=terms,
            dry_run=dry_run,
        ) as session:
            yield session


def _judge_spec(run: Run) -> str:
    """How the run's judge is opened again: a judge of the user's own from its file."""
    manifest = manifest_of(run)
    return manifest.judging.spec or manifest.judge or "none"


async def _check_judge_address(run: Run, session: JudgeSession | None) -> None:
    """Raise InputError where the judge now has another address than in the run."""
    if session is None:
        return
    before, now = manifest_of(run).judge_identity, flatten_inputs(session.identity)
    await session.close()
    for name, address in before.items():
        if name.endswith("base_url") and now.get(name) != address:
            raise InputError(
                f"the run's judge was at {address}, and would now be at "
                f"{now.get(name, 'no address')}; give --base-url, or name the judge with --judge"
            )


def _identity_number(run: Run, name: str) -> float | None:
    """A number in the identity of the run's judge, such as its temperature."""
    identity = manifest_of(run).judge_identity
    for key in (name, f"dear.{name}"):
        try:
            value = json.loads(identity[key])
        except (KeyError, ValueError):
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None
