"""What every judge takes and gives: an Ask goes in, a Reply comes out.

A judge is wrapped by other judges, each of which does one thing (`misslink.judging.wrappers`):
the throttle, the budget, the ledger, the repair. What they tell each other beside replies are the
three exceptions below; none of them reaches a user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from misslink.judging.schema import schema_json, strict_schema
from misslink.prompting import Prompt, Rendered
from misslink.types import PromptRef, Usage

__all__ = [
    "Ask",
    "Judge",
    "NotAskedError",
    "Probabilities",
    "Reply",
    "TryAgainError",
    "innermost",
    "longest_reply",
    "total_usage",
]

Probabilities = Mapping[str, Mapping[str, float]]  # place in the reply -> label -> probability
_LONGEST_REPLY = 4096  # tokens; what the judges that come with misslink ask for by default


class TryAgainError(Exception):
    """No reply came, and the same question may fare better later.

    Parameters
    ----------
    problem : str
        Why, as part of a sentence.
    kind : {'rate', 'server', 'connection', 'absent', 'time'}
        Told to slow down; the server failed; the connection broke; nobody took the connection, so
        nothing was sent; no reply came in time.
    after : float or None
        Seconds that the server asks to wait.
    """

    def __init__(
        self,
        problem: str,
        kind: Literal["rate", "server", "connection", "absent", "time"],
        after: float | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.kind = kind
        self.after = after


class NotAskedError(Exception):
    """A question is not put, on purpose: the budget or the time of the run is used up.

    Its verdicts are skipped, and a later run goes on.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Ask:
    """One question to a judge.

    Parameters
    ----------
    name : str
        What is asked, the prompt's name.
    inputs : mapping
        The structured inputs, for judges that read no prompt.
    messages : sequence of mapping
        The rendered chat messages, ``{"role", "content"}``, stable part first.
    schema : type of BaseModel
        What the answer must be.
    prompt : PromptRef
    repeat : int
        Which of several samples of the same question is wanted, from 0.
    alone : callable or None
        Returns the question whose answer is one label, for a judge that cannot answer this one.
    structured : bool
        Whether the answer is wanted as JSON. False: as one word, a label of the schema's only
        field, and no schema is sent.
    """

    name: str
    inputs: Mapping[str, Any]
    messages: Sequence[Mapping[str, str]]
    schema: type[BaseModel]
    prompt: PromptRef
    repeat: int = 0
    alone: Callable[[], Ask] | None = field(default=None, compare=False, repr=False)
    structured: bool = True

    @classmethod
    def rendered(
        cls,
        prompt: Prompt,
        inputs: Mapping[str, Any],
        schema: type[BaseModel],
        *,
        repeat: int = 0,
        alone: Callable[[], Ask] | None = None,
        structured: bool = True,
    ) -> Ask:
        """Return the question that a prompt makes of `inputs`.

        Raises
        ------
        InputError
            The prompt cannot be rendered; with its line.
        """
        return cls(
            name=prompt.ref.name,
            inputs=inputs,
            messages=Rendered(prompt, inputs),
            schema=schema,
            prompt=prompt.ref,
            repeat=repeat,
            alone=alone,
            structured=structured,
        )

    @property
    def json_schema(self) -> dict[str, Any]:
        """The answer schema as strict JSON schema: closed objects, every field required."""
        return strict_schema(self.schema)

    @cached_property
    def key(self) -> str:
        """SHA-256 of what is asked: the messages, which hold every input, and the schema.

        The same for every sample of it. Messages that are not rendered yet are named by their
        prompt and inputs, on which they depend.
        """
        if isinstance(self.messages, Rendered):
            told = [self.messages.digest]
        else:
            told = [part for text in self.messages for part in (text["role"], text["content"])]
        told += [schema_json(self.schema), str(self.structured)]
        # With its length before each, no two lists of texts are the same content.
        content = "".join(f"{len(text)}:{text}" for text in told)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def characters(self) -> int:
        """Length of all messages and the JSON schema; a quarter of it is about the tokens."""
        text = sum(len(message["content"]) for message in self.messages)
        if not self.structured:
            return text
        return text + len(schema_json(self.schema))


