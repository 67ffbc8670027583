"""Draw a pool, and write and read its folder.

================  ==============================================================================
`pool.jsonl`      passages to grade, one per line, with text, stratum and weight
`pool.json`       how the pool was drawn: the strata with their sizes, every retriever's ranking
`gold.jsonl`      the gold set that the pool belongs to
`labels/`         annotators' labels, one file each (see `misslink.io.label_folder`)
`prelabels.jsonl` the judge's grades, if a judge graded the pool
================  ==============================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from misslink.errors import InputError
from misslink.goldset.pooling.rankings import PassageRanking, RetrieverRankings, match_corpus_ids
from misslink.goldset.writer import objects_to_jsonl, to_jsonl
from misslink.io.atomic import atomic_write
from misslink.io.goldset import GoldSet, read_goldset
from misslink.io.jsonl import read_objects, read_text
from misslink.io.label_folder import LABELS_FOLDER
from misslink.io.storage import require_local_path
from misslink.types import Case, Passage, Run

FORMAT_VERSION = 1
ITEMS_FILE, PLAN_FILE, GOLD_FILE = "pool.jsonl", "pool.json", "gold.jsonl"
RELEVANCE_METRIC = "relevance"  # the metric of annotators' grades
_ID_DIGITS = 16  # of an item's id
_REDRAW_HINT = (
    "Restore it, or draw the pool again with  misslink goldset pool  into another folder."
)
_ORDER_SEED = "the order of the questions"


@dataclass(frozen=True)
class PoolItem:
    """A passage to grade.

    Parameters
    ----------
    item : str
        A hash of the question and the passage, which does not depend on the retriever.
    case_id, question, passage_id, text : str
    stratum : int
        Index among the strata of the question.
    weight : float
        One over the probability of being drawn, at least 1.
    """

    item: str
    case_id: str
    question: str
    passage_id: str
    text: str
    stratum: int
    weight: float


@dataclass(frozen=True)
class PoolPlan:
    """How a pool was drawn.

    Parameters
    ----------
    depth, random, stratified, seed : int
        See `make_pool`.
    corpus : int
        Number of passages of the corpus.
    bands_by : str
        The ranking that defines the bands, such as 'bm25'.
    rejudged : bool
        Whether passages with a grade in the gold set are graded again.
    inputs : mapping of str to str
        Names of the inputs, for people.
    strata : mapping of str to tuple of PoolStratum
        By case.
    rankings : mapping of str to mapping of str to tuple of str
        By retriever and case, passage ids, best first, down to the depth.
    """

    depth: int
    random: int
    stratified: int
    seed: int
    corpus: int
    bands_by: str
    rejudged: bool
    inputs: Mapping[str, str]
    strata: Mapping[str, tuple[PoolStratum, ...]]
    rankings: Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True)
class GradingPool(PoolPlan):
    """A pool; `items` are in the random order in which they are graded."""

    goldset: GoldSet
    items: tuple[PoolItem, ...]

    @property
    def gold_grades(self) -> dict[str, dict[str, int]]:
        """By case, the grades of the gold set for passages that are not graded again."""
        cases = self.goldset.cases
        return {case.id: {} if self.rejudged else labelled_grades(case) for case in cases}

    @property
    def plan(self) -> PoolPlan:
        """How it was drawn."""
        return PoolPlan(**{field.name: getattr(self, field.name) for field in fields(PoolPlan)})


def labelled_grades(case: Case) -> dict[str, int]:
    """Return the grades that a case gives its passages, by id.

    As in `misslink retrieval`, an id of ``relevant_any`` without a grade above 0 has 1.

    >>> case = Case(id="q", question="?", relevant={"a": 2, "b": 0}, relevant_any=[["a", "c"]])
    >>> labelled_grades(case)
    {'a': 2, 'b': 0, 'c': 1}
    """
    alternatives = (name for names in case.relevant_any for name in names)
    return {**case.relevant, **{name: case.relevant.get(name) or 1 for name in alternatives}}


def make_pool(
    goldset: GoldSet,
    corpus: Sequence[Passage],
    runs: Sequence[RetrieverRankings],
    ranking: PassageRanking,
    *,
    depth: int = 10,
    random: int = 5,
    stratified: int = 10,
    seed: int = 0,
    rejudge: bool = False,
    inputs: Mapping[str, str] | None = None,
) -> GradingPool:
    """Draw a pool.

    Parameters
    ----------
    goldset : GoldSet
        Passages with a grade, 0 included, and those of ``relevant_any`` are not graded again.
    corpus : sequence of Passage
    runs : sequence of RetrieverRankings
        At least one; the best `depth` passages of each are graded.
    ranking : PassageRanking
        Ranks the passages of the corpus, in its order.
    depth : int
    random, stratified : int
        How many other passages of each question are graded: drawn from all of them, and from
        bands of their rank by `ranking`.
    seed : int
    rejudge : bool
        Also grade passages with a grade in the gold set.
    inputs : mapping of str to str or None
        Names of the inputs, for people.

    Returns
    -------
    GradingPool
        The questions in random order, each with its passages in random order.

    Raises
    ------
    InputError
        A retriever returns passages that the corpus does not contain, or there is no item.
    """
    texts = {passage.id: passage.text for passage in corpus}
    index = {passage.id: place for place, passage in enumerate(corpus)}
    top = {
        run.name: {
            case_id: names[:depth]
            for case_id, names in match_corpus_ids(run, texts).passages.items()
        }
        for run in runs
    }
    strata: dict[str, tuple[PoolStratum, ...]] = {}
    items: dict[str, list[PoolItem]] = {}
    for case in goldset.cases:
        labelled = () if rejudge else labelled_grades(case)
        retrieved = [name for rankings in top.values() for name in rankings.get(case.id, ())]
        strata[case.id], drawn = draw_passages(
            ranking.order(case.question),
            [index[name] for name in dict.fromkeys(retrieved)],
            {index[name] for name in labelled if name in index},
            depth=depth,
            random=random,
            stratified=stratified,
            generator=question_generator(seed, case.id),
        )
        items[case.id] = []
        for place, stratum in drawn:
            passage, weight = corpus[place], strata[case.id][stratum].weight or 1.0
            content = json.dumps([case.id, case.question, passage.id, passage.text])
            row = case.id, case.question, passage.id, passage.text, stratum, weight
            items[case.id].append(PoolItem(_digest(content)[:_ID_DIGITS], *row))
    order = shuffled(list(items), question_generator(seed, _ORDER_SEED))
    if not any(items.values()):
        raise InputError(
            "There is nothing to grade: every retrieved passage has a grade, and no other passage "
            "was drawn. Grade them again with --rejudge, or draw others with --random.",
            path=goldset.name,
        )
    return GradingPool(
        depth=depth,
        random=random,
        stratified=stratified,
        seed=seed,
        corpus=len(corpus),
        bands_by=ranking.name,
        rejudged=rejudge,
        inputs=dict(inputs or {}),
        strata=strata,
        rankings=top,
        goldset=goldset,
        items=tuple(item for case_id in order for item in items[case_id]),
    )


def pool_from_run(run: Run, k: int, name: str) -> GradingPool:
    """Return a pool of the passages that a run shows: first those that a search found.

    Then the passages in the prompts, first of the cases that a search found passages for.

    Parameters
    ----------
    run : Run
    k : int
        How many retrieved passages count as the prompt where it was not seen.
    name : str
        Of the run, for people.

    Raises
    ------
    InputError
        The run has no passage with a text, or every passage has a grade.
    """
    found = {link.case_id: link.missed for link in run.links if link.basis == "inferred"}
    prompts = {trace.case_id: [p.id for p in trace.context(k)] for trace in run.traces}
    # A grade is of the whole passage, also where the app cut it.
    passages = [
        p for trace in run.traces for p in trace.retrieved if p.id in prompts[trace.case_id]
    ]
    passages += [
        Passage(id=miss.passage_id, text=miss.text or "", rank=1)
        for misses in found.values()
        for miss in misses
    ]
    corpus = list({passage.id: passage for passage in passages if passage.text.strip()}.values())
    if not corpus:
        raise InputError("The run has no passage with a text, so none can be graded.", path=name)
    known = {passage.id for passage in corpus}
    rankings = [
        RetrieverRankings(
            retriever,
            name,
            {
                case_id: tuple(dict.fromkeys(id_ for id_ in ids if id_ in known))
                for case_id, ids in of_case.items()
            },
        )
        for retriever, of_case in (
            ("search", {case: [miss.passage_id for miss in found[case]] for case in found}),
            ("app", prompts),
        )
    ]
    pool = make_pool(
        GoldSet(run.cases, name, {}),
        corpus,
        rankings,
        PassageRanking([passage.text for passage in corpus], None, ()),
        depth=max(len(ids) for ranking in rankings for ids in ranking.passages.values()),
        random=0,
        stratified=0,
        inputs={"run": name},
    )
    of_search = {(case, miss.passage_id) for case, misses in found.items() for miss in misses}
    items = sorted(
        pool.items,
        key=lambda item: (
            (item.case_id, item.passage_id) not in of_search,
            item.case_id not in found,
        ),
    )
    return replace(pool, items=tuple(items))


def is_pool(folder: Path) -> bool:
    """Return whether a folder contains a pool."""
    return (folder / PLAN_FILE).is_file()


def labels_folder(folder: Path) -> Path:
    """Return the folder of annotators' labels of a pool."""
    return folder / LABELS_FOLDER


