"""Check that labels still match the corpus: evidence texts and passage ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

from misslink.goldset.anchoring import misplaced
from misslink.goldset.checks.passage_search import PassageSearch
from misslink.goldset.checks.protocol import (
    CheckInputs,
    GoldSetFinding,
    LabelProposal,
    Severity,
    evidence_texts,
    labelled_ids,
)
from misslink.io.goldset import GoldSet
from misslink.render.format import list_first
from misslink.retrieval.matching import LabelledNeed, case_needs, is_short, passage_need
from misslink.text.normalization import fold
from misslink.types import Case

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
        for need in (need for needs in case_needs(case, ()) for need in needs if need.evidence):
            text, corpus = need.evidence or "", inputs.corpus
            sets = corpus.label_sets(need)
            if not sets:
                findings.append(_missing_evidence_finding(case, need, corpus, inputs))
            elif len(sets[0]) > 1:
                findings.append(
                    GoldSetFinding(
                        "evidence",
                        "note",
                        f"no passage contains {_quoted(text)} whole: it is split over "
                        + " and ".join(f"'{name}'" for name in sets[0]),
                        "make passages longer or overlapping, or the retriever has to return all",
                        (case.id,),
                        {"evidence": text, "passages": list(sets[0])},
                    )
                )
    return findings


def check_span_places(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find spans that their document does not have at their place.

    It is a warning if the place is in the document, and the quote elsewhere in it.
    """
    if inputs.documents is None:
        return []
    findings = []
    for case in gold.cases:
        for span in case.spans:
            text = inputs.documents.get(span.id)
            problem = f"there is no document '{span.id}'" if text is None else misplaced(span, text)
            if not problem:
                continue
            moved = text is not None and fold(span.quote) in fold(text)
            inside = text is not None and span.end <= len(text)
            findings.append(
                GoldSetFinding(
                    "spans",
                    "warning" if moved and inside else "error",
                    problem,
                    "run goldset anchor with the documents as they are now"
                    if moved
                    else "correct the span, or label the case again",
                    (case.id,),
                    {**span.model_dump(), "length": None if text is None else len(text)},
                )
            )
    return findings


def _missing_evidence_finding(
    case: Case, need: LabelledNeed, corpus: PassageSearch, inputs: CheckInputs
) -> GoldSetFinding:
    since, text = "", need.evidence or ""
    if inputs.before and inputs.before.label_sets(need):
        since = "the earlier corpus had"
    elif inputs.baseline is not None:
        earlier = next((c.evidence for c in inputs.baseline.cases if c.id == case.id), {})
        if fold(text) in map(fold, earlier):
            since = "the earlier gold set had"
    message = f"no passage contains {_quoted(text)}" + (f", which {since}" if since else "")
    proposal = None if case.spans else _propose(case, "evidence", text, need, corpus)
    if case.spans:
        fix = "run goldset anchor with the documents as they are now"
    elif proposal is None:
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
    case: Case,
    field: Literal["evidence", "relevant"],
    label: str,
    need: LabelledNeed,
    corpus: PassageSearch,
) -> LabelProposal | None:
    """The passages that have the text now; where it has changed, the most similar one."""
    text = need.evidence or ""
    sets = corpus.label_sets(need) if field == "relevant" else ()
    if len(sets) == 1 or (sets and (need.document is not None or not is_short(need))):
        return LabelProposal(case.id, field, label, sets[0][0], sets[0][0], 1.0, sets=sets)
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
        _propose(case, "relevant", name, passage_need(before[name]), corpus)
        for name in ids
        if name in before and before[name].text.strip()
    )
    proposals = tuple(proposal for proposal in candidates if proposal)
    stale = all(name in before for name in ids)
    message = f"the corpus does not contain {_list_ids(ids)}"
    message += ", which the earlier one had" if stale else ""
    if proposals:
        first = proposals[0]
        names = " and ".join(f"'{name}'" for name in (first.sets or ((first.after,),))[0])
        fix = f"use {names} for '{first.before}' ({first.score:.0%} similar)"
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
    """Find cases whose relevant passage kept its id but not its text; needs the earlier corpus.

    If other passages have the text now, the id was given to another passage: they are proposed.
    """
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
            need = passage_need(old)
            sets = inputs.corpus.label_sets(need)
            if sets and (name,) not in sets:
                proposal = _propose(case, "relevant", name, need, inputs.corpus)
                findings.append(
                    GoldSetFinding(
                        "stale",
                        "error",
                        f"the id '{name}' has another text now",
                        f"use {' and '.join(sets[0])}, which has the labelled text",
                        (case.id,),
                        {"id": name, "alike": score},
                        () if proposal is None else (proposal,),
                    )
                )
                continue
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
