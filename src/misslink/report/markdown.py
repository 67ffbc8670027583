"""A run as GitHub-flavoured markdown, for a wiki or a pull request: the page's story in short.

It says nothing that the page does not; of long tables it shows the worst rows and says how many
are left out. Links lead into ``report.html`` where that stands beside the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from misslink.files.markdown import code, in_line, inline, table
from misslink.files.whole import put
from misslink.registry import exporters
from misslink.report import places
from misslink.report.case_list import CaseList
from misslink.report.cases import CaseEntry
from misslink.report.glossary import ANSWERS, CAUSES, RETRIEVALS
from misslink.report.next import Step
from misslink.report.page import Page, build
from misslink.report.people_markdown import of_the_judge, shares_by_people
from misslink.report.whatif import Change
from misslink.report.wording import MISSING, in_short, plural
from misslink.types import Run

__all__ = ["render", "write"]

_PAGE = "report.html"
_CASES = 10  # worst ones that are shown
_IDS = 5  # cases that are named behind a step
_GROUPS = 5  # of one category or tag
_DIMENSIONS = 8
_NAME = 60  # characters of an id or of a group
_QUESTION = 160
_REASON = 240
_CODE = re.compile(r"`([^`]+)`")
_UNTOUCHED = frozenset({"", "fine"})  # causes that ask for nothing


@exporters.register("markdown")
def write(run: Run, path: Path) -> Path:
    """Write the report of `run` as markdown, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    page = _PAGE if (path.parent / _PAGE).is_file() else ""
    return put(render(build(run, cases=_CASES), page_at=page), path)


