"""Tenth set: what the model needed was lost before it."""

from __future__ import annotations

import re
from typing import Any

from .cases import DROPPED, LOST, OLD_COPY
from .cases import tenth_kind as kind
from .eighth import behind, four, missed, others
from .eighth_lost import LACKED
from .planted import App, Planted, Row, Thing
from .seventh import about, asked, filled, state
from .sixth import turn
from .tenth import about_it, beside, guessed_or_declined, page, worded

# How extractors write what they could not read, and documents the number of a page.
INAUDIBLE = ("[inaudible]", "(unintelligible)", "<noise>", "[unclear]")
NO_FORMULA = ("", "[image]", "[Eq. 1]", "<math/>")
BLANKS = ("", "________", "[ ]", "..........")
PARTS = ("part {} of 3", "{}/3", "page {} of 3", "sheet {} (3 sheets)")

# The retriever did not return what it needed.


@kind
def pages_that_repeat_the_name_come_first(app: App) -> Planted:
    """The page names the thing once; pages that have little but its name, again and again, come first."""
    return _outranked(app, "repeated", "", 6 + turn(app, 8))


@kind
def told_from_the_other_end(app: App) -> Planted:
    """Asked is who gave, taught or sold; the page tells it of the other one, who parted with it or learned."""
    return _outranked(app, "other_end", "near", 7 + turn(app, 6))


@kind
def stemmer_makes_one_word_of_two(app: App) -> Planted:
    """Organ and organization, policy and police have one stem; pages with the other word come first."""
    return _outranked(app, "stemmed", "", 6 + turn(app, 5))


@kind
def title_made_of_stop_words(app: App) -> Planted:
    """Asked about "Now and Then" or "The Who": the search drops all of it, and at no depth has the page."""
    return _outranked(app, "title", "near")


@kind
def person_written_as_in_a_register(app: App) -> Planted:
    """The question has first name and name of somebody; the page has the name, a comma and an initial."""
    return _outranked(app, "register", "near", 8 + turn(app, 7))


@kind
def holiday_asked_by_its_name(app: App) -> Planted:
    """Asked is New Year's Day, Labor Day; the page has the date, and pages of others have the name."""
    return _outranked(app, "holiday", "near", 6 + turn(app, 6))


@kind
def told_in_an_interview(app: App) -> Planted:
    """Somebody is asked about it, and answers in a few words with here and it; prose on others comes first."""
    return _outranked(app, "interview", "near", 9 + turn(app, 5))


def _outranked(app: App, of: str, written: str, rank: int = 0) -> Planted:
    """Other pages come before the needed one; without a rank it does not come at any depth.

    What is `written` of others comes as well.
    """
    thing, words = app.thing(), worded(app, of)
    right = words["v"]
    before = [filled(thing, one) for one in words.get("before", ())]
    needed = page(app, *before, state(app, thing, right, words["sentence"], v=right))
    near = beside(app, thing, words, written) if written else about_it(app, thing, words)
    case = about(
        app, thing, words, right, claimed=words["w"], relevant=(needed,),
        **missed(app, thing, needed, near, rank),
    )  # fmt: skip
    return guessed_or_declined(app, case)


# The index lacked it, or had it wrong, and its texts show that.


@kind
def target_of_a_link_lost(app: App) -> Planted:
    """The page says here, or by this link; the loader kept these words and dropped the address."""
    thing, words = app.thing(), worded(app, "link")
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    chunk, *chunks = (
        page(app, filled(one, words["stored"])) for one in (thing, *others(app, thing, 2))
    )
    near = [chunk, *about_it(app, thing, words), *chunks]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


@kind
def fields_of_a_form_left_blank(app: App) -> Planted:
    """The loader took the printed words of a form, and nothing of what was filled in."""
    thing, words, blank = app.thing(), worded(app, "form"), BLANKS[turn(app, 4)]
    evidence = f"{filled(thing, words['title'])} - {words['fields'][0]}: {words['v']}"
    app.register(evidence, *asked(thing, words["v"]))
    fields = app.shuffled([f"{one}: {blank}" for one in words["fields"]])
    chunk, *chunks = (
        app.index("\n".join([filled(one, words["title"]), *fields]))
        for one in (thing, *others(app, thing, 2))
    )
    near = [chunk, *about_it(app, thing, words), *chunks]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


