"""What to do next: the few actions that most failed cases would gain from, with those cases.

Each action rests on something the run has measured. Actions are chosen one after the other by how
many cases they add to those that are already taken care of, so that three of them are not three
names for the same cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from misslink.report.documents import estimate_in, mapping_in, rows_in, text_in
from misslink.report.glossary import CAUSES, FAILURES, SUBTYPES
from misslink.report.people_next import people_steps
from misslink.report.places import case_numbers, view
from misslink.report.step import Step
from misslink.report.whatif import whatif
from misslink.report.wording import in_short, plural, shown
from misslink.types import Link, Run, Subtype

__all__ = ["Step", "next_steps", "nothing_next"]

_STEPS = 3
_FEW = 5  # cases under which a pattern may well be chance
_COVERED = 0.9  # share of verdicts that came, under which what failed is the first thing to mend
_CORE = ("faithfulness", "correctness")  # the verdicts that causes rest on
_ERROR = 120  # characters of an error that are quoted


def next_steps(run: Run) -> tuple[Step, ...]:
    """Up to three things to do, best first; none where the run gives no reason for any.

    Parameters
    ----------
    run : Run

    Returns
    -------
    tuple of Step
        Ordered by the cases that each adds to the ones before it; of equals the better founded
        goes first (a measured option before advice by kind of miss, before advice by cause). What
        people have still to say of the judge mends no case and comes last.
    """
    places = case_numbers(run.cases)
    waiting = [step for kind in _KINDS for step in kind(run, places)]
    chosen: list[Step] = []
    done: set[int] = set()
    while waiting and len(chosen) < _STEPS:
        best = max(waiting, key=lambda step: len(set(step.cases) - done))  # the first of equals
        if not set(best.cases) - done:
            break
        chosen.append(best)
        done.update(best.cases)
        waiting.remove(best)
    return (*chosen, *people_steps(run, places))[:_STEPS]


def nothing_next(run: Run) -> str:
    """Say why there is nothing to do, for a run of which `next_steps` says nothing."""
    if not run.cases:
        return "Nothing can be advised: this run holds no cases."
    if all(one.cause == "undecided" for one in run.links):
        return "Nothing can be advised: of no case is it decided whether it failed."
    few = ", and they are few: nothing found is not nothing there"
    held = plural(len(run.cases), "case")
    return f"Nothing: none of {held} failed{few if len(run.cases) < 10 * _FEW else ''}."


def _errors(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """The app raised, or what it retrieved could not be seen."""
    failed = [one for one in run.traces if one.error is not None and one.case_id in places]
    if failed:
        cases = _numbers((one.case_id for one in failed), places)
        often = _most_often((one.error for one in failed), ":")
        why = f"{_of(len(cases), len(run.cases))} ended in an error, {often}"
        yield Step("Mend the errors that the app raised.", why, cases, view(ids=cases))
    unseen = [
        one
        for one in run.traces
        if one.unmeasured is not None and one.error is None and one.case_id in places
    ]
    if unseen:
        cases = _numbers((one.case_id for one in unseen), places)
        often = _most_often((one.unmeasured for one in unseen), " because")
        why = f"Of {_of(len(cases), len(run.cases))} it is not known what was retrieved, {often}"
        yield Step("Let the retrieval of every case be seen.", why, cases, view(ids=cases))


def _verdicts(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """Verdicts that failed, where so many did that the numbers rest on the rest."""
    told, cases = [], set[int]()
    for metric in _CORE:
        said = [one for one in run.verdicts if one.metric == metric and one.status != "skipped"]
        failed = [one for one in said if one.status == "failed"]
        if said and 1 - len(failed) / len(said) < _COVERED:
            told.append(f"{metric} {_of(len(failed), len(said), 'verdict')}")
            cases |= set(_numbers((one.case_id for one in failed), places))
    if cases:
        chosen = tuple(sorted(cases))
        why = f"Failed: {'; '.join(told)}. The numbers rest on the other cases alone."
        action = "Ask the judge again about verdicts that failed, with another `--ledger`."
        yield Step(action, why, chosen, view(ids=chosen))


def _option(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """The best other way to retrieve that is detectably better than today's."""
    found = whatif(run)
    rows = found.options if found else ()
    best = next((one for one in rows if one.main and one.main.verdict == "better"), None)
    if best is None or best.main is None:
        return
    said = best.main
    links, filters = _lost(run)
    cases = _numbers((one.case_id for one in links if one.retrieval == "miss"), places)
    avoided = best.avoided
    forecast = f"; forecast: {avoided.brief} unfaithful answers avoided" if avoided.measured else ""
    why = (
        f"{said.option.name} goes from {said.today.value} to {said.option.brief} "
        f"({said.difference.brief}, {said.p} after Holm); {best.moved}{forecast}.{_few(cases)}"
    )
    name = in_short(best.name, _ERROR)
    what = f": {in_short(best.what, _ERROR).rstrip('.')}" if best.what else ""
    fragment = view(**{**filters, "retrieval": "miss"})
    yield Step(f"Retrieve by {name}{what}.", why, cases, fragment)


