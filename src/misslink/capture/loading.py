"""An app found by its name: ``package.module:attribute`` or ``path/to/file.py:attribute``."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

from misslink.errors import InputError

__all__ = ["check_app", "load_app", "place_of"]

# What the extra 'langchain' brings.
_EXTRA = {
    "chromadb",
    "langchain",
    "langchain_chroma",
    "langchain_huggingface",
    "langchain_openai",
    "langchain_text_splitters",
    "sentence_transformers",
}


def load_app(spec: str, folder: Path | None = None) -> Any:
    """Import an app.

    Parameters
    ----------
    spec : str
        ``package.module:attribute`` or ``path/to/file.py:attribute``.
    folder : Path or None
        Where paths start and modules are found, as a script finds those beside it; the working
        folder if None.

    Returns
    -------
    Any
        A LangChain Runnable (chain, retriever, agent, compiled graph) or a callable that takes
        the question.

    Raises
    ------
    InputError
        The spec names nothing that imports, or something that is no app.
    """
    home = (folder or Path.cwd()).resolve()
    target, colon, attribute = spec.rpartition(":")
    if not colon or not target or not attribute:
        raise InputError(
            f"'{spec}' does not name an app; write  package.module:attribute  "
            "or  path/to/file.py:attribute"
        )
    is_file = target.endswith(".py") or "/" in target or "\\" in target
    module = _from_file(target, home) if is_file else _from_module(target, home)
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InputError(f"{target} has no '{name}'; {_alternatives(name, found)}")
        found = getattr(found, name)
    check_app(found, spec)
    return found


def check_app(app: Any, name: str = "the app") -> None:
    """Raise InputError, saying what to name instead, where `app` cannot be asked a question."""
    problem = _why_no_app(app)
    if problem:
        raise InputError(f"{name} {problem}")


def place_of(error: BaseException) -> tuple[str, int] | None:
    """File and line of the reader's own code at which `error` was raised, the innermost one.

    Libraries, frozen modules and misslink itself are nobody's own code. None where there is none.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return error.filename, error.lineno
    for step in reversed(traceback.extract_tb(error.__traceback__)):
        if step.lineno and _is_own(step.filename):
            return step.filename, step.lineno
    return None


def _is_own(filename: str) -> bool:
    """Whether a source file is the reader's: no library's, not frozen, not misslink's."""
    libraries = [Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")]
    libraries.append(Path(__file__).parent.parent)
    foreign = any(Path(filename).is_relative_to(library) for library in libraries)
    return not foreign and not filename.startswith("<")


def _from_file(target: str, home: Path) -> ModuleType:
    path = (home / target).resolve()
    if not path.is_file():
        near = _nearest(path.name, [found.name for found in path.parent.glob("*.py")])
        raise InputError(f"there is no file {target} in {home}{near}")
    _make_importable(home)
    _make_importable(path.parent)
    # An app called json.py must not become everybody's json.
    taken = path.stem in sys.modules or not path.stem.isidentifier()
    name = f"misslink_app_{zlib.crc32(str(path).encode()):08x}" if taken else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{target} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up while it runs
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise _broken_import(target, error) from error
    return module


def _from_module(target: str, home: Path) -> ModuleType:
    _make_importable(home)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if target == missing or target.startswith(f"{missing}."):
            beside = [file.stem for file in home.glob("*.py")]
            beside += [package.parent.name for package in home.glob("*/__init__.py")]
            raise InputError(
                f"there is no module '{missing}' in {home} or among the installed packages"
                f"{_nearest(missing, beside)}"
            ) from error
        raise _broken_import(target, error) from error
    except (Exception, SystemExit) as error:
        raise _broken_import(target, error) from error


def _broken_import(target: str, error: BaseException) -> InputError:
    last = traceback.format_exception_only(error)[-1].strip()
    place = place_of(error)
    where = {} if place is None else {"path": place[0], "line": place[1]}
    missing = (getattr(error, "name", None) or "").partition(".")[0]
    hint = "; run  pip install 'misslink[langchain]'" if missing in _EXTRA else ""
    return InputError(f"importing {target} failed: {last}{hint}", **where)  # type: ignore[arg-type]


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _alternatives(name: str, owner: Any) -> str:
    public = [known for known in dir(owner) if not known.startswith("_")]
    near = difflib.get_close_matches(name, public, n=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    objects = [known for known in public if not inspect.ismodule(getattr(owner, known, None))]
    return f"it has {', '.join(objects[:8])}" if objects else "it is empty"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _why_no_app(app: Any) -> str | None:
    wanted = "name a Runnable, a retriever, a compiled graph or a function of the question"
    problem = None
    if inspect.ismodule(app):
        problem = f"is a module, not an app; {wanted} in it"
    elif inspect.isclass(app):
        problem = f"is a class, not an app; name an instance of it, say  app = {app.__name__}(...)"
    elif hasattr(app, "invoke") and hasattr(app, "ainvoke"):
        pass
    elif hasattr(app, "compile") and hasattr(app, "add_node"):
        problem = "is a graph that was not compiled; name what its .compile() returns"
    elif not callable(app):
        problem = f"is {_article(type(app).__name__)}, not an app; {wanted}"
    elif inspect.isgeneratorfunction(app) or inspect.isasyncgenfunction(app):
        problem = "yields its answer in pieces; name a function that returns the whole answer"
    elif not _takes_a_question(app):
        problem = (
            "cannot be called with one question; if it builds the app, call it in your file and "
            "name the result, say  app = build()"
        )
    return problem


def _takes_a_question(app: Any) -> bool:
    try:
        inspect.signature(app).bind("a question")
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature: the call itself will tell
        return True
    return True


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
