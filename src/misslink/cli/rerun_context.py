"""Reopen the judge and settings of an earlier run, and add results to its folder."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from misslink.documents import Manifest
    from misslink.judge.config import JudgeConfig
    from misslink.judge.session import JudgeSession
    from misslink.types import Link, Run


def config_as_in_run(run: Run, judge: str | None, **given: Any) -> JudgeConfig:
    """The judge settings in `given`, else those of the run; another judge has its own defaults."""
    from misslink.judge.backends.custom import is_custom_judge
    from misslink.judge.config import JudgeConfig

    judging = _manifest(run).judging
    defaults: dict[str, Any] = {"prompts": judging.prompts, "repeats": judging.repeats}
    if judge is None and not is_custom_judge(_judge_spec(run)):
        names = ("temperature", "max_tokens", "cascade_check")
        defaults |= {name: _identity_number(run, name) for name in names}
    settings = defaults | {name: value for name, value in given.items() if value is not None}
    return JudgeConfig(**{name: value for name, value in settings.items() if value is not None})


@asynccontextmanager
async def open_run_judge(
    run: Run, judge: str | None, terms: JudgeConfig, *, cache: Path | None, concurrency: int
) -> AsyncIterator[JudgeSession]:
    """Open the named judge, else the run's judge at the address that the run used.

    Passages are not sent to another address because an environment variable is missing.
    """
    from misslink.judge.session import open_judge, open_reachable_judge

    spec = judge or _judge_spec(run)
    if judge is None:
        if spec == "none":
            raise InputError("this run was not judged; name a judge with --judge")
        if terms.base_url is None:
            await _check_judge_address(
                run, open_judge(spec, cache=None, concurrency=1, terms=terms)
            )
    async with open_reachable_judge(
        spec, cache=cache, concurrency=concurrency, terms=terms
    ) as session:
        yield session


def _manifest(run: Run) -> Manifest:
    from misslink.documents import manifest_of

    return manifest_of(run)


def _judge_spec(run: Run) -> str:
    """How the run's judge is opened again: a judge of the user's own from its file."""
    manifest = _manifest(run)
    return manifest.judging.spec or manifest.judge or "none"


def save_to_run(
    folder: Path,
    run: Run,
    name: Literal["replay", "whatif", "calibration", "audit", "selftest"],
    document: Mapping[str, Any],
    links: Sequence[Link] | None = None,
) -> None:
    """Add a document, and changed links, to the folder of `run`, unless it holds another run now."""
    from misslink.cli.report import report_writers
    from misslink.io import add_to_run, read_run

    now = read_run(folder)
    if now.manifest != run.manifest:
        raise InputError(
            "the folder holds another run since this command started, so the result is not saved; "
            "repeat the command",
            path=folder,
        )
    fresh = now if links is None else now.model_copy(update={"links": tuple(links)})
    add_to_run(folder, fresh, name, document, report_writers(folder))


async def _check_judge_address(run: Run, session: JudgeSession | None) -> None:
    """Raise InputError where the judge now has another address than in the run."""
    from misslink.io.manifest import flatten_inputs

    if session is None:
        return
    before, now = _manifest(run).judge_identity, flatten_inputs(session.identity)
    await session.close()
    for name, address in before.items():
        if name.endswith("base_url") and now.get(name) != address:
            raise InputError(
                f"the run's judge was at {address}, and would now be at "
                f"{now.get(name, 'no address')}; give --base-url, or name the judge with --judge"
            )


def _identity_number(run: Run, name: str) -> float | None:
    """A number in the identity of the run's judge, such as its temperature."""
    identity = _manifest(run).judge_identity
    for key in (name, f"dear.{name}"):
        try:
            value = json.loads(identity[key])
        except (KeyError, ValueError):
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None
