"""What the model needed stood in its prompt: the answer spoils it, the gold set is wrong, or nothing is."""

from __future__ import annotations

from dataclasses import replace

from .cases import (
    FALSE_CLAIM,
    PASSED,
    answered_right,
    declined,
    half_shown,
    in_the_prompt,
    invention,
    kind,
    plan,
    start,
    summed,
    talk,
    two_hops,
    unindexed,
    unlisted,
    with_it,
    wrong,
)
from .planted import App, Planted, Say, Thing

# It stood in the prompt, and the answer spoiled it.


@kind
def adds_an_invention(app: App) -> Planted:
    """Right, and one sentence more that is made up."""
    case, thing, asked = in_the_prompt(app)
    return replace(case, answer=(app.answer(thing, asked), invention(app)), lost=None)


@kind
def misreads_the_value(app: App) -> Planted:
    """Another value than the passage gives."""
    case, thing, asked = in_the_prompt(app)
    return replace(case, answer=wrong(app, thing, asked))


@kind
def takes_the_neighbors_value(app: App) -> Planted:
    """The value of another thing, whose passage stands beside."""
    case, thing, asked = in_the_prompt(app)
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
    case, thing, _ = in_the_prompt(app)
    said = f"In general this differs from year to year, and experts disagree about {thing.name}."
    return replace(
        case, answer=(Say(said, None), invention(app)), modes=(*FALSE_CLAIM, "off_the_point"),
        response="evades",
    )  # fmt: skip


@kind
def refuses(app: App) -> Planted:
    """The passage is there, and the app declines."""
    case, _, _ = in_the_prompt(app)
    return replace(case, answer=declined(app), response="declines", modes=("over_refused",))


@kind
def refuses_part_shown(app: App) -> Planted:
    """Passages are cut, the needed sentence is still there, and the app declines."""
    case, _, found, shown = half_shown(app)
    return replace(
        case, retrieved=found, shown=shown, answer=declined(app), response="declines",
        owner="generator", modes=("over_refused",), lost="answer",
    )  # fmt: skip


@kind
def says_nothing(app: App) -> Planted:
    """A blank answer."""
    case, _, _ = in_the_prompt(app)
    return replace(case, answer=(), response="declines", modes=("over_refused",))


@kind
def answers_another_question(app: App) -> Planted:
    """True, from the prompt, and about something else."""
    case, thing, asked = in_the_prompt(app)
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


@kind
def answers_the_unanswerable(app: App) -> Planted:
    """Nothing in the index answers it, and people say so; the app answers."""
    thing, asked, found = unindexed(app)
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
    case, thing, asked = in_the_prompt(app)
    copy = app.index(f"{app.state(thing, asked, wording=0)} {app.world['filler'][0]}")
    return replace(case, relevant=(*case.relevant, copy), answer=wrong(app, thing, asked))


@kind
def wrong_beside_an_unlisted_passage(app: App) -> Planted:
    """The listed passage was missed; an unlisted one states it in the prompt. The answer is wrong."""
    case, thing, asked = unlisted(app)
    return replace(
        case, answer=wrong(app, thing, asked), owner="generator", modes=FALSE_CLAIM, lost="answer"
    )


@kind
def refuses_beside_an_unlisted_passage(app: App) -> Planted:
    """The same, and the app declines."""
    case, _, _ = unlisted(app)
    return replace(
        case, answer=declined(app), response="declines", owner="generator",
        modes=("over_refused",), lost="answer",
    )  # fmt: skip


@kind
def adds_wrongly(app: App) -> Planted:
    """Both numbers are in the prompt, their sum is wrong."""
    case, right = summed(app)
    wrong_sum = str(int(right) + app.draw.choice((-11, -10, 9, 10, 20)))
    fact = case.needs[0][0]
    said = Say(case.answer[0].text.replace(right, wrong_sum), ((fact, wrong_sum),))
    return replace(case, answer=(said,), owner="generator", modes=FALSE_CLAIM, lost="answer")


# The gold set is wrong.


