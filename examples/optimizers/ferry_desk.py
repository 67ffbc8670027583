"""A made-up RAG app whose search and model follow their instructions, and its questions.

The best instructions are known, so that it is known when an optimizer has found them. No network.
"""

from __future__ import annotations

import re
from typing import Any

PLACES = [
    "Arholma",
    "Brevik",
    "Dalen",
    "Ekholm",
    "Furusund",
    "Grinda",
    "Husaro",
    "Ingmarso",
    "Kymmendo",
    "Landsort",
    "Moja",
    "Namdo",
    "Orno",
    "Ramso",
    "Sandhamn",
    "Tranholmen",
    "Uto",
    "Vaxholm",
    "Ytterby",
    "Askim",
    "Bohus",
    "Donso",
    "Foto",
    "Galtero",
    "Hono",
    "Inston",
]
PASSAGES = [
    {
        "id": place,
        "text": f"The boat to {place} is run by the harbour office and carries up to sixty people. "
        f"The fare to {place} is {11 + number} crowns. "
        f"The last boat to {place} leaves at {13 + number % 9}:{10 + number}.",
    }
    for number, place in enumerate(PLACES)
]
PASSAGE_COUNTS, LENGTHS = (1, 2, 4, 8), (60, 130, 260)
ONLY_PASSAGES = "Answer only from the passages."
EVERY_PART = "Answer every part of the question."
SAY_SO = "Say so where no passage has the answer."
RULES = (
    ONLY_PASSAGES,
    EVERY_PART,
    SAY_SO,
    "Be friendly.",
    "Write formal English.",
    "Think step by step.",
    "Keep it short.",
    "Do not apologize.",
)
SEARCH, ANSWER = "Retrieve {} passages and show {} characters of each.", "Answer the passenger."
START = {"search": SEARCH.format(1, 60), "answer": ANSWER}


def questions() -> list[dict[str, Any]]:
    """Every fourth question asks for what no passage has."""
    asked = []
    for number, (place, passage) in enumerate(zip(PLACES, PASSAGES, strict=True)):
        if number % 4 == 3:
            about = {"question": f"Who sold the boat to {place}?", "answerable": False}
        else:
            about = {
                "question": f"What is the fare to {place}, and when does its last boat leave?",
                "reference": " ".join(re.split(r"(?<=\.) ", passage["text"])[1:]),
                "relevant": [place],
            }
        asked.append({"id": place, **about})
    return asked


def is_best(instructions: dict[str, str]) -> bool:
    """Whether the search shows all that is needed, and the model has the three rules it needs."""
    best_search = instructions["search"] == SEARCH.format(PASSAGE_COUNTS[-1], LENGTHS[-1])
    needed = (ONLY_PASSAGES, EVERY_PART, SAY_SO)
    return best_search and all(rule in instructions["answer"] for rule in needed)


def numbers(instruction: str) -> tuple[int, int]:
    """Return how many passages the search's instruction asks for, and how much of each."""
    count, length = map(int, re.findall(r"\d+", instruction))
    return count, length


def retrieve(question: str, count: int, length: int) -> tuple[list[dict[str, str]], list[str]]:
    """Return the retrieved passages, and what is shown of each."""
    needed = next(n for n, place in enumerate(PLACES) if place in question)
    rank = needed % PASSAGE_COUNTS[-1]
    others = [passage for passage in PASSAGES if passage["id"] != PLACES[needed]]
    found = [*others[:rank], PASSAGES[needed], *others[rank:]][:count]
    return found, [passage["text"][:length] for passage in found]


def reply(question: str, shown: str, instruction: str) -> str:
    """Return what the made-up model answers: it does what it is told, and invents what it lacks."""
    number, place = next((n, place) for n, place in enumerate(PLACES) if place in question)
    if "fare" not in question:
        known = [] if SAY_SO in instruction else [f"Captain Berg sold the boat to {place}."]
    else:
        known = re.findall(rf"The (?:fare|last boat) to {place} [^.]*\.", shown)
        if not known and SAY_SO not in instruction:
            known = [f"The fare to {place} is {900 + number} crowns."]
    if not known:
        return "I do not know; the passages do not say."
    if EVERY_PART not in instruction:
        known = known[:1]
    if ONLY_PASSAGES not in instruction and number % 2:
        known.append("Dogs sleep in a heated cabin below deck.")
    return " ".join(known)


def run_case(asked: dict[str, Any], instructions: dict[str, str]) -> dict[str, Any]:
    """Ask the app one question; the result is what `misslink.feedback` takes."""
    retrieved, shown = retrieve(asked["question"], *numbers(instructions["search"]))
    context = "\n\n".join(shown)
    answer = reply(asked["question"], context, instructions["answer"])
    return {**asked, "retrieved": retrieved, "prompt": context, "answer": answer}
