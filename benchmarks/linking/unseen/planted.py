"""An app of one invented domain, its index, and cases whose truth is known sentence by sentence.

A document sentence is registered with the fact that it states, so a judge that knows everything can
read any text, also one that was cut, shortened or altered: it looks for these sentences.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Fact = tuple[str, str]  # thing, attribute
ATTRIBUTES = ("person", "count", "form", "plain")
WORLDS: list[Row] = tomllib.loads(Path(__file__).with_name("worlds.toml").read_text("utf-8"))[
    "world"
]
STARTS = [
    "Bra",
    "Cor",
    "Del",
    "Fen",
    "Gal",
    "Hol",
    "Istr",
    "Jor",
    "Kel",
    "Lum",
    "Mar",
    "Nor",
    "Ost",
    "Pel",
    "Quin",
    "Ros",
    "Sil",
    "Tam",
    "Ulm",
    "Ves",
]
ENDS = [
    "ba",
    "dane",
    "fell",
    "gar",
    "hurst",
    "ika",
    "low",
    "mere",
    "nock",
    "oss",
    "pin",
    "rick",
    "stad",
    "vik",
    "worth",
    "zell",
]
FIRST = [
    "Ada",
    "Bela",
    "Carl",
    "Dora",
    "Edwin",
    "Flora",
    "Gero",
    "Hanna",
    "Ivo",
    "Jette",
    "Karim",
    "Lotte",
    "Milo",
    "Nele",
    "Otto",
    "Pia",
]
LAST = [
    "Amsel",
    "Brandt",
    "Cole",
    "Dorn",
    "Ebner",
    "Falk",
    "Grau",
    "Hauser",
    "Imhof",
    "Jansen",
    "Kolb",
    "Lenz",
    "Moor",
    "Nagel",
]
TOWNS = [
    "Aldenau",
    "Birkholm",
    "Cestrow",
    "Dunmarsh",
    "Eslingen",
    "Farrowby",
    "Grenzach",
    "Hollin",
    "Ivelstad",
    "Korvik",
]
HEADS = (
    "You answer questions from the context only.\n\nContext:\n{passages}\n\nQuestion: {question}",
    "system: Use the documents. If they lack the answer, say so.\n\n{passages}\n\nuser: {question}",
    "<documents>\n{passages}\n</documents>\nAnswer this: {question}",
    "Question: {question}\n\nFound in our files:\n\n{passages}\n\nAnswer in one or two sentences.",
)
BULLETS = ("{text}", "[{number}] {text}", "<document>{text}</document>", "- {text}")


@dataclass(frozen=True)
class Say:
    """A sentence and what it states; nothing for small talk. `stated` None: an invention."""

    text: str
    stated: tuple[tuple[Fact, str], ...] | None = ()


@dataclass
class Thing:
    """One entity of the domain, and the two passages on it."""

    name: str
    values: dict[str, str]
    wording: int  # of passages
    first: str = ""  # id of the passage on the first two of its attributes
    second: str = ""
    order: tuple[str, ...] = ATTRIBUTES

    def chunk(self, attribute: str) -> str:
        """Id of the passage that states an attribute."""
        return self.first if attribute in self.order[:2] else self.second


@dataclass(frozen=True)
class Planted:
    """A case: what was asked and labelled, what the app did, and whose failure it is.

    `owners` and `modes` are right with labels, references and corpus. `no_labels`, `no_references`
    replace both where that information decides (a wrong reference is no failure without it).
    """

    question: str
    needs: tuple[tuple[Fact, str], ...]  # what a right answer states, by the current documents
    answer: tuple[Say, ...]
    references: tuple[Say, ...]
    retrieved: tuple[str, ...]
    owner: str
    modes: tuple[str, ...]
    lost: str | None = None  # the stage at which the needs were lost; None: none was
    relevant: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    answerable: bool = True
    history: tuple[Row, ...] = ()
    shown: tuple[str, ...] | None = None  # texts in the prompt; None: the retrieved ones, whole
    texts: dict[str, str] = field(default_factory=dict)  # of retrieved passages unlike the corpus
    calls: tuple[Row, ...] | None = None
    instruction: str = ""  # in the prompt, before all else
    model_calls: int = 1
    deeper: tuple[tuple[str, int], ...] = ()
    depth: int | None = None
    without_references: tuple[str, tuple[str, ...]] | None = None  # owner and modes then
    response: str = "answers"
    kind: str = ""
    case_id: str = ""


class App:
    """The documents of one app, and what their sentences say."""

    k = 4

    def __init__(self, world: Row, seed: int, skip: int = 0) -> None:
        self.world, self.draw = world, random.Random(f"{world['name']}-{seed}")  # noqa: S311
        self.corpus: dict[str, str] = {}
        self.said: dict[str, list[tuple[Fact, str]]] = {}
        self.derived: dict[Fact, tuple[str, tuple[tuple[Fact, str], ...]]] = {}
        names = [start + end for start in STARTS for end in ENDS]
        random.Random(skip).shuffle(names)  # noqa: S311
        self.names = iter(names)
        self.people = iter(self.shuffled([f"{one} {two}" for one in FIRST for two in LAST]))
        self.things: list[Thing] = []
        self.indexed = 0
        self.style = self.draw.randrange(len(HEADS))
        for _ in range(6):
            self.thing()

    def shuffled(self, items: list[str]) -> list[str]:
        """The items in a drawn order."""
        self.draw.shuffle(items)
        return items

    def values(self, attribute: str) -> list[str]:
        """All values that an attribute may have; of people, a new one."""
        if attribute == "person":
            return [next(self.people)]
        values: list[str] = self.world[attribute]["values"]
        return values

    def thing(self, *, indexed: bool = True, **values: str) -> Thing:
        """Make up an entity, and index its two passages."""
        name = self.world["thing"].format(n=next(self.names))
        drawn = {one: self.draw.choice(self.values(one)) for one in ATTRIBUTES} | values
        order = tuple(self.shuffled(list(ATTRIBUTES)))
        made = Thing(name, drawn, self.draw.randrange(2), order=order)
        if indexed:
            made.first = self.index(self.passage(made, order[:2]))
            made.second = self.index(self.passage(made, order[2:]))
        self.things.append(made)
        return made

    def index(self, text: str) -> str:
        """Put a text into the index."""
        self.indexed += 1
        name = f"{self.world['name'].split()[0]}-{self.indexed:03d}"
        self.corpus[name] = text
        return name

    def passage(self, thing: Thing, attributes: Sequence[str], *, long: bool = False) -> str:
        """Write a passage: a lead-in, its facts, small talk between them."""
        filler = self.draw.sample(self.world["filler"], 6 if long else 2)
        says = [self.state(thing, one) for one in attributes]
        lead = self.draw.choice(self.world["intro"]).format(e=thing.name)
        lead = lead[0].upper() + lead[1:]
        if long:
            return " ".join([lead, *filler, *says])
        parts = [lead, *(text for pair in zip(says, filler, strict=False) for text in pair)]
        return " ".join(parts)

    def state(self, thing: Thing, attribute: str, value: str = "", wording: int = -1) -> str:
        """The sentence of the documents that says so, registered as such."""
        value = value or thing.values[attribute]
        wording = thing.wording if wording < 0 else wording
        text = _upper(self.world[attribute]["passage"][wording].format(e=thing.name, v=value))
        self.register(text, ((thing.name, attribute), value))
        return text

    def register(self, text: str, *stated: tuple[Fact, str]) -> None:
        """Note what a sentence of the documents states."""
        known = self.said.setdefault(text, [])
        known += [one for one in stated if one not in known]

    def held(self, texts: Sequence[str]) -> dict[Fact, dict[str, list[str]]]:
        """What texts state: fact to value to the sentences that say so."""
        found: dict[Fact, dict[str, list[str]]] = {}
        for text in texts:
            folded = " ".join(text.split())
            for sentence, stated in self.said.items():
                if sentence not in folded:
                    continue
                for (thing, attribute), value in stated:
                    if thing.lower() in folded.lower():
                        values = found.setdefault((thing, attribute), {})
                        values.setdefault(value, []).append(sentence)
        for fact, (value, parts) in self.derived.items():
            quotes = [found[part][is_][0] for part, is_ in parts if is_ in found.get(part, {})]
            if len(quotes) == len(parts):
                found.setdefault(fact, {}).setdefault(value, []).extend(quotes)
        return found

    # What people and the app say.

    def ask(self, thing: Thing, attribute: str, wording: int = -1) -> str:
        """A question in the documents' words (0) or in others (1)."""
        wording = self.draw.randrange(2) if wording < 0 else wording
        text: str = self.world[attribute]["question"][wording].format(e=thing.name)
        return text

    def answer(self, thing: Thing, attribute: str, value: str = "", *, shown: str = "") -> Say:
        """The app's sentence; `shown` is another way to write the value."""
        value = value or thing.values[attribute]
        wording = self.draw.choice(self.world[attribute]["answer"])
        text = _upper(wording.format(e=thing.name, v=shown or value))
        return Say(text, (((thing.name, attribute), value),))

    def reference(self, thing: Thing, attribute: str, value: str = "") -> Say:
        """The sentence of the gold set."""
        value = value or thing.values[attribute]
        short: str = self.world[attribute]["reference"]
        long: str = self.world[attribute]["answer"][0]
        text = _upper(self.draw.choice([short, long]).format(e=thing.name, v=value))
        return Say(text, (((thing.name, attribute), value),))

    def other(self, attribute: str, *values: str) -> str:
        """A value that is none of these."""
        return self.draw.choice([one for one in self.values(attribute) if one not in values])

    def neighbors(self, attribute: str, count: int, *without: Thing) -> list[str]:
        """Passages of other things on the same attribute."""
        others = [one for one in self.things if one not in without and one.first]
        return [one.chunk(attribute) for one in self.draw.sample(others, count)]

    def prompt(self, case: Planted, shown: Sequence[str]) -> str:
        """The prompt as this app's template writes it."""
        bullet = BULLETS[self.style]
        passages = "\n\n".join(bullet.format(number=n, text=one) for n, one in enumerate(shown, 1))
        said = "".join(f"{one['role']}: {one['content']}\n\n" for one in case.history)
        asked = said + case.question if said else case.question
        said = HEADS[self.style].format(passages=passages, question=asked)
        return f"{case.instruction}\n\n{said}" if case.instruction else said

    def rows(self, case: Planted, *, labels: bool, references: bool, prompts: bool) -> Row:
        """The case and its trace as one row of recorded traces."""
        retrieved = [
            {
                "id": one,
                "text": case.texts.get(one) or self.corpus[one],
                "score": round(0.9 - n / 20, 2),
            }
            for n, one in enumerate(case.retrieved)
        ]
        row: Row = {
            "case_id": case.case_id,
            "question": case.question,
            "retrieved": retrieved,
            "answer": " ".join(one.text for one in case.answer),
        }
        if case.history:
            row["history"] = list(case.history)
        if references and case.references:
            row["reference"] = " ".join(one.text for one in case.references)
        if references:
            row["answerable"] = case.answerable
        if labels and case.evidence:
            row["evidence"] = list(case.evidence)
        elif labels and case.relevant:
            row["relevant"] = list(case.relevant)
        if prompts:
            row |= self.observed(case)
        return row

    def observed(self, case: Planted) -> Row:
        """What a recorder saw beside passages and answer."""
        shown = self.shown(case)
        searched = {"query": case.question, "passages": list(case.retrieved)}
        row: Row = {"model_calls": case.model_calls}
        row["calls"] = [searched] if case.calls is None else list(case.calls)
        row["prompt"] = self.prompt(case, shown) if case.model_calls else ""
        if case.depth:
            row["depth"] = case.depth
            row["deeper"] = [
                {"id": one, "text": self.corpus[one], "rank": rank} for one, rank in case.deeper
            ]
        return row

    def shown(self, case: Planted) -> tuple[str, ...]:
        """The texts that stand in the prompt."""
        if case.shown is not None:
            return case.shown
        return tuple(case.texts.get(one) or self.corpus[one] for one in case.retrieved)


def planted(kind: str, number: int, case: Planted) -> Planted:
    """The case with its name."""
    return replace(case, kind=kind, case_id=f"{kind}-{number}")


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
