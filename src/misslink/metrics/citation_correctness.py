"""Citation correctness: does a cited passage support the statement that cites it?"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judge.judged_metric import Finding, JudgedMetric, Subject, failed_finding
from misslink.judge.protocol import Ask, Reply
from misslink.matching import verify_quote
from misslink.registry import judged_metrics
from misslink.text.normalization import content_words, fold, sentence_spans
from misslink.types import Claim, Evidence, Passage, Reason

_SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_AS_DIGITS = str.maketrans(_SUPERSCRIPTS, "0123456789")
_MARKER = re.compile(
    r"[\[\u3010]\^?(?P<bracket>[^\[\]\u3010\u3011\n]{1,80})[\]\u3011](?:\([^()\s]*\))?"
    r"|\((?P<parenthesis>[^()\[\]\n]{1,80})\)"
    r"|<sup>\[?(?P<tag>\d{1,3}(?:,\s*\d{1,3})*)\]?</sup>"
    rf"|(?P<raised>[{_SUPERSCRIPTS}]{{1,2}}(?:,[{_SUPERSCRIPTS}]{{1,2}})*)"
)
_OPENS = re.compile(rf"[\[\u3010(<{_SUPERSCRIPTS}]")  # what every marker begins with
# Code is quoted and not cited from; what follows such a heading or label is a list of sources.
_NO_STATEMENT = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)"
    r"|^[^\w\n]*(?:sources?|references?|citations?|bibliography|footnotes?)[^\w\n]*$.*\Z"
    r"|^[ \t]*\[\^?[^\[\]\n]{1,80}\]:[^\n]*$",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_SOURCE = re.compile(
    r"(?:see |cf\.? )?(?:sources?|passages?|documents?|docs?|ref(?:erence)?s?|citations?|chunks?"
    r"|contexts?)\.?[ :]*#?(?=[\w-])"
)
_SEPARATOR = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_RANGE = re.compile(r"(\d{1,3})\s*-\s*(\d{1,3})")
_LONGEST_RANGE = 20
_PAGE = re.compile(r"pp?\.?\s*\d+(?:-\d+)?")
_NUMBER = re.compile(r"[1-9]\d{0,2}")  # of four digits it is a year
_DAGGER = re.compile(r"(?::\d+)?\u2020.*")  # what follows the number in "3:0(dagger)source"
_DIGITS = re.compile(r"\d+")
# Glued to one small letter or a name with an underscore, or with more code behind it, a number in
# brackets is an index ("x[1]"). Glued to any other word it cites ("seven[1]").
_INDEXED = re.compile(r"(?<!\w)(?:[a-z]|\w*[^\W_]_\w+)(?:\[[^\[\]\n]*\]){0,4}\Z")
_INDEXES = re.compile(r"(?:\[[^\[\]\n]{1,80}\]){0,4}(?:\s?[-+*/%|&^<>!]?=|\.[a-z_]+\w*|\()")
_KEY = re.compile(  # "Press [2] to go on": what is pressed is a key and no passage
    r"(?:\A|[.,;:!?\n(]|\b(?:to|then|and|or|please|you can|you must)\b|\d[.)]|[-*])\s*"
    r"(?:press|hit|push|type|enter|click|tap|dial|select|choose)"
    r"(?:\s+(?:on|in|the|key|button|option|number))*\s+(?:\[[^\[\]\n]*\][\s,]*(?:(?:and|or)\s+)?)*\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 120  # characters before a marker, enough for the above
# A raised number cites behind a mark, a word of four letters or a year; behind less it may be a
# power or belong to a unit, and with a blank between only behind a unit or a single letter.
_BEFORE_RAISED = re.compile(
    r"(?:[.,;:!?'\"\]\u2019\u201d]|[^\W\d_]{4})[^\S\n]*\Z"
    r"|(?<!\w)(?!(?:km|cm|mm|dm|ft|in|yd|mi)\b)(?:[^\W\d_]{2,3}|[12]\d{3})[^\S\n]+\Z"
)
_BRACKET = re.compile(r"\[[^\[\]\n]{1,80}\]")  # no sentence ends inside of one
_SOURCE_WORDS = frozenset(("source", "sources", "reference", "references", "see", "cf"))
_STOPS = re.compile(r"[.!?:\u3002\uff01\uff1f]")
_BEFORE_STOP = re.compile(r"\s+(?=[.,;:!?)](?:[\s.,;:!?)]|\Z))")


@dataclass(frozen=True)
class CitedStatement:
    """A sentence of an answer that cites something.

    Parameters
    ----------
    text : str
        The sentence without its citation markers.
    start, end : int
        Character offsets into the answer; a marker inside of the sentence lies between them.
    cited : sequence of str
        Ids of the passages it cites, each once.
    lost : sequence of str
        What it cites that is no passage, as it is written.
    """

    text: str
    start: int
    end: int
    cited: tuple[str, ...]
    lost: tuple[str, ...]


def find_cited_statements(answer: str, passages: Sequence[Passage]) -> tuple[CitedStatement, ...]:
    """Find the sentences of `answer` that cite, and what they cite.

    Citations are ``[1]``, ``[2, 3]``, ``[1-3]``, ``[^1]``, ``[doc-7]``, ``(source 2)``,
    ``(doc-7)``, raised numbers, and numbers in ``<sup>``. They name a passage by its id, else by
    its position in `passages`, counted from 1. A number out of range, and a name that looks like an
    id (``doc-9`` among ``doc-1`` to ``doc-8``), cite a passage that does not exist. Any other
    bracket is no citation. A marker after a full stop belongs to the sentence before it.

    Not read are code, a closing list of sources, an index (``x[1]``, ``row_ids[2]``,
    ``rows[1] = 5``), a key to press (``Press [2] to continue.``), a power and a unit. A bracket
    attached to any other word is a citation (``at seven[1]``).

    Parameters
    ----------
    answer : str
    passages : sequence of Passage
        In the order in which the app numbered them.

    Returns
    -------
    tuple of CitedStatement
        Empty if the answer cites nothing.
    """
    if not (_OPENS.search(answer) and _MARKER.search(answer)):
        return ()  # as most answers, and looking closer takes ten times as long
    names = _PassageNames(passages)
    body = _NO_STATEMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), answer)
    markers = [
        (marker.start(), marker.end(), cited)
        for marker in _MARKER.finditer(body)
        if (cited := _read_marker(marker, names))
    ]
    pieces, since = [], 0
    for start, end, _ in markers:
        pieces += [body[since:start], " " * (end - start)]
        since = end
    plain = "".join((*pieces, body[since:]))
    spans = sentence_spans(_BRACKET.sub(lambda found: _STOPS.sub(",", found[0]), plain))
    of_span: dict[int, list[str]] = {}
    for start, _, cited in markers:
        index = _sentence_of(start, spans, plain)
        if index is not None:
            of_span.setdefault(index, []).extend(cited)
    statements = (
        _build_statement(plain, spans[index], of_span[index], names) for index in sorted(of_span)
    )
    return tuple(
        statement
        for statement in statements
        if not _SOURCE_WORDS.issuperset(content_words(statement.text))
    )


class _PassageNames:
    """What passages may be called: their ids, and names made like them."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by_id: Mapping[str, str] = {fold(p.id): p.id for p in reversed(passages)}
        self._by_place = {str(place): p.id for place, p in enumerate(passages, start=1)}

    @cached_property
    def _shapes(self) -> frozenset[str]:
        return frozenset(_DIGITS.sub("#", name) for name in self._by_id if not name.isdecimal())

    def passage(self, name: str) -> str | None:
        """The id of the passage that is called so."""
        return self._by_id.get(name) or self._by_place.get(name)

    def is_id(self, name: str) -> bool:
        """Whether it is an id, and not by chance: it holds a digit and is no number."""
        return name in self._by_id and not name.isdecimal() and bool(_DIGITS.search(name))

    def names_one(self, name: str) -> bool:
        """Whether it is meant as a passage, there or not."""
        made_like = bool(_DIGITS.search(name)) and _DIGITS.sub("#", name) in self._shapes
        return name in self._by_id or made_like or _NUMBER.fullmatch(name) is not None


