"""Third set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace

from .cases import (
    FALSE_CLAIM,
    PASSED,
    answered_right,
    in_the_prompt,
    plan,
    start,
    summed,
    with_it,
)
from .cases import third_kind as kind
from .planted import App, Planted, Say, Thing
from .second_answered import GOLD, OTHER_UNITS

NO_ANSWER = ("over_refused", "off_the_point", "incomplete", "ignored_context")

# It stood in the prompt, and the answer spoiled it.


@kind
def compares_wrongly(app: App) -> Planted:
    """Both numbers are in the prompt, and the smaller one is called the larger."""
    one = app.thing()
    two = app.thing(count=app.other("count", one.values["count"]))
    smaller, larger = sorted((one, two), key=lambda each: int(each.values["count"]))
    fact = (f"{one.name} or {two.name}", "larger")
    parts = tuple(((each.name, "count"), each.values["count"]) for each in (one, two))
    app.derived[fact] = (larger.name, parts)
    noun = app.world["count"]["noun"]
    said = Say(f"Of the two, {smaller.name} has the larger value.", ((fact, smaller.name),))
    reference = f"{noun[0].upper()}{noun[1:]} is larger for {larger.name}."
    return Planted(
        question=f"For which of the two is {noun} larger, {one.name} or {two.name}?",
        needs=((fact, larger.name),), answer=(said,),
        references=(Say(reference, ((fact, larger.name),)),),
        relevant=(one.chunk("count"), two.chunk("count")),
        retrieved=(two.chunk("count"), one.chunk("count"), *app.neighbors("count", 2, one, two)),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def gives_two_values(app: App) -> Planted:
    """The right value, and in the next sentence one that no document gives."""
    case, thing, asked = in_the_prompt(app)
    value = app.other(asked, thing.values[asked])
    other = Say(f"According to another source it is {value}.", (((thing.name, asked), value),))
    return replace(case, answer=(app.answer(thing, asked), other))


@kind
def points_to_the_document(app: App) -> Planted:
    """It says where one can read it, and not what is written there."""
    case, thing, asked = in_the_prompt(app)
    where = f"Details on {app.world[asked]['noun']} are in the document on {thing.name}."
    return replace(
        case, answer=(Say(where), Say("Please have a look there.")), response="evades",
        modes=NO_ANSWER,
    )  # fmt: skip


@kind
def takes_the_value_of_the_example(app: App) -> Planted:
    """The instruction shows a question with its answer; the model repeats that one's value."""
    case, thing, asked = in_the_prompt(app)
    value = app.other(asked, thing.values[asked])
    model = Thing(app.world["thing"].format(n=next(app.names)), {asked: value}, 0)
    example = f"Q: {app.ask(model, asked, 0)}\nA: {app.answer(model, asked).text}"
    return replace(
        case, instruction=f"Answer as in this example.\n{example}",
        answer=(app.answer(thing, asked, value),),
    )  # fmt: skip


@kind
def stops_before_the_value(app: App) -> Planted:
    """The limit of tokens ends the answer in mid-sentence."""
    case, thing, asked = in_the_prompt(app)
    begun = f"According to the documents that you have given me, {app.world[asked]['noun']} of"
    return replace(case, answer=(Say(f"{begun} {thing.name}"),), response="evades", modes=NO_ANSWER)


# The gold set is wrong.


