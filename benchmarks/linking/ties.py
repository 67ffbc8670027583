"""Whether a claim is tied to the missed passage that it needed, where several were missed.

    python benchmarks/linking/ties.py            # 300 cases a row, seconds
    python benchmarks/linking/ties.py --write    # the table replaces ties.md

Subjects, facts and ranks are invented. Every case misses three to five passages: one about the claim,
and others about the same subject or of the same wording, most of them with a better rank and grade. The
passage about the claim says the same, another number, or the negation.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.judge.protocol import Ask, Judge, Reply
from misslink.linking.claim_support import (
    ClaimNeed,
    ClaimNeeds,
    Relation,
    judge_claim_needs,
    link_claims,
)
from misslink.types import Claim, ClaimLink, RetrievalMiss

PAGE = Path(__file__).with_suffix(".md")
ROUNDS = 300
SYLLABLES = ("bra", "del", "fon", "gis", "kor", "lum", "mep", "nal", "pos", "tar", "vel")
# Each with its negation; {s} is a subject, {v} a number.
STATEMENTS = (
    ("The {s} leaves the quay at {v} past eight.", "The {s} does not leave the quay at {v} past eight."),
    ("A ticket for the {s} costs {v} crowns.", "A ticket for the {s} never costs {v} crowns."),
    ("Service of the {s} is due every {v} hours.", "Service of the {s} is not due every {v} hours."),
    ("The {s} has room for {v} cars on its deck.", "The {s} has no room for {v} cars on its deck."),
    ("The {s} is painted again after {v} years.", "The {s} is not painted again after {v} years."),
)  # fmt: skip
FRAMES = (
    ("The office keeps a page on each of them.", "Changes are posted at the gate."),
    ("This is printed in the yearly leaflet.", "Dogs travel free of charge."),
    ("Read the notes before any work.", "Spare parts are listed at the end."),
)
KINDS: dict[str, Relation] = {
    "the same": "would_support",
    "another number": "would_contradict",
    "the negation": "would_contradict",
}


@dataclass(frozen=True)
class Tie:
    """A claim, the missed passages, and the sentence that is about the claim."""

    kind: str
    claim: str
    right: str
    sentence: str
    missed: tuple[RetrievalMiss, ...]


def planted(kind: str, seed: int) -> Tie:
    """A claim and its missed passages."""
    generator = random.Random(f"{kind} {seed}")  # noqa: S311
    subject, other = ("".join(generator.sample(SYLLABLES, 3)).capitalize() for _ in range(2))
    about, *rest = generator.sample(STATEMENTS, len(STATEMENTS))
    value, changed = generator.sample(range(11, 99), 2)
    sentence = about[kind == "the negation"].format(
        s=subject, v=changed if kind == "another number" else value
    )
    others = [about[0].format(s=other, v=value), about[0].format(s=other, v=changed)]
    others += [
        statement[generator.random() < 0.5].format(s=subject, v=generator.randrange(11, 99))
        for statement in rest
    ]
    texts = [sentence, *generator.sample(others, generator.randint(2, 4))]
    generator.shuffle(texts)
    missed = []
    for number, text in enumerate(texts):
        before, after = generator.choice(FRAMES)
        is_right = text == sentence
        missed.append(
            RetrievalMiss(
                passage_id=f"p{number}", text=f"{before} {text} {after}",
                grade=1 if is_right else generator.choice((1, 2)),
                true_rank=generator.choice((40, 60, None)) if is_right else generator.randint(6, 50),
            )
        )  # fmt: skip
    right = f"p{texts.index(sentence)}"
    return Tie(kind, about[0].format(s=subject, v=value), right, sentence, tuple(missed))


class ExactJudge:
    """Knows which passage is about the claim, and how it differs from it."""

    name = "exact"
    identity: Mapping[str, Any] = {"judge": "exact ties"}

    def __init__(self, tie: Tie) -> None:
        self._tie = tie

    async def ask(self, ask: Ask) -> Reply:
        """Answer about the one claim."""
        passages = ask.inputs["passages"]
        number = next((n for n, text in enumerate(passages, 1) if self._tie.sentence in text), None)
        need = ClaimNeed(claim=1, relation="unrelated")
        if number is not None:
            need = ClaimNeed(
                claim=1, relation=KINDS[self._tie.kind], passage=number, quote=self._tie.sentence
            )
        return Reply(ClaimNeeds(claims=(need,)), "")

    async def close(self) -> None:
        """Nothing is held open."""


def ties(kind: str, rounds: int, *, exact: bool) -> Iterator[tuple[Tie, ClaimLink]]:
    """Every planted case with the link that its claim gets."""
    for seed in range(rounds):
        tie = planted(kind, seed)
        judge: Judge | None = ExactJudge(tie) if exact else None
        claims = [(0, Claim(text=tie.claim, support="unsupported"))]
        texts = tuple(miss.text for miss in tie.missed if miss.text)
        told = {}
        if judge is not None:
            asked = judge_claim_needs((claims[0][1].text,), (), texts, "", judge)
            told = asyncio.run(asked)
        (link,) = link_claims(claims, tie.missed, told)
        yield tie, link


def shares(kind: str, rounds: int, *, exact: bool) -> tuple[float, float, float]:
    """Shares of the right passage, of the right relation, and of 'would_support'."""
    found = list(ties(kind, rounds, exact=exact))
    return (
        sum(link.passage_id == tie.right for tie, link in found) / rounds,
        sum(link.relation == KINDS[kind] for _, link in found) / rounds,
        sum(link.relation == "would_support" for _, link in found) / rounds,
    )


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark; write its page if asked to."""
    lines = [
        "| judge | the passage says | right passage | right relation | would support |",
        "|---" * 5 + "|",
    ]
    for exact in (True, False):
        for kind in KINDS:
            cells = " | ".join(f"{share:.1%}" for share in shares(kind, ROUNDS, exact=exact))
            lines.append(f"| {'exact' if exact else 'heuristic'} | {kind} | {cells} |")
    table = "\n".join(lines)
    print(table)
    if "--write" in arguments:
        PAGE.write_text(
            "# Ties of claims to missed passages\n\n`python benchmarks/linking/ties.py --write`: "
            f"{ROUNDS} invented cases a row, each with three to five missed passages; the one about the "
            "claim seldom has the best rank or grade. The exact judge sees every difference.\n\n"
            f"{table}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main(sys.argv[1:])
