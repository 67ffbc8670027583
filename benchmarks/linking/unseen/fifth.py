"""Fifth set: the words of each domain (`fifth.toml`), and pages made of them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from .cases import declined
from .planted import WORLDS, App, Fact, Row, Say, Thing

TEXTS: dict[str, Row] = tomllib.loads(Path(__file__).with_name("fifth.toml").read_text("utf-8"))
NUMBER = {one["name"]: number for number, one in enumerate(WORLDS)}
COLUMNS = ("person", "count", "form")


def texts(app: App) -> Row:
    """What the fifth set says in the domain of the app."""
    return TEXTS[app.world["name"]]


def sentence(text: str, **values: str) -> str:
    """A template filled in, with a capital letter."""
    filled = text.format(**values)
    return filled[0].upper() + filled[1:]


def enumerated(items: Sequence[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}"


def state(app: App, thing: Thing, *facts: tuple[str, str], text: str, **values: str) -> str:
    """A sentence of the documents on a thing, registered with the facts (attribute, value)."""
    said = sentence(text, e=thing.name, **values)
    app.register(said, *(((thing.name, attribute), value) for attribute, value in facts))
    return said


def page(app: App, *sentences: str) -> str:
    """Index a page with these sentences, and small talk around them or before them."""
    lead = app.draw.choice(texts(app)["lead"])
    filler = app.draw.sample(app.world["filler"], 3)
    before, after = (filler[:1], filler[1:]) if app.draw.random() < 0.5 else (filler[:2], [])
    return app.index(" ".join([lead, *before, *sentences, *after]))


def fact(thing: Thing, attribute: str, value: str) -> tuple[tuple[Fact, str], ...]:
    return (((thing.name, attribute), value),)


def no_answer(app: App) -> tuple[Say, ...]:
    """The app declines: in the domain's own words, or in common ones."""
    return (Say(texts(app)["decline"]),) if app.draw.random() < 0.5 else declined(app)


def table(app: App, things: Sequence[Thing], form: str) -> list[str]:
    """The lines of a table of things: Markdown, semicolons, or HTML. Rows are registered."""
    nouns = [app.world[one]["noun"].removeprefix("the ") for one in COLUMNS]
    lines = [row(("name", *nouns), form)]
    if form == "markdown":
        lines.append("|---|---|---|---|")
    for one in things:
        line = row((one.name, *(one.values[column] for column in COLUMNS)), form)
        app.register(line, *(((one.name, column), one.values[column]) for column in COLUMNS))
        lines.append(line)
    return lines


def row(cells: Sequence[str], form: str) -> str:
    """One line of a table."""
    if form == "markdown":
        return f"| {' | '.join(cells)} |"
    if form == "html":
        return f"<tr>{''.join(f'<td>{one}</td>' for one in cells)}</tr>"
    return ";".join(cells)


def table_page(app: App, form: str) -> tuple[Thing, str, list[str]]:
    """Index a page with a table of three things: one of them, the page, and the prose of the page."""
    things = [app.thing(indexed=False) for _ in range(3)]
    for one in things:
        app.things.remove(one)  # no neighbors of others: they have no passages of their own
    filler = app.draw.sample(app.world["filler"], 2)
    lead = f"{app.draw.choice(texts(app)['lead'])} {filler[0]}"
    chunk = app.index("\n".join([lead, *table(app, things, form), filler[1]]))
    for one in things:
        one.first = one.second = chunk
    return app.draw.choice(things), chunk, [lead, filler[1]]
