"""The manifest of a run: inputs, package versions and the command that repeats it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink.parts import Part
from misslink.types import Case, Trace

_JUDGE_PACKAGES = {
    "openai": "openai",
    "azure": "openai",
    "openai-responses": "openai",
    "llamacpp": "xllamacpp",
}
_INSTALL_FOLDERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_STDLIB_FOLDER = sysconfig.get_path("stdlib") + os.sep
_LISTED_PACKAGES = (
    "langchain-core",
    "chromadb",
    "openai",
    "pydantic",
    "sentence-transformers",
    "xllamacpp",
)

package_version = cache(importlib.metadata.version)  # a look-up parses a file, for milliseconds


def hash_content(content: Any) -> str:
    """SHA-256 of anything made of JSON values and pydantic models.

    It is that of the whole as JSON, which is written one item at a time.
    """
    digest, signs, between = hashlib.sha256(), "", ""
    pieces: Iterable[str]
    if isinstance(content, Mapping):
        signs = "{}"
        pieces = (f"{_as_json(str(name))}: {_as_json(content[name])}" for name in sorted(content))
    elif isinstance(content, Sequence | Iterator) and not isinstance(content, str):
        signs = "[]"
        pieces = map(_as_json, content)
    else:
        pieces = [_as_json(content)]
    digest.update(signs[:1].encode())
    for piece in pieces:
        digest.update(f"{between}{piece}".encode())
        between = ", "
    digest.update(signs[1:].encode())
    return digest.hexdigest()


def _as_json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, default=_json_default)


def flatten_inputs(inputs: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Write each of nested values as one line of text, under a name with dots.

    What is not given (None) is left out. Two values are the same where their lines are, also read
    back from a file.

    >>> flatten_inputs({"k": 5, "id_key": None, "prompts": {"examination": "3f2a"}})
    {'k': '5', 'prompts.examination': '3f2a'}
    """
    lines: dict[str, str] = {}
    for name, value in inputs.items():
        if isinstance(value, Mapping):
            lines |= flatten_inputs(value, f"{prefix}{name}.")
        elif value is not None:
            text = json.dumps(value)
            lines[f"{prefix}{name}"] = text[1:-1] if isinstance(value, str) else text
    return lines


def answer_hash(answer: str) -> str:
    """SHA-256 of an answer, by which a label says which answer it is of."""
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()


def relevance_labels(case: Case) -> tuple[Any, ...]:
    """What a case says is relevant, alike where the order alone differs."""
    return case.relevant, case.evidence, sorted(sorted(set(ids)) for ids in case.relevant_any)


def expected_answer(case: Case) -> tuple[Any, ...]:
    """What a case expects of an answer, alike where the order alone differs."""
    return sorted(set(case.references)), case.answerable


def content_hashes(cases: Iterable[Case], traces: Iterable[Trace]) -> dict[str, str]:
    """SHA-256 of the questions, the labels and the answers of a run, each with the case ids."""
    ordered = sorted(cases, key=lambda case: case.id)
    answers = sorted((trace.case_id, trace.answer or "") for trace in traces)
    return {
        "questions": hash_content([[case.id, *case.asked] for case in ordered]),
        "labels": hash_content(
            [[case.id, relevance_labels(case), expected_answer(case)] for case in ordered]
        ),
        "answers": hash_content(answers),
    }


def hash_app_code(spec: str, *, before: Container[str] = ()) -> str:
    """SHA-256 of the app's own code: every module loaded from its folder or the working folder.

    Parameters
    ----------
    spec : str
        The app spec, already imported.
    before : container of str
        Names of modules that were loaded before the app was imported, and so are not part of it;
        its own file counts all the same. Taken together with a call right after the import it is
        what the app imports when it is loaded, whatever else runs in the process. Empty: all
        that was loaded by now.
    """
    target = Path(spec.rpartition(":")[0])
    own = target.resolve() if target.is_file() else None
    here = Path.cwd()
    homes = tuple(_as_prefix(home) for home in (here.resolve(), *([own.parent] if own else [])))
    digests = set()
    if spec.endswith(".toml"):  # describes an app behind HTTP
        digests.add(hashlib.sha256(Path(spec).read_bytes()).hexdigest())
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(".py") or _is_installed(file):
            continue
        path = _resolved(str(here), file)
        if _is_installed(path) or not path.startswith(homes):
            continue
        if (name not in before or path == str(own)) and Path(path).is_file():
            digests.add(f"{path} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}")
    return hash_content(sorted(digests))


@cache
def _resolved(here: str, file: str) -> str:
    """Without symbolic links; a module stays where it was loaded from."""
    return str(Path(here, file).resolve())


def _as_prefix(folder: Path) -> str:
    """Of every file in it; text, as thousands are compared with it."""
    return str(folder).rstrip(os.sep) + os.sep


@cache
def _is_installed(file: str) -> bool:
    """Whether a file is of Python or of a package; by its name, as there are thousands."""
    return file.startswith(_STDLIB_FOLDER) or any(folder in file for folder in _INSTALL_FOLDERS)


def display_path(path: str | Path) -> str:
    """Return a path fit for a page that is handed round: from the working folder, or its end.

    >>> display_path("/home/ada/secret/rag/app.py:chain")
    'rag/app.py:chain'
    """
    full = Path(path)
    if not full.is_absolute():
        return str(path)
    with contextlib.suppress(ValueError):
        return str(full.relative_to(Path.cwd()))
    return "/".join(full.parts[-2:])


def package_versions(judge: str) -> dict[str, str]:
    """Return the versions of Python and of the packages that a run with this judge has used."""
    versions = {"python": platform.python_version()}
    judge_specs = judge.replace("cascade:", "").split(",")
    by_judges = {_JUDGE_PACKAGES.get(spec.partition(":")[0]) for spec in judge_specs}
    for package in _LISTED_PACKAGES:
        # Only what this run used; a judge's own package also where the cache spared its import.
        if package in by_judges or package.replace("-", "_") in sys.modules:
            versions[package] = package_version(package)
    return versions


def _json_default(item: Any) -> Any:
    if isinstance(item, BaseModel):
        return item.model_dump(mode="json")
    return list(item) if isinstance(item, Part) else str(item)
