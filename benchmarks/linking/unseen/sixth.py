"""Sixth set: the words of each domain (`sixth.toml`), and pages made of them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from .cases import declined, plan, wrong
from .fifth import NUMBER, fact, sentence, state
from .planted import App, Planted, Row, Say, Thing

TEXTS: dict[str, Row] = tomllib.loads(Path(__file__).with_name("sixth.toml").read_text("utf-8"))
FORMS = ("semicolons", "html", "markdown")


def texts(app: App) -> Row:
    """What the sixth set says in the domain of the app."""
    return TEXTS[app.world["name"]]


def turn(app: App, count: int) -> int:
    """A number below `count`, another one in the next domain."""
    return NUMBER[app.world["name"]] % count


def form(app: App) -> str:
    """How tables are written in this domain."""
    return FORMS[turn(app, 3)]


def lead(app: App) -> str:
    """What a page begins with."""
    return str(app.draw.choice(texts(app)["lead"]))


def page(app: App, *sentences: str) -> str:
    """Index a page with these sentences, and small talk around, before or behind them."""
    filler = app.draw.sample(app.world["filler"], 3)
    at = app.draw.randrange(4)
    return app.index(" ".join([lead(app), *filler[:at], *sentences, *filler[at:]]))


def unsaid(app: App, *guess: Say) -> Row:
    """What an app does without what it needs: it declines in its own or in common words, or guesses."""
    if guess and app.draw.random() < 0.5:
        return {"answer": guess, "response": "answers"}
    own = app.draw.random() < 0.6
    return {
        "answer": (Say(texts(app)["decline"]),) if own else declined(app),
        "response": "declines",
    }


def unsaid_value(app: App, thing: Thing, attribute: str) -> Row:
    """The same of a value: it declines, or gives one that no document has."""
    return unsaid(app, *wrong(app, thing, attribute))


def about(app: App, thing: Thing, of: str, attribute: str, value: str, **fields: Any) -> Planted:
    """A case on what the domain's words `of` ask, state, answer and expect of one thing.

    `said`, `expected`: words filled into answer and reference; `claimed`, `labelled`: the values that
    both state of the attribute, the right one if not given.
    """
    words = texts(app)[of]
    said, expected = fields.pop("said", {}), fields.pop("expected", {})
    claimed, labelled = fields.pop("claimed", value), fields.pop("labelled", value)
    reference = words.get("reference", words["answer"])
    common = {
        "question": sentence(words["question"], e=thing.name, **expected),
        "needs": fact(thing, attribute, value),
        "answer": (
            Say(sentence(words["answer"], e=thing.name, **said), fact(thing, attribute, claimed)),
        ),
        "references": (
            Say(sentence(reference, e=thing.name, **expected), fact(thing, attribute, labelled)),
        ),
    }
    return plan(app, thing, "count", **(common | fields))


def steps(app: App, thing: Thing) -> tuple[str, str, tuple[tuple[tuple[str, str], str], ...]]:
    """Both halves of a procedure of four steps, registered, and the four facts."""
    words = texts(app)["steps"]
    first, second, third, fourth = words["items"]
    head = state(
        app, thing, (first, "yes"), (second, "yes"), text=words["head"], a=first, b=second
    )  # fmt: skip
    tail = state(
        app, thing, (third, "yes"), (fourth, "yes"), text=words["tail"], c=third, d=fourth
    )  # fmt: skip
    return head, tail, tuple(((thing.name, one), "yes") for one in words["items"])


def strangers(app: App, count: int) -> list[Thing]:
    """Things without passages of their own."""
    made = [app.thing(indexed=False) for _ in range(count)]
    for one in made:
        app.things.remove(one)  # no neighbors of others
    return made
