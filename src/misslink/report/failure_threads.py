"""What failed cases share that passed ones do not, and the documents behind failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from misslink.failure_modes import FAILURE_MODES
from misslink.parts import by_case, select_items
from misslink.report.links import number_cases, view_fragment
from misslink.retrieval.matching import document_of
from misslink.stats.association import fisher_greater
from misslink.stats.paired_tests import benjamini_hochberg
from misslink.types import Case, Outcome, Passage, Run, Trace

Trait = tuple[str, str]  # a kind, such as document, and a value

FALSE_SHARE = 0.05  # bound on the expected share of false groups among those shown
_MIN_FAILED = 3
_SAME_SHARE = 0.8  # of the failed cases of two groups: then they are one, with the clearest first
_SHOWN_DOCUMENTS = 10
_HARM = {
    "conflicting_sources": "stale or conflicting",
    "gold_suspect": "contradiction",
    "distracted": "distraction",
}
_SECTION_FIELDS = ("section", "heading", "header", "Header 1", "Header 2", "Header 3")
_DATE_FIELDS = ("date", "updated", "modified", "last_modified", "created", "published")
_DATE = re.compile(r"(?:19|20)\d\d(?:-\d\d){0,2}")
_DIGIT = re.compile(r"\d")
_TABLE_ROW = re.compile(r"^\s*\|.*\|.*\|", re.MULTILINE)
_QUESTION_WORDS = frozenset(
    [
        *("who", "what", "when", "where", "which", "why", "how", "is", "are", "was", "were"),
        *("do", "does", "did", "can", "could", "should", "will"),
    ]
)
_LONG_QUESTION = 15  # words


@dataclass(frozen=True)
class FailureThread:
    """A trait that failed cases have more often than passed ones.

    ``p`` is of Fisher's exact test, one-sided; ``q`` bounds the share of false groups among all
    with a `q` as small (Benjamini and Hochberg over all candidates). ``cases`` are the numbers of
    the failed ones, ``also`` other traits of the same cases.
    """

    kind: str
    value: str
    failed: int
    n: int
    failed_elsewhere: int
    n_elsewhere: int
    p: float
    q: float
    cases: tuple[int, ...]
    owner: str = "unknown"
    failure: str = ""
    also: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The trait in words."""
        return f"{self.kind}: {self.value}"

    @property
    def fragment(self) -> str:
        """Where the page shows its cases."""
        return view_fragment(ids=self.cases)


@dataclass(frozen=True)
class CulpritDocument:
    """A document with passages that failures rest on; ``date`` is its newest known date, or ''."""

    document: str
    failed: int
    harms: tuple[tuple[str, int], ...]
    cases: tuple[int, ...]
    date: str = ""

    @property
    def fragment(self) -> str:
        """Where the page shows its cases."""
        return view_fragment(ids=self.cases)


def find_threads(
    traits: Mapping[int, Collection[Trait]], failed: Mapping[int, bool]
) -> tuple[FailureThread, ...]:
    """Find the traits that failed cases have more often than passed ones.

    Parameters
    ----------
    traits : mapping of int to collection of (str, str)
        The traits of each case, each once, by its number.
    failed : mapping of int to bool
        The decided cases; others are left out.

    Returns
    -------
    tuple of FailureThread
        The clearest first.
    """
    members: dict[Trait, list[int]] = {}
    for number in failed:
        for trait in traits.get(number, ()):
            members.setdefault(trait, []).append(number)
    n, bad = len(failed), sum(failed.values())
    # The choice of candidates looks at the size of a group alone, never at its failures.
    candidates = [t for t, numbers in sorted(members.items()) if _MIN_FAILED <= len(numbers) < n]
    if not candidates or not 0 < bad < n:
        return ()
    sizes = [len(members[trait]) for trait in candidates]
    counts = [sum(failed[number] for number in members[trait]) for trait in candidates]
    ps = [fisher_greater(*group, bad, n) for group in zip(counts, sizes, strict=True)]
    qs = benjamini_hochberg(ps)
    found: list[FailureThread] = []
    for place in sorted(range(len(candidates)), key=lambda i: (ps[i], -counts[i])):
        if qs[place] > FALSE_SHARE or counts[place] < _MIN_FAILED:
            continue
        kind, value = candidates[place]
        cases = tuple(sorted(one for one in members[kind, value] if failed[one]))
        thread = FailureThread(
            kind, value, counts[place], sizes[place], bad - counts[place], n - sizes[place],
            float(ps[place]), float(qs[place]), cases,
        )  # fmt: skip
        same = next((i for i, one in enumerate(found) if _is_same(one, thread)), None)
        if same is None:
            found.append(thread)
        else:
            first = found[same]
            found[same] = replace(first, also=(*first.also, thread.label))
    return tuple(found)


def _is_same(one: FailureThread, other: FailureThread) -> bool:
    shared = len({*one.cases} & {*other.cases})
    return shared >= _SAME_SHARE * len({*one.cases} | {*other.cases})


