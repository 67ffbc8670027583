"""Ninth set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from typing import Any

from .cases import FALSE_CLAIM, PASSED
from .cases import ninth_kind as kind
from .eighth import behind, four
from .ninth import beside, page, worded
from .planted import App, Planted, Row, Say
from .second_answered import GOLD
from .seventh import about, asked, filled, state

# It stood in the prompt, and the answer spoiled it.

SPOILED: Row = {"claimed": "wrong", "owner": "generator", "modes": FALSE_CLAIM, "lost": "answer"}


@kind
def picks_the_wrong_one_of_several(app: App) -> Planted:
    """Asked is the largest, first, cheapest of those that one sentence has; the answer takes another."""
    return _shown(app, "ranking", **SPOILED)


@kind
def misjudges_a_day_against_a_span(app: App) -> Planted:
    """The passage says from when to when, the question has a day; the answer errs about which side."""
    return _shown(app, "span", **SPOILED)


@kind
def turns_a_must_into_a_may(app: App) -> Planted:
    """What has to be done can be done, says the answer, or what is advised is a duty."""
    return _shown(app, "must", **SPOILED)


@kind
def corrects_a_premise_that_is_right(app: App) -> Planted:
    """The question takes for granted what the passage says, too; the answer denies it."""
    return _shown(app, "premise", **SPOILED)


@kind
def gives_one_of_two_cases(app: App) -> Planted:
    """The passage has a value for each of two cases, the question leaves open which; the answer has one."""
    thing, words = app.thing(), worded(app, "cases")
    told = filled(thing, words["sentence"])
    one, two = asked(thing, "yes"), asked(thing, "yes", "also")
    app.register(told, *one, *two)
    needed, near = page(app, told), beside(app, thing, words)
    found = four(app, thing, needed, *near)
    return about(
        app, thing, words, "yes", needs=(*one, *two), response="partly", relevant=(needed,),
        references=(
            Say(filled(thing, words["reference"]), one), Say(filled(thing, words["more"]), two),
        ),
        retrieved=found, owner="generator", modes=("incomplete",), lost="answer",
        **behind(app, thing, found, near),
    )  # fmt: skip


def _shown(app: App, of: str, **fields: Any) -> Planted:
    """The page is in the prompt, among those that share words with the question."""
    thing, words = app.thing(), worded(app, of)
    needed = page(app, state(app, thing, "right", words["sentence"]))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    common = {"relevant": (needed,), "retrieved": found, **behind(app, thing, found, near)}
    return about(app, thing, words, "right", **(common | fields))


# The gold set is wrong.

MISLABELLED: Row = {
    "labelled": "wrong", "owner": "gold_set", "modes": GOLD, "lost": "data",
    "without_references": ("none", PASSED),
}  # fmt: skip


@kind
def reference_draws_the_line_wrongly(app: App) -> Planted:
    """Under, over, up to and including: the question is about the limit itself, and the reference errs."""
    return _shown(app, "line", **MISLABELLED)


@kind
def reference_goes_along_with_a_false_premise(app: App) -> Planted:
    """The question takes something wrong for granted; the answer says so, the reference does not."""
    return _shown(app, "granted", **MISLABELLED)


@kind
def reference_counts_wrongly(app: App) -> Planted:
    """Asked is how many, the passage names them; the answer has their number, the reference another."""
    return _shown(app, "counted", **MISLABELLED)


@kind
def reference_takes_what_it_is_compared_with(app: App) -> Planted:
    """The passage compares the thing with another; the answer has its value, the reference the other's."""
    return _shown(app, "compared", **MISLABELLED)


# Odd, and harmless.

FINE: Row = {"owner": "none", "modes": PASSED, "lost": None}


@kind
def right_with_typing_errors(app: App) -> Planted:
    """Letters are swapped, doubled or left out; what it says is right."""
    return _shown(app, "typed", **FINE)


@kind
def right_in_the_voice_of_the_house(app: App) -> Planted:
    """We, our, with us: the answer speaks for those whose thing it is, and may not name it."""
    return _shown(app, "we", **FINE)


@kind
def rightly_leaves_a_part_open(app: App) -> Planted:
    """Two things are asked, no document has the second; answer and reference give one and say so."""
    thing, words = app.thing(), worded(app, "part")
    needed = page(app, state(app, thing, "right", words["sentence"]))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    fact = asked(thing, "right")
    return about(
        app, thing, words, "right", relevant=(needed,), retrieved=found,
        answer=(Say(filled(thing, words["answer"]), fact), Say(filled(thing, words["open"]))),
        references=(Say(filled(thing, words["reference"]), fact), Say(words["unsaid"])),
        **behind(app, thing, found, near), **FINE,
    )  # fmt: skip
