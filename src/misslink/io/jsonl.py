"""Read and write JSON Lines, and parse objects with errors that name file, line and field."""

from __future__ import annotations

import io
import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from misslink.errors import InputError, did_you_mean, known_names
from misslink.io.storage import InputFile, decode_utf8, open_decompressed, read_bytes
from misslink.text.normalization import valid_text

Model = TypeVar("Model", bound=BaseModel)
EMPTY_FILE = "the file is empty; write one JSON object per line"
_MAX_TEXT = 1_000_000  # characters; more than any model reads, and comparing takes minutes
_SHORT_TEXT = 40  # characters; shorter texts are not worth looking up
_REPEATED_FIELDS = "claims", "prompt"  # of the verdicts of a case
_MAX_DEPTH = 100  # levels; pydantic reads some that it then cannot write, from 250 on
_TOO_DEEP = f"this is nested too deeply; remove what is deeper than {_MAX_DEPTH} levels"
_ATOMS = frozenset({int, float, bool, type(None)})
_BLANKS = re.compile(r"[ \t\r\n]*")


class SourceItem(NamedTuple):
    """One object, and its location.

    Parameters
    ----------
    data : Any
    file : str
        As it may be shown; of what is given in Python its name.
    number : int or None
        Its line from 1, or its row in a parquet or Excel file. None: given in Python.
    in_row : bool
        Whether `number` is a row.
    """

    data: Any
    file: str
    number: int | None = None
    in_row: bool = False

    @property
    def place(self) -> str:
        """The location, such as ``gold.jsonl, line 3``."""
        number = f", {'row' if self.in_row else 'line'} {self.number}"
        return self.file if self.number is None else f"{self.file}{number}"

    def first_place(self, again: SourceItem) -> str:
        """The location for a message about `again`, which repeats it; empty if it has none."""
        if self.number is None:
            return ""
        place = f"{'in row' if self.in_row else 'on line'} {self.number}"
        return place if self.file == again.file else f"{place} of {self.file}"

    def error(
        self, problem: str, field: str | None = None, kind: type[InputError] = InputError
    ) -> InputError:
        """Return an error that names the file, the line or row, and the field."""
        path, line = (self.place, None) if self.in_row else (self.file, self.number)
        return kind(problem, path=path, line=line, field=field)

    def parse(self, model: type[Model], texts: dict[str, str] | None = None) -> Model:
        """Build `model` from the object, naming the field of what is wrong.

        `texts` are those of a file that were read so far: one that comes again is held once, as
        the passages of a small corpus that many cases retrieve.
        """
        if not isinstance(self.data, Mapping):
            raise self.error(f"this is {describe_json(self.data)}, not an object with fields")
        try:
            return model.model_validate(
                _clean_value(dict(self.data), _MAX_DEPTH, {} if texts is None else texts)
            )
        except RecursionError:
            raise self.error(_TOO_DEEP) from None
        except InputError as too_long:
            raise self.error(too_long.problem) from None
        except ValidationError as invalid:
            errors = invalid.errors()
            fields = {str(error["loc"][0]): error for error in errors if len(error["loc"]) == 1}
            lacking = [name for name, error in fields.items() if error["type"] == "missing"]
            misspelt = (
                error
                for name, error in fields.items()
                if error["type"] == "extra_forbidden" and did_you_mean(name.lower(), lacking)
            )
            error = next(misspelt, errors[0])
            spot = [str(part) for part in error["loc"] if part != "[key]"]
            if error["type"] == "extra_forbidden" and len(spot) == 1:
                problem = _unknown_field(model, spot[0])
            elif error["type"] == "missing":
                problem = "this field is required; add it"
            else:  # a model's name says nothing to users
                problem = error["msg"].removeprefix("Value error, ")
                if error["type"] in _PROBLEMS:
                    problem = _PROBLEMS[error["type"]].format(**error.get("ctx", {}))
                found = error["input"]
                if error["type"] != "value_error" or not isinstance(found, dict | list | tuple):
                    problem += f" (found {describe_json(found)})"
            raise self.error(problem, ".".join(spot) or None) from None


