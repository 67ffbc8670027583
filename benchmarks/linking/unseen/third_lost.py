"""Third set: what the model needed was lost before it."""

from __future__ import annotations

from dataclasses import replace

from .cases import (
    DROPPED,
    LOST,
    MISS,
    NOT_INDEXED,
    OLD_COPY,
    declined,
    plan,
    start,
    two_hops,
    unindexed,
    with_it,
    wrong,
)
from .cases import third_kind as kind
from .german import proper_name
from .planted import App, Planted

# Only labels tell these from a question that no document answers.
UNKNOWABLE = ("unknowable", ())

# The index lacked it, or had it wrong.


@kind
def chunk_ends_in_mid_sentence(app: App) -> Planted:
    """The splitter cut the sentence before its value; the labelled sentence is in no chunk whole."""
    thing, asked = start(app)
    chunk = thing.chunk(asked)
    # With the name in it: a sentence without may stand in another passage, too.
    sentence = app.state(thing, asked, wording=0)
    at = sentence.index(thing.values[asked])
    lead, tail = app.draw.sample(app.world["filler"], 2)
    app.corpus[chunk] = f"{lead} {sentence[:at].strip()}"
    app.index(f"{sentence[at:]} {tail}")
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(sentence,), answer=declined(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def parser_mixes_up_columns(app: App) -> Planted:
    """The parser gave the thing the value of the next column; the app repeats it."""
    thing, asked = start(app)
    chunk = thing.chunk(asked)
    sentence = app.state(thing, asked, wording=0)
    value = app.other(asked, thing.values[asked])
    indexed = app.state(thing, asked, wording=thing.wording)
    app.corpus[chunk] = app.corpus[chunk].replace(indexed, app.state(thing, asked, value, 0))
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(sentence,),
        answer=(app.answer(thing, asked, value),), owner="index", modes=OLD_COPY, lost="index",
        depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def withdrawn_page_still_indexed(app: App) -> Planted:
    """The page that replaced it, which is the labelled one, was never added; the app repeats the old."""
    thing, asked, found = unindexed(app)
    old = app.other(asked, thing.values[asked])
    lead, tail = app.draw.sample(app.world["filler"], 2)
    withdrawn = app.index(f"Edition of 2022. {lead} {app.state(thing, asked, old, 0)} {tail}")
    return plan(
        app, thing, asked, retrieved=(withdrawn, *found[:3]),
        answer=(app.answer(thing, asked, old),), owner="index", modes=OLD_COPY, lost="index",
        depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def scanned_page_without_text(app: App) -> Planted:
    """The page is an image: its chunk has the header and the page number only. The app declines."""
    thing, asked = start(app)
    sentence = app.state(thing, asked, wording=0)
    page = app.draw.randrange(2, 90)
    app.corpus[thing.chunk(asked)] = f"{thing.name}, information sheet. Page {page} of 94."
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(sentence,), answer=declined(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def filed_under_another_name(app: App) -> Planted:
    """The loader took the title of the next page: the chunk has another thing's name."""
    thing, asked = start(app)
    chunk = thing.chunk(asked)
    sentence = app.state(thing, asked, wording=0)
    title = app.world["thing"].format(n=next(app.names))
    short, instead = proper_name(thing), title.removeprefix("the ").split()[0]
    app.corpus[chunk] = app.corpus[chunk].replace(short, instead)
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(sentence,), answer=declined(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=UNKNOWABLE,
    )  # fmt: skip


# The retriever did not return what it needed.


@kind
def front_matter_ranks_first(app: App) -> Planted:
    """Contents, an index of names, a list of figures and a foreword name the thing; the app declines."""
    thing, asked = start(app)
    noun = app.world[asked]["noun"].removeprefix("the ")
    page = app.draw.randrange(20, 60)
    texts = (
        f"Contents: {thing.name}, p. {page}; {noun}, p. {page + 1}; further reading, p. 98.",
        f"Index of names: {thing.name}, {page}, {page + 4}, {page + 9}.",
        f"List of figures: {thing.name}, plate {page - 15}; {noun}, plate {page - 14}.",
        f"Foreword: this volume on {app.world['name']} has a chapter on {thing.name}.",
    )
    return plan(
        app, thing, asked, retrieved=tuple(app.shuffled([app.index(one) for one in texts])),
        answer=declined(app), response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((thing.chunk(asked), 8),), depth=50,
    )  # fmt: skip


@kind
def only_recent_pages_searched(app: App) -> Planted:
    """A filter for the last year hides the page, which is older and still true; the app guesses."""
    thing, asked = start(app)
    for one in (thing.first, thing.second):
        app.corpus[one] = f"Last changed in 2019. {app.corpus[one]}"
    beside = [app.corpus[one] for one in app.neighbors(asked, 4, thing)]
    found = tuple(app.index(f"Last changed in 2026. {text}") for text in beside)
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=wrong(app, thing, asked),
        owner="retriever", modes=MISS, lost="filter", deeper=(), depth=50,
    )  # fmt: skip


@kind
def cross_references_found(app: App) -> Planted:
    """Four short notes say where it is written, and not what; the app guesses."""
    thing, asked = start(app)
    noun, name = app.world[asked]["noun"], thing.name
    texts = (
        f"For {noun} of {name}, see the main entry.",
        f"{noun[0].upper()}{noun[1:]} of {name} is treated in another place.",
        f"See also: {noun} of {name}.",
        f"The entry on {noun} of {name} was moved.",
    )
    found = tuple(app.index(f"{one} {app.draw.choice(app.world['filler'])}") for one in texts)
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=wrong(app, thing, asked),
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.chunk(asked), 5),), depth=50,
    )  # fmt: skip


