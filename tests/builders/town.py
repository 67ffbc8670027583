"""A small town of passages and a run over it, whose ranks are known."""

import hashlib

import numpy as np

from misslink.types import Case, Link, Passage, Run, Trace, Verdict

WORDS = (
    *("harbour", "ferry", "bakery", "library", "museum"),
    *("tower", "market", "garden", "school", "station"),
)


def passage(number, rank=1, text=None):
    word = WORDS[number % len(WORDS)]
    said = f"The {word} of ward {number} opens at {number % 12 + 1} and is run by warden {number}."
    return Passage(id=f"p{number}", text=said if text is None else text, rank=rank)


def ranked(numbers):
    return tuple(passage(number, rank) for rank, number in enumerate(numbers, start=1))


def corpus(count=60):
    return ranked(range(count))


def case(number, **more):
    word = WORDS[number % len(WORDS)]
    told = {"relevant": {f"p{number}": 1}, **more}
    return Case(id=f"c{number}", question=f"When opens the {word} of ward {number}?", **told)


def others(number, count):
    return [(number + step) % 60 for step in range(1, count + 1)]


def trace(number, at, k=3, depth=20):
    """The needed passage at a rank; found by asking deeper where it is beyond k."""
    listed = others(number, k)
    deeper = ()
    if at is not None and at <= k:
        listed = [*listed[: at - 1], number, *listed[at - 1 : k - 1]]
    elif at is not None:
        deeper = (passage(number, rank=at),)
    return Trace(case_id=f"c{number}", retrieved=ranked(listed), deeper=deeper, depth=depth)


def link(number, retrieval, answer="faithful"):
    failure = {"faithful": "passed", "unfaithful": "retrieval_miss", "unknown": None}[answer]
    return Link(
        case_id=f"c{number}", retrieval=retrieval, answer=answer, failure=failure, reason="planted"
    )


def run_of(places, *, bad=(), k=3, replay=None, verdicts=()):
    """A run whose case n has its needed passage at rank places[n]; `bad` are unfaithful."""
    numbers = range(len(places))
    return Run(
        manifest={"misslink": "0", "inputs": {}},
        cases=[case(number) for number in numbers],
        traces=[trace(number, places[number], k) for number in numbers],
        verdicts=verdicts,
        links=[
            link(
                number,
                "hit" if places[number] is not None and places[number] <= k else "miss",
                "unfaithful" if number in bad else "faithful",
            )
            for number in numbers
        ],
        summary={"run": None, "k": k},
        replay=replay,
    )


class Hashed:
    """An embedding of words by hash, whose vectors anybody can work out again."""

    name = "hashed"

    def __init__(self, dimensions=256):
        self.dimensions = dimensions
        self.calls = 0

    def one(self, text):
        vector = np.zeros(self.dimensions, dtype=np.float32)
        for word in text.lower().replace("?", "").replace(".", "").split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimensions] += 1
        return vector.tolist()

    def embed_documents(self, texts):
        self.calls += 1
        return [self.one(text) for text in texts]

    def embed_query(self, text):
        return self.one(text)


def scored(case_id, metric="context_relevance", **told):
    return Verdict(case_id=case_id, metric=metric, status="scored", value=1, judge="j", **told)
