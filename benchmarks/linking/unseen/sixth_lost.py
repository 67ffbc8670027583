"""Sixth set: what the model needed was lost before it."""

from __future__ import annotations

import re

from .cases import DROPPED, LOST, MISS, NOT_INDEXED, OLD_COPY, plan, start, with_it
from .cases import sixth_kind as kind
from .fifth import fact, row, sentence, state
from .german import DECLINES, german_question, proper_name
from .planted import ATTRIBUTES, App, Planted, Say
from .sixth import about, form, lead, page, steps, strangers, texts, turn, unsaid, unsaid_value
from .third_lost import UNKNOWABLE

TITLED = ("# {title}\n{text}", "{title}: {text}", "[{title}] {text}")

# The retriever did not return what it needed.


@kind
def asked_by_a_description(app: App) -> Planted:
    """The question describes the thing; the page with that comes, the passage with the answer does not.

    One search, for the question as it is: it has neither the name nor the words of the passage.
    """
    thing, words = app.thing(), texts(app)["describe"]
    asked = words["asked"]
    described = page(app, state(app, thing, ("described", "yes"), text=words["page"]))
    return plan(
        app, thing, asked, question=words["question"], relevant=(thing.chunk(asked), described),
        references=(app.answer(thing, asked),),
        retrieved=(described, *app.neighbors(asked, 3, thing)), owner="retriever", modes=MISS,
        lost="rank", deeper=((thing.chunk(asked), 9),), depth=50, **unsaid_value(app, thing, asked),
    )  # fmt: skip


@kind
def limit_in_the_question(app: App) -> Planted:
    """Asked is which one is above a limit; vectors do not compare numbers, and the others come.

    All of those shown are below the limit, so the app says that there is none.
    """
    words = texts(app)["over"]
    thing = app.thing(count=words["value"])
    app.register(app.state(thing, "count"), ((thing.name, "over the limit"), "yes"))
    needs = fact(thing, "over the limit", "yes")
    return plan(
        app, thing, "count", question=words["question"], needs=needs,
        answer=(Say(words["none"], fact(thing, "over the limit", "no")),),
        references=(Say(sentence(words["reference"], e=thing.name), needs),),
        retrieved=tuple(app.neighbors("count", 4, thing)), owner="retriever", modes=MISS,
        lost="rank", deeper=((thing.chunk("count"), 10 + turn(app, 5)),), depth=50,
    )  # fmt: skip


@kind
def asked_for_by_its_value_in_another_form(app: App) -> Planted:
    """Asked is which thing has a value, written otherwise than in its passage, which ranks 17th.

    The app says that there is no such thing in what it has, which is true of what it was shown.
    """
    words = texts(app)["reverse"]
    thing = app.thing(form=words["value"])
    return plan(
        app, thing, "form", question=words["question"], answer=(Say(words["nosuch"]),),
        references=(app.answer(thing, "form"),), response="declines",
        retrieved=tuple(app.neighbors("form", 4, thing)), owner="retriever", modes=MISS,
        lost="rank", deeper=((thing.chunk("form"), 17),), depth=50,
    )  # fmt: skip


@kind
def routed_to_another_collection(app: App) -> Planted:
    """The router searches the wrong collection, where the thing is named and nothing is told.

    At no depth does the search return anything else. The app declines.
    """
    thing, asked = start(app)
    found = [
        app.index(" ".join([sentence(one, e=thing.name), *app.draw.sample(app.world["filler"], 2)]))
        for one in texts(app)["news"]
    ]
    return plan(
        app, thing, asked, wording=0, retrieved=tuple(app.shuffled(found)), owner="retriever",
        modes=MISS, lost="filter", deeper=(), depth=50, **unsaid(app),
    )  # fmt: skip


