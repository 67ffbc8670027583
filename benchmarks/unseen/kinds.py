"""The kinds: how each app failed, or what was odd and did no harm. One function makes one case.

Whose failure it is follows from how the case is made: the needed sentence is taken away at one
stage and nowhere else, or it stands in the prompt and the answer is spoiled, or nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .planted import ATTRIBUTES, TOWNS, App, Planted, Say, Thing

Make = Callable[[App], Planted]
KINDS: dict[str, Make] = {}
MISS = ("retrieval_miss",)
DROPPED = ("dropped_from_prompt",)
LOST = ("lost_context", "not_searched")
NOT_INDEXED = ("not_indexed",)
OLD_COPY = ("conflicting_sources", "not_indexed")
PASSED = ("passed", "missing_label", "answered_from_memory")
FALSE_CLAIM = ("contradicts_context", "fabricated", "ignored_context", "distracted")
DECLINES = (
    "I could not find that in the documents.",
    "Sorry, the documents do not say.",
    "There is no information on this in the sources.",
    "I don't know; the context does not mention it.",
    "The provided passages do not contain the answer.",
)
INVENTIONS = (
    "This was decided by the council in 1987.",
    "Since last year this is the case on weekends only.",
    "It won a medal for that in 1974.",
    "Local newspapers call it the best of its kind.",
    "An exception is made for visitors from abroad.",
)


def kind(make: Make) -> Make:
    """List a kind under its function's name."""
    KINDS[make.__name__] = make
    return make


def declined(app: App) -> tuple[Say, ...]:
    return (Say(app.draw.choice(DECLINES)),)


def invention(app: App) -> Say:
    return Say(app.draw.choice(INVENTIONS), None)


def wrong(app: App, thing: Thing, attribute: str) -> tuple[Say, ...]:
    """An answer with a value that no document gives."""
    return (app.answer(thing, attribute, app.other(attribute, thing.values[attribute])),)


def start(app: App, **values: str) -> tuple[Thing, str]:
    """A new thing, and the attribute that is asked for."""
    return app.thing(**values), app.draw.choice(ATTRIBUTES)


def plan(app: App, thing: Thing, asked: str | Sequence[str], **fields: Any) -> Planted:
    """A case about attributes of one thing, with what most kinds have in common."""
    attributes = (asked,) if isinstance(asked, str) else tuple(asked)
    if len(attributes) == 1:
        question = app.ask(thing, attributes[0], fields.pop("wording", -1))
    else:
        *most, last = [app.world[one]["noun"] for one in attributes]
        question = f"What are {', '.join(most)} and {last} of {thing.name}?"
    needs = tuple(((thing.name, one), thing.values[one]) for one in attributes)
    chunks = tuple(dict.fromkeys(thing.chunk(one) for one in attributes))
    common = {
        "question": question,
        "needs": needs,
        "references": tuple(app.reference(thing, one) for one in attributes),
        "relevant": chunks,
    }
    return Planted(**(common | fields))


def around(app: App, thing: Thing, attribute: str, count: int = 4) -> tuple[str, ...]:
    """Passages of others on the same attribute, and the thing's own other passage."""
    own = thing.second if thing.chunk(attribute) == thing.first else thing.first
    found = [own, *app.neighbors(attribute, count - 1, thing)]
    return tuple(app._shuffled(found))


def with_it(app: App, thing: Thing, attribute: str, at: int = -1) -> tuple[str, ...]:
    """The needed passage among three of the others."""
    found = list(around(app, thing, attribute, 3))
    found.insert(app.draw.randrange(4) if at < 0 else at, thing.chunk(attribute))
    return tuple(found)


def altered(app: App, text: str, thing: Thing, attribute: str, value: str) -> str:
    """The passage with another value in its sentence."""
    return text.replace(
        app.state(thing, attribute, wording=thing.wording),
        app.state(thing, attribute, value, thing.wording),
    )


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


