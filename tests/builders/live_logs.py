"""Live logs of users who are a model: how often each is pleased depends on what it is served."""

import random

from misslink.live import Experiment, LiveLog
from misslink.live.assignment import unit_hash
from misslink.live.experiment_report import ReportOptions, live_report
from misslink.live.log_store import plan_entry

DAY = 86_400.0
SALT = "s"


def report(path, **options):
    return live_report(path, options=ReportOptions(**options))


def rows(path, entry, exposures=(), feedback=()):
    """Write rows as they are; returns the path."""
    log = LiveLog(path)
    for number, values in enumerate(exposures):
        log.exposure(
            entry,
            {"id": f"r{number}", "outcome": "ok", "mode": "assigned", "open_share": 1.0, **values},
        )
    for values in feedback:
        log.feedback(entry, values)
    assert log.close()
    return path


def simulated(
    path,
    users=600,
    pleased=(0.5, 0.5),
    *,
    seed=0,
    split=None,
    name="reranker",
    slower=0.0,
    failing=0.0,
):
    """Users of two variants, some back several times, two thirds of whom give thumbs."""
    chance = random.Random(seed)
    experiment = Experiment(name, split or {"A": 1, "B": 1}, control="A")
    exposures, feedback = [], []
    for user in range(users):
        unit = unit_hash(f"user-{user}", name, SALT)
        variant = experiment.assign(f"user-{user}").variant
        own = min(max(chance.gauss(pleased[variant == "B"], 0.15), 0), 1)
        for _ in range(chance.choice([1, 1, 2, 4])):
            at = 1_790_000_000 + 14 * DAY * user / users + chance.random() * 3600
            fails = variant == "B" and chance.random() < failing
            exposures.append(
                {
                    "id": f"q{len(exposures)}",
                    "unit": unit,
                    "variant": variant,
                    "served": "A" if fails else variant,
                    "outcome": "fell_back" if fails else "ok",
                    "at": at,
                    "latency_s": chance.lognormvariate(0, 0.3) + slower * (variant == "B"),
                }
            )
            if chance.random() < 2 / 3:
                value = float(chance.random() < own)
                feedback.append((exposures[-1]["id"], None, "thumbs", value, None, at + 5))
    exposures.sort(key=lambda one: one["at"])
    return rows(path, plan_entry(experiment, SALT), exposures, feedback)