def read_threads(run: Run) -> tuple[FailureThread, ...]:
    """Find what the failed cases of a run share, each group with its most frequent owner."""
    numbers, links = number_cases(run.cases), {link.case_id: link for link in run.outcomes}
    traces = by_case(run.traces)
    traits: dict[int, Collection[Trait]] = {}
    shared: dict[Trait, Trait] = {}
    failed: dict[int, bool] = {}
    decided: dict[int, Outcome] = {}
    for case in run.cases:
        link = links.get(case.id)
        if link is None or link.failed is None:
            continue
        number = numbers[case.id]
        own_traits = case_traits(case, traces.get(case.id))
        traits[number] = tuple(shared.setdefault(trait, trait) for trait in set(own_traits))
        failed[number], decided[number] = link.failed, link
    threads = []
    for thread in find_threads(traits, failed):
        own = [decided[number] for number in thread.cases]
        owner = Counter(link.owner or "unknown" for link in own).most_common(1)[0][0]
        modes = Counter(link.failure or "" for link in own if (link.owner or "unknown") == owner)
        threads.append(replace(thread, owner=owner, failure=modes.most_common(1)[0][0]))
    return tuple(threads)


def case_traits(case: Case, trace: Trace | None) -> Iterator[Trait]:
    """Yield what a case may share with others: only what its failure does not decide."""
    yield from (("tag", f"{name}={value}") for name, value in case.tags.items())
    if case.category is not None:
        yield "category", case.category
    if case.asked_at is not None:
        yield "date", f"asked in {case.asked_at:%Y-%m}"
    yield from (("query shape", shape) for shape in _query_shapes(case))
    if case.references:
        yield "answer type", _answer_type(case.references[0])
    yield from (("document", span.id) for span in case.spans)
    labelled = {name for name, grade in case.relevant.items() if grade > 0}
    labelled.update(name for names in case.relevant_any for name in names)
    for name in labelled:
        yield "document", document_of(Passage(id=name, rank=1)) or name
    if trace is None:
        return
    yield "search steps", str(len(trace.calls)) if len(trace.calls) < _MIN_FAILED else "3 or more"
    for passage in (*trace.retrieved, *trace.deeper):
        if passage.id in labelled:
            yield from _passage_traits(passage)


def _passage_traits(passage: Passage) -> Iterator[Trait]:
    document, metadata = document_of(passage), passage.metadata
    if document is not None:
        yield "document", document
    sections = [metadata[name] for name in _SECTION_FIELDS if metadata.get(name)]
    if sections:
        yield "section", str(sections[-1])
    if date := _date(passage):
        yield "date", f"document of {date[:4]}"
    if isinstance(metadata.get("language"), str):
        yield "language", str(metadata["language"])
    if _TABLE_ROW.search(passage.text):
        yield "table", "the relevant passage has a table"


def _query_shapes(case: Case) -> Iterator[str]:
    words = case.judged_question.casefold().split()
    if words and words[0].rstrip("'s") in _QUESTION_WORDS:
        yield f"begins with '{words[0]}'"
    if len(words) > _LONG_QUESTION:
        yield f"more than {_LONG_QUESTION} words"
    if _DIGIT.search(case.judged_question):
        yield "has a number"
    if case.history:
        yield "follows earlier messages"


def _answer_type(reference: str) -> str:
    words = reference.casefold().split()
    if words and words[0].strip(".,!") in {"yes", "no"}:
        return "yes or no"
    if _DATE.search(reference):
        return "date"
    if _DIGIT.search(reference):
        return "number"
    return "list" if reference.count("\n") > 1 or reference.count(",") > 1 else "text"


def _date(passage: Passage) -> str:
    texts = (str(passage.metadata[name]) for name in _DATE_FIELDS if name in passage.metadata)
    return next((found[0] for text in texts if (found := _DATE.search(text))), "")


def rank_documents(run: Run) -> tuple[CulpritDocument, ...]:
    """Rank documents by the failed cases that rest on their passages; of equal ones the oldest."""
    numbers, traces = number_cases(run.cases), by_case(run.traces)
    harms: dict[str, dict[int, str]] = {}
    dates: dict[str, str] = {}
    harmed = {
        link.case_id
        for link in run.outcomes
        if link.failed and not _HARM.keys().isdisjoint(link.accused)
    }
    for link in select_items(run.links, harmed):
        trace = traces.get(link.case_id)
        known = {p.id: p for p in (*trace.retrieved, *trace.deeper)} if trace else {}
        for item in link.evidence:
            if item.failure not in _HARM or item.passage_id is None:
                continue
            passage = known.get(item.passage_id) or Passage(id=item.passage_id, rank=1)
            document = document_of(passage) or passage.id
            harms.setdefault(document, {})[numbers[link.case_id]] = _HARM[item.failure]
            dates[document] = max(dates.get(document, ""), _date(passage))
    ranked = [
        CulpritDocument(
            document,
            len(cases),
            tuple(Counter(cases.values()).most_common()),
            tuple(sorted(cases)),
            dates[document],
        )
        for document, cases in harms.items()
    ]
    ranked.sort(key=lambda one: (-one.failed, one.date or "9", one.document))
    return tuple(ranked[:_SHOWN_DOCUMENTS])


def fix_of(thread: FailureThread) -> str:
    """Return the one fix for a group: that of its most frequent failure mode."""
    mode = FAILURE_MODES.get(thread.failure)
    return mode.action if mode else "Read the cases side by side."