@kind
def recording_inaudible_at_the_value(app: App) -> Planted:
    """A recording was transcribed for the index, and just the value could not be understood."""
    thing, words, gap = app.thing(), worded(app, "recording"), INAUDIBLE[turn(app, 4)]
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    chunk = page(app, filled(thing, words["sentence"], v=gap))
    near = [chunk, *beside(app, thing, words)]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


@kind
def erratum_announced_and_not_indexed(app: App) -> Planted:
    """The page has an error, which the app repeats. A note says so, and the corrected page is not indexed."""
    thing, words = app.thing(), worded(app, "erratum")
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    chunk = page(app, state(app, thing, words["w"], words["sentence"], v=words["w"]))
    near = [chunk, *about_it(app, thing, words), *_of_another(app, thing, words)]
    near.append(page(app, filled(thing, words["note"])))
    return _lacking(app, thing, words, evidence, near, modes=OLD_COPY)


def _of_another(app: App, thing: Thing, words: Row) -> list[str]:
    """A page that says of another thing what is asked of this one."""
    (other,) = others(app, thing, 1)
    return [page(app, state(app, other, words["x"], words["sentence"], v=words["x"]))]


@kind
def middle_part_of_a_document_missing(app: App) -> Planted:
    """Parts one and three of the document are indexed, and part two, which has it, is not."""
    thing, words, part = app.thing(), worded(app, "parts"), PARTS[turn(app, 4)]
    (other,) = others(app, thing, 1)
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    theirs = state(app, other, words["w"], words["sentence"], v=words["w"])
    near = [
        app.index(f"{filled(one, words['title'])}, {part.format(number)}\n{text}")
        for one, number, text in (
            (thing, 1, filled(thing, words["first"])), (thing, 3, filled(thing, words["last"])),
            (other, 2, theirs),
        )
    ]  # fmt: skip
    near += about_it(app, thing, words)
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


@kind
def formula_dropped_by_the_loader(app: App) -> Planted:
    """The page gives a formula, which was set as such; the loader left a gap or a mark in its place."""
    thing, words, gap = app.thing(), worded(app, "formula"), NO_FORMULA[turn(app, 4)]
    evidence = state(app, thing, words["v"], words["sentence"], v=words["v"])
    chunk, *chunks = (
        page(app, filled(one, words["sentence"], v=gap)) for one in (thing, *others(app, thing, 2))
    )
    near = [chunk, *about_it(app, thing, words), *chunks]
    return guessed_or_declined(app, _lacking(app, thing, words, evidence, near))


def _lacking(
    app: App, thing: Thing, words: Row, evidence: str, near: list[str], **fields: Any
) -> Planted:  # fmt: skip
    """A case whose labelled sentence is in no passage of the index; the first of what is near is its page."""
    found = four(app, thing, *near)
    common = LACKED | behind(app, thing, found, near) | {"evidence": (evidence,)}
    return about(
        app, thing, words, words["v"], claimed=words["w"], retrieved=found, **(common | fields)
    )


# Lost before the search, or between search and prompt.


@kind
def query_adds_a_condition(app: App) -> Planted:
    """The rewritten query has a season, a group or a place that nobody asked about; pages on that come."""
    thing, words = app.thing(), worded(app, "added")
    needed = page(app, state(app, thing, words["v"], words["sentence"], v=words["v"]))
    near = about_it(app, thing, words)
    query = filled(thing, words["query"])
    return guessed_or_declined(app, _searched_for(app, thing, words, needed, near, query))


@kind
def ours_taken_for_the_other_of_two(app: App) -> Planted:
    """The user has told which of two is theirs; the query for ours, mine, it has the other one."""
    thing, words = app.thing(), worded(app, "ours")
    (other,) = others(app, thing, 1)
    needed = page(app, state(app, thing, words["v"], words["sentence"], v=words["v"]))
    theirs = page(app, state(app, other, words["w"], words["sentence"], v=words["w"]))
    near = [theirs, *about_it(app, other, words)]
    history = (
        {"role": "user", "content": filled(thing, words["told"], o=other.name)},
        {"role": "assistant", "content": words["reply"]},
    )
    query = filled(other, words["query"])
    return _searched_for(app, thing, words, needed, near, query, history=history)


