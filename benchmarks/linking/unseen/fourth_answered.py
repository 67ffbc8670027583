"""Fourth set: it stood in the prompt and the answer spoiled it; the gold set is wrong; or nothing is."""

from __future__ import annotations

from dataclasses import replace

from .cases import (
    FALSE_CLAIM,
    PASSED,
    answered_right,
    declined,
    in_the_prompt,
    plan,
    start,
    unindexed,
    with_it,
)
from .cases import fourth_kind as kind
from .german import german_answer, german_question
from .planted import App, Planted, Say
from .second_answered import GOLD
from .third_answered import NO_ANSWER, compares_wrongly

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

# It stood in the prompt, and the answer spoiled it.


@kind
def swaps_the_values_of_two(app: App) -> Planted:
    """Two things are asked for and shown; the answer gives each the value of the other."""
    one, asked = start(app)
    two = app.thing(**{asked: app.other(asked, one.values[asked])})
    both = (one, two)
    return Planted(
        question=f"What is {app.world[asked]['noun']} of {one.name}, and of {two.name}?",
        needs=tuple(((each.name, asked), each.values[asked]) for each in both),
        answer=(
            app.answer(one, asked, two.values[asked]),
            app.answer(two, asked, one.values[asked]),
        ),
        references=tuple(app.answer(each, asked) for each in both),
        relevant=tuple(each.chunk(asked) for each in both),
        retrieved=(two.chunk(asked), one.chunk(asked), *app.neighbors(asked, 2, *both)),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def counts_a_list_wrongly(app: App) -> Planted:
    """The passage names five partners; the answer says that there are four."""
    thing = app.thing()
    partners = [next(app.people) for _ in range(5)]
    fact = (thing.name, "number of partners")
    sentence = f"The partners of {thing.name} are {', '.join(partners[:4])} and {partners[4]}."
    app.register(sentence, (fact, "5"))
    lead, tail = app.draw.sample(app.world["filler"], 2)
    needed = app.index(f"From the annual report. {lead} {sentence} {tail}")
    return plan(
        app, thing, "count", question=f"How many partners does {thing.name} have?",
        needs=((fact, "5"),),
        references=(Say(f"There are five partners of {thing.name}.", ((fact, "5"),)),), relevant=(needed,),
        retrieved=(thing.second, needed, *app.neighbors("count", 2, thing)),
        answer=(Say(f"There are four partners of {thing.name}.", ((fact, "4"),)),),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def rewrites_the_value_wrongly(app: App) -> Planted:
    """The answer has the value in another unit or notation, and it is not the same value."""
    forms = app.world["form"]["forms"]
    thing = app.thing(form=app.draw.choice(list(forms)))
    mistaken = app.draw.choice([one for one in forms if one != thing.values["form"]])
    return plan(
        app, thing, "form", retrieved=with_it(app, thing, "form"),
        answer=(app.answer(thing, "form", mistaken, shown=forms[mistaken]),),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def takes_the_former_one(app: App) -> Planted:
    """The passage names who had the post before, and who has it; the answer, who had it before."""
    thing = app.thing(indexed=False)
    former, present = app.other("person"), thing.values["person"]
    role = app.world["role"]
    sentence = f"The {role} of {thing.name} is now {present}, who took over from {former} in 2022."
    app.register(sentence, ((thing.name, "person"), present))
    lead, tail = app.draw.sample(app.world["filler"], 2)
    thing.first = thing.second = app.index(f"People and posts. {lead} {sentence} {tail}")
    found = (*app.neighbors("person", 1, thing), thing.first, *app.neighbors("count", 1, thing))
    app.things.remove(thing)
    return plan(
        app, thing, "person", wording=0, retrieved=tuple(dict.fromkeys(found)),
        answer=(app.answer(thing, "person", former),), relevant=(thing.first,),
        owner="generator", modes=FALSE_CLAIM, lost="answer",
    )  # fmt: skip


@kind
def asks_back(app: App) -> Planted:
    """The question is clear and the passage is there; the app asks what is meant."""
    case, _, _ = in_the_prompt(app)
    said = Say("Could you tell me in more detail what you would like to know?")
    return replace(case, answer=(said,), response="evades", modes=NO_ANSWER)


# The gold set is wrong.


@kind
def reference_swaps_two_digits(app: App) -> Planted:
    """A typing error: the first two digits of the reference's number are swapped; the answer is right."""
    values = [one for one in app.world["count"]["values"] if one[1] not in (one[0], "0")]
    thing = app.thing(count=app.draw.choice(values))
    value = thing.values["count"]
    reference = app.reference(thing, "count", f"{value[1]}{value[0]}{value[2:]}")
    return plan(
        app, thing, "count", retrieved=with_it(app, thing, "count"), references=(reference,),
        answer=(app.answer(thing, "count"),), owner="gold_set", modes=GOLD, lost="data",
        without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_denies_what_its_passage_says(app: App) -> Planted:
    """The reference says that it is not recorded, and the labelled passage records it."""
    case, thing, asked = in_the_prompt(app)
    text = f"{app.world[asked]['noun']} of {thing.name} is not recorded anywhere."
    denied = Say(text[0].upper() + text[1:], (((thing.name, asked), "not recorded"),))
    return replace(
        case, references=(denied,), owner="gold_set", modes=GOLD, lost="data",
        without_references=("none", PASSED),
    )  # fmt: skip


@kind
def reference_compares_wrongly(app: App) -> Planted:
    """Whoever wrote the reference took the smaller number for the larger; the app did not."""
    case = compares_wrongly(app)
    return replace(
        case, answer=case.references, references=case.answer, owner="gold_set", modes=GOLD,
        lost="data", without_references=("none", PASSED),
    )  # fmt: skip


# Odd, and harmless.


@kind
def right_as_a_table(app: App) -> Planted:
    """A table of one row."""
    case, thing, asked = answered_right(app)
    value, noun = thing.values[asked], app.world[asked]["noun"].removeprefix("the ")
    table = f"| name | {noun} |\n|---|---|\n| {thing.name} | {value} |"
    return replace(case, answer=(Say(table, (((thing.name, asked), value),)),))


@kind
def right_with_the_number_in_words(app: App) -> Planted:
    """The number is spelled out."""
    thing = app.thing()
    words = _words(int(thing.values["count"]))
    return plan(
        app, thing, "count", retrieved=with_it(app, thing, "count"), owner="none", modes=PASSED,
        answer=(app.answer(thing, "count", shown=words),),
    )  # fmt: skip


def _words(number: int) -> str:
    """A number below a thousand in words."""
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return f"{ONES[hundreds]} hundred" + (f" and {_words(rest)}" if rest else "")
    if number < len(ONES):
        return ONES[number]
    tens, rest = divmod(number, 10)
    return TENS[tens] + (f"-{ONES[rest]}" if rest else "")


@kind
def right_by_quoting_the_passage(app: App) -> Planted:
    """The passage's own sentence in quotation marks."""
    case, thing, asked = answered_right(app)
    sentence = app.state(thing, asked, wording=thing.wording)
    said = f'On {thing.name}, the document says: "{sentence}"'
    return replace(case, answer=(Say(said, (((thing.name, asked), thing.values[asked]),)),))


@kind
def asked_and_answered_in_german(app: App) -> Planted:
    """Question and answer are German, documents and reference English; the passage was found."""
    thing = app.thing()
    said = Say(german_answer(app, thing), (((thing.name, "count"), thing.values["count"]),))
    return plan(
        app, thing, "count", question=german_question(app, thing),
        retrieved=with_it(app, thing, "count"), answer=(said,), owner="none", modes=PASSED,
    )  # fmt: skip


@kind
def right_from_one_joined_block(app: App) -> Planted:
    """The template joins all passages into one paragraph."""
    case, _, _ = answered_right(app)
    return replace(case, shown=(" ".join(app.corpus[one] for one in case.retrieved),))


@kind
def right_after_several_queries(app: App) -> Planted:
    """The question is searched for in three wordings, and the results are put together."""
    thing, asked = start(app)
    others = app.neighbors(asked, 4, thing)
    needed = thing.chunk(asked)
    calls = (
        {"query": app.ask(thing, asked, 0), "passages": [needed, others[0]]},
        {"query": app.ask(thing, asked, 1), "passages": others[1:3]},
        {"query": f"{app.world[asked]['noun']} {thing.name}", "passages": [others[3], needed]},
    )
    found = dict.fromkeys(one for call in calls for one in call["passages"])
    return plan(
        app, thing, asked, wording=0, retrieved=tuple(found), calls=calls, owner="none",
        modes=PASSED, answer=(app.answer(thing, asked),),
    )  # fmt: skip


@kind
def declines_with_a_related_fact(app: App) -> Planted:
    """Nothing answers it; the app says so, and adds what the documents do say about the thing."""
    thing, asked, found = unindexed(app)
    return plan(
        app, thing, asked, retrieved=found, response="declines", needs=(), references=(),
        answer=(*declined(app), app.answer(thing, thing.order[2])), relevant=(), answerable=False,
        owner="none", modes=PASSED, without_references=("unknowable", ()),
    )  # fmt: skip
