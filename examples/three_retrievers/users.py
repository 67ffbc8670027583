"""Who asks, what they ask, and what pleases them: a model of users, every assumption in one place.

No number here was measured, and none was fitted to a result: they are assumptions. They are the
same whichever retriever answers: it enters only by what it found, by what was answered from it,
and by how long it is said to take.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrievers import UNKNOWN

from misslink.text.normalization import STOPWORDS, fold, sentence_spans
from misslink.types import Case

# How often users ask a question of a category, relative to the others; the gold set has about as
# many of each. Users look things up and ask how to do things; few compare or dig.
CATEGORIES = {
    "simple_factual": 3.0,
    "procedural": 3.0,
    "entity_centric": 2.0,
    "complex_factual": 1.0,
    "comparative": 1.0,
    "negative": 1.0,
}
OTHER_CATEGORIES = 1.0
ASKS_AGAIN = 0.5  # chance that a user asks one more question; so two questions a user on average
MOST_QUESTIONS = 6
TYPES_KEYWORDS = 0.4  # share of questions typed as keywords, without the words between them
GIVES_THUMBS = 0.4  # share of requests after which a thumb is given at all
TEMPER = 0.7  # standard deviation of what users differ by, in log-odds of being satisfied
PATIENCE_S, PATIENCE_SPREAD = 3.0, 0.5  # median and spread (log-normal) of what users wait for

# Seconds until the answer: medians of a log-normal. In this process every answer takes
# milliseconds; these stand for a search server, an embedding server, and both in turn.
LATENCY_S = {"keyword": 0.8, "vector": 1.1, "hybrid": 1.3}
LATENCY_SPREAD = 0.3

# Chance that a user of even temper who was answered in time is satisfied.
ANSWERED = 0.9  # the answer says what was needed
FIND_IT_THEMSELVES = 0.45  # it does not, but a passage shown beneath it does
MISLED = 0.1  # neither does
TOLD_SO = 0.6  # nothing in the reference answers the question, and the app says so
NOT_TOLD_SO = 0.1  # and the app answers all the same


@dataclass(frozen=True)
class Visit:
    """One question of one user, with everything that chance decides.

    Parameters
    ----------
    user : str
    case : Case
    question : str
        As the user types it.
    temper : float
        Log-odds that this user's satisfaction is shifted by; the same in all of a user's visits.
    patience_s : float
    delay : float
        By what the variant's median latency is multiplied.
    luck, thumbs : float
        In [0, 1): satisfied where `luck` is below the chance of it; a thumb where `thumbs` is
        below ``GIVES_THUMBS``.
    """

    user: str
    case: Case
    question: str
    temper: float
    patience_s: float
    delay: float
    luck: float
    thumbs: float

    def latency_s(self, variant: str) -> float:
        """How long `variant` takes, in seconds."""
        return LATENCY_S[variant] * self.delay


def visits(cases: Sequence[Case], users: int, *, seed: int) -> list[Visit]:
    """The visits of `users` users, in the order in which they come.

    A user's visits depend on the seed and the user's number alone, so more users leave those
    before them as they were.
    """
    weights = [CATEGORIES.get(case.category or "", OTHER_CATEGORIES) for case in cases]
    found = [
        visit for number in range(users) for visit in _visits(cases, weights, f"{seed}-{number}")
    ]
    random.Random(f"order {seed}").shuffle(found)
    return found


def _visits(cases: Sequence[Case], weights: Sequence[float], user: str) -> Iterator[Visit]:
    chance = random.Random(f"user {user}")
    temper = chance.gauss(0, TEMPER)
    patience = chance.lognormvariate(math.log(PATIENCE_S), PATIENCE_SPREAD)
    for _ in range(MOST_QUESTIONS):
        (case,) = chance.choices(cases, weights)
        typed = chance.random() < TYPES_KEYWORDS
        yield Visit(
            user=user,
            case=case,
            question=keywords(case.question) if typed else case.question,
            temper=temper,
            patience_s=patience,
            delay=chance.lognormvariate(0, LATENCY_SPREAD),
            luck=chance.random(),
            thumbs=chance.random(),
        )
        if chance.random() >= ASKS_AGAIN:
            return


def keywords(question: str) -> str:
    """The question as typed into a search box.

    >>> keywords("Which pair does popitem() take off a dictionary?")
    'pair popitem() take dictionary'
    """
    words = [word.strip("?.,;:!") for word in question.split()]
    return " ".join(word for word in words if word and fold(word) not in STOPWORDS) or question


def is_satisfied(visit: Visit, variant: str, passages: Sequence[str], answer: str) -> bool:
    """Whether the user is, by the passages shown and the answer given."""
    if visit.latency_s(variant) > visit.patience_s:
        return False  # gone before it came
    even = chance_of(visit.case, passages, answer)
    return visit.luck < 1 / (1 + math.exp(-math.log(even / (1 - even)) - visit.temper))


def chance_of(case: Case, passages: Sequence[str], answer: str) -> float:
    """The chance that a user of even temper is satisfied, had it come in time."""
    if not case.evidence:
        return TOLD_SO if answer == UNKNOWN else NOT_TOLD_SO
    if says(answer, case):
        return ANSWERED
    is_there = any(fold(one) in fold(passage) for passage in passages for one in case.evidence)
    return FIND_IT_THEMSELVES if is_there else MISLED


def says(answer: str, case: Case) -> bool:
    """Whether a sentence of the answer is one of the case's verbatim evidence, or a part of it."""
    said = [fold(answer[start:stop]) for start, stop in sentence_spans(answer)]
    wanted = [fold(one) for one in case.evidence]
    return any(one in text or text in one for one in wanted for text in said)
