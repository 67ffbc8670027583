"""Read what Python prints for lists and documents, as CSV files contain it."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterable
from typing import Any

from misslink.io.jsonl import SourceItem

_OBJECT = r"(?:Document|NodeWithScore|\w+Node)\("
_TUPLE_START = re.compile(rf"\s*\(\s*{_OBJECT}")
_LIST_START = re.compile(rf"\s*\[\s*(?:['\"{{]|[A-Z]\w*\()|{_TUPLE_START.pattern}")
# As a document of LangChain or a node of LlamaIndex prints itself, in a list or alone.
_DOCUMENT = re.compile(rf"\s*(?:{_OBJECT}|page_content=['\"])")
# As LangChain prints a document for people: its text stays as it is, quotes and lines included.
_PLAIN_DOCUMENT = re.compile(r"\s*page_content='")
_PLAIN_METADATA = "' metadata="
# As LlamaIndex prints a node for people.
_NODE = re.compile(
    r"Node ID: (?P<id>.+)\nText: (?P<text>[\s\S]*?)\n(?:Score: +(?P<score>[\d.]+)\s*)?$"
)
_UNREADABLE = (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError)


def decode_json(value: Any, starts: str = "{[") -> Any:
    """Decode a text that is a JSON object or list; return anything else as it is.

    `starts` are the characters with which one begins.
    """
    if isinstance(value, str) and value.strip()[:1] in tuple(starts):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def check_closed(item: SourceItem, value: Any, names: Iterable[str]) -> None:
    """Refuse a text that begins as a list of texts and could not be decoded as one.

    Raises
    ------
    InputError
        It would count as one passage.
    """
    if isinstance(value, str) and _LIST_START.match(value):
        field = next(name for name in names if item.data.get(name) is not None)
        raise item.error('This list cannot be read. Write it as JSON: ["...", "..."].', field)


def parse_printed_list(value: Any) -> Any:
    """Decode a list that a CSV file contains as Python prints it."""
    if not isinstance(value, str) or not (
        value.lstrip().startswith(("[", "{")) or _TUPLE_START.match(value)
    ):
        return value
    value = decode_json(value)
    if isinstance(value, str) and value.strip()[:1] + value.strip()[-1:] in ("[]", "()"):
        try:
            return _evaluate(value.strip())
        except _UNREADABLE:
            return value
    return value


def parse_printed_document(text: str) -> Any:
    """Return the fields of a document of LangChain or LlamaIndex that a text prints; else the text.

    >>> parse_printed_document("page_content='It opens at 9.' metadata={'page': 2}")
    {'page_content': 'It opens at 9.', 'metadata': {'page': 2}}
    """
    if node := _NODE.match(text):
        return {name: value for name, value in node.groupdict().items() if value}
    if not _DOCUMENT.match(text):
        return text
    text = text.strip()
    try:
        fields = _evaluate(text if text.endswith(")") else f"Document({text})")
    except _UNREADABLE:
        return _parse_plain_document(text)
    return fields if isinstance(fields, dict) else text


def _parse_plain_document(text: str) -> Any:
    if not (start := _PLAIN_DOCUMENT.match(text)):
        return text
    content, metadata = text[start.end() :].rstrip().removesuffix("'"), "{}"
    if content.endswith("}") and f"{_PLAIN_METADATA}{{" in content:
        content, _, metadata = content.rpartition(_PLAIN_METADATA)
    elif not text.rstrip().endswith("'"):
        return text
    try:
        fields = _evaluate(f"Metadata(all={metadata})")["all"]
    except _UNREADABLE:
        fields = {}
    return {"page_content": content, "metadata": fields}


def _evaluate(printed: str) -> Any:
    return _value(ast.parse(_insert_commas(printed), mode="eval").body)


def _value(node: ast.expr, *, in_object: bool = False) -> Any:
    """The value of an expression; an object by its constructor is a mapping of its fields."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, in_object=in_object) for item in node.elts]
    if isinstance(node, ast.Call) and node.keywords and not node.args:
        return _fields({str(p.arg): _value(p.value, in_object=True) for p in node.keywords})
    if isinstance(node, ast.Dict) and in_object:
        pairs = zip(node.keys, node.values, strict=True)
        return {ast.literal_eval(key): _value(value, in_object=True) for key, value in pairs if key}
    try:
        return ast.literal_eval(node)
    except ValueError:
        if not in_object:
            raise
        return ast.unparse(node)  # nan, or the time of a document


def _fields(printed: dict[str, Any]) -> dict[str, object]:
    """The fields of an object; those of a node of LlamaIndex under the names of passages."""
    if isinstance(node := printed.get("node"), dict):
        return {**node, "score": printed.get("score")}
    if "id_" not in printed:
        return printed
    text = printed.get("text") or (printed.get("text_resource") or {}).get("text")
    return {"id": printed["id_"], "text": text, "metadata": printed.get("metadata") or {}}


def _insert_commas(printed: str) -> str:
    r"""Insert a comma between two texts, objects or fields, where pandas and pydantic print none.

    A member of an enumeration, ``<Relation.SOURCE: '1'>``, becomes its value.

    >>> _insert_commas("['one'\n 'two']")
    "[ 'one' , 'two' ]"
    """
    pieces: list[str] = []
    last = None
    member: list[str] | None = None  # the pieces of a member of an enumeration
    for token in tokenize.generate_tokens(io.StringIO(printed).readline):
        if token.type in {tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}:
            continue
        if member is not None:
            member.append(token.string)
            if token.string == ">":  # <NAME.MEMBER: VALUE>; else it is no value, and stays
                pieces += [member[4]] if member[1::2] == [".", ":", ">"] else ["<", *member]
                member, last = None, token.type
            continue
        if token.string == "<":
            member = []
            continue
        is_new_field = token.type == tokenize.NAME and (
            last == tokenize.STRING or pieces[-1:] in ([")"], ["}"])
        )
        if (
            token.type == last == tokenize.STRING
            or (pieces[-1:], token.string) == (["}"], "{")
            or is_new_field
        ):
            pieces.append(",")
        pieces.append(token.string)
        last = token.type
    return " ".join(pieces)