def _read_marker(marker: re.Match[str], names: _PassageNames) -> list[str]:
    """The names in a marker, folded; empty where it is none."""
    text, start = marker.string, marker.start()
    before = text[max(0, start - _LOOK_BACK) : start]
    if marker["raised"]:
        raised = marker["raised"].translate(_AS_DIGITS).split(",")
        cites = _BEFORE_RAISED.search(before) is not None
        return raised if cites and all(map(names.names_one, raised)) else []
    if marker["bracket"] and (_is_index(marker, before) or _KEY.search(before)):
        return []
    written = fold(marker["bracket"] or marker["tag"] or marker["parenthesis"])
    in_words = _SOURCE.match(written) is not None
    if marker["parenthesis"] and not in_words and not names.is_id(_SEPARATOR.split(written)[0]):
        return []  # "(1)" may number anything
    if names.passage(written):
        return [written]
    names_in_marker: list[str] = []
    for part in _SEPARATOR.split(written):
        several = list(_expand_names(part, names))
        if not several and not _PAGE.fullmatch(part):
            return []
        names_in_marker += several
    return names_in_marker


def _is_index(marker: re.Match[str], before: str) -> bool:
    """Whether a bracket indexes the word it is attached to."""
    if _INDEXED.search(before):
        return True
    glued = before[-1:].isalnum() or before.endswith(("_", "]"))
    return glued and _INDEXES.match(marker.string, marker.end()) is not None


