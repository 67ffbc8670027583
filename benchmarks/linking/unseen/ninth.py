"""Ninth set: the words of each domain (`ninth.toml`), and pages in several layouts made of them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from .cases import declined
from .eighth import others
from .planted import App, Planted, Row, Say, Thing
from .seventh import filled, state

TEXTS: dict[str, Row] = tomllib.loads(Path(__file__).with_name("ninth.toml").read_text("utf-8"))
LAYOUTS = ("{lead}. {text}", "{lead}\n\n{text}", "## {lead}\n{text}", "{text} ({lead})")


def texts(app: App) -> Row:
    """What the ninth set says in the domain of the app."""
    return TEXTS[app.world["name"]]


def worded(app: App, of: str) -> Row:
    """The words of a kind. What has no reference of its own gets the answer's sentence, or the value."""
    words: Row = texts(app)[of]
    short = app.draw.random() < 0.5
    return {"reference": "{v}." if short else words.get("answer", "")} | words


def page(app: App, *sentences: str) -> str:
    """Index a page with these sentences, in one of the layouts, and small talk around them."""
    lead = app.draw.choice(texts(app)["lead"])
    filler = app.draw.sample(app.world["filler"], 2)
    at = app.draw.randrange(3)
    text = " ".join([*filler[:at], *sentences, *filler[at:]])
    return app.index(app.draw.choice(LAYOUTS).format(lead=lead, text=text))


def about_it(app: App, thing: Thing, words: Row) -> list[str]:
    """Pages on the thing that share words with the question."""
    return [page(app, filled(thing, one)) for one in words["besides"]]


def beside(app: App, thing: Thing, words: Row, written: str = "sentence") -> list[str]:
    """Pages that share words with the question: on the thing, and what is written of it, of others."""
    values = [words[one] for one in ("w", "x") if one in words] or ["theirs"]
    theirs = [
        page(app, state(app, other, value, words[written], v=value))
        for other, value in zip(others(app, thing, len(values)), values, strict=True)
    ]
    return [*about_it(app, thing, words), *theirs]


def declining(app: App, case: Planted) -> Planted:
    """The case with an app that declines, in the domain's own words or in common ones."""
    own = app.draw.random() < 0.6
    said = (Say(app.draw.choice(texts(app)["decline"])),) if own else declined(app)
    return replace(case, answer=said, response="declines")


def guessed_or_declined(app: App, case: Planted) -> Planted:
    """The case as it is, with a guess, or with an app that declines."""
    return case if app.draw.random() < 0.5 else declining(app, case)
