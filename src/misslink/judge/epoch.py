"""The epoch of a judge: model, prompts and rules. Verdicts of two epochs are not compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from misslink.documents import JudgeEpoch
from misslink.io.manifest import hash_content
from misslink.matching import rules_version
from misslink.types import PromptRef

_HASH_DIGITS = 16


def judge_epoch(name: str, identity: Mapping[str, Any], prompts: Iterable[PromptRef]) -> JudgeEpoch:
    """Return the epoch of a judge as the manifest has it.

    Parameters
    ----------
    name : str
    identity : mapping
        What its replies depend on; the rules, which it may name, are of the epoch itself.
    prompts : iterable of PromptRef
        Of its verdicts.
    """
    model = {part: value for part, value in identity.items() if part != "rules"}
    return JudgeEpoch(
        model=f"{name} {hash_content(model)[:_HASH_DIGITS]}",
        prompts={
            ref.name: f"version {ref.version}, {ref.sha256[:_HASH_DIGITS]}" for ref in prompts
        },
        rules=rules_version(),
    )
