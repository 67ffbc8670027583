"""Citation correctness: does a cited passage say what it is cited for?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.generation.citations import Statement, cited_statements
from misslink.judging.metric import Finding, Subject, failed
from misslink.judging.protocol import Ask, Reply
from misslink.judging.quotes import verified
from misslink.registry import judged_metrics
from misslink.types import Claim, Evidence, Passage

__all__ = ["CitationCorrectness", "CitationSaid", "Citations"]


class CitationSaid(BaseModel):
    """Whether a passage supports the statement that cites it, both by number from 1."""

    model_config = ConfigDict(frozen=True)

    statement: int
    passage: int
    supported: Literal["yes", "no"]
    quote: str | None = None


class Citations(BaseModel):
    """What is said of an answer's citations."""

    model_config = ConfigDict(frozen=True)

    citations: tuple[CitationSaid, ...]


@dataclass(frozen=True)
class _Held:
    """A statement held against one passage it cites; ``supported`` None: the judge left it out.

    ``overruled``: the judge said that it is supported, and its quote did not hold.
    """

    supported: bool | None
    evidence: Evidence | None = None
    chance: float | None = None
    overruled: bool = False


_Said = tuple[CitationSaid, float | None]  # what is said of a pair, and P(supported)


class CitationCorrectness:
    """Share of the pairs of a statement and a passage it cites in which the passage supports it.

    With p pairs of which s are supported, it is s / p (citation precision). A citation of a passage
    that does not exist is a pair that is not supported, and so is one whose quote does not stand in
    the passage cited. A pair that the judge leaves out is unknown and in no share.
    ``parts['recall']`` is the share of the cited statements that at least one of their passages
    supports. The label is good when every pair is supported, its probability that of the least
    probable pair, where the judge gives probabilities. ``claims`` of the verdict are the cited
    statements. Statements without a citation do not count: see faithfulness.

    Skipped where the answer cites nothing. It costs one more question, and none where nothing that
    is cited exists. See `misslink.generation.citations` for what counts as a citation.

    Source: Gao et al., ALCE, EMNLP 2023 (citation recall and precision; there a statement's
    passages are held against it together, here each by itself).
    """

    name = "citation_correctness"
    level: Literal[2, 3] = 2
    reads_one_word = True  # of what cites nothing that exists, whatever the reply

    def ask(self, subject: Subject) -> Ask | str:
        """Ask of every pair, or why there is none."""
        shared = subject.grounded
        if isinstance(shared, str):
            return shared
        passages = _numbered(subject)
        statements = cited_statements(subject.answer, passages)
        if not statements:
            return "the answer cites no passage"
        number_of = _numbers(passages)
        cited = sorted({number_of[name] for each in statements for name in each.cited})
        if not cited:
            return shared  # which is asked anyhow: what is cited does not exist, whatever it says
        inputs = {
            "question": subject.case.question,
            "cited": {number: passages[number - 1].text for number in cited},
            "statements": [
                {"text": each.text, "passages": [number_of[name] for name in each.cited]}
                for each in statements
                if each.cited
            ],
        }
        return Ask.rendered(subject.prompts.load("citations"), inputs, Citations)

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the pairs that are supported by a quote that is there."""
        statements = cited_statements(subject.answer, _numbered(subject))
        held = _hold(subject, statements, reply)
        lost = [name for statement in statements for name in statement.lost]
        pairs = [pair for each in held for pair in each]
        known = [pair.supported for pair in pairs if pair.supported is not None]
        known += [False] * len(lost)
        if not known:
            return failed("the judge said nothing of any citation")
        recalls = [found for each in held if (found := _any_supports(each)) is not None]
        chances = [pair.chance for pair in pairs if pair.chance is not None]
        certain = bool(pairs) and not lost and len(chances) == len(pairs)
        return Finding(
            "scored",
            value=sum(known) / len(known),
            label=all(known),
            probability=min(chances) if certain else None,
            claims=tuple(
                _claim(statement, each) for statement, each in zip(statements, held, strict=True)
            ),
            parts={"recall": sum(recalls) / len(recalls) if recalls else None},
            reason=f"it cites what is no passage: {', '.join(lost)}" if lost else None,
        )


def _numbered(subject: Subject) -> Sequence[Passage]:
    """The passages as the app may have numbered them; all, where its prompt was not seen."""
    return subject.trace.retrieved if subject.trace.prompted is None else subject.context


def _numbers(passages: Sequence[Passage]) -> Mapping[str, int]:
    return {passage.id: number for number, passage in enumerate(passages, start=1)}


def _hold(
    subject: Subject, statements: Sequence[Statement], reply: Reply
) -> list[tuple[_Held, ...]]:
    """For each statement what was said of each passage it cites, the quotes looked up."""
    said: dict[tuple[int, int], list[_Said]] = {}
    if isinstance(reply.parsed, Citations):
        for place, item in enumerate(reply.parsed.citations):
            chance = reply.chance(f"citations.{place}.supported", "yes")
            said.setdefault((item.statement, item.passage), []).append((item, chance))
    passages = _numbered(subject)
    number_of, texts = _numbers(passages), {passage.id: passage.text for passage in passages}
    question, asked = subject.case.question, 0
    found = []
    for statement in statements:
        asked += bool(statement.cited)
        pairs = ((name, said.get((asked, number_of[name]), [])) for name in statement.cited)
        found.append(tuple(_pair(question, texts, statement, *pair) for pair in pairs))
    return found


def _pair(
    question: str, texts: Mapping[str, str], statement: Statement, name: str, said: Sequence[_Said]
) -> _Held:
    if not said:
        return _Held(supported=None)
    text, context = texts[name], list(texts.values())
    quotes = [
        verified(item.quote, text, statement.text, question, context=context)
        if item.supported == "yes" and item.quote
        else None
        for item, _ in said
    ]
    (_, chance), first = said[0], quotes[0]
    if first is None or None in quotes:  # of a pair said twice, both must hold
        # A probability of support without a quote is worth nothing.
        no = all(item.supported == "no" for item, _ in said)
        held_against = any(item.supported == "no" for item, _ in said)
        return _Held(supported=False, chance=chance if no else None, overruled=not held_against)
    evidence = Evidence(
        passage_id=name,
        quote=text[first.start : first.end],
        start=first.start,
        end=first.end,
        edits=first.edits,
    )
    return _Held(supported=True, evidence=evidence, chance=chance)


def _any_supports(pairs: Sequence[_Held]) -> bool | None:
    """Whether a passage supports a statement; None where none does and one is unknown."""
    if any(pair.supported for pair in pairs):
        return True
    return None if any(pair.supported is None for pair in pairs) else False


def _claim(statement: Statement, pairs: Sequence[_Held]) -> Claim:
    evidence = tuple(pair.evidence for pair in pairs if pair.evidence is not None)
    unknown = not evidence and any(pair.supported is None for pair in pairs)
    overruled = not evidence and any(pair.overruled for pair in pairs)
    notes = []
    if unknown:
        notes.append("the judge left a citation of it out")
    if overruled:
        notes.append("the judge's quote does not hold in the passage cited")
    if statement.lost:
        notes.append(f"it cites what is no passage: {', '.join(statement.lost)}")
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
