"""Builds the report page from a run, and writes it as HTML or markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import TypeVar
from weakref import proxy

from misslink.calibration.labelled_failures import apply_labels
from misslink.documents import cutoff_of, manifest_of, summary_of
from misslink.errors import InputError
from misslink.failure_modes import FAILURE_MODES
from misslink.garbage_collection import reduced_gc
from misslink.io.atomic import atomic_write
from misslink.parts import light_items
from misslink.registry import exporters
from misslink.render.headline import describe_association, describe_errors, describe_verdict
from misslink.render.html import read_assets, render_markdown_template, render_template
from misslink.report import association, charts, diagnosis, judge_trust, overview
from misslink.report.cases import page_size
from misslink.report.explorer import CaseList, build_blocks, build_case_list
from misslink.report.failure_threads import rank_documents, read_threads
from misslink.report.findings import find
from misslink.report.glossary import ANSWERS, RETRIEVALS, metric_words, term_words
from misslink.report.need_path import read_need_path
from misslink.report.selftest import read_selftest
from misslink.report.summary import (
    FirstScreen,
    failure_mode_rows,
    inferred_note,
    next_steps,
    no_steps_reason,
    read_first_screen,
)
from misslink.types import Run

CASE_TABLE = "cases.parquet"  # the table of all cases in a run folder
TEMPLATES = Path(__file__).resolve().parent / "templates"
_STYLES = ("report.css", "run.css", "explorer.css", "selftest.css")
_SCRIPTS = (
    *("report.js", "address.js", "data.js", "elsewhere.js", "answer.js", "case.js"),
    *("pane.js", "list.js", "filters.js", "export.js", "explorer.js"),
)


@exporters.register("html", file="report.html")
def write_html(run: Run, path: Path) -> Path:
    """Write the report of `run` as one HTML file, completely or not at all.

    The page of a large run holds its worst cases, and a table of all cases is written beside it;
    see `case_table_path` and `misslink.report.cases`.

    Parameters
    ----------
    run : Run
        One without cases, verdicts or links gives a page that says so.
    path : Path
        Its folder is created; an existing file is replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        The page or the table cannot be written, or the table would replace another kind of file.
    """
    if page_size(len(run.cases)) == len(run.cases):
        return write_page(run, path)
    from misslink.report.case_table import check_overwritable, write_parquet  # imports pyarrow

    if path.is_dir():
        raise InputError("this is a folder; give another path", path=path)
    table = case_table_path(path)
    check_overwritable(table)
    write_parquet(run, table)  # first, so that the page never links to a missing file
    return write_page(run, path, table.name)


def write_page(run: Run, path: Path, table: str = "") -> Path:
    """Write only the page of `run`; `table` is the name of the file with all cases beside it."""
    with reduced_gc():  # 10,000 cases are millions of small objects, and none is garbage
        return atomic_write(render_page(build_page(run, table=table)), path)


def case_table_path(page: Path) -> Path:
    """Return the path of the table of all cases of a page that does not hold them all.

    Examples
    --------
    >>> case_table_path(Path("runs/a/report.html")).name, case_table_path(Path("mine.html")).name
    ('cases.parquet', 'mine.parquet')
    """
    if page.name == "report.html":
        return page.with_name(CASE_TABLE)
    if page.suffix.casefold() == ".parquet":  # the page itself has this name
        return page.with_name(f"{page.name}.parquet")
    return page.with_suffix(".parquet")


def render_page(page: ReportPage) -> str:
    """Render `page` as HTML: every text escaped, only the page's own style and script allowed."""
    listed, *bodies = build_blocks(page.cases) if page.cases.entries else (None,)
    # In a block, so that the scripts share their declarations and add no globals.
    script = f'"use strict";\n{{\n{read_assets(TEMPLATES, *_SCRIPTS)}}}\n'
    style = read_assets(TEMPLATES, *_STYLES)
    return render_template(
        TEMPLATES / "report.jinja",
        proxy(page),  # the template's macros stay until garbage is collected: the cases need not
        style=style,
        script=script,
        listed=listed,
        bodies=bodies,
        terms=term_words,
        words=metric_words,
    )


_NOT_RECORDED = "not recorded"


def _manifest_rows(run: Run) -> tuple[tuple[str, str], ...]:
    """What is needed to repeat the run, as rows of a label and a text."""
    manifest = manifest_of(run)
    depths = [trace.depth for trace in light_items(run.traces) if trace.depth is not None]
    rows = {
        "App": manifest.app,
        "Traces": manifest.traces,
        "Gold set": manifest.goldset or _NOT_RECORDED,
        "Judge": manifest.judge or _NOT_RECORDED,
        "Cutoff k": manifest.k or _NOT_RECORDED,
        "Only these cases": manifest.inputs.get("cases"),
        "Depth of the deeper search": max(depths, default=None),
        "Seed": _NOT_RECORDED if manifest.seed is None else manifest.seed,
        "Created": manifest.created or _NOT_RECORDED,
        "misslink": manifest.misslink or _NOT_RECORDED,
    }
    for prompt in manifest.prompts:
        rows[f"Prompt {prompt.name}, version {prompt.version}"] = f"sha256 {prompt.sha256}"
    rows["Versions"] = ", ".join(
        f"{name} {version or _NOT_RECORDED}" for name, version in manifest.versions.items()
    )
    return tuple((label, str(text)) for label, text in rows.items() if text not in (None, ""))


