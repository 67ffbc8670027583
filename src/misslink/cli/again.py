"""What commands on a run share: the run's own judge on the run's own terms, and putting in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from misslink.judging.opening import Opened
    from misslink.judging.terms import Terms
    from misslink.types import Link, Run

__all__ = ["judge_as_in_run", "put_into_run", "terms_as_in_run"]

_OF_ITS_JUDGE = ("temperature", "max_tokens")


def terms_as_in_run(run: Run, judge: str | None, **given: Any) -> Terms:
    """Return the terms that are given, and where nothing is said those of the run.

    Parameters
    ----------
    run : Run
    judge : str or None
        Another judge than the run's, whose temperature and longest reply are its own.
    given
        As of `misslink.judging.terms.Terms`; None: nothing is said.
    """
    from misslink.judging.models.own import is_own
    from misslink.judging.terms import Terms

    judged = run.manifest.get("judging")
    of_run = dict(judged) if isinstance(judged, Mapping) else {}
    known = {name: of_run.get(name) for name in ("prompts", "repeats")}
    if judge is None and not is_own(str(run.manifest.get("judge"))):
        known |= {name: _number(run, name) for name in (*_OF_ITS_JUDGE, "audit")}
    said = {name: value for name, value in given.items() if value is not None}
    return Terms(**{name: value for name, value in known.items() if value is not None} | said)


@asynccontextmanager
async def judge_as_in_run(
    run: Run, judge: str | None, terms: Terms, *, ledger: Path | None, concurrency: int
) -> AsyncIterator[Opened]:
    """Open the judge that is named, or else the run's, where the run asked it; close it in the end.

    Raises
    ------
    InputError
        The run was not judged and none is named, or its judge would be asked at another address
        than the run's: passages are not sent to somebody else because a variable is not set.
    JudgeUnreachableError
        Nobody answers, or the key is refused.
    """
    from misslink.judging.opening import open_judge, ready_judge

    spec = judge or str(run.manifest.get("judge") or "none")
    if judge is None:
        if spec == "none":
            raise InputError("this run was not judged; name a judge with --judge")
        if terms.base_url is None:
            await _see_its_address(run, open_judge(spec, ledger=None, concurrency=1, terms=terms))
    async with ready_judge(spec, ledger=ledger, concurrency=concurrency, terms=terms) as opened:
        yield opened


def put_into_run(
    folder: Path,
    run: Run,
    name: Literal["replay", "whatif", "calibration", "audit"],
    document: Mapping[str, Any],
    links: Sequence[Link] | None = None,
) -> None:
    """Put a document into a run folder, beside what other commands put there meanwhile.

    Parameters
    ----------
    folder : Path
    run : Run
        As it was read when the work began.
    name : {'replay', 'whatif', 'calibration', 'audit'}
    document : mapping
    links : sequence of Link or None
        In place of the run's.

    Raises
    ------
    InputError
        Meanwhile the folder came to hold another run, or it cannot be written.
    """
    from misslink.cli.report import reports_of
    from misslink.files import add_to_run, read_run

    now = read_run(folder)
    if now.manifest != run.manifest:
        raise InputError(
            "the app was evaluated anew while this was under way, so its result belongs to no run; "
            "repeat the command",
            path=folder,
        )
    fresh = now if links is None else now.model_copy(update={"links": tuple(links)})
    add_to_run(folder, fresh, name, document, reports_of(folder))


async def _see_its_address(run: Run, opened: Opened | None) -> None:
    """Raise where the judge stands at another address than in the run; nobody is asked."""
    from misslink.linking.replay import identity_of_run
    from misslink.manifest import by_name

    if opened is None:
        return
    before, now = identity_of_run(run), by_name(opened.identity)
    await opened.close()
    for name, address in before.items():
        if name.endswith("base_url") and now.get(name) != address:
            raise InputError(
                f"the run's judge was asked at {address}, and would now be asked at "
                f"{now.get(name, 'no address')}; give --base-url, or name the judge with --judge"
            )


def _number(run: Run, name: str) -> float | None:
    """A number that the identity of the run's judge holds; None where it does not."""
    from misslink.linking.replay import identity_of_run

    known = identity_of_run(run)
    for key in (name, f"dear.{name}"):
        try:
            value = json.loads(known[key])
        except (KeyError, ValueError):
            continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None
