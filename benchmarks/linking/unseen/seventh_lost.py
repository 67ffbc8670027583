"""Seventh set: what the model needed was lost before it."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

from .cases import DROPPED, LOST, MISS, NOT_INDEXED, OLD_COPY, around, plan, start, with_it, wrong
from .cases import seventh_kind as kind
from .fifth import sentence
from .fifth_lost import GERMAN_LEADS, GERMAN_TAILS
from .german import german_answer
from .planted import App, Planted, Row, Say
from .seventh import (
    about,
    among,
    asked,
    declining,
    filled,
    guessed_or_declined,
    page,
    state,
    texts,
)
from .sixth import turn
from .third_lost import UNKNOWABLE

# The retriever did not return what it needed.


@kind
def answer_in_a_foreign_passage(app: App) -> Planted:
    """An English question, and the one page that answers it is in another language, at rank 12."""
    thing, words = app.thing(), texts(app)["foreign"]
    told = state(app, thing, words["v"], words["sentence"])
    needed = app.index(" ".join([words["before"], told, words["after"]]))
    case = about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(needed,),
        retrieved=(thing.first, thing.second, *app.neighbors("plain", 2, thing)),
        owner="retriever", modes=MISS, lost="rank", deeper=((needed, 12),), depth=50,
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def numbered_otherwise_than_asked(app: App) -> Planted:
    """Asked is number 9, the passage has IX or ninth; pages with a 9 or an XIX come in its place."""
    return _outranked(app, "numbered", 7 + turn(app, 6))


@kind
def range_that_covers_the_number(app: App) -> Planted:
    """Asked is 14, the passage says from 10 to 20; pages with 14 of something else come."""
    return _outranked(app, "range", 6 + turn(app, 4))


def _outranked(app: App, of: str, rank: int) -> Planted:
    """Two pages that share more with the question push the needed one down."""
    thing, words = app.thing(), texts(app)[of]
    right, mistaken = words["v"], words["w"]
    needed = page(app, state(app, thing, right, words["needed"], v=right))
    besides = [page(app, filled(thing, one, w=mistaken)) for one in words["besides"]]
    case = about(
        app, thing, words, right, claimed=mistaken, relevant=(needed,),
        retrieved=among(app, thing, *besides), owner="retriever", modes=MISS, lost="rank",
        deeper=((needed, rank),), depth=50,
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def superlative_said_as_a_comparison(app: App) -> Planted:
    """Asked is the first, highest or lightest; its passage says that no other one is before it.

    Pages that call others one of the oldest come, and the answer takes one of these.
    """
    thing, words = app.thing(), texts(app)["superlative"]
    needed = page(app, state(app, thing, "yes", words["needed"]))
    others = app.draw.sample([one for one in app.things if one is not thing], 2)
    praised = [
        page(app, filled(one, text)) for text, one in zip(words["besides"], others, strict=True)
    ]
    said = Say(filled(others[1], words["answer"]), asked(others[1], "yes"))
    return about(
        app, thing, words, "yes", answer=(said,), relevant=(needed,),
        retrieved=(*app.shuffled(praised), *app.neighbors("count", 2, thing)), owner="retriever",
        modes=MISS, lost="rank", deeper=((needed, 6),), depth=50,
    )  # fmt: skip


@kind
def dash_read_as_an_operator(app: App) -> Planted:
    """A dash before a word of the question makes the search leave out all passages with that word.

    At no depth does the passage come, which has the word.
    """
    thing, words = app.thing(), texts(app)["minus"]
    needed = page(app, state(app, thing, words["v"], words["needed"], v=words["v"]))
    case = about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(needed,),
        retrieved=(thing.first, *app.neighbors("plain", 2, thing), thing.second),
        owner="retriever", modes=MISS, lost="filter", deeper=(), depth=50,
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def one_passage_of_each_document(app: App) -> Planted:
    """Results are grouped by document, so that of the right one only its other passage comes."""
    thing, attribute = start(app)
    case = plan(
        app, thing, attribute, wording=0, retrieved=around(app, thing, attribute),
        answer=wrong(app, thing, attribute), owner="retriever", modes=MISS, lost="filter",
        deeper=(), depth=50,
    )  # fmt: skip
    return guessed_or_declined(app, case)


# The index lacked it, or had it wrong.

LACKED: Row = {
    "owner": "index", "modes": NOT_INDEXED, "lost": "index", "depth": 50, "relevant": (),
    "without_references": UNKNOWABLE,
}  # fmt: skip


@kind
def spreadsheet_makes_a_date_of_a_range(app: App) -> Planted:
    """2-3 was stored as the second of March, and the app repeats that."""
    words = texts(app)["spreadsheet"]
    written, stored = words["sentence"], words["indexed"]
    return _stored_otherwise(app, words, (written, words["v"]), (written, stored), words["said"])


@kind
def scale_of_a_table_lost(app: App) -> Planted:
    """The heading says in thousands; the loader kept the numbers, and the app takes them as they are."""
    words = texts(app)["scale"]
    return _stored_otherwise(
        app, words, (words["evidence"], words["v"]), (words["indexed"], words["w"])
    )


def _stored_otherwise(
    app: App, words: Row, written: tuple[str, str], stored: tuple[str, str], said: str = ""
) -> Planted:
    """The index has the labelled sentence with another value, and the answer follows it."""
    thing = app.thing()
    (text, right), (indexed, mistaken) = written, stored
    evidence = state(app, thing, right, text, v=right)
    chunk = page(app, state(app, thing, mistaken, indexed, v=mistaken))
    fields: dict[str, Any] = LACKED | {"modes": OLD_COPY}
    return about(
        app, thing, words, right, claimed=mistaken, written=said, evidence=(evidence,),
        retrieved=among(app, thing, chunk), **fields,
    )  # fmt: skip


@kind
def variable_of_the_page_not_filled(app: App) -> Planted:
    """The crawler took the page before its variables were filled in: {{ price }}, null, NaN."""
    thing, words = app.thing(), texts(app)["variables"]
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    chunk = page(app, filled(thing, words["sentence"], v=words["raw"]))
    case = about(
        app, thing, words, words["v"], claimed=words["w"], evidence=(evidence,),
        retrieved=among(app, thing, chunk), **LACKED,
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def columns_of_a_page_read_across(app: App) -> Planted:
    """Two entries stand side by side and were read line by line: which value is whose is lost."""
    thing, attribute = start(app)
    evidence = app.state(thing, attribute, wording=0)
    chunk, width = thing.chunk(attribute), 2 + turn(app, 2)
    first = attribute in thing.order[:2]
    stated = thing.order[:2] if first else thing.order[2:]
    beside = app.thing(indexed=False, **{one: app.other(one, thing.values[one]) for one in stated})
    beside.wording = thing.wording
    columns = (app.corpus[chunk], app.passage(beside, stated))
    lines = [
        [" ".join(words[at : at + width]) for at in range(0, len(words), width)]
        for words in (one.split() for one in columns)
    ]
    mixed = [part for both in zip_longest(*lines, fillvalue="") for part in both if part]
    app.corpus[chunk] = " ".join(mixed)
    found = with_it(app, thing, attribute)
    app.things.remove(thing)  # no neighbors of others: their passage is spoiled
    app.things.remove(beside)
    taken = app.answer(thing, attribute, beside.values[attribute])
    case = plan(
        app, thing, attribute, retrieved=found, evidence=(evidence,), answer=(taken,), **LACKED
    )
    return guessed_or_declined(app, case)


@kind
def headings_of_two_lists_dropped(app: App) -> Planted:
    """What is allowed and what is not are two lists; their headings are gone, and all seems allowed."""
    thing, words = app.thing(), texts(app)["headings"]
    good, bad = words["good"], words["bad"]
    evidence = state(app, thing, "no", f"{words['no']}: {', '.join(bad)}.")
    name = filled(thing, "{e}")
    items = [*good, *bad]
    chunk = page(
        app,
        (
            "\n".join([f"{name}", *(f"- {one}" for one in items), ""]),
            f"{name}: {', '.join(good)}. {sentence(', '.join(bad))}.",
            f"{name} | {' | '.join(items)} |",
        )[turn(app, 3)],
    )
    return about(
        app, thing, words, "no", claimed="yes", evidence=(evidence,),
        retrieved=among(app, thing, chunk), **LACKED,
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def new_edition_taken_for_a_copy(app: App) -> Planted:
    """Both editions are found; of passages that are nearly the same the app keeps the first, the old."""
    thing, words = app.thing(), texts(app)["editions"]
    lead, filler = app.draw.choice(texts(app)["lead"]), app.draw.sample(app.world["filler"], 2)
    old, new = (
        app.index(" ".join([lead, filler[0], told, filler[1]]))
        for told in (
            state(
                app, thing, words["w"], words["sentence"], of="old", y=words["old"], v=words["w"]
            ),
            state(app, thing, words["v"], words["sentence"], y=words["new"], v=words["v"]),
        )
    )
    found = [old, *app.shuffled([new, *app.neighbors("form", 2, thing)])]
    return about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(new,),
        retrieved=tuple(found), shown=tuple(app.corpus[one] for one in found if one != new),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def angle_brackets_taken_for_a_tag(app: App) -> Planted:
    """Tags are taken out of what was found, and with them all between a < and the next >."""
    thing, words = app.thing(), texts(app)["eaten"]
    needed = page(app, state(app, thing, "whole", words["sentence"]))
    found = among(app, thing, needed)
    shown = tuple(re.sub(r"<[^>]*>", "", app.corpus[one]) for one in found)
    case = about(
        app, thing, words, "whole", claimed="what is left", relevant=(needed,), retrieved=found,
        owner="prompt", modes=DROPPED, lost="prompt", shown=shown,
    )  # fmt: skip
    if "answer" not in words:
        return declining(app, case)
    state(app, thing, "what is left", words["left"])
    return case


@kind
def ordinal_of_the_conversation_mistaken(app: App) -> Planted:
    """The user asks for the second of three that the app named; the rewritten query has another one."""
    words = texts(app)["ordinal"]
    attribute = words["attribute"]
    named = [app.thing() for _ in range(3)]
    if attribute != "person":
        values = app.draw.sample(app.world[attribute]["values"], 3)
        named = [app.thing(**{attribute: one}) for one in values]
    thing, mistaken = named[words["at"]], named[words["taken"]]
    names = dict(zip("abc", (one.name for one in named), strict=True))
    found = [mistaken.chunk(attribute), *app.neighbors(attribute, 3, *named)]
    history = (
        {"role": "user", "content": words["said"]},
        {"role": "assistant", "content": sentence(words["reply"], **names)},
    )
    return plan(
        app, thing, attribute, question=words["question"], history=history,
        retrieved=tuple(found), answer=(app.answer(mistaken, attribute),),
        calls=({"query": app.ask(mistaken, attribute, 0), "passages": found},),
        owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def mistranslated_for_the_prompt(app: App) -> Planted:
    """What was found is put into the user's German for the prompt, and half past seven became halb sieben."""
    thing, words = app.thing(), texts(app)["translated"]
    needed = page(app, state(app, thing, "right", words["sentence"]))
    others = app.draw.sample([one for one in app.things if one is not thing], 3)
    told = [state(app, thing, "mistaken", words["german"])]
    told += [german_answer(app, one) for one in others]
    found = [needed, *(one.chunk("count") for one in others)]
    order = app.shuffled([*"0123"])
    shown = [
        f"{GERMAN_LEADS[n]} {told[int(at)]} {app.draw.choice(GERMAN_TAILS)}"
        for n, at in enumerate(order)
    ]
    return about(
        app, thing, words, "right", claimed="mistaken", relevant=(needed,),
        retrieved=tuple(found[int(at)] for at in order), shown=tuple(shown),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def keywords_drop_the_negation(app: App) -> Planted:
    """The app searches for the keywords of the question, not is none of them, and the opposite comes."""
    return _searched_without(app, "negation")


@kind
def subtasks_drop_a_condition(app: App) -> Planted:
    """An agent splits the question into two searches, and neither has for whom or when it is asked."""
    return _searched_without(app, "subtask")


def _searched_without(app: App, of: str) -> Planted:
    """The queries lack what makes the difference; the answer follows what they find."""
    thing, words = app.thing(), texts(app)[of]
    right, mistaken = words["v"], words["w"]
    general = page(app, state(app, thing, mistaken, words["found"], of="found", w=mistaken))
    needed = page(app, state(app, thing, right, words["needed"], v=right))
    found = [general, thing.first, *app.neighbors("plain", 2, thing)]
    name = thing.name.removeprefix("the ")
    queries = [one.format(e=name) for one in words["queries"]]
    each = len(found) // len(queries)
    calls = tuple(
        {"query": query, "passages": found[number * each : (number + 1) * each]}
        for number, query in enumerate(queries)
    )
    return about(
        app, thing, words, right, claimed=mistaken, relevant=(needed,), retrieved=tuple(found),
        calls=calls, owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip
