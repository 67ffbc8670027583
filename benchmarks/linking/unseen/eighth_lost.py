"""Eighth set: what the model needed was lost before it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from .cases import DROPPED, LOST, NOT_INDEXED, OLD_COPY, plan, wrong
from .cases import eighth_kind as kind
from .eighth import (
    behind,
    beside,
    four,
    guessed_or_declined,
    missed,
    others,
    page,
    texts,
)
from .fifth import row
from .fifth_lost import GERMAN_LEADS, GERMAN_TAILS
from .german import DECLINES
from .planted import App, Planted, Row, Say, Thing
from .seventh import about, asked, filled, state
from .sixth import form, turn
from .third_lost import UNKNOWABLE

# The retriever did not return what it needed.


@kind
def instance_asked_class_written(app: App) -> Planted:
    """Asked about a beagle, a parrot, the third of May; the page speaks of dogs, pets, a late frost."""
    return _outranked(app, "class", 7 + turn(app, 5))


@kind
def other_sense_of_a_word_first(app: App) -> Planted:
    """A word of the question has two senses, and pages with the other one take all places."""
    return _outranked(app, "sense", 6 + turn(app, 7))


def _outranked(app: App, of: str, rank: int) -> Planted:
    """Pages that share more words with the question push the needed one down. It guesses or declines."""
    thing, words = app.thing(), texts(app)[of]
    right = words["v"]
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,),
        **missed(app, thing, needed, beside(app, thing, words), rank),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def versions_alike_to_vectors(app: App) -> Planted:
    """Six versions have a page each, alike but for number and value; four others come.

    The needed one has rank 6 to 8. The answer takes the version before it, or declines.
    """
    thing, words = app.thing(), texts(app)["versions"]
    at, values = words["at"], words["v"]
    pages = [
        page(app, state(app, thing, v, words["sentence"], of="asked" if n == at else y, y=y, v=v))
        for n, (y, v) in enumerate(zip(words["y"], values, strict=True))
    ]
    needed = pages.pop(at)
    case = about(
        app, thing, words, values[at], claimed=values[at - 1], relevant=(needed,),
        **missed(app, thing, needed, app.shuffled(pages), 6 + turn(app, 3)),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def approximate_search_skips_the_nearest(app: App) -> Planted:
    """The page has the question's own words; the graph of the index does not lead to it, at any depth."""
    thing, words = app.thing(), texts(app)["nearest"]
    right = words["v"]
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,),
        **missed(app, thing, needed, beside(app, thing, words)),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def one_query_for_two_hops(app: App) -> Planted:
    """The first hop is found; the page on what it names lacks the name that the question has.

    One search, for the question as it is. A page on another of that kind comes, whose value is taken.
    """
    thing, words = app.thing(), texts(app)["bridge"]
    right, mistaken = words["v"], words["w"]
    first = page(app, state(app, thing, "yes", words["first"], of="hop", m=words["m"]))
    hops = []
    for name, value in ((words["m"], right), (words["o"], mistaken)):
        told = filled(thing, words["second"], m=name, v=value)
        app.register(told, ((name, "hop"), value))
        hops.append(page(app, told))
    needed, other = hops
    near = [first, other, *(page(app, filled(thing, one)) for one in words["besides"])]
    right_fact, said_fact = ((((words["m"], "hop"), one),) for one in (right, mistaken))
    reference = words.get("reference", words["answer"])
    case = about(
        app, thing, words, right, needs=right_fact, relevant=(first, needed),
        answer=(Say(filled(thing, words["answer"], v=mistaken), said_fact),),
        references=(Say(filled(thing, reference, v=right), right_fact),),
        **missed(app, thing, needed, near, 8 + turn(app, 6)),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def compound_not_taken_apart(app: App) -> Planted:
    """German question and pages: asked is the Türanstrich, the page says that the Tür was gestrichen.

    Pages with other compounds of the same parts come first.
    """
    thing, words = app.thing(), texts(app)["compound"]
    right = words["v"]
    needed = _german(app, state(app, thing, right, words["sentence"], v=right))
    near = [_german(app, filled(thing, one)) for one in words["besides"]]
    near += [
        _german(app, state(app, other, value, words["sentence"], of="beside", v=value))
        for other, value in zip(others(app, thing, 2), (words["w"], words["x"]), strict=True)
    ]
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,),
        **missed(app, thing, needed, near, 6 + turn(app, 5)),
    )  # fmt: skip
    unsaid = {"answer": (Say(DECLINES),), "response": "declines"}
    return case if app.draw.random() < 0.5 else replace(case, **unsaid)


def _german(app: App, told: str) -> str:
    """Index a German page."""
    lead, tail = app.draw.choice(GERMAN_LEADS), app.draw.choice(GERMAN_TAILS)
    return app.index(f"{lead} {told} {tail}")


