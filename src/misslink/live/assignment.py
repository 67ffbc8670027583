"""Assign units to variants by a stable hash."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from misslink.errors import InputError, known_names
from misslink.text.normalization import valid_text

SALT_ENV = "MISSLINK_LIVE_SALT"
_LONGEST_NAME = 100
_LARGEST_SHARE = 1e12
_BITS = 2.0**53  # as many as a float holds


@dataclass(frozen=True)
class Ramp:
    """Open the planned treatment step by step; the open share never shrinks.

    Parameters
    ----------
    steps : sequence of (datetime, float)
        From each moment, open this share, in [0, 1], of the planned split: 0.1 of a planned half
        is 5% of all units. Before the first step, every unit gets control. After the last step, its
        share stays in force. Each datetime needs a time zone.
    linear : bool
        Increase the share linearly between steps instead of all at once. Default: False.

    Raises
    ------
    InputError
        There is no step, a share is outside [0, 1], a datetime has no time zone, or the shares
        shrink. If shares shrank, some units would return to control and count in both variants.
    """

    steps: Sequence[tuple[dt.datetime, float]]
    linear: bool = False

    def __post_init__(self) -> None:
        try:
            steps = tuple((moment, share) for moment, share in self.steps)
        except (TypeError, ValueError):
            steps = ()
        if not steps:
            raise InputError("A ramp needs at least one step: [(moment, share)].")
        object.__setattr__(self, "steps", steps)
        for moment, share in steps:
            if not isinstance(moment, dt.datetime) or moment.tzinfo is None:
                raise InputError(
                    f"The ramp's moment {moment} has no time zone. Write "
                    "datetime(2026, 1, 31, 9, tzinfo=timezone.utc)"
                )
            _check_share(share, "a ramp's share")
        for (before, less), (after, more) in pairwise(steps):
            if after <= before:
                raise InputError("The steps of a ramp must go forward in time.")
            if more < less:
                raise InputError(
                    f"the ramp shrinks from {less} to {more}: units would go back to control and "
                    "be in both variants; begin a new experiment instead"
                )

    def share(self, at: float) -> float:
        """The share that is open at `at`, in seconds since 1970."""
        moments = [moment.timestamp() for moment, _ in self.steps]
        shares = [float(share) for _, share in self.steps]
        past = sum(moment <= at for moment in moments)
        if not past:
            return 0.0
        if not self.linear or past == len(moments):
            return shares[past - 1]
        gone = (at - moments[past - 1]) / (moments[past] - moments[past - 1])
        return shares[past - 1] + gone * (shares[past] - shares[past - 1])


@dataclass(frozen=True)
class Assignment:
    """What a unit is given.

    Parameters
    ----------
    variant : str
    mode : str
        ``assigned``, or ``excluded``: served control, and no part of the experiment.
    open_share : float
        The share of the planned treatment that was open, in [0, 1].
    """

    variant: str
    mode: str
    open_share: float


@dataclass(frozen=True)
class Experiment:
    """Define the variants of an experiment and how units are split over them.

    A unit is a user or a session. Weighted rendezvous hashing assigns its variant: the assignment
    is the same in every process and on every machine, and each variant gets exactly its share.
    When shares change, a unit moves only to a variant that grew by a larger factor than its own.

    Parameters
    ----------
    name : str
        Name of the experiment. A new name gives a new random split.
    split : mapping of str to float
        Variant to its share, in any unit (``{"A": 9, "B": 1}``). A variant with share 0 serves no
        units.
    control : str or None
        The variant that answers when another variant fails or the request has no unit. None: the
        first variant.
    excluded : float or callable
        Share of units in [0, 1], or a predicate of the unit id. Excluded units get control and do
        not count in the experiment.
    ramp : Ramp or None
        Schedule that opens the split. None: the whole split is in force from the start.
    shadow : mapping of str to float
        Variant to the share of requests, in [0, 1], that it answers in the background. A shadow's
        answers are never served, so a shadow cannot be in `split`.

    Raises
    ------
    InputError
        A name, a share or the number of variants is invalid.

    Notes
    -----
    Each variant draws -ln(u) / share, where u in (0, 1] is a SHA-256 hash of the experiment, the
    variant and the unit. The smallest draw wins. Sources: Thaler, Ravishankar (1998), Using
    name-based mappings to increase hit rates (rendezvous hashing); Efraimidis, Spirakis (2006)
    (the weighted draw).

    >>> Experiment("reranker", {"A": 1, "B": 1}).assign("user-1").variant
    'B'
    """

    name: str
    split: Mapping[str, float]
    control: str | None = None
    excluded: float | Callable[[str], bool] = 0.0
    ramp: Ramp | None = None
    shadow: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name(self.name, "an experiment's name")
        _check_shares(self.split, self.shadow)
        if not isinstance(self.ramp, Ramp | None):
            raise InputError(f"the ramp is {self.ramp!r}: it must be a Ramp")
        total = math.fsum(self.split.values())
        if not total > 0:
            raise InputError("The shares of the split add up to 0. Set one above 0.")
        for variant, share in self.shadow.items():
            _check_share(share, f"the share of requests shadowed by '{variant}'")
            if variant in self.split:
                raise InputError(
                    f"variant '{variant}' is both in the split and a shadow; a shadow is never "
                    "served, so leave it out of the split"
                )
        if len(self.split) + len(self.shadow) < 2:
            raise InputError("An experiment needs at least two variants.")
        control = next(iter(self.split)) if self.control is None else self.control
        if control not in self.split:
            raise InputError(
                f"the control '{control}' is not in the split; {known_names(control, self.split)}"
            )
        if not callable(self.excluded):
            _check_share(self.excluded, "the excluded share")
        shares = {variant: share / total for variant, share in self.split.items()}
        object.__setattr__(self, "control", control)
        object.__setattr__(self, "split", MappingProxyType(shares))
        object.__setattr__(self, "shadow", MappingProxyType(dict(self.shadow)))

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of all variants, shadows last."""
        return (*self.split, *self.shadow)

    def planned(self, at: float | None = None) -> dict[str, float]:
        """The split in force at `at` (seconds since 1970; None: now); it adds up to 1."""
        return self._shares_at(self._open_share(at))

    def assign(self, unit: str, at: float | None = None) -> Assignment:
        """Return what `unit` is given at `at` (seconds since 1970; None: now).

        Whatever a predicate of the user's own raises is raised.
        """
        open_share = self._open_share(at)
        control = str(self.control)
        if self._is_excluded(unit):
            return Assignment(control, "excluded", open_share)
        draws = {
            variant: -math.log(self._drawn("assign", variant, unit)) / share
            for variant, share in self._shares_at(open_share).items()
            if share > 0
        }
        return Assignment(min(draws, key=draws.__getitem__), "assigned", open_share)

    def shadows(self, request: str) -> list[str]:
        """Return the shadows that are given the request of this id."""
        return [
            variant
            for variant, share in self.shadow.items()
            if self._drawn("shadow", variant, request) <= share
        ]

    def _open_share(self, at: float | None) -> float:
        return 1.0 if self.ramp is None else self.ramp.share(time.time() if at is None else at)

    def _shares_at(self, open_share: float) -> dict[str, float]:
        treated = {v: share * open_share for v, share in self.split.items() if v != self.control}
        control_share = max(0.0, 1.0 - math.fsum(treated.values()))
        return {v: treated.get(v, control_share) for v in self.split}

    def _is_excluded(self, unit: str) -> bool:
        if callable(self.excluded):
            return bool(self.excluded(unit))
        return self.excluded > 0 and self._drawn("exclude", "", unit) <= self.excluded

    def _drawn(self, purpose: str, variant: str, unit: str) -> float:
        """A number in (0, 1], the same wherever and whenever it is drawn."""
        text = json.dumps([purpose, self.name, variant, unit])  # escaped: no half pair can break it
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 11
        return (number + 1) / _BITS


