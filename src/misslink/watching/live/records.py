"""What a live log holds, as its reader gives it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["KINDS", "MODES", "OUTCOMES", "Exposure", "Feedback", "Live", "Plan", "Variant"]

# assigned: by the split, and the only mode whose user metrics compare variants.
# excluded: got control, by the exclusion. override: a tester chose. no_unit: nobody knows whose
# request it was, so control. shadow: asked beside the request `of`, and answered nobody.
# interleaved: a list of passages drawn from two retrievers by `teams`.
MODES = ("assigned", "excluded", "override", "no_unit", "shadow", "interleaved")
# ok: what was assigned was served. fell_back: it failed and control was served (interleaved: one
# retriever failed). failed: nothing was served, or the shadow failed. left: the request was
# cancelled, or its reader left the stream. dropped: a shadow for which there was no room.
OUTCOMES = ("ok", "fell_back", "failed", "left", "dropped")
# Feedback kinds that misslink knows; others are the user's own.
KINDS = ("thumbs", "task_done", "cost", "latency", "reformulation", "click", "use")


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment was like from some moment on.

    Parameters
    ----------
    id : int
    since : float
        When the first process came up with it, in seconds since 1970.
    control : str
    split, shadow : mapping of str to float
        Planned shares when the ramp is over, adding up to 1; shares of requests shadowed.
    excluded : float or None
        The excluded share; None: a predicate of the user's own.
    ramp : tuple of (float, float)
        Moments in seconds since 1970, and the share open from then on; empty: none.
    linear : bool
        Whether the ramp grows evenly.
    is_salted : bool
        Whether unit hashes have a salt.
    salt_check : str
        Two plans whose checks differ hash the same unit differently: their units do not join.
    """

    id: int
    since: float
    control: str
    split: Mapping[str, float]
    shadow: Mapping[str, float]
    excluded: float | None
    ramp: tuple[tuple[float, float], ...]
    linear: bool
    is_salted: bool
    salt_check: str


@dataclass(frozen=True, slots=True)
class Exposure:
    """One request to one variant.

    Parameters
    ----------
    id : str
        The app's own where it gave one (``misslink_exposure``).
    plan : int
        The `Plan` in force.
    unit : str or None
        The hash of the user or session; None: not known.
    variant : str or None
        What was assigned, or shadowed; None: both, interleaved.
    served : str or None
        What answered; None: nothing did, or both, interleaved.
    mode, outcome : str
        See `MODES` and `OUTCOMES`.
    open_share : float
        The share of the ramp that was open, in [0, 1]: the planned share of a treatment was its
        share in the split times this.
    at : float
        When the request came, by this process's clock, in seconds since 1970.
    latency_s : float or None
        Until the answer was complete, a failed variant's time included; None: never asked.
    error : str or None
        What went wrong, with the names of the errors; their words only where texts are kept.
    of : str or None
        The exposure that a shadow stood beside.
    prompt_tokens, completion_tokens : int or None
        Of all models asked; None: none reported any.
    cost : float or None
        In the money of the user's own price; None: not known.
    retrieved : tuple of str or None
        Ids of the passages retrieved, best first; None: no retrieval was seen.
    teams : tuple of (str or None) or None
        Interleaved: for each of `retrieved` the variant whose it is; None where it is nobody's.
    question_hash : str or None
        Keyed as the unit is. The same question has the same.
    question, answer : str or None
        Only where texts are kept.
    """

    id: str
    plan: int
    unit: str | None
    variant: str | None
    served: str | None
    mode: str
    outcome: str
    open_share: float
    at: float
    latency_s: float | None
    error: str | None
    of: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    retrieved: tuple[str, ...] | None
    teams: tuple[str | None, ...] | None
    question_hash: str | None
    question: str | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a unit said or did.

    Parameters
    ----------
    exposure : str or None
        The request that it is about; None: only the unit is known.
    unit : str or None
        The unit's hash; from the exposure where only that was given and it is in the log.
    kind : str
        One of `KINDS`, or the user's own.
    value : float
        thumbs and task_done: 1 or 0. cost and latency (seconds): a number from 0. reformulation,
        click, use: 1.
    passage : str or None
        What was clicked or used.
    at : float
        Seconds since 1970.
    """

    exposure: str | None
    unit: str | None
    kind: str
    value: float
    passage: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the latest plan.

    Parameters
    ----------
    name : str
    planned : float
        Its share of the split, in [0, 1]; 0 for a shadow.
    shadow : float
        The share of requests that it shadows, in [0, 1].
    is_control : bool
    """

    name: str
    planned: float
    shadow: float
    is_control: bool


@dataclass(frozen=True, slots=True)
class Live:
    """One experiment of a live log.

    Parameters
    ----------
    path, experiment, control : str
    variants : tuple of Variant
        Of the latest plan, control first.
    plans : tuple of Plan
        Oldest first; more than one where split, ramp or salt were changed.
    exposures : tuple of Exposure
        In the order in which they were written, which a clock set back does not change.
    feedback : tuple of Feedback
        In that order too.
    lost : int
        Rows that the writers gave up, because the log could not be written for too long.
    read_at : dt.datetime
    """

    path: str
    experiment: str
    control: str
    variants: tuple[Variant, ...]
    plans: tuple[Plan, ...]
    exposures: tuple[Exposure, ...]
    feedback: tuple[Feedback, ...]
    lost: int
    read_at: dt.datetime

    def planned(self, exposure: Exposure) -> dict[str, float]:
        """The split that was in force for `exposure`, its ramp included; it adds up to 1."""
        plan = next(plan for plan in self.plans if plan.id == exposure.plan)
        treated = {
            name: share * exposure.open_share
            for name, share in plan.split.items()
            if name != plan.control
        }
        return {plan.control: 1.0 - sum(treated.values()), **treated}