@kind
def reference_has_another_unit(app: App) -> Planted:
    """The reference has the right number with another unit (of dates: another month)."""
    thing = app.thing()
    number, unit = thing.values["form"].split()
    reference = app.reference(thing, "form", f"{number} {OTHER_UNITS[unit]}")
    return plan(
        app, thing, "form", retrieved=with_it(app, thing, "form"), references=(reference,),
        answer=(app.answer(thing, "form"),), owner="gold_set", modes=GOLD, lost="data",
        without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_misses_a_not(app: App) -> Planted:
    """The labelled passage says that it is not so, and so does the answer; the reference, that it is."""
    thing = app.thing()
    asked = "closed to visitors in the winter of 2025"
    fact = (thing.name, "closed")
    sentence = f"As an exception, {thing.name} was not {asked}."
    app.register(sentence, (fact, "no"))
    lead, tail = app.draw.sample(app.world["filler"], 2)
    needed = app.index(f"News of the year. {lead} {sentence} {tail}")
    return plan(
        app, thing, "count", question=f"Was {thing.name} {asked}?", needs=((fact, "no"),),
        references=(Say(f"Yes, {thing.name} was {asked}.", ((fact, "yes"),)),),
        relevant=(needed,), retrieved=(thing.first, needed, *app.neighbors("count", 2, thing)),
        answer=(Say(f"No, {thing.name} was not {asked}.", ((fact, "no"),)),),
        owner="gold_set", modes=GOLD, lost="data", without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_adds_wrongly(app: App) -> Planted:
    """Whoever wrote the reference added two numbers wrongly; the app added them right."""
    case, right = summed(app)
    mistaken = str(int(right) + app.draw.choice((-10, -1, 1, 10)))
    fact = case.needs[0][0]
    reference = Say(case.answer[0].text.replace(right, mistaken), ((fact, mistaken),))
    return replace(
        case, references=(reference,), owner="gold_set", modes=GOLD, lost="data",
        without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_names_the_deputy(app: App) -> Planted:
    """The passage names who has the post, and the deputy; the reference, the deputy."""
    thing = app.thing(indexed=False)
    head, deputy = thing.values["person"], app.other("person")
    role = app.world["role"]
    sentence = f"{head} is {role} of {thing.name}, and {deputy} is the deputy."
    app.register(sentence, ((thing.name, "person"), head), ((thing.name, "deputy"), deputy))
    lead, tail = app.draw.sample(app.world["filler"], 2)
    thing.first = app.index(f"Who is who. {lead} {sentence} {tail}")
    thing.second = thing.first
    found = (*app.neighbors("person", 2, thing), thing.first)
    app.things.remove(thing)
    return plan(
        app, thing, "person", wording=0, retrieved=found, relevant=(thing.first,),
        answer=(app.answer(thing, "person"),),
        references=(app.reference(thing, "person", deputy),),
        owner="gold_set", modes=GOLD, lost="data", without_references=("none", PASSED),
    )  # fmt: skip


# Odd, and harmless.


@kind
def right_by_the_value_alone(app: App) -> Planted:
    """No sentence, only the value."""
    case, thing, asked = answered_right(app)
    value = thing.values[asked]
    return replace(case, answer=(Say(value, (((thing.name, asked), value),)),))


@kind
def right_as_json(app: App) -> Planted:
    """An object with the answer in it."""
    case, thing, asked = answered_right(app)
    said = app.answer(thing, asked)
    return replace(case, answer=(Say(json.dumps({"answer": said.text}), said.stated),))


@kind
def right_with_the_thinking_shown(app: App) -> Planted:
    """The app forgets to take the model's thinking out of the answer."""
    case, thing, asked = answered_right(app)
    thinking = (
        f"<think>The user asks about {app.world[asked]['noun']} of {thing.name}. "
        "Let me look through the passages.</think>"
    )
    return replace(case, answer=(Say(thinking), app.answer(thing, asked)))


@kind
def corrects_a_false_premise(app: App) -> Planted:
    """The question takes a wrong value for granted; answer and reference say no, and the right one."""
    case, thing, asked = answered_right(app)
    value = app.other(asked, thing.values[asked])
    supposed = app.reference(thing, asked, value).text
    return replace(
        case, question=f'I was told about {thing.name}: "{supposed}" Is that right?',
        answer=(Say("No, that is not right."), app.answer(thing, asked)),
    )  # fmt: skip


@kind
def label_of_a_removed_passage(app: App) -> Planted:
    """Two passages were made one since; the label still has the id of one that is gone."""
    thing, asked = start(app)
    gone = thing.chunk(asked)
    kept = thing.second if gone == thing.first else thing.first
    app.corpus[kept] = f"{app.corpus[kept]} {app.corpus.pop(gone)}"
    found = (kept, *app.neighbors(asked, 3, thing))
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked),), owner="none",
        modes=PASSED,
    )  # fmt: skip


@kind
def right_from_wrapped_lines(app: App) -> Planted:
    """The template breaks lines after 38 characters and indents them."""
    case, _, _ = answered_right(app)
    shown = (textwrap.fill(app.corpus[one], 38, subsequent_indent="    ") for one in case.retrieved)
    return replace(case, shown=tuple(shown))