@dataclass(frozen=True)
class Reply:
    """What a judge answered.

    Parameters
    ----------
    parsed : BaseModel or None
        An instance of the ask's schema, or of that of ``ask.alone()``; None where the reply could
        not be read as one.
    raw : str
        The reply as it came.
    usage : Usage or None
    probabilities : mapping of str to mapping of str to float
        The probability of each label by place in the reply, such as ``claims.0.support``, where
        the judge gives it; the labels of one place sum to 1. The labels of a yes or no are
        ``true`` and ``false``.
    problem : str or None
        Why `parsed` is None.
    from_ledger : bool
        Read from the ledger, so not paid for now.
    judge : str or None
        Who answered, where a judge passes on what another one said. None: the judge itself.
    """

    parsed: BaseModel | None
    raw: str
    usage: Usage | None = None
    probabilities: Probabilities = field(default_factory=dict)
    problem: str | None = None
    from_ledger: bool = False
    judge: str | None = None

    @classmethod
    def nothing(cls, problem: str) -> Reply:
        """Return the reply for an ask to which nothing came back, so nothing was paid.

        The ledger does not keep it, and a later run asks once more.
        """
        return cls(parsed=None, raw="", problem=problem)

    @property
    def came(self) -> bool:
        """Whether the judge's words arrived, readable or not."""
        return self.parsed is not None or bool(self.raw) or self.usage is not None

    def chance(self, place: str, *labels: str) -> float | None:
        """Return the probability of any of `labels` at `place`; None where it is not known."""
        of_label = self.probabilities.get(place)
        if of_label is None:
            return None
        return min(1.0, sum(of_label.get(label, 0.0) for label in labels))


def total_usage(replies: Iterable[Reply]) -> Usage | None:
    """Return what several replies used together.

    Parameters
    ----------
    replies : iterable of Reply
        One that does not say what it used adds nothing.

    Returns
    -------
    Usage or None
        A count that none of them tells is None; None as a whole where none has a usage, or there
        are no replies.
    """
    usages = [reply.usage for reply in replies if reply.usage is not None]
    if not usages:
        return None
    if len(usages) == 1:
        return usages[0]
    return Usage(
        prompt_tokens=_total(usage.prompt_tokens for usage in usages),
        completion_tokens=_total(usage.completion_tokens for usage in usages),
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


class Judge(Protocol):
    """Anything that answers an Ask.

    ``name`` goes into every verdict; ``identity`` holds what a reply depends on beside the ask
    (model, parameters, version of fitted coefficients), never a key or a header.

    A judge may have more, and whoever wants it asks with ``getattr``:

    ``note`` (str)
        One line that readers of its verdicts must know.
    ``threshold`` (float)
        Its own cut of P(good).
    ``context_length`` (int or None)
        How many tokens prompt and reply may have together.
    ``max_tokens`` (int)
        The longest reply that is paid for, in tokens.
    ``abilities`` (mapping) and ``learn(abilities)``
        What it found out about its server, as JSON values, and how it is told so again; the
        ledger keeps it, so that a resumed run asks as the first one did.
    ``reachable()`` (async)
        Raises JudgeUnreachableError where asking would surely fail; costs no tokens.
    """

    name: str
    identity: Mapping[str, Any]

    async def ask(self, ask: Ask) -> Reply:
        """Answer.

        Raises
        ------
        TryAgainError
            Nothing came, and later it may.
        NotAskedError
            The question is not put, on purpose.
        JudgeUnreachableError
            Asking on is pointless.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


def longest_reply(judge: Judge) -> int:
    """Return how many tokens a reply of `judge`, a bare one, may have; 4096 unless it says so."""
    said: int | None = getattr(judge, "max_tokens", None)
    return said or _LONGEST_REPLY


def innermost(judge: Judge) -> Judge:
    """Return the judge inside all wrappers, each of which keeps what it wraps as ``judge``."""
    inner: Judge | None = getattr(judge, "judge", None)
    return judge if inner is None else innermost(inner)