@kind
def second_hop_ranks_low(app: App) -> Planted:
    """The agent asks for the right person, whose portrait ranks 14th; the app declines."""
    case, thing, hop, _ = two_hops(app)
    person = thing.values["person"]
    first = (thing.chunk("person"), *app.neighbors("person", 1, thing))
    then = tuple(one for one in app.neighbors("person", 4, thing) if one not in first)[:2]
    calls = (
        {"query": case.question, "passages": list(first)},
        {"query": f"Where did {person} grow up?", "passages": list(then)},
    )
    return replace(
        case, retrieved=(*first, *then), calls=calls, answer=declined(app), response="declines",
        owner="retriever", modes=MISS, lost="rank", deeper=((hop, 14),), depth=50,
    )  # fmt: skip


@kind
def misspelled_question_finds_nothing(app: App) -> Planted:
    """A letter of the name is doubled, and the search does not bear it; the app declines."""
    thing, asked = start(app)
    name = proper_name(thing)
    typed = f"{name[:2]}{name[1]}{name[2:]}"
    return plan(
        app, thing, asked, question=app.ask(thing, asked, 0).replace(name, typed),
        retrieved=tuple(app.neighbors(asked, 4, thing)), answer=declined(app),
        response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((thing.chunk(asked), 17),), depth=50,
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def prompt_of_another_request(app: App) -> Planted:
    """Two requests at a time: the search was right, the prompt has the passages of the other one."""
    thing, asked = start(app)
    other = app.thing()
    theirs = (other.first, other.second, *app.neighbors(asked, 2, thing, other))
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked),
        shown=tuple(app.corpus[one] for one in theirs), answer=declined(app), response="declines",
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def cached_answer_of_a_similar_question(app: App) -> Planted:
    """A cache takes the question for one on another thing: no search, no model, that one's answer."""
    thing, asked = start(app)
    other = app.thing(**{asked: app.other(asked, thing.values[asked])})
    return plan(
        app, thing, asked, wording=0, retrieved=(), calls=(), shown=(), model_calls=0,
        answer=(app.answer(other, asked),), response="evades", owner="prompt",
        modes=(*LOST, "dropped_from_prompt"), lost="search",
    )  # fmt: skip


@kind
def summary_for_the_prompt_is_vague(app: App) -> Planted:
    """A cheap model sums up what was found in three sentences, none with a value; the app declines."""
    thing, asked = start(app)
    noun = app.world[asked]["noun"]
    summary = (
        f"The documents found are about {app.world['name']}. One of them describes {thing.name} "
        f"and mentions {noun}. {app.draw.choice(app.world['filler'])}"
    )
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked), shown=(summary,),
        answer=declined(app), response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def spelling_of_the_name_corrected(app: App) -> Planted:
    """Before the search, a spelling correction makes a common word of the name; the app declines."""
    thing, asked = start(app)
    word = app.draw.choice(("Brother", "Garden", "Hollow", "Marble", "Silver", "Quiet"))
    found = tuple(app.neighbors(asked, 4, thing))
    query = app.ask(thing, asked, 0).replace(proper_name(thing), word)
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=declined(app), response="declines",
        calls=({"query": query, "passages": list(found)},), owner="prompt", modes=LOST,
        lost="search",
    )  # fmt: skip


@kind
def second_part_never_searched(app: App) -> Planted:
    """Two facts are asked; the planner's only query is about the first. The answer invents the other."""
    thing = app.thing()
    here, there = thing.order[0], thing.order[2]
    found = (thing.first, *app.neighbors(here, 3, thing))
    query = f"{app.world[here]['noun']} of {thing.name}"
    return plan(
        app, thing, (here, there), retrieved=found,
        calls=({"query": query, "passages": list(found)},),
        answer=(app.answer(thing, here), *wrong(app, thing, there)),
        owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip
