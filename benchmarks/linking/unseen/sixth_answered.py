"""Sixth set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from dataclasses import replace

from .cases import FALSE_CLAIM, PASSED, in_the_prompt, plan, with_it
from .cases import sixth_kind as kind
from .fifth import COLUMNS, enumerated, fact, row, sentence, state, table
from .planted import App, Planted, Say
from .second_answered import GOLD
from .sixth import about, form, lead, page, steps, strangers, texts, turn
from .third_answered import NO_ANSWER

# It stood in the prompt, and the answer spoiled it.


@kind
def takes_a_plan_for_what_is(app: App) -> Planted:
    """The passage says what is, and what is to come; asked is what is, the answer has what is to come."""
    thing, words = app.thing(), texts(app)["plan"]
    now, later = words["v"], words["w"]
    told = state(app, thing, ("now", now), ("later", later), text=words["sentence"], v=now, w=later)
    needed = page(app, told)
    return about(
        app, thing, "plan", "now", now, said={"v": later}, claimed=later, expected={"v": now},
        relevant=(needed,), retrieved=(needed, thing.first, *app.neighbors("plain", 2, thing)),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def turns_a_bound_around(app: App) -> Planted:
    """At least becomes at most, or the other way round; the number is right."""
    thing, words = app.thing(), texts(app)["bound"]
    needed = page(app, state(app, thing, ("bound", "right"), text=words["sentence"]))
    return about(
        app, thing, "bound", "bound", "right", claimed="turned around", relevant=(needed,),
        retrieved=(*app.neighbors("form", 2, thing), needed, thing.second), owner="generator",
        modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def agrees_with_a_wrong_guess(app: App) -> Planted:
    """The user believes in a wrong value, and the answer confirms it against the passage."""
    words = texts(app)["agree"]
    thing, asked = app.thing(), words["attribute"]
    guess = app.other(asked, thing.values[asked])
    said = Say(sentence(words["answer"], e=thing.name, v=guess), fact(thing, asked, guess))
    return plan(
        app, thing, asked, question=sentence(words["question"], e=thing.name, v=guess),
        retrieved=with_it(app, thing, asked), answer=(said,), owner="generator",
        modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def adds_an_item_to_the_list(app: App) -> Planted:
    """The passage lists four, the answer has these and one more, which no document names."""
    thing, words = app.thing(), texts(app)["list"]
    items = words["items"]
    facts = [(f"has {one}", "yes") for one in items]
    told = state(app, thing, *facts, text=words["sentence"], list=enumerated(items))
    needed = page(app, told)
    needs = tuple(((thing.name, attribute), value) for attribute, value in facts)
    extra = fact(thing, f"has {words['foreign']}", "yes")
    named = app.shuffled([*items]) if turn(app, 2) else items
    said = (
        Say(sentence(words["sentence"], e=thing.name, list=enumerated(named)), needs),
        Say(sentence(words["also"], e=thing.name, v=words["foreign"]), extra),
    )
    return plan(
        app, thing, "count", question=sentence(words["question"], e=thing.name), needs=needs,
        references=(Say(told, needs),), relevant=(needed,), answer=said,
        retrieved=(needed, *app.neighbors("count", 2, thing), thing.second), owner="generator",
        modes=FALSE_CLAIM,
    )  # fmt: skip


@kind
def reads_the_next_column(app: App) -> Planted:
    """The table is in the prompt; the answer has the number of the right row and the next column."""
    things, words, how = strangers(app, 3), texts(app)["columns"], form(app)
    heads, at = words["heads"], words["asked"]
    lines = [row(("name", *heads), how)]
    if how == "markdown":
        lines.append("|---|---|---|---|")
    for one in things:
        values = app.draw.sample(words["values"], 3)
        one.values |= dict(zip(heads, values, strict=True))
        line = row((one.name, *values), how)
        app.register(line, *(((one.name, head), one.values[head]) for head in heads))
        lines.append(line)
    tail = app.draw.choice(app.world["filler"])
    needed = app.index("\n".join([f"{lead(app)} {words['title']}", *lines, tail]))
    thing = app.draw.choice(things)
    right, mistaken = thing.values[heads[at]], thing.values[heads[(at + 1) % 3]]
    return about(
        app, thing, "columns", heads[at], right, said={"v": mistaken}, claimed=mistaken,
        expected={"v": right}, relevant=(needed,), retrieved=(needed, *app.neighbors("count", 3)),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def prints_a_tool_call(app: App) -> Planted:
    """In place of an answer the model prints the call of its search, which was done; or promises one."""
    case, _, _ = in_the_prompt(app)
    said = Say(texts(app)["call"].format(q=case.question))
    return replace(case, answer=(said,), response="evades", modes=NO_ANSWER)


@kind
def says_that_the_sources_disagree(app: App) -> Planted:
    """One passage says it and no other says otherwise; the app declines, as if they did."""
    case, _, _ = in_the_prompt(app)
    said = Say(texts(app)["disagree"])
    return replace(case, answer=(said,), response="declines", modes=NO_ANSWER)


# The gold set is wrong.


@kind
def reference_says_all_where_some_are_meant(app: App) -> Planted:
    """The passage says it of some, and so does the answer; the reference says it of all."""
    thing, words = app.thing(), texts(app)["some"]
    needed = page(app, state(app, thing, ("all", "no"), text=words["sentence"]))
    return about(
        app, thing, "some", "all", "no", labelled="yes", relevant=(needed,),
        retrieved=(thing.second, needed, *app.neighbors("plain", 2, thing)), owner="gold_set",
        modes=GOLD, lost="data", without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_swaps_the_two_people(app: App) -> Planted:
    """The passage says who did it and to whom, and so does the answer; the reference, the reverse."""
    thing, words = app.thing(), texts(app)["handed"]
    a, b = next(app.people), next(app.people)
    told = state(app, thing, ("who", f"{a}, {b}"), text=words["sentence"], a=a, b=b)
    needed = page(app, told)
    return about(
        app, thing, "handed", "who", f"{a}, {b}", said={"a": a, "b": b},
        question=sentence(words["question"], e=thing.name, a=a, b=b), expected={"a": b, "b": a},
        labelled=f"{b}, {a}", relevant=(needed,),
        retrieved=(needed, thing.chunk("person"), *app.neighbors("person", 2, thing)),
        owner="gold_set", modes=GOLD, lost="data", without_references=("none", PASSED),
    )  # fmt: skip


# Odd, and harmless.


@kind
def right_from_a_row_of_a_table(app: App) -> Planted:
    """The passage is a table of three things; the answer makes a sentence of a cell."""
    things = strangers(app, 3)
    tail = app.draw.choice(app.world["filler"])
    chunk = app.index("\n".join([lead(app), *table(app, things, form(app)), tail]))
    for one in things:
        one.first = one.second = chunk
    thing, asked = app.draw.choice(things), COLUMNS[turn(app, 3)]
    found = app.neighbors(asked, 3)
    found.insert(app.draw.randrange(4), chunk)
    return plan(
        app, thing, asked, retrieved=tuple(found), answer=(app.answer(thing, asked),),
        owner="none", modes=PASSED,
    )  # fmt: skip


@kind
def right_in_other_words_for_a_no(app: App) -> Planted:
    """The passage says that it is not so; the answer says what follows, with hardly a word of it."""
    thing, words = app.thing(), texts(app)["denial"]
    needed = page(app, state(app, thing, ("so", "no"), text=words["sentence"]))
    return about(
        app, thing, "denial", "so", "no", relevant=(needed,),
        retrieved=(*app.neighbors("plain", 2, thing), thing.first, needed), owner="none",
        modes=PASSED,
    )  # fmt: skip


@kind
def right_steps_as_a_numbered_list(app: App) -> Planted:
    """A heading in bold, and four numbered lines; the passage has two sentences."""
    thing, words = app.thing(), texts(app)["steps"]
    head, tail, needs = steps(app, thing)
    needed = page(app, head, tail)
    lines = [f"{n}. {sentence(one)}" for n, one in enumerate(words["items"], 1)]
    said = "\n".join([f"**{words['title']}** ({thing.name})", "", *lines])
    return plan(
        app, thing, "plain", question=sentence(words["question"], e=thing.name), needs=needs,
        answer=(Say(said, needs),), references=(Say(head, needs[:2]), Say(tail, needs[2:])),
        relevant=(needed,), retrieved=(thing.first, needed, *app.neighbors("plain", 2, thing)),
        owner="none", modes=PASSED,
    )  # fmt: skip


@kind
def right_and_names_the_former_value(app: App) -> Planted:
    """Both stand in the passage, asked is what holds; the answer has that, and what held before."""
    thing, words = app.thing(), texts(app)["former"]
    now, before = words["v"], words["w"]
    needed = page(
        app,
        state(
            app, thing, ("now", now), ("before", before), text=words["sentence"], v=now, w=before
        ),
    )
    said = [
        Say(sentence(words["answer"], e=thing.name, v=now), fact(thing, "now", now)),
        Say(sentence(words["before"], e=thing.name, w=before), fact(thing, "before", before)),
    ]
    return about(
        app, thing, "former", "now", now, said={"v": now}, expected={"v": now},
        answer=tuple(said[:: (1, -1)[turn(app, 2)]]), relevant=(needed,),
        retrieved=(needed, *app.neighbors("form", 3, thing)), owner="none", modes=PASSED,
    )  # fmt: skip