def write_pool(pool: GradingPool, folder: Path) -> bool:
    """Write a pool into a folder.

    Parameters
    ----------
    pool : GradingPool
    folder : Path
        Created if missing. The same pool stays there with its labels.

    Returns
    -------
    bool
        Whether it was written; False if it was there.

    Raises
    ------
    InputError
        The folder contains something else, or cannot be written.
    """
    lines, gold = objects_to_jsonl(map(asdict, pool.items)), to_jsonl(pool.goldset.cases)
    if is_pool(folder):
        stored, _ = _read_plan(folder / PLAN_FILE)
        # The same draw may be started in another working folder, where inputs have other names.
        if replace(stored, inputs=pool.inputs) == pool.plan and (
            read_text(folder / ITEMS_FILE) == lines
        ):
            if read_text(folder / GOLD_FILE) != gold:  # a new category, for example
                atomic_write(gold, folder / GOLD_FILE)
            return False
        raise InputError(
            "The folder contains another pool. Name another folder with --out.", path=folder
        )
    check_pool_folder(folder)
    atomic_write(lines, folder / ITEMS_FILE)
    atomic_write(gold, folder / GOLD_FILE)
    plan = {"format": FORMAT_VERSION, "items": _digest(lines), **asdict(pool.plan)}
    document = json.dumps(plan, indent=1, ensure_ascii=False, allow_nan=False)
    atomic_write(document + "\n", folder / PLAN_FILE)  # last, so its pool is complete
    return True


