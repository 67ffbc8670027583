"""Coverage of the association by exposure: clusters, and a judge that errs otherwise after misses.

``python benchmarks/stats/association_coverage.py --write`` makes ``association_coverage.md``.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from misslink.stats import association, clustered
from misslink.stats.classification import confusion_matrix
from misslink.stats.exposure import (
    EXPOSURES,
    ExposedCases,
    exposure_risks,
    powered_exposure_risks,
    rated_exposure_risks,
)
from misslink.types import Estimate

ROUNDS = 1_000
DRAWS = 1_000  # behind each interval, in place of 10,000
FRACTION_DRAWS = 2_000  # in place of 20,000
SHARES = (0.25, 0.15, 0.6)  # of cases with none, some and all of what they need
LINKS = {
    "no link": (0.2, 0.2, 0.2),
    "moderate": (0.5, 0.3, 0.15),
    "strong": (0.97, 0.6, 0.03),
    "all bad after a miss": (1.0, 0.6, 0.05),
}
JUDGES = {  # correct in these shares of cases with none, some and all
    "alike": (0.85, 0.85, 0.85),
    "better after misses": (0.9, 0.8, 0.65),
    "worse after misses": (0.65, 0.8, 0.9),
}
NAMES = ("risk_given_none", "risk_given_all", "risk_difference", "attributable_fraction")
SIZES = {"300 cases": (300, 300), "300 cases on 60 documents": (300, 60)}
LABELS = 100
MANY_LABELS = 600
MOSTLY_MISSING = 0.8


class Scenario(NamedTuple):
    """Cases, their risks of a bad answer, and the judge; the same in all runs of a row."""

    where: str
    risks: tuple[float, ...]
    right: tuple[float, ...]
    cases: int
    documents: int
    labels: int = LABELS  # of this run, and of another
    shares: tuple[float, ...] = SHARES

    @property
    def group(self) -> str:
        """The rows of the page that it belongs to."""
        return self.where.partition(",")[0]


CHOSEN = [
    Scenario(f"{size}, {link}, judge {judge}", risks, right, *numbers)
    for size, numbers in SIZES.items()
    for link, risks in LINKS.items()
    for judge, right in JUDGES.items()
]
_SOME_BAD, _RARELY_BAD = (
    ((0.6, 0.35, 0.1), (0.8, 0.75, 0.7)),
    ((0.1, 0.07, 0.03), (0.75, 0.85, 0.92)),
)
_OFTEN_BAD, _ALIKE = ((0.97, 0.9, 0.5), (0.7, 0.9, 0.8)), ((0.35, 0.35, 0.35), (0.6, 0.7, 0.95))
_STRONG, _WEAK = ((0.85, 0.5, 0.02), (0.95, 0.9, 0.6)), ((0.55, 0.45, 0.35), (0.98, 0.98, 0.98))
OTHERS = [  # used for no constant
    Scenario("others, few misses, 200 cases, 100 labels", *_SOME_BAD, 200, 200, 100, (0.1, 0.2, 0.7)),
    Scenario("others, few misses, 200 cases, 150 labels", *_SOME_BAD, 200, 200, 150, (0.1, 0.2, 0.7)),
    Scenario("others, rarely bad, 250 cases, 80 labels", *_RARELY_BAD, 250, 250, 80, (0.35, 0.25, 0.4)),
    Scenario("others, rarely bad, 250 on 40, 80 labels", *_RARELY_BAD, 250, 40, 80, (0.35, 0.25, 0.4)),
    Scenario("others, often bad, 150 on 30, 60 labels", *_OFTEN_BAD, 150, 30, 60, (0.4, 0.1, 0.5)),
    Scenario("others, often bad, 150 cases, 60 labels", *_OFTEN_BAD, 150, 150, 60, (0.4, 0.1, 0.5)),
    Scenario("others, no link, 1000 cases, 200 labels", *_ALIKE, 1000, 1000, 200, (0.2, 0.2, 0.6)),
    Scenario("others, no link, 1000 on 100, 200 labels", *_ALIKE, 1000, 100, 200, (0.2, 0.2, 0.6)),
    Scenario("others, strong, 400 on 80, 120 labels", *_STRONG, 400, 80, 120, (0.15, 0.05, 0.8)),
    Scenario("others, strong, 400 cases, 120 labels", *_STRONG, 400, 400, 120, (0.15, 0.05, 0.8)),
    Scenario("others, weak, 120 cases, 50 labels", *_WEAK, 120, 120, 50, (0.5, 0.2, 0.3)),
    Scenario("others, weak, 120 on 24, 50 labels", *_WEAK, 120, 24, 50, (0.5, 0.2, 0.3)),
]  # fmt: skip


class Simulated(NamedTuple):
    """Cases with the truth, the judge's calls, and their documents."""

    exposure: list[int]
    bad: list[float]
    called: list[float]
    documents: list[int]


class Row(NamedTuple):
    """One number in one scenario."""

    method: str
    scenario: Scenario
    name: str
    coverage: float | None  # None: always missing
    width: float | None
    missing: float


def simulate(scenario: Scenario, seed: int) -> Simulated:
    """Draw cases; those of a document and an exposure share 40% of the variance of their outcome."""
    generator = np.random.default_rng(seed)
    n, documents, shares = scenario.cases, scenario.documents, scenario.shares
    of = np.arange(n) % documents
    apart = documents == n
    level = generator.choice(3, documents, p=shares)[of]
    own = generator.random(n) < 0.7
    level = np.where(own, generator.choice(3, n, p=shares), level)
    chance = np.array(scenario.risks)
    common = (generator.random((documents, 3)) < chance)[of, level]
    alone = generator.random(n) < chance[level]
    bad = np.where(~apart & (generator.random(n) < np.sqrt(0.4)), common, alone)
    called = np.where(generator.random(n) < np.array(scenario.right)[level], bad, ~bad)
    return Simulated(
        level.tolist(), bad.astype(float).tolist(), called.astype(float).tolist(), of.tolist()
    )


