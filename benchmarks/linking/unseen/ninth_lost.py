"""Ninth set: what the model needed was lost before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import DROPPED, LOST, OLD_COPY, plan
from .cases import ninth_kind as kind
from .eighth import behind, four, missed, others
from .eighth_lost import LACKED
from .fifth import row
from .ninth import about_it, beside, guessed_or_declined, page, worded
from .planted import App, Planted, Row, Say, Thing
from .seventh import about, asked, filled, state
from .sixth import form, turn

# As lists of stop words have them, the words that turn a sentence around among them.
STOP_WORDS = {
    "a", "an", "and", "are", "as", "at", "be", "been", "by", "can", "did", "do", "does", "during",
    "except", "for", "from", "has", "have", "if", "in", "is", "it", "its", "neither", "never",
    "no", "nobody", "none", "nor", "not", "of", "on", "or", "out", "should", "so", "than", "that",
    "the", "their", "them", "there", "these", "they", "this", "to", "unless", "was", "were",
    "when", "which", "while", "who", "will", "with", "without",
}  # fmt: skip

# The retriever did not return what it needed.


@kind
def asked_by_the_symptom(app: App) -> Planted:
    """The question tells what one sees or hears; the page names what is the matter, and what helps."""
    return _outranked(app, "symptom", 6 + turn(app, 7))


@kind
def reason_told_without_a_why(app: App) -> Planted:
    """Asked is why; the page tells what happens there at that time, and says of nothing that it is why."""
    return _outranked(app, "reason", 7 + turn(app, 5))


@kind
def popular_pages_ranked_up(app: App) -> Planted:
    """The page has the question's words; pages that many people open are ranked before it."""
    return _outranked(app, "popular", 9 + turn(app, 8))


@kind
def spelled_otherwise_in_the_pages(app: App) -> Planted:
    """A search for keywords: apart or in one word, with a hyphen or without, British or American."""
    return _outranked(app, "spelled")


def _outranked(app: App, of: str, rank: int = 0) -> Planted:
    """Other pages come before the needed one; without a rank it does not come at any depth."""
    thing, words = app.thing(), worded(app, of)
    right, mistaken = words.get("v", "right"), words.get("w", "wrong")
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    near = beside(app, thing, words) if "w" in words else about_it(app, thing, words)
    case = about(
        app, thing, words, right, claimed=mistaken, relevant=(needed,),
        **missed(app, thing, needed, near, rank),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def bare_entry_ranks_behind_prose(app: App) -> Planted:
    """The value stands in an entry of a word or two, a heading above; prose on others comes first."""
    thing, words = app.thing(), worded(app, "entry")
    right = words["v"]
    entry = state(app, thing, right, words["sentence"], v=right)
    needed = app.index(f"{filled(thing, words['title'])}\n{entry}")
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,),
        **missed(app, thing, needed, beside(app, thing, words, "prose"), 6 + turn(app, 9)),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def category_guessed_from_a_word_of_the_question(app: App) -> Planted:
    """The retriever makes a filter of the question, and takes a word of it for a kind of document.

    Pages of that kind come, and at no depth the one of another kind that answers it.
    """
    thing, words = app.thing(), worded(app, "category")
    right = words["v"]
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    near = beside(app, thing, words)
    app.corpus[needed] = f"[{words['kind']}] {app.corpus[needed]}"
    for one in near:
        app.corpus[one] = f"[{words['guessed']}] {app.corpus[one]}"
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,),
        **missed(app, thing, needed, near),
    )  # fmt: skip
    return guessed_or_declined(app, case)


@kind
def second_question_of_a_message_missed(app: App) -> Planted:
    """Two questions in one message, and one search for it; pages on the first take all places.

    The answer to the second is a guess, or that it is not known.
    """
    thing, words = app.thing(), worded(app, "second")
    right, mistaken, known = words["v"], words["w"], words["a"]
    first = page(app, state(app, thing, known, words["first"], of="first", a=known))
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    (other,) = others(app, thing, 1)
    theirs = page(app, state(app, other, words["b"], words["first"], of="first", a=words["b"]))
    near = [first, *about_it(app, thing, words), theirs]
    known_fact, right_fact = asked(thing, known, "first"), asked(thing, right)
    told = Say(filled(thing, words["told"], a=known), known_fact)
    guess = Say(filled(thing, words["answer"], v=mistaken), asked(thing, mistaken))
    expected = Say(filled(thing, words["reference"], v=right), right_fact)
    case = about(
        app, thing, words, right, needs=(*known_fact, *right_fact), answer=(told, guess),
        references=(told, expected), relevant=(first, needed),
        **missed(app, thing, needed, near, 6 + turn(app, 8)),
    )  # fmt: skip
    if app.draw.random() < 0.5:
        return case
    return replace(case, answer=(told, Say(words["open"])), response="partly")


