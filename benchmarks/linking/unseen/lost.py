"""What the model needed was lost before it: at the retriever, in the index, on the way to the prompt.

The needed sentence is taken away at one stage and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .cases import (
    DROPPED,
    LOST,
    MISS,
    NOT_INDEXED,
    OLD_COPY,
    altered,
    around,
    declined,
    invention,
    kind,
    plan,
    portrait,
    start,
    talk,
    two_hops,
    unindexed,
    with_it,
    wrong,
)
from .planted import TOWNS, App, Planted, Say, Thing

# The retriever did not return what it needed.


@kind
def synonyms_missed(app: App) -> Planted:
    """The question uses other words than the document; the app guesses."""
    thing, asked = start(app)
    found = around(app, thing, asked)
    answer = wrong(app, thing, asked)
    return plan(
        app, thing, asked, wording=1, retrieved=found, answer=answer,
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.chunk(asked), 23),), depth=50,
    )  # fmt: skip


@kind
def synonyms_missed_declines(app: App) -> Planted:
    """The same, and the app declines."""
    case = synonyms_missed(app)
    return replace(case, answer=declined(app), response="declines")


@kind
def just_below_cutoff(app: App) -> Planted:
    """Rank 6 of a search that returns four."""
    thing, asked = start(app)
    found = around(app, thing, asked)
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=declined(app), response="declines",
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.chunk(asked), 6),), depth=50,
    )  # fmt: skip


@kind
def filter_hides(app: App) -> Planted:
    """A metadata filter hides the one document that has it, at any depth."""
    thing, asked = start(app)
    found = tuple(app.neighbors(asked, 4, thing))
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=wrong(app, thing, asked),
        owner="retriever", modes=MISS, lost="filter", deeper=(), depth=50,
    )  # fmt: skip


def _open(app: App, attribute: str) -> str:
    """A sentence that leaves one point open."""
    wording = app.draw.choice(
        (
            "I could not find {noun} in the documents.",
            "The context does not mention {noun}.",
            "There is no information about {noun}.",
        )
    )
    return wording.format(noun=app.world[attribute]["noun"])


@kind
def split_half_found(app: App) -> Planted:
    """Two facts in two passages; one passage comes, and the answer leaves the other fact open."""
    thing = app.thing()
    here, there = thing.order[0], thing.order[2]
    found = (thing.first, *app.neighbors(here, 3, thing))
    answer = (app.answer(thing, here), Say(_open(app, there)))
    return plan(
        app, thing, (here, there), retrieved=found, answer=answer, response="partly",
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.second, 11),), depth=50,
    )  # fmt: skip


@kind
def split_half_invented(app: App) -> Planted:
    """The same, and the answer invents the other fact."""
    case = split_half_found(app)
    thing = app.things[-1]
    answer = (case.answer[0], *wrong(app, thing, thing.order[2]))
    return replace(case, answer=answer, response="answers")


@kind
def three_places_one_found(app: App) -> Planted:
    """Three facts in three passages; one comes, the answer states one and omits two."""
    thing = app.thing(indexed=False)
    asked = thing.order[:3]
    ids = [app.index(app.passage(thing, [one])) for one in asked]
    found = (ids[0], *app.neighbors(asked[0], 3, thing))
    return plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked[0]),),
        relevant=tuple(ids), response="partly", owner="retriever", modes=MISS, lost="rank",
        deeper=((ids[1], 9), (ids[2], 31)), depth=50,
    )  # fmt: skip


@kind
def copies_crowd_out(app: App) -> Planted:
    """Four copies of one passage take all places."""
    thing, asked = start(app)
    text = app.corpus[app.neighbors(asked, 1, thing)[0]]
    found = tuple(app.index(f"{text} Version {n} of this page.") for n in range(1, 5))
    return plan(
        app, thing, asked, retrieved=found, answer=wrong(app, thing, asked),
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.chunk(asked), 5),), depth=50,
    )  # fmt: skip


@kind
def namesake_found(app: App) -> Planted:
    """Passages of a thing with nearly the same name come, and the answer takes its value."""
    thing, asked = start(app)
    first = thing.name.replace("the ", "").split()[0]
    twin = app.thing(**{asked: app.other(asked, thing.values[asked])})
    renamed = twin.name.replace("the ", "").split()[0]
    near = first[:-1] + ("u" if first[-1] != "u" else "o")
    for one in (twin.first, twin.second):
        app.corpus[one] = app.corpus[one].replace(renamed, near)
    for sentence, stated in list(app.said.items()):
        moved = [(f, v) for f, v in stated if f[0] == twin.name]
        for (_, attribute), value in moved:
            fact = (twin.name.replace(renamed, near), attribute)
            app.register(sentence.replace(renamed, near), (fact, value))
    twin.name = twin.name.replace(renamed, near)
    found = (twin.chunk(asked), *app.neighbors(asked, 3, thing, twin))
    return plan(
        app, thing, asked, retrieved=found, owner="retriever", modes=MISS, lost="rank",
        answer=(app.answer(thing, asked, twin.values[asked]),),
        deeper=((thing.chunk(asked), 8),), depth=50,
    )  # fmt: skip


@kind
def one_of_two_compared(app: App) -> Planted:
    """A comparison of two things; the passage of one is missing, its value is invented."""
    one, asked = start(app)
    two = app.thing()
    noun = app.world[asked]["noun"]
    found = (one.chunk(asked), *app.neighbors(asked, 3, one, two))
    return Planted(
        question=f"What is {noun} of {one.name}, and what is it for {two.name}?",
        needs=(((one.name, asked), one.values[asked]), ((two.name, asked), two.values[asked])),
        answer=(app.answer(one, asked), *wrong(app, two, asked)),
        references=(app.answer(one, asked), app.answer(two, asked)),
        relevant=(one.chunk(asked), two.chunk(asked)), retrieved=found,
        owner="retriever", modes=MISS, lost="rank", deeper=((two.chunk(asked), 14),), depth=50,
    )  # fmt: skip


@kind
def off_topic_found(app: App) -> Planted:
    """Nothing on the thing comes, and the answer evades."""
    thing, asked = start(app)
    found = tuple(app.neighbors(asked, 4, thing))
    answer = (Say("That depends on many circumstances, so ask the people on the spot.", None),)
    return plan(
        app, thing, asked, wording=1, retrieved=found, answer=answer, response="evades",
        owner="retriever", modes=MISS, lost="rank", deeper=((thing.chunk(asked), 40),), depth=50,
    )  # fmt: skip


@kind
def background_labelled(app: App) -> Planted:
    """The label names a passage that lacks the answer and was found; the one that has it was not."""
    thing, asked = start(app)
    own = thing.second if thing.chunk(asked) == thing.first else thing.first
    return plan(
        app, thing, asked, retrieved=(own, *app.neighbors(asked, 3, thing)), relevant=(own,),
        answer=wrong(app, thing, asked), owner="retriever", modes=MISS, lost="rank",
    )  # fmt: skip


@kind
def missed_and_adds(app: App) -> Planted:
    """Nothing needed was found; two inventions, neither about the document's wording."""
    thing, asked = start(app)
    answer = (*wrong(app, thing, asked), invention(app))
    return plan(
        app, thing, asked, retrieved=around(app, thing, asked), answer=answer,
        owner="retriever", modes=MISS, lost="rank",
    )  # fmt: skip