_PROBLEMS = {  # by pydantic's type of error
    **dict.fromkeys(("bool_parsing", "bool_type"), "this must be true or false"),
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "this must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "this must be a number"),
    **dict.fromkeys(("list_type", "tuple_type"), "this must be a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "this must be an object"),
    "model_attributes_type": "this must be an object",
    "string_type": "this must be a text",
    "string_too_short": "this must not be empty",
    "greater_than_equal": "this must be {ge:g} or more",
    "greater_than": "this must be more than {gt:g}",
    "less_than_equal": "this must be {le:g} or less",
    "literal_error": "this must be {expected}",
}


def _unknown_field(model: type[BaseModel], name: str) -> str:
    fields = model.model_fields.items()
    names = list(dict.fromkeys(n for field, info in fields for n in field_names(field, info)))
    if name in names:
        return "this field has two names here; keep one of the two"
    return f"there is no such field; {known_names(name, names, ' fields')}"


def field_names(field: str, info: FieldInfo) -> list[str]:
    """Return every name that a field of a model may be given by, its own last."""
    alias = info.validation_alias
    choices = [str(c) for c in alias.choices] if isinstance(alias, AliasChoices) else [field]
    return [*choices, field]


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
                # Most values are so, and to call for each takes half of the time of reading.
                value
                if type(value) in _ATOMS
                or (type(value) is str and len(value) < _SHORT_TEXT and value.isascii())
                else _clean_value(value, levels, texts)
            )
            for name, value in item.items()
        }
    return [_clean_value(value, levels, texts) for value in item]


def check_length(text: str) -> None:
    """Raise InputError if a text is longer than any model reads."""
    if len(text) > _MAX_TEXT:
        raise InputError(
            f"a text has {len(text):,} characters, and the most is {_MAX_TEXT:,}; split it"
        )


def intern_text(text: str, texts: dict[str, str]) -> str:
    """The same text if it was read before; InputError if it is longer than any model reads."""
    check_length(text)
    valid = text if text.isascii() else valid_text(text)
    return texts.setdefault(valid, valid)


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


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; one that gzip packed is unpacked.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or it is in another encoding.
    """
    return decode_utf8(read_bytes(path), path)


def write_jsonl(path: Path, items: Iterable[BaseModel]) -> None:
    """Write one JSON object a line, in UTF-8."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(item.model_dump_json() + "\n" for item in items)


def read_objects(path: Path) -> Iterator[SourceItem]:
    """Yield each JSON object of a file.

    Blank lines are passed over. A file whose first character is ``[`` is one JSON array.

    Raises
    ------
    InputError
        A line is not JSON or not an object, is nested too deeply, or there is no object at all.
    """
    empty = True
    with open_decompressed(path) as content:
        for item in iter_objects(content, path):
            empty = False
            yield item
    if empty:
        raise InputError(EMPTY_FILE, path=path)


def iter_objects(content: io.BufferedReader, path: InputFile) -> Iterator[SourceItem]:
    """Yield what `read_objects` does of an opened file; nothing where it is empty.

    An array is held in memory whole, of lines one at a time.
    """
    for item in _iter_values(content, path):
        if not isinstance(item.data, dict):
            raise item.error(f"this is {describe_json(item.data)}, not a JSON object in braces")
        yield item


def _iter_values(content: io.BufferedReader, path: InputFile) -> Iterator[SourceItem]:
    name, first = str(path), True
    for number, raw in enumerate(content, start=1):
        line = decode_utf8(raw, path, number).rstrip("\n")
        start = line.lstrip()[:1]
        if not start:
            continue
        if first and start == "[":
            remainder = decode_utf8(content.read(), path, number + 1)
            yield from _iter_array(f"{line}\n{remainder}", SourceItem(None, name, number))
            return
        try:
            yield SourceItem(_DECODER.decode(line), name, number)
            first = False
        except (ValueError, RecursionError) as problem:
            item = SourceItem(None, name, number)
            if first and start == "{" and isinstance(problem, ValueError):
                text = f"{line}\n{decode_utf8(content.read(), path, number + 1)}"
                try:  # objects over several lines
                    _DECODER.raw_decode(text.lstrip())
                except RecursionError as too_deep:
                    problem = too_deep
                except ValueError:
                    pass
                else:
                    yield from _iter_concatenated(text, item)
                    return
            if line.startswith("\ufeff"):  # as a file that was put behind another begins
                problem = ValueError("a byte order mark precedes it")
            raise _not_json_error(item, problem) from None