@kind
def second_half_of_a_procedure_missed(app: App) -> Planted:
    """The first two steps are in a passage that comes, the others in the next one, at rank 6 to 8.

    The answer gives the two as if they were all.
    """
    thing, words = app.thing(), texts(app)["steps"]
    head, tail, needs = steps(app, thing)
    first, then = page(app, head), page(app, tail)
    items = words["items"]
    said = sentence(words["answer"], e=thing.name, a=items[0], b=items[1])
    return plan(
        app, thing, "plain", question=sentence(words["question"], e=thing.name), needs=needs,
        answer=(Say(said, needs[:2]),), response="partly", relevant=(first, then),
        references=(Say(head, needs[:2]), Say(tail, needs[2:])),
        retrieved=(first, *app.neighbors("plain", 2, thing), thing.first), owner="retriever",
        modes=MISS, lost="rank", deeper=((then, 6 + turn(app, 3)),), depth=50,
    )  # fmt: skip


@kind
def the_latest_ranks_behind_older_ones(app: App) -> Planted:
    """Asked is the latest of three reports, two older ones come, and the later of them is taken for it."""
    thing, words = app.thing(), texts(app)["latest"]
    *older, latest = zip(words["whens"], words["values"], strict=True)
    before = [
        page(app, state(app, thing, (when, value), text=words["sentence"], y=when, v=value))
        for when, value in older
    ]
    when, right = latest
    newest = page(
        app,
        state(
            app, thing, (when, right), ("latest", right), text=words["sentence"], y=when, v=right
        ),
    )
    mistaken = older[-1][1]
    return about(
        app, thing, "latest", "latest", right, said={"v": mistaken}, claimed=mistaken,
        expected={"v": right}, relevant=(newest,),
        retrieved=(*app.shuffled(before), *app.neighbors("plain", 2, thing)), owner="retriever",
        modes=MISS, lost="rank", deeper=((newest, 7),), depth=50,
    )  # fmt: skip


# The index lacked it, or had it wrong.


@kind
def marks_of_a_table_lost(app: App) -> Planted:
    """A table says by ticks who has what; the loader kept the words and dropped the ticks.

    The row of the page is the label. The app declines, or takes the empty cell for a no.
    """
    thing, *rest = strangers(app, 3)
    words, how = texts(app)["ticks"], form(app)
    empty = [""] * 3
    chunk = app.index(
        "\n".join(
            [
                lead(app),
                row(("name", *words["columns"]), how),
                *(row((one.name, *empty), how) for one in app.draw.sample([thing, *rest], 3)),
                app.draw.choice(app.world["filler"]),
            ]
        )
    )
    column = words["columns"][words["asked"]]
    evidence = row((thing.name, *words["marks"]), how)
    app.register(evidence, ((thing.name, column), "yes"))
    needs = fact(thing, column, "yes")
    found = [chunk, *app.neighbors("plain", 3)]
    denial = Say(sentence(words["no"], e=thing.name), fact(thing, column, "no"))
    return plan(
        app, thing, "plain", question=sentence(words["question"], e=thing.name), needs=needs,
        references=(Say(sentence(words["reference"], e=thing.name), needs),), relevant=(),
        evidence=(evidence,), retrieved=tuple(found), owner="index", modes=NOT_INDEXED,
        lost="index", depth=50, without_references=UNKNOWABLE, **unsaid(app, denial),
    )  # fmt: skip


@kind
def sign_lost_in_extraction(app: App) -> Planted:
    """A minus, a fraction or an exponent did not survive the extraction; the app repeats what is left."""
    words = texts(app)["glyph"]
    return _mistaken_in_the_index(app, "glyph", words["value"], words["value"])


@kind
def day_and_month_swapped_by_the_loader(app: App) -> Planted:
    """The page writes the day first, the loader read the month first, and the app repeats its date."""
    words = texts(app)["date"]
    return _mistaken_in_the_index(app, "date", words["page"], words["right"])


