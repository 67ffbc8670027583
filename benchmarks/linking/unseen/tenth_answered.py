"""Tenth set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from typing import Any

from .cases import FALSE_CLAIM, PASSED
from .cases import tenth_kind as kind
from .eighth import behind, four
from .planted import App, Planted, Row
from .second_answered import GOLD
from .seventh import about, state
from .tenth import beside, page, worded

# It stood in the prompt, and the answer spoiled it.

SPOILED: Row = {"claimed": "wrong", "owner": "generator", "modes": FALSE_CLAIM, "lost": "answer"}


@kind
def takes_the_effect_for_the_cause(app: App) -> Planted:
    """The passage says what came of what; asked is why, the answer gives what came of it."""
    return _shown(app, "cause", **SPOILED)


@kind
def adds_a_part_to_the_whole(app: App) -> Planted:
    """The passage has a number and how many of these are special; the answer adds the two."""
    return _shown(app, "whole", **SPOILED)


@kind
def makes_a_habit_of_a_single_time(app: App) -> Planted:
    """What happened once, or as an exception, is always so by the answer."""
    return _shown(app, "once", **SPOILED)


@kind
def gives_the_view_of_the_other_side(app: App) -> Planted:
    """The passage tells what each of two sides says; asked is one of them, the answer has the other's."""
    return _shown(app, "sides", **SPOILED)


@kind
def says_that_it_depends(app: App) -> Planted:
    """The passage gives one value for all cases; by the answer it depends on this and that."""
    modes = (*FALSE_CLAIM, "over_refused", "off_the_point")
    return _shown(app, "depends", **(SPOILED | {"modes": modes}))


def _shown(app: App, of: str, **fields: Any) -> Planted:
    """The page is in the prompt, among those that share words with the question."""
    thing, words = app.thing(), worded(app, of)
    needed = page(app, state(app, thing, "right", words["sentence"]))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    common = {"relevant": (needed,), "retrieved": found, **behind(app, thing, found, near)}
    return about(app, thing, words, "right", **(common | fields))


# The gold set is wrong, and the passage itself has what the reference took for the answer.

MISLABELLED: Row = {
    "labelled": "wrong", "owner": "gold_set", "modes": GOLD, "lost": "data",
    "without_references": ("none", PASSED),
}  # fmt: skip


@kind
def reference_takes_the_value_of_another_group(app: App) -> Planted:
    """The passage has a value for each of two groups; the question names one, the reference has the other's."""
    return _shown(app, "group", **MISLABELLED)


@kind
def reference_has_the_other_extreme(app: App) -> Planted:
    """Of several that the passage lists the least is asked for, and the reference has the most; or so."""
    return _shown(app, "extreme", **MISLABELLED)


@kind
def reference_has_what_was_planned_and_dropped(app: App) -> Planted:
    """The passage says what was planned, and what it became; the reference has the plan."""
    return _shown(app, "planned", **MISLABELLED)


@kind
def reference_adds_what_is_included(app: App) -> Planted:
    """The passage has a total, and says what is in it; the reference adds that once more."""
    return _shown(app, "included", **MISLABELLED)


# Odd, and harmless.

FINE: Row = {"owner": "none", "modes": PASSED, "lost": None}


@kind
def right_after_correcting_itself(app: App) -> Planted:
    """The answer begins with a wrong value, says that this is wrong, and gives the right one."""
    return _shown(app, "corrected", **FINE)


@kind
def right_in_emoji(app: App) -> Planted:
    """Emoji stand for words of the answer, and are right."""
    return _shown(app, "emoji", **FINE)


@kind
def right_by_applying_a_rule(app: App) -> Planted:
    """The passage has a rule, the question somebody's case; the answer says what that means for them."""
    return _shown(app, "rule", **FINE)
