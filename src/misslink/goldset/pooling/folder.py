"""A pool in a folder of its own: what is asked, how it was drawn, and who said what.

================  ==============================================================================
`pool.jsonl`      what is asked, a line a passage, with its text, stratum and weight
`pool.json`       how it was drawn: the strata with their sizes, and every retriever's ranking
`gold.jsonl`      the gold set that it was drawn for
`labels/`         what people said, a file each (see `misslink.files.label_journal`)
`prelabels.jsonl` what a judge said, where one was asked
================  ==============================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from misslink.errors import InputError
from misslink.files.addresses import refuse_url
from misslink.files.goldset import GoldSet, read_goldset
from misslink.files.jsonl import read_objects, read_text
from misslink.files.label_folder import FOLDER
from misslink.files.whole import put
from misslink.goldset.pooling.drawing import Stratum
from misslink.goldset.writing import as_lines
from misslink.types import Case

__all__ = [
    "ITEMS", "METRIC", "PLAN", "PRELABELS", "Pool", "PoolItem", "check_folder", "is_pool",
    "item_id", "labels_of", "listed", "read_pool", "write_pool",
]  # fmt: skip

FORMAT = 1
ITEMS, PLAN, GOLD, PRELABELS = "pool.jsonl", "pool.json", "gold.jsonl", "prelabels.jsonl"
METRIC = "relevance"  # under which people's grades are kept
_DIGITS = 16  # of an item's id
_WAY_OUT = "draw the pool again with  misslink goldset pool  into another folder"


@dataclass(frozen=True)
class PoolItem:
    """A passage that is asked about.

    Parameters
    ----------
    item : str
        A hash of the question and the passage; it tells nothing of who brought it.
    case_id, question, passage_id, text : str
    stratum : int
        Its place among the strata of the question.
    weight : float
        One over the chance with which it was drawn, from 1.
    """

    item: str
    case_id: str
    question: str
    passage_id: str
    text: str
    stratum: int
    weight: float


@dataclass(frozen=True)
class Pool:
    """A pool as it was drawn.

    Parameters
    ----------
    goldset : GoldSet
    items : tuple of PoolItem
        In the order in which they are asked about, which is a random one.
    strata : mapping of str to tuple of Stratum
        By case.
    rankings : mapping of str to mapping of str to tuple of str
        By retriever and case, passage ids, best first, down to the depth.
    depth, random, stratified, seed : int
        As it was drawn.
    corpus : int
        How many passages it has.
    bands_by : str
        What the bands go by, such as 'bm25'.
    rejudged : bool
        Whether what the gold set had a grade for is asked about again.
    inputs : mapping of str to str
        What it was drawn from, for people.
    """

    goldset: GoldSet
    items: tuple[PoolItem, ...]
    strata: Mapping[str, tuple[Stratum, ...]]
    rankings: Mapping[str, Mapping[str, tuple[str, ...]]]
    depth: int
    random: int
    stratified: int
    seed: int
    corpus: int
    bands_by: str
    rejudged: bool
    inputs: Mapping[str, str]

    @property
    def known(self) -> dict[str, dict[str, int]]:
        """By case, the grades that the gold set has and nobody is asked about again."""
        cases = self.goldset.cases
        return {case.id: {} if self.rejudged else listed(case) for case in cases}


@dataclass(frozen=True)
class _Plan:
    """What stands in `pool.json`."""

    format: int
    depth: int
    random: int
    stratified: int
    seed: int
    corpus: int
    bands_by: str
    rejudged: bool
    inputs: dict[str, str]
    items: str
    strata: dict[str, tuple[Stratum, ...]]
    rankings: dict[str, dict[str, tuple[str, ...]]]


def item_id(case_id: str, question: str, passage_id: str, text: str) -> str:
    """Return the id under which a passage of a question is asked about."""
    told = json.dumps([case_id, question, passage_id, text])
    return hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]


def listed(case: Case) -> dict[str, int]:
    """Return the grades that a case gives its passages, by id.

    As `misslink retrieval` counts them, an id of ``relevant_any`` without a grade above 0 has 1.

    >>> listed(Case(id="q", question="Who?", relevant={"a": 2, "b": 0}, relevant_any=[["a", "c"]]))
    {'a': 2, 'b': 0, 'c': 1}
    """
    several = {
        name: case.relevant.get(name) or 1 for any_of in case.relevant_any for name in any_of
    }
    return {**case.relevant, **several}


def is_pool(folder: Path) -> bool:
    """Whether a folder holds a pool."""
    return (folder / PLAN).is_file()


def labels_of(folder: Path) -> Path:
    """Where people's labels of a pool are kept."""
    return folder / FOLDER


