"""The rules for all texts of errors, warnings, reasons and commands."""

import ast
import re

import pytest

from message_texts import ROOT, SOURCE, syntax, written

pytestmark = pytest.mark.source

ARTIFACT = ROOT / "build" / "messages.txt"
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


def test_no_text_uses_a_word_that_a_reader_has_to_guess():
    """The texts are also in build/messages.txt, to read them and to compare two versions."""
    text = written()
    ARTIFACT.parent.mkdir(exist_ok=True)
    ARTIFACT.write_text(text, encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) > 1000
    assert [line for line in lines if BANNED.search(line)] == []


def leaks(path):
    """Lines of a module that put the text of a library's error into a message."""
    if not LIBRARY_ERRORS.search(path.read_text(encoding="utf-8")):
        return
    for handler in ast.walk(syntax(path)):
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