# The index lacked it, or had it wrong.


@kind
def never_indexed_declines(app: App) -> Planted:
    """The document was never indexed."""
    thing, asked, found = unindexed(app)
    return plan(
        app, thing, asked, retrieved=found, answer=declined(app), response="declines",
        owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def never_indexed_invents(app: App) -> Planted:
    """The document was never indexed, and the app invents."""
    thing, asked, found = unindexed(app)
    return plan(
        app, thing, asked, retrieved=found, answer=wrong(app, thing, asked),
        owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def loader_lost_a_sentence(app: App) -> Planted:
    """The loader lost the sentence (a table); labels are the sentence itself."""
    thing = app.thing()
    asked = thing.order[1]
    sentence = app.state(thing, asked, wording=thing.wording)
    app.corpus[thing.first] = app.corpus[thing.first].replace(f"{sentence} ", "")
    found = (thing.first, *app.neighbors(asked, 3, thing))
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, answer=declined(app), response="declines",
        evidence=(sentence,), owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def stale_index(app: App) -> Planted:
    """The index has an older text under the same id than the documents."""
    thing, asked = start(app)
    old = app.other(asked, thing.values[asked])
    name = thing.chunk(asked)
    texts = {name: altered(app, app.corpus[name], thing, asked, old)}
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked), texts=texts,
        answer=(app.answer(thing, asked, old),), owner="index", modes=OLD_COPY, lost="index",
    )  # fmt: skip


