"""Questions that copy the passage they are to find, so that finding it proves little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.finding import Finding
from misslink.goldset.checking.grounds import Grounds
from misslink.goldset.generating.copying import copied
from misslink.stats import proportion
from misslink.types import Case

__all__ = ["leakage"]


def leakage(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find questions worded as their relevant passages are.

    A question copies from six words in a row on, or where 80 % of its own words (stems, without
    names and numbers, at least four) stand in its passages: the lines from which on
    `misslink goldset generate` has a question written anew. Without a corpus the evidence stands
    for the passages. The share of all questions that copy, with its Wilson interval, is among the
    numbers of each finding.
    """
    found: list[tuple[Case, int, str, float | None]] = []
    measured = 0
    for case in gold.cases:
        texts = _relevant(case, grounds)
        if not texts:
            continue
        measured += 1
        took = copied(case.question, texts)
        # Of a text and another, the words of both together are not what any one of them gave.
        shares = [copied(case.question, [text]).share for text in texts]
        share = max((one for one in shares if one is not None), default=None)
        if took.run >= grounds.lines.longest_run or (
            share is not None and share >= grounds.lines.shared_words
        ):
            found.append((case, took.run, took.words, share))
    rate = proportion(len(found), measured).model_dump()
    return [_told(*one, rate, grounds) for one in found]


def _told(
    case: Case, run: int, words: str, share: float | None, rate: object, grounds: Grounds
) -> Finding:
    parts = []
    if run >= grounds.lines.longest_run:
        parts.append(f"takes {run} words in a row from its passage ('{words}')")
    if share is not None and share >= grounds.lines.shared_words:
        parts.append(f"has {share:.0%} of its own words from {'there' if parts else 'its passage'}")
    limits = {"run": grounds.lines.longest_run, "share": grounds.lines.shared_words}
    return Finding(
        "leakage",
        "warning",
        f"the question {' and '.join(parts)}: words alone find it",
        "ask it in words that somebody uses who has not read the passage",
        (case.id,),
        {"run": run, "words": words, "share": share, "from": limits, "of_all": rate},
    )


def _relevant(case: Case, grounds: Grounds) -> list[str]:
    """The texts that answer a case: what stands in the corpus, else its evidence."""
    evidence = [text for text, grade in case.evidence.items() if grade > 0]
    if grounds.corpus is None:
        return evidence
    wanted: Iterable[str] = dict.fromkeys(
        [
            *(name for name, grade in case.relevant.items() if grade > 0),
            *(name for names in case.relevant_any for name in names),
        ]
    )
    known = grounds.corpus.by_id
    texts = [known[name].text for name in wanted if name in known]
    for text in evidence:
        holder = next(iter(grounds.corpus.holders(text)), None)
        texts.append(text if holder is None else holder.text)
    return [text for text in dict.fromkeys(texts) if text.strip()]
