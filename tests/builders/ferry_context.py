"""A context of twelve passages, of which the last one holds what the answer says."""

from __future__ import annotations

from misslink.judge.claims import read_claims
from misslink.judge.protocol import Examination
from misslink.types import Passage

QUESTION = "When does the night ferry to Borkum leave?"
ANSWER = "The night ferry leaves at eleven. It takes forty cars. It has a casino."
LAST = "The night ferry leaves at eleven. Dogs are welcome. It takes forty cars."


def filler(number, length=12):
    words = f"Notice {number} of the harbour speaks of gulls, nets and tar at pier {number}."
    return " ".join([words] * length)


PASSAGES = (*(filler(n) for n in range(1, 12)), LAST)


def claims_of(reply):
    passages = [Passage(id=str(n), text=text, rank=n) for n, text in enumerate(PASSAGES, 1)]
    return [
        (claim.text, claim.support, tuple(found.passage_id for found in claim.evidence))
        for claim in read_claims(reply, ANSWER, passages)
    ]


def examination(**more):
    said = {
        "claims": [{"claim": "It leaves at eleven.", "support": "unsupported", "quote": None}],
        "passages": [],
        "response": "answers",
    }
    return Examination.model_validate(said | more)
