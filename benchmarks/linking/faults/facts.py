"""Worlds of invented facts, where what every passage, claim and reference says is known."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CASES = 48  # subjects that cases ask about; the others are noise
_SUBJECTS = 60
_SYLLABLES = ("bra", "del", "fon", "gis", "kor", "lum", "mep", "nal", "pos", "qui", "tar", "vel")


@dataclass(frozen=True)
class Fact:
    """A subject's attribute has a value; two facts that differ in the value alone contradict."""

    subject: str
    attribute: str
    value: str

    @property
    def key(self) -> tuple[str, str]:
        """What the fact is about."""
        return self.subject, self.attribute


@dataclass(frozen=True)
class Domain:
    """How the facts of a data set are worded.

    ``attributes`` maps an attribute to its question and its statement; ``around`` are sentences
    that frame a statement in a passage and say nothing that is asked.
    """

    name: str
    attributes: Mapping[str, tuple[str, str]]
    around: Sequence[tuple[str, str]]


FERRIES = Domain(
    "ferries",
    {
        "departure": ("when does the {s} leave", "The {s} leaves the quay at {v} past eight."),
        "ticket": ("what does a ticket for the {s} cost", "A ticket for the {s} costs {v} crowns."),
        "captain": ("how many captains sail the {s}", "The {s} is sailed by {v} captains in turn."),
        "places": ("how many cars fit on the {s}", "The {s} has room for {v} cars on its deck."),
        "speed": ("how fast is the {s}", "The {s} makes {v} knots in calm weather."),
    },
    (
        ("The harbor office keeps a page on every ship.", "Changes are posted at the gangway."),
        ("This is printed in the yearly leaflet.", "Dogs travel free of charge."),
    ),
)
PUMPS = Domain(
    "pumps",
    {
        "pressure": (
            "which pressure does the {s} pump hold",
            "The {s} pump holds a pressure of {v} bar. A valve opens above it.",
        ),
        "oil": ("how much oil does the {s} pump take", "Fill the {s} pump with {v} liters of oil."),
        "service": (
            "how often is the {s} pump serviced",
            "Service of the {s} pump is due every {v} hours.",
        ),
        "weight": (
            "how heavy is the {s} pump",
            "Without its frame the {s} pump weighs {v} kilograms.",
        ),
        "noise": (
            "how loud is the {s} pump",
            "At full load the {s} pump is as loud as {v} decibels.",
        ),
    },
    (
        ("Read the safety notes before any work.", "Keep the sheet near the machine."),
        ("The values below are those of the maker.", "Spare parts are listed at the end."),
    ),
)


class World:
    """A data set: subjects with facts, and what each text that was made of them asserts.

    Parameters
    ----------
    domain : Domain
    seed : int
    """

    def __init__(self, domain: Domain, seed: int) -> None:
        self.domain = domain
        self.rng = random.Random(f"{domain.name}-{seed}")  # noqa: S311 (a seeded draw)
        self.asserted: dict[str, tuple[Fact, ...]] = {}
        names: dict[str, None] = {}
        while len(names) < _SUBJECTS:
            names["".join(self.rng.choices(_SYLLABLES, k=3)).capitalize()] = None
        self.subjects = tuple(names)

    def fact(self, subject: str, attribute: str) -> Fact:
        """The true fact, the same at every call."""
        drawn = random.Random(f"{subject}-{attribute}").randint(11, 98)  # noqa: S311
        return Fact(subject, attribute, str(drawn))

    def wrong(self, fact: Fact) -> Fact:
        """The same with another value."""
        return Fact(fact.subject, fact.attribute, str(109 - int(fact.value)))

    def claim(self, fact: Fact) -> str:
        """One sentence that states the fact."""
        statement = self.domain.attributes[fact.attribute][1].split(". ")[0].rstrip(".")
        text = f"{statement}.".format(s=fact.subject, v=fact.value)
        self.asserted[text] = (fact,)
        return text

    def passage(self, *facts: Fact, frame: int = 0) -> str:
        """A passage that states the facts between two sentences that do not matter."""
        before, after = self.domain.around[frame]
        stated = [
            self.domain.attributes[f.attribute][1].format(s=f.subject, v=f.value) for f in facts
        ]
        text = " ".join([before, *stated, after])
        self.asserted[text] = facts
        return text

    def question(self, facts: Sequence[Fact]) -> str:
        """A question with one part a fact."""
        parts = [self.domain.attributes[f.attribute][0].format(s=f.subject) for f in facts]
        joined = ", and ".join(parts)
        return f"{joined[0].upper()}{joined[1:]}?"

    def says(self, texts: Iterable[str]) -> dict[tuple[str, str], set[str]]:
        """The values that the texts give, by what they are about."""
        values: dict[tuple[str, str], set[str]] = {}
        for text in texts:
            for fact in self.asserted.get(text, ()):
                values.setdefault(fact.key, set()).add(fact.value)
        return values
