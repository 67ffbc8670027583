"""A scripted judge and a small run, to test code that uses misslink without a model."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any, Unpack

from misslink.examples import load_example
from misslink.judge.protocol import Ask, Reply, strict_schema
from misslink.pipeline.config import EvaluationOptions
from misslink.pipeline.evaluate import evaluate
from misslink.text.normalization import sentence_spans
from misslink.types import Run

__all__ = ["ScriptedJudge", "complete", "small_run"]

Script = Mapping[str, Any] | Reply | Callable[[Ask], Mapping[str, Any] | Reply]

_SMALL_RUN = ("adult-return", "toddler", "lost-pass", "jobs", "first-ferry", "bike")


class ScriptedJudge:
    """A judge whose replies a test gives.

    Parameters
    ----------
    unsupported : collection of str
        Words of answers. A sentence with one of them is unsupported, and every other sentence is
        supported by the first sentence of the first passage.
    replies : mapping of str to script
        By the name of the ask, such as ``claim_needs``: the fields of the reply, a `Reply`, or a
        function of the ask that returns either. A field that is left out has the first value that
        its schema allows.

    Attributes
    ----------
    asked : list of Ask
        The questions it received, in order.

    Examples
    --------
    >>> from misslink.testing import ScriptedJudge, small_run
    >>> judge = ScriptedJudge(unsupported=["free"])
    >>> run = small_run(judge=judge)
    >>> len(judge.asked) >= len(run.cases)
    True
    """

    name = "scripted"

    def __init__(
        self, unsupported: Collection[str] = (), replies: Mapping[str, Script] | None = None
    ) -> None:
        self.unsupported = unsupported
        self.replies = dict(replies or {})
        self.asked: list[Ask] = []
        # Of this object alone, so that a cache never has the replies of another script.
        self.identity: Mapping[str, Any] = {"judge": self.name, "script": uuid.uuid4().hex}

    async def ask(self, ask: Ask) -> Reply:
        """Return the scripted reply."""
        self.asked.append(ask)
        script = self.replies.get(ask.name, self._examine)
        said = script(ask) if callable(script) else script
        if isinstance(said, Reply):
            return said
        whole = complete(strict_schema(ask.schema), said)
        return Reply(ask.schema.model_validate(whole), json.dumps(whole))

    async def close(self) -> None:
        """Do nothing."""

    def _examine(self, ask: Ask) -> Mapping[str, Any]:
        answer, passages = ask.inputs.get("answer"), ask.inputs.get("passages", ())
        if not isinstance(answer, str):
            return {}
        first = next((text for text in passages if text.strip()), "")
        quotes = [first[start:end] for start, end in sentence_spans(first)][:1]
        claims = []
        for start, end in sentence_spans(answer):
            sentence = answer[start:end]
            bad = not quotes or any(words in sentence for words in self.unsupported)
            support = "unsupported" if bad else "supported"
            claims.append({"span": sentence, "quotes": [] if bad else quotes, "support": support})
        relevant = [{"passage": n, "relevant": n == 1} for n in range(1, len(passages) + 1)]
        said = {"claims": claims, "passages": relevant, "helpful": None}
        criteria = [
            {"criterion": each["name"], "met": "yes"} for each in ask.inputs.get("criteria", ())
        ]
        said = {**said, "criteria": criteria} if criteria else said
        references = enumerate(ask.inputs.get("references", ()), 1)
        stated = [{"reference": n, "text": text, "answer": "states"} for n, text in references]
        return {**said, "reference_claims": stated} if stated else said


def small_run(**options: Unpack[EvaluationOptions]) -> Run:
    """Evaluate six cases of the ferry example; no key and no network are needed.

    Parameters
    ----------
    options
        As of `misslink.evaluate`, such as ``judge``, ``out`` for a run folder, or ``k``.

    Returns
    -------
    Run

    Examples
    --------
    >>> from misslink.testing import small_run
    >>> run = small_run()
    >>> len(run.cases)
    6
    """
    example = load_example("ferry")
    usual: EvaluationOptions = {
        "traces": example["traces"],
        "corpus": example["corpus"],
        "only": _SMALL_RUN,
        "cache": None,
        "embedding": "none",
    }
    usual.update(options)
    return evaluate(goldset=example["goldset"], **usual)


def complete(schema: Mapping[str, Any], said: Any) -> Any:
    """Return what is said with the plainest value of every other field that the schema wants.

    >>> complete({"properties": {"a": {"type": "string"}, "b": {"enum": ["yes", "no"]}}}, {"a": "x"})
    {'b': 'yes', 'a': 'x'}
    """
    if isinstance(said, Mapping) and "properties" in schema:
        fields = schema["properties"]
        missing = {
            name: value
            for name, node in fields.items()
            if name not in said and (value := _plainest(node)) is not None
        }
        return missing | {name: complete(fields.get(name, {}), said[name]) for name in said}
    if isinstance(said, list | tuple) and "items" in schema:
        return [complete(schema["items"], each) for each in said]
    return said


def _plainest(node: Mapping[str, Any]) -> Any:
    if "enum" in node:
        return None if None in node["enum"] else node["enum"][0]
    plain = {"array": [], "string": "", "boolean": False, "integer": node.get("minimum", 0)}
    kind = node.get("type")
    if isinstance(kind, list):  # or null
        return None
    return complete(node, {}) if kind == "object" else plain.get(kind or "")