def _iter_array(text: str, item: SourceItem) -> Iterator[SourceItem]:
    """The items of a JSON array that begins at `item`, each with its line."""
    index, line, counted_to = text.index("[") + 1, item.number or 1, 0
    separated = True
    while True:
        index = _skip_blanks(text, index)
        line, counted_to = line + text.count("\n", counted_to, index), index
        item = item._replace(number=line)
        sign = text[index : index + 1]
        if sign == "]":
            if text[index + 1 :].strip():
                raise item.error("there is text after the JSON array")
            return
        if not separated:
            raise item.error("the JSON array lacks a comma or its end")
        try:
            data, index = _DECODER.raw_decode(text, index)
        except (ValueError, RecursionError) as problem:
            raise _not_json_error(item, problem) from None
        yield item._replace(data=data)
        index = _skip_blanks(text, index)
        separated = text[index : index + 1] == ","
        index += separated


def _iter_concatenated(text: str, item: SourceItem) -> Iterator[SourceItem]:
    """The objects that follow each other from `item` on, each with its line."""
    index, line, counted_to = 0, item.number or 1, 0
    while (index := _skip_blanks(text, index)) < len(text):
        line, counted_to = line + text.count("\n", counted_to, index), index
        item = item._replace(number=line)
        try:
            data, index = _DECODER.raw_decode(text, index)
        except (ValueError, RecursionError) as problem:
            raise _not_json_error(item, problem) from None
        yield item._replace(data=data)


def _skip_blanks(text: str, index: int) -> int:
    match = _BLANKS.match(text, index)
    return index if match is None else match.end()


def parse_sharing(
    item: SourceItem,
    model: type[Model],
    texts: dict[str, str],
    repeated: dict[str, tuple[Any, Any]],
) -> Model:
    """Parse an entry; claims and prompts that are those of the entry before are held once."""
    given = {name: item.data.get(name) for name in _REPEATED_FIELDS}
    same = {
        name: repeated[name][1]
        for name in repeated
        if given[name] and given[name] == repeated[name][0]
    }
    parsed = item._replace(data={**item.data, **same}).parse(model, texts)
    for name in given.keys() - same.keys():
        if given[name]:
            repeated[name] = given[name], getattr(parsed, name)
    return parsed


def parse_nested_json(text: str, item: SourceItem, field: str) -> Any:
    """Return the list or object that a text says; the text itself where it says none.

    Parameters
    ----------
    text : str
        Of a column for a list or an object, where a single id may stand too.
    item : SourceItem
    field : str
        Its column, for messages.

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
        raise item.error(_TOO_DEEP) from None
    except ValueError as problem:
        if not re.match(r"\{\s*\"|\[\s*[{\"]", bare):
            return text  # an id such as [draft] memo
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise item.error(
            f"this text is not JSON ({reason}); fix it, or write a column of lists or structs",
            field,
        ) from None


def _not_json_error(item: SourceItem, problem: Exception) -> InputError:
    if isinstance(problem, RecursionError):
        return item.error(_TOO_DEEP)
    if isinstance(problem, DuplicateKeyError):
        return item.error(str(problem))
    reason = str(problem)
    if isinstance(problem, json.JSONDecodeError):
        reason = f"{problem.msg}, column {problem.colno}"
    return item.error(
        f"this is not JSON ({reason}); fix this line, or write the file again if it was cut off"
    )


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value; use null")


class DuplicateKeyError(ValueError):
    """An object of a JSON text has a key twice."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    """Make an object of its keys and values; DuplicateKeyError where a key is there twice."""
    item = dict(pairs)
    if len(item) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateKeyError(f"the key {twice!r} occurs twice; keep one of the two")
    return item


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, object_pairs_hook=unique_keys)
