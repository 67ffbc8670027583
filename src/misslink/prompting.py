"""Load, render and hash the prompts a judge reads.

A prompt is one Jinja file with TOML front matter between two ``+++`` lines and two blocks,
``system`` (the stable part, first) and ``user``. Whatever people or apps wrote enters it only
through ``fence(label, text)``, whose boundary the writer of the text cannot know.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.sandbox

from misslink.errors import InputError
from misslink.types import PromptRef

__all__ = ["BUILT_IN", "Prompt", "Prompts", "prompts_folder"]

_FRONT = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)


@dataclass(frozen=True)
class Prompt:
    """A prompt file: what it is called, what each answer field means, and its two blocks."""

    ref: PromptRef
    schema: str
    fields: Mapping[str, str]
    source: str

    def render(self, texts: Mapping[str, Any]) -> tuple[str, str]:
        """Return the system and the user message.

        Parameters
        ----------
        texts : mapping
            What the template reads; everything in it is treated as hostile.
        """
        template = _compiled(self.source)
        context = template.new_context({**texts, "fence": _Fence(texts)})
        system, user = (
            "".join(template.blocks[name](context)).strip() for name in ("system", "user")
        )
        return system, user

    def messages(self, texts: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the rendered prompt as chat messages, the stable part first."""
        system, user = self.render(texts)
        return {"role": "system", "content": system}, {"role": "user", "content": user}


@dataclass(frozen=True)
class Prompts:
    """Prompts by name.

    Parameters
    ----------
    folder : Path or None
        Whose prompts go before the built-in ones of the same name. None: the built-in ones.
    """

    folder: Path | None = None

    def load(self, name: str) -> Prompt:
        """Read the prompt `name`.

        Raises
        ------
        InputError
            There is none, or it is damaged.
        """
        return _find(name, self.folder)


BUILT_IN = Prompts()


@cache
def prompts_folder() -> Path:
    """The folder of the built-in prompts: inside the wheel, or at the top of a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "prompts", here.parents[1] / "prompts"):
        if folder.is_dir():
            return folder
    raise InputError("the prompts folder is missing from this installation; reinstall misslink")


@cache
def _find(name: str, folder: Path | None) -> Prompt:
    if folder is not None and (folder / f"{name}.jinja").exists():
        return _read(name, folder)
    return _read(name, prompts_folder())


def _read(name: str, folder: Path) -> Prompt:
    path = folder / f"{name}.jinja"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("there is no such prompt", path=path) from None
    front = _FRONT.match(text)
    if front is None:
        raise InputError("a prompt starts with TOML front matter between two +++ lines", path=path)
    try:
        head = tomllib.loads(front.group(1))
        ref = PromptRef(
            name=head["name"],
            version=head["version"],
            sha256=hashlib.sha256(text.encode()).hexdigest(),
        )
        schema = str(head["schema"])
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"its front matter is not TOML: {problem}", path=path) from None
    except KeyError as missing:
        raise InputError(f"its front matter lacks {missing}", path=path) from None
    return Prompt(ref, schema, dict(head.get("fields", {})), text[front.end() :])


@cache
def _compiled(source: str) -> jinja2.Template:
    environment = jinja2.sandbox.SandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)


class _Fence:
    """Wraps untrusted text so that it cannot close its own wrapper.

    The boundary is a hash over all the texts of the prompt: no writer of one text can know it, yet
    the same texts always give the same prompt, hence the same ledger key.
    """

    def __init__(self, texts: Mapping[str, Any]) -> None:
        everything = "\x1f".join(_strings(texts))
        salt = 0
        while True:
            digest = hashlib.sha256(f"{salt}\x1f{everything}".encode()).hexdigest()[:10]
            if digest not in everything:
                break
            salt += 1
        self.boundary = digest

    def __call__(self, label: str, text: str) -> str:
        return f"<{label} {self.boundary}>\n{text}\n</{label} {self.boundary}>"


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _strings(item)]
    return []
