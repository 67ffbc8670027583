"""Eighth set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import FALSE_CLAIM, PASSED, answered_right, in_the_prompt, plan, with_it
from .cases import eighth_kind as kind
from .eighth import behind, beside, four, others, page, texts
from .fifth import enumerated
from .german import proper_name
from .planted import App, Planted, Row, Say
from .second_answered import GOLD
from .seventh import about, state
from .third_answered import NO_ANSWER

# It stood in the prompt, and the answer spoiled it.

SPOILED: Row = {"owner": "generator", "modes": FALSE_CLAIM, "lost": "answer"}


@kind
def claims_to_have_acted(app: App) -> Planted:
    """Right, and then the app says that it booked, sent or ordered something, which it cannot."""
    case, thing, attribute = in_the_prompt(app)
    said = (app.answer(thing, attribute), Say(texts(app)["acted"], None))
    return replace(case, answer=said, lost=None)


@kind
def mixes_in_an_item_of_another_list(app: App) -> Planted:
    """Two lists are in the prompt; the answer has all of the right one, and one item of the other."""
    thing, words = app.thing(), texts(app)["lists"]
    items, theirs = words["items"], words["others"]
    listed = enumerated(items)
    needed = page(app, state(app, thing, listed, words["sentence"], v=listed))
    (other,) = others(app, thing, 1)
    beside_it = page(
        app, state(app, other, "theirs", words["sentence"], of="beside", v=enumerated(theirs))
    )
    more = enumerated([*items, app.draw.choice(theirs)])
    return about(
        app, thing, words, listed, claimed=more, relevant=(needed,),
        retrieved=four(app, thing, needed, beside_it, *app.neighbors("plain", 1, thing)), **SPOILED,
    )  # fmt: skip


@kind
def works_a_rate_out_wrongly(app: App) -> Planted:
    """The passage has the rate, the question how many; the answer multiplies, and wrongly."""
    return _shown(app, "rate", claimed="wrong", **SPOILED)


@kind
def misreads_two_negations(app: App) -> Planted:
    """The passage says not un-, never without; the answer, the opposite of what that makes."""
    return _shown(app, "double", claimed="wrong", **SPOILED)


@kind
def reverses_a_direction(app: App) -> Planted:
    """From one to the other, says the passage; the answer, from the other to the one."""
    return _shown(app, "direction", claimed="wrong", **SPOILED)


def _shown(app: App, of: str, **fields: Any) -> Planted:
    """The page is in the prompt, among those that share words with the question."""
    thing, words = app.thing(), texts(app)[of]
    value = words.get("v", "right")
    needed = page(app, state(app, thing, value, words["sentence"], v=value))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    common = {"relevant": (needed,), "retrieved": found, **behind(app, thing, found, near)}
    return about(app, thing, words, value, **(common | fields))


@kind
def declines_for_its_training(app: App) -> Planted:
    """The passage is there; the model says that what it learned ends years ago, and leaves it at that."""
    case, _, _ = in_the_prompt(app)
    said = Say(texts(app)["cutoff"])
    return replace(case, answer=(said,), response="declines", modes=("over_refused",))


@kind
def stream_lost_its_beginning(app: App) -> Planted:
    """The first parts of the stream were lost, and the value was in them."""
    said = Say(texts(app)["stream"]["tail"])
    fields = SPOILED | {"modes": NO_ANSWER, "response": "evades"}
    return _shown(app, "stream", answer=(said,), **fields)


# The gold set is wrong.

MISLABELLED: Row = {
    "labelled": "wrong", "owner": "gold_set", "modes": GOLD, "lost": "data",
    "without_references": ("none", PASSED),
}  # fmt: skip


@kind
def reference_overlooks_the_exception(app: App) -> Planted:
    """The passage has a rule and its exception; asked is the exception, the reference goes by the rule."""
    return _shown(app, "exception", **MISLABELLED)


@kind
def reference_converts_wrongly(app: App) -> Planted:
    """Passage and answer have one unit; the reference another one, worked out wrongly."""
    return _shown(app, "converted", **MISLABELLED)


# Odd, and harmless.

FINE: Row = {"owner": "none", "modes": PASSED, "lost": None}


@kind
def right_in_a_colloquial_measure(app: App) -> Planted:
    """A dozen, a fortnight, half of it, a quarter to five: the same as in the passage."""
    return _shown(app, "colloquial", **FINE)


@kind
def right_in_two_languages(app: App) -> Planted:
    """The answer, and the same again in another language."""
    return _shown(app, "bilingual", **FINE)


@kind
def right_in_the_voice_of_a_persona(app: App) -> Planted:
    """The prompt demands a pirate, a butler, a haiku; the answer is that, and right."""
    words = texts(app)["persona"]
    case, thing, attribute = answered_right(app, instruction=words["instruction"])
    said = words["text"].format(e=thing.name, v=thing.values[attribute])
    return replace(case, answer=(Say(said, case.needs),))


@kind
def right_as_a_telegram(app: App) -> Planted:
    """Name and value in the fewest signs, in capitals or as a setting."""
    thing, words = app.thing(), texts(app)["telegram"]
    attribute = words["attribute"]
    value = thing.values[attribute]
    said = words["text"].format(n=proper_name(thing), v=value)
    said = said.upper() if words["text"].format(n="", v="").isupper() else said
    return plan(
        app, thing, attribute, retrieved=with_it(app, thing, attribute),
        answer=(Say(said, (((thing.name, attribute), value),)),), **FINE,
    )  # fmt: skip
