"""Import the user's own code from a file or a module name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from misslink.errors import InputError, did_you_mean

_NAMES_SHOWN = 8  # names that fit into a message

# What the extra 'langchain' brings.
_LANGCHAIN_PACKAGES = {
    "chromadb",
    "langchain",
    "langchain_chroma",
    "langchain_openai",
    "langchain_text_splitters",
    "sentence_transformers",
}


def import_target(target: str, folder: Path) -> ModuleType:
    """Import ``path/to/file.py`` or ``package.module`` as a script in `folder` would."""
    is_file = target.endswith(".py") or "/" in target or "\\" in target
    return _from_file(target, folder) if is_file else _from_module(target, folder)


def resolve_attribute(module: ModuleType, dotted: str, target: str) -> Any:
    """Return the attribute of a module that a dotted name refers to; errors suggest near names."""
    found: Any = module
    for name in dotted.split("."):
        if not hasattr(found, name):
            raise InputError(f"{target} has no '{name}'; {_alternatives(name, found)}")
        found = getattr(found, name)
    return found


def call_factory(factory: Callable[[], Any], spec: str) -> Any:
    """What a function without parameters returns; its errors are the user's."""
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise _import_error(spec, error) from error


def error_location(error: BaseException) -> tuple[str, int] | None:
    """Return file and line of the innermost frame in the user's own code, or None."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return error.filename, error.lineno
    for step in reversed(traceback.extract_tb(error.__traceback__)):
        if step.lineno and is_user_file(step.filename):
            return step.filename, step.lineno
    return None


def with_article(noun: str) -> str:
    """Return a noun behind its article, by its first letter.

    Examples
    --------
    >>> with_article("int"), with_article("str")
    ('an int', 'a str')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


@cache  # asked for each class that an app reaches
def is_user_file(filename: str) -> bool:
    """Whether a source file is the reader's: no library's, not frozen, not misslink's."""
    libraries = [Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")]
    libraries.append(Path(__file__).parent)
    foreign = any(Path(filename).is_relative_to(library) for library in libraries)
    return not foreign and not filename.startswith("<")


def _from_file(target: str, folder: Path) -> ModuleType:
    path = (folder / Path(target).expanduser()).resolve()
    if not path.is_file():
        hint = did_you_mean(path.name, [found.name for found in path.parent.glob("*.py")])
        raise InputError(f"there is no file {target} in {folder}{hint and f'; {hint}'}")
    _make_importable(folder)
    _make_importable(path.parent)
    # A file called json.py must not become everybody's json.
    taken = path.stem in sys.modules or not path.stem.isidentifier()
    name = f"misslink_file_{zlib.crc32(str(path).encode()):08x}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{target} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up while it runs
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise _import_error(target, error) from error
    return module


def _from_module(target: str, folder: Path) -> ModuleType:
    _make_importable(folder)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if target == missing or target.startswith(f"{missing}."):
            beside = [file.stem for file in folder.glob("*.py")]
            beside += [package.parent.name for package in folder.glob("*/__init__.py")]
            hint = did_you_mean(missing, beside)
            raise InputError(
                f"there is no module '{missing}' in {folder} or among the installed packages"
                f"{hint and f'; {hint}'}"
            ) from error
        raise _import_error(target, error) from error
    except (Exception, SystemExit) as error:
        raise _import_error(target, error) from error


def _import_error(target: str, error: BaseException) -> InputError:
    last = traceback.format_exception_only(error)[-1].strip()
    path, line = error_location(error) or (None, None)
    missing = (getattr(error, "name", None) or "").partition(".")[0]
    hint = "; run  pip install 'misslink[langchain]'" if missing in _LANGCHAIN_PACKAGES else ""
    return InputError(f"importing {target} failed: {last}{hint}", path=path, line=line)


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _alternatives(name: str, owner: Any) -> str:
    public = [known for known in dir(owner) if not known.startswith("_")]
    if hint := did_you_mean(name, public, most=3):
        return hint
    objects = [known for known in public if not inspect.ismodule(getattr(owner, known, None))]
    return f"it has {', '.join(objects[:_NAMES_SHOWN])}" if objects else "it is empty"