def unit_hash(unit: str, experiment: str, salt: str | None = None) -> str:
    """Return the 32 hex digits that the live log stores instead of a unit's id."""
    # With a salt, a reader of the log also needs the salt to test guessed ids. Without a salt, the
    # key is the experiment's name, which is in the log: guessable ids (numbers, e-mail addresses)
    # can be recovered. The log is personal data in both cases: it shows each unit's requests.
    return keyed_hash("unit", unit, experiment, salt)


def keyed_hash(purpose: str, text: str, experiment: str, salt: str | None = None) -> str:
    """HMAC-SHA256 of a text under the salt, cut to 32 hex digits; see `unit_hash`."""
    secret = os.environ.get(SALT_ENV) if salt is None else salt
    key = valid_text(secret or experiment).encode()
    message = json.dumps([purpose, experiment, text]).encode()
    return hmac.digest(key, message, "sha256").hex()[:32]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_share(value: object, name_of_value: str) -> None:
    if not _is_number(value) or not 0 <= value <= 1:  # type: ignore[operator]
        raise InputError(f"{name_of_value} is {value!r}: it must be in [0, 1]")


def _check_shares(split: object, shadow: object) -> None:
    if not isinstance(split, Mapping) or not split:
        raise InputError('an experiment needs a split, such as {"A": 0.9, "B": 0.1}')
    if not isinstance(shadow, Mapping):
        raise InputError('shadows have shares of requests, such as shadow={"B": 0.1}')
    for variant, share in (*split.items(), *shadow.items()):
        _check_name(variant, "a variant's name")
        if not _is_number(share) or not 0 <= share <= _LARGEST_SHARE:
            raise InputError(
                f"the share of variant '{variant}' is {share!r}: "
                f"it must be a number from 0 to {_LARGEST_SHARE:g}"
            )


def _check_name(name: object, name_of_value: str) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        raise InputError(
            f"{name_of_value} is {name!r}: it must be a text of 1 to {_LONGEST_NAME} characters"
        )
    if valid_text(name) != name or not name.isprintable():
        raise InputError(f"{name_of_value} is {name!r}: it contains unprintable characters")
