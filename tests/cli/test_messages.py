"""All texts of errors, warnings, reasons and commands in one file, and the rules for them."""

import ast
import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "misslink"
EXPECTED = ROOT / "tests" / "gold" / "messages.txt"
CODE = re.compile(r"\(\?|\\b|^\s*(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|ALTER)\b|^<|[{}]\s*$")
# src/misslink/report/glossary.md and the rules for texts: words that a reader has to guess.
BANNED = re.compile(
    r"\b(held against|(is|are|was|were) told|told of|brings?|brought|stands? (in|on|beside|there|where)"
    r"|lies (in|on|beside|there)|goes on|go on|at hand|anew|mends?|mended|nobody|somebody|whoever"
    r"|in vain|of which|(is|are|was) asked(?! for)|the way out|slip of the pen|what becomes of|as far as"
    r"|for ever|of its own|of theirs|(is|are|was|were) kept|spared?|no word|well and|beforehand"
    r"|by heart|cut-off|someone|everybody|golden|no more frequent|goes with)\b",
    re.IGNORECASE,
)
LIBRARY_ERRORS = re.compile(
    r"ValidationError|YAMLError|sqlite3|OperationalError|APIError|TOMLDecode|csv\.Error|Arrow"
)


def text_of(node):
    """The text of a string expression, with {names} for what is put in; None for other nodes."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (
            part.value if isinstance(part, ast.Constant) else f"{{{shortened(part.value)}}}"
            for part in node.values
        )
        return "".join(parts)
    return None


def shortened(expression):
    names = [node.id for node in ast.walk(expression) if isinstance(node, ast.Name)]
    return names[-1] if names else "..."


def texts(path):
    """The texts of a module that hold a sentence, in order, each once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # docstrings
            skipped.add(node.value)
        if isinstance(node, ast.keyword) and node.arg == "keywords":  # words, and no sentence
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped |= set(ast.walk(node)) - {node}
    found = {}
    for node in ast.walk(tree):
        text = None if node in skipped else text_of(node)
        is_sentence = text and len(text.split()) >= 4 and re.search(r"[a-z]{3} [a-z]{2}", text)
        if is_sentence and not CODE.search(text):
            found[" ".join(text.split())] = (node.lineno, node.col_offset)
    return sorted(found, key=found.get)


def written():
    lines = []
    for path in sorted(SOURCE.rglob("*.py")):
        if found := texts(path):
            lines += [f"# {path.relative_to(SOURCE)}", *found, ""]
    return "\n".join(lines)


def test_all_texts_are_the_expected_ones():
    if os.environ.get("MISSLINK_ACCEPT"):
        EXPECTED.write_text(written(), encoding="utf-8")
    assert written() == EXPECTED.read_text(encoding="utf-8"), "accept with MISSLINK_ACCEPT=1"


def test_no_text_uses_a_word_that_a_reader_has_to_guess():
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if BANNED.search(line)] == []


def leaks(path):
    """Lines of a module that put the text of a library's error into a message."""
    for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(handler, ast.ExceptHandler)
            and handler.name
            and (LIBRARY_ERRORS.search(ast.unparse(handler.type)))
        ):
            raw = {handler.name, f"str({handler.name})"}
            for node in ast.walk(handler):
                if isinstance(node, ast.FormattedValue) and ast.unparse(node.value) in raw:
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}"


def test_no_message_holds_the_text_of_a_library():
    """What pydantic, YAML and SQLite report is read, and put into misslink's words."""
    assert [line for path in sorted(SOURCE.rglob("*.py")) for line in leaks(path)] == []
