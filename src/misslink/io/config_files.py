"""Read YAML, JSON and TOML configuration files, with errors that name file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem, read_text
from misslink.text.normalization import valid_text

EntryPath = tuple[str | int, ...]  # keys and places in lists, from the outside in

_MAX_CHARACTERS = 1_000_000  # characters
_MAX_DEPTH = 30  # levels, far more than any such file has
# YAML 1.1 wants a point in it.
_EXPONENT_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


@dataclass(frozen=True)
class YamlDocument:
    """The content of a file with line numbers.

    Parameters
    ----------
    data : Any
        Of JSON values.
    lines : mapping
        The path of every entry to its line, counted from 1.
    """

    data: Any
    lines: dict[EntryPath, int]

    def line(self, spot: EntryPath) -> int | None:
        """The line of an entry, or of the nearest one around it."""
        while spot and spot not in self.lines:
            spot = spot[:-1]
        return self.lines.get(spot)


def read_config_file(path: Path, texts: Container[str] = ()) -> YamlDocument:
    """Read a YAML or JSON file, or one in TOML by its ending, which has no lines."""
    if path.suffix.casefold() == ".toml":
        return YamlDocument(read_toml(path), {})
    return read_yaml(path, texts)


def read_yaml(path: Path, texts: Container[str] = ()) -> YamlDocument:
    """Read a YAML file; every JSON file is one.

    Parameters
    ----------
    path : Path
    texts : container of str
        Keys under which everything is text, as it is written: ``tier: 1`` is ``"1"``.

    Returns
    -------
    Located
        ``data`` is None where the file is empty.

    Raises
    ------
    InputError
        It cannot be read, is no YAML, or uses what is not read here.
    """
    import yaml

    text = valid_text(read_text(path))
    if len(text) > _MAX_CHARACTERS:
        raise InputError(f"it has more than {_MAX_CHARACTERS:,} characters; shorten it", path=path)
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented so, and has no other tab
    lines: dict[EntryPath, int] = {}

    def build(node: Any, spot: EntryPath) -> Any:
        """Build the value of a node, and enter the line of each entry."""
        lines.setdefault(spot, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [build(item, (*spot, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return _build_scalar(path, loader, node, as_text=any(key in texts for key in spot))
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            item = SourceItem(None, str(path), key.start_mark.line + 1)
            if not isinstance(key, yaml.ScalarNode):
                raise item.error("a key is a word, not a list or a mapping")
            if key.value in mapping:
                raise item.error(
                    f"'{key.value}' is repeated here, and only one would count; remove one"
                )
            lines[*spot, key.value] = key.start_mark.line + 1
            mapping[key.value] = build(value, (*spot, key.value))
        return mapping

    try:
        _reject_yaml_features(path, text)
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return YamlDocument(None if root is None else build(root, ()), lines)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        reason = " ".join(str(problem.problem or problem.context).split())
        raise InputError(
            f"this is not YAML ({reason}); fix this line",
            path=path,
            line=None if mark is None else mark.line + 1,
        ) from None
    except yaml.YAMLError as problem:  # a character that YAML does not allow
        reason = " ".join(str(problem).split())
        raise InputError(f"this is not YAML ({reason}); fix it", path=path) from None


def _reject_yaml_features(path: Path, text: str) -> None:
    """Reject anchors, tags and deep nesting before anything is built."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:  # also of an alias
            problem = "YAML anchors and aliases are not read here; write the value out"
        elif getattr(event, "tag", None) is not None:
            problem = "YAML tags (with !) are not read here; write the value alone"
        else:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth <= _MAX_DEPTH:
                continue
            problem = f"this is more than {_MAX_DEPTH} levels deep; write it flat"
        raise InputError(problem, path=path, line=line)


def _build_scalar(path: Path, loader: Any, node: Any, *, as_text: bool) -> Any:
    kind, written = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if as_text or kind not in {"int", "float", "bool"}:
        plain = kind == "str" and node.style is None and not as_text
        return float(written) if plain and _EXPONENT_NUMBER.fullmatch(written) else written
    try:
        return loader.construct_object(node)
    except ValueError:  # a whole number with thousands of digits
        raise InputError(
            "this number is too long; shorten it", path=path, line=node.start_mark.line + 1
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    InputError
        It cannot be read, or is not TOML; with the line.
    """
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        spot = re.search(r"line (\d+)", str(error))
        problem = "this is not valid TOML; a text needs quotes, a list needs brackets"
        raise InputError(problem, path=path, line=int(spot[1]) if spot else None) from None
    except RecursionError:
        raise InputError("this is nested too deeply; write it flat", path=path) from None