# The index lacked it, or had it wrong.


@kind
def only_the_question_of_a_thread_indexed(app: App) -> Planted:
    """Of a thread the opening post was indexed, which asks just that; the reply was not."""
    thing, words = app.thing(), worded(app, "thread")
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    asking = (thing, *others(app, thing, 2))
    post, *posts = (page(app, filled(one, words["post"])) for one in asking)
    near = [post, *about_it(app, thing, words), *posts]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


@kind
def picture_described_wrongly(app: App) -> Planted:
    """A model described the chart or photo for the index, and misread it. The app repeats that."""
    thing, words = app.thing(), worded(app, "picture")
    right, misread = words["v"], words["w"]
    evidence = state(app, thing, right, words["sentence"], v=right)
    chunk = page(app, state(app, thing, misread, words["described"], v=misread))
    near = [chunk, *beside(app, thing, words, "described")]
    return _lacking(app, thing, words, evidence, near, modes=OLD_COPY)


@kind
def indexed_before_it_was_announced(app: App) -> Planted:
    """When the page was indexed it said that it is still open, which the app repeats; now it has it."""
    thing, words = app.thing(), worded(app, "announced")
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    chunk, *chunks = (
        page(app, state(app, one, "open", words["stored"]))
        for one in (thing, *others(app, thing, 2))
    )
    near = [chunk, *about_it(app, thing, words), *chunks]
    return _lacking(app, thing, words, evidence, near, claimed="open", modes=OLD_COPY)


@kind
def only_the_first_sheet_loaded(app: App) -> Planted:
    """The workbook has several sheets; the loader read the first, and it is asked from another."""
    thing, words, style = app.thing(), worded(app, "sheet"), form(app)
    right = words["v"]
    evidence = f"{words['other']} {row((thing.name, right), style)}"
    app.register(evidence, *asked(thing, right))
    listed = (thing, *others(app, thing, 2))
    lines = [
        row((one.name, *cells), style) for one, cells in zip(listed, words["rows"], strict=True)
    ]
    header = row(("name", *words["columns"]), style)
    chunk = app.index("\n".join([words["first"], header, *app.shuffled(lines)]))
    near = [chunk, *about_it(app, thing, words)]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


@kind
def stop_words_removed_before_indexing(app: App) -> Planted:
    """Pages were put into small letters and lost their stop words, not, no and without among them."""
    thing, words = app.thing(), worded(app, "stopped")
    told = state(app, thing, "right", words["sentence"])
    chunk = page(app, told)
    near = [chunk, *beside(app, thing, words)]
    for one in (*near, thing.first, thing.second):
        app.corpus[one] = _stripped(app.corpus[one])
    app.register(_stripped(told), *asked(thing, "wrong"))
    app.things.remove(thing)  # no neighbor of others: its passages state nothing any more
    return _lacking(app, thing, words, told, near, modes=OLD_COPY)


def _stripped(text: str) -> str:
    """The text in small letters, without marks and stop words."""
    words = (word.strip(".,;:!?()#\"'") for word in text.lower().split())
    return " ".join(word for word in words if word and word not in STOP_WORDS)


@kind
def date_of_the_page_lost(app: App) -> Planted:
    """The page says last year, tomorrow, a week ago; its own date was not indexed. Asked is when."""
    thing, words = app.thing(), worded(app, "dated")
    evidence = f"{words['date']} {filled(thing, words['sentence'])}"
    app.register(evidence, *asked(thing, words["v"]))
    chunk, *chunks = (
        page(app, filled(one, words["sentence"])) for one in (thing, *others(app, thing, 2))
    )
    near = [chunk, *about_it(app, thing, words), *chunks]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


