"""What many kinds have in common: a thing that is asked for, its passages, answers of an app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .planted import ATTRIBUTES, TOWNS, App, Planted, Say, Thing

Make = Callable[[App], Planted]
KINDS: dict[str, Make] = {}
SECOND: dict[str, Make] = {}
THIRD: dict[str, Make] = {}
FOURTH: dict[str, Make] = {}
FIFTH: dict[str, Make] = {}
SIXTH: dict[str, Make] = {}
SEVENTH: dict[str, Make] = {}
EIGHTH: dict[str, Make] = {}
NINTH: dict[str, Make] = {}
TENTH: dict[str, Make] = {}
MISS = ("retrieval_miss",)
DROPPED = ("dropped_from_prompt",)
LOST = ("lost_context", "not_searched")
NOT_INDEXED = ("not_indexed",)
OLD_COPY = ("conflicting_sources", "not_indexed")
PASSED = ("passed", "missing_label", "answered_from_memory")
FALSE_CLAIM = ("contradicts_context", "fabricated", "ignored_context", "distracted")
DECLINES = (
    "I could not find that in the documents.",
    "Sorry, the documents do not say.",
    "There is no information on this in the sources.",
    "I don't know; the context does not mention it.",
    "The provided passages do not contain the answer.",
)
INVENTIONS = (
    "This was decided by the council in 1987.",
    "Since last year this is the case on weekends only.",
    "It won a medal for that in 1974.",
    "Local newspapers call it the best of its kind.",
    "An exception is made for visitors from abroad.",
)


def kind(make: Make) -> Make:
    """List a kind under its function's name."""
    KINDS[make.__name__] = make
    return make


def second_kind(make: Make) -> Make:
    """List a kind of the second set."""
    SECOND[make.__name__] = make
    return make


def third_kind(make: Make) -> Make:
    """List a kind of the third set."""
    THIRD[make.__name__] = make
    return make


def fourth_kind(make: Make) -> Make:
    """List a kind of the fourth set."""
    FOURTH[make.__name__] = make
    return make


def fifth_kind(make: Make) -> Make:
    """List a kind of the fifth set."""
    FIFTH[make.__name__] = make
    return make


def sixth_kind(make: Make) -> Make:
    """List a kind of the sixth set."""
    SIXTH[make.__name__] = make
    return make


def seventh_kind(make: Make) -> Make:
    """List a kind of the seventh set."""
    SEVENTH[make.__name__] = make
    return make


def eighth_kind(make: Make) -> Make:
    """List a kind of the eighth set."""
    EIGHTH[make.__name__] = make
    return make


def ninth_kind(make: Make) -> Make:
    """List a kind of the ninth set."""
    NINTH[make.__name__] = make
    return make


def tenth_kind(make: Make) -> Make:
    """List a kind of the tenth set."""
    TENTH[make.__name__] = make
    return make


def declined(app: App) -> tuple[Say, ...]:
    return (Say(app.draw.choice(DECLINES)),)


def invention(app: App) -> Say:
    return Say(app.draw.choice(INVENTIONS), None)


def wrong(app: App, thing: Thing, attribute: str) -> tuple[Say, ...]:
    """An answer with a value that no document gives."""
    return (app.answer(thing, attribute, app.other(attribute, thing.values[attribute])),)


def start(app: App, **values: str) -> tuple[Thing, str]:
    """A new thing, and the attribute that is asked for."""
    return app.thing(**values), app.draw.choice(ATTRIBUTES)


def plan(app: App, thing: Thing, asked: str | Sequence[str], **fields: Any) -> Planted:
    """A case about attributes of one thing, with what most kinds have in common."""
    attributes = (asked,) if isinstance(asked, str) else tuple(asked)
    if len(attributes) == 1:
        question = app.ask(thing, attributes[0], fields.pop("wording", -1))
    else:
        *most, last = [app.world[one]["noun"] for one in attributes]
        question = f"What are {', '.join(most)} and {last} of {thing.name}?"
    needs = tuple(((thing.name, one), thing.values[one]) for one in attributes)
    chunks = tuple(dict.fromkeys(thing.chunk(one) for one in attributes))
    common = {
        "question": question,
        "needs": needs,
        "references": tuple(app.reference(thing, one) for one in attributes),
        "relevant": chunks,
    }
    return Planted(**(common | fields))


def around(app: App, thing: Thing, attribute: str, count: int = 4) -> tuple[str, ...]:
    """Passages of others on the same attribute, and the thing's own other passage."""
    own = thing.second if thing.chunk(attribute) == thing.first else thing.first
    found = [own, *app.neighbors(attribute, count - 1, thing)]
    return tuple(app.shuffled(found))


def with_it(app: App, thing: Thing, attribute: str, at: int = -1) -> tuple[str, ...]:
    """The needed passage among three of the others."""
    found = list(around(app, thing, attribute, 3))
    found.insert(app.draw.randrange(4) if at < 0 else at, thing.chunk(attribute))
    return tuple(found)