def _expand_names(part: str, names: _PassageNames) -> Iterator[str]:
    """The names that one part of a list stands for: one, a range of numbers, or none."""
    bare = _DAGGER.sub("", part)
    for name in (bare, _SOURCE.sub("", bare, count=1)):
        run = _RANGE.fullmatch(name)
        if names.names_one(name):
            yield name
            return
        if run and 0 < int(run[1]) < int(run[2]) < int(run[1]) + _LONGEST_RANGE:
            yield from map(str, range(int(run[1]), int(run[2]) + 1))
            return


def _sentence_of(marker: int, spans: Sequence[tuple[int, int]], plain: str) -> int | None:
    """Return the sentence that contains or precedes a marker; at the start of a line the next."""
    index = bisect_right(spans, marker, key=lambda span: span[0]) - 1
    if index >= 0 and (marker < spans[index][1] or "\n" not in plain[spans[index][1] : marker]):
        return index
    return index + 1 if index + 1 < len(spans) else None


def _build_statement(
    plain: str, span: tuple[int, int], cited: Sequence[str], names: _PassageNames
) -> CitedStatement:
    text = _BEFORE_STOP.sub("", " ".join(plain[slice(*span)].split()))
    ids = {name: names.passage(name) for name in cited}
    return CitedStatement(
        text=text,
        start=span[0],
        end=span[1],
        cited=tuple(dict.fromkeys(passage_id for passage_id in ids.values() if passage_id)),
        lost=tuple(name for name, passage_id in ids.items() if not passage_id),
    )


class CitationReply(BaseModel):
    """Whether a passage supports the statement that cites it, both by number from 1."""

    model_config = ConfigDict(frozen=True)

    statement: int
    passage: int
    quote: str | None = None
    supported: Literal["yes", "no"]


class Citations(BaseModel):
    """What is said of an answer's citations."""

    model_config = ConfigDict(frozen=True)

    citations: tuple[CitationReply, ...]


@dataclass(frozen=True)
class _CheckedCitation:
    """A statement checked against one cited passage.

    ``supported`` is None where the judge left it out. ``overruled``: the judge called it supported,
    and the passage does not contain its quote.
    """

    supported: bool | None
    evidence: Evidence | None = None
    chance: float | None = None
    overruled: bool = False


_CitationAnswer = tuple[CitationReply, float | None]  # what is said of a pair, and P(supported)


