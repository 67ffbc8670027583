"""What the links say: the headline, the 2 x 2 tables of misses and bad answers, the causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, estimate_in, mapping_in
from misslink.report.glossary import CAUSES, FAILURES
from misslink.report.overview import no_judge
from misslink.report.places import view
from misslink.report.wording import Shown, plural, shown
from misslink.types import Estimate, Run

__all__ = ["CauseRow", "Cross", "Headline", "causes", "crosses", "headline"]

_FEW = 30  # cases under which an interval is so wide that the headline says so


@dataclass(frozen=True)
class Headline:
    """The link in plain words: ``share`` is its number or "", ``words`` the rest of it.

    ``risks`` is what the sentence rests on and ``caution`` how far to take it, each short enough
    to stand beside it; ``paragraphs`` are both in full.
    """

    share: str
    interval: str
    words: str
    risks: str
    caution: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Cross:
    """A 2 x 2 table: miss or hit against a bad or a good answer, with the risks of each row."""

    bad: str
    good: str
    miss: tuple[int, int]
    hit: tuple[int, int]
    left_out: int
    risks: tuple[Shown, Shown]
    numbers: tuple[tuple[str, Shown], ...]


@dataclass(frozen=True)
class CauseRow:
    """A cause, how often it was the primary one, what it means, and the view of its cases."""

    key: str
    label: str
    count: int
    share: Shown
    meaning: str
    action: str
    failure: bool
    fragment: str


def headline(run: Run) -> Headline:
    """Say the link in one sentence, then what it rests on."""
    link = mapping_in(run.summary.get("link"))
    part = estimate_in(run.summary, "link", "attributable_fraction", why=_no_link(run))
    number = shown("attributable_fraction", part)
    short = _short_risks(link)
    if part.value is None:
        words = "Whether misses and unfaithful answers go together is not measured"
        why = f"The reason: {no_judge(run) or part.reason}."
        return Headline("", "", words, short or why, "", (why, *_risks(link)))
    said = (*_risks(link), *_hedges(part, link), *_wrong(link))
    caution = _caution(part)
    if part.value <= 0:
        words = "Unfaithful answers are no more frequent after a miss than after a hit"
        return Headline("", "", words, short, caution, said)
    words = "of unfaithful answers go with a retrieval miss"
    return Headline(number.value, number.interval, words, short, caution, said)


def crosses(run: Run) -> tuple[Cross, ...]:
    """The 2 x 2 table of unfaithful answers, and that of wrong ones where there is one."""
    link = mapping_in(run.summary.get("link"))
    wrong = mapping_in(link.get("wrong"))
    found = [
        _cross(link, "unfaithful", "faithful"),
        _cross(wrong, "wrong", "right"),
    ]
    return tuple(cross for cross in found if cross is not None)


def causes(run: Run) -> tuple[CauseRow, ...]:
    """Every cause that occurs, in the order of severity, with its share of all linked cases."""
    from misslink.stats import proportion  # scipy may come with it

    counts: Counter[str] = Counter(link.cause for link in run.links)
    total = counts.total()
    return tuple(
        CauseRow(
            key=key,
            label=words.label,
            count=counts[key],
            share=shown("share", proportion(counts[key], total)),
            meaning=words.meaning,
            action=words.action,
            failure=key in FAILURES,
            fragment=view(cause=key),
        )
        for key, words in CAUSES.items()
        if counts[key]
    )


def _risks(link: Mapping[str, JsonValue], bad: str = "unfaithful") -> tuple[str, ...]:
    miss = shown("risk", estimate_in(link, "risk_given_miss"))
    hit = shown("risk", estimate_in(link, "risk_given_hit"))
    if not (miss.measured and hit.measured):
        return ()
    said = (
        f"After a miss, when no needed passage reached the prompt, {miss.brief} of answers were "
        f"{bad} ({plural(miss.n, 'case')}); after a hit it was {hit.brief} "
        f"({plural(hit.n, 'case')})."
    )
    apart = shown("risk_difference", estimate_in(link, "risk_difference"))
    ratio = shown("risk_ratio", estimate_in(link, "risk_ratio"))
    if apart.measured:
        said += f" The difference is {apart.brief}"
        said += f", the ratio {ratio.brief}." if ratio.measured else "."
    return (said,)


def _short_risks(link: Mapping[str, JsonValue]) -> str:
    miss = shown("risk", estimate_in(link, "risk_given_miss"))
    hit = shown("risk", estimate_in(link, "risk_given_hit"))
    if not (miss.measured and hit.measured):
        return ""
    return (
        f"After a miss {miss.brief} of answers were unfaithful (n = {miss.n:,}), "
        f"after a hit {hit.brief} (n = {hit.n:,})."
    )


def _caution(part: Estimate) -> str:
    """The hedges in short, for the eye that reads one line."""
    said = "This is association, not cause."
    if _over_zero(part):
        said += " Its interval includes 0: no link is established."
    if part.n < _FEW:
        said += f" Only {plural(part.n, 'case')}: a hint."
    return said


def _over_zero(part: Estimate) -> bool:
    return part.low is not None and part.high is not None and part.low <= 0 <= part.high


def _hedges(part: Estimate, link: Mapping[str, JsonValue]) -> tuple[str, ...]:
    said = ["This is association, not cause: what is hard to retrieve can also be hard to answer."]
    if part.value is not None and part.value > 0:
        said.append(
            "The share is the part of unfaithful answers above what the rate after hits would "
            "give; it is what better retrieval could save at most if the link is causal."
        )
    else:
        brief = shown("attributable_fraction", part).brief
        said.append(
            f"The attributable share, {brief}, is not above 0: by these cases better retrieval "
            "would not make answers more faithful."
        )
    if _over_zero(part):
        said.append("The interval includes 0: these cases alone do not establish a link.")
    if part.n < _FEW:
        said.append(f"Only {plural(part.n, 'case')} could be used: take it as a hint.")
    if uncertain := count_in(mapping_in(link.get("corrected")), "uncertain"):
        more = plural(uncertain, "more case")
        said.append(f"Left out: {more} whose verdict is too uncertain by the judge's known error.")
    return (" ".join(said),)


def _wrong(link: Mapping[str, JsonValue]) -> tuple[str, ...]:
    wrong = mapping_in(link.get("wrong"))
    part = estimate_in(wrong, "attributable_fraction")
    brief = shown("attributable_fraction", part).brief
    if part.value is None:
        return ()
    if part.value > 0:
        return (f"Of answers that are wrong by the reference, {brief} go with a retrieval miss.",)
    said = "Answers that are wrong by the reference are no more frequent after a miss than after"
    return (f"{said} a hit (attributable share {brief}).",)


def _cross(link: Mapping[str, JsonValue], bad: str, good: str) -> Cross | None:
    table = mapping_in(link.get("table"))

    def count(row: str, column: str) -> int:
        value = table.get(f"{row}_{column}")
        return value if isinstance(value, int) else 0

    miss = (count("miss", bad), count("miss", good))
    hit = (count("hit", bad), count("hit", good))
    if not any(miss + hit):
        return None
    left_out = table.get("left_out")
    names = (
        ("Attributable share", "attributable_fraction"),
        ("Risk difference", "risk_difference"),
        ("Risk ratio", "risk_ratio"),
    )
    return Cross(
        bad=bad.capitalize(),
        good=good.capitalize(),
        miss=miss,
        hit=hit,
        left_out=left_out if isinstance(left_out, int) else 0,
        risks=(
            shown("risk", estimate_in(link, "risk_given_miss")),
            shown("risk", estimate_in(link, "risk_given_hit")),
        ),
        numbers=tuple((label, shown(key, estimate_in(link, key))) for label, key in names),
    )


def _no_link(run: Run) -> str:
    return no_judge(run) or "this run holds no links"
