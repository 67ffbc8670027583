"""The judge that the judge server is by default: lexical, and true to what it reads."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel

from fake_judge import complete, wanted_schema
from misslink.judge.examination import examine
from misslink.judge.protocol import Ask
from misslink.text.normalization import content_words, fold, sentence_spans

Body = dict[str, Any]

_FENCED = re.compile(r"<(\w+) ([a-p]+)>\n(.*?)\n</\1 \2>", re.DOTALL)
_CITES = re.compile(r"^statement_(\d+) cites ([\d, ]+)\.$", re.MULTILINE)
_DECLINES = re.compile(r"\b(cannot|can't|don't|do not|does not|unable|no information|not know)\b")


def small_ask(n: int) -> Ask:
    """The `n`-th of a family of short asks, one claim supported and one not."""
    passage = f"By day the sky over town {n} is blue. Clouds are white."
    return examine(
        f"What colour is the sky over town {n}?",
        (passage, "Grass is green."),
        f"The sky over town {n} is blue. Grass is red.",
    )


class Label(BaseModel):
    """A reply of one label, for asks whose reply is told in a test."""

    supported: Literal["yes", "no"]


def label_ask(n: int) -> Ask:
    """The `n`-th of a family of asks for one label."""
    return replace(small_ask(n), schema=Label)


YES, NO = (f'{{"supported": "{label}"}}' for label in ("yes", "no"))


def fenced(body: Body) -> list[tuple[str, str]]:
    """The fenced texts of the user's messages, each with its label."""
    user = "\n".join(m["content"] for m in body["messages"] if m.get("role", "user") == "user")
    return [(found.group(1), found.group(3)) for found in _FENCED.finditer(user)]


def honest(body: Body) -> Body | str:
    """Examine lexically, and fill every field of the schema that this judge does not know."""
    return complete(wanted_schema(body), _judge(body))


def _judge(body: Body) -> Body | str:
    """A sentence is supported exactly if a passage contains it.

    Of two answers the better one is no refusal, and speaks of more of what the question names.
    """
    texts = fenced(body)
    by_label = dict(texts)
    if "statement_1" in by_label:
        return _citations(body["messages"][-1]["content"], by_label)
    if {"first", "second"} <= set(by_label):
        return _preference(by_label)
    if "claim_1" in by_label and "answer" not in by_label:
        return _needs(texts)
    if "answer" not in by_label:
        return "yes"
    question, answer = by_label["question"], by_label["answer"]
    passages = [text for label, text in texts if label.startswith("passage_")]
    references = [text for label, text in texts if label.startswith("reference_")]
    declines = _DECLINES.search(fold(answer)) is not None
    numbered = [text for label, text in texts if label.startswith("claim_")]
    stated = numbered or ([] if declines else _cut(answer))
    claims = [_claim(said, passages, references) for said in stated]
    asked = set(content_words(question))
    quotes = [fold(quote) for claim in claims for quote in claim["quotes"]]
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
    told = {word for text in passages for word in content_words(text)}
    said["sufficient"] = "yes" if asked <= told else "partly" if asked & told else "no"
    facts = [fold(fact).rstrip(".") for text in references for fact in _cut(text)]
    if facts:  # what the reference says, which the words of the question are not
        held = [any(fact in fold(text) for text in passages) for fact in facts]
        said["sufficient"] = "yes" if all(held) else "partly" if any(held) else "no"
    if numbered:
        return _part(said)
    said["helpful"] = 1 if declines else 5 if len(quotes) == len(claims) else 3
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


def _part(said: Body) -> Body:
    """Of a part of a long context: the claims by number, and nothing of the answer as a whole."""
    claims = [
        {"claim": n, "support": claim["support"], "quotes": claim["quotes"]}
        for n, claim in enumerate(said["claims"], 1)
    ]
    return {"claims": claims, "passages": said["passages"], "sufficient": said["sufficient"]}


def _preference(texts: dict[str, str]) -> Body:
    """Which answer is better."""
    asked = set(content_words(texts["question"]))

    def merit(answer: str) -> tuple[bool, int]:
        declines = _DECLINES.search(fold(answer)) is not None
        return not declines, len(asked & set(content_words(answer)))

    first, second = merit(texts["first"]), merit(texts["second"])
    better = "tie" if first == second else "first" if first > second else "second"
    return {"better": better}


def _citations(user: str, texts: dict[str, str]) -> Body:
    """A statement is supported by a passage exactly if the passage contains it."""
    said = []
    for number, cited in _CITES.findall(user):
        statement = texts[f"statement_{number}"].rstrip(".")
        for passage in map(int, cited.split(", ")):
            found = fold(statement) in fold(texts[f"passage_{passage}"])
            said.append(
                {
                    "statement": int(number),
                    "passage": passage,
                    "supported": "yes" if found else "no",
                    "quote": statement if found else None,
                }
            )
    return {"citations": said}


def _needs(texts: list[tuple[str, str]]) -> Body:
    """A passage supports a claim it contains; a sentence that differs in one word denies it."""
    passages = [text for label, text in texts if label.startswith("passage_")]
    claims = [text for label, text in texts if label.startswith("claim_")]
    return {"claims": [_need(n, claim, passages) for n, claim in enumerate(claims, 1)]}


def _need(number: int, claim: str, passages: list[str]) -> Body:
    bare, words = fold(claim).rstrip("."), set(content_words(claim))
    entry: Body = {"claim": number, "relation": "unrelated", "passage": None, "quote": None}
    for place, text in enumerate(passages, 1):
        if bare in fold(text):
            quote = claim.rstrip(".")
            return {**entry, "relation": "would_support", "passage": place, "quote": quote}
        for sentence in _cut(text):
            others = set(content_words(sentence))
            if len(words - others) == len(others - words) == 1 and words & others:
                denied = {"relation": "would_contradict", "passage": place, "quote": sentence}
                entry = {**entry, **denied}
    return entry


def _claim(said: str, passages: list[str], references: list[str]) -> Body:
    bare = fold(said).rstrip(".")
    found = any(bare in fold(text) for text in passages)
    claim: Body = {
        "span": said,
        "claim": None,
        "support": "supported" if found else "unsupported",
        "quotes": [said.rstrip(".")] if found else [],
    }
    if references:
        agrees = any(bare in fold(text) for text in references)
        claim["reference"] = "agrees" if agrees else "silent"
    return claim


def _cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]