class CitationCorrectness(JudgedMetric):
    """Share of the pairs of a statement and a passage it cites in which the passage supports it.

    With p pairs, s of them supported, it is s / p (citation precision). A pair is not supported if
    the cited passage does not exist, or if it does not contain the judge's quote. A pair that the
    judge leaves out is unknown and in no share. ``parts['recall']`` is the share of the cited
    statements that at least one of their passages supports. The label is good when every pair is
    supported; its probability is that of the least probable pair, where the judge gives
    probabilities. ``claims`` of the verdict are the cited statements. Statements without a citation
    do not count: see faithfulness.

    Skipped where the answer cites nothing. It costs one more judge call, and none where no cited
    passage exists. See `misslink.metrics.citation_correctness` for what counts as a citation.

    Source: Gao et al., ALCE, EMNLP 2023 (citation recall and precision; ALCE checks a statement
    against its passages together, misslink against each passage alone).
    """

    name = "citation_correctness"
    needs_passages = True

    def ask(self, subject: Subject) -> Ask | str:
        """Ask of every pair, or why there is none."""
        shared = super().ask(subject)
        if isinstance(shared, str):
            return shared
        passages = _numbered_passages(subject)
        statements = find_cited_statements(subject.answer, passages)
        if not statements:
            return str(Reason(code="no_citation"))
        number_of = _passage_numbers(passages)
        cited = sorted({number_of[name] for statement in statements for name in statement.cited})
        if not cited:
            return shared  # which is asked anyhow: what is cited does not exist, whatever it says
        inputs = {
            "question": subject.question,
            "cited": {number: passages[number - 1].text for number in cited},
            "statements": [
                {"text": statement.text, "passages": [number_of[name] for name in statement.cited]}
                for statement in statements
                if statement.cited
            ],
        }
        return Ask.rendered(subject.prompts.load("citations"), inputs, Citations)

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the pairs that are supported by a quote that is there."""
        statements = find_cited_statements(subject.answer, _numbered_passages(subject))
        checked = _check_citations(subject, statements, reply)
        missing_names = [name for statement in statements for name in statement.lost]
        pairs = [pair for each in checked for pair in each]
        supports = [pair.supported for pair in pairs if pair.supported is not None]
        supports += [False] * len(missing_names)
        if not supports:
            return failed_finding(Reason(code="citations_unrated"))
        recalls = [found for each in checked if (found := _any_supports(each)) is not None]
        chances = [pair.chance for pair in pairs if pair.chance is not None]
        certain = bool(pairs) and not missing_names and len(chances) == len(pairs)
        return Finding(
            "scored",
            value=sum(supports) / len(supports),
            label=all(supports),
            probability=min(chances) if certain else None,
            claims=tuple(
                _statement_claim(statement, each)
                for statement, each in zip(statements, checked, strict=True)
            ),
            parts={"recall": sum(recalls) / len(recalls) if recalls else None},
            reason=_not_there(missing_names) if missing_names else None,
        )


def _not_there(names: Sequence[str]) -> str:
    return str(Reason(code="cited_absent", names=", ".join(names)))


def _numbered_passages(subject: Subject) -> Sequence[Passage]:
    """The passages as the app may have numbered them; all, where its prompt was not seen."""
    return subject.trace.retrieved if subject.trace.prompted is None else subject.context


def _passage_numbers(passages: Sequence[Passage]) -> Mapping[str, int]:
    return {passage.id: number for number, passage in enumerate(passages, start=1)}


def _check_citations(
    subject: Subject, statements: Sequence[CitedStatement], reply: Reply
) -> list[tuple[_CheckedCitation, ...]]:
    """For each statement what was said of each passage it cites, the quotes looked up."""
    answers: dict[tuple[int, int], list[_CitationAnswer]] = {}
    if isinstance(reply.parsed, Citations):
        for place, item in enumerate(reply.parsed.citations):
            chance = reply.chance(f"citations.{place}.supported", "yes")
            answers.setdefault((item.statement, item.passage), []).append((item, chance))
    passages = _numbered_passages(subject)
    number_of, texts = (
        _passage_numbers(passages),
        {passage.id: passage.text for passage in passages},
    )
    question, statement_number = subject.question, 0
    checked = []
    for statement in statements:
        statement_number += bool(statement.cited)
        pairs = (
            (name, answers.get((statement_number, number_of[name]), [])) for name in statement.cited
        )
        checked.append(tuple(_check_pair(question, texts, statement, *pair) for pair in pairs))
    return checked


def _check_pair(
    question: str,
    texts: Mapping[str, str],
    statement: CitedStatement,
    name: str,
    answers: Sequence[_CitationAnswer],
) -> _CheckedCitation:
    if not answers:
        return _CheckedCitation(supported=None)
    text = texts[name]
    quotes = [
        verify_quote(item.quote, text, statement.text, question)
        if item.supported == "yes" and item.quote
        else None
        for item, _ in answers
    ]
    (_, chance), first = answers[0], quotes[0]
    if first is None or None in quotes:  # of a pair said twice, both must hold
        # A probability of support without a quote is worth nothing.
        no = all(item.supported == "no" for item, _ in answers)
        denied = any(item.supported == "no" for item, _ in answers)
        return _CheckedCitation(
            supported=False, chance=chance if no else None, overruled=not denied
        )
    evidence = Evidence(
        passage_id=name,
        quote=text[first.start : first.end],
        start=first.start,
        end=first.end,
        edits=first.edits,
    )
    return _CheckedCitation(supported=True, evidence=evidence, chance=chance)


def _any_supports(pairs: Sequence[_CheckedCitation]) -> bool | None:
    """Whether a passage supports a statement; None where none does and one is unknown."""
    if any(pair.supported for pair in pairs):
        return True
    return None if any(pair.supported is None for pair in pairs) else False


def _statement_claim(statement: CitedStatement, pairs: Sequence[_CheckedCitation]) -> Claim:
    evidence = tuple(pair.evidence for pair in pairs if pair.evidence is not None)
    unknown = not evidence and any(pair.supported is None for pair in pairs)
    overruled = not evidence and any(pair.overruled for pair in pairs)
    notes = []
    if unknown:
        notes.append(str(Reason(code="citation_unrated")))
    if overruled:
        notes.append(str(Reason(code="citation_quote_absent")))
    if statement.lost:
        notes.append(_not_there(statement.lost))
    return Claim(
        text=statement.text,
        start=statement.start,
        end=statement.end,
        support="supported" if evidence else "unsupported",
        evidence=evidence,
        note="; ".join(notes) or None,
        overruled=overruled,
    )


judged_metrics.register(CitationCorrectness.name)(CitationCorrectness())