def render(page: Page, *, page_at: str = "") -> str:
    """Turn `page` into markdown.

    Parameters
    ----------
    page : Page
    page_at : str
        Where the HTML page stands, seen from the markdown. "": nothing is linked.

    Returns
    -------
    str
        Every text escaped, ending in a line break.
    """
    parts = [
        f"# {inline(in_short(page.title, _QUESTION))}",
        " · ".join(f"{inline(label)}: **{inline(text)}**" for label, text in page.facts),
        _badge(page),
        *_headline(page),
        _numbers(page),
        shares_by_people(page),
        _steps(page, page_at),
        _causes(page, page_at),
        _whatif(page),
        _misses(page),
        *_slices(page),
        _worst(page.cases, page_at),
        of_the_judge(page),
        _again(page, page_at),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _badge(page: Page) -> str:
    mark = "⚠️ " if page.badge.warns else ""
    note = f": {inline(page.badge.note)}" if page.badge.note else ""
    return f"> {mark}**{inline(page.badge.text)}**{note}"


def _headline(page: Page) -> Iterator[str]:
    said = page.headline
    if said.share:
        number = inline(f"{said.share} {said.interval}".rstrip())
        yield f"**{number}** {inline(said.words)} (n = {said.n:,})."
    else:
        yield f"**{inline(said.words)}.**"
    yield from map(inline, said.paragraphs)
    if page.proven.corrected and page.proven.corrected.brief:
        yield inline(page.proven.corrected.brief)
    if page.proof:
        yield inline(" ".join(page.proof.sentences))


def _numbers(page: Page) -> str:
    rows = [
        (inline(one.level), code(one.shown.name), inline(one.shown.text), inline(one.question))
        for one in page.numbers
    ]
    warnings = [f"\n{inline(level.warning)}\n" for level in page.levels if level.warning]
    return "".join([table(("Level", "Metric", "Value [95 %]", "What it is"), rows), *warnings])


def _steps(page: Page, at: str) -> str:
    ids = page.cases.ids
    lines = [
        f"{place}. **{_with_code(step.action)}** {_with_code(step.why)}{_behind(step, ids, at)}"
        for place, step in enumerate(page.steps, 1)
    ]
    return "\n".join(["## What to do next", "", *(lines or [inline(page.nothing)])])


def _behind(step: Step, ids: Sequence[str], page: str) -> str:
    """The cases of a step: as a link where there is a page, else by name."""
    if not step.cases:
        return ""
    if page:
        return f" {_link(plural(len(step.cases), 'case'), page, step.fragment)}"
    named = [code(in_short(ids[number - 1], _NAME)) for number in step.cases[:_IDS]]
    left = len(step.cases) - len(named)
    more = f" and {left:,} more" if left else ""
    return f" Cases: {', '.join(named)}{more}."


def _causes(page: Page, at: str) -> str:
    rows = [
        (
            _link(row.label, at, row.fragment),
            str(row.count),
            inline(row.share.text),
            _with_code(row.action if row.failure else row.meaning),
        )
        for row in page.causes
    ]
    return _section("Causes", table(("Cause", "Cases", "Share [95 %]", "What to do"), rows, (1,)))


def _whatif(page: Page) -> str:
    found = page.proven.whatif
    if found is None:
        return ""
    rows = [
        (
            inline(in_short(option.name, _NAME)),
            inline(option.main.option.text) if option.main else MISSING,
            inline(option.main.difference.text) if option.main else "",
            inline(_verdict(option.main)) if option.main else "",
            inline(option.avoided.text),
        )
        for option in found.options
    ]
    today = next((option.main.today.text for option in found.options if option.main), MISSING)
    header = ("Retrieval", code(found.metric), "Against today", "Verdict", "Unfaithful avoided")
    said = f"{inline(found.facts)} Today {code(found.metric)} is {inline(today)}."
    return _section("What other retrieval would bring", f"{said}\n\n{table(header, rows)}")


def _verdict(change: Change) -> str:
    return ", ".join(filter(None, (change.verdict, change.p, change.at)))


def _misses(page: Page) -> str:
    rows = [
        (inline(row.label), str(row.count), inline(row.share.text), _with_code(row.advice))
        for row in page.proven.misses
    ]
    header = ("The passage is", "Missed", "Share [95 %]", "What to do")
    return _section("Why passages were missed", table(header, rows, (1,)))


def _slices(page: Page) -> Iterator[str]:
    """The worst groups of each category and tag."""
    for place, found in enumerate(page.slices[:_DIMENSIONS]):
        rows = [
            (
                inline(in_short(group.name, _NAME)),
                f"{group.n}{' (few)' if group.small else ''}",
                *(inline(shown.text) for shown in group.metrics),
            )
            for group in found.groups[:_GROUPS]
        ]
        header = (
            inline(in_short(found.dimension, _NAME)),
            "Cases",
            *(code(name) for name in found.metrics),
        )
        left = len(found.groups) - len(rows)
        more = f"\nLeft out, better or of few cases: {plural(left, 'group')}.\n" if left else ""
        body = f"{table(header, rows, (1,))}{more}"
        yield body if place else _section("Groups of cases, the worst first", body)
    if (left := len(page.slices) - _DIMENSIONS) > 0:
        yield f"Left out: {plural(left, 'more tag')}."


def _worst(cases: CaseList, page: str) -> str:
    # The worst stand first, so that no other is among them while there are more of these.
    failed = [entry for entry in cases.entries if entry.cause not in _UNTOUCHED]
    rows = [
        (
            _link(str(entry.number), page, places.case(entry.number)),
            _named(entry),
            inline(in_short(entry.question, _QUESTION)),
            inline(CAUSES[entry.cause].label),
            inline(_outcome(entry)),
            inline(in_short(entry.reason, _REASON)),
        )
        for entry in failed[:_CASES]
    ]
    header = ("No.", "Case", "Question", "Cause", "Outcome", "Why")
    left = cases.failed - len(rows)
    more = f"\nLeft out: {plural(left, 'more case')} to look at.\n" if left else ""
    return _section("The worst cases", f"{table(header, rows, (0,))}{more}" if rows else "")


def _named(entry: CaseEntry) -> str:
    tier = f" tier {inline(in_short(entry.tier, _NAME))}" if entry.tier else ""
    return f"{code(in_short(entry.id, _NAME))}{tier}"


def _outcome(entry: CaseEntry) -> str:
    """The outcomes in one line, such as "miss, unfaithful, wrong"."""
    words = [RETRIEVALS.get(entry.retrieval, ""), ANSWERS.get(entry.answered, "")]
    words.append({"yes": "correct", "no": "wrong"}.get(entry.correct, ""))
    return ", ".join(filter(None, words)).lower()


def _again(page: Page, at: str) -> str:
    whole = f"Everything is in the {_link('whole report', at, '')}. " if at else ""
    command = f"Repeat it: {code(page.command)}" if page.command else ""
    return f"---\n\n{whole}{command}" if whole or command else ""


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _link(text: str, page: str, fragment: str) -> str:
    """A text of this package, linked into the page where there is one."""
    if not page:
        return inline(text)
    return f"[{inline(text)}]({page}{'#' if fragment else ''}{fragment})"


def _with_code(text: str) -> str:
    """A sentence whose commands stand between backticks."""
    parts = _CODE.split(in_line(text))  # every other one is code
    written = (code(part) if place % 2 else _between(part) for place, part in enumerate(parts))
    return "".join(written)


def _between(part: str) -> str:
    """A part of a line, with the blanks at its ends."""
    before = " " * (part[:1] == " ")
    after = " " * (part[-1:] == " " and bool(part.strip()))
    return f"{before}{inline(part)}{after}"
