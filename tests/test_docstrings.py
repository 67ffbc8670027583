"""A docstring names no parameter, attribute or section that is not there."""

import ast
import re

import pytest

from code_size import PACKAGE
from message_texts import syntax

pytestmark = pytest.mark.source

SECTION = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?:.*)?$", re.MULTILINE)
KNOWN = {
    "Parameters",
    "Returns",
    "Yields",
    "Raises",
    "Examples",
    "Attributes",
    "Notes",
    "References",
}


def sections(text):
    """The sections of a docstring by title."""
    parts = SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names_in(section):
    """What a section lists, each name without its stars."""
    found = ENTRY.findall(section)
    return [name.strip().lstrip("*") for entry in found for name in entry.split(",")]


def parameters(function):
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {each.arg for each in [*every, arguments.vararg, arguments.kwarg] if each}


def members(node):
    """What the constructor of a class takes, and its fields and properties."""
    found = set()
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            found.add(child.target.id)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(child.name)
            found |= parameters(child) if child.name == "__init__" else set()
            found |= {
                target.attr
                for target in ast.walk(child)
                if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
            }
        elif isinstance(child, ast.Assign):
            found |= {target.id for target in child.targets if isinstance(target, ast.Name)}
    return found


def definitions(node):
    """The functions and classes in a node, at any depth; expressions hold none."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield child
            yield from definitions(child)


def wrong_names(path):
    defined = list(definitions(syntax(path)))
    classes = {node.name: node for node in defined if isinstance(node, ast.ClassDef)}

    def known(node):
        own = members(node)
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes:
                own |= known(classes[base.id])
        return own

    for node in defined:
        if isinstance(node, ast.ClassDef):
            there, where = known(node), ("Parameters", "Attributes")
        else:
            there, where = parameters(node), ("Parameters",)
        found = sections(ast.get_docstring(node) or "")
        place = f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        yield from (f"{place}: section {title}" for title in found.keys() - KNOWN)
        for title in where:
            listed = names_in(found.get(title, ""))
            yield from (f"{place}: {name}" for name in listed if name not in there)


def test_what_a_docstring_lists_is_there():
    assert [wrong for path in sorted(PACKAGE.rglob("*.py")) for wrong in wrong_names(path)] == []