# The index lacked it, or had it wrong.

LACKED: Row = {
    "owner": "index", "modes": NOT_INDEXED, "lost": "index", "relevant": (),
    "without_references": UNKNOWABLE,
}  # fmt: skip


@kind
def summary_indexed_for_the_page(app: App) -> Planted:
    """Each page was summed up, and the summary indexed: it says what the page tells, and not the value."""
    return _stored_without(app, "summary", "stored")


@kind
def wall_indexed_for_the_page(app: App) -> Planted:
    """The crawler was not let in: the index has a login form, a cookie banner, an error page."""
    return _stored_without(app, "login", "stored")


@kind
def names_masked_before_indexing(app: App) -> Planted:
    """Names of people were masked when pages were indexed, and who it was is asked."""
    return _stored_without(app, "masked", "sentence")


def _stored_without(app: App, of: str, written: str) -> Planted:
    """The index has something else in place of the labelled sentence, of all things. Guess or decline."""
    thing, words = app.thing(), texts(app)[of]
    right, mask = words["v"], words.get("mask", "")
    evidence = state(app, thing, right, words["sentence"], v=right)
    chunk, *siblings = (
        page(app, filled(one, words[written], v=mask)) for one in (thing, *others(app, thing, 2))
    )
    near = [chunk, *(page(app, filled(thing, one)) for one in words["besides"]), *siblings]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near, right, words["w"]))


@kind
def speech_recognition_mishears(app: App) -> Planted:
    """A recording was transcribed for the index, and fifteen became fifty. The app repeats it."""
    thing, words = app.thing(), texts(app)["heard"]
    right, misheard = words["v"], words["w"]
    evidence = state(app, thing, right, words["sentence"], v=right)
    chunk = page(app, state(app, thing, misheard, words["sentence"], v=misheard))
    near = [chunk, *beside(app, thing, words)]
    return _lacking(app, thing, words, evidence, near, right, misheard, modes=OLD_COPY)


@kind
def footnotes_cut_off(app: App) -> Planted:
    """The loader kept the mark of the footnote and cut the note, which has the exception that is asked."""
    thing, words = app.thing(), texts(app)["footnote"]
    evidence = state(app, thing, "note", words["note"])
    chunk = page(app, state(app, thing, "rule", words["rule"]))
    near = [chunk, *beside(app, thing, words, "rule")]
    return _lacking(app, thing, words, evidence, near, "note", "rule", modes=OLD_COPY)