def check_pool_folder(folder: Path) -> None:
    """Raise InputError if a pool cannot be written, before anything is paid for it."""
    require_local_path(folder)
    if is_pool(folder):
        return
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        problem = "Cannot write the folder" if nearest.is_dir() else f"{nearest} is a file"
        raise InputError(f"{problem}. Name another folder with --out.", path=folder)
    # An interrupted draw is written again.
    other_files = [
        path.name
        for path in (folder.iterdir() if folder.exists() else ())
        if path.name not in {ITEMS_FILE, GOLD_FILE} and not path.name.startswith(".")
    ]
    if other_files:
        message = f"The folder contains other files ({min(other_files)}). Name another with --out."
        raise InputError(message, path=folder)


def read_pool(folder: Path) -> GradingPool:
    """Read a pool.

    Raises
    ------
    InputError
        The folder is not a pool, or a file of it is damaged or changed.
    """
    if not is_pool(folder):
        problem = "This is not a pool" if folder.is_dir() else "Folder not found"
        raise InputError(f"{problem}. Draw one with  misslink goldset pool.", path=folder)
    plan, digest = _read_plan(folder / PLAN_FILE)
    path = folder / ITEMS_FILE
    if _digest(read_text(path)) != digest:
        raise InputError(f"The file was changed. {_REDRAW_HINT}", path=path)
    adapter = TypeAdapter(PoolItem)
    items = tuple(adapter.validate_python(row.data) for row in read_objects(path))
    goldset = read_goldset(folder / GOLD_FILE)
    if {case.id for case in goldset.cases} != set(plan.strata):
        message = f"Its questions are not those of the pool. {_REDRAW_HINT}"
        raise InputError(message, path=folder / GOLD_FILE)
    return GradingPool(**vars(plan), goldset=goldset, items=items)


def _read_plan(path: Path) -> tuple[PoolPlan, Any]:
    """The plan, and the digest of the items."""
    try:
        data = json.loads(read_text(path))
        version = data.get("format") if isinstance(data, dict) else None
        if isinstance(version, int) and version > FORMAT_VERSION:
            message = "This pool was drawn by a newer version of misslink. Upgrade misslink."
            raise InputError(message, path=path)
        plan = TypeAdapter(PoolPlan).validate_python(data)
    except ValidationError as invalid:
        field = ".".join(map(str, invalid.errors()[0]["loc"]))
        raise InputError(f"The file is damaged. {_REDRAW_HINT}", path=path, field=field) from None
    except (ValueError, RecursionError):
        raise InputError(f"This is not JSON. {_REDRAW_HINT}", path=path) from None
    return plan, data.get("items")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


Item = TypeVar("Item")