@kind
def former_version_beside(app: App) -> Planted:
    """A former version of the passage is indexed beside the present one; the answer follows it."""
    thing, asked = start(app)
    old = app.other(asked, thing.values[asked])
    name = thing.chunk(asked)
    former = app.index(altered(app, app.corpus[name], thing, asked, old))
    found = (former, name, *around(app, thing, asked, 2))
    return plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked, old),),
        owner="index", modes=OLD_COPY, without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def two_documents_disagree(app: App) -> Planted:
    """Another document, in other words, still has the old value; both reach the prompt."""
    thing, asked = start(app)
    old = app.other(asked, thing.values[asked])
    lead, tail = app.draw.sample(app.world["filler"], 2)
    other = app.index(f"{lead} {app.state(thing, asked, old, 0)} {tail}")
    found = (other, thing.chunk(asked), *around(app, thing, asked, 2))
    return plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked, old),),
        owner="index", modes=OLD_COPY, without_references=("unknowable", ()),
    )  # fmt: skip


# Lost between search and prompt, or before the search.


def _cut(app: App) -> tuple[Thing, str, tuple[str, ...], tuple[str, ...]]:
    """A long passage of which the template shows the head, without what is needed."""
    thing = app.thing(indexed=False)
    asked, beside = thing.order[1], thing.order[0]
    text = app.passage(thing, (beside, asked), long=True)
    thing.first, thing.second = app.index(text), app.index(app.passage(thing, thing.order[2:]))
    found = with_it(app, thing, asked, 0)
    at = text.index(app.state(thing, asked, wording=thing.wording)) + 9
    return thing, asked, found, tuple(app.corpus[one][:at] for one in found)