def _missed(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """Advice by why the passages were missed, of the cases that failed by it."""
    from misslink.linking.advice import recommendation  # its room brings numpy

    lost, filters = _lost(run)
    groups: dict[Subtype | None, list[Link]] = {}
    for link in lost:
        for subtype in dict.fromkeys(one.subtype for one in link.missed) or (None,):
            groups.setdefault(subtype, []).append(link)
    if not groups.keys() - {None}:
        return  # nothing says why: the advice by cause is as good
    for subtype, links in groups.items():
        cases = _numbers((one.case_id for one in links), places)
        action, _, reason = recommendation(subtype).partition(": ")
        because = f" {reason[:1].upper()}{reason[1:]}" if reason else ""
        label = f"“{SUBTYPES[subtype]}”" if subtype else "of a kind that is not known"
        counted = f"Misses {label}: {_share(run, cases)}."
        why = f"{counted}{because}{_replayed(run, 'retrieval_miss')}{_few(cases)}"
        fragment = view(**filters, subtype=subtype) if subtype else view(ids=cases)
        yield Step(action.rstrip(".") + ".", why, cases, fragment)


def _lost(run: Run) -> tuple[list[Link], dict[str, str]]:
    """The links of cases that failed by a miss, and the filter of the page that shows them.

    Where no judge was asked nobody knows what failed: all cases of which nothing needed arrived.
    """
    if run.manifest.get("judge") == "none":
        return [one for one in run.links if one.retrieval == "miss"], {"retrieval": "miss"}
    missed = [one for one in run.links if one.cause == "retrieval_miss"]
    return missed, {"cause": "retrieval_miss"}


def _causes(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """Advice by cause; that of a miss only where no kind of miss says more."""
    told = any(one.subtype for link in _lost(run)[0] for one in link.missed)
    groups: dict[str, list[Link]] = {}
    for link in run.links:
        if link.cause in FAILURES and not (told and link.cause == "retrieval_miss"):
            groups.setdefault(link.cause, []).append(link)
    for cause in (one for one in CAUSES if one in groups):
        words = CAUSES[cause]
        cases = _numbers((one.case_id for one in groups[cause]), places)
        action, _, more = words.action.partition(". ")
        why = f"{words.label}: {_share(run, cases)}.{' ' if more else ''}{more}"
        why += _replayed(run, cause) + _few(cases)
        yield Step(f"{action.rstrip('.')}.", why, cases, view(cause=cause))


def _holes(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """Passages that the gold set may lack: the numbers are too low by them."""
    document = mapping_in(mapping_in(run.summary.get("diagnosis")).get("gold_holes"))
    rows = rows_in(document.get("holes"))
    by_cause = {one.case_id for one in run.links if one.cause == "gold_hole"}
    ids = by_cause | {text_in(row, "case_id") for row in rows}
    cases = _numbers(ids, places)
    if cases:
        counted = f"{plural(len(rows), 'passage')} in " if rows else ""
        why = (
            f"{counted}{_of(len(cases), len(run.cases))} answer the question by the judge's word "
            "and are not in the gold set; retrieval is better than its numbers if they do."
        )
        alone = cases == _numbers(by_cause, places)
        action = (
            "Read the passages that the gold set may lack, and add those that answer "
            "(`misslink diagnose RUN --holes holes.jsonl`)."
        )
        yield Step(action, why, cases, view(cause="gold_hole") if alone else view(ids=cases))


def _undecided(run: Run, places: Mapping[str, int]) -> Iterator[Step]:
    """Cases that a judge was asked about, and that are not decided."""
    links = [one for one in run.links if one.cause == "undecided"]
    if not links or run.manifest.get("judge") == "none":
        return
    cases = _numbers({one.case_id for one in links}, places)
    often = _most_often((one.reason for one in links), ":")
    why = f"{_share(run, cases)} are undecided, {often}"
    action = "Read why cases are undecided, and label by hand those that matter."
    yield Step(action, why, cases, view(cause="undecided"))


# The better founded first.
_KINDS: tuple[Callable[[Run, Mapping[str, int]], Iterator[Step]], ...] = (
    _errors,
    _verdicts,
    _option,
    _missed,
    _causes,
    _holes,
    _undecided,
)


def _numbers(ids: Iterable[str], places: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted({places[one] for one in ids if one in places}))


def _of(count: int, total: int, what: str = "case") -> str:
    return f"{count:,} of {plural(total, what)}"


def _most_often(texts: Iterable[str | None], sign: str) -> str:
    """The text that is there most often and how often, behind a sign."""
    text, count = Counter(in_short(text or "", _ERROR) for text in texts).most_common(1)[0]
    return f"most often ({count:,}){sign} {text}"


def _share(run: Run, cases: tuple[int, ...]) -> str:
    """How many of the linked cases, with the interval of their share."""
    from misslink.stats import proportion

    share = shown("share", proportion(len(cases), len(run.links)))
    return f"{_of(len(cases), len(run.links))} ({share.brief})"


def _few(cases: tuple[int, ...]) -> str:
    if len(cases) >= _FEW:
        return ""
    return f" Only {plural(len(cases), 'case')}: read before you act."


def _replayed(run: Run, cause: str) -> str:
    """What replay found of a cause, where it was replayed."""
    of_cause = mapping_in(mapping_in((run.replay or {}).get("causes")).get(cause))
    estimate = estimate_in(of_cause, "confirmed")
    if estimate.value is None:
        return ""
    found = f" Replay: a mended context mended {shown('confirmed', estimate).text}"
    return f"{found}{'' if estimate.value else ', so that this alone may not do'}."