def _searched_for(
    app: App, thing: Thing, words: Row, needed: str, near: list[str], query: str, **fields: Any
) -> Planted:  # fmt: skip
    """The query is not what the user asked, and the needed page ranks low for it. The app guesses."""
    found = four(app, thing, *near)
    return about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(needed,), retrieved=found,
        calls=({"query": query, "passages": list(found)},), owner="prompt", modes=LOST,
        lost="search", **behind(app, thing, found, near, needed, 8 + turn(app, 5)), **fields,
    )  # fmt: skip


@kind
def unit_replaced_without_converting(app: App) -> Planted:
    """For the prompt, the unit is put in place of the user's other one, and the number stays. It is repeated."""
    thing, words = app.thing(), worded(app, "unit")
    ours, theirs = words["units"]
    words["w"] = _replaced(words["v"], ours, theirs)
    said = state(app, thing, words["v"], words["sentence"], v=words["v"])
    app.register(_replaced(said, ours, theirs), *asked(thing, words["w"]))
    needed, near = page(app, said), [*about_it(app, thing, words), *_of_another(app, thing, words)]
    found = four(app, thing, needed, *near)
    shown = tuple(_replaced(app.corpus[one], ours, theirs) for one in found)
    return _unshown(app, thing, words, needed, near, found, shown)


def _replaced(text: str, ours: str, theirs: str) -> str:
    return re.sub(rf"\b{ours}\b", theirs, text)


@kind
def passages_keyed_by_their_document(app: App) -> Planted:
    """The app puts what was found under the title of its document: of two of a document the last is shown."""
    thing, words = app.thing(), worded(app, "keyed")
    mine = (state(app, thing, words["v"], words["sentence"], v=words["v"]), words["more"])
    needed, after = (_of_document(app, thing, words, one) for one in mine)
    theirs = [
        _of_document(app, one, words, state(app, one, value, words["sentence"], v=value))
        for one, value in zip(others(app, thing, 2), (words["w"], words["x"]), strict=True)
    ]
    found = [*app.shuffled([needed, theirs[0]]), *app.shuffled([after, theirs[1]])]
    kept = {app.corpus[one].partition("\n")[0]: app.corpus[one] for one in found}
    near = [after, *theirs, *about_it(app, thing, words)]
    case = _unshown(app, thing, words, needed, near, tuple(found), tuple(kept.values()))
    return guessed_or_declined(app, case)


def _of_document(app: App, thing: Thing, words: Row, text: str) -> str:
    """Index a passage below the title of its document."""
    filler = app.draw.choice(app.world["filler"])
    return app.index(f"{filled(thing, words['title'])}\n{filled(thing, text)} {filler}")


@kind
def parentheses_taken_for_citations(app: App) -> Planted:
    """The app cleans what was found of citations, that is, of all that stands in parentheses."""
    thing, words = app.thing(), worded(app, "parentheses")
    needed = page(app, state(app, thing, words["v"], words["sentence"], v=words["v"]))
    near = beside(app, thing, words)
    found = four(app, thing, needed, *near)
    shown = tuple(re.sub(r"\s*\([^()]*\)", "", app.corpus[one]) for one in found)
    case = _unshown(app, thing, words, needed, near, found, shown)
    return guessed_or_declined(app, case)


def _unshown(
    app: App, thing: Thing, words: Row, needed: str, near: list[str], found: tuple[str, ...],
    shown: tuple[str, ...],
) -> Planted:  # fmt: skip
    """The needed page was found, and what stands in the prompt for it lacks the value, or has another."""
    return about(
        app, thing, words, words["v"], claimed=words["w"], relevant=(needed,), retrieved=found,
        shown=shown, owner="prompt", modes=DROPPED, lost="prompt",
        **behind(app, thing, found, near),
    )  # fmt: skip