@kind
def template_cuts_declines(app: App) -> Planted:
    """The template shows the first characters of each passage; the answer stood behind them."""
    thing, asked, found, shown = _cut(app)
    return plan(
        app, thing, asked, retrieved=found, shown=shown, answer=declined(app),
        response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def template_cuts_invents(app: App) -> Planted:
    """The same, and the app guesses."""
    thing, asked, found, shown = _cut(app)
    return plan(
        app, thing, asked, retrieved=found, shown=shown, answer=wrong(app, thing, asked),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


def _without(app: App, thing: Thing, asked: str, found: Sequence[str]) -> tuple[str, ...]:
    return tuple(app.corpus[one] for one in found if one != thing.chunk(asked))


@kind
def reranker_drops(app: App) -> Planted:
    """Six are retrieved, the reranker keeps three, the needed one is not among them."""
    thing, asked = start(app)
    found = (thing.chunk(asked), *around(app, thing, asked, 5))
    shown = _without(app, thing, asked, found)[:3]
    return plan(
        app, thing, asked, retrieved=found, shown=shown, answer=wrong(app, thing, asked),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def token_limit_drops_last(app: App) -> Planted:
    """The last passage did not fit, and it was the needed one."""
    thing, asked = start(app)
    found = (*around(app, thing, asked, 3), thing.chunk(asked))
    return plan(
        app, thing, asked, retrieved=found, shown=_without(app, thing, asked, found),
        answer=declined(app), response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def grader_drops_all(app: App) -> Planted:
    """A grader finds nothing relevant, so the model gets an empty context."""
    thing, asked = start(app)
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked), shown=(), answer=declined(app),
        response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def grader_stops_before_model(app: App) -> Planted:
    """The same, and the app gives its fixed reply without a model call."""
    thing, asked = start(app)
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked), shown=(), model_calls=0,
        answer=(Say("No relevant documents were found."),), response="declines",
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def compressor_alters_value(app: App) -> Planted:
    """A compressor rewrites the needed passage with another value; the answer follows it."""
    thing, asked = start(app)
    found = with_it(app, thing, asked)
    new = app.other(asked, thing.values[asked])
    shown = []
    for one in found:
        if one == thing.chunk(asked):
            lead = app.corpus[one].split(". ")[0]
            shown.append(f"{lead}. {app.state(thing, asked, new, thing.wording)}")
        else:
            shown.append(app.corpus[one])
    return plan(
        app, thing, asked, retrieved=found, shown=tuple(shown),
        answer=(app.answer(thing, asked, new),), owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def compressor_leaves_out(app: App) -> Planted:
    """A compressor keeps some sentences of each passage, and not the needed one."""
    thing, asked = start(app)
    found = with_it(app, thing, asked)
    needed = app.state(thing, asked, wording=thing.wording)
    shown = []
    for one in found:
        text = app.corpus[one].replace(needed, "").replace("  ", " ")
        shown.append(". ".join(text.split(". ")[:3]).rstrip(".") + ".")
    return plan(
        app, thing, asked, retrieved=found, shown=tuple(shown), answer=wrong(app, thing, asked),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def rewriting_loses_the_name(app: App) -> Planted:
    """The query that the app wrote lacks the name that the question has."""
    thing, asked = start(app)
    found = tuple(app.neighbors(asked, 4, thing))
    query = f"{app.world[asked]['noun'].removeprefix('the ')} {app.world['name']}"
    return plan(
        app, thing, asked, wording=0, retrieved=found, answer=wrong(app, thing, asked),
        calls=({"query": query, "passages": list(found)},), owner="prompt", modes=LOST,
        lost="search",
    )  # fmt: skip


@kind
def history_lost(app: App) -> Planted:
    """A follow-up is searched for as it stands, without the name from the turn before."""
    thing, asked = start(app)
    found = tuple(app.neighbors(asked, 4, thing))
    question = f"And what about {app.world[asked]['noun']}?"
    case = plan(
        app, thing, asked, retrieved=found, answer=wrong(app, thing, asked),
        calls=({"query": question, "passages": list(found)},), history=talk(thing),
        owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip
    return replace(case, question=question)


@kind
def no_search(app: App) -> Planted:
    """An agent answers this one without a search."""
    thing, asked = start(app)
    return plan(
        app, thing, asked, wording=0, retrieved=(), calls=(), shown=(),
        answer=wrong(app, thing, asked), owner="prompt", modes=(*LOST, "dropped_from_prompt"),
        lost="search",
    )  # fmt: skip


@kind
def wrong_first_hop(app: App) -> Planted:
    """The first search names two persons; the agent searches on for the wrong one."""
    case, thing, _, town = two_hops(app)
    other = app.thing()
    place = app.draw.choice([one for one in TOWNS if one != town])
    person = other.values["person"]
    beside = portrait(app, person, place)
    first = (thing.chunk("person"), other.chunk("person"))
    then = (beside, *app.neighbors("person", 1, thing, other))
    calls = (
        {"query": case.question, "passages": list(first)},
        {"query": f"Where did {person} grow up?", "passages": list(then)},
    )
    said = Say(f"{person} grew up in {place}.", (((person, "town"), place),))
    return replace(
        case, retrieved=(*first, *then), calls=calls, answer=(said,), owner="prompt",
        modes=LOST, lost="search",
    )  # fmt: skip


@kind
def early_results_dropped(app: App) -> Planted:
    """An agent searches twice; only the last results are in its prompt."""
    thing, asked = start(app)
    first = (thing.chunk(asked), *app.neighbors(asked, 1, thing))
    then = tuple(one for one in app.neighbors(asked, 4, thing) if one not in first)[:3]
    calls = (
        {"query": app.ask(thing, asked, 0), "passages": list(first)},
        {"query": f"{app.world['name']} overview", "passages": list(then)},
    )
    return plan(
        app, thing, asked, retrieved=(*first, *then), calls=calls,
        shown=tuple(app.corpus[one] for one in then), answer=wrong(app, thing, asked),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip
