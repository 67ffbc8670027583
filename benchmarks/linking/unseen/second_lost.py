"""Second set: what the model needed was lost before it."""

from __future__ import annotations

from dataclasses import replace

from .cases import (
    DROPPED,
    LOST,
    MISS,
    NOT_INDEXED,
    OLD_COPY,
    around,
    declined,
    plan,
    start,
    with_it,
    wrong,
)
from .cases import second_kind as kind
from .german import DECLINES, german_question, proper_name
from .planted import App, Planted, Say

GARBLE = str.maketrans("aeilnorst", "@c1|h0m5+")

# The retriever did not return what it needed.


@kind
def asked_in_another_language(app: App) -> Planted:
    """A German question, English documents: words and vectors do not meet. The app declines."""
    thing = app.thing()
    return plan(
        app, thing, "count", question=german_question(app, thing),
        retrieved=tuple(app.neighbors("count", 4, thing)), answer=(Say(DECLINES),),
        response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((thing.chunk("count"), 19),), depth=50,
    )  # fmt: skip


@kind
def asked_by_acronym(app: App) -> Planted:
    """The question has the acronym, which stands in the passage beside the full name."""
    thing, asked = start(app)
    short, name = proper_name(thing), thing.name[1:]  # the passage may begin with it
    acronym = "".join(one for one in short.upper() if one not in "AEIOU") + "X"
    chunk = thing.chunk(asked)
    app.corpus[chunk] = app.corpus[chunk].replace(name, f"{name} ({acronym})", 1)
    question = app.ask(thing, asked, 0).replace(thing.name, acronym)
    found = tuple(app.neighbors(asked, 4, thing))
    answer = tuple(
        replace(one, text=one.text.replace(thing.name, acronym)) for one in wrong(app, thing, asked)
    )
    return plan(
        app, thing, asked, question=question, retrieved=found, answer=answer,
        owner="retriever", modes=MISS, lost="rank", deeper=((chunk, 16),), depth=50,
    )  # fmt: skip


@kind
def searched_as_another_tenant(app: App) -> Planted:
    """The search is limited to the passages of another customer's space. The app declines."""
    thing, asked = start(app)
    for one in (thing.first, thing.second):
        app.corpus[one] = f"Space: Aldenau. {app.corpus[one]}"
    beside = [app.corpus[one] for one in app.neighbors(asked, 4, thing)]
    found = tuple(app.index(f"Space: Korvik. {text}") for text in beside)
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=declined(app), response="declines",
        owner="retriever", modes=MISS, lost="filter", deeper=(), depth=50,
    )  # fmt: skip


@kind
def passage_of_another_year(app: App) -> Planted:
    """Asked is the value of 2021; the passage of today comes, the archive's does not."""
    thing = app.thing()
    then, noun = app.other("count", thing.values["count"]), app.world["count"]["noun"]
    fact = (thing.name, "count in 2021")
    sentence = f"In 2021, {noun} of {thing.name} was {{v}}."
    archived = sentence.format(v=then)
    app.register(archived, (fact, then))
    lead, tail = app.draw.sample(app.world["filler"], 2)
    archive = app.index(f"From the archive. {lead} {archived} {tail}")
    now = thing.values["count"]
    return plan(
        app, thing, "count", question=f"What was {noun} of {thing.name} in 2021?",
        needs=((fact, then),), references=(Say(archived, ((fact, then),)),), relevant=(archive,),
        retrieved=(thing.chunk("count"), *app.neighbors("count", 3, thing)),
        answer=(Say(sentence.format(v=now), ((fact, now),)),),
        owner="retriever", modes=MISS, lost="rank", deeper=((archive, 12),), depth=50,
    )  # fmt: skip


@kind
def reranker_prefers_questions(app: App) -> Planted:
    """Four passages repeat the question and do not answer it; the reranker puts them first."""
    thing, asked = start(app)
    leads = ("Often asked", "A question from the mailbox", "Title of a forum thread", "Quiz")
    found = tuple(
        app.index(f"{lead}: {app.ask(thing, asked)} {app.draw.choice(app.world['filler'])}")
        for lead in leads
    )
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=wrong(app, thing, asked),
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.chunk(asked), 7),), depth=50,
    )  # fmt: skip


@kind
def diversity_drops_near_copy(app: App) -> Planted:
    """Another page is nearly the same and lacks the sentence; for diversity only it comes."""
    thing, asked = start(app)
    chunk = thing.chunk(asked)
    sentence = app.state(thing, asked, wording=thing.wording)
    near = app.index(app.corpus[chunk].replace(f"{sentence} ", ""))
    return plan(
        app, thing, asked, retrieved=(near, *app.neighbors(asked, 3, thing)),
        answer=declined(app), response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((chunk, 21),), depth=50,
    )  # fmt: skip


@kind
def right_by_general_knowledge(app: App) -> Planted:
    """The passage was missed; the model knows the value anyway, and nothing in the prompt says so."""
    thing, asked = start(app)
    return plan(
        app, thing, asked, retrieved=around(app, thing, asked), answer=(app.answer(thing, asked),),
        owner="retriever", modes=(*MISS, "answered_from_memory"), lost="rank",
        deeper=((thing.chunk(asked), 9),), depth=50,
    )  # fmt: skip


# The index lacked it, or had it wrong.


@kind
def table_row_without_header(app: App) -> Planted:
    """A table was split: names in one chunk, values in another order in the next. The app declines."""
    asked = app.draw.choice(("count", "form"))
    rows = [app.thing(indexed=False) for _ in range(3)]
    for one in rows:
        app.things.remove(one)
    thing = rows[1]
    cells = ("person", "count", "form")
    names = app.index(f"Register of {app.world['name']}. {', '.join(one.name for one in rows)}.")
    lines = [" | ".join(one.values[cell] for cell in cells) for one in (rows[0], rows[2], rows[1])]
    values = app.index("\n".join(lines))
    row = " | ".join((thing.name, *(thing.values[cell] for cell in cells)))
    return plan(
        app, thing, asked, retrieved=(names, *app.neighbors(asked, 2), values), relevant=(),
        evidence=(row,), answer=declined(app), response="declines",
        owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def garbled_by_ocr(app: App) -> Planted:
    """The scan of the passage is garbled where it matters; labels are the sentence of the page."""
    thing, asked = start(app)
    chunk = thing.chunk(asked)
    # With the name in it: a sentence without may stand in another passage, too.
    sentence = app.state(thing, asked, wording=0)
    value = thing.values[asked]
    garbled = sentence.replace(value, "~" * len(value)).translate(GARBLE)
    indexed = app.state(thing, asked, wording=thing.wording)
    found = with_it(app, thing, asked)
    app.corpus[chunk] = app.corpus[chunk].replace(indexed, garbled)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(sentence,), answer=declined(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def chunk_id_given_twice(app: App) -> Planted:
    """A chunk of another page got the same id, and overwrote it. The app declines."""
    thing = app.thing()
    asked = thing.order[0]
    other = app.thing(indexed=False)
    app.corpus[thing.first] = app.passage(other, other.order[:2])
    other.first, other.second = thing.first, app.index(app.passage(other, other.order[2:]))
    found = (thing.second, *app.neighbors(asked, 3, thing, other))
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, answer=declined(app), response="declines",
        owner="index", modes=OLD_COPY, lost="index", depth=50,
        without_references=("unknowable", ()),
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def middle_trimmed(app: App) -> Planted:
    """To fit, the middle of the context is cut: half of the second passage, and all of the third."""
    thing, asked = start(app)
    found = with_it(app, thing, asked, 2)
    first, second, _, last = (app.corpus[one] for one in found)
    return plan(
        app, thing, asked, retrieved=found, shown=(first, f"{second[:60]} [...]", last),
        answer=wrong(app, thing, asked), owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def tool_called_with_another_name(app: App) -> Planted:
    """The agent calls its search with the name of another thing, and reports that thing's value."""
    thing, asked = start(app)
    other = app.thing(**{asked: app.other(asked, thing.values[asked])})
    found = (other.first, other.second, *app.neighbors(asked, 2, thing, other))
    return plan(
        app, thing, asked, wording=0, retrieved=found,
        calls=({"query": app.ask(other, asked, 0), "passages": list(found)},),
        answer=(app.answer(thing, asked, other.values[asked]),),
        owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def searches_for_the_earlier_topic(app: App) -> Planted:
    """The user has gone on to another thing; the rewritten query, and the answer, have not."""
    thing, asked = start(app)
    earlier = app.thing()
    found = (earlier.chunk(asked), *app.neighbors(asked, 3, thing, earlier))
    said = app.answer(earlier, asked)
    history = (
        {"role": "user", "content": app.ask(earlier, asked, 1)},
        {"role": "assistant", "content": said.text},
    )
    return plan(
        app, thing, asked, wording=0, retrieved=found, history=history, answer=(said,),
        calls=({"query": app.ask(earlier, asked, 0), "passages": list(found)},),
        response="evades", owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def redaction_masks_the_value(app: App) -> Planted:
    """A filter for personal data masks all names of people in the prompt. The app declines."""
    thing = app.thing()
    found = with_it(app, thing, "person")
    people = [one.values["person"] for one in app.things]
    shown = []
    for one in found:
        text = app.corpus[one]
        for person in people:
            text = text.replace(person, "[NAME]")
        shown.append(text)
    return plan(
        app, thing, "person", retrieved=found, shown=tuple(shown), answer=declined(app),
        response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip
