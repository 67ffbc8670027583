"""Runs of an app that does well: lighthouses, each with a passage of facts, and right answers."""

from __future__ import annotations

import misslink
from misslink.types import Case, Passage, Trace

ISLES = (
    *("Arden", "Brenna", "Colm", "Dorvik", "Elsay", "Farne", "Gullen", "Hestra", "Ivo", "Jarle"),
    *("Kolgrim", "Lund", "Mavik", "Norrey", "Osmund", "Pellan", "Quern", "Runa", "Skarv", "Tessel"),
)
KEEPERS = ("Ida Holm", "Jonas Brandt", "Mara Quist", "Peter Lysak", "Sven Aldous", "Tilda Roos")
MONTHS = ("March", "June", "August", "October", "November")
K = 3


def passage(number):
    isle = ISLES[number % len(ISLES)] + ("" if number < len(ISLES) else " Minor")
    keeper, builder = KEEPERS[number % 6], KEEPERS[(number + 2) % 6]
    text = (
        f"The lighthouse of {isle} was built by {builder} in {1790 + 7 * number}. "
        f"The tower of {isle} is {20 + number} meters high and its lamp can be seen from {11 + number} km away. "
        f"The keeper {keeper} trained {builder} before the storm. "
        f"The station opens on {1 + number % 28} {MONTHS[number % 5]} 2024 and a visit usually costs "
        f"{4 + number % 9} euros."
    )
    return isle, Passage(id=f"isle-{number}", text=text, rank=1)


def answers(number):
    """Questions on one lighthouse, each with a right answer and the reference."""
    isle, held = passage(number)
    other, beside = passage((number + 5) % 30)
    built, height, trained, opens = held.text.replace("Its tower", f"The tower of {isle}").split(
        ". "
    )
    return (
        (f"Who built the lighthouse of {isle}, and in which year?", f"{built}.", f"{built}."),
        (f"How high is the tower of {isle}?", f"{height}.", f"{height}."),
        (
            f"What is known of the lighthouse of {isle} and its keeper?",
            f"{built}. {trained}. {opens}",
            f"{built}. {trained}. {opens}",
        ),
        (
            f"Who built the lighthouse of {isle}, and how high is the tower of {other}?",
            *(f"{built}. {beside.text.split('. ')[1]}.",) * 2,
        ),
    )


def good_traces(cases=45, *, prompts=True, references=True):
    """Cases and traces; the app retrieves the passage of the question first, and two others."""
    gold, traces = [], []
    for number in range(cases):
        subject, kind = number // 4, number % 4
        question, answer, reference = answers(subject)[kind]
        places = [subject, (subject + 5) % 30, (subject + 11) % 30]
        retrieved = tuple(
            passage(place)[1].model_copy(update={"rank": rank})
            for rank, place in enumerate(places, start=1)
        )
        texts = "\n\n".join(p.text for p in retrieved)
        seen = {
            "prompted": tuple(p.id for p in retrieved),
            "prompt": f"Answer from these texts:\n\n{texts}\n\nQuestion: {question}",
        }
        traces.append(
            Trace(
                case_id=f"case-{number}",
                retrieved=retrieved,
                answer=answer,
                depth=20,
                **(seen if prompts else {}),
            )
        )
        gold.append(
            Case(
                id=f"case-{number}",
                question=question,
                relevant={p.id: 1 for p in retrieved[: 2 if kind == 3 else 1]},
                references=(reference,) if references else (),
            )
        )
    return gold, traces


def good_run(cases=45, **options):
    """A judged run of them in memory; `out` writes its folder."""
    gold, traces = good_traces(
        cases, **{name: options.pop(name) for name in ("prompts", "references") if name in options}
    )
    settings = {"judge": "heuristic", "cache": None, "k": K, **options}
    return misslink.evaluate(goldset=gold, traces=traces, **settings)