def _lacking(
    app: App, thing: Thing, words: Row, evidence: str, near: list[str], right: str, claimed: str,
    **fields: Any,
) -> Planted:  # fmt: skip
    """A case whose labelled sentence is in no passage of the index; the first of what is near is its page."""
    found = four(app, thing, *near)
    common = LACKED | behind(app, thing, found, near) | {"evidence": (evidence,)}
    return about(
        app, thing, words, right, claimed=claimed, retrieved=found, **(common | fields)
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def abbreviation_expanded_wrongly(app: App) -> Planted:
    """The rewritten query spells the abbreviation of the question out as something else.

    The app declines, or reports what it found on that.
    """
    thing, words = app.thing(), texts(app)["abbreviation"]
    right = words["v"]
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    told = state(app, thing, words["w"], words["found"], of="found", w=words["w"])
    near = [page(app, told), *(page(app, filled(thing, one)) for one in words["besides"])]
    found = four(app, thing, *near)
    query = words["query"].format(e=thing.name.removeprefix("the "))
    case = about(
        app, thing, words, right, answer=(Say(told, asked(thing, words["w"], "found")),),
        response="evades", relevant=(needed,), retrieved=found, owner="prompt", modes=LOST,
        calls=({"query": query, "passages": list(found)},), lost="search",
        **behind(app, thing, found, near, needed, 8 + turn(app, 6)),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def correction_of_the_user_ignored(app: App) -> Planted:
    """The user says that another one was meant; the query has the first one again, and so the answer."""
    words = texts(app)["correction"]
    attribute = words["attribute"]
    thing = app.thing()
    mistaken = app.thing(**{attribute: app.other(attribute, thing.values[attribute])})
    found = [mistaken.chunk(attribute), *app.neighbors(attribute, 3, thing, mistaken)]
    history = (
        {"role": "user", "content": app.ask(mistaken, attribute)},
        {"role": "assistant", "content": app.answer(mistaken, attribute).text},
    )
    return plan(
        app, thing, attribute, history=history, retrieved=tuple(found), response="evades",
        question=words["question"].format(a=mistaken.name, b=thing.name),
        answer=(app.answer(mistaken, attribute),), owner="prompt", modes=LOST, lost="search",
        calls=({"query": app.ask(mistaken, attribute, 0), "passages": found},),
        **behind(app, mistaken, found, (), thing.chunk(attribute)),
    )  # fmt: skip


@kind
def empty_cells_close_up(app: App) -> Planted:
    """For the prompt, empty cells are taken out of tables, and numbers move below other headings."""
    thing, words = app.thing(), texts(app)["cells"]
    style, (right, moved) = form(app), words["row"]
    whole, closed = (
        row((thing.name, "", right, moved), style),
        row((thing.name, right, moved), style),
    )
    app.register(" ".join(whole.split()), *asked(thing, right))
    app.register(" ".join(closed.split()), *asked(thing, moved))
    rows = [
        row((one.name, *cells), style)
        for one, cells in zip(others(app, thing, 2), words["rows"], strict=True)
    ]
    rows.insert(app.draw.randrange(3), whole)
    header = row(("name", *words["columns"]), style)
    lead, tail = app.draw.choice(texts(app)["lead"]), app.draw.choice(app.world["filler"])
    needed = app.index("\n".join([f"{lead} {words['title']}:", header, *rows, tail]))
    found = four(app, thing, needed, *app.neighbors("count", 2, thing))
    return about(
        app, thing, words, right, claimed=moved, relevant=(needed,), retrieved=found,
        shown=tuple(app.corpus[one].replace(whole, closed) for one in found),
        owner="prompt", modes=DROPPED, lost="prompt", **behind(app, thing, found, ()),
    )  # fmt: skip


@kind
def repeated_sentences_removed(app: App) -> Planted:
    """Sentences that the prompt has already are left out; here the same was said of another thing.

    The sentence has a pronoun, so that it tells nothing without its passage.
    """
    attribute = ("count", "form", "plain")[turn(app, 3)]
    value = app.draw.choice(app.values(attribute))
    first, thing = (_in_pronouns(app, attribute, value) for _ in range(2))
    near = app.neighbors(attribute, 2, first, thing)
    found = (first.chunk(attribute), near[0], thing.chunk(attribute), near[1])
    seen: set[str] = set()
    shown = []
    for one in found:
        told = re.split(r"(?<=[.!?])\s", app.corpus[one])
        shown.append(" ".join(part for part in told if part not in seen))
        seen.update(told)
    case = plan(
        app, thing, attribute, retrieved=found, shown=tuple(shown),
        answer=wrong(app, thing, attribute), owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip
    return guessed_or_declined(app, case)


def _in_pronouns(app: App, attribute: str, value: str) -> Thing:
    """A thing whose passages name it once and then speak of it."""
    thing = app.thing(indexed=False, **{attribute: value})
    thing.wording = 1
    thing.first = app.index(app.passage(thing, thing.order[:2]))
    thing.second = app.index(app.passage(thing, thing.order[2:]))
    return thing


@kind
def parent_shown_for_the_hit(app: App) -> Planted:
    """Small chunks are searched; the prompt gets the head of the document in place of each chunk."""
    thing, words = app.thing(), texts(app)["parent"]
    right = words["v"]
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near[1:])
    shown = []
    for one in found:
        named = _named(app, one)
        head = words["parent"] if named is thing else app.draw.choice(app.world["intro"])
        shown.append(f"{filled(named, head)} {app.draw.choice(app.world['filler'])}")
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,), retrieved=found,
        shown=tuple(shown), owner="prompt", modes=DROPPED, lost="prompt",
        **behind(app, thing, found, near),
    )  # fmt: skip
    return guessed_or_declined(app, case)


def _named(app: App, chunk: str) -> Thing:
    """The thing that a page is on."""
    text = app.corpus[chunk].lower()
    return next(one for one in app.things if one.name.lower() in text)


@kind
def compressor_swaps_two_values(app: App) -> Planted:
    """A compressor makes a line of each passage, and gives two things each the value of the other."""
    attribute = ("person", "count", "form", "plain")[turn(app, 4)]
    thing = app.thing()
    twin = app.thing(**{attribute: app.other(attribute, thing.values[attribute])})
    rest = [one for one in others(app, thing, 4) if one is not twin][:2]
    listed = [thing, twin, *rest]
    app.draw.shuffle(listed)
    swapped = {thing.name: twin, twin.name: thing}
    lines = [
        app.answer(one, attribute, swapped.get(one.name, one).values[attribute]) for one in listed
    ]
    for line in lines:
        app.register(line.text, *(line.stated or ()))
    return plan(
        app, thing, attribute, retrieved=tuple(one.chunk(attribute) for one in listed),
        shown=tuple(line.text for line in lines), owner="prompt", modes=DROPPED, lost="prompt",
        answer=(app.answer(thing, attribute, twin.values[attribute]),),
    )  # fmt: skip
