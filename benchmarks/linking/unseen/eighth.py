"""Eighth set: the words of each domain (`eighth.toml`), and pages that share words with a question."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .cases import declined
from .planted import App, Planted, Row, Say, Thing
from .seventh import filled, state

TEXTS: dict[str, Row] = tomllib.loads(Path(__file__).with_name("eighth.toml").read_text("utf-8"))
DEPTH = 20  # of the search that was recorded for labels beyond the first four


def texts(app: App) -> Row:
    """What the eighth set says in the domain of the app."""
    return TEXTS[app.world["name"]]


def page(app: App, *sentences: str) -> str:
    """Index a page with these sentences, and small talk around, before or behind them."""
    lead = app.draw.choice(texts(app)["lead"])
    filler = app.draw.sample(app.world["filler"], 2)
    at = app.draw.randrange(3)
    return app.index(" ".join([lead, *filler[:at], *sentences, *filler[at:]]))


def others(app: App, thing: Thing, count: int) -> list[Thing]:
    """Other things that have passages of their own."""
    return app.draw.sample([one for one in app.things if one is not thing and one.first], count)


def beside(app: App, thing: Thing, words: Row, written: str = "sentence") -> list[str]:
    """Pages that share words with the question: on the thing, and what is written of it, of others."""
    near = [page(app, filled(thing, one)) for one in words.get("besides", ())]
    values = [words[one] for one in ("w", "x") if one in words] or [""]
    near += [
        page(app, state(app, other, value, words[written], of="beside", v=value))
        for other, value in zip(others(app, thing, len(values)), values, strict=True)
    ]
    return near


def four(app: App, thing: Thing, *pages: str) -> tuple[str, ...]:
    """The first four of these pages, in a drawn order; the thing's own passages fill up."""
    return tuple(app.shuffled([*pages, thing.first, thing.second][:4]))


def behind(
    app: App, thing: Thing, found: Sequence[str], near: Sequence[str], needed: str = "",
    rank: int = 0,
) -> Row:  # fmt: skip
    """What the same search returns down to a depth of 20: what is near, then this and that.

    The needed page stands at its rank, or nowhere.
    """
    nearer = [one for one in (*near, thing.first, thing.second) if one not in {*found, needed}]
    rest = [one for one in app.corpus if one not in {*found, *nearer, needed}]
    pool = iter([*nearer, *app.draw.sample(rest, min(len(rest), DEPTH))])
    listed = [(needed if at == rank else next(pool, ""), at) for at in range(5, DEPTH + 1)]
    return {"deeper": tuple((one, at) for one, at in listed if one), "depth": DEPTH}


def declining(app: App, case: Planted) -> Planted:
    """The case with an app that declines, in the domain's own words or in common ones."""
    own = app.draw.random() < 0.6
    said = (Say(texts(app)["decline"]),) if own else declined(app)
    return replace(case, answer=said, response="declines")


def guessed_or_declined(app: App, case: Planted) -> Planted:
    """The case as it is, with a guess, or with an app that declines."""
    return case if app.draw.random() < 0.5 else declining(app, case)


def missed(
    app: App, thing: Thing, needed: str, near: Sequence[str], rank: int = 0
) -> dict[str, Any]:  # fmt: skip
    """What four pages came, and at what rank behind them the needed one; 0: at none."""
    found = four(app, thing, *near)
    return {
        "retrieved": found, "owner": "retriever", "modes": ("retrieval_miss",),
        "lost": "rank" if rank else "filter", **behind(app, thing, found, near, needed, rank),
    }  # fmt: skip