def _mistaken_in_the_index(app: App, of: str, written: str, right: str) -> Planted:
    """The index has the labelled sentence with another value, and the answer follows it."""
    thing, words = app.thing(), texts(app)[of]
    mistaken = words["indexed"]
    evidence = state(app, thing, (of, right), text=words["sentence"], v=written)
    chunk = page(app, state(app, thing, (of, mistaken), text=words["sentence"], v=mistaken))
    found = [chunk, *app.neighbors("form", 2, thing), thing.second]
    return about(
        app, thing, of, of, right, said={"v": mistaken}, claimed=mistaken, expected={"v": right},
        relevant=(), evidence=(evidence,), retrieved=tuple(app.shuffled(found)), owner="index",
        modes=OLD_COPY, lost="index", depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def long_page_indexed_up_to_a_limit(app: App) -> Planted:
    """Of a long page the head was indexed, up to so many characters; the answer stood behind it."""
    thing, asked = start(app)
    evidence = app.state(thing, asked, wording=0)
    told = [sentence(one, e=thing.name) for one in texts(app)["news"][: 2 + turn(app, 3)]]
    head = " ".join([lead(app), *told, *app.draw.sample(app.world["filler"], 4)])
    app.corpus[thing.chunk(asked)] = head[: -6 - turn(app, 7)].rstrip()
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(evidence,), owner="index",
        modes=NOT_INDEXED, lost="index", depth=50, without_references=UNKNOWABLE,
        **unsaid_value(app, thing, asked),
    )  # fmt: skip


