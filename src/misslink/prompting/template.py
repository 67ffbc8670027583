"""A prompt's template: run in a sandbox, and refused if it lets untrusted text past its fence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import jinja2
import jinja2.sandbox
from jinja2 import meta, nodes

from misslink.errors import InputError
from misslink.prompting.fence import LABELS, Fence

__all__ = ["BLOCKS", "Template"]

BLOCKS = "system", "user"
_FENCE, _LOOP = "fence", "loop"
_OF_LOOP = frozenset(
    {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"}
)
_HARMLESS = frozenset({"length", "count", "int"})  # filters that let a number through and no text
_ELSEWHERE = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_WAY_IN = "put it into the block system or user, or make it a comment, {# ... #}"
_WAY_OUT = "put it into fence(label, text)"


class Template:
    """A template, ready to be rendered.

    Parameters
    ----------
    source : str
        With the blocks ``system`` and ``user``.
    path : str
        Where it comes from, for messages.
    first_line : int
        The line of that file at which `source` begins, from 1.
    sandboxed : bool
        Whether somebody else wrote it. Misslink's own need no sandbox, which halves the time.

    Attributes
    ----------
    variables : frozenset of str
        What it reads.

    Raises
    ------
    InputError
        It is no Jinja, lacks a block, has words outside of its blocks, which nobody would send,
        reads another file, or lets untrusted text past its fence; with the file and the line.
    """

    def __init__(self, source: str, path: str, first_line: int, *, sandboxed: bool = True) -> None:
        self._path, self._first = path, first_line
        kind = jinja2.sandbox.ImmutableSandboxedEnvironment if sandboxed else jinja2.Environment
        environment = kind(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        try:
            tree = environment.parse(source)
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as problem:
            raise self._error(
                f"it is no Jinja template: {problem.message}", problem.lineno
            ) from None
        for name in BLOCKS:
            if name not in self._template.blocks:
                raise self._error(f"it has no block '{name}'; every prompt has system and user")
        for line, mistake in chain(_leaks(tree), _unsent(tree)):
            raise self._error(mistake, line)
        self.variables = frozenset(meta.find_undeclared_variables(tree)) - {_FENCE}
        self._labels = LABELS.union(*map(_label, tree.find_all(nodes.Call)))

    def render(self, texts: Mapping[str, Any]) -> tuple[str, str]:
        """Return the blocks system and user, with `texts` in them.

        Raises
        ------
        InputError
            It reads what is not in `texts`, or does what the sandbox forbids.
        """
        context = self._template.new_context({**texts, _FENCE: Fence(texts, self._labels)})
        try:
            system, user = (
                "".join(self._template.blocks[name](context)).strip() for name in BLOCKS
            )
        except Exception as problem:  # noqa: BLE001 (whatever somebody's template raises)
            said = getattr(problem, "message", None) or str(problem) or type(problem).__name__
            line = self._line(problem)
            raise self._error(f"it cannot be rendered: {said}", line) from None
        return system, user

    def _error(self, problem: str, line: int | None = None) -> InputError:
        at = None if line is None else line + self._first - 1
        return InputError(problem, path=self._path, line=at)

    def _line(self, problem: Exception) -> int | None:
        """The template's line, told by the frame of its compiled code."""
        at, line = problem.__traceback__, None
        while at is not None:
            if at.tb_frame.f_code.co_filename == "<template>":
                line = self._template.get_corresponding_lineno(at.tb_lineno)
            at = at.tb_next
        return line


def _leaks(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """What of a template could let untrusted text out of its fence: line and why."""
    for node in tree.find_all(_ELSEWHERE):
        yield node.lineno, "a prompt is one file; it cannot include, import or extend another"
    names = [(name.name, name.lineno) for name in tree.find_all(nodes.Name) if name.ctx != "load"]
    for name, line in [*names, *((made.name, made.lineno) for made in tree.find_all(nodes.Macro))]:
        if name in {_FENCE, _LOOP}:
            yield line, f"it gives '{name}' another meaning; choose another name"
    for block in tree.find_all(nodes.FilterBlock):
        yield block.lineno, "a filter over a block could open a fence; filter the text inside it"
    for output in tree.find_all(nodes.Output):
        for part in output.nodes:
            culprit = _leaking(part)
            if culprit is not None:
                yield culprit.lineno, _why(culprit)


def _unsent(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """What of a template stands in neither message: line and why; blank text may."""
    for node in tree.body:
        if isinstance(node, nodes.Block):
            if node.name not in BLOCKS:
                yield node.lineno, f"there is no message for the block '{node.name}'; {_WAY_IN}"
        elif not isinstance(node, nodes.Output):
            yield node.lineno, f"this stands outside of the blocks and has no effect; {_WAY_IN}"
        else:
            for part in node.nodes:
                text = part.data if isinstance(part, nodes.TemplateData) else "{{"
                if words := text.lstrip():
                    line = part.lineno + text[: -len(words)].count("\n")
                    yield line, f"this stands outside of the blocks and is never sent; {_WAY_IN}"


def _leaking(node: nodes.Node) -> nodes.Node | None:
    """The part of an expression that puts out what may be untrusted; None: there is none."""
    if isinstance(node, nodes.TemplateData | nodes.Const | nodes.Compare | nodes.Test | nodes.Not):
        return None
    if isinstance(node, nodes.CondExpr):
        return _leaking(node.expr1) or (node.expr2 and _leaking(node.expr2))
    if _is_fence(node) or _is_number(node):
        return None
    if isinstance(node, nodes.Concat | nodes.Add):
        return next(filter(None, map(_leaking, node.iter_child_nodes())), None)
    return node


def _is_fence(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.Call)
        and isinstance(node.node, nodes.Name)
        and node.node.name == _FENCE
    )


def _is_number(node: nodes.Node) -> bool:
    """Whether only digits can come of it: a place in a loop, a length, one or several integers."""
    if isinstance(node, nodes.Getattr):
        return (
            isinstance(node.node, nodes.Name) and node.node.name == _LOOP and node.attr in _OF_LOOP
        )
    if not isinstance(node, nodes.Filter):
        return False
    if node.name in _HARMLESS:
        return not node.args and not node.kwargs
    if node.name != "join":
        return False
    inner = node.node
    return (
        isinstance(inner, nodes.Filter)
        and inner.name == "map"
        and [getattr(argument, "value", None) for argument in inner.args] == ["int"]
        and all(isinstance(argument, nodes.Const) for argument in node.args)
    )


def _why(node: nodes.Node) -> str:
    names = [name.name for name in node.find_all(nodes.Name)]
    if isinstance(node, nodes.Name):
        names = [node.name]
    if _FENCE in names:
        return "a fence is put out as it is, without filters or slices; change the text inside it"
    culprit = f"'{names[0]}' is" if names else "this expression is"
    return f"{culprit} put out unfenced, and its writer could instruct the judge; {_WAY_OUT}"


def _label(call: nodes.Call) -> set[str]:
    """The constant beginning of a fence's label, such as 'passage' of passage_1."""
    if not _is_fence(call) or not call.args:
        return set()
    label: nodes.Node = call.args[0]
    if isinstance(label, nodes.Concat):
        label = label.nodes[0]
    value = getattr(label, "value", None)
    return {value.rstrip("_0123456789")} - {""} if isinstance(value, str) else set()
