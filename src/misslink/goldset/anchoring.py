"""Turn labels into spans of documents, which survive re-chunking."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from misslink.case_fields import EvidenceSpan
from misslink.errors import did_you_mean
from misslink.io.goldset import GoldSet
from misslink.retrieval.matching import LabelledNeed, is_of_document, is_short, passage_need
from misslink.text.normalization import fold, fold_with_offsets
from misslink.types import Case, Passage

_START_FIELD = "start_index"


@dataclass(frozen=True)
class UnanchoredLabel:
    """A label without a place in the documents, and the reason."""

    case_id: str
    label: str
    reason: str


@dataclass(frozen=True)
class MovedSpan:
    """A span that its document does not have at its place, and where it has it; and what was wrong."""

    case_id: str
    before: EvidenceSpan
    after: EvidenceSpan
    reason: str


@dataclass(frozen=True)
class AnchoredGoldSet:
    """Cases with spans as evidence, and the labels that have no place in the documents.

    Parameters
    ----------
    cases : tuple of Case
        A case with a label without a place is unchanged.
    spans : int
    moved : tuple of MovedSpan
        Earlier spans whose text is at another place of its document now.
    missing : tuple of UnanchoredLabel
    """

    cases: tuple[Case, ...]
    spans: int
    moved: tuple[MovedSpan, ...]
    missing: tuple[UnanchoredLabel, ...]


def anchor_goldset(
    gold: GoldSet, documents: Sequence[Passage], corpus: Sequence[Passage] = ()
) -> AnchoredGoldSet:
    """Turn the labels of a gold set into spans of documents.

    Parameters
    ----------
    gold : GoldSet
    documents : sequence of Passage
        Whole documents, with the ids that passages name as their source.
    corpus : sequence of Passage
        The passages that the ids of the labels mean.

    Raises
    ------
    InputError
        A span names a document that is not there, its quote is not in its document, or it is
        outside of its document, which has the quote more than once.
    """
    search = _DocumentSearch(documents)
    passages = {passage.id: passage for passage in corpus}
    cases: list[Case] = []
    missing: list[UnanchoredLabel] = []
    moved: list[MovedSpan] = []
    for case in gold.cases:
        if case.spans:
            spans = tuple(search.move(gold, case, span) for span in case.spans)
            moved += (
                MovedSpan(case.id, old, new, misplaced(old, search.texts[old.id]))
                for old, new in zip(case.spans, spans, strict=True)
                if old != new
            )
            cases.append(_with_spans(case, spans))
            continue
        found, lost = _anchor_case(case, search, passages)
        missing += lost
        cases.append(case if lost or not found else _with_spans(case, found))
    return AnchoredGoldSet(
        tuple(cases), sum(len(case.spans) for case in cases), tuple(moved), tuple(missing)
    )


def misplaced(span: EvidenceSpan, text: str) -> str:
    """What is wrong with the place of a span in the text of its document; empty if it is right."""
    if span.end > len(text):
        return (
            f"the span {span.start} to {span.end} is outside '{span.id}', which has {len(text)} "
            "characters"
        )
    if text[span.start : span.end] == span.quote:
        return ""
    return f"'{span.id}' does not have the quote at {span.start} to {span.end}"


def _with_spans(case: Case, spans: Sequence[EvidenceSpan]) -> Case:
    """The case with spans in place of its labels."""
    irrelevant = {name: grade for name, grade in case.relevant.items() if grade == 0}
    relevant = case.relevant if case.spans else irrelevant
    fields = case.model_dump(exclude={"evidence"}) | {
        "relevant": relevant,
        "relevant_any": case.relevant_any if case.spans else (),
        "evidence": [span.model_dump() for span in spans],
    }
    return Case.model_validate(fields)


def _anchor_case(
    case: Case, search: _DocumentSearch, passages: Mapping[str, Passage]
) -> tuple[tuple[EvidenceSpan, ...], list[UnanchoredLabel]]:
    spans: list[EvidenceSpan] = []
    missing: list[UnanchoredLabel] = []
    evidence = any(case.evidence.values())
    listed = tuple(name for name, grade in case.relevant.items() if grade > 0)
    home = [passages[name] for name in listed if name in passages]
    for alternative, names in enumerate(((),) if evidence else case.relevant_any or (listed,)):
        needs = [LabelledNeed(name, case.relevant.get(name) or 1) for name in names]
        if evidence:
            needs = [LabelledNeed(text, g, text) for text, g in case.evidence.items() if g > 0]
        for need in needs:
            if need.evidence is None and need.id not in passages:
                missing.append(UnanchoredLabel(case.id, need.id, "the corpus has no such passage"))
                continue
            place = (
                search.place_passage(passages[need.id])
                if need.evidence is None
                else search.place_text(need, home)
            )
            if isinstance(place, str):
                missing.append(UnanchoredLabel(case.id, need.id, place))
            else:
                spans.append(search.span(*place, need.grade, alternative))
    return tuple(search.join(spans)), missing


class _DocumentSearch:
    """Places of texts in documents, each folded once."""

    def __init__(self, documents: Iterable[Passage]) -> None:
        self.texts = {document.id: document.text for document in documents}
        self._folded: dict[str, tuple[str, array[int]]] = {}

    def span(
        self, document: str, start: int, end: int, grade: int, alternative: int
    ) -> EvidenceSpan:
        quote = self.texts[document][start:end]
        return EvidenceSpan(
            id=document, start=start, end=end, quote=quote, grade=grade, alternative=alternative
        )

    def join(self, spans: Iterable[EvidenceSpan]) -> Iterator[EvidenceSpan]:
        """Yield spans that do not overlap: overlapping ones of an alternative are joined."""
        ordered = sorted(spans, key=lambda span: (span.alternative, span.id, span.start))
        joined: list[EvidenceSpan] = []
        for span in ordered:
            last = joined[-1] if joined else None
            if (
                last is not None
                and (last.alternative, last.id) == (span.alternative, span.id)
                and span.start < last.end
            ):
                end, grade = max(last.end, span.end), max(last.grade, span.grade)
                joined[-1] = self.span(span.id, last.start, end, grade, span.alternative)
            else:
                joined.append(span)
        yield from joined

    def move(self, gold: GoldSet, case: Case, span: EvidenceSpan) -> EvidenceSpan:
        """A span at the place where its document has the quote now."""
        text = self.texts.get(span.id)
        if text is None:
            hint = did_you_mean(span.id, self.texts) or "give the documents of this gold set"
            raise gold.error(case.id, "evidence", f"there is no document '{span.id}'; {hint}")
        wrong = misplaced(span, text)
        if not wrong:
            return span
        places = list(self._places(span.id, span.quote))
        # From outside no place is the nearest one.
        if not places or (span.end > len(text) and places[1:]):
            has = f"has the quote {len(places)} times" if places else "does not have the quote"
            fix = "correct start and end" if places else "quote its present text"
            problem = (
                f"case '{case.id}': {wrong}, and the document {has} ('{span.quote[:40]}'); {fix}"
            )
            raise gold.error(case.id, "evidence", problem)
        start, end = min(places, key=lambda place: abs(place[0] - span.start))
        return self.span(span.id, start, end, span.grade, span.alternative)

    def place_passage(self, passage: Passage) -> tuple[str, int, int] | str:
        """The document and the offsets of a passage's text, or why it has none."""
        title, text = passage.metadata.get("title"), passage.text
        if isinstance(title, str) and text.startswith(f"{title}\n"):
            text = text[len(title) + 1 :]
        text = text.strip()
        start = passage.metadata.get(_START_FIELD)
        if isinstance(start, int):
            for name, document in self.texts.items():
                if is_of_document(passage, name) and document.startswith(text, start) and text:
                    return name, start, start + len(text)
        need = passage_need(passage.model_copy(update={"text": text}))
        return self.place_text(need, [passage])

    def place_text(self, need: LabelledNeed, home: Sequence[Passage]) -> tuple[str, int, int] | str:
        """The document and the offsets of a text, or why it has none."""
        text = need.evidence or ""
        own = [name for name in self.texts if any(is_of_document(p, name) for p in home)]
        for names in filter(None, (own, [name for name in self.texts if name not in own])):
            found = [(name, *place) for name in names for place in self._places(name, text)]
            if len(found) == 1 or (found and (names is own or not is_short(need))):
                return found[0]
            if found:
                return f"{len(found)} places have this short text; quote more of it"
        return "no document has its text"

    def _places(self, name: str, text: str) -> Iterator[tuple[int, int]]:
        """Offsets of each place in a document that reads like a text."""
        document, exact = self.texts[name], False
        start = document.find(text) if text.strip() else -1
        while start >= 0:
            exact = True
            yield start, start + len(text)
            start = document.find(text, start + 1)
        wanted = fold(text)
        if exact or not wanted:
            return
        if name not in self._folded:
            self._folded[name] = fold_with_offsets(document)
        folded, offsets = self._folded[name]
        start = folded.find(wanted)
        while start >= 0:
            yield offsets[start], offsets[start + len(wanted) - 1] + 1
            start = folded.find(wanted, start + 1)