def write_pool(pool: Pool, folder: Path) -> bool:
    """Write a pool into a folder of its own.

    Parameters
    ----------
    pool : Pool
    folder : Path
        Made where it is missing. Where it holds the same pool, that stays with its labels.

    Returns
    -------
    bool
        Whether it was written; False where it was there.

    Raises
    ------
    InputError
        The folder holds something else, or cannot be written.
    """
    lines, gold = _lines(pool.items), as_lines(pool.goldset.cases)
    plan = _plan(pool, lines)
    if is_pool(folder):
        there = _read_plan(folder / PLAN)
        # Where files lie, seen from a working folder, is for people: the draw is the same.
        if replace(there, inputs=plan.inputs) == plan and read_text(folder / ITEMS) == lines:
            if read_text(folder / GOLD) != gold:  # a category more, say: what is asked is the same
                put(gold, folder / GOLD)
            return False
        raise InputError(
            "another pool lies there, perhaps with labels; name another folder with --out",
            path=folder,
        )
    check_folder(folder)
    put(lines, folder / ITEMS)
    put(gold, folder / GOLD)
    document = json.dumps(asdict(plan), indent=1, ensure_ascii=False, allow_nan=False)
    put(document + "\n", folder / PLAN)  # last: what has it is whole
    return True


def check_folder(folder: Path) -> None:
    """Raise where a pool cannot be written, before anything is paid for it.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    InputError
        It holds other things than a pool, or cannot be written.
    """
    refuse_url(folder)
    if is_pool(folder):
        return
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        why = "it cannot be written" if nearest.is_dir() else f"{nearest} is a file"
        raise InputError(f"{why}; name another folder with --out", path=folder)
    # What a draw left that was cut off is written again.
    others = [
        path.name
        for path in (folder.iterdir() if folder.exists() else ())
        if path.name not in {ITEMS, GOLD} and not path.name.startswith(".")
    ]
    if others:
        raise InputError(
            f"this folder holds other things ({min(others)}); name another with --out",
            path=folder,
        )


def read_pool(folder: Path) -> Pool:
    """Read a pool.

    Raises
    ------
    InputError
        The folder is none, or a file of it is damaged or is not the one that was drawn.
    """
    if not is_pool(folder):
        what = "this is no pool" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{what}; draw one with  misslink goldset pool", path=folder)
    plan = _read_plan(folder / PLAN)
    path = folder / ITEMS
    if _digest(read_text(path)) != plan.items:
        raise InputError(f"it is not as it was drawn; put it back, or {_WAY_OUT}", path=path)
    adapter = TypeAdapter(PoolItem)
    items = tuple(adapter.validate_python(data) for _, data in read_objects(path))
    goldset = read_goldset(folder / GOLD)
    if {case.id for case in goldset.cases} != set(plan.strata):
        raise InputError(
            f"its questions are not those of the pool; put it back, or {_WAY_OUT}",
            path=folder / GOLD,
        )
    return Pool(
        goldset=goldset,
        items=items,
        strata=plan.strata,
        rankings=plan.rankings,
        depth=plan.depth,
        random=plan.random,
        stratified=plan.stratified,
        seed=plan.seed,
        corpus=plan.corpus,
        bands_by=plan.bands_by,
        rejudged=plan.rejudged,
        inputs=plan.inputs,
    )


def _read_plan(path: Path) -> _Plan:
    try:
        data = json.loads(read_text(path))
        plan = TypeAdapter(_Plan).validate_python(data)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        field = ".".join(map(str, error["loc"]))
        raise InputError(f"{error['msg']}; {_WAY_OUT}", path=path, field=field) from None
    except (ValueError, RecursionError):
        raise InputError(f"this is not JSON; {_WAY_OUT}", path=path) from None
    if plan.format > FORMAT:
        raise InputError("this pool was drawn by a newer misslink; upgrade misslink", path=path)
    return plan


def _lines(items: Iterable[PoolItem]) -> str:
    return "".join(
        json.dumps(asdict(item), ensure_ascii=False, allow_nan=False) + "\n" for item in items
    )


def _plan(pool: Pool, lines: str) -> _Plan:
    return _Plan(
        format=FORMAT,
        depth=pool.depth,
        random=pool.random,
        stratified=pool.stratified,
        seed=pool.seed,
        corpus=pool.corpus,
        bands_by=pool.bands_by,
        rejudged=pool.rejudged,
        inputs=dict(pool.inputs),
        items=_digest(lines),
        strata={case: tuple(strata) for case, strata in pool.strata.items()},
        rankings={name: dict(of) for name, of in pool.rankings.items()},
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
