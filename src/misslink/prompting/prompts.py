"""Prompt files: the built-in ones, and folders of one's own that go before them."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.prompting.template import Template
from misslink.types import PromptRef

__all__ = ["BUILT_IN", "Prompt", "Prompts", "languages", "prompts_folder"]

_FRONT = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)


@dataclass(frozen=True)
class Prompt:
    """A prompt file: what it is called, what each answer field means, and its two blocks.

    Parameters
    ----------
    ref : PromptRef
    schema : str
        The name of the answer's schema.
    fields : mapping of str to str
        What each field of the answer means.
    template : Template
    text : str
        The whole file.
    path : str
    """

    ref: PromptRef
    schema: str
    fields: Mapping[str, str]
    template: Template = field(compare=False, repr=False)
    text: str
    path: str

    def render(self, texts: Mapping[str, Any]) -> tuple[str, str]:
        """Return the system and the user message.

        Parameters
        ----------
        texts : mapping
            What the template reads; everything in it is treated as hostile.

        Raises
        ------
        InputError
            The template reads something else, or does what it must not.
        """
        return self.template.render(texts)

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

    Each file is read once, so that a run asks the same from its first case to its last.
    """

    folder: Path | None = None
    _read: dict[str, Prompt] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, spec: str | Path | None) -> Prompts:
        """Return the prompts that a person names.

        Parameters
        ----------
        spec : str, Path or None
            The name of a built-in folder, such as ``de``, or else a folder; a folder that is
            called like a built-in one is written ``./de``. None: the built-in prompts.

        Raises
        ------
        InputError
            It is neither, or a prompt in it cannot be used; nothing has been asked then.
        """
        if spec is None:
            return BUILT_IN
        known = isinstance(spec, str) and spec in languages()
        folder = prompts_folder() / spec if known else Path(spec)
        if not folder.is_dir():
            raise InputError(
                "there is no such folder of prompts; name one, or a built-in one: "
                + _list(languages()),
                path=folder,
            )
        prompts = cls(folder)
        names = [name for name in BUILT_IN.names() if prompts.holds(name)]
        if not names:
            raise InputError(
                "it holds no prompt that misslink asks; call a file one of "
                + _list([f"{name}.jinja" for name in BUILT_IN.names()]),
                path=folder,
            )
        for name in names:
            prompts.load(name)
        return prompts

    def load(self, name: str) -> Prompt:
        """Read the prompt `name`.

        Raises
        ------
        InputError
            There is none, or it is damaged, or lets untrusted text past the fence.
        """
        if name not in self._read:
            self._read[name] = self._find(name)
        return self._read[name]

    def holds(self, name: str) -> bool:
        """Whether the prompt is the folder's own; else the built-in one is asked."""
        return self.folder is not None and (self.folder / f"{name}.jinja").exists()

    def names(self) -> list[str]:
        """Names of all prompts, sorted: the built-in ones and those of the folder."""
        folders = [prompts_folder(), *([self.folder] if self.folder else [])]
        return sorted({path.stem for folder in folders for path in folder.glob("*.jinja")})

    def _find(self, name: str) -> Prompt:
        if self.folder is None or not self.holds(name):
            return _read(name, prompts_folder())
        prompt = _read(name, self.folder)
        if name in BUILT_IN.names():
            _fits(prompt, BUILT_IN.load(name))
        return prompt


BUILT_IN = Prompts()


@cache
def prompts_folder() -> Path:
    """The folder of the built-in prompts: inside the wheel, or at the top of a checkout."""
    here = Path(__file__).resolve().parents[1]
    for folder in (here / "prompts", here.parents[1] / "prompts"):
        if folder.is_dir():
            return folder
    raise InputError("the prompts folder is missing from this installation; reinstall misslink")


def languages() -> list[str]:
    """Names of the built-in folders of other languages, sorted, such as ``de``."""
    return sorted({path.parent.name for path in prompts_folder().glob("*/*.jinja")})


def _list(names: list[str]) -> str:
    return ", ".join(names)


def _fits(prompt: Prompt, built_in: Prompt) -> None:
    """A prompt of somebody's own answers in the same form and reads what it is given."""
    if prompt.schema != built_in.schema:
        raise InputError(
            f"it is '{prompt.schema}', but '{prompt.ref.name}' is answered as '{built_in.schema}'",
            path=prompt.path,
            field="schema",
        )
    unknown = sorted(prompt.template.variables - built_in.template.variables)
    if unknown:
        raise InputError(
            f"it reads '{unknown[0]}', which '{built_in.ref.name}' is not given;"
            f" there are {_list(sorted(built_in.template.variables))}",
            path=prompt.path,
        )


def _read(name: str, folder: Path) -> Prompt:
    path = folder / f"{name}.jinja"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such prompt", path=path) from None
    except UnicodeDecodeError:
        raise InputError("it is no UTF-8 text; save it as UTF-8", path=path) from None
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None
    front = _FRONT.match(text)
    if front is None:
        raise InputError("a prompt starts with TOML front matter between two +++ lines", path=path)
    ref, schema, fields = _head(front.group(1), text, path)
    if ref.name != name:
        raise InputError(
            f"it calls itself '{ref.name}'; the name is that of the file", path=path, field="name"
        )
    first_line = text[: front.end()].count("\n") + 1
    ours = path.is_relative_to(prompts_folder())
    template = Template(text[front.end() :], str(path), first_line, sandboxed=not ours)
    return Prompt(ref, schema, fields, template, text, str(path))


def _head(front: str, text: str, path: Path) -> tuple[PromptRef, str, dict[str, str]]:
    try:
        head = tomllib.loads(front)
        ref = PromptRef(
            name=head["name"],
            version=head["version"],
            sha256=hashlib.sha256(text.encode()).hexdigest(),
        )
        schema, fields = head["schema"], head.get("fields", {})
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"its front matter is not TOML: {problem}", path=path) from None
    except KeyError as missing:
        raise InputError(f"its front matter lacks {missing}", path=path) from None
    except ValidationError as problem:
        wrong = problem.errors()[0]
        raise InputError(wrong["msg"].lower(), path=path, field=str(wrong["loc"][0])) from None
    if not isinstance(schema, str):
        raise InputError("it is the name of a schema", path=path, field="schema")
    if not isinstance(fields, dict) or not all(isinstance(said, str) for said in fields.values()):
        raise InputError("it says in words what each field means", path=path, field="fields")
    return ref, schema, fields
