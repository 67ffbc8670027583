"""What a judge says of a pool: asked for on request, shown to nobody, measured against people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from misslink.errors import InputError
from misslink.files.jsonl import read_objects
from misslink.files.whole import put as put_file
from misslink.goldset.pooling.folder import PRELABELS, Pool, PoolItem
from misslink.goldset.pooling.settling import GRADES, kappa_of
from misslink.judging.asking import put
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.prompting import BUILT_IN, Prompts
from misslink.stats import proportion

__all__ = ["PassageGrade", "Prelabel", "ask_grade", "measured", "prelabelled", "read_prelabels",
           "write_prelabels"]  # fmt: skip

Level = Literal["not_relevant", "relevant", "highly_relevant"]
_LEVELS: dict[Level, int] = {"not_relevant": 0, "relevant": 1, "highly_relevant": 2}
_WAY_OUT = "delete it, and ask again with  misslink goldset pool ... --prelabel"


class PassageGrade(BaseModel):
    """How relevant a passage is to a question."""

    model_config = ConfigDict(frozen=True)

    grade: Level


@dataclass(frozen=True)
class Prelabel:
    """What a judge said of one item.

    Parameters
    ----------
    item : str
    grade : int or None
        None: it gave none, and `reason` says why.
    judge : str
    reason : str or None
    """

    item: str
    grade: int | None
    judge: str
    reason: str | None = None


def ask_grade(item: PoolItem, prompts: Prompts = BUILT_IN) -> Ask:
    """Return the question how relevant a passage is; it holds nothing of how it was drawn."""
    inputs = {"question": item.question, "passage": item.text}
    return Ask.rendered(prompts.load("goldset_relevance"), inputs, PassageGrade)


async def prelabelled(
    pool: Pool,
    judge: Judge,
    *,
    prompts: Prompts = BUILT_IN,
    done: Callable[[int, int], None] | None = None,
) -> list[Prelabel]:
    """Ask a judge about every item, in the pool's order.

    Parameters
    ----------
    pool : Pool
    judge : Judge
        Replies that its ledger holds are not paid again.
    prompts : Prompts
    done : callable or None
        Told how many are done, and of how many.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless.
    InputError
        It gave no grade at all.
    """
    finished = 0

    async def one(item: PoolItem) -> Prelabel:
        nonlocal finished
        found = _read(item, await put(judge, ask_grade(item, prompts)), judge.name)
        finished += 1
        if done is not None:
            done(finished, len(pool.items))
        return found

    given = list(await asyncio.gather(*map(one, pool.items)))
    if all(one.grade is None for one in given):
        raise InputError(f"{judge.name} gave no grade: {given[0].reason}; name another judge")
    return given


def write_prelabels(folder: Path, given: list[Prelabel]) -> Path:
    """Write what a judge said into a pool's folder, in place of what another said before."""
    lines = [json.dumps(asdict(one), ensure_ascii=False) for one in given]
    return put_file("".join(f"{line}\n" for line in lines), folder / PRELABELS)


def read_prelabels(folder: Path, pool: Pool) -> dict[str, Prelabel]:
    """Read what a judge said of the items of a pool; nothing where none was asked.

    Raises
    ------
    InputError
        The file is damaged.
    """
    path = folder / PRELABELS
    if not path.exists():
        return {}
    adapter = TypeAdapter(Prelabel)
    found: dict[str, Prelabel] = {}
    for line, data in read_objects(path):
        try:
            one = adapter.validate_python(data)
        except ValidationError as invalid:
            problem = f"{invalid.errors()[0]['msg']}; {_WAY_OUT}"
            raise InputError(problem, path=path, line=line) from None
        if one.grade is not None and not 0 <= one.grade < len(GRADES):
            raise InputError(f"its grade is none; {_WAY_OUT}", path=path, line=line, field="grade")
        found[one.item] = one
    return {item.item: found[item.item] for item in pool.items if item.item in found}


def measured(
    given: Mapping[str, Prelabel], grades: Mapping[str, int], *, seed: int = 0
) -> dict[str, Any]:
    """How far a judge's grades agree with people's, on what both graded.

    Parameters
    ----------
    given : mapping of str to Prelabel
    grades : mapping of str to int
        People's settled ones.
    seed : int

    Returns
    -------
    dict
        ``judge``; ``labelled`` and ``failed`` items; ``n`` that both graded; ``kappa`` with
        quadratic weights; ``confusion``, a row a grade of people, a column one of the judge; and
        ``grades``: of each how often the judge says it too (``recall``), and how often people do
        where the judge says it (``precision``).
    """
    said = {item: one.grade for item, one in given.items()}
    both = [(grades[i], grade) for i, grade in said.items() if grade is not None and i in grades]
    table = [[0] * len(GRADES) for _ in GRADES]
    for theirs, mine in both:
        table[theirs][mine] += 1
    return {
        "judge": next((one.judge for one in given.values()), None),
        "labelled": sum(grade is not None for grade in said.values()),
        "failed": sum(grade is None for grade in said.values()),
        "n": len(both),
        "kappa": kappa_of(grades, said, seed=seed),
        "confusion": table,
        "grades": {
            name: {
                "recall": proportion(table[at][at], sum(table[at])),
                "precision": proportion(table[at][at], sum(row[at] for row in table)),
            }
            for at, name in enumerate(GRADES)
        },
    }


def _read(item: PoolItem, reply: Reply, name: str) -> Prelabel:
    by = reply.judge or name
    if isinstance(reply.parsed, PassageGrade):
        return Prelabel(item.item, _LEVELS[reply.parsed.grade], by)
    return Prelabel(item.item, None, by, reply.problem or "its reply cannot be read")
