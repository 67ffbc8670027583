"""How often the intervals of a pool's estimates hold the truth.

    python benchmarks/goldset/pooled_recall_coverage.py           # print the table
    python benchmarks/goldset/pooled_recall_coverage.py --write   # and put it into the .md

Made-up questions whose relevant passages are all known: some in the pool, some outside it, more of
them near the question than far. The population is fixed, the sample is drawn again and again by the
very code that draws a pool, and the interval of how many relevant passages lie outside is held
against how many do. The recall of a retriever is the relevant passages that it found over all of
them, so its interval covers exactly where this one does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from misslink.goldset.pooling.pool import GradingPool, PoolItem, draw_passages
from misslink.goldset.pooling.recall import (
    RankBand,
    SampledCell,
    estimate_recall,
    estimate_total,
    group_into_bands,
)
from misslink.io.goldset import GoldSet
from misslink.stats.intervals import wilson_interval
from misslink.types import Case, Estimate

PAGE = Path(__file__).with_suffix(".md")
DRAWS = 500
SEED = 0
Z = 1.959963984540054
DEPTH, RANDOM, STRATIFIED = 10, 5, 10
TOP = 5
Ends = tuple[float, float]
COLUMNS = (
    "| questions | passages | relevant outside | where | method | coverage | below | above "
    "| mean of the estimate | mean width |\n"
    "| --: | --: | --: | --- | --- | --: | --: | --: | --: | --: |\n"
)
HEAD = f"""# How often the intervals of a pool's estimates hold the truth

Made by `python benchmarks/goldset/pooled_recall_coverage.py --write`: {DRAWS:,} draws of each population,
so that a coverage of 95% has a standard error of {math.sqrt(0.95 * 0.05 / DRAWS):.1%}. A question
has a pool of {DEPTH} passages, {RANDOM} drawn at random from the others and {STRATIFIED} from their
bands. *Below* and *above* say how often the truth lay below or above the interval. *Spread*: each
question has about as many relevant passages outside the pool as any other; *clustered*: a fifth of
the questions has them all. *Chosen* is the interval that misslink prints; *wilson* has Wilson's
interval of each band in place of Clopper and Pearson's; *normal* is the usual interval of a
Horvitz-Thompson total, its value plus and minus 1.96 standard errors, which is a single point where
nothing was found.

"""
TIED_DRAWS = 300
TIED_COLUMNS = (
    "| questions | passages | relevant outside | tied | relevant from | coverage of the total "
    "| coverage of recall@5 | mean of the total | mean width of recall@5 |\n"
    "| --: | --: | --: | --: | --: | --: | --: | --: | --: |\n"
)
TIED_HEAD = f"""
## Tied grades

{TIED_DRAWS} draws each. Passages have grades from 0 to 2, half of the relevant ones 2. Two annotators
grade each passage and disagree on the share *tied*, where one of their grades is true. Such a passage
counts by the share of its grades that are relevant; the interval covers both outcomes of all of them.

