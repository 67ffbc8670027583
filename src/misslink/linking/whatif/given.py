"""What what-if is given to search, held against the run before anything is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.errors import InputError
from misslink.linking.pool import Pool
from misslink.linking.whatif.today import Today
from misslink.types import Passage, Run

__all__ = ["checked_corpus", "texts_known"]

# An index may well lack some of what is needed. One that lacks most of it is another corpus, in
# which every option would look harmful.
_MOST_LACKING = 0.5
_QUESTIONS = "The corpus is searched with the questions as the gold set has them."


def checked_corpus(
    today: Today, corpus: Sequence[Passage]
) -> tuple[tuple[Passage, ...], list[str]]:
    """The corpus' passages with a text, each id once, and what to know of them.

    Raises
    ------
    InputError
        It holds no text, or lacks more than half of the passages that the gold set names.
    """
    pool = Pool(today.traces, corpus)
    if not pool.passages:
        raise InputError("the corpus holds no text; give one with texts")
    needed = {
        id_
        for case in today.cases
        if not any(case.evidence.values())
        for id_ in (
            [one for group in case.relevant_any for one in group]
            or [name for name, grade in case.relevant.items() if grade > 0]
        )
    }
    lacking = needed - pool.place.keys()
    if len(lacking) > _MOST_LACKING * len(needed):
        count = "none" if lacking == needed else f"only {len(needed) - len(lacking)}"
        raise InputError(
            f"the corpus holds {count} of the {len(needed)} passages that the gold set names (it "
            f"lacks '{min(lacking)}'); give the corpus that the app searches, with the same ids"
        )
    notes = []
    if lacking:
        notes.append(
            f"The corpus lacks {len(lacking)} of the {len(needed)} passages that the gold set "
            "names; no option can find them."
        )
    if not (pool.knows_ids or pool.knows_texts):
        notes.append("The corpus does not hold all that the app retrieved; it may be another one.")
    return pool.passages, [*notes, _QUESTIONS]


def texts_known(run: Run, corpus: Sequence[Passage] | None) -> Mapping[str, Passage]:
    """Every passage with a text that the corpus or a trace of the run holds, by id."""
    seen = [one for trace in run.traces for one in (*trace.retrieved, *trace.deeper)]
    return {one.id: one for one in (*seen, *(corpus or ())) if one.text}
