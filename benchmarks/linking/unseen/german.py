"""The question for the count of a thing, and its answer, in German: {n} is the name, {v} the value."""

from __future__ import annotations

from .planted import App, Thing

GERMAN = {
    "lighthouses": (
        "Wie viele Stufen hat der Leuchtturm {n}?",
        "Der Leuchtturm {n} hat {v} Stufen.",
    ),
    "mountain huts": ("Wie viele Betten hat die Hütte {n}?", "Die Hütte {n} hat {v} Betten."),
    "leave rules": (
        "Wie viele freie Tage im Jahr bringt der Urlaubsplan {n}?",
        "Mit dem Urlaubsplan {n} gibt es {v} freie Tage im Jahr.",
    ),
    "coffee machines": (
        "Wie viele Tassen fasst die Kaffeemaschine {n}?",
        "Die Kaffeemaschine {n} fasst {v} Tassen.",
    ),
    "server tools": (
        "Wie viele Threads startet der Dienst {n}?",
        "Der Dienst {n} startet {v} Threads.",
    ),
    "museum pieces": (
        "Wie viele geschnitzte Figuren zeigt der Altar {n}?",
        "Der Altar {n} zeigt {v} geschnitzte Figuren.",
    ),
    "tariffs": (
        "Wie viel Euro Selbstbeteiligung hat der Tarif {n}?",
        "Der Tarif {n} hat {v} Euro Selbstbeteiligung.",
    ),
    "lab procedures": (
        "Wie viele Proben braucht der Test {n}?",
        "Der Test {n} braucht {v} Proben.",
    ),
    "bicycles": ("Wie viele Gänge hat das Reiserad {n}?", "Das Reiserad {n} hat {v} Gänge."),
    "courses": (
        "Wie viele Leistungspunkte bringt das Seminar {n}?",
        "Das Seminar {n} bringt {v} Leistungspunkte.",
    ),
    "orchard varieties": (
        "Wie viele Wochen hält sich der Apfel {n}?",
        "Der Apfel {n} hält sich {v} Wochen.",
    ),
    "tram lines": (
        "Wie viele Haltestellen bedient die Linie {n}?",
        "Die Linie {n} bedient {v} Haltestellen.",
    ),
}
DECLINES = "Dazu steht leider nichts in den Unterlagen."


def proper_name(thing: Thing) -> str:
    """The name without what it is: Bradane of 'the Bradane line'."""
    return thing.name.removeprefix("the ").split()[0]


def german_question(app: App, thing: Thing) -> str:
    return GERMAN[app.world["name"]][0].format(n=proper_name(thing))


def german_answer(app: App, thing: Thing) -> str:
    return GERMAN[app.world["name"]][1].format(n=proper_name(thing), v=thing.values["count"])
