"""How many tokens a judge's server counts, learned from replies that the ledger kept."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from misslink.judging.embedded import open_embedded
from misslink.judging.examination import examine
from misslink.judging.protocol import Judge

__all__ = ["CHARACTERS", "Rates", "Spent", "about", "learn", "simulated"]

CHARACTERS = 4  # of a token, about, in every language model's English
Spent = tuple[str, str, int | None, int | None]  # messages, reply; prompt, completion tokens
_FAR = 4.0  # a count so many times off the median is a slip of the server's
_FENCED = re.compile(r"<(\w+) ([0-9a-f]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)
_NUMBERED = re.compile(r"(passage|reference)_\d+\Z")


@dataclass(frozen=True)
class Rates:
    """What the characters of a question and of a simulated reply come to in tokens.

    Parameters
    ----------
    prompt_factor : float
        Reported prompt tokens against a quarter of the characters; 1 where nothing is known.
    counts_schema : bool or None
        Whether the server counts the answer schema. None: not known.
    completion_factor : float
        Reported completion tokens against a quarter of a simulated reply's characters.
    prompts, completions : int
        How many earlier replies each rests on.
    """

    prompt_factor: float = 1.0
    counts_schema: bool | None = None
    completion_factor: float = 1.0
    prompts: int = 0
    completions: int = 0

    def prompt(self, messages: float, schema: float) -> float:
        """Tokens of so many characters of messages and of schema.

        Where nobody knows whether the schema counts, the harmonic mean of both ways: the number
        whose relative error is the same, and so the least, whichever it turns out to be.
        """
        if not messages:
            return 0.0
        whole = messages + schema
        counted = {
            True: whole,
            False: messages,
            None: 2 * messages * whole / (messages + whole),
        }[self.counts_schema]
        return self.prompt_factor * counted / CHARACTERS


async def learn(rows: Sequence[Spent], schemas: Mapping[frozenset[str], float]) -> Rates:
    """Learn from what earlier replies of a judge used.

    Whether the server counts the answer schema is read from which of the two ways to count agrees
    better with itself from reply to reply.

    Parameters
    ----------
    rows : sequence of Spent
        Messages and reply as JSON, and the tokens that were reported. What cannot be read is left
        out; nothing readable: nothing is learned.
    schemas : mapping of frozenset of str to float
        Characters of the answer schema with these fields, by which a reply tells its schema.
    """
    asked: list[tuple[float, float, int]] = []
    wrote: list[tuple[float, int]] = []
    for messages, reply, prompt, completion in rows:
        contents, said = _contents(messages), _object(reply)
        if not contents or said is None:
            continue
        schema = schemas.get(frozenset(said))
        if schema is None:  # a question that is not asked now, of one word say
            continue
        if prompt:
            asked.append((sum(map(len, contents)) / CHARACTERS, schema / CHARACTERS, prompt))
        if completion:
            length = await simulated(_inputs(contents[-1]))
            if length:
                wrote.append((length / CHARACTERS, completion))
    counts_schema, factor = _schema_counted(asked)
    return Rates(
        prompt_factor=factor,
        counts_schema=counts_schema,
        completion_factor=_factor(wrote),
        prompts=len(asked),
        completions=len(wrote),
    )


async def simulated(inputs: Mapping[str, Any]) -> int | None:
    """Characters of the JSON that the embedded judge would answer; None where it cannot."""
    reply = await _embedded().ask(examine(**inputs)) if _known(inputs) else None
    return len(reply.parsed.model_dump_json()) if reply and reply.parsed else None


def about(inputs: Mapping[str, Any]) -> int:
    """Characters of the texts that a reply is about: the answer and its references.

    Where there are none it is the question, such as one whose passages are labelled.
    """
    references = inputs.get("references") or ()
    told = len(str(inputs.get("answer") or "")) + sum(len(str(text)) for text in references)
    return told or len(str(inputs.get("question") or ""))


def _known(inputs: Mapping[str, Any]) -> bool:
    return (
        {"question", "passages", "answer"}
        <= set(inputs)
        <= {
            *("question", "passages", "answer", "references"),
        }
    )


@cache
def _embedded() -> Judge:
    return open_embedded()


def _schema_counted(asked: Sequence[tuple[float, float, int]]) -> tuple[bool | None, float]:
    """Whether the server counts the schema, and the factor that then remains."""
    if not asked:
        return None, 1.0
    ways = {
        counts: [(messages + counts * schema, tokens) for messages, schema, tokens in asked]
        for counts in (False, True)
    }
    counts = min(ways, key=lambda way: (_spread(ways[way]), abs(_factor(ways[way]) - 1)))
    return counts, _factor(ways[counts])


def _spread(pairs: Sequence[tuple[float, int]]) -> float:
    """How far the ratios lie from their median, relative to it, rounded to what matters."""
    ratios = [reported / estimated for estimated, reported in pairs]
    middle = statistics.median(ratios)
    return round(statistics.median(abs(ratio / middle - 1) for ratio in ratios), 3)


def _factor(pairs: Sequence[tuple[float, int]]) -> float:
    """The ratio of sums, which a total is multiplied by; absurd counts are left out."""
    if not pairs:
        return 1.0
    middle = statistics.median(reported / estimated for estimated, reported in pairs)
    near = [
        (estimated, reported)
        for estimated, reported in pairs
        if 1 / _FAR <= reported / estimated / middle <= _FAR
    ]
    return sum(reported for _, reported in near) / sum(estimated for estimated, _ in near)


def _contents(messages: str) -> list[str]:
    """The texts of the messages; none where they cannot be read."""
    try:
        found = json.loads(messages)
        return [str(message["content"]) for message in found]
    except (ValueError, TypeError, KeyError):
        return []


def _object(reply: str) -> dict[str, Any] | None:
    try:
        said = json.loads(reply)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _inputs(message: str) -> dict[str, Any]:
    """The fenced texts of a message, as an examination takes them; none of other questions."""
    inputs: dict[str, Any] = {"passages": [], "references": []}
    for label, _, text in _FENCED.findall(message):
        numbered = _NUMBERED.match(label)
        if numbered:
            inputs[f"{numbered.group(1)}s"].append(text)
        else:
            inputs[label] = text
    return {name: tuple(t) if isinstance(t, list) else t for name, t in inputs.items()}