@kind
def wrong_reference(app: App) -> Planted:
    """The reference names another value than the labelled passage; the answer is right."""
    case, thing, asked = in_the_prompt(app)
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
    case, _, _ = in_the_prompt(app)
    return replace(
        case, answerable=False, references=(), relevant=(), owner="gold_set",
        modes=("gold_suspect",), lost="data", without_references=("none", PASSED),
    )  # fmt: skip


# Odd or not, and harmless.


@kind
def answers_right(app: App) -> Planted:
    """Nothing odd."""
    return answered_right(app)[0]


@kind
def right_from_an_unlisted_passage(app: App) -> Planted:
    """The listed passage was missed, an unlisted one suffices."""
    return unlisted(app)[0]


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
    case, thing, asked = answered_right(app)
    said, place = app.answer(thing, asked), case.retrieved.index(thing.chunk(asked)) + 1
    marked = f"{said.text.removesuffix('.')} [{place}]."
    tail = app.draw.choice((f"\n\nSources: [{place}] {thing.chunk(asked)}", ""))
    return replace(case, answer=(Say(marked, said.stated), *([Say(tail)] if tail else [])))


@kind
def right_from_half_a_passage(app: App) -> Planted:
    """The app shows the head of each passage, and that suffices."""
    case, _, found, shown = half_shown(app)
    return replace(case, retrieved=found, shown=shown)


@kind
def declines_rightly(app: App) -> Planted:
    """Nothing answers it, and the app says so."""
    thing, asked, found = unindexed(app)
    return plan(
        app, thing, asked, retrieved=found, answer=declined(app), response="declines", needs=(),
        references=(), relevant=(), answerable=False, owner="none", modes=PASSED,
        without_references=("unknowable", ()),
    )  # fmt: skip


@kind
def label_with_a_typo(app: App) -> Planted:
    """The label's id is written otherwise than the passage's; the answer is right."""
    case, _, _ = answered_right(app)
    (name,) = case.relevant
    spelled = app.draw.choice((name.capitalize(), f"./{name}", name.replace("-", "_")))
    return replace(case, relevant=(spelled,))


@kind
def label_of_another_passage(app: App) -> Planted:
    """The label names a passage of another thing, which was missed; the answer is right."""
    case, thing, asked = answered_right(app)
    free = [one for one in app.neighbors(asked, 5, thing) if one not in case.retrieved]
    return replace(case, relevant=(free[0],))


@kind
def right_with_more_detail(app: App) -> Planted:
    """Longer than the reference, all of it in the passage."""
    case, thing, asked = answered_right(app)
    own = thing.order[:2] if thing.chunk(asked) == thing.first else thing.order[2:]
    beside = next(one for one in own if one != asked)
    return replace(case, answer=(app.answer(thing, asked), app.answer(thing, beside)))


@kind
def right_beside_a_missed_copy(app: App) -> Planted:
    """One of two labelled passages that say the same was missed."""
    case, thing, asked = answered_right(app)
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


@kind
def adds_rightly(app: App) -> Planted:
    """A sum of two numbers that stands in no passage."""
    return summed(app)[0]


@kind
def two_hops_right(app: App) -> Planted:
    """An agent follows the right name."""
    case, thing, hop, _ = two_hops(app)
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
    case, thing, asked = answered_right(app, history=())
    question = f"And what about {app.world[asked]['noun']}?"
    calls = ({"query": app.ask(thing, asked, 0), "passages": list(case.retrieved)},)
    return replace(case, question=question, history=talk(thing), calls=calls)


@kind
def right_though_reordered(app: App) -> Planted:
    """The app reorders the passages, numbers their sentences and drops one that is not needed."""
    case, thing, asked = answered_right(app)
    keep = [one for one in case.retrieved if one == thing.chunk(asked)]
    keep += [one for one in case.retrieved if one not in keep][:2]
    shown = tuple(
        "\n".join(
            f"{n}. {part.rstrip('.')}." for n, part in enumerate(app.corpus[one].split(". "), 1)
        )
        for one in reversed(keep)
    )
    return replace(case, shown=shown)
