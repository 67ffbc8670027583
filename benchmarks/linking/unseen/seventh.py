"""Seventh set: the words of each domain (`seventh.toml`), and pages and cases made of them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from .cases import declined, plan
from .fifth import sentence
from .german import proper_name
from .planted import App, Fact, Planted, Row, Say, Thing

TEXTS: dict[str, Row] = tomllib.loads(Path(__file__).with_name("seventh.toml").read_text("utf-8"))


def texts(app: App) -> Row:
    """What the seventh set says in the domain of the app."""
    return TEXTS[app.world["name"]]


def asked(thing: Thing, value: str, of: str = "asked") -> tuple[tuple[Fact, str], ...]:
    """What is asked of a thing, and a value of it; by the name alone, which foreign pages have, too."""
    return (((proper_name(thing), of), value),)


def filled(thing: Thing, text: str, **values: str) -> str:
    """A template with the names of a thing."""
    return sentence(text, e=thing.name, n=proper_name(thing), **values)


def state(
    app: App, thing: Thing, value: str, text: str, *, of: str = "asked", **values: str
) -> str:
    """A sentence of the documents on a thing, registered with a value of what is asked."""
    said = filled(thing, text, **values)
    app.register(" ".join(said.split()), *asked(thing, value, of))
    return said


def page(app: App, *sentences: str) -> str:
    """Index a page with these sentences, and small talk around, before or behind them."""
    lead = app.draw.choice(texts(app)["lead"])
    filler = app.draw.sample(app.world["filler"], 3)
    at = app.draw.randrange(4)
    return app.index(" ".join([lead, *filler[:at], *sentences, *filler[at:]]))


def among(app: App, thing: Thing, *needed: str, attribute: str = "plain") -> tuple[str, ...]:
    """These pages among passages on this and that, four in all, in a drawn order."""
    rest = [thing.first, *app.neighbors(attribute, 3 - len(needed), thing)]
    return tuple(app.shuffled([*needed, *rest]))


def about(
    app: App, thing: Thing, words: Row, value: str, *, claimed: str = "", labelled: str = "",
    written: str = "", **fields: Any,
) -> Planted:  # fmt: skip
    """A case on what words of the domain ask, state, answer and expect of one thing.

    `claimed`, `labelled`: what answer and reference state, if not the right value; `written`: how
    the answer writes it.
    """
    claimed, labelled = claimed or value, labelled or value
    answer = words.get("answer", words.get("sentence"))
    reference = words.get("reference", answer)
    common = {
        "question": filled(thing, words["question"]),
        "needs": asked(thing, value),
        "answer": (Say(filled(thing, answer, v=written or claimed), asked(thing, claimed)),),
        "references": (Say(filled(thing, reference, v=labelled), asked(thing, labelled)),),
    }
    return plan(app, thing, "count", **(common | fields))


def declining(app: App, case: Planted) -> Planted:
    """The case with an app that declines, in the domain's own words or in common ones."""
    own = app.draw.random() < 0.6
    said = (Say(texts(app)["decline"]),) if own else declined(app)
    return replace(case, answer=said, response="declines")


def guessed_or_declined(app: App, case: Planted) -> Planted:
    """The case as it is, with a guess, or with an app that declines."""
    return case if app.draw.random() < 0.5 else declining(app, case)
