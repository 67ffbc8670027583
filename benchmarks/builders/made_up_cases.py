"""Cases, traces and verdicts over a corpus, all in a made-up language, as `link_speed.py` links them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from misslink.types import Case, Claim, Passage, Trace, Verdict

SEED = 20261122
K, RETRIEVED, DEEP = 5, 10, 30
WORDS, SENTENCES, VOCABULARY = 14, 11, 12_000
SYLLABLES = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "zo"]
ENDINGS = ["", "", "", "s", "ing", "ed", "ation", "ly", "ness"]
SMALL = [
    *("the", "the", "the", "of", "of", "and", "and", "to", "to", "in", "in", "is", "a", "a"),
    *("with", "for", "on", "as", "are", "it", "by", "be", "from", "after", "not", "which", "or"),
    *("that", "this", "two", "one", "12"),
]  # fmt: skip


@dataclass(frozen=True)
class MadeUp:
    """A run before it is linked."""

    cases: list[Case]
    traces: list[Trace]
    verdicts: list[dict[str, Verdict]]
    corpus: list[Passage]


def made_up(cases: int, passages: int) -> MadeUp:
    """Draw cases, traces, verdicts and a corpus."""
    draw = random.Random(SEED)  # noqa: S311
    words = [
        "".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) + draw.choice(ENDINGS)
        for _ in range(VOCABULARY)
    ]
    # As in any language, some words stand everywhere and most nearly nowhere.
    weights = np.cumsum([1 / (rank + 10) for rank in range(VOCABULARY)]).tolist()

    def sentence(count: int = WORDS) -> str:
        drawn = draw.choices(words, cum_weights=weights, k=count)
        mixed = [word for each in drawn for word in (each, draw.choice(SMALL))][:count]
        return " ".join(mixed).capitalize() + "."

    texts: list[str] = []
    for place in range(passages):
        if place % 100 == 1:
            texts.append(texts[-1] + " " + sentence(2))
        else:
            texts.append(" ".join(sentence() for _ in range(SENTENCES)))
    corpus = [Passage(id=f"p{at}", text=text, rank=at + 1) for at, text in enumerate(texts)]
    made = MadeUp([], [], [], [Passage.model_validate_json(p.model_dump_json()) for p in corpus])
    for number in range(cases):
        one = _case(draw, number, corpus, sentence)
        made.cases.append(one[0])
        made.traces.append(Trace.model_validate_json(one[1].model_dump_json()))
        made.verdicts.append(one[2])
    return made


def _case(
    draw: random.Random, number: int, corpus: list[Passage], sentence: Callable[..., str]
) -> tuple[Case, Trace, dict[str, Verdict]]:
    needed, missed = draw.choice(corpus), number % 3 == 0
    said = needed.text.split(". ")
    question = " ".join((draw.choice(said).split() + sentence().split())[::3]) + f" {number}?"
    others = [one for one in draw.sample(corpus, DEEP) if one.id != needed.id]
    at = draw.randrange(RETRIEVED, DEEP - 1) if missed else draw.randrange(K)
    ranked = [*others[:at], needed, *others[at:]]
    if missed and draw.random() < 0.3:  # not within reach
        ranked.remove(needed)
    ranked = [one.model_copy(update={"rank": at}) for at, one in enumerate(ranked, start=1)]
    scored = [one.model_copy(update={"score": 1 / one.rank}) for one in ranked]
    case = Case(id=f"c{number}", question=question, relevant={needed.id: 1}, answerable=True,
                references=(draw.choice(said),), category=f"kind {number % 5}")  # fmt: skip
    trace = Trace(
        case_id=case.id,
        retrieved=tuple(scored[:RETRIEVED]),
        deeper=tuple(ranked) if missed else (),
        depth=DEEP if missed else None,
        answer="An answer.",
    )  # fmt: skip
    bad = draw.random() < (0.6 if missed else 0.1)
    near = f"{draw.choice(said)} {draw.choice(SMALL)}."
    texts = [sentence(), near, sentence()] if bad else [f"{one}." for one in said[:3]]
    claims = tuple(
        Claim(text=text, support="unsupported" if bad else "supported") for text in texts
    )
    base = {"case_id": case.id, "status": "scored", "judge": "made-up"}
    return case, trace, {
        "faithfulness": Verdict(**base, metric="faithfulness", value=float(not bad),
                                label=not bad, claims=claims),
        "correctness": Verdict(**base, metric="correctness", value=float(not bad), label=not bad),
    }  # fmt: skip
