"""The cases that a page tells in full, with what it says of those that it does not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from misslink.report.cases import CaseEntry, case_entries
from misslink.report.command import Command, one_case
from misslink.report.documents import list_in, text_in
from misslink.report.facets import counted
from misslink.report.worst import RULE, cutoff, how_many, of_each
from misslink.types import Run

__all__ = ["CaseList", "case_list"]


@dataclass(frozen=True)
class CaseList:
    """The cases in full, the worst first, and what the list needs to know beside them.

    ``total`` is how many the run has, of which ``entries`` are the worst; ``ids`` are those of all,
    by number from 1, and ``failed`` how many are to be looked at. Where not all are here ``counts``
    are those of all cases by filter and value, and ``table`` is the address of the file that holds
    them, seen from the page ("": there is none).
    """

    entries: tuple[CaseEntry, ...]
    total: int
    failed: int
    ids: tuple[str, ...]
    counts: Mapping[str, Mapping[str, int]]
    table: str
    lower_is_better: tuple[str, ...]
    command: Command

    @property
    def partial(self) -> bool:
        """Whether the run has more cases than are here."""
        return len(self.entries) < self.total

    @property
    def rule(self) -> str:
        """What the worst are, in words."""
        each = of_each(len(self.entries))
        return f"{RULE}. Of each cause the worst {each:,} are here in any case" if each else RULE

    @property
    def table_name(self) -> str:
        """What the file is called."""
        return unquote(self.table, errors="replace")


def case_list(run: Run, *, most: int | None = None, table: str = "") -> CaseList:
    """Collect the cases of `run`; one without cases has none.

    Parameters
    ----------
    run : Run
    most : int or None
        How many of them, the worst, 0 or more. None: as `misslink.report.worst` has it.
    table : str
        The name of the file with all cases beside the page; "" where there is none.
    """
    lower = list_in(run.summary.get("lower_is_better"))
    total = len(run.cases)
    most = how_many(total) if most is None else most
    return CaseList(
        entries=case_entries(run, cutoff(run), most),
        total=total,
        failed=_failed(run),
        ids=tuple(case.id for case in run.cases),
        counts=counted(run) if most < total else {},
        table=quote(os.fsencode(table), safe=""),
        lower_is_better=tuple(name for name in lower if isinstance(name, str)),
        command=one_case(run.manifest, text_in(run.summary, "run")),
    )


def _failed(run: Run) -> int:
    """How many cases are to be looked at: those that a link speaks of, and does not call fine."""
    known = {case.id for case in run.cases}
    causes = {link.case_id: link.cause for link in run.links if link.case_id in known}
    return sum(cause != "fine" for cause in causes.values())