POOLED_STRATUM = "pooled"  # what a retriever returns; all of it is graded


KNOWN_STRATUM = "known"  # what has a grade in the gold set; none of it is graded


_FIRST_BAND = 10  # minimum size of the nearest band


_BAND_FACTOR = 10  # size of each further band, relative to the one before


_MAX_BANDS = 4


_MIN_PER_BAND = 2  # passages drawn from a band, so that their variance is known


@dataclass(frozen=True)
class PoolStratum:
    """Passages of one question from which passages to grade were drawn.

    Parameters
    ----------
    name : str
        'known', 'pooled', or the ranks of a band outside the pool: '11 to 110'.
    size, drawn : int
        Number of passages, and how many of them are graded.
    """

    name: str
    size: int
    drawn: int

    @property
    def weight(self) -> float | None:
        """One over the probability of being drawn; None if nothing was drawn."""
        return self.size / self.drawn if self.drawn else None


def band_sizes(outside: int, stratified: int, depth: int) -> list[int]:
    """Return the sizes of the bands of rank, the nearest first.

    Parameters
    ----------
    outside : int
        Number of passages that no retriever returns.
    stratified : int
        How many are drawn from the bands, at least two from each.
    depth : int
        Depth of the pool; the nearest band has as many passages, at least 10.

    Examples
    --------
    >>> band_sizes(5000, 10, 10), band_sizes(5000, 4, 10), band_sizes(7, 10, 10)
    ([10, 100, 1000, 3890], [10, 4990], [7])
    """
    sizes: list[int] = []
    remaining, width = outside, max(depth, _FIRST_BAND)
    bands = max(1, min(_MAX_BANDS, stratified // _MIN_PER_BAND))
    while remaining:
        size = remaining if len(sizes) == bands - 1 else min(width, remaining)
        sizes.append(size)
        remaining -= size
        width *= _BAND_FACTOR
    return sizes


def draw_passages(
    order: Sequence[int] | NDArray[np.int64],
    pooled: Collection[int],
    known: Collection[int],
    *,
    depth: int,
    random: int,
    stratified: int,
    generator: np.random.Generator,
) -> tuple[tuple[PoolStratum, ...], list[tuple[int, int]]]:
    """Draw the passages of one question that are graded.

    Parameters
    ----------
    order : sequence or array of int
        Indices of all passages of the corpus, nearest to the question first.
    pooled : collection of int
        Indices of what the retrievers return.
    known : collection of int
        Indices of what has a grade.
    depth : int
        Depth of the pool.
    random, stratified : int
        How many others are drawn, from all of them and from their bands.
    generator : numpy Generator

    Returns
    -------
    strata : tuple of PoolStratum
        Known and pooled first, then the bands. Their sizes add up to the corpus.
    drawn : list of (int, int)
        Indices of passages in the corpus and of their strata, in random order.
    """
    graded = [place for place in dict.fromkeys(pooled) if place not in known]
    ranked = np.asarray(order, dtype=np.int64)
    outside = ranked[~np.isin(ranked, [*pooled, *known])]
    sizes = band_sizes(len(outside), stratified, depth)
    is_drawn = np.zeros(len(outside), dtype=bool)
    is_drawn[generator.permutation(len(outside))[:random]] = True
    strata = [
        PoolStratum(KNOWN_STRATUM, len(set(known)), 0),
        PoolStratum(POOLED_STRATUM, len(graded), len(graded)),
    ]
    places = [(place, 1) for place in graded]
    start = 0
    for size, more in zip(sizes, _draws_per_band(stratified, sizes), strict=True):
        band, first = outside[start : start + size], is_drawn[start : start + size]
        chosen = [*band[first].tolist(), *generator.permutation(band[~first])[:more].tolist()]
        places += [(place, len(strata)) for place in chosen]
        strata.append(PoolStratum(f"{start + 1} to {start + size}", size, len(chosen)))
        start += size
    return tuple(strata), shuffled(places, generator)


def shuffled(items: Sequence[Item], generator: np.random.Generator) -> list[Item]:
    """Return items in random order."""
    return [items[int(index)] for index in generator.permutation(len(items))]


def question_generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of one question, so that other questions do not change its draw."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])


def _draws_per_band(count: int, sizes: Sequence[int]) -> list[int]:
    """Equally many draws from each band; what a small band lacks goes to the others."""
    draws = [0] * len(sizes)
    remaining = min(count, sum(sizes))
    while remaining:
        for band, size in enumerate(sizes):
            if remaining and draws[band] < size:
                draws[band] += 1
                remaining -= 1
    return draws
