"""The judge that the judge server is by default: lexical, and true to what it reads."""

from __future__ import annotations

import re
from typing import Any

from misslink.judging.examination import examine
from misslink.judging.protocol import Ask
from misslink.text import content_words, fold, sentences

Body = dict[str, Any]

_FENCED = re.compile(r"<(\w+) ([0-9a-f]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)
_DECLINES = re.compile(r"\b(cannot|can't|don't|do not|does not|unable|no information|not know)\b")


def small_ask(n: int) -> Ask:
    """The `n`-th of a family of short asks, one claim supported and one not."""
    passage = f"By day the sky over town {n} is blue. Clouds are white."
    return examine(
        f"What colour is the sky over town {n}?",
        (passage, "Grass is green."),
        f"The sky over town {n} is blue. Grass is red.",
    )


def fenced(body: Body) -> list[tuple[str, str]]:
    """The fenced texts of the user message, each with its label."""
    user = body["messages"][-1]["content"]
    return [(found.group(1), found.group(3)) for found in _FENCED.finditer(user)]


def honest(body: Body) -> Body | str:
    """Examine lexically: a sentence is supported exactly if a passage contains it."""
    texts = fenced(body)
    by_label = dict(texts)
    if "answer" not in by_label:
        return "yes"
    question, answer = by_label["question"], by_label["answer"]
    passages = [text for label, text in texts if label.startswith("passage_")]
    references = [text for label, text in texts if label.startswith("reference_")]
    declines = _DECLINES.search(fold(answer)) is not None
    claims = [] if declines else [_claim(said, passages, references) for said in _cut(answer)]
    asked = set(content_words(question))
    quotes = [fold(claim["quote"]) for claim in claims if claim["quote"]]
    said: Body = {
        "claims": claims,
        "passages": [
            {
                "passage": n,
                "relevant": len(asked & set(content_words(text))) > 1
                or any(quote in fold(text) for quote in quotes),
            }
            for n, text in enumerate(passages, 1)
        ],
        "response": "declines" if declines else "answers" if claims else "evades",
    }
    if references:
        said["reference_claims"] = [
            {
                "reference": n,
                "text": fact,
                "answer": "states" if fold(fact).rstrip(".") in fold(answer) else "omits",
            }
            for n, text in enumerate(references, 1)
            for fact in _cut(text)
        ]
    return said


def _claim(said: str, passages: list[str], references: list[str]) -> Body:
    bare = fold(said).rstrip(".")
    found = any(bare in fold(text) for text in passages)
    claim: Body = {
        "text": said,
        "support": "supported" if found else "unsupported",
        "quote": said.rstrip(".") if found else None,
    }
    if references:
        agrees = any(bare in fold(text) for text in references)
        claim["reference"] = "agrees" if agrees else "silent"
    return claim


def _cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]