@kind
def split_half_found(app: App) -> Planted:
    """Two facts in two passages; one passage comes, and the answer leaves the other fact open."""
    thing = app.thing()
    here, there = thing.order[0], thing.order[2]
    found = (thing.first, *app.neighbors(here, 3, thing))
    answer = (app.answer(thing, here), Say("On the other point the documents say nothing."))
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


def _unindexed(app: App) -> tuple[Thing, str, tuple[str, ...]]:
    """A thing whose passage on the asked attribute is not in the index."""
    thing = app.thing()
    asked = thing.order[0]
    gone, thing.first = thing.first, f"unindexed-{len(app.corpus)}"
    del app.corpus[gone]
    found = (thing.second, *app.neighbors(asked, 3, thing))
    app.things.remove(thing)  # no neighbor of others: it lacks a passage
    return thing, asked, found


@kind
def never_indexed_declines(app: App) -> Planted:
    """The document was never indexed."""
    thing, asked, found = _unindexed(app)
    return plan(
        app, thing, asked, retrieved=found, answer=declined(app), response="declines",
        owner="index", modes=NOT_INDEXED, lost="index", depth=50,
    )  # fmt: skip


@kind
def never_indexed_invents(app: App) -> Planted:
    """The document was never indexed, and the app invents."""
    thing, asked, found = _unindexed(app)
    return plan(
        app, thing, asked, retrieved=found, answer=wrong(app, thing, asked),
        owner="index", modes=NOT_INDEXED, lost="index", depth=50,
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
    said = app.state(thing, asked, old, 0)
    other = app.index(f"From the archive. {said} {lead} {tail}")
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


def _talk(app: App, thing: Thing) -> tuple[dict[str, str], ...]:
    return (
        {"role": "user", "content": f"I would like to know more about {thing.name}."},
        {"role": "assistant", "content": "With pleasure. What would you like to know?"},
    )


@kind
def history_lost(app: App) -> Planted:
    """A follow-up is searched for as it stands, without the name from the turn before."""
    thing, asked = start(app)
    found = tuple(app.neighbors(asked, 4, thing))
    question = f"And what about {app.world[asked]['noun']}?"
    case = plan(
        app, thing, asked, retrieved=found, answer=wrong(app, thing, asked),
        calls=({"query": question, "passages": list(found)},), history=_talk(app, thing),
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


def _grew_up(app: App, person: str, town: str) -> str:
    """A passage on a person."""
    sentence = f"{person} grew up in {town}."
    app.register(sentence, ((person, "town"), town))
    tail = app.draw.sample(app.world["filler"], 2)
    return app.index(f"A portrait of the people behind the scenes. {sentence} {' '.join(tail)}")


def _two_hops(app: App) -> tuple[Planted, Thing, str, str]:
    """A question over two hops: the case without an app, its thing, and the two passages."""
    thing = app.thing()
    person, town = thing.values["person"], app.draw.choice(TOWNS)
    hop = _grew_up(app, person, town)
    case = Planted(
        question=f"In which town did {app.world['person']['noun']} of {thing.name} grow up?",
        needs=(((person, "town"), town),), answer=(), retrieved=(), owner="none", modes=PASSED,
        references=(Say(f"{person} grew up in {town}.", (((person, "town"), town),)),),
        relevant=(thing.chunk("person"), hop),
    )  # fmt: skip
    return case, thing, hop, town


@kind
def wrong_first_hop(app: App) -> Planted:
    """The first search names two persons; the agent searches on for the wrong one."""
    case, thing, _, town = _two_hops(app)
    other = app.thing()
    place = app.draw.choice([one for one in TOWNS if one != town])
    person = other.values["person"]
    beside = _grew_up(app, person, place)
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


# It stood in the prompt, and the answer spoiled it.


def _shown(app: App, **fields: Any) -> tuple[Planted, Thing, str]:
    """A case with all that it needs in the prompt, answered right."""
    thing, asked = start(app)
    common = {
        "retrieved": with_it(app, thing, asked),
        "answer": (app.answer(thing, asked),),
        "owner": "generator",
        "modes": FALSE_CLAIM,
        "lost": "answer",
    }
    return plan(app, thing, asked, **(common | fields)), thing, asked


@kind
def adds_an_invention(app: App) -> Planted:
    """Right, and one sentence more that is made up."""
    case, thing, asked = _shown(app)
    return replace(case, answer=(app.answer(thing, asked), invention(app)), lost=None)


@kind
def misreads_the_value(app: App) -> Planted:
    """Another value than the passage gives."""
    case, thing, asked = _shown(app)
    return replace(case, answer=wrong(app, thing, asked))


@kind
def takes_the_neighbors_value(app: App) -> Planted:
    """The value of another thing, whose passage stands beside."""
    case, thing, asked = _shown(app)
    texts = app.held([app.corpus[one] for one in case.retrieved])
    beside = [
        next(iter(values)) for (name, what), values in texts.items()
        if what == asked and name != thing.name and thing.values[asked] not in values
    ]  # fmt: skip
    value = beside[0] if beside else app.other(asked, thing.values[asked])
    return replace(case, answer=(app.answer(thing, asked, value),))


@kind
def ignores_the_passages(app: App) -> Planted:
    """General talk in place of what the passage says."""
    case, thing, _ = _shown(app)
    said = f"In general this differs from year to year, and experts disagree about {thing.name}."
    return replace(
        case, answer=(Say(said, None), invention(app)), modes=(*FALSE_CLAIM, "off_the_point"),
        response="evades",
    )  # fmt: skip


@kind
def refuses(app: App) -> Planted:
    """The passage is there, and the app declines."""
    case, _, _ = _shown(app)
    return replace(case, answer=declined(app), response="declines", modes=("over_refused",))


@kind
def refuses_part_shown(app: App) -> Planted:
    """Passages are cut, the needed sentence is still there, and the app declines."""
    case, _, found, shown = _half_shown(app)
    return replace(
        case, retrieved=found, shown=shown, answer=declined(app), response="declines",
        owner="generator", modes=("over_refused",), lost="answer",
    )  # fmt: skip


@kind
def says_nothing(app: App) -> Planted:
    """A blank answer."""
    case, _, _ = _shown(app)
    return replace(case, answer=(), response="declines", modes=("over_refused",))


@kind
def answers_another_question(app: App) -> Planted:
    """True, from the prompt, and about something else."""
    case, thing, asked = _shown(app)
    own = thing.order[:2] if thing.chunk(asked) == thing.first else thing.order[2:]
    beside = next(one for one in own if one != asked)
    modes = ("off_the_point", "incomplete", "ignored_context")
    return replace(case, answer=(app.answer(thing, beside),), response="evades", modes=modes)


@kind
def answers_half(app: App) -> Planted:
    """Two facts are asked and shown, one is stated."""
    thing = app.thing()
    one, two = app.draw.choice([thing.order[:2], (thing.order[0], thing.order[2])])
    found = tuple(dict.fromkeys((thing.first, thing.chunk(two), *app.neighbors(one, 2, thing))))
    return plan(
        app, thing, (one, two), retrieved=found, answer=(app.answer(thing, one),),
        response="partly", owner="generator", modes=("incomplete",), lost="answer",
    )  # fmt: skip


@kind
def half_right_half_wrong(app: App) -> Planted:
    """Two facts are shown; one is stated right, the other wrong."""
    thing = app.thing()
    one, two = thing.order[0], thing.order[2]
    found = (thing.second, thing.first, *app.neighbors(one, 2, thing))
    answer = (app.answer(thing, one), *wrong(app, thing, two))
    return plan(
        app, thing, (one, two), retrieved=found, answer=answer, owner="generator",
        modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


def _unanswerable(app: App) -> tuple[Thing, str, tuple[str, ...]]:
    return _unindexed(app)


@kind
def answers_the_unanswerable(app: App) -> Planted:
    """Nothing in the index answers it, and people say so; the app answers."""
    thing, asked, found = _unanswerable(app)
    return plan(
        app, thing, asked, retrieved=found, answer=wrong(app, thing, asked), needs=(),
        references=(), relevant=(), answerable=False, owner="generator",
        modes=("should_have_abstained",), lost="answer", without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def answers_the_unanswerable_from_noise(app: App) -> Planted:
    """The same, with the value of another thing in the prompt."""
    case = answers_the_unanswerable(app)
    (fact, _), *_ = case.answer[0].stated or ()
    held = app.held([app.corpus[one] for one in case.retrieved])
    value = next((next(iter(v)) for (_, what), v in held.items() if what == fact[1]), None)
    if value is None:
        return case
    thing = Thing(fact[0], {fact[1]: value}, 0)
    return replace(case, answer=(app.answer(thing, fact[1]),))


@kind
def wrong_beside_a_missed_copy(app: App) -> Planted:
    """Two labelled passages state it; one is shown, the other missed. The answer is wrong."""
    case, thing, asked = _shown(app)
    copy = app.index(f"{app.state(thing, asked, wording=0)} {app.world['filler'][0]}")
    return replace(case, relevant=(*case.relevant, copy), answer=wrong(app, thing, asked))


@kind
def wrong_beside_an_unlisted_passage(app: App) -> Planted:
    """The listed passage was missed; an unlisted one states it in the prompt. The answer is wrong."""
    case, thing, asked = _unlisted(app)
    return replace(
        case, answer=wrong(app, thing, asked), owner="generator", modes=FALSE_CLAIM, lost="answer"
    )


@kind
def refuses_beside_an_unlisted_passage(app: App) -> Planted:
    """The same, and the app declines."""
    case, _, _ = _unlisted(app)
    return replace(
        case, answer=declined(app), response="declines", owner="generator",
        modes=("over_refused",), lost="answer",
    )  # fmt: skip


@kind
def adds_wrongly(app: App) -> Planted:
    """Both numbers are in the prompt, their sum is wrong."""
    case, right = _sum(app)
    wrong_sum = str(int(right) + app.draw.choice((-11, -10, 9, 10, 20)))
    fact = case.needs[0][0]
    said = Say(case.answer[0].text.replace(right, wrong_sum), ((fact, wrong_sum),))
    return replace(case, answer=(said,), owner="generator", modes=FALSE_CLAIM, lost="answer")


# The gold set is wrong.


@kind
def wrong_reference(app: App) -> Planted:
    """The reference names another value than the labelled passage; the answer is right."""
    case, thing, asked = _shown(app)
    other = app.other(asked, thing.values[asked])
    return replace(
        case, references=(app.reference(thing, asked, other),), owner="gold_set",
        modes=("gold_suspect",), lost="data", without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_of_the_past(app: App) -> Planted:
    """The passage names who held a post until 2019 and who has since; the reference the former."""
    thing = app.thing(indexed=False)
    former, present = app.other("person"), thing.values["person"]
    role = app.world["role"]
    sentence = f"{former} was {role} of {thing.name} until 2019, and {present} has been since then."
    app.register(sentence, ((thing.name, "person"), present))
    intro = app.world["intro"][0].format(e=thing.name)
    thing.first = app.index(f"{intro[0].upper()}{intro[1:]} {sentence} {app.world['filler'][1]}")
    thing.second = thing.first
    found = (thing.first, *app.neighbors("person", 3, thing))
    app.things.remove(thing)
    return plan(
        app, thing, "person", wording=0, retrieved=found, answer=(app.answer(thing, "person"),),
        references=(app.reference(thing, "person", former),), relevant=(thing.first,),
        owner="gold_set", modes=("gold_suspect",), lost="data",
        without_references=("none", PASSED),
    )  # fmt: skip


@kind
def wrongly_unanswerable(app: App) -> Planted:
    """The gold set says that nothing answers it, and a passage does."""
    case, _, _ = _shown(app)
    return replace(
        case, answerable=False, references=(), relevant=(), owner="gold_set",
        modes=("gold_suspect",), lost="data", without_references=("none", PASSED),
    )  # fmt: skip


# Odd, and harmless.


def _right(app: App, **fields: Any) -> tuple[Planted, Thing, str]:
    return _shown(app, **({"owner": "none", "modes": PASSED, "lost": None} | fields))


def _unlisted(app: App) -> tuple[Planted, Thing, str]:
    """An unlisted passage states it in the prompt; the listed one was missed."""
    thing, asked = start(app)
    filler = app.draw.sample(app.world["filler"], 2)
    said = app.state(thing, asked, wording=0)
    unlisted = app.index(f"From the yearbook. {filler[0]} {said} {filler[1]}")
    found = (unlisted, *around(app, thing, asked, 3))
    case = plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked),),
        owner="none", modes=PASSED,
    )  # fmt: skip
    return case, thing, asked


@kind
def right_from_an_unlisted_passage(app: App) -> Planted:
    """The listed passage was missed, an unlisted one suffices."""
    return _unlisted(app)[0]


@kind
def right_in_another_form(app: App) -> Planted:
    """The same value in another unit or notation."""
    forms = app.world["form"]["forms"]
    value = app.draw.choice(list(forms))
    thing = app.thing(form=value)
    return plan(
        app, thing, "form", retrieved=with_it(app, thing, "form"), owner="none", modes=PASSED,
        answer=(app.answer(thing, "form", shown=forms[value]),),
    )  # fmt: skip


@kind
def right_with_citations(app: App) -> Planted:
    """Marks and a list of sources."""
    case, thing, asked = _right(app)
    said, place = app.answer(thing, asked), case.retrieved.index(thing.chunk(asked)) + 1
    marked = f"{said.text.removesuffix('.')} [{place}]."
    tail = app.draw.choice((f"\n\nSources: [{place}] {thing.chunk(asked)}", ""))
    return replace(case, answer=(Say(marked, said.stated), *([Say(tail)] if tail else [])))


def _half_shown(app: App) -> tuple[Planted, Thing, tuple[str, ...], tuple[str, ...]]:
    """Passages are cut behind the needed sentence."""
    thing = app.thing()
    asked = thing.order[0]
    found = with_it(app, thing, asked, 0)
    text = app.corpus[thing.first]
    needed = app.state(thing, asked, wording=thing.wording)
    at = text.index(needed) + len(needed) + 15
    case = plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked),), owner="none",
        modes=PASSED,
    )  # fmt: skip
    return case, thing, found, tuple(app.corpus[one][:at] for one in found)