"""


@dataclass(frozen=True)
class Population:
    """Questions over one corpus, and where their relevant passages stand outside the pool."""

    questions: int
    passages: int
    mean: float
    clustered: bool

    def ranks(self, generator: np.random.Generator) -> list[set[int]]:
        """By question, ranks outside the pool, from 0: half of them among the nearest."""
        outside = self.passages - DEPTH
        found = []
        for number in range(self.questions):
            mean = self.mean
            if self.clustered:
                mean = 5 * self.mean if number % 5 == 0 else 0.0
            count = int(generator.poisson(mean))
            depths = np.exp(generator.uniform(0, math.log(outside), count))
            found.append({min(int(depth) - 1, outside - 1) for depth in depths})
        return found


def main(wanted: Sequence[str]) -> None:
    """Print the table; with --write put it into the page."""
    rows = []
    for questions in (10, 50):
        for passages in (100, 2000):
            for mean in (0.2, 1.0, 5.0):
                for clustered in (False, True):
                    rows += table(Population(questions, passages, mean, clustered))
    tied_rows = [
        tied_row(Population(questions, passages, mean, clustered=False), tied, level)
        for questions, passages, mean in (
            (10, 100, 0.2),
            (10, 100, 5.0),
            (10, 2000, 0.2),
            (50, 100, 1.0),
        )
        for tied in (0.1, 0.5)
        for level in (1, 2)
    ]
    if "--write" in wanted:
        page = HEAD + COLUMNS + "".join(rows) + TIED_HEAD + TIED_COLUMNS + "".join(tied_rows)
        PAGE.write_text(page, encoding="utf-8")


def table(population: Population) -> list[str]:
    """One row a method."""
    generator = np.random.default_rng(SEED)
    relevant = population.ranks(generator)
    truth = sum(map(len, relevant))
    samples = [sample(population, relevant, generator) for _ in range(DRAWS)]
    rows = []
    for name, ends_of in METHODS.items():
        ends = np.array([ends_of(bands) for bands in samples])
        below = float((truth < ends[:, 0] - 1e-9).mean())
        above = float((truth > ends[:, 1] + 1e-9).mean())
        mean = float(np.mean([estimate_total(bands).value for bands in samples]))
        where = "clustered" if population.clustered else "spread"
        row = (
            f"| {population.questions} | {population.passages} | {truth} | {where} | {name} | "
            f"{1 - below - above:.3f} | {below:.3f} | {above:.3f} | {mean:.1f} | "
            f"{float((ends[:, 1] - ends[:, 0]).mean()):.1f} |\n"
        )
        print(row, end="", flush=True)
        rows.append(row)
    return rows


def sample(
    population: Population, relevant: Sequence[set[int]], generator: np.random.Generator
) -> list[RankBand]:
    """The labelled strata of one draw of all questions."""
    cells = []
    order = np.arange(population.passages).tolist()
    for ranks in relevant:
        strata, drawn = draw_passages(
            order,
            range(DEPTH),
            (),
            depth=DEPTH,
            random=RANDOM,
            stratified=STRATIFIED,
            generator=generator,
        )
        found = [0] * len(strata)
        for place, stratum in drawn:
            found[stratum] += place - DEPTH in ranks
        cells += [
            (at, SampledCell(stratum.size, stratum.drawn, found[at]))
            for at, stratum in enumerate(strata)
            if at > 1
        ]
    return group_into_bands(cells)


def tied_row(population: Population, tied: float, level: int) -> str:
    """The coverage of the total outside the pool, and of recall@5, where annotators disagree."""
    generator = np.random.default_rng(SEED)
    grades = true_grades(population, generator)
    outside = sum(
        grade >= level for one in grades for place, grade in one.items() if place >= DEPTH
    )
    relevant = sum(grade >= level for one in grades for grade in one.values())
    found = sum(grade >= level for one in grades for place, grade in one.items() if place < TOP)
    held, values, widths = np.zeros(2), [], []
    for _ in range(TIED_DRAWS):
        pool, settled, votes = draw_tied_pool(population, grades, tied, generator)
        document = estimate_recall(pool, settled, votes, relevance_level=level)
        total, recall = (
            document["outside"],
            document["retrievers"]["one"][f"recall@{TOP}"]["estimated"],
        )
        for at, (estimate, truth) in enumerate(((total, outside), (recall, found / relevant))):
            held[at] += estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
        values.append(total.value)
        widths.append(recall.high - recall.low)
    of_total, of_recall = held / TIED_DRAWS
    row = (
        f"| {population.questions} | {population.passages} | {outside} | {tied} | {level} | "
        f"{of_total:.3f} | {of_recall:.3f} | {np.mean(values):.1f} | {np.mean(widths):.2f} |\n"
    )
    print(row, end="", flush=True)
    return row


def true_grades(population: Population, generator: np.random.Generator) -> list[dict[int, int]]:
    """By question, the grades of its relevant passages: some in the pool, the others outside it."""
    found = []
    for ranks in population.ranks(generator):
        places = {*range(0, DEPTH, 3), *(DEPTH + rank for rank in ranks)}
        found.append({place: int(generator.integers(1, 3)) for place in sorted(places)})
    return found


def draw_tied_pool(
    population: Population,
    grades: Sequence[dict[int, int]],
    tied: float,
    generator: np.random.Generator,
) -> tuple[GradingPool, dict[str, int], dict[str, list[int]]]:
    """A pool of one draw, its settled grades, and the two grades of each tied passage."""
    order = np.arange(population.passages).tolist()
    items, settled, votes, strata = [], dict[str, int](), dict[str, list[int]](), {}
    for number, known in enumerate(grades):
        case_id = f"q{number}"
        strata[case_id], drawn = draw_passages(
            order,
            range(DEPTH),
            (),
            depth=DEPTH,
            random=RANDOM,
            stratified=STRATIFIED,
            generator=generator,
        )
        for place, stratum in drawn:
            name, grade = f"{case_id}-{place}", known.get(place, 0)
            items.append(PoolItem(name, case_id, "?", f"p{place}", "", stratum, 1.0))
            if generator.random() < tied:
                other = (grade + int(generator.integers(1, 3))) % 3
                votes[name] = [grade, other]
            else:
                settled[name] = grade
    ranking = {case_id: tuple(f"p{place}" for place in range(DEPTH)) for case_id in strata}
    cases = tuple(Case(id=case_id, question="?") for case_id in strata)
    pool = GradingPool(
        depth=DEPTH,
        random=RANDOM,
        stratified=STRATIFIED,
        seed=SEED,
        corpus=population.passages,
        bands_by="bm25",
        rejudged=False,
        inputs={},
        strata=strata,
        rankings={"one": ranking},
        goldset=GoldSet(cases, "made up"),
        items=tuple(items),
    )
    return pool, settled, votes


def chosen(bands: Sequence[RankBand]) -> Ends:
    """What misslink prints."""
    found: Estimate = estimate_total(bands)
    return float(found.low or 0), float(found.high or 0)


def expected(band: RankBand) -> float:
    """The Horvitz-Thompson total."""
    return sum(cell.relevant * cell.size / cell.labelled for cell in band)


def by_wilson(bands: Sequence[RankBand]) -> Ends:
    """The same of Wilson's intervals."""
    value = sum(map(expected, bands))
    below = above = 0.0
    for band in bands:
        size = sum(cell.size for cell in band)
        alike = size**2 / sum(cell.size**2 / cell.labelled for cell in band)
        share = expected(band) / size
        low, high = wilson_interval(share, alike, Z)
        known = 1 - sum(cell.labelled for cell in band) / size
        below += (size * (share - low)) ** 2 * known
        above += (size * (high - share)) ** 2 * known
    found = sum(cell.relevant for band in bands for cell in band)
    return max(value - math.sqrt(below), found), value + math.sqrt(above)


def normal(bands: Sequence[RankBand]) -> Ends:
    """The value and 1.96 standard errors of a stratified sample without replacement."""
    value = sum(map(expected, bands))
    variance = 0.0
    for cell in (cell for band in bands for cell in band):
        share = cell.relevant / cell.labelled
        if cell.labelled > 1:
            spread = cell.labelled / (cell.labelled - 1) * share * (1 - share)
            variance += cell.size * (cell.size - cell.labelled) * spread / cell.labelled
    return value - Z * math.sqrt(variance), value + Z * math.sqrt(variance)


METHODS: dict[str, Callable[[Sequence[RankBand]], Ends]] = {
    "chosen": chosen,
    "wilson": by_wilson,
    "normal": normal,
}

if __name__ == "__main__":
    main(sys.argv[1:])
