"""Tenth set: the words of each domain (`tenth.toml`), and pages in several layouts made of them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from .cases import declined
from .eighth import others
from .planted import App, Planted, Row, Say, Thing
from .seventh import filled, state

TEXTS: dict[str, Row] = tomllib.loads(Path(__file__).with_name("tenth.toml").read_text("utf-8"))
LAYOUTS = ("{lead}: {text}", "[{lead}]\n\n{text}", "{text}\n-- {lead}", "**{lead}**\n- {text}")


def texts(app: App) -> Row:
    """What the tenth set says in the domain of the app."""
    return TEXTS[app.world["name"]]


def worded(app: App, of: str) -> Row:
    """The words of a kind. What has no reference of its own gets the answer's sentence, or the value."""
    words: Row = texts(app)[of]
    short = app.draw.random() < 0.5
    return {"reference": "{v}." if short else words.get("answer", "")} | words


def page(app: App, *sentences: str) -> str:
    """Index a page with these sentences, in one of the layouts, and small talk around them."""
    layout, lead = app.draw.choice(LAYOUTS), app.draw.choice(texts(app)["lead"])
    filler = app.draw.sample(app.world["filler"], 2)
    at = app.draw.randrange(3)
    parts = [*filler[:at], " ".join(sentences), *filler[at:]]
    text = ("\n- " if layout.endswith("- {text}") else " ").join(parts)
    return app.index(layout.format(lead=lead, text=text))


def about_it(app: App, thing: Thing, words: Row) -> list[str]:
    """Pages on the thing that share words with the question."""
    return [page(app, filled(thing, one)) for one in words["besides"]]


def beside(app: App, thing: Thing, words: Row, written: str = "sentence") -> list[str]:
    """Pages that share words with the question: on the thing, and what is written of it, of others."""
    values = [words[one] for one in ("w", "x") if one in words] or ["theirs", "theirs"]
    theirs = [
        page(app, state(app, other, value, words[written], v=value))
        for other, value in zip(others(app, thing, len(values)), values, strict=True)
    ]
    return [*about_it(app, thing, words), *theirs]


def guessed_or_declined(app: App, case: Planted) -> Planted:
    """The case as it is, with a guess, or with an app that declines in its domain's words or in common ones."""
    if app.draw.random() < 0.5:
        return case
    own = app.draw.random() < 0.6
    said = (Say(app.draw.choice(texts(app)["decline"])),) if own else declined(app)
    return replace(case, answer=said, response="declines")
