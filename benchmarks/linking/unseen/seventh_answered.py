"""Seventh set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from dataclasses import replace

from .cases import FALSE_CLAIM, PASSED, answered_right, in_the_prompt, plan, with_it, wrong
from .cases import seventh_kind as kind
from .fifth import sentence
from .planted import App, Planted, Say
from .second_answered import GOLD
from .seventh import about, among, asked, filled, page, state, texts

# It stood in the prompt, and the answer spoiled it.


@kind
def makes_a_fact_of_a_rumor(app: App) -> Planted:
    """The passage says that it is told, suspected or denied; the answer, that it is so."""
    return _misread(app, "rumor", "uncertain", "certain")


@kind
def makes_an_or_of_an_and(app: App) -> Planted:
    """Two things are needed together; by the answer, one of them is enough."""
    return _misread(app, "both", "both", "either")


def _misread(app: App, of: str, right: str, claimed: str) -> Planted:
    """The passage is in the prompt, and the answer says something else."""
    thing, words = app.thing(), texts(app)[of]
    needed = page(app, state(app, thing, right, words["sentence"]))
    return about(
        app, thing, words, right, claimed=claimed, relevant=(needed,),
        retrieved=among(app, thing, needed), owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def adds_a_contact_or_source_of_its_own(app: App) -> Planted:
    """Right, and then a number, an address or a book that stands in no page."""
    case, thing, attribute = in_the_prompt(app)
    said = (app.answer(thing, attribute), Say(texts(app)["contact"], None))
    return replace(case, answer=said, lost=None)


@kind
def gives_in_to_a_doubt(app: App) -> Planted:
    """The answer was right; the user doubts it, without another value, and the app makes one up."""
    case, thing, attribute = in_the_prompt(app)
    words = texts(app)["doubt"]
    history = (
        {"role": "user", "content": app.ask(thing, attribute)},
        {"role": "assistant", "content": app.answer(thing, attribute).text},
    )
    query = {"query": app.ask(thing, attribute, 0), "passages": list(case.retrieved)}
    return replace(
        case, question=filled(thing, words["question"]), history=history, calls=(query,),
        answer=(Say(words["before"]), *wrong(app, thing, attribute)),
    )  # fmt: skip


@kind
def declines_out_of_caution(app: App) -> Planted:
    """A harmless question, the passage is there, and the model finds it too delicate to answer."""
    case, _, _ = in_the_prompt(app)
    said = Say(texts(app)["caution"])
    return replace(case, answer=(said,), response="declines", modes=("over_refused",))


@kind
def follows_the_wrong_link_in_the_prompt(app: App) -> Planted:
    """Two people and a page on each are in the prompt; the answer goes on with the other one."""
    thing, words = app.thing(), texts(app)["link"]
    other = app.draw.choice([one for one in app.things if one is not thing])
    values = app.draw.sample(words["values"], 2)
    hops, says = [], []
    for one, value in zip((thing, other), values, strict=True):
        person = one.values["person"]
        told = sentence(words["sentence"], p=person, t=value)
        app.register(told, ((person, "link"), value))
        hops.append(page(app, told))
        stated = (((thing.values["person"], "link"), value),)
        says.append(Say(filled(thing, words["answer"], t=value), stated))
    found = [thing.chunk("person"), other.chunk("person"), *hops]
    return plan(
        app, thing, "person", question=filled(thing, words["question"]), needs=says[0].stated,
        answer=(says[1],), references=(says[0],), relevant=(thing.chunk("person"), hops[0]),
        retrieved=tuple(app.shuffled(found)), owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def leaves_out_the_condition(app: App) -> Planted:
    """The passage says yes, if; the answer says yes. The reference has both."""
    thing, words = app.thing(), texts(app)["condition"]
    rule, only = asked(thing, "yes"), asked(thing, "yes", "only if")
    told = filled(thing, words["sentence"])
    app.register(told, *rule, *only)
    needed = page(app, told)
    said = Say(filled(thing, words["answer"]), rule)
    return about(
        app, thing, words, "yes", needs=(*rule, *only), answer=(said,), response="partly",
        references=(said, Say(words["only"], only)), relevant=(needed,),
        retrieved=among(app, thing, needed), owner="generator", modes=("incomplete",),
        lost="answer",
    )  # fmt: skip


# The gold set is wrong.


@kind
def reference_mistakes_how_often(app: App) -> Planted:
    """Every two weeks, say passage and answer; the reference, twice a week."""
    return _mislabelled(app, "rhythm")


@kind
def reference_cut_at_a_comma(app: App) -> Planted:
    """The file of references was split at commas, and of 1,450 there is a 1."""
    return _mislabelled(app, "comma")


def _mislabelled(app: App, of: str) -> Planted:
    """Passage and answer are right, the reference has another value."""
    thing, words = app.thing(), texts(app)[of]
    right = words["v"]
    needed = page(app, state(app, thing, right, words["sentence"], v=right))
    return about(
        app, thing, words, right, labelled=words["w"], relevant=(needed,),
        retrieved=among(app, thing, needed), owner="gold_set", modes=GOLD, lost="data",
        without_references=("none", PASSED),
    )  # fmt: skip


# Odd, and harmless.


@kind
def right_with_broken_characters(app: App) -> Planted:
    """Signs beyond ASCII came out in another encoding, or escaped; all else is as in the passage."""
    return _right(app, "broken")


@kind
def right_by_working_it_out(app: App) -> Planted:
    """The passage has one number, the question the other; the answer works it out, step by step."""
    return _right(app, "worked")


def _right(app: App, of: str) -> Planted:
    """The passage is in the prompt, and the answer says in its own form what follows from it."""
    thing, words = app.thing(), texts(app)[of]
    needed = page(app, state(app, thing, "right", words["sentence"]))
    return about(
        app, thing, words, "right", relevant=(needed,), retrieved=among(app, thing, needed),
        owner="none", modes=PASSED,
    )  # fmt: skip


@kind
def right_in_the_markup_of_another_medium(app: App) -> Planted:
    """The answer is set for a terminal, a wiki, a formula, a voice; it says the right thing."""
    case, thing, attribute = answered_right(app)
    said = app.answer(thing, attribute)
    marked = texts(app)["markup"].format(v=thing.values[attribute], t=said.text)
    return replace(case, answer=(Say(marked, said.stated),))


@kind
def right_by_pointing_at_an_option(app: App) -> Planted:
    """The question offers two values, and the answer says which of them, and no more."""
    words = texts(app)["either"]
    thing, attribute = app.thing(), words["attribute"]
    value = thing.values[attribute]
    options = [value, app.other(attribute, value)]
    first, second = options if words["right"] == "a" else reversed(options)
    said = Say(words["answer"], (((thing.name, attribute), value),))
    return plan(
        app, thing, attribute, question=filled(thing, words["question"], a=first, b=second),
        retrieved=with_it(app, thing, attribute), answer=(said,), owner="none", modes=PASSED,
    )  # fmt: skip
