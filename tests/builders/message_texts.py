"""Every sentence of the source that a user may read, by module."""

import ast
import gc
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "misslink"
CODE = re.compile(r"\(\?|\\b|^\s*(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|ALTER)\b|^<|[{}]\s*$")


@cache
def syntax(path):
    """The syntax tree of a file."""
    gc.disable()  # which takes four times as long as to parse
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


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
    nodes, skipped = list(ast.walk(syntax(path))), set()
    for node in nodes:
        if isinstance(node, ast.Expr):  # docstrings
            skipped.add(node.value)
        if isinstance(node, ast.keyword) and node.arg == "keywords":  # words, and no sentence
            skipped.add(node.value)
        if isinstance(node, ast.JoinedStr):
            skipped |= set(ast.walk(node)) - {node}
    found = {}
    for node in nodes:
        text = None if node in skipped else text_of(node)
        is_sentence = text and len(text.split()) >= 4 and re.search(r"[a-z]{3} [a-z]{2}", text)
        if is_sentence and not CODE.search(text):
            found[" ".join(text.split())] = (node.lineno, node.col_offset)
    return sorted(found, key=found.get)


@cache
def written():
    lines = []
    for path in sorted(SOURCE.rglob("*.py")):
        if found := texts(path):
            lines += [f"# {path.relative_to(SOURCE)}", *found, ""]
    return "\n".join(lines)