_T = TypeVar("_T")


def _section(read: Callable[[Run], _T]) -> cached_property[_T]:
    """A part of the page that is read from the run alone, when a template first asks for it."""
    return cached_property(lambda page: read(page.run))


@dataclass(frozen=True)
class ReportPage:
    """All of the report; a part that was not measured is empty or None. Texts are not escaped."""

    run: Run
    title: str
    facts: tuple[tuple[str, str], ...]
    errors: str
    verdict: str
    good: bool
    evidence: str
    first: FirstScreen
    cases: CaseList

    judge = _section(judge_trust.describe_judge)
    judged_by = _section(judge_trust.judge_line)
    steps = _section(next_steps)
    no_steps = _section(no_steps_reason)
    failures = _section(failure_mode_rows)
    threads = _section(read_threads)
    culprits = _section(rank_documents)
    inferred = _section(inferred_note)
    misses = _section(diagnosis.miss_type_rows)
    whatif = _section(diagnosis.read_whatif)
    checks = _section(diagnosis.read_checklist)
    missing_labels = _section(diagnosis.read_missing_labels)
    curves = _section(lambda run: charts.draw_cutoff_curves(run, cutoff_of(run)))
    map = _section(charts.draw_scatter)
    flow = _section(lambda run: charts.draw_sankey(run.outcomes))
    trusts = _section(judge_trust.read_judge_trust)
    selftest = _section(read_selftest)
    audits = _section(judge_trust.read_audit)
    judging = _section(judge_trust.describe_judging)
    repeats = _section(judge_trust.repeat_rows)
    adjusted = _section(association.adjust_associations)
    corrected = _section(association.correct_association)
    crosses = _section(association.contingency_tables)
    replay = _section(association.read_replay)
    levels = _section(overview.metric_levels)
    lines = _section(overview.level_lines)
    reliability = _section(overview.describe_reliability)
    slices = _section(overview.group_tables)
    used = _section(overview.read_usage)
    path = _section(read_need_path)
    manifest = _section(_manifest_rows)
    command = _section(lambda run: manifest_of(run).command)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings that stand nowhere else."""
        known = {"judge", "labels", "inferred"}
        warnings = summary_of(self.run).warnings
        return tuple(warning.message for warning in warnings if warning.code not in known)

    @property
    def verdict_parts(self) -> list[str]:
        """The verdict, cut around its first count or share."""
        return re.split(r"(?<![\d,])([\d,]+ of [\d,]+|[<>]?\d+%)", self.verdict, maxsplit=1)


def build_page(run: Run, *, cases: int | None = None, table: str = "") -> ReportPage:
    """Collect everything the report shows about `run`, without model calls.

    Parameters
    ----------
    run : Run
        Any run, also one without cases, verdicts or links.
    cases : int or None
        Number of worst cases to show in full, 0 or more. None: the default of
        `misslink.report.cases`. All other parts of the report cover every case.
    table : str
        Name of the file with all cases beside the page; "" without one.
    """
    findings, manifest = find(run), manifest_of(run)
    verdict, run = describe_verdict(findings), apply_labels(run)
    goldset = PurePath(manifest.goldset or "").name
    goldset = "" if goldset == "the gold set" else goldset  # cases that were given in Python
    title = manifest.app or PurePath(manifest.traces or "").name
    title = title or (f"Answers to {goldset}" if goldset else "A RAG app")
    date = ("Date", manifest.created.partition("T")[0] or _NOT_RECORDED)
    return ReportPage(
        run=run,
        title=title,
        facts=(*((("Gold set", goldset),) if goldset not in title else ()), date),
        errors=describe_errors(findings),
        verdict=verdict,
        good=findings.judged and findings.does_well,
        evidence=describe_association(findings),
        first=read_first_screen(run, findings),
        cases=build_case_list(run, most=cases, table=table),
    )


_TEMPLATE = Path(__file__).resolve().parent / "templates" / "report.md.jinja"
_PAGE_FILE = "report.html"
_MAX_CASES = 10  # worst ones that are shown


@exporters.register("markdown", file="report.md")
def write_markdown(run: Run, path: Path) -> Path:
    """Write the report of `run` as markdown, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    page = _PAGE_FILE if (path.parent / _PAGE_FILE).is_file() else ""
    return atomic_write(render_markdown(build_page(run, cases=_MAX_CASES), page_at=page), path)


def render_markdown(page: ReportPage, *, page_at: str = "") -> str:
    """Turn `page` into markdown.

    Parameters
    ----------
    page : ReportPage
    page_at : str
        Where the HTML page stands, seen from the markdown. "": nothing is linked.

    Returns
    -------
    str
        Every text escaped, ending in a line break.
    """
    return render_markdown_template(
        _TEMPLATE,
        page=page,
        page_at=page_at,
        retrievals=RETRIEVALS,
        answers=ANSWERS,
        modes=FAILURE_MODES,
    )
