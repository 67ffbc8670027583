"""What the run's own retriever did, as every option is held against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from misslink.errors import InputError
from misslink.retrieval import outcome, why_unmeasured
from misslink.types import Case, Link, Passage, Run, Trace

__all__ = ["CHARACTERS_A_TOKEN", "Today", "Tried", "tokens"]

CHARACTERS_A_TOKEN = 4  # of English text, the customary estimate where no tokenizer is at hand


@dataclass(frozen=True)
class Today:
    """A run's cases in order, each with its trace and its link.

    Parameters
    ----------
    cases, traces, links : sequence, of equal length
    k : int
        The run's cut-off.
    width : int
        How many passages the answer is written from: the most frequent number.
    listed : int
        How many passages the retriever gives: the most frequent number.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    links: tuple[Link, ...]
    k: int
    width: int
    listed: int

    @classmethod
    def of(cls, run: Run) -> Today:
        """Read it off a run; InputError where a case of it has no trace or no link."""
        k = run.summary.get("k")
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError("the run's summary.json has no k; evaluate the app again")
        traces = {trace.case_id: trace for trace in run.traces}
        links = {link.case_id: link for link in run.links}
        for case in run.cases:
            if case.id not in traces or case.id not in links:
                raise InputError(f"the run has no trace or no link of case '{case.id}'")
        mine = [traces[case.id] for case in run.cases]
        return cls(
            cases=run.cases,
            traces=tuple(mine),
            links=tuple(links[case.id] for case in run.cases),
            k=k,
            width=_usual((len(trace.context(k)) for trace in mine), k),
            listed=_usual((len(trace.retrieved) for trace in mine), k),
        )

    def misses(self) -> tuple[bool | None, ...]:
        """As of `Tried`, for what the run's own retriever gave."""
        return Tried(self.cases, self.traces, self.width).misses()

    def cutoff(self, width: int) -> int:
        """The run's k, scaled to a context of `width` passages in place of today's."""
        return max(1, round(self.k * width / self.width))


@dataclass(frozen=True)
class Tried:
    """What an option's retriever gives.

    Parameters
    ----------
    cases : sequence of Case
        Today's, in the same order; another chunking may ask for texts in place of ids.
    traces : sequence of Trace
        One a case, best first; ``unmeasured`` says why a case was not measured.
    width : int
        How many of the passages the answer would be written from.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    width: int

    def misses(self) -> tuple[bool | None, ...]:
        """Whether no needed passage is among the first `width`; None: none needed, or unknown."""
        return tuple(
            missed(case, trace, self.width)
            for case, trace in zip(self.cases, self.traces, strict=True)
        )


def missed(case: Case, trace: Trace, width: int) -> bool | None:
    """Whether none of what a case needs is among the first passages, whatever reached a prompt."""
    found = outcome(case, trace.model_copy(update={"prompted": None}), width).retrieval
    return None if found in {"none_needed", "unknown"} else found == "miss"


def tokens(passages: Iterable[Passage]) -> float | None:
    """About how many tokens the passages have together; None where none has a text."""
    texts = [passage.text for passage in passages]
    if texts and not any(texts):
        return None
    return sum(map(len, texts)) / CHARACTERS_A_TOKEN


def unmeasured(trace: Trace, reason: str) -> Trace:
    """A trace of a case that an option could not be tried on; the run's own reason comes first."""
    return Trace(case_id=trace.case_id, unmeasured=why_unmeasured(trace) or reason)


def _usual(counts: Iterable[int], otherwise: int) -> int:
    """The most frequent of the counts above 0, of several the largest."""
    seen = Counter(count for count in counts if count)
    return max(seen, key=lambda count: (seen[count], count), default=otherwise)
