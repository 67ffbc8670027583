"""JSON objects from a file, each with its line: JSON Lines, read line by line, or a JSON array."""

from __future__ import annotations

import io
import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from misslink.errors import InputError, known_names
from misslink.files.content import File, content_of, decoded, opened
from misslink.text import valid_text

__all__ = [
    "NOTHING",
    "as_items",
    "names_of",
    "nested_json",
    "objects_in",
    "parse",
    "read_objects",
    "read_text",
    "write_lines",
]

Model = TypeVar("Model", bound=BaseModel)
NOTHING = "there is nothing in it; it needs one JSON object a line"
_DEEPEST = 100  # levels; pydantic reads some that it then cannot write, from 250 on


def as_items(source: Any, name: str) -> list[Any]:
    """Return what was given in Python in place of a file, as a list."""
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(f"{name} given in Python is {_kind(source)}; give a list of objects")
    return list(source)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; one that gzip packed is unpacked.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or it is in another encoding.
    """
    return decoded(content_of(path), path)


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number (from 1) and the content of each JSON object of a file.

    Blank lines are passed over. A file whose first character is ``[`` is one JSON array.

    Raises
    ------
    InputError
        A line is not JSON or not an object, is nested too deeply, or there is no object at all.
    """
    empty = True
    with opened(path) as content:
        for found in objects_in(content, path):
            empty = False
            yield found
    if empty:
        raise InputError(NOTHING, path=path)


def objects_in(content: io.BufferedReader, path: File) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what `read_objects` does of an opened file, line by line; nothing where it is empty.

    Parameters
    ----------
    content : BufferedReader
        An array is held in memory whole, of lines one at a time.
    path : Path or Stored
        For messages.
    """
    for line, item in _items(content, path):
        if not isinstance(item, dict):
            raise InputError(
                f"this is {_kind(item)}, not a JSON object in braces", path=path, line=line
            )
        yield line, item


def write_lines(path: Path, items: Iterable[BaseModel]) -> None:
    """Write one JSON object a line, in UTF-8."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(item.model_dump_json() + "\n" for item in items)


def parse(
    model: type[Model],
    data: Any,
    path: object,
    line: int | None,
    texts: dict[str, str] | None = None,
) -> Model:
    """Build `model` from `data`, naming the file, the line and the field of what is wrong.

    `texts` are those of a file that were read so far: one that comes again is held once, as the
    passages of a small corpus that many cases retrieve.
    """
    if texts is None:
        texts = {}
    if not isinstance(data, Mapping):
        raise InputError(f"this is {_kind(data)}, not an object with fields", path=path, line=line)
    try:
        return model.model_validate(_writable(dict(data), _DEEPEST, texts))
    except RecursionError:
        raise _too_deep(path, line) from None
    except ValidationError as invalid:
        error = invalid.errors()[0]
        spot = [str(part) for part in error["loc"] if part != "[key]"]
        field = ".".join(spot) or None
        if error["type"] == "extra_forbidden" and len(spot) == 1:
            raise _unknown_field(model, spot[0], path, line) from None
        problem = error["msg"].removeprefix("Value error, ")
        if error["type"] == "missing":
            problem = "this field is required; add it"
        else:
            problem += f" (found {_kind(error['input'])})"
        raise InputError(problem, path=path, line=line, field=field) from None


def names_of(field: str, info: FieldInfo) -> list[str]:
    """Return every name that a field of a model may be given by, its own last."""
    alias = info.validation_alias
    choices = [str(c) for c in alias.choices] if isinstance(alias, AliasChoices) else [field]
    return [*choices, field]


def nested_json(text: str, path: object, field: str) -> Any:
    """Return the list or object that a text says; the text itself where it says none.

    Parameters
    ----------
    text : str
        Of a column for a list or an object, where a single id may stand too.
    path : object
        The file and the row, for messages.
    field : str

    Raises
    ------
    InputError
        It begins as JSON does and is none.
    """
    bare = text.lstrip()
    if not bare.startswith(("[", "{")):
        return text
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise _too_deep(path, None) from None
    except ValueError as problem:
        if not re.match(r"\{\s*\"|\[\s*[{\"]", bare):
            return text  # an id such as [draft] memo
        said = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise InputError(
            f"this text is not JSON ({said}); mend it, or write a column of lists or structs",
            path=path,
            field=field,
        ) from None


