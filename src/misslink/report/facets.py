"""How many cases of a whole run each value of a filter has, whichever of them the page holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from misslink.report.labelled import labelled
from misslink.report.places import CORRECT
from misslink.types import Run

__all__ = ["counted"]


def counted(run: Run) -> dict[str, dict[str, int]]:
    """Count the cases of `run` by filter and value.

    Parameters
    ----------
    run : Run
        Any; of one without cases every filter has no value.

    Returns
    -------
    dict of str to dict of str to int
        By filter (as `misslink.report.places.FILTERS` calls those that choose a value), the most
        frequent value first; a case counts once for each of its values, and for none where it has
        none.
    """
    known = {case.id for case in run.cases}
    by_case = {link.case_id: link for link in run.links if link.case_id in known}
    links = by_case.values()
    bad = {(one.case_id, one.metric) for one in run.verdicts if one.label is False}
    return {
        "cause": _counts(link.cause for link in links),
        "retrieval": _counts(link.retrieval for link in links),
        "answer": _counts(link.answer for link in links),
        "correct": _counts(CORRECT[link.correct] for link in links),
        "subtype": _counts(
            subtype for link in links for subtype in {one.subtype for one in link.missed}
        ),
        "category": _counts(case.category for case in run.cases),
        "tier": _counts(case.tier for case in run.cases),
        "tag": _counts(f"{name}:{tag}" for case in run.cases for name, tag in case.tags.items()),
        "metric": _counts(metric for case_id, metric in sorted(bad) if case_id in known),
        "people": _counts(_stands(run, known)),
    }


def _stands(run: Run, known: set[str]) -> Iterator[str]:
    """How the judge's calls stand to those of people, each once a case."""
    for case_id, said in labelled(run).items():
        if case_id in known:
            yield from {one.stands for one in said.values()}


def _counts(values: Iterable[str | None]) -> dict[str, int]:
    """The most frequent first, of equals in the order of the alphabet."""
    found = Counter(value for value in values if value)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
