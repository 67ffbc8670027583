"""What people say of the judge, as markdown: corrected shares, what is tied, what moved it."""

from __future__ import annotations

from collections.abc import Iterator

from misslink.files.markdown import code, inline, table
from misslink.report.page import Page
from misslink.report.trust import Trust
from misslink.report.wording import in_short, plural

__all__ = ["of_the_judge", "shares_by_people"]

_NAME = 60
_REASON = 240
_MOST = 3  # reasons of a verdict
_ROWS = 10  # of the audits


def shares_by_people(page: Page) -> str:
    """Return every share that human labels correct, both versions; "" where nobody labelled.

    Parameters
    ----------
    page : Page
    """
    measured = [metric.truth for level in page.levels for metric in level.metrics]
    found = {one.name: one for one in (*(n.truth for n in page.numbers), *measured) if one}
    rows = [
        (
            inline(in_short(one.of, _NAME)),
            inline(one.judged.text),
            inline(one.corrected.text),
            inline(" ".join(filter(None, (one.how, one.hint)))),
        )
        for one in found.values()
    ]
    if not rows:
        return ""
    return table(("Share of", "By the judge", "As people would find", "How"), rows)


def of_the_judge(page: Page) -> str:
    """Return what people say of the judge, and what moved it; "" where nothing is known.

    Parameters
    ----------
    page : Page
    """
    said = "\n".join(line for one in page.trusts for line in _held(one))
    parts = [part for part in (said, _audits(page)) if part]
    return "\n\n".join(["## Can the judge be trusted?", *parts]) if parts else ""


def _held(trust: Trust) -> Iterator[str]:
    """The verdict on one metric with its reasons, and what people do not agree on."""
    if not trust.measured:
        return
    metric = inline(trust.metric or "the judge")
    verdict = f"**{inline(trust.verdict)}**. " if trust.verdict else ""
    told = " ".join(inline(in_short(one, _REASON)) for one in (trust.facts, *trust.reasons[:_MOST]))
    yield f"- {metric}: {verdict}{told}"
    if trust.settling:
        parts = trust.settling.says.split("`")  # every other one is a command
        yield f"- {metric}: {''.join(code(p) if i % 2 else p for i, p in enumerate(parts))}"


def _audits(page: Page) -> str:
    if page.audits is None or not page.audits.rows:
        return ""
    rows = [
        (
            inline(one.change),
            code(one.metric),
            inline(one.flipped.text),
            inline(one.shift.brief if one.shift else ""),
            inline(in_short(one.finding, 240)),
        )
        for one in page.audits.rows[:_ROWS]
    ]
    header = ("Changed", "Metric", "Verdicts that turned", "Score moved by", "Finding")
    left = len(page.audits.rows) - len(rows)
    more = f"\nLeft out: {plural(left, 'more row')}.\n" if left else ""
    return f"{inline(page.audits.facts)}\n\n{table(header, rows)}{more}"