def _writable(item: Any, levels: int, texts: dict[str, str]) -> Any:
    """What UTF-8 can carry of `item`; RecursionError where more than `levels` are nested in it."""
    if isinstance(item, str):
        return texts.setdefault(item, item) if item.isascii() else _valid(item, texts)
    if not isinstance(item, dict | list):
        return item
    if not levels:
        raise RecursionError
    if isinstance(item, dict):
        return {
            _writable(name, 0, texts): _writable(one, levels - 1, texts)
            for name, one in item.items()
        }
    return [_writable(one, levels - 1, texts) for one in item]


def _valid(text: str, texts: dict[str, str]) -> str:
    valid = valid_text(text)
    return texts.setdefault(valid, valid)


def _too_deep(path: object, line: int | None) -> InputError:
    return InputError(
        f"this is nested too deeply to be read; leave out what lies deeper than {_DEEPEST} levels",
        path=path,
        line=line,
    )


def _unknown_field(model: type[BaseModel], name: str, path: object, line: int | None) -> InputError:
    known = []
    for field, info in model.model_fields.items():
        known += names_of(field, info)
    known = list(dict.fromkeys(known))
    if name in known:
        problem = "another name of this field is given too; keep one of the two"
        return InputError(problem, path=path, line=line, field=name)
    return InputError(
        f"there is no such field; {known_names(name, known, ' fields')}",
        path=path,
        line=line,
        field=name,
    )


def _items(content: io.BufferedReader, path: File) -> Iterator[tuple[int, Any]]:
    began = False
    for number, raw in enumerate(content, start=1):
        line = decoded(raw, path, number).rstrip("\n")
        if not line.strip():
            continue
        if not began and line.lstrip().startswith("["):
            rest = decoded(content.read(), path, number + 1)
            yield from _array(path, f"{line}\n{rest}", number)
            return
        began = True
        try:
            yield number, _DECODER.decode(line)
        except ValueError as problem:
            marked = line.startswith("\ufeff")  # as a file that was put behind another begins
            said = ValueError("a byte order mark stands before it") if marked else problem
            _not_json(path, number, said)
        except RecursionError:
            raise _too_deep(path, number) from None


def _array(path: File, text: str, line: int) -> Iterator[tuple[int, Any]]:
    at, counted = text.index("[") + 1, 0
    while True:
        at = _skip(text, at, " \t\r\n")
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            if text[at + 1 :].strip():
                raise InputError("there is text after the JSON array", path=path, line=line)
            return
        try:
            item, at = _DECODER.raw_decode(text, at)
        except ValueError as problem:
            _not_json(path, line, problem)
        except RecursionError:
            raise _too_deep(path, line) from None
        yield line, item
        at = _skip(text, at, " \t\r\n")
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            line += text.count("\n", counted, at)
            raise InputError("the JSON array lacks a comma or its end", path=path, line=line)


def _skip(text: str, at: int, blanks: str) -> int:
    while at < len(text) and text[at] in blanks:
        at += 1
    return at


def _not_json(path: File, line: int, problem: ValueError) -> NoReturn:
    what = (
        f"{problem.msg}, column {problem.colno}"
        if isinstance(problem, json.JSONDecodeError)
        else str(problem)
    )
    raise InputError(
        f"this is not JSON ({what}); mend this line, or make the file again if it was cut off",
        path=path,
        line=line,
    ) from None


def _no_nan(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value; use null")


_DECODER = json.JSONDecoder(parse_constant=_no_nan)


def _kind(item: Any) -> str:
    if isinstance(item, bool):
        return str(item).lower()
    if item is None:
        return "null"
    if isinstance(item, dict):
        return "an object"
    if isinstance(item, list | tuple):
        return "a list"
    return reprlib.repr(item)
