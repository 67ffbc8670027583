"""Fifth set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from dataclasses import replace

from .cases import FALSE_CLAIM, PASSED, answered_right, in_the_prompt, plan, start, with_it
from .cases import fifth_kind as kind
from .fifth import NUMBER, enumerated, fact, page, sentence, state, texts
from .planted import ATTRIBUTES, App, Planted, Say
from .second_answered import GOLD
from .third_answered import NO_ANSWER

# It stood in the prompt, and the answer spoiled it.


@kind
def takes_the_value_of_another_group(app: App) -> Planted:
    """One sentence has a value for each of two groups; asked is the second, the answer has the first."""
    thing, words = app.thing(), texts(app)["group"]
    needed = page(
        app, state(app, thing, ("asked", words["asked"]), ("other", words["other"]),
                   text=words["sentence"]),
    )  # fmt: skip
    said = sentence(words["answer"], e=thing.name, v=words["other"])
    reference = sentence(words["reference"], v=words["asked"])
    return plan(
        app, thing, "form", question=sentence(words["question"], e=thing.name),
        needs=fact(thing, "asked", words["asked"]), relevant=(needed,),
        retrieved=(thing.first, *app.neighbors("form", 2, thing), needed),
        answer=(Say(said, fact(thing, "asked", words["other"])),),
        references=(Say(reference, fact(thing, "asked", words["asked"])),),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def overlooks_the_exception(app: App) -> Planted:
    """The rule stands before its exception, about which people ask; the answer goes by the rule."""
    thing, words = app.thing(), texts(app)["exception"]
    rule = state(app, thing, ("rule", "yes"), text=words["rule"])
    needed = page(app, rule, state(app, thing, ("exception", "no"), text=words["exception"]))
    said = sentence(words["answer"], e=thing.name)
    reference = sentence(words["reference"], e=thing.name)
    return plan(
        app, thing, "plain", question=sentence(words["question"], e=thing.name),
        needs=fact(thing, "exception", "no"), relevant=(needed,),
        retrieved=(needed, *app.neighbors("plain", 2, thing), thing.second),
        answer=(Say(said, fact(thing, "exception", "yes")),),
        references=(Say(reference, fact(thing, "exception", "no")),),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def puts_the_steps_in_another_order(app: App) -> Planted:
    """Four steps are shown in their order; the answer has all of them, the third before the second."""
    thing, words = app.thing(), texts(app)["steps"]
    first, second, third, fourth = words["steps"]
    order = {"a": first, "b": second, "c": third, "d": fourth}
    needed = page(app, state(app, thing, ("order", "abcd"), text=words["sentence"], **order))
    said = sentence(words["answer"], e=thing.name, **order | {"b": third, "c": second})
    right = app.draw.choice((words["answer"], words["sentence"]))
    reference = sentence(right, e=thing.name, **order)
    return plan(
        app, thing, "count", question=sentence(words["question"], e=thing.name),
        needs=fact(thing, "order", "abcd"), relevant=(needed,),
        retrieved=(*app.neighbors("count", 1, thing), needed, thing.first, thing.second),
        answer=(Say(said, fact(thing, "order", "acbd")),),
        references=(Say(reference, fact(thing, "order", "abcd")),),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def counts_the_years_wrongly(app: App) -> Planted:
    """The passage has the year, the question the other one; the answer subtracts wrongly."""
    thing, words = app.thing(), texts(app)["age"]
    year = app.draw.randrange(*words["year"])
    years = words["until"] - year
    mistaken = years + app.draw.choice((-11, -10, -2, 2, 9, 10))
    asked = (thing.name, "years")
    app.derived[asked] = (str(years), fact(thing, "year", str(year)))
    needed = page(app, state(app, thing, ("year", str(year)), text=words["sentence"], y=str(year)))
    said, reference = (
        Say(sentence(words["answer"], e=thing.name, v=str(one)), ((asked, str(one)),))
        for one in (mistaken, years)
    )
    return plan(
        app, thing, "count", question=sentence(words["question"], e=thing.name),
        needs=((asked, str(years)),), answer=(said,), references=(reference,), relevant=(needed,),
        retrieved=(needed, thing.second, *app.neighbors("count", 2, thing)),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def says_that_there_is_none(app: App) -> Planted:
    """The passage gives what is asked for; the answer says that the thing has no such thing."""
    words = texts(app)["none"]
    thing, asked = app.thing(), words["attribute"]
    said = sentence(words["text"], e=thing.name)
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked),
        answer=(Say(said, fact(thing, asked, "none")),),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def repeats_its_answer_of_the_turn_before(app: App) -> Planted:
    """Search and prompt are right for the new question; the model says once more what it said before."""
    earlier = app.thing()
    thing, asked = start(app)
    before = app.draw.choice([one for one in ATTRIBUTES if one != asked])
    said = app.answer(earlier, before)
    history = (
        {"role": "user", "content": app.ask(earlier, before)},
        {"role": "assistant", "content": said.text},
    )
    found = (
        thing.chunk(asked),
        earlier.chunk(before),
        *app.neighbors(asked, 2, thing, earlier),
    )
    return plan(
        app, thing, asked, question=texts(app)["turn"].format(q=app.ask(thing, asked)),
        history=history, retrieved=tuple(app.shuffled(list(found))), answer=(said,),
        response="evades", owner="generator", modes=NO_ANSWER, lost="answer",
    )  # fmt: skip


@kind
def falls_into_a_loop(app: App) -> Planted:
    """A few words again and again until the limit of tokens, and nothing that answers."""
    case, _, _ = in_the_prompt(app)
    said = Say(texts(app)["loop"])
    return replace(case, answer=(said,), response="evades", modes=NO_ANSWER)


# The gold set is wrong.


@kind
def reference_lists_one_too_many(app: App) -> Planted:
    """The passage lists four and says that there are no more; the reference has a fifth of its own."""
    thing, words = app.thing(), texts(app)["list"]
    items = words["items"]
    facts = [(f"has {one}", "yes") for one in items[:4]]
    needed = page(
        app, state(app, thing, *facts, text=words["sentence"], list=enumerated(items[:4]))
    )
    needs = tuple(((thing.name, attribute), value) for attribute, value in facts)
    bullets = NUMBER[app.world["name"]] % 2
    said = "\n".join(f"- {one}" for one in items[:4]) if bullets else f"{enumerated(items[:4])}."
    references = tuple(
        Say(sentence(words["item"], e=thing.name, v=one), fact(thing, f"has {one}", "yes"))
        for one in items
    )
    return plan(
        app, thing, "count", question=sentence(words["question"], e=thing.name), needs=needs,
        references=references, relevant=(needed,), answer=(Say(said, needs),),
        retrieved=(thing.first, needed, *app.neighbors("count", 2, thing)), owner="gold_set",
        modes=GOLD, lost="data", without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_takes_the_end_for_the_start(app: App) -> Planted:
    """The passage says from when to when; asked is the start, the reference has the end."""
    thing, words = app.thing(), texts(app)["span"]
    start_, end = words["a"], words["b"]
    needed = page(
        app,
        state(app, thing, ("start", start_), ("end", end), text=words["sentence"], a=start_, b=end),
    )
    said = sentence(words["answer"], e=thing.name, v=start_)
    reference = sentence(words["reference"], v=end)
    return plan(
        app, thing, "count", question=sentence(words["question"], e=thing.name),
        needs=fact(thing, "start", start_), relevant=(needed,),
        retrieved=(*app.neighbors("count", 3, thing), needed),
        answer=(Say(said, fact(thing, "start", start_)),),
        references=(Say(reference, fact(thing, "start", end)),), owner="gold_set", modes=GOLD,
        lost="data", without_references=("none", PASSED),
    )  # fmt: skip


# Odd, and harmless.


@kind
def right_with_leftovers_of_the_stream(app: App) -> Planted:
    """Marks of the model's format, of the stream or of the agent's loop are left, or it came twice."""
    case, thing, asked = answered_right(app)
    said = app.answer(thing, asked)
    return replace(case, answer=(Say(texts(app)["leftover"].format(t=said.text), said.stated),))


@kind
def right_and_unsure(app: App) -> Planted:
    """The right answer, and the advice not to rely on it."""
    case, thing, asked = answered_right(app)
    before, after = (Say(one) for one in texts(app)["unsure"])
    said = (before, app.answer(thing, asked), *([after] if after.text else []))
    return replace(case, answer=said)


@kind
def right_in_two_forms_at_once(app: App) -> Planted:
    """The value of the passage, and the same in another unit or notation beside it."""
    forms = app.world["form"]["forms"]
    value = app.draw.choice(list(forms))
    thing = app.thing(form=value)
    shown = texts(app)["two"].format(v=value, f=forms[value])
    return plan(
        app, thing, "form", retrieved=with_it(app, thing, "form"), owner="none", modes=PASSED,
        answer=(app.answer(thing, "form", shown=shown),),
    )  # fmt: skip


@kind
def right_by_a_bare_yes(app: App) -> Planted:
    """The question has the value in it, and the whole answer is a yes."""
    words = texts(app)["yes"]
    thing, asked = app.thing(), words["attribute"]
    value = thing.values[asked]
    return plan(
        app, thing, asked, question=sentence(words["question"], e=thing.name, v=value),
        retrieved=with_it(app, thing, asked), owner="none", modes=PASSED,
        answer=(Say(words["answer"], fact(thing, asked, value)),),
    )  # fmt: skip
