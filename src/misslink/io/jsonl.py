"""Read and write JSON Lines, and parse objects with errors that name file, line and field."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from misslink.errors import InputError, known_names
from misslink.io.storage import InputFile, decode_utf8, open_decompressed, read_bytes
from misslink.text.normalization import valid_text

Model = TypeVar("Model", bound=BaseModel)
EMPTY_FILE = "there is nothing in it; it needs one JSON object a line"
_MAX_TEXT = 1_000_000  # characters; more than any model reads, and comparing takes minutes
_SHORT_TEXT = 40  # characters; shorter texts are not worth looking up
_MAX_DEPTH = 100  # levels; pydantic reads some that it then cannot write, from 250 on


class SourceItem(NamedTuple):
    """One object, and its location.

    Parameters
    ----------
    data : Any
    file : str
        As it may be shown; of what is given in Python its name.
    number : int or None
        Its line from 1, or its row in parquet. None: given in Python.
    in_row : bool
        Whether it is of parquet.
    """

    data: Any
    file: str
    number: int | None = None
    in_row: bool = False

    @property
    def path(self) -> str:
        """What a message names: the file, and the row, which is no line."""
        return f"{self.file}, row {self.number}" if self.in_row else self.file

    @property
    def line(self) -> int | None:
        """The line a message names."""
        return None if self.in_row else self.number

    def error(self, problem: str, field: str | None = None) -> InputError:
        """Return an error that names the file, the line or row, and the field."""
        return InputError(problem, path=self.path, line=self.line, field=field)

    def parse(self, model: type[Model], texts: dict[str, str] | None = None) -> Model:
        """Build `model` from the object; see `parse_model`."""
        return parse_model(model, self.data, self.path, self.line, texts)


def as_list(source: Any, name: str) -> list[Any]:
    """Return what was given in Python in place of a file, as a list; of a data frame its rows.

    In a frame NaN means that there is no value.
    """
    to_rows = getattr(source, "to_dicts", None)  # polars
    if to_rows is None and hasattr(source, "columns"):
        to_rows = partial(getattr(source, "to_dict"), "records")  # noqa: B009 - pandas
    if callable(to_rows):
        return [_plain_value(row) for row in to_rows()]
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(
            f"{name} given in Python is {describe_json(source)}; give a list of objects"
        )
    return list(source)


def _plain_value(value: Any) -> Any:
    """A value of a data frame as JSON has it, without what is missing."""
    if isinstance(value, dict):
        plain = ((str(name), _plain_value(item)) for name, item in value.items())
        return {name: item for name, item in plain if item is not None}
    value = value.tolist() if hasattr(value, "tolist") else value  # NumPy's
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]
    if isinstance(value, float):  # a column of whole numbers with gaps
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    return None if type(value).__name__ in {"NAType", "NaTType"} else value


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; one that gzip packed is unpacked.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or it is in another encoding.
    """
    return decode_utf8(read_bytes(path), path)


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number (from 1) and the content of each JSON object of a file.

    Blank lines are passed over. A file whose first character is ``[`` is one JSON array.

    Raises
    ------
    InputError
        A line is not JSON or not an object, is nested too deeply, or there is no object at all.
    """
    empty = True
    with open_decompressed(path) as content:
        for numbered in iter_objects(content, path):
            empty = False
            yield numbered
    if empty:
        raise InputError(EMPTY_FILE, path=path)


def iter_objects(
    content: io.BufferedReader, path: InputFile
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what `read_objects` does of an opened file, line by line; nothing where it is empty.

    Parameters
    ----------
    content : BufferedReader
        An array is held in memory whole, of lines one at a time.
    path : Path or Stored
        For messages.
    """
    for line, item in _iter_items(content, path):
        if not isinstance(item, dict):
            raise InputError(
                f"this is {describe_json(item)}, not a JSON object in braces", path=path, line=line
            )
        yield line, item


def write_jsonl(path: Path, items: Iterable[BaseModel]) -> None:
    """Write one JSON object a line, in UTF-8."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(item.model_dump_json() + "\n" for item in items)


def parse_model(
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
        raise InputError(
            f"this is {describe_json(data)}, not an object with fields", path=path, line=line
        )
    try:
        return model.model_validate(_clean_value(dict(data), _MAX_DEPTH, texts))
    except RecursionError:
        raise _too_deep_error(path, line) from None
    except InputError as too_long:
        raise InputError(too_long.problem, path=path, line=line) from None
    except ValidationError as invalid:
        error = invalid.errors()[0]
        spot = [str(part) for part in error["loc"] if part != "[key]"]
        field = ".".join(spot) or None
        if error["type"] == "extra_forbidden" and len(spot) == 1:
            raise _unknown_field_error(model, spot[0], path, line) from None
        # A model's name says nothing to users.
        problem = error["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
        if error["type"] == "missing":
            problem = "this field is required; add it"
        else:
            problem += f" (found {describe_json(error['input'])})"
        raise InputError(problem, path=path, line=line, field=field) from None


def field_names(field: str, info: FieldInfo) -> list[str]:
    """Return every name that a field of a model may be given by, its own last."""
    alias = info.validation_alias
    choices = [str(c) for c in alias.choices] if isinstance(alias, AliasChoices) else [field]
    return [*choices, field]


def parse_nested_json(text: str, path: object, field: str) -> Any:
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
        raise _too_deep_error(path, None) from None
    except ValueError as problem:
        if not re.match(r"\{\s*\"|\[\s*[{\"]", bare):
            return text  # an id such as [draft] memo
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise InputError(
            f"this text is not JSON ({reason}); fix it, or write a column of lists or structs",
            path=path,
            field=field,
        ) from None


def _clean_value(item: Any, levels: int, texts: dict[str, str]) -> Any:
    """What UTF-8 can carry of `item`; RecursionError where more than `levels` are nested in it."""
    if isinstance(item, str):
        if len(item) < _SHORT_TEXT:
            return item if item.isascii() else valid_text(item)
        return intern_text(item, texts)
    if not isinstance(item, dict | list):
        return item
    if not levels:
        raise RecursionError
    levels -= 1
    if isinstance(item, dict):
        return {
            name if isinstance(name, str) and name.isascii() else _clean_value(name, 0, texts): (
                _clean_value(value, levels, texts)
            )
            for name, value in item.items()
        }
    return [_clean_value(value, levels, texts) for value in item]


def intern_text(text: str, texts: dict[str, str]) -> str:
    """The same text if it was read before; InputError if it is longer than any model reads."""
    if len(text) > _MAX_TEXT:
        raise InputError(
            f"a text has {len(text):,} characters, and the most is {_MAX_TEXT:,}; split it"
        )
    valid = text if text.isascii() else valid_text(text)
    return texts.setdefault(valid, valid)


def _too_deep_error(path: object, line: int | None) -> InputError:
    return InputError(
        f"this is nested too deeply to be read; leave out what lies deeper than {_MAX_DEPTH} levels",
        path=path,
        line=line,
    )


def _unknown_field_error(
    model: type[BaseModel], name: str, path: object, line: int | None
) -> InputError:
    names = []
    for field, info in model.model_fields.items():
        names += field_names(field, info)
    names = list(dict.fromkeys(names))
    if name in names:
        problem = "another name of this field is given too; keep one of the two"
        return InputError(problem, path=path, line=line, field=name)
    return InputError(
        f"there is no such field; {known_names(name, names, ' fields')}",
        path=path,
        line=line,
        field=name,
    )


def _iter_items(content: io.BufferedReader, path: InputFile) -> Iterator[tuple[int, Any]]:
    began = False
    for number, raw in enumerate(content, start=1):
        line = decode_utf8(raw, path, number).rstrip("\n")
        if not line.strip():
            continue
        if not began and line.lstrip().startswith("["):
            remainder = decode_utf8(content.read(), path, number + 1)
            yield from _iter_array(path, f"{line}\n{remainder}", number)
            return
        try:
            yield number, _DECODER.decode(line)
            began = True
        except ValueError as problem:
            if not began and line.lstrip().startswith("{"):  # one object over several lines
                remainder = decode_utf8(content.read(), path, number + 1)
                with contextlib.suppress(ValueError):
                    yield number, _DECODER.decode(f"{line}\n{remainder}")
                    return
            marked = line.startswith("\ufeff")  # as a file that was put behind another begins
            reason = ValueError("a byte order mark precedes it") if marked else problem
            _raise_not_json(path, number, reason)
        except RecursionError:
            raise _too_deep_error(path, number) from None


def _iter_array(path: InputFile, text: str, line: int) -> Iterator[tuple[int, Any]]:
    index, counted_to = text.index("[") + 1, 0
    while True:
        index = _skip_characters(text, index, " \t\r\n")
        line, counted_to = line + text.count("\n", counted_to, index), index
        if text[index : index + 1] == "]":
            if text[index + 1 :].strip():
                raise InputError("there is text after the JSON array", path=path, line=line)
            return
        try:
            item, index = _DECODER.raw_decode(text, index)
        except ValueError as problem:
            _raise_not_json(path, line, problem)
        except RecursionError:
            raise _too_deep_error(path, line) from None
        yield line, item
        index = _skip_characters(text, index, " \t\r\n")
        if text[index : index + 1] == ",":
            index += 1
        elif text[index : index + 1] != "]":
            line += text.count("\n", counted_to, index)
            raise InputError("the JSON array lacks a comma or its end", path=path, line=line)


def _skip_characters(text: str, index: int, blanks: str) -> int:
    while index < len(text) and text[index] in blanks:
        index += 1
    return index


def _raise_not_json(path: InputFile, line: int, problem: ValueError) -> NoReturn:
    if isinstance(problem, DuplicateKeyError):
        raise InputError(str(problem), path=path, line=line) from None
    reason = (
        f"{problem.msg}, column {problem.colno}"
        if isinstance(problem, json.JSONDecodeError)
        else str(problem)
    )
    raise InputError(
        f"this is not JSON ({reason}); fix this line, or write the file again if it was cut off",
        path=path,
        line=line,
    ) from None


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value; use null")


class DuplicateKeyError(ValueError):
    """An object of a JSON text has a key twice."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its keys and values; DuplicateKeyError where a key is there twice."""
    item = dict(pairs)
    if len(item) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateKeyError(f"the key {twice!r} is there twice; keep one of the two")
    return item


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, object_pairs_hook=unique_keys)


def describe_json(item: Any) -> str:
    if isinstance(item, bool):
        return str(item).lower()
    if item is None:
        return "null"
    if isinstance(item, dict):
        return "an object"
    if isinstance(item, list | tuple):
        return "a list"
    return reprlib.repr(item)
