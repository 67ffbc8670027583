"""What a replay found, counted: the document that ``replay.json`` holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.linking.replay.fraction import causal_fraction
from misslink.linking.replay.outcomes import Outcome
from misslink.linking.replay.records import GOOD_MISS, INTERVENTIONS, Record
from misslink.linking.replay.rerun import Rerunner
from misslink.manifest import shown_path
from misslink.stats import attributable_fraction, proportion
from misslink.types import Estimate, Run

__all__ = ["Replays", "document"]


@dataclass(frozen=True)
class Replays:
    """A run, how its answers turned out, and the records of the replayed cases.

    ``otherwise`` says what tells the judging of the replay from that of the run, if anything;
    ``kept`` counts the records that come from earlier replays alone.
    """

    run: Run
    observed: Mapping[str, Outcome]
    records: Sequence[Record]
    again: Rerunner
    sample: int
    seed: int
    otherwise: str | None
    app: str | None
    kept: int


def document(replays: Replays) -> dict[str, Any]:
    """Return what ``replay.json`` holds.

    Every share is over the replayed cases of its cause: flaky ones and those whose answer stayed
    the same count as not confirmed and as not turned good, and are counted apart.
    """
    run = replays.run
    usable = [record for record in replays.records if record.skipped is None]
    flips = [bool(record.flaky) for record in usable]
    spent = getattr(replays.again.judge, "usage", None)
    usage: dict[str, Any] = spent() if spent else {}
    asked = {"generations": replays.again.generated, "generations_kept": replays.again.reused}
    table = _table(replays)
    return {
        "run": run.summary.get("run"),
        "app": shown_path(replays.app) if replays.app else run.manifest.get("app"),
        "judge": replays.again.judge.name,
        "sample": replays.sample,
        "cases_kept": replays.kept,
        "seed": replays.seed,
        "causes": {
            cause: _of_cause(cause, names, replays, usable)
            for cause, names in INTERVENTIONS.items()
        },
        "flaky": _share(sum(flips), len(flips)),
        "causal_attributable_fraction": _causal(replays, usable, table).model_dump(),
        "observed_attributable_fraction": attributable_fraction(
            *table, seed=replays.seed
        ).model_dump(),
        "cases": [record.line() for record in usable],
        "usage": {**usage, **asked},
        "skipped": [
            {"case_id": record.case_id, "cause": record.cause, "reason": record.skipped}
            for record in replays.records
            if record.skipped is not None
        ],
    }


def _of_cause(
    cause: str, names: Sequence[str], replays: Replays, usable: Sequence[Record]
) -> dict[str, Any]:
    mine = [record for record in usable if record.group == cause]
    interventions = {}
    for name in names:
        # A flaky one was not tried further, or proves nothing where it was.
        turned = [False if one.flaky else one.mended(name) for one in mine]
        known = [one for one in turned if one is not None]
        interventions[name] = _share(sum(known), len(known))
    return {
        "cases": sum(link.cause == cause for link in replays.run.links),
        "contributing": sum(one.cause != cause for one in mine),
        "replayed": len(mine),
        "flaky": sum(bool(record.flaky) for record in mine),
        "same_answer": sum(record.same_answer for record in mine),
        "confirmed": _share(sum(bool(record.confirmed) for record in mine), len(mine)),
        "interventions": interventions,
    }


def _share(count: int, n: int) -> dict[str, Any]:
    return (proportion(count, n) if n else Estimate.missing("no case was replayed")).model_dump()


def _table(replays: Replays) -> tuple[int, int, int, int]:
    """Misses and hits with bad and good answers, among cases that need a passage.

    As the table of the link, but that an answer which is wrong is bad too.
    """
    answerable = {case.id for case in replays.run.cases if case.expects_answer is not False}
    counts = Counter(
        (link.retrieval == "miss", replays.observed[link.case_id].bad)
        for link in replays.run.links
        if link.retrieval in {"miss", "partial", "hit"} and link.case_id in answerable
    )
    return counts[True, True], counts[True, False], counts[False, True], counts[False, False]


def _causal(
    replays: Replays, usable: Sequence[Record], table: tuple[int, int, int, int]
) -> Estimate:
    if replays.otherwise is not None:
        return Estimate.missing(
            f"{replays.otherwise}; the two cannot be counted together: evaluate the run again, "
            "then replay"
        )
    pairs: dict[bool, list[tuple[bool, bool]]] = {True: [], False: []}
    for record in usable:
        pair = record.pair()
        if pair is not None and record.group in {"retrieval_miss", GOOD_MISS}:
            pairs[record.group == GOOD_MISS].append(pair)
    return causal_fraction(table, pairs[False], pairs[True], seed=replays.seed)