@kind
def right_from_half_a_passage(app: App) -> Planted:
    """The app shows the head of each passage, and that suffices."""
    case, _, found, shown = _half_shown(app)
    return replace(case, retrieved=found, shown=shown)


@kind
def declines_rightly(app: App) -> Planted:
    """Nothing answers it, and the app says so."""
    thing, asked, found = _unanswerable(app)
    return plan(
        app, thing, asked, retrieved=found, answer=declined(app), response="declines", needs=(),
        references=(), relevant=(), answerable=False, owner="none", modes=PASSED,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def label_with_a_typo(app: App) -> Planted:
    """The label's id is written otherwise than the passage's; the answer is right."""
    case, _, _ = _right(app)
    (name,) = case.relevant
    spelled = app.draw.choice((name.capitalize(), f"./{name}", name.replace("-", "_")))
    return replace(case, relevant=(spelled,))


@kind
def label_of_another_passage(app: App) -> Planted:
    """The label names a passage of another thing, which was missed; the answer is right."""
    case, thing, asked = _right(app)
    free = [one for one in app.neighbors(asked, 5, thing) if one not in case.retrieved]
    return replace(case, relevant=(free[0],))


@kind
def right_with_more_detail(app: App) -> Planted:
    """Longer than the reference, all of it in the passage."""
    case, thing, asked = _right(app)
    own = thing.order[:2] if thing.chunk(asked) == thing.first else thing.order[2:]
    beside = next(one for one in own if one != asked)
    return replace(case, answer=(app.answer(thing, asked), app.answer(thing, beside)))


@kind
def right_beside_a_missed_copy(app: App) -> Planted:
    """One of two labelled passages that say the same was missed."""
    case, thing, asked = _right(app)
    copy = app.index(f"{app.state(thing, asked, wording=0)} {app.world['filler'][2]}")
    return replace(case, relevant=(*case.relevant, copy))


@kind
def right_beside_a_missed_background(app: App) -> Planted:
    """A second label names background that the answer does not need and that was missed."""
    thing, asked = start(app)
    own = thing.second if thing.chunk(asked) == thing.first else thing.first
    found = (thing.chunk(asked), *app.neighbors(asked, 3, thing))
    return plan(
        app, thing, asked, retrieved=found, answer=(app.answer(thing, asked),),
        relevant=(thing.chunk(asked), own), owner="none", modes=PASSED,
    )  # fmt: skip


def _sum(app: App) -> tuple[Planted, str]:
    """A sum over two passages that both are in the prompt, and its value."""
    one, two = app.thing(), app.thing()
    right = str(int(one.values["count"]) + int(two.values["count"]))
    fact = (f"{one.name} + {two.name}", "sum")
    app.derived[fact] = (
        right,
        tuple(((each.name, "count"), each.values["count"]) for each in (one, two)),
    )
    text = app.world["sum_answer"].format(a=one.name, b=two.name, v=right)
    said = Say(text[0].upper() + text[1:], ((fact, right),))
    chunks = (one.chunk("count"), two.chunk("count"))
    case = Planted(
        question=app.world["sum_question"].format(a=one.name, b=two.name),
        needs=((fact, right),), answer=(said,), references=(said,), relevant=chunks,
        retrieved=(chunks[1], *app.neighbors("count", 2, one, two), chunks[0]),
        owner="none", modes=PASSED,
    )  # fmt: skip
    return case, right


@kind
def adds_rightly(app: App) -> Planted:
    """A sum of two numbers that stands in no passage."""
    return _sum(app)[0]


@kind
def two_hops_right(app: App) -> Planted:
    """An agent follows the right name."""
    case, thing, hop, _ = _two_hops(app)
    first = (thing.chunk("person"), *app.neighbors("person", 1, thing))
    then = (hop, *app.neighbors("count", 1, thing))
    person = thing.values["person"]
    calls = (
        {"query": case.question, "passages": list(first)},
        {"query": f"Where did {person} grow up?", "passages": list(then)},
    )
    found = tuple(dict.fromkeys((*first, *then)))
    return replace(case, retrieved=found, calls=calls, answer=case.references)


@kind
def follow_up_right(app: App) -> Planted:
    """A follow-up whose query has the name from the turn before."""
    case, thing, asked = _right(app, history=())
    question = f"And what about {app.world[asked]['noun']}?"
    calls = ({"query": app.ask(thing, asked, 0), "passages": list(case.retrieved)},)
    return replace(case, question=question, history=_talk(app, thing), calls=calls)


@kind
def right_though_reordered(app: App) -> Planted:
    """The app reorders the passages, numbers their sentences and drops one that is not needed."""
    case, thing, asked = _right(app)
    keep = [one for one in case.retrieved if one == thing.chunk(asked)]
    keep += [one for one in case.retrieved if one not in keep][:2]
    shown = tuple(
        "\n".join(f"{n}. {part.rstrip('.')}." for n, part in enumerate(app.corpus[one].split(". "), 1))
        for one in reversed(keep)
    )
    return replace(case, shown=shown)
