"""What every judge takes and gives: an Ask goes in, a Reply comes out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

from pydantic import BaseModel

from misslink.types import PromptRef, Usage

__all__ = ["Ask", "Judge", "Reply"]


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
    """

    name: str
    inputs: Mapping[str, Any]
    messages: tuple[Mapping[str, str], ...]
    schema: type[BaseModel]
    prompt: PromptRef

    @property
    def json_schema(self) -> dict[str, Any]:
        """The answer schema as strict JSON schema: closed objects, every field required."""
        return strict_schema(self.schema)

    @cached_property
    def key(self) -> str:
        """SHA-256 of what is asked: the messages, which hold every input, and the schema."""
        content = json.dumps(
            [list(map(dict, self.messages)), self.json_schema], sort_keys=True, ensure_ascii=False
        )
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def characters(self) -> int:
        """Length of all messages and the JSON schema; a quarter of it is about the tokens."""
        text = sum(len(message["content"]) for message in self.messages)
        return text + len(json.dumps(self.json_schema, separators=(",", ":")))


@dataclass(frozen=True)
class Reply:
    """What a judge answered.

    Parameters
    ----------
    parsed : BaseModel or None
        An instance of the ask's schema; None where the reply could not be read as one.
    raw : str
        The reply as it came.
    usage : Usage or None
    probabilities : mapping of str to float
        P(good label) by place in the reply, such as ``claims.0``, where the judge gives it.
    problem : str or None
        Why `parsed` is None.
    from_ledger : bool
        Read from the ledger, so not paid for now.
    """

    parsed: BaseModel | None
    raw: str
    usage: Usage | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    problem: str | None = None
    from_ledger: bool = False


class Judge(Protocol):
    """Anything that answers an Ask.

    ``name`` goes into every verdict; ``identity`` holds what a reply depends on beside the ask
    (model, parameters, version of fitted coefficients), never a key or a header. A judge may have
    a ``note``, one line that readers of its verdicts must know, and a ``threshold``, its own cut
    of P(good).
    """

    name: str
    identity: Mapping[str, Any]

    async def ask(self, ask: Ask) -> Reply:
        """Answer, or raise JudgeUnreachableError when asking on is pointless."""
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


@cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `model` as strict servers want it, without titles and defaults.

    Worked out once a model, for it costs as much as a whole request; nobody may change it.
    """
    raw = model.model_json_schema()
    definitions = raw.pop("$defs", {})

    def close(node: Any) -> Any:
        if isinstance(node, list):
            return [close(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return close(definitions[node["$ref"].rsplit("/", 1)[-1]])
        dropped = ("title", "default", "description")
        kept: dict[str, Any] = {}
        for name, item in node.items():
            if name == "properties":
                kept[name] = {field: close(spec) for field, spec in item.items()}
            elif name not in dropped:
                kept[name] = close(item)
        if "properties" in kept:
            kept["required"] = list(kept["properties"])
            kept["additionalProperties"] = False
        options = kept.get("anyOf", [])
        if options and all(set(option) == {"type"} for option in options):
            return {"type": [option["type"] for option in options]}  # shorter, same meaning
        return kept

    closed: dict[str, Any] = close(raw)
    return closed
