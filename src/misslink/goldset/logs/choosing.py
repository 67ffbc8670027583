"""Which questions of a log become a gold set: the frequent, the failing, and one of each kind."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from misslink.errors import InputError
from misslink.goldset.logs.clustering import clusters, word_vectors
from misslink.goldset.logs.failures import SIGNALS
from misslink.goldset.logs.grouping import Group
from misslink.goldset.logs.request import Request
from misslink.goldset.weights import shared_out

__all__ = ["CLUSTERED", "Chosen", "Shares", "choose"]

Why = Literal["head", "failure", "tail"]
Vectors = Callable[[Sequence[str]], Awaitable[Any]]

_REPEATED = 2  # a question that nobody repeated is not frequent
CLUSTERED = 20_000  # questions of the tail at most; of more so many are drawn
_EXACT = 1e-9


@dataclass(frozen=True)
class Shares:
    """How a gold set from logs is made up; the three shares add up to 1."""

    head: float = 0.4
    tail: float = 0.4
    failures: float = 0.2

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        given = (self.head, self.tail, self.failures)
        if not all(0 <= share <= 1 for share in given) or abs(sum(given) - 1) > _EXACT:
            told = ", ".join(f"{share:g}" for share in given)
            raise InputError(
                f"the shares of --head, --tail and --failures ({told}) add up to {sum(given):g}; "
                "give three from 0 to 1 that add up to 1"
            )

    def counts(self, n: int) -> tuple[int, int, int]:
        """How many of n each is, by the largest remainder.

        >>> Shares(0.4, 0.4, 0.2).counts(7)
        (3, 3, 1)
        """
        found = shared_out(n, {"head": self.head, "tail": self.tail, "failures": self.failures})
        return found["head"], found["tail"], found["failures"]


@dataclass(frozen=True)
class Chosen:
    """A question that was chosen.

    Parameters
    ----------
    group : Group
    request : int
        Number of the request that stands for it.
    why : {'head', 'failure', 'tail'}
    signals : sequence of str
        How requests of the group failed; see `failing`.
    failed : int
        How many of them.
    """

    group: Group
    request: int
    why: Why
    signals: tuple[str, ...]
    failed: int


async def choose(
    requests: Sequence[Request],
    groups: Sequence[Group],
    failures: Sequence[tuple[str, ...]],
    n: int,
    shares: Shares,
    *,
    vectors: Vectors | None = None,
    seed: int = 0,
) -> list[Chosen]:
    """Choose up to n groups, each once.

    Head are the most frequent of those asked at least twice. Failures are the groups with most
    failing requests, the signals taking turns. The tail are the middles of clusters of all others,
    so that every kind of question is there however rare. What one of the first two lacks the tail
    gets, and what the tail lacks the next most frequent.

    Parameters
    ----------
    requests : sequence of Request
    groups : sequence of Group
        Of these requests, the largest first.
    failures : sequence of sequence of str
        The signals of each request.
    n : int
    shares : Shares
    vectors : callable, optional
        Gives unit vectors of questions; without it words are compared.
    seed : int

    Returns
    -------
    list of Chosen
        Head, failures, tail, each in its order.
    """
    head, _, failed = shares.counts(n)
    left = dict(enumerate(groups))
    chosen = [_chosen(left.pop(at), "head", requests, failures) for at in _frequent(left, head)]
    worst = _worst(left, failures, failed)
    chosen += [_chosen(left.pop(at), "failure", requests, failures) for at in worst]
    wanted = min(n - len(chosen), len(left)) if shares.tail else 0
    if wanted:
        spread = await _spread(left, wanted, vectors, seed)
        chosen += [_chosen(left.pop(at), "tail", requests, failures) for at in spread]
    more = list(left)[: n - len(chosen)]
    return chosen + [_chosen(left[at], "head", requests, failures) for at in more]


def _frequent(groups: dict[int, Group], most: int) -> list[int]:
    """The largest groups: they stand in front."""
    return [at for at, group in groups.items() if len(group.members) >= _REPEATED][:most]


def _worst(groups: dict[int, Group], failures: Sequence[tuple[str, ...]], most: int) -> list[int]:
    """Groups that failed, by turns of one for each signal, those that failed most first."""
    by_signal: dict[str, list[tuple[int, int]]] = {signal: [] for signal in SIGNALS}
    for at, group in groups.items():
        failed = [failures[number] for number in group.members if failures[number]]
        if failed:
            surest = min((signals[0] for signals in failed), key=SIGNALS.index)
            by_signal[surest].append((-len(failed), at))
    queues = [sorted(queue, reverse=True) for queue in by_signal.values()]
    found: list[int] = []
    while len(found) < most and any(queues):
        found += [queue.pop()[1] for queue in queues if queue]
    return found[:most]


async def _spread(
    groups: dict[int, Group], k: int, vectors: Vectors | None, seed: int
) -> list[int]:
    """The group nearest to the middle of each of k clusters, the largest cluster first."""
    places = list(groups)
    if len(places) > CLUSTERED:
        places = sorted(random.Random(seed).sample(places, CLUSTERED))  # noqa: S311 (no secret)
    pool = [groups[at] for at in places]
    rows = (
        word_vectors([group.stems for group in pool])
        if vectors is None
        else await vectors([group.wording for group in pool])
    )
    label, cosine = clusters(rows, min(k, len(pool)), seed)
    best: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for row, cluster in enumerate(label.tolist()):
        sizes[cluster] = sizes.get(cluster, 0) + 1
        if cluster not in best or cosine[row] > cosine[best[cluster]]:
            best[cluster] = row
    ordered = sorted(best, key=lambda cluster: (-sizes[cluster], best[cluster]))
    return [places[best[cluster]] for cluster in ordered]


def _chosen(
    group: Group, why: Why, requests: Sequence[Request], failures: Sequence[tuple[str, ...]]
) -> Chosen:
    failed = [number for number in group.members if failures[number]]
    signals = {signal for number in failed for signal in failures[number]}
    candidates: Sequence[int] = group.members
    if why == "failure":
        surest = min((failures[number][0] for number in failed), key=SIGNALS.index)
        candidates = [number for number in failed if surest in failures[number]]
    else:
        worded = [n for n in candidates if " ".join(requests[n].question.split()) == group.wording]
        candidates = worded or candidates
    # The latest of those of which the log tells most.
    request = max(
        candidates,
        key=lambda n: (requests[n].passages is not None, requests[n].answer is not None, n),
    )
    told = tuple(signal for signal in SIGNALS if signal in signals)
    return Chosen(group, request, why, told, len(failed))
