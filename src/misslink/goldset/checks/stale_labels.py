"""Check that labels still match the corpus: evidence texts and passage ids."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from misslink.goldset.checks.protocol import (
    CheckInputs,
    GoldSetFinding,
    LabelProposal,
    Severity,
    evidence_texts,
    labelled_ids,
)
from misslink.io.goldset import GoldSet
from misslink.matching.fuzzy_matching import UNSPACED, invariant_tokens
from misslink.render.format import list_first
from misslink.retrieval.matching import Need, find_split, satisfies
from misslink.text.normalization import fold, fold_with_offsets, overlapping, sentence_spans
from misslink.types import Case, Passage

_WORD = re.compile(r"\w+")


_EDGE_LENGTH = 10  # folded characters; `find_split` needs a quarter of at least 40 in each half


_BIGRAM = 2  # characters that replace a word in scripts without spaces


_MAX_COMPARED = 15  # passages with the most and rarest shared words, compared by character


_MAX_REFINED = 5  # the best of these, compared at word boundaries


_MAX_GAP = 20.0  # points under the best window that moving its ends cannot recover


_COMMON_SHARE = 0.2  # a word of more than this share of the passages (and of 1,000) is ignored


_COMMON_COUNT = 1_000


_MAX_SCORE = 100.0  # of rapidfuzz


@dataclass(frozen=True)
class NearestText:
    """The stretch of a passage that is most similar to a text; `score` in [0, 1]."""

    passage: Passage
    text: str
    score: float
    same_facts: bool


class PassageSearch:
    """Search over passages with unique ids, each folded once."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self.by_id: Mapping[str, Passage] = {passage.id: passage for passage in passages}
        self._folded = [fold(passage.text) for passage in passages]

    def contains(self, evidence: str) -> bool:
        """Return whether a passage contains it whole; see `misslink.retrieval.matching`."""
        return next(iter(self.holders(evidence)), None) is not None

    def holders(self, evidence: str) -> Iterable[Passage]:
        """Yield the passages that contain it whole, in the corpus's order."""
        folded, need = fold(evidence), Need("evidence", 1, evidence)
        for index in self._candidates(folded):
            if folded in self._folded[index] and satisfies(need, self.passages[index]):
                yield self.passages[index]

    def split(self, evidence: str) -> tuple[Passage, Passage] | None:
        """Return the two passages that contain it together, if a chunk boundary divides it."""
        folded = fold(evidence)
        begins, ends = self._edges
        # The first passage ends within the evidence, and the second begins within it.
        parts = {folded[i : i + _EDGE_LENGTH] for i in range(len(folded) - _EDGE_LENGTH + 1)}
        first, second = (
            {index for part in parts for index in edge.get(part, ())} for edge in (ends, begins)
        )
        if not first or not second:
            return None
        candidates = [self.passages[index] for index in sorted(first | second)]
        return find_split(Need("evidence", 1, evidence), candidates)

    def nearest(self, text: str, *, whole: bool = False) -> NearestText | None:
        """Return the most similar stretch, or whole passage; None if they share no words."""
        from rapidfuzz import fuzz

        folded = fold(text)
        best: NearestText | None = None
        likely = self._likely(folded)
        if not whole:
            windows = {index: fuzz.partial_ratio(folded, self._folded[index]) for index in likely}
            likely = sorted(likely, key=lambda index: -windows[index])[:_MAX_REFINED]
            likely = [i for i in likely if windows[i] > windows[likely[0]] - _MAX_GAP]
        for index in likely:
            passage = self.passages[index]
            for stretch in [passage.text] if whole else self._stretches(folded, index):
                candidate = fold(stretch)
                score = fuzz.ratio(folded, candidate) / _MAX_SCORE
                if best is None or score > best.score:
                    same_facts = invariant_tokens(folded) == invariant_tokens(candidate)
                    best = NearestText(passage, stretch, score, same_facts)
        return best

    def _stretches(self, target: str, index: int) -> list[str]:
        """The best window of a passage, with its ends at the best words; and whole sentences."""
        from rapidfuzz import fuzz

        text, folded = self.passages[index].text, self._folded[index]
        window = fuzz.partial_ratio_alignment(target, folded)
        if window is None or window.dest_end <= window.dest_start:
            return []
        low, high = window.dest_start, window.dest_end
        if len(target) > len(folded):  # then rapidfuzz aligns the passage along the target
            low, high = 0, len(folded)
        # A window has the length of the target text, and so cuts off inserted words.
        words = [word.span() for word in _WORD.finditer(folded)]
        reach = len(target) // 2
        ends = [end for _, end in words if low < end and abs(end - high) <= reach]
        high = max(ends, key=lambda end: fuzz.ratio(target, folded[low:end]), default=high)
        starts = [start for start, _ in words if start < high and abs(start - low) <= reach]
        low = max(starts, key=lambda start: fuzz.ratio(target, folded[start:high]), default=low)
        _, offsets = fold_with_offsets(text)
        start, end = offsets[low], offsets[high - 1] + 1
        spans = overlapping(sentence_spans(text), start, end)
        wide = [text[spans[0][0] : spans[-1][1]]] if spans else []
        return [*wide, *(text[a:b] for a, b in spans), text[start:end].strip()]

    @cached_property
    def _index(self) -> Mapping[str, array[int]]:
        """The indices of the passages with a term, ascending."""
        index: dict[str, array[int]] = {}
        for place, text in enumerate(self._folded):
            for term in set(_search_terms(text)):
                index.setdefault(term, array("l")).append(place)
        return index

    @cached_property
    def _edges(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The indices of the passages by their first, and by their last, characters."""
        begins: dict[str, list[int]] = {}
        ends: dict[str, list[int]] = {}
        for place, text in enumerate(self._folded):
            begins.setdefault(text[:_EDGE_LENGTH], []).append(place)
            ends.setdefault(text[-_EDGE_LENGTH:], []).append(place)
        return begins, ends

    def _candidates(self, folded: str) -> Sequence[int]:
        """Passages that may contain a text: those with its inner terms."""
        inner = _search_terms(folded, whole=False)
        if not inner:
            return range(len(self.passages))
        return min((self._index.get(term, array("l")) for term in inner), key=len)

    def _likely(self, folded: str) -> list[int]:
        """Passages that share the most terms, where rare ones count more."""
        import numpy as np

        limit = max(_COMMON_COUNT, _COMMON_SHARE * len(self.passages))
        weights = np.zeros(len(self.passages))
        for term in dict.fromkeys(_search_terms(folded)):
            places = self._index.get(term)
            if places is not None and len(places) <= limit:
                weights[np.frombuffer(places, dtype=places.typecode)] += 1 / len(places)
        likely = np.flatnonzero(weights)
        if len(likely) > _MAX_COMPARED:
            least = np.partition(weights[likely], -_MAX_COMPARED)[-_MAX_COMPARED]
            likely = likely[weights[likely] >= least]
        best: list[int] = likely[np.argsort(-weights[likely], kind="stable")].tolist()
        return best[:_MAX_COMPARED]


def _search_terms(folded: str, *, whole: bool = True) -> list[str]:
    """The words of a text; in scripts without spaces, each two neighboring characters.

    Not `whole`: without a first or last word that may continue beyond the text.
    """
    words: list[str] = _WORD.findall(folded)
    if folded.isascii() or not UNSPACED.search(folded):
        return words if whole else words[1:-1]
    terms = []
    for index, word in enumerate(words):
        if len(word) >= _BIGRAM and UNSPACED.search(word):
            terms += [word[i : i + _BIGRAM] for i in range(len(word) - 1)]
        elif whole or 0 < index < len(words) - 1:
            terms.append(word)
    return terms


_SHOWN_CHARACTERS = 60
_SHOWN_IDS = 3
_MIN_SIMILARITY = 0.5  # below, half of the characters differ, and a proposal is useless
_MIN_ID_SIMILARITY = 60  # of an id that may have been meant, in per cent
_MAX_TYPOS = 100  # if more cases lack an id, none of them is a typo
_MAX_CANDIDATE_IDS = 20
_NUMBER = re.compile(r"\d+")
_list_ids = partial(list_first, most=_SHOWN_IDS, write="'{}'".format)
_OTHER_FACTS = "its numbers, signs or negations differ"


def check_evidence(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find evidence that the corpus does not contain verbatim, folded as in retrieval scores.

    Evidence that a chunk boundary divides is reported as split, not as missing. It is stale if the
    earlier corpus or the earlier gold set had it. Each finding has the most similar text of the
    corpus, if at least half of it is equal.
    """
    if inputs.corpus is None:
        return []
    findings = []
    for case in gold.cases:
        for text in evidence_texts(case):
            if inputs.corpus.contains(text):
                continue
            pair = inputs.corpus.split(text)
            if pair is None:
                findings.append(_missing_evidence_finding(case, text, inputs.corpus, inputs))
                continue
            first, second = (passage.id for passage in pair)
            findings.append(
                GoldSetFinding(
                    "evidence",
                    "note",
                    f"no passage contains {_quoted(text)} whole: it is split over '{first}' and "
                    f"'{second}'",
                    "make passages longer or overlapping, or the retriever has to return both",
                    (case.id,),
                    {"evidence": text, "passages": [first, second]},
                )
            )
    return findings


def _missing_evidence_finding(
    case: Case, text: str, corpus: PassageSearch, inputs: CheckInputs
) -> GoldSetFinding:
    since = ""
    if inputs.before and (inputs.before.contains(text) or inputs.before.split(text)):
        since = "the earlier corpus had"
    elif inputs.baseline is not None:
        earlier = next((c.evidence for c in inputs.baseline.cases if c.id == case.id), {})
        if fold(text) in map(fold, earlier):
            since = "the earlier gold set had"
    message = f"no passage contains {_quoted(text)}" + (f", which {since}" if since else "")
    proposal = _propose(case, "evidence", text, text, corpus)
    if proposal is None:
        fix = "copy the text as it is in the corpus, or remove the case"
    else:
        message += f"; '{proposal.passage}' is {proposal.score:.0%} similar"
        fix = f"use {_quoted(proposal.after)} only if the answer is the same"
        fix += f": {proposal.meaning}" if proposal.meaning else ""
    return GoldSetFinding(
        "stale" if since else "evidence",
        "error",
        message,
        fix,
        (case.id,),
        {"evidence": text},
        () if proposal is None else (proposal,),
    )


def _propose(
    case: Case, field: Literal["evidence", "relevant"], label: str, text: str, corpus: PassageSearch
) -> LabelProposal | None:
    """The most similar text of the corpus, or the passage that has it."""
    near = corpus.nearest(text, whole=field == "relevant")
    if near is None or near.score < _MIN_SIMILARITY:
        return None
    passage = near.passage.id
    after = passage if field == "relevant" else near.text
    meaning = None if near.same_facts else _OTHER_FACTS
    return LabelProposal(case.id, field, label, after, passage, near.score, meaning)


def check_unreachable_ids(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find cases whose relevant ids are not in the corpus.

    It is an error if the case can then not be completely retrieved: an id without which no
    alternative is complete. If evidence decides, or another alternative is complete, it is a
    warning, and for passages judged not relevant a note. With the earlier corpus, the passage with
    the missing one's text is proposed.
    """
    corpus = inputs.corpus
    if corpus is None:
        return []
    labelled = [case for case in gold.cases if labelled_ids(case)]
    missing = {
        case.id: [name for name in labelled_ids(case) if name not in corpus.by_id]
        for case in labelled
    }
    is_other_corpus = all(missing[case.id] == labelled_ids(case) for case in labelled)
    if len(labelled) > 1 and is_other_corpus and inputs.before is None:
        example = min(labelled_ids(case)[0] for case in labelled)
        return [
            GoldSetFinding(
                "unreachable",
                "error",
                f"no id of the gold set is in the corpus: the gold set has '{example}', "
                f"the corpus '{next(iter(corpus.by_id), '')}'",
                "give the corpus of this gold set, with the ids that the retriever returns",
                tuple(sorted(case.id for case in labelled)),
            )
        ]
    suggest = sum(map(bool, missing.values())) <= _MAX_TYPOS
    findings = []
    for case in labelled:
        relevant = labelled_ids(case, relevant_only=True)
        needed = [name for name in missing[case.id] if name in relevant]
        irrelevant = [name for name in missing[case.id] if name not in relevant]
        if needed:
            findings.append(_missing_ids_finding(case, needed, corpus, inputs, suggest))
        if irrelevant:
            findings.append(
                GoldSetFinding(
                    "unreachable",
                    "note",
                    f"the corpus does not contain {_list_ids(irrelevant)}, judged not relevant",
                    "nothing to do: the grade no longer has an effect",
                    (case.id,),
                    {"ids": sorted(irrelevant)},
                )
            )
    return findings


def _missing_ids_finding(
    case: Case, ids: Sequence[str], corpus: PassageSearch, inputs: CheckInputs, suggest: bool
) -> GoldSetFinding:
    before = inputs.before.by_id if inputs.before else {}
    candidates = (
        _propose(case, "relevant", name, before[name].text, corpus)
        for name in ids
        if name in before and before[name].text.strip()
    )
    proposals = tuple(proposal for proposal in candidates if proposal)
    stale = all(name in before for name in ids)
    message = f"the corpus does not contain {_list_ids(ids)}"
    message += ", which the earlier one had" if stale else ""
    if proposals:
        first = proposals[0]
        fix = f"use '{first.after}' for '{first.before}' ({first.score:.0%} similar)"
        fix += f" only if it answers the question: {first.meaning}" if first.meaning else ""
        fix += f", and see {len(proposals) - 1} more with --json" if proposals[1:] else ""
    else:
        fix = (suggest and _suggest_id(ids, corpus)) or "label the case again on this corpus"
    complete = any(all(name in corpus.by_id for name in names) for names in case.relevant_any)
    # Evidence decides before ids.
    severity: Severity = "warning" if evidence_texts(case) or complete else "error"
    check = "stale" if stale else "unreachable"
    numbers = {"ids": sorted(ids)}
    return GoldSetFinding(check, severity, message, fix, (case.id,), numbers, proposals)


def _suggest_id(ids: Sequence[str], corpus: PassageSearch) -> str:
    """The id that may have been meant; an id with other numbers names another passage."""
    from rapidfuzz import fuzz, process

    for name in ids:
        near = process.extract(
            name,
            corpus.by_id.keys(),
            scorer=fuzz.ratio,
            score_cutoff=_MIN_ID_SIMILARITY,
            limit=_MAX_CANDIDATE_IDS,
        )
        for candidate, _, _ in near:
            if _NUMBER.findall(candidate) == _NUMBER.findall(name):
                return f"for '{name}' did you mean '{candidate}'?"
    return ""


def check_changed_passages(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find cases whose relevant passage kept its id but not its text; needs the earlier corpus."""
    from rapidfuzz import fuzz

    if inputs.corpus is None or inputs.before is None:
        return []
    findings = []
    for case in gold.cases:
        # Evidence is looked up in the current text.
        for name in () if evidence_texts(case) else labelled_ids(case, relevant_only=True):
            old, new = inputs.before.by_id.get(name), inputs.corpus.by_id.get(name)
            if old is None or new is None or fold(old.text) == fold(new.text):
                continue
            score = fuzz.ratio(fold(old.text), fold(new.text)) / 100
            findings.append(
                GoldSetFinding(
                    "changed",
                    "warning",
                    f"the text of its relevant passage '{name}' has changed ({score:.0%} similar)",
                    "check whether it still answers the question",
                    (case.id,),
                    {"id": name, "alike": score},
                )
            )
    return findings


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    short = line if len(line) <= _SHOWN_CHARACTERS else f"{line[: _SHOWN_CHARACTERS - 3]}..."
    return f"'{short}'"
