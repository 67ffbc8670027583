"""Fourth set: what the model needed was lost before it."""

from __future__ import annotations

import re
from dataclasses import replace

from .cases import (
    DROPPED,
    LOST,
    MISS,
    NOT_INDEXED,
    OLD_COPY,
    declined,
    plan,
    portrait,
    start,
    summed,
    two_hops,
    unindexed,
    with_it,
    wrong,
)
from .cases import fourth_kind as kind
from .planted import TOWNS, App, Planted, Say, Thing
from .third_lost import UNKNOWABLE

# The index lacked it, or had it wrong.


@kind
def footnote_mark_joined_to_number(app: App) -> Planted:
    """The parser glued the mark of a footnote to the number; the app repeats what it makes."""
    thing = app.thing()
    chunk = thing.chunk("count")
    # With the name in it: a sentence without may stand in another passage, too.
    sentence = app.state(thing, "count", wording=0)
    value = f"{thing.values['count']}{app.draw.randrange(1, 6)}"
    indexed = app.state(thing, "count", wording=thing.wording)
    joined = app.state(thing, "count", value, 0)
    app.corpus[chunk] = app.corpus[chunk].replace(indexed, joined)
    found = with_it(app, thing, "count")
    app.things.remove(thing)
    return plan(
        app, thing, "count", retrieved=found, evidence=(sentence,),
        answer=(app.answer(thing, "count", value),), owner="index", modes=OLD_COPY, lost="index",
        depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def cleaning_strips_digits(app: App) -> Planted:
    """Before indexing, a cleaning step took all digits out of the page. The app declines."""
    thing = app.thing()
    chunk = thing.chunk("count")
    sentence = app.state(thing, "count", wording=0)
    indexed = app.state(thing, "count", wording=thing.wording)
    text = app.corpus[chunk].replace(indexed, sentence)
    app.corpus[chunk] = _without_digits(text)
    found = with_it(app, thing, "count")
    app.things.remove(thing)
    return plan(
        app, thing, "count", retrieved=found, evidence=(sentence,), answer=declined(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=UNKNOWABLE,
    )  # fmt: skip


def _without_digits(text: str) -> str:
    return re.sub(r"\s*\d[\d.,]*(?=\s|$)", "", text)


def _unindexed(app: App) -> tuple[Thing, str, tuple[str, ...]]:
    """As `unindexed`, of a thing whose other passage does not have the value by chance."""
    thing, asked, found = unindexed(app)
    while thing.values["form"].startswith(f"{thing.values['count']} "):
        thing, asked, found = unindexed(app)
    return thing, asked, found


@kind
def second_hop_never_indexed(app: App) -> Planted:
    """The agent asks for the right person, whose portrait was never indexed. The app declines."""
    case, thing, hop, _ = two_hops(app)
    del app.corpus[hop]
    person = thing.values["person"]
    first = (thing.chunk("person"), *app.neighbors("person", 1, thing))
    strangers = [portrait(app, app.other("person"), app.draw.choice(TOWNS)) for _ in range(2)]
    calls = (
        {"query": case.question, "passages": list(first)},
        {"query": f"Where did {person} grow up?", "passages": strangers},
    )
    return replace(
        case, retrieved=(*first, *strangers), calls=calls, answer=declined(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def one_of_two_documents_not_indexed(app: App) -> Planted:
    """Two facts are asked; the document with one was never indexed, and the answer invents that one."""
    thing, gone, found = _unindexed(app)
    here = thing.order[2]
    return plan(
        app, thing, (here, gone), retrieved=found,
        answer=(app.answer(thing, here), *wrong(app, thing, gone)),
        owner="index", modes=NOT_INDEXED, lost="index", depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def attachment_not_ingested(app: App) -> Planted:
    """The page refers to its attachment, which was not ingested; all the app can do is say so."""
    thing, asked, found = _unindexed(app)
    noun = app.world[asked]["noun"]
    where = f"For {noun} of {thing.name}, see the attached file."
    page = app.index(f"{where} {' '.join(app.draw.sample(app.world['filler'], 2))}")
    said = Say(f"The page refers to an attached file for {noun} of {thing.name}.")
    return plan(
        app, thing, asked, retrieved=(page, *found[:3]), response="evades",
        answer=(said, Say("I do not have that file.")), owner="index", modes=NOT_INDEXED,
        lost="index", depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


# The retriever did not return what it needed.


@kind
def code_means_nothing_to_vectors(app: App) -> Planted:
    """Asked by its number in the register, which the passage has; vectors do not tell numbers apart."""
    thing, asked = start(app)
    number = f"{app.draw.choice(('QX', 'VR', 'ZK'))}-{app.draw.randrange(4100, 9900)}"
    chunk = thing.chunk(asked)
    app.corpus[chunk] = f"{app.corpus[chunk]} In the register, {thing.name} is entry {number}."
    return plan(
        app, thing, asked, question=app.ask(thing, asked, 0).replace(thing.name, f"entry {number}"),
        retrieved=tuple(app.neighbors(asked, 4, thing)), answer=declined(app),
        response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((chunk, 22),), depth=50,
    )  # fmt: skip


@kind
def long_passage_ranks_low(app: App) -> Planted:
    """The sentence stands at the end of a long passage on this and that; short ones come. It guesses."""
    thing = app.thing(indexed=False)
    beside, asked = thing.order[:2]
    thing.first = app.index(app.passage(thing, (beside, asked), long=True))
    thing.second = app.index(app.passage(thing, thing.order[2:]))
    return plan(
        app, thing, asked, wording=0, retrieved=tuple(app.neighbors(asked, 4, thing)),
        answer=wrong(app, thing, asked), owner="retriever", modes=MISS, lost="rank",
        deeper=((thing.first, 13),), depth=50,
    )  # fmt: skip


@kind
def sum_misses_a_number(app: App) -> Planted:
    """A sum of two numbers; the passage of one is missing, and the app makes the sum up."""
    case, right = summed(app)
    one, two = app.things[-2:]
    made_up = str(int(right) + app.draw.choice((-9, -7, 8, 13, 19)))
    said = Say(case.answer[0].text.replace(right, made_up), ((case.needs[0][0], made_up),))
    return replace(
        case, retrieved=(one.chunk("count"), *app.neighbors("count", 3, one, two)), answer=(said,),
        owner="retriever", modes=MISS, lost="rank", deeper=((two.chunk("count"), 12),), depth=50,
    )  # fmt: skip


@kind
def chapters_of_the_same_document_first(app: App) -> Planted:
    """Four other parts of the document on the thing take all places. The app declines."""
    thing, asked = start(app)
    parts = [one.format(e=thing.name) for one in app.world["intro"]]
    parts.append(f"This chapter tells the history of {thing.name}.")
    texts = [
        f"{one[0].upper()}{one[1:]} {' '.join(app.draw.sample(app.world['filler'], 3))}"
        for one in parts
    ]
    return plan(
        app, thing, asked, wording=0, retrieved=tuple(app.shuffled([app.index(t) for t in texts])),
        answer=declined(app), response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((thing.chunk(asked), 6),), depth=50,
    )  # fmt: skip


@kind
def score_threshold_returns_nothing(app: App) -> Planted:
    """The search asks for a score that no passage reaches, and returns none. The app declines."""
    thing, asked = start(app)
    return plan(
        app, thing, asked, wording=0, retrieved=(), answer=declined(app), response="declines",
        owner="retriever", modes=MISS, lost="filter", deeper=(), depth=50,
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def rewriting_asks_for_something_else(app: App) -> Planted:
    """The rewritten query keeps the name and asks for another point than the user. The app declines."""
    thing = app.thing()
    asked, instead = thing.order[0], thing.order[2]
    found = (thing.second, *app.neighbors(instead, 3, thing))
    kept = [one for one in found if one != thing.first]
    return plan(
        app, thing, asked, wording=0, retrieved=tuple(kept), answer=declined(app),
        response="declines", owner="prompt", modes=LOST, lost="search",
        calls=({"query": app.ask(thing, instead, 0), "passages": kept},),
    )  # fmt: skip


@kind
def second_query_lacks_the_name(app: App) -> Planted:
    """The first search names the person; the agent's second query has no name. The app declines."""
    case, thing, _, _ = two_hops(app)
    first = (thing.chunk("person"), *app.neighbors("person", 1, thing))
    strangers = [portrait(app, app.other("person"), app.draw.choice(TOWNS)) for _ in range(2)]
    calls = (
        {"query": case.question, "passages": list(first)},
        {"query": f"In which town did {app.world['person']['noun']} grow up?",
         "passages": strangers},
    )  # fmt: skip
    return replace(
        case, retrieved=(*first, *strangers), calls=calls, answer=declined(app),
        response="declines", owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def sanitizer_strips_numbers(app: App) -> Planted:
    """A sanitizer takes all numbers out of what was found; the app guesses."""
    thing = app.thing()
    found = with_it(app, thing, "count")
    return plan(
        app, thing, "count", retrieved=found,
        shown=tuple(_without_digits(app.corpus[one]) for one in found),
        answer=wrong(app, thing, "count"), owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def placeholder_not_filled(app: App) -> Planted:
    """The prompt has the template's placeholder in place of what was found. The app declines."""
    thing, asked = start(app)
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked), shown=("{context}",),
        answer=declined(app), response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def repeats_the_conversation_without_a_search(app: App) -> Planted:
    """Asked once more, the agent repeats its wrong reply from the conversation, and does not search."""
    thing, asked = start(app)
    answer = wrong(app, thing, asked)
    history = (
        {"role": "user", "content": app.ask(thing, asked, 1)},
        {"role": "assistant", "content": answer[0].text},
    )
    return plan(
        app, thing, asked, question=f"To be sure, once more: {app.ask(thing, asked, 0)}",
        history=history, retrieved=(), calls=(), shown=(), answer=answer, owner="prompt",
        modes=(*LOST, "dropped_from_prompt"), lost="search",
    )  # fmt: skip