def altered(app: App, text: str, thing: Thing, attribute: str, value: str) -> str:
    """The passage with another value in its sentence."""
    return text.replace(
        app.state(thing, attribute, wording=thing.wording),
        app.state(thing, attribute, value, thing.wording),
    )


def unindexed(app: App) -> tuple[Thing, str, tuple[str, ...]]:
    """A thing whose passage on the asked attribute is not in the index."""
    thing = app.thing()
    asked = thing.order[0]
    gone, thing.first = thing.first, f"unindexed-{len(app.corpus)}"
    del app.corpus[gone]
    found = (thing.second, *app.neighbors(asked, 3, thing))
    app.things.remove(thing)  # no neighbor of others: it lacks a passage
    return thing, asked, found


def in_the_prompt(app: App, **fields: Any) -> tuple[Planted, Thing, str]:
    """A case with all that it needs in the prompt, answered right."""
    thing, asked = start(app)
    common = {
        "retrieved": with_it(app, thing, asked),
        "answer": (app.answer(thing, asked),),
        "owner": "generator",
        "modes": FALSE_CLAIM,
        "lost": "answer",
    }
    return plan(app, thing, asked, **(common | fields)), thing, asked


def answered_right(app: App, **fields: Any) -> tuple[Planted, Thing, str]:
    return in_the_prompt(app, **({"owner": "none", "modes": PASSED, "lost": None} | fields))


def unlisted(app: App) -> tuple[Planted, Thing, str]:
    """An unlisted passage states it in the prompt; the listed one was missed."""
    thing, asked = start(app)
    filler = app.draw.sample(app.world["filler"], 2)
    said = app.state(thing, asked, wording=0)
    unlisted = app.index(f"From the yearbook. {filler[0]} {said} {filler[1]}")
    found = (unlisted, *around(app, thing, asked, 3))
    case = plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked),),
        owner="none", modes=PASSED,
    )  # fmt: skip
    return case, thing, asked


def half_shown(app: App) -> tuple[Planted, Thing, tuple[str, ...], tuple[str, ...]]:
    """Passages are cut behind the needed sentence."""
    thing = app.thing()
    asked = thing.order[0]
    found = with_it(app, thing, asked, 0)
    text = app.corpus[thing.first]
    needed = app.state(thing, asked, wording=thing.wording)
    at = text.index(needed) + len(needed) + 15
    case = plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked),), owner="none",
        modes=PASSED,
    )  # fmt: skip
    return case, thing, found, tuple(app.corpus[one][:at] for one in found)


def two_hops(app: App) -> tuple[Planted, Thing, str, str]:
    """A question over two hops: the case without an app, its thing, and the two passages."""
    thing = app.thing()
    person, town = thing.values["person"], app.draw.choice(TOWNS)
    hop = portrait(app, person, town)
    case = Planted(
        question=f"In which town did {app.world['person']['noun']} of {thing.name} grow up?",
        needs=(((person, "town"), town),), answer=(), retrieved=(), owner="none", modes=PASSED,
        references=(Say(f"{person} grew up in {town}.", (((person, "town"), town),)),),
        relevant=(thing.chunk("person"), hop),
    )  # fmt: skip
    return case, thing, hop, town


def portrait(app: App, person: str, town: str) -> str:
    """A passage on a person."""
    sentence = f"{person} grew up in {town}."
    app.register(sentence, ((person, "town"), town))
    tail = app.draw.sample(app.world["filler"], 2)
    return app.index(f"A portrait of the people behind the scenes. {sentence} {' '.join(tail)}")


def talk(thing: Thing) -> tuple[dict[str, str], ...]:
    return (
        {"role": "user", "content": f"I would like to know more about {thing.name}."},
        {"role": "assistant", "content": "With pleasure. What would you like to know?"},
    )


def summed(app: App) -> tuple[Planted, str]:
    """A sum over two passages that both are in the prompt, and its value."""
    one = app.thing()
    two = app.thing(count=app.other("count", one.values["count"]))
    right = str(int(one.values["count"]) + int(two.values["count"]))
    fact = (f"{one.name} + {two.name}", "sum")
    app.derived[fact] = (
        right,
        tuple(((each.name, "count"), each.values["count"]) for each in (one, two)),
    )
    text = app.world["sum_answer"].format(a=one.name, b=two.name, v=right)
    said = Say(text[0].upper() + text[1:], ((fact, right),))
    chunks = (one.chunk("count"), two.chunk("count"))
    case = Planted(
        question=app.world["sum_question"].format(a=one.name, b=two.name),
        needs=((fact, right),), answer=(said,), references=(said,), relevant=chunks,
        retrieved=(chunks[1], *app.neighbors("count", 2, one, two), chunks[0]),
        owner="none", modes=PASSED,
    )  # fmt: skip
    return case, right