def truths(scenario: Scenario) -> dict[str, float]:
    """The true numbers of a scenario."""
    risks = scenario.risks
    overall = sum(share * risk for share, risk in zip(scenario.shares, risks, strict=True))
    numbers = (risks[0], risks[2], risks[0] - risks[2], 1 - risks[2] / overall)
    return dict(zip(NAMES, numbers, strict=True))


def estimates(scenario: Scenario, seed: int) -> Iterator[tuple[str, Mapping[str, Estimate]]]:
    """Yield each method's estimates of one draw."""
    cases = simulate(scenario, seed)
    truth = ExposedCases(cases.exposure, cases.bad, cases.documents)
    judged = ExposedCases(cases.exposure, cases.called, cases.documents)
    generator = np.random.default_rng(seed)
    chosen = set(generator.choice(len(cases.bad), scenario.labels, replace=False).tolist())
    labels = [bad if place in chosen else None for place, bad in enumerate(cases.bad)]
    yield "perfect judge", exposure_risks(truth, seed=seed)
    alone = ExposedCases(cases.exposure, cases.bad, range(len(cases.bad)))
    if len(set(cases.documents)) < len(cases.documents):
        yield "perfect judge, clusters ignored", exposure_risks(alone, seed=seed)
    yield "judge alone", exposure_risks(judged, seed=seed)
    yield "labels of the run", powered_exposure_risks(judged, labels, seed=seed)
    many = [] if scenario in OTHERS else [MANY_LABELS]
    for count in (scenario.labels, *many):
        other = simulate(scenario._replace(cases=count, documents=count), seed + 1_000_000)
        rates = {}
        for level, name in enumerate(EXPOSURES):
            places = [i for i, at in enumerate(other.exposure) if at == level]
            table = confusion_matrix(
                [not other.bad[i] for i in places], [not other.called[i] for i in places]
            )
            rates[name] = {"sensitivity": table.sensitivity, "specificity": table.specificity}
        size = "as many" if count == scenario.labels else count
        yield f"{size} labels of another run", rated_exposure_risks(judged, rates, seed=seed)


def simulate_scenario(scenario: Scenario, rounds: int) -> Iterator[Row]:
    """Yield the coverage of each number by each method in one scenario."""
    inside, widths, missing = defaultdict(list), defaultdict(list), defaultdict(int)
    expected = truths(scenario)
    first = zlib.crc32(scenario.where.encode())  # other draws in each scenario
    for seed in range(first, first + rounds):
        for method, found in estimates(scenario, seed):
            for name in NAMES:
                estimate, key = found[name], (method, name)
                if estimate.low is None or estimate.high is None:
                    missing[key] += 1
                    continue
                inside[key].append(estimate.low - 1e-9 <= expected[name] <= estimate.high + 1e-9)
                widths[key].append(estimate.high - estimate.low)
    for method, name in {**inside, **missing}:
        key = (method, name)
        means = (float(np.mean(each[key])) if each[key] else None for each in (inside, widths))
        yield Row(method, scenario, name, *means, missing[key] / rounds)


HEAD = """# Does the association hold up?

Made by `python benchmarks/stats/association_coverage.py --write`: how often the 95% interval holds the
planted value, over {rounds} simulated runs of each scenario. 24 scenarios were in view when the
intervals were written: two sizes, four links, three judges, 100 labels. In half of them five
questions are about one document, and 40% of the variance of an answer is the document's. The 12 in
the rows `others` have other base rates, numbers of cases, clusters and labels (50 to 200), and judges;
they were used for no constant, but `often bad` covered 92.5% before Student's t was used. The standard error of the coverage in one scenario is {error:.1f} points, so the worst
of 12 is expected {lowest:.1f} points below the others by chance. Missing: no label of a good, or of a bad,
answer at an exposure (as where all answers after a miss are bad), or too few there, which the output
says. A scenario where a number is missing in {mostly:.0%} of runs is not in its mean and worst.

| method | scenarios | number | mean | worst | width | missing | worst at |
| --- | --- | --- | --: | --: | --: | --: | --- |
"""


def table(rows: list[Row], rounds: int) -> str:
    """The page: mean and worst coverage over links and judges."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.method, row.scenario.group, row.name].append(row)
    lines = []
    for (method, group_name, name), group in sorted(groups.items()):
        # A scenario where the number is nearly always missing says little about its coverage.
        known = [row for row in group if row.missing < MOSTLY_MISSING]
        worst = min(known, key=lambda row: row.coverage)
        mean, width = (np.mean([row[place] for row in known]) for place in (3, 4))
        missing = np.mean([row.missing for row in group])
        lines.append(
            f"| {method} | {group_name} | {name} | {mean:.3f} | {worst.coverage:.3f} | {width:.2f} | "
            f"{missing:.0%} | {worst.scenario.where.partition(', ')[2]} |"
        )
    error = 100 * (0.95 * 0.05 / rounds) ** 0.5
    head = HEAD.format(rounds=rounds, error=error, lowest=1.63 * error, mostly=MOSTLY_MISSING)
    return head + "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="Write association_coverage.md.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="Simulated runs a scenario.")
    arguments = parser.parse_args()
    clustered.DRAWS, association.FRACTION_DRAWS = DRAWS, FRACTION_DRAWS
    rows = [row for each in CHOSEN + OTHERS for row in simulate_scenario(each, arguments.rounds)]
    text = table(rows, arguments.rounds)
    if arguments.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