def _lacking(
    app: App, thing: Thing, words: Row, evidence: str, near: list[str], claimed: str = "",
    **fields: Any,
) -> Planted:  # fmt: skip
    """A case whose labelled sentence is in no passage of the index; the first of what is near is its page."""
    found = four(app, thing, *near)
    common = LACKED | behind(app, thing, found, near) | {"evidence": (evidence,)}
    return about(
        app, thing, words, words.get("v", "right"), claimed=claimed or words.get("w", "wrong"),
        retrieved=found, **(common | fields),
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def memory_replaces_the_name(app: App) -> Planted:
    """The app remembers which one the user has; it searches for that one, and another is asked for."""
    words = worded(app, "memory")
    attribute = words["attribute"]
    thing = app.thing()
    mistaken = app.thing(**{attribute: app.other(attribute, thing.values[attribute])})
    found = [mistaken.chunk(attribute), *app.neighbors(attribute, 3, thing, mistaken)]
    return plan(
        app, thing, attribute, instruction=filled(mistaken, words["known"]),
        retrieved=tuple(found), answer=(app.answer(mistaken, attribute),), response="evades",
        calls=({"query": app.ask(mistaken, attribute, 0), "passages": found},), owner="prompt",
        modes=LOST, lost="search", **behind(app, mistaken, found, (), thing.chunk(attribute)),
    )  # fmt: skip


@kind
def relative_date_resolved_wrongly(app: App) -> Planted:
    """Asked is tomorrow, next week; the prompt has today's date, and the query a wrong day for it."""
    thing, words = app.thing(), worded(app, "day")
    days, values = words["days"], [words[one] for one in "vwx"]
    needed, *near = (
        page(app, state(app, thing, v, words["sentence"], of="asked" if d == days[0] else d, d=d, v=v))
        for d, v in zip(days, values, strict=True)
    )  # fmt: skip
    near += about_it(app, thing, words)
    query = words["query"].format(e=thing.name.removeprefix("the "), d=days[1])
    return _searched_for(
        app, thing, words, needed, near, query, instruction=words["today"]
    )  # fmt: skip


@kind
def step_back_question_searched_alone(app: App) -> Planted:
    """The app makes a more general question of it, and searches for that one and for no other."""
    thing, words = app.thing(), worded(app, "general")
    needed = page(app, state(app, thing, words["v"], words["sentence"], v=words["v"]))
    near = about_it(app, thing, words)
    query = filled(thing, words["query"])
    return guessed_or_declined(app, _searched_for(app, thing, words, needed, near, query))


def _searched_for(
    app: App, thing: Thing, words: Row, needed: str, near: list[str], query: str, **fields: Any
) -> Planted:  # fmt: skip
    """The query lost what the question names, and the needed page ranks low for it. The app guesses."""
    found = four(app, thing, *near)
    return about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(needed,), retrieved=found,
        calls=({"query": query, "passages": list(found)},), owner="prompt", modes=LOST,
        lost="search", **behind(app, thing, found, near, needed, 7 + turn(app, 6)), **fields,
    )  # fmt: skip


@kind
def notes_on_each_passage_miss_it(app: App) -> Planted:
    """A cheap model takes notes on each passage, and finds nothing in the one that has it.

    The prompt has the notes in place of the passages.
    """
    thing, words = app.thing(), worded(app, "notes")
    needed = page(app, state(app, thing, words["v"], words["sentence"], v=words["v"]))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    return _unshown(app, thing, words, needed, near, found, tuple(words["notes"]))


@kind
def cut_at_a_quotation_mark(app: App) -> Planted:
    """The template is JSON and does not escape: each passage ends at its first quotation mark."""
    thing, words = app.thing(), worded(app, "quote")
    needed = page(app, state(app, thing, words["v"], words["sentence"], v=words["v"]))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    shown = tuple(app.corpus[one].partition('"')[0] for one in found)
    return _unshown(app, thing, words, needed, near, found, shown)


def _unshown(
    app: App, thing: Thing, words: Row, needed: str, near: list[str], found: tuple[str, ...],
    shown: tuple[str, ...],
) -> Planted:  # fmt: skip
    """The needed page was found, and what stands in the prompt for it lacks the value. Guess or decline."""
    case = about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(needed,), retrieved=found,
        shown=shown, owner="prompt", modes=DROPPED, lost="prompt",
        **behind(app, thing, found, near),
    )  # fmt: skip
    return guessed_or_declined(app, case)
