"""The faults: what is broken in each, and what the app says then."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.documents import Document

from faults.gold import Gold
from faults.planting import Fault, Plant, Said, Staging, by_ids
from misslink.matching import verify_quote
from misslink.text.normalization import fold, locate

__all__ = ["FAULTS"]

LONG_ENOUGH = 80  # folded characters of an evidence whose halves both still tell what it is
DECLINES = "I don't know."
EVADES = "What exactly do you want to do?"  # a question needs no claim
_VERB = re.compile(r"\b(is|are|was|were|can|must|will|may|should)\b(?! not)")


def _there(gold: Gold, stage: Staging) -> dict[str, Any]:
    """Everything needed among the first K."""
    return {
        "case": _case(gold, stage),
        "retrieval": "hit",
        "placed": stage.on_top(gold.listed),
        "hidden": gold.ids,
        "helps": _texts(gold),
    }


def _missed(gold: Gold, stage: Staging) -> dict[str, Any]:
    """Everything needed far below the cut-off."""
    there = _there(gold, stage)
    return {**there, "retrieval": "miss", "placed": stage.far_down(gold.listed)}


def _absent(gold: Gold, stage: Staging) -> dict[str, Any]:
    """Nothing that is needed is in the index."""
    return {**_there(gold, stage), "retrieval": "miss", "placed": (), "unindexed": gold.ids}


def _unanswerable(gold: Gold, stage: Staging) -> dict[str, Any]:
    """The same, and the gold set says so."""
    none = {"evidence": {}, "references": (), "answerable": False}
    case = gold.case.model_copy(update=none)
    return {**_absent(gold, stage), "case": case, "retrieval": "not_needed"}


def _case(gold: Gold, stage: Staging) -> Any:
    return stage.rng.choice((gold.case, by_ids(gold)))


def _texts(gold: Gold) -> frozenset[str]:
    return frozenset(document.page_content for document in gold.listed)


def _right(gold: Gold, of: Document | None = None) -> Said:
    """The reference answer, quoting evidence (of one passage); if that does not tell, all of it."""
    text, asked = gold.case.references[0], gold.case.question
    for evidence, (document, *_) in zip(gold.case.evidence, gold.carriers, strict=True):
        other = of is not None and of.id != document.id
        if not other and verify_quote(evidence, document.page_content, text, asked):
            return Said(text, "supported", evidence, "agrees")
    return Said(text, "supported", (of or gold.listed[0]).page_content, "agrees")


def _answers(*said: Said, states: str = "omits") -> dict[str, Any]:
    return {"answer": " ".join(s.text for s in said), "said": said, "states": states}


def _invents(stage: Staging) -> dict[str, Any]:
    return _answers(Said(stage.invention(), "unsupported"))


def nothing(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_there(gold, stage), **_answers(_right(gold), states="states"))


def declines_rightly(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_unanswerable(gold, stage), answer=DECLINES, response="declines")


def not_indexed(gold: Gold, stage: Staging) -> Plant:
    """Always by evidence: a gold set that names an id which the index lacks is refused at once."""
    return Plant(**{**_absent(gold, stage), "case": gold.case}, **_invents(stage))


def rank_30(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_missed(gold, stage), **_invents(stage))


def dropped(gold: Gold, stage: Staging) -> Plant:
    lost = {"retrieval": "miss", "withheld": gold.ids}
    return Plant(**{**_there(gold, stage), **lost}, **_invents(stage))


def split(gold: Gold, stage: Staging) -> Plant | None:
    """Cut the passage in the middle of the evidence; its second half is far down."""
    for (text, grade), (document, *_) in zip(
        gold.case.evidence.items(), gold.carriers, strict=True
    ):
        whole = document.page_content
        place = locate(text, whole)
        if len(fold(text)) < LONG_ENOUGH or place is None:
            continue
        cut = whole.rfind(" ", place[0], sum(place) // 2)
        halves = tuple(
            Document(id=f"{document.id}:{n}", page_content=part, metadata=document.metadata)
            for n, part in enumerate((whole[:cut], whole[cut + 1 :]), start=1)
        )
        return Plant(
            case=gold.case.model_copy(update={"evidence": {text: grade}}),
            retrieval="miss",
            placed=(*stage.on_top(halves[:1]), *stage.far_down(halves[1:])),
            hidden=gold.ids,
            unindexed=gold.ids,
            added=halves,
            helps=frozenset({whole}),
            **_invents(stage),
        )
    return None


def part_missing(gold: Gold, stage: Staging) -> Plant | None:
    part = _part(gold, stage)
    return Plant(**part, **_invents(stage)) if part else None


def part_suffices(gold: Gold, stage: Staging) -> Plant | None:
    """Answer right from the part that is there."""
    part = _part(gold, stage)
    if part is None:
        return None
    return Plant(**part, **_answers(_right(gold, part["placed"][0][1]), states="states"))


def _part(gold: Gold, stage: Staging) -> dict[str, Any] | None:
    """The first needed passage there, the others far below the cut-off."""
    first, *rest = gold.listed
    if not rest:
        return None
    there = _there(gold, stage)
    placed = (*stage.on_top([first]), *stage.far_down(rest))
    return {**there, "retrieval": "partial", "placed": placed}


def declines_without(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_missed(gold, stage), answer=DECLINES, response="declines")


def wrong_by_noise(gold: Gold, stage: Staging) -> Plant | None:
    """Answer from the passage that stands before the gold."""
    found = _noise(gold, stage)
    if found is None:
        return None
    document, said = found
    placed = ((1, document), *enumerate(gold.listed, start=2))
    return Plant(**{**_there(gold, stage), "placed": placed}, **said)


def noise_alone(gold: Gold, stage: Staging) -> Plant | None:
    """Answer from the first passage, where no needed one is near."""
    found = _noise(gold, stage)
    if found is None:
        return None
    document, said = found
    placed = ((1, document), *stage.far_down(gold.listed))
    return Plant(**{**_missed(gold, stage), "placed": placed}, **said)


def _noise(gold: Gold, stage: Staging) -> tuple[Document, dict[str, Any]] | None:
    """An irrelevant passage, and an answer from it: against the reference, or beside it."""
    told = [*_texts(gold), *gold.case.references]
    for document in stage.noise(gold):
        sentence = stage.sentence(document, told)
        if sentence:
            kind, states = stage.rng.choice((("contradicts", "contradicts"), ("silent", "omits")))
            return document, _answers(Said(sentence, "supported", sentence, kind), states=states)
    return None


def contradicts(gold: Gold, stage: Staging) -> Plant:
    evidence = next(iter(gold.case.evidence))
    negated, count = _VERB.subn(r"\1 not", evidence, count=1)
    text = negated if count else f"It is not so that {evidence}"
    said = Said(f"{text.rstrip('.:')}.", "contradicted", evidence, "contradicts")
    return Plant(**_there(gold, stage), **_answers(said, states="contradicts"))


def invents(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_there(gold, stage), **_invents(stage))


def adds(gold: Gold, stage: Staging) -> Plant:
    said = (_right(gold), Said(stage.invention(), "unsupported"))
    return Plant(**_there(gold, stage), **_answers(*said, states="states"))


def evades(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_there(gold, stage), answer=EVADES, response="evades")


def beside_the_point(gold: Gold, stage: Staging) -> Plant | None:
    """Say something that stands in the needed passage and does not answer the question."""
    there = _there(gold, stage)
    for document in gold.listed:
        sentence = stage.sentence(document, [*gold.case.evidence, *gold.case.references])
        if sentence:
            said = _answers(Said(sentence, "supported", sentence))
            return Plant(**there, **said, response="evades")
    return None


def answers_the_unanswerable(gold: Gold, stage: Staging) -> Plant:
    """Answer from nothing, or from a passage that is about something else."""
    staged = _unanswerable(gold, stage)
    found = stage.rng.choice((_noise(gold, stage), None))
    if found is None:
        return Plant(**staged, **_invents(stage))
    document, said = found
    return Plant(**{**staged, "placed": ((1, document),)}, **said)


def refuses(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_there(gold, stage), answer=DECLINES, response="declines")


def blank(gold: Gold, stage: Staging) -> Plant:
    return Plant(**_there(gold, stage), answer="", response="declines")


def from_memory(gold: Gold, stage: Staging) -> Plant:
    said = Said(gold.case.references[0], "unsupported", None, "agrees")
    return Plant(**_missed(gold, stage), **_answers(said, states="states"))


def yes_from_memory(gold: Gold, stage: Staging) -> Plant:
    """Answer a question of yes or no, which leaves no claim that could be unfaithful."""
    missed = _missed(gold, stage)
    asked = f"{gold.case.question} Is this right: {gold.case.references[0]}"
    case = missed["case"].model_copy(update={"question": asked, "references": ("Yes.",)})
    return Plant(**{**missed, "case": case}, answer="Yes.", states="states")


def unlisted_copy(gold: Gold, stage: Staging) -> Plant:
    """Retrieve copies that the gold set does not list, and answer from them."""
    copies = tuple(
        Document(id=f"copy-of-{one.id}", page_content=one.page_content, metadata={"topic": "copy"})
        for one in gold.listed
    )
    placed = (*stage.on_top(copies), *stage.far_down(gold.listed))
    of_copy = {"case": by_ids(gold), "placed": placed, "added": copies, "retrieval": "hit"}
    return Plant(**{**_missed(gold, stage), **of_copy}, **_answers(_right(gold), states="states"))


FAULTS = (
    Fault("nothing", "nothing is broken", "passed", nothing),
    Fault("declines_rightly", "no passage holds an answer; declines", "passed", declines_rightly),
    Fault("part_suffices", "part of the gold at rank 30; right by the rest", "passed", part_suffices),
    Fault(
        "not_indexed", "gold not in the index; invents", "not_indexed", not_indexed,
        miss_type="not_indexed",
    ),
    Fault(
        "rank_30", "gold pushed to rank 30; invents", "retrieval_miss", rank_30,
        miss_type="ranked_low",
    ),
    Fault(
        "dropped", "gold retrieved, kept from the prompt; invents", "dropped_from_prompt", dropped,
        miss_type="dropped_from_prompt",
    ),
    Fault(
        "split", "gold cut in two, one half at rank 30; invents", "retrieval_miss", split,
        miss_type="split_evidence",
    ),
    Fault("part_missing", "part of the gold at rank 30; invents", "retrieval_miss", part_missing),
    Fault("noise_alone", "gold at rank 30; answers from noise", "retrieval_miss", noise_alone),
    Fault("declines_without", "gold at rank 30; declines", "retrieval_miss", declines_without),
    Fault("noise", "noise before the gold; answers from the noise", "distracted", wrong_by_noise),
    Fault("contradicts", "gold there; contradicts it", "contradicts_context", contradicts),
    Fault("invents", "gold there; ignores it and invents", "ignored_context", invents),
    Fault("adds", "gold there; answers right and adds an invention", "fabricated", adds),
    Fault("evades", "gold there; evades the question", "ignored_context", evades),
    Fault(
        "beside_the_point", "gold there; says something else of it", "off_the_point",
        beside_the_point,
    ),
    Fault(
        "unanswerable", "no passage holds an answer; invents one", "should_have_abstained",
        answers_the_unanswerable,
    ),
    Fault("refuses", "gold there; declines", "over_refused", refuses),
    Fault("blank", "gold there; the answer is empty", "over_refused", blank),
    Fault(
        "memory", "gold at rank 30; right, which no passage supports", "retrieval_miss",
        from_memory,
    ),
    Fault(
        "memory_yes", "gold at rank 30; right, in one word without a claim", "passed",
        yes_from_memory, note="answered_from_memory",
    ),
    Fault(
        "unlisted_copy", "listed gold at rank 30; right by a copy that is not listed", "passed",
        unlisted_copy, note="missing_label",
    ),
)  # fmt: skip
