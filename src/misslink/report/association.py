"""What the links say: the headline, and the causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.crosses import ROWS
from misslink.report.documents import count_in, estimate_in, mapping_in
from misslink.report.glossary import CAUSES, FAILURES
from misslink.report.overview import no_judge
from misslink.report.places import case, view
from misslink.report.wording import Shown, plural, shown
from misslink.report.worst import worst_first
from misslink.types import Estimate, Run

__all__ = ["CauseRow", "Headline", "causes", "headline"]

_FEW = 30  # bad answers under which an interval is so wide that the headline says so
_TO_FIND = "questions with a passage to find"


@dataclass(frozen=True)
class Headline:
    """The link in plain words: ``share`` is its number or "", ``words`` the rest of it.

    ``risks`` is what the sentence rests on and ``caution`` how far to take it, each short enough
    to stand beside it; ``paragraphs`` are both in full. ``fragment`` is the view of the unfaithful
    answers after a miss, the worst of them open; "" where there is none. ``n`` is how many cases
    the share rests on, 0 without a share.
    """

    share: str
    interval: str
    words: str
    risks: str
    caution: str
    paragraphs: tuple[str, ...]
    fragment: str = ""
    n: int = 0


@dataclass(frozen=True)
class _Unfaithful:
    """The unfaithful answers: how many the share is of, and how many it passes over.

    ``no_need`` are answers to questions without a passage to find, ``unseen`` those whose
    retrieval was not seen. ``known``: whether the run counted its table.
    """

    known: bool
    after_miss: int
    after_hit: int
    no_need: int
    unseen: int

    @property
    def total(self) -> int:
        return self.after_miss + self.after_hit

    @property
    def few(self) -> bool:
        return 0 < self.total < _FEW

    @property
    def counted(self) -> str:
        """Numerator and denominator; not the quotient of the two where hits went wrong as well."""
        if not self.total:
            return ""
        beyond = "; the share counts those beyond the rate after hits" if self.after_hit else ""
        return f"{self.after_miss:,} of {self.total:,} came after a miss{beyond}."

    @property
    def left_out(self) -> str:
        parts = [
            f"{count:,} {why}"
            for count, why in (
                (self.no_need, "with no passage to find"),
                (self.unseen, "whose retrieval was not seen"),
            )
            if count
        ]
        return f"Unfaithful answers left out: {', '.join(parts)}." if parts else ""


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
    bad = _unfaithful(run, link)
    if part.value is None:
        words = "Whether misses and unfaithful answers go together is not measured"
        why = f"The reason: {no_judge(run) or part.reason}."
        short = _together(_short_risks(link) or why, bad.left_out)
        return Headline("", "", words, short, "", (_together(why, bad.left_out), *_risks(link)))
    goes = part.value > 0
    short = _together(bad.counted if goes and bad.few else "", _short_risks(link), bad.left_out)
    rests = _together(bad.counted if goes else "", *_risks(link), bad.left_out)
    said = (*filter(None, [rests]), *_hedges(part, link, bad), *_wrong(link))
    caution = _caution(part, bad)
    if not goes:
        words = "Unfaithful answers are no more frequent after a miss than after a hit"
        return Headline("", "", words, short, caution, said)
    of = f" to {_TO_FIND}" if bad.left_out else ""
    words = f"of unfaithful answers{of} go with a retrieval miss"
    return Headline(
        number.value, number.interval, words, short, caution, said, _misses(run), number.n
    )


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


def _unfaithful(run: Run, link: Mapping[str, JsonValue]) -> _Unfaithful:
    table = mapping_in(link.get("table"))
    others = Counter(
        one.retrieval
        for one in run.links
        if one.answer == "unfaithful" and one.retrieval not in ROWS
    )
    return _Unfaithful(
        known=bool(table),
        after_miss=count_in(table, "miss_unfaithful"),
        after_hit=count_in(table, "hit_unfaithful"),
        no_need=others["none_needed"],
        unseen=others["unknown"],
    )


def _misses(run: Run) -> str:
    """The view of what the share counts, with its first case open."""
    bad = {
        one.case_id for one in run.links if one.retrieval == "miss" and one.answer == "unfaithful"
    }
    first = next((one for one in worst_first(run) if run.cases[one - 1].id in bad), None)
    if first is None:
        return ""
    return f"{view(retrieval='miss', answer='unfaithful')}&{case(first)}"


def _together(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


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


def _caution(part: Estimate, bad: _Unfaithful) -> str:
    """The hedges in short, for the eye that reads one line."""
    said = "This is association, not cause."
    if _over_zero(part):
        said += " Its interval includes 0: no link is established."
    if few := _few(part, bad):
        said += f" Only {few}: a hint."
    return said


def _few(part: Estimate, bad: _Unfaithful) -> str:
    """What there are few of: the answers that the share is of, else (no table) the cases."""
    if bad.known:
        return plural(bad.total, "unfaithful answer") if bad.total < _FEW else ""
    return plural(part.n, "case") if part.n < _FEW else ""


def _over_zero(part: Estimate) -> bool:
    return part.low is not None and part.high is not None and part.low <= 0 <= part.high


def _hedges(part: Estimate, link: Mapping[str, JsonValue], bad: _Unfaithful) -> tuple[str, ...]:
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
    if few := _few(part, bad):
        said.append(f"Only {few} could be used: take it as a hint.")
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
        said = f"Of answers to {_TO_FIND} that are wrong by the reference, {brief}"
        return (f"{said} go with a retrieval miss.",)
    said = "Answers that are wrong by the reference are no more frequent after a miss than after"
    return (f"{said} a hit (attributable share {brief}).",)


def _no_link(run: Run) -> str:
    return no_judge(run) or "this run holds no links"