@kind
def line_taken_for_boilerplate(app: App) -> Planted:
    """A line that stands on many pages was taken for a footer, and cut from all of them. It declines."""
    thing, words = app.thing(), texts(app)["line"]
    needs = fact(thing, "line", "yes")
    app.register(words["line"], *needs)
    return plan(
        app, thing, "plain", question=sentence(words["question"], e=thing.name), needs=needs,
        references=(Say(sentence(words["reference"], e=thing.name), needs),), relevant=(),
        evidence=(words["line"],),
        retrieved=(thing.first, *app.neighbors("plain", 2, thing), thing.second), owner="index",
        modes=NOT_INDEXED, lost="index", depth=50, without_references=UNKNOWABLE, **unsaid(app),
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def question_translated_wrongly(app: App) -> Planted:
    """A German question is translated for the search, and its noun into another one. It declines."""
    thing = app.thing()
    query = texts(app)["query"].format(n=proper_name(thing))
    beside = next(one for one in thing.order if thing.chunk(one) != thing.chunk("count"))
    found = [thing.chunk(beside), *app.neighbors(beside, 3, thing)]
    return plan(
        app, thing, "count", question=german_question(app, thing), retrieved=tuple(found),
        calls=({"query": query, "passages": found},), answer=(Say(DECLINES),),
        response="declines", owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def condition_of_an_earlier_turn_lost(app: App) -> Planted:
    """The user said earlier for whom it is; the query does not, and the rule for all others comes."""
    thing, words = app.thing(), texts(app)["turns"]
    usual, special = words["v"], words["w"]
    general = page(app, state(app, thing, ("usual", usual), text=words["general"], v=usual))
    needed = page(app, state(app, thing, ("special", special), text=words["special"], w=special))
    found = [general, *app.neighbors("form", 2, thing), thing.first]
    history = (
        {"role": "user", "content": words["said"]},
        {"role": "assistant", "content": words["reply"]},
    )
    return about(
        app, thing, "turns", "special", special, said={"v": usual}, claimed=usual,
        expected={"v": special}, relevant=(needed,), history=history, retrieved=tuple(found),
        calls=({"query": words["query"].format(e=thing.name), "passages": found},),
        owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def stops_after_the_first_hop(app: App) -> Planted:
    """The agent searches for who it is, and never for what is asked of that person."""
    thing, words = app.thing(), texts(app)["hop"]
    person = thing.values["person"]
    right, mistaken = app.draw.sample(words["values"], 2)
    told = sentence(words["sentence"], p=person, t=right)
    app.register(told, ((person, "hop"), right))
    hop = page(app, told)
    found = [thing.chunk("person"), *app.neighbors("person", 3, thing)]
    said, reference = (
        Say(
            sentence(words["answer"], e=thing.name, p=person, t=one),
            (((thing.name, "person"), person), ((person, "hop"), one)),
        )
        for one in (mistaken, right)
    )
    return plan(
        app, thing, "person", question=sentence(words["question"], e=thing.name),
        needs=(((person, "hop"), right),), references=(reference,),
        relevant=(thing.chunk("person"), hop), retrieved=tuple(found),
        calls=({"query": app.ask(thing, "person", 0), "passages": found},), owner="prompt",
        modes=LOST, lost="search", **unsaid(app, said),
    )  # fmt: skip


@kind
def imagined_answer_leads_the_search_astray(app: App) -> Planted:
    """The app searches for an answer that a model imagined (HyDE), and it took the name for another."""
    thing, asked = start(app)
    query = texts(app)["imagined"].format(n=proper_name(thing))
    beside = app.draw.choice([one for one in ATTRIBUTES if one != asked])
    found = app.neighbors(beside, 4, thing)
    return plan(
        app, thing, asked, retrieved=tuple(found), calls=({"query": query, "passages": found},),
        owner="prompt", modes=LOST, lost="search", **unsaid_value(app, thing, asked),
    )  # fmt: skip


@kind
def formatter_rounds_the_numbers(app: App) -> Planted:
    """For the prompt all numbers are rounded to one figure; the answer repeats what it is shown."""
    values = [
        one
        for one in app.world["count"]["values"]
        if abs(int(_rounded(one)) - int(one)) > int(one) / 20
    ]
    count = app.draw.choice(values)
    thing = app.thing(count=count)
    mistaken = _rounded(count)
    app.state(thing, "count", mistaken)
    found = with_it(app, thing, "count")
    return plan(
        app, thing, "count", retrieved=found, shown=tuple(_rounded(app.corpus[one]) for one in found),
        answer=(app.answer(thing, "count", mistaken),), owner="prompt", modes=DROPPED,
        lost="prompt",
    )  # fmt: skip


def _rounded(text: str) -> str:
    """All numbers of a text, rounded to one figure."""
    return re.sub(r"\d+(?:[.,]\d+)*", _one_figure, text)


def _one_figure(number: re.Match[str]) -> str:
    rounded = f"{float(number[0].replace(',', '')):.0e}"
    return f"{float(rounded):g}"


@kind
def titles_shifted_in_the_prompt(app: App) -> Planted:
    """Only titles name the things; the template gives each passage the title of the one before it.

    The answer takes the value that stands below the thing's title.
    """
    asked = app.draw.choice(ATTRIBUTES)
    things = strangers(app, 4)
    if asked != "person":
        values = app.draw.sample(app.world[asked]["values"], 4)
        for one, value in zip(things, values, strict=True):
            one.values[asked] = value
    told = [app.state(one, asked, wording=1) for one in things]
    titled = TITLED[turn(app, 3)]
    bodies = []
    for one in told:
        before, after = app.draw.sample(app.world["filler"], 2)
        bodies.append(f"{before} {one} {after}")
    shown = []
    for number, one in enumerate(things):
        one.first = one.second = app.index(titled.format(title=one.name, text=bodies[number]))
        follower = (number + 1) % 4
        shown.append(titled.format(title=one.name, text=bodies[follower]))
        app.register(told[follower], ((one.name, asked), things[follower].values[asked]))
    at = app.draw.randrange(4)
    thing, follower = things[at], things[(at + 1) % 4]
    return plan(
        app, thing, asked, retrieved=tuple(one.first for one in things), shown=tuple(shown),
        answer=(app.answer(thing, asked, follower.values[asked]),), owner="prompt",
        modes=DROPPED, lost="prompt",
    )  # fmt: skip
