"""The three stages: rank metrics and a judge over a gold set, then simulated users."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from retrievers import NAMES, PASSAGES, Apps
from users import GIVES_THUMBS, Visit, is_satisfied, visits

import misslink
from misslink.io import is_run_folder
from misslink.live.assignment import Experiment
from misslink.live.experiment_report import ReportOptions, live_report
from misslink.live.log_store import LiveLog
from misslink.live.router import Router, ShadowOptions
from misslink.types import Case, Run

CONTROL = NAMES[0]
RANK = [f"recall@{PASSAGES}", f"ndcg@{PASSAGES}", "mrr"]
JUDGED = ["correct", "fully_faithful", "answer_relevance"]
PRIMARY = "task_done"
SHADOW, SPLIT = "shadow", "split"  # the two experiments in the log
SHADOWED = 200  # visits of the shadow experiment, each copied to both other retrievers
SHADOWS_S = 60.0  # how long to wait for the last of them
WORTH = 0.05  # the difference in task_done that is worth finding
LATENCY_MARGIN_S = 0.6  # that an answer may take longer than control's


def chosen(cases: Sequence[Case], count: int | None, seed: int) -> list[Case]:
    """`count` cases, of each category as nearly the same share as can be; None: all."""
    if count is None or count >= len(cases):
        return list(cases)
    by_category: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda case: case.id):
        by_category.setdefault(case.category or "", []).append(case)
    ranked = []
    for category, members in sorted(by_category.items()):
        random.Random(f"{seed} {category}").shuffle(members)
        ranked += [((place + 0.5) / len(members), case.id) for place, case in enumerate(members)]
    kept = {name for _, name in sorted(ranked)[:count]}
    return [case for case in cases if case.id in kept]


def offline(
    apps: Apps, cases: Sequence[Case], out: Path, *, judge: str, seed: int
) -> dict[str, Run]:
    """Stages 1 and 2: every app over the gold set, one run folder each."""
    runs = {}
    for name in NAMES:
        say(f"{name}: {len(cases)} questions, judged by {judge}")
        folder = out / "offline" / name
        runs[name] = misslink.evaluate(
            apps.chain(name),
            cases,
            judge=judge,
            k=PASSAGES,
            out=folder,
            cache=out / "cache.sqlite",
            seed=seed,
            overwrite=is_run_folder(folder),
        )
    return runs


def compared(runs: dict[str, Run], metrics: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Variant -> metric -> what ``misslink compare`` says of it against control.

    Paired, case by case; p-values by Holm over these metrics and both variants.
    """
    found = misslink.compare(*map(runs.__getitem__, NAMES), names=NAMES, metrics=metrics)
    _, *others = NAMES
    pairs = zip(others, found.document()["comparisons"], strict=True)
    return {name: one["metrics"] for name, one in pairs}


def live(apps: Apps, cases: Sequence[Case], log: Path, *, users: int, seed: int) -> None:
    """Stage 3: users ask, some of them shadowed, all of them split over the three apps."""
    for old in (log, Path(f"{log}-wal"), Path(f"{log}-shm")):
        old.unlink(missing_ok=True)  # of the last simulation
    coming = visits(cases, users, seed=seed)
    kept = LiveLog(log)
    say(f"{min(SHADOWED, len(coming))} requests, with both other retrievers in the shadow")
    asked = {name: apps.chain(name) for name in NAMES}
    hidden = {name: 1.0 for name in NAMES if name != CONTROL}
    experiment = Experiment(SHADOW, {CONTROL: 1}, shadow=hidden)
    # Room for all of them: here nobody waits, and none need be dropped.
    room = ShadowOptions(waiting=len(hidden) * SHADOWED)
    with Router(asked, experiment, log=kept, shadows=room) as router:
        for visit in coming[:SHADOWED]:
            router.invoke(visit.question, {"configurable": {"user_id": visit.user}})
        router.close(SHADOWS_S)
    say(f"{len(coming):,} requests of {users:,} users, split over the three")
    answering = {name: remembering(app) for name, app in asked.items()}
    experiment = Experiment(SPLIT, dict.fromkeys(NAMES, 1))
    with Router(answering, experiment, log=kept) as router:
        for number, visit in enumerate(coming):
            ask(router, experiment, visit, f"{SPLIT}-{number}")
    kept.close()


def remembering(app: Runnable[str, dict[str, Any]]) -> Runnable[str, dict[str, Any]]:
    """The app with a memory: a question asked before is not searched for again."""

    @functools.cache
    def answer(question: str) -> dict[str, Any]:
        return app.invoke(question)

    return RunnableLambda(answer)


def ask(router: Router, experiment: Experiment, visit: Visit, exposure: str) -> None:
    """One visit: the answer, what its user makes of it, and what the app logs of that."""
    config = {"configurable": {"user_id": visit.user, "misslink_exposure": exposure}}
    found = router.invoke(visit.question, config)
    variant = experiment.assign(visit.user).variant
    passages = [passage.page_content for passage in found["context"]]
    happy = is_satisfied(visit, variant, passages, found["answer"])
    router.feedback("latency", visit.latency_s(variant), exposure=exposure)
    router.feedback("task_done", float(happy), exposure=exposure)
    if visit.thumbs < GIVES_THUMBS:
        router.feedback("thumbs", float(happy), exposure=exposure)


def reported(log: Path, out: Path, *, users: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What ``misslink live report`` says of the split, and of the shadows."""
    options = ReportOptions(
        control=CONTROL,
        primary=PRIMARY,
        guardrails=[f"latency:at_most={LATENCY_MARGIN_S}"],
        offline=[f"{name}={out / 'offline' / name}" for name in NAMES],
        tuned_for=users,
        detect=WORTH,
    )
    split = live_report(log, SPLIT, options)
    return split, live_report(log, SHADOW, ReportOptions(control=CONTROL, k=PASSAGES))


def say(words: str) -> None:
    """Tell how far it is, on stderr."""
    print(words, file=sys.stderr, flush=True)
