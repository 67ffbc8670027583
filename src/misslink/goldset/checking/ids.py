"""Relevant passages by id: whether the corpus has them, and still says there what it said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.evidence import MEANING
from misslink.goldset.checking.finding import Finding, Proposal, Severity
from misslink.goldset.checking.grounds import Grounds
from misslink.goldset.checking.texts import Texts
from misslink.text import fold
from misslink.types import Case

__all__ = ["changed", "unreachable"]

_LIKE = 60  # per cent of characters that an id has in common with one that may have been meant
_SHOWN = 3  # ids in a message
_MISSPELT = 100  # cases; where more have lost an id, none of it is a slip of the pen
_UNLIKE = 0.5
_NEAR = 20  # ids that are looked at for one with the same numbers
_NUMBER = re.compile(r"\d+")


def unreachable(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find cases whose relevant ids the corpus does not have.

    It is an error where the case can then not be found whole: an id without which no alternative
    is complete. Where evidence decides, or another alternative is whole, it is a warning, and of
    passages judged not relevant a note. With the earlier corpus, the passage that has the lost
    one's text now is proposed.
    """
    corpus = grounds.corpus
    if corpus is None:
        return []
    named = [case for case in gold.cases if _ids(case)]
    strange = [case for case in named if not any(name in corpus.by_id for name in _ids(case))]
    if len(named) > 1 and len(strange) == len(named) and grounds.before is None:
        example = min(_ids(case)[0] for case in named)
        own = next(iter(corpus.by_id), "")
        return [
            Finding(
                "unreachable",
                "error",
                f"the corpus has none of the ids of the gold set; that has '{example}', and the "
                f"corpus '{own}'",
                "give the corpus that the gold set is of, with the ids its retriever tells",
                tuple(sorted(case.id for case in named)),
            )
        ]
    lost = sum(any(name not in corpus.by_id for name in _ids(case)) for case in named)
    hints = lost <= _MISSPELT
    return [found for case in named for found in _of_case(case, corpus, grounds, hints)]


def changed(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find cases whose relevant passage kept its id and not its text; needs the earlier corpus."""
    corpus, before = grounds.corpus, grounds.before
    if corpus is None or before is None:
        return []
    return [found for case in gold.cases for found in _edited(case, corpus, before)]


def _ids(case: Case) -> list[str]:
    alternatives = (name for names in case.relevant_any for name in names)
    return list(dict.fromkeys([*case.relevant, *alternatives]))


def _of_case(case: Case, corpus: Texts, grounds: Grounds, hints: bool) -> Iterator[Finding]:
    lost = [name for name in _ids(case) if name not in corpus.by_id]
    alternatives = {name for names in case.relevant_any for name in names}
    idle = [name for name in lost if case.relevant.get(name) == 0 and name not in alternatives]
    needed = [name for name in lost if name not in idle]
    if needed:
        yield _lost(case, needed, corpus, grounds, hints)
    if idle:
        yield Finding(
            "unreachable",
            "note",
            f"the corpus does not have {_listed(idle)}, judged not relevant",
            "nothing needs to be done; the grade counts for nothing any more",
            (case.id,),
            {"ids": sorted(idle)},
        )


def _severity(case: Case, corpus: Texts) -> Severity:
    if any(grade > 0 for grade in case.evidence.values()):
        return "warning"  # the evidence decides, not the id
    whole = (all(name in corpus.by_id for name in names) for names in case.relevant_any)
    return "warning" if any(whole) else "error"


def _lost(case: Case, ids: Sequence[str], corpus: Texts, grounds: Grounds, hints: bool) -> Finding:
    proposals = [p for name in ids if (p := _proposed(case, name, corpus, grounds.before))]
    message = f"the corpus does not have {_listed(ids)}"
    stale = grounds.before is not None and all(name in grounds.before.by_id for name in ids)
    if stale:
        message += ", which the earlier one had"
    if proposals:
        first = proposals[0]
        way_out = f"take '{first.after}' for '{first.before}' ({first.score:.0%} alike)"
        way_out += f" only if it answers the question: {first.meaning}" if first.meaning else ""
        way_out += f", and see {len(proposals) - 1} more with --json" if proposals[1:] else ""
    else:
        way_out = (hints and _nearest_id(ids, corpus)) or "label the case anew on this corpus"
    return Finding(
        "stale" if stale else "unreachable",
        _severity(case, corpus),
        message,
        way_out,
        (case.id,),
        {"ids": sorted(ids)},
        tuple(proposals),
    )


def _proposed(case: Case, name: str, corpus: Texts, before: Texts | None) -> Proposal | None:
    """The passage that has the text of the lost one now."""
    old = None if before is None else before.by_id.get(name)
    if old is None or not old.text.strip():
        return None
    near = corpus.nearest(old.text, whole=True)
    if near is None or near.score < _UNLIKE:
        return None
    meaning = None if near.same_facts else MEANING
    own = near.passage.id
    return Proposal(case.id, "relevant", name, own, own, near.score, meaning)


def _nearest_id(ids: Sequence[str], corpus: Texts) -> str:
    """The id that may have been meant; with other numbers it names another passage."""
    from rapidfuzz import fuzz, process

    for name in ids:
        near = process.extract(
            name, corpus.by_id.keys(), scorer=fuzz.ratio, score_cutoff=_LIKE, limit=_NEAR
        )
        for found, _, _ in near:
            if _NUMBER.findall(found) == _NUMBER.findall(name):
                return f"for '{name}' did you mean '{found}'?"
    return ""


def _edited(case: Case, corpus: Texts, before: Texts) -> Iterator[Finding]:
    from rapidfuzz import fuzz

    if any(grade > 0 for grade in case.evidence.values()):
        return  # its words are looked up in the text as it is
    alternatives = {name for names in case.relevant_any for name in names}
    for name in _ids(case):
        old, new = before.by_id.get(name), corpus.by_id.get(name)
        needed = case.relevant.get(name, 0) > 0 or name in alternatives
        if old is None or new is None or not needed:
            continue
        was, is_now = fold(old.text), fold(new.text)
        if was != is_now:
            score = fuzz.ratio(was, is_now) / 100
            yield Finding(
                "changed",
                "warning",
                f"the text of its relevant passage '{name}' has changed ({score:.0%} alike)",
                "read whether it still answers the question",
                (case.id,),
                {"id": name, "alike": score},
            )


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in ids[:_SHOWN])
    return shown + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")
