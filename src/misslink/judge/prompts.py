"""Load, render and hash prompts; untrusted text enters only through the fence."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import jinja2.sandbox
from jinja2 import meta, nodes
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from misslink.errors import InputError
from misslink.text.normalization import INVISIBLE
from misslink.types import PromptRef

# What the built-in prompts fence; a template's own labels come on top.
_LABELS = "answer claim first history passage question reference second sentence"
FENCE_LABELS = frozenset(_LABELS.split())
_BOUNDARY_LENGTH = 4  # letters at least; every text has two boundaries, and a digit is a token
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_LABEL_PATTERN = re.compile(r"\w{1,40}")
_LESS_THAN = "\uff1c"  # full width; `misslink.text.normalization.fold` reads it as "<", so quotes still verify


class Fence:
    """Wraps untrusted text so that it cannot close its own wrapper.

    The boundary is a hash over all the texts of the prompt, and is in none of them: no writer of one
    text can use it, yet the same texts always give the same prompt, hence the same cache key. What
    looks like a delimiter inside of a text (``</passage_3 ...``) gets a full-width ``<``.

    Parameters
    ----------
    texts : mapping
        Everything the prompt is rendered from, nested as it may be.
    labels : iterable of str
        What the prompt calls its fences, without the numbers behind them.

    Examples
    --------
    >>> print(Fence({"answer": "Yes."})("answer", "Yes.</answer>"))
    <answer ejhp>
    Yes.\uff1c/answer>
    </answer ejhp>
    """

    def __init__(self, texts: Mapping[str, Any], labels: Iterable[str] = FENCE_LABELS) -> None:
        everything = "\x1f".join(_strings(texts))
        for salt in count():
            digest = hashlib.sha256(f"{salt}\x1f{everything}".encode()).hexdigest()
            # Growing, so that one is found.
            self.boundary = digest[: _BOUNDARY_LENGTH + salt].translate(_LETTERS)
            if self.boundary not in everything:
                break
        self._delimiter = _delimiter_pattern(frozenset(labels))

    def __call__(self, label: str, text: object) -> str:
        """Return `text` between its two delimiters.

        Raises
        ------
        ValueError
            `label` is not one word of at most 40 letters, digits and underscores.
        """
        if not _LABEL_PATTERN.fullmatch(label):
            raise ValueError(f"{label!r} is not a label for a fence; give one word")
        inside = self._delimiter.sub(_LESS_THAN, str(text))
        return f"<{label} {self.boundary}>\n{inside}\n</{label} {self.boundary}>"


@lru_cache(maxsize=64)
def _delimiter_pattern(labels: frozenset[str]) -> re.Pattern[str]:
    """A "<" before one of the labels, or before any word with something like a boundary."""
    unseen = f"[{INVISIBLE}]*"
    names = "|".join(unseen.join(map(re.escape, label)) for label in sorted(labels))
    return re.compile(
        rf"<(?=[\s/{INVISIBLE}]*(?:(?:{names})(?:_?\d+)?(?![^\W\d_])|\w+\s+[a-p]{{{_BOUNDARY_LENGTH},}}[\s{INVISIBLE}]*>))",
        re.IGNORECASE,
    )


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _strings(item)]
    return []


PROMPT_BLOCKS = "system", "user"
_FENCE, _LOOP = "fence", "loop"
# Attributes of a loop and filters that let a number through and no text.
_LOOP_ATTRIBUTES = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length")
)
_SAFE_FILTERS = frozenset(("length", "count", "int"))
_EXTERNAL_NODES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_BLOCK_HINT = "put it into the block system or user, or make it a comment, {# ... #}"
_FENCE_HINT = "put it into fence(label, text)"


class PromptTemplate:
    """A checked Jinja template with the blocks ``system`` and ``user``, ready to render."""

    def __init__(self, source: str, path: str, first_line: int, *, sandboxed: bool = True) -> None:
        self._source, self._path, self._first = source, path, first_line
        self._sandboxed = sandboxed
        self._made_again = partial(PromptTemplate, source, path, first_line, sandboxed=sandboxed)
        if sandboxed:  # a mistake in a user's own is reported before anything is asked
            _ = self._checked

    @cached_property
    def _checked(self) -> tuple[jinja2.Template, nodes.Template]:
        """Compiled where it is first needed: a run reads the hash of each built-in prompt, and asks few."""
        sandbox, plain = jinja2.sandbox.ImmutableSandboxedEnvironment, jinja2.Environment
        kind = sandbox if self._sandboxed else plain
        environment = kind(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        try:
            tree = environment.parse(self._source)
            template = environment.from_string(self._source)
        except jinja2.TemplateSyntaxError as problem:
            raise self._error(
                f"it is not a Jinja template: {problem.message}", problem.lineno
            ) from None
        for name in PROMPT_BLOCKS:
            if name not in template.blocks:
                raise self._error(f"it has no block '{name}'; every prompt has system and user")
        for line, mistake in chain(_find_leaks(tree), _find_unsent_text(tree)):
            raise self._error(mistake, line)
        return template, tree

    @cached_property
    def variables(self) -> frozenset[str]:
        """What it reads."""
        return frozenset(meta.find_undeclared_variables(self._checked[1])) - {_FENCE}

    @cached_property
    def _labels(self) -> frozenset[str]:
        return FENCE_LABELS.union(*map(_fence_label, self._checked[1].find_all(nodes.Call)))

    def __reduce__(self) -> tuple[object, ...]:
        """Another process compiles it again: the code of a template cannot be sent."""
        return self._made_again, ()

    def render(self, texts: Mapping[str, Any]) -> tuple[str, str]:
        """Return the blocks system and user, with `texts` in them.

        Raises
        ------
        InputError
            It reads what is not in `texts`, or does what the sandbox forbids.
        """
        template, _ = self._checked
        context = template.new_context({**texts, _FENCE: Fence(texts, self._labels)})
        try:
            system, user = (
                "".join(template.blocks[name](context)).strip() for name in PROMPT_BLOCKS
            )
        except Exception as problem:  # noqa: BLE001 (whatever somebody's template raises)
            message = getattr(problem, "message", None) or str(problem) or type(problem).__name__
            line = self._line(problem)
            raise self._error(f"it cannot be rendered: {message}", line) from None
        return system, user

    def _error(self, problem: str, line: int | None = None) -> InputError:
        file_line = None if line is None else line + self._first - 1
        return InputError(problem, path=self._path, line=file_line)

    def _line(self, problem: Exception) -> int | None:
        """The template's line, from the frame of its compiled code."""
        frames = traceback.walk_tb(problem.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == "<template>"]
        return self._checked[0].get_corresponding_lineno(lines[-1]) if lines else None


def _find_leaks(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """What of a template could let untrusted text out of its fence: line and why."""
    for node in tree.find_all(_EXTERNAL_NODES):
        yield node.lineno, "a prompt is one file; it cannot include, import or extend another"
    names = [(name.name, name.lineno) for name in tree.find_all(nodes.Name) if name.ctx != "load"]
    for name, line in [*names, *((made.name, made.lineno) for made in tree.find_all(nodes.Macro))]:
        if name in {_FENCE, _LOOP}:
            yield line, f"it gives '{name}' another meaning; choose another name"
    for block in tree.find_all(nodes.FilterBlock):
        yield block.lineno, "a filter over a block could open a fence; filter the text inside it"
    for output in tree.find_all(nodes.Output):
        for part in output.nodes:
            culprit = _leaking_node(part)
            if culprit is not None:
                yield culprit.lineno, _leak_message(culprit)


def _find_unsent_text(tree: nodes.Template) -> Iterator[tuple[int, str]]:
    """Yield the line and the problem of each text outside the two message blocks."""
    for node in tree.body:
        if isinstance(node, nodes.Block):
            if node.name not in PROMPT_BLOCKS:
                yield node.lineno, f"there is no message for the block '{node.name}'; {_BLOCK_HINT}"
        elif not isinstance(node, nodes.Output):
            yield node.lineno, f"this stands outside of the blocks and has no effect; {_BLOCK_HINT}"
        else:
            for part in node.nodes:
                text = part.data if isinstance(part, nodes.TemplateData) else "{{"
                if words := text.lstrip():
                    line = part.lineno + text[: -len(words)].count("\n")
                    yield (
                        line,
                        f"this stands outside of the blocks and is never sent; {_BLOCK_HINT}",
                    )


def _leaking_node(node: nodes.Node) -> nodes.Node | None:
    """The part of an expression that puts out what may be untrusted; None: there is none."""
    constants = nodes.TemplateData | nodes.Const | nodes.Compare | nodes.Test | nodes.Not
    if isinstance(node, constants) or _is_fence(node) or _is_number(node):
        return None
    if isinstance(node, nodes.CondExpr):
        return _leaking_node(node.expr1) or (node.expr2 and _leaking_node(node.expr2))
    if isinstance(node, nodes.Concat | nodes.Add):
        return next(filter(None, map(_leaking_node, node.iter_child_nodes())), None)
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
            isinstance(node.node, nodes.Name)
            and node.node.name == _LOOP
            and node.attr in _LOOP_ATTRIBUTES
        )
    if not isinstance(node, nodes.Filter):
        return False
    if node.name in _SAFE_FILTERS:
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


def _leak_message(node: nodes.Node) -> str:
    of_node = [node] if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
    names = [name.name for name in of_node]
    if _FENCE in names:
        return "a fence is put out as it is, without filters or slices; change the text inside it"
    culprit = f"'{names[0]}' is" if names else "this expression is"
    return f"{culprit} put out unfenced, and its writer could instruct the judge; {_FENCE_HINT}"


def _fence_label(call: nodes.Call) -> set[str]:
    """The constant beginning of a fence's label, such as 'passage' of passage_1."""
    if not _is_fence(call) or not call.args:
        return set()
    label: nodes.Node = call.args[0]
    if isinstance(label, nodes.Concat):
        label = label.nodes[0]
    value = getattr(label, "value", None)
    return {value.rstrip("_0123456789")} - {""} if isinstance(value, str) else set()


class Criterion(NamedTuple):
    """What a user's own metric asks of an answer, in the same call as everything else."""

    name: str
    question: str


_FRONT_MATTER = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL)


@dataclass(frozen=True)
class Prompt:
    """A prompt file: what it is called, and its two blocks, which define every field of the answer.

    Parameters
    ----------
    ref : PromptRef
    schema : str
        The name of the answer's schema.
    template : Template
    text : str
        The whole file.
    path : str
    addition : str
        Stands behind the block ``system``.
    """

    ref: PromptRef
    schema: str
    template: PromptTemplate = field(compare=False, repr=False)
    text: str
    path: str
    addition: str = ""

    def with_criteria(self, criteria: Sequence[Criterion]) -> Prompt:
        """Return a prompt that asks for criteria of the user's own, too; it has another hash."""
        if not criteria:
            return self
        asked = "".join(f"\n- {name}: {' '.join(question.split())}" for name, question in criteria)
        addition = (
            f"\ncriteria: of each one below, criterion (its name), met: yes | partly | no.{asked}"
        )
        digest = hashlib.sha256((self.text + addition).encode()).hexdigest()
        ref = self.ref.model_copy(update={"sha256": digest})
        return replace(self, ref=ref, addition=addition)

    def rendered(self, inputs: Mapping[str, Any]) -> RenderedMessages:
        """Return `messages`, rendered where they are read."""
        return RenderedMessages(self, inputs)

    def messages(self, texts: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the rendered prompt as chat messages, the stable part first.

        `texts` is what the template reads; everything in it is treated as hostile. Raises InputError
        where the template reads something else, or does what it must not.
        """
        system, user = self.template.render(texts)
        stable = {"role": "system", "content": system + self.addition}
        return stable, {"role": "user", "content": user}


@dataclass(frozen=True)
class Prompts:
    """Prompts by name.

    Parameters
    ----------
    folder : Path or None
        Whose prompts go before the built-in ones of the same name. None: the built-in ones.
    criteria : tuple of Criterion
        What an examination judges, too.

    Each file is read once, so that a run asks the same from its first case to its last.
    """

    folder: Path | None = None
    criteria: tuple[Criterion, ...] = ()
    _read: dict[str, Prompt] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_spec(cls, spec: str | Path | None) -> Prompts:
        """Return the prompts that a person names.

        Parameters
        ----------
        spec : str, Path or None
            The name of a built-in folder, such as ``de``, or else a folder; a folder that is
            called like a built-in one is written ``./de``. None: the built-in prompts.

        Raises
        ------
        InputError
            It is neither, or a prompt in it cannot be used; nothing has been asked then.
        """
        if spec is None:
            return BUILT_IN
        is_language = isinstance(spec, str) and spec in prompt_languages()
        folder = prompts_folder() / spec if is_language else Path(spec)
        if not folder.is_dir():
            raise InputError(
                "there is no such folder of prompts; name one, or a built-in one: "
                + ", ".join(prompt_languages()),
                path=folder,
            )
        prompts = cls(folder)
        names = [name for name in BUILT_IN.names() if prompts.overrides(name)]
        if not names:
            raise InputError(
                "it holds no prompt that misslink asks; call a file one of "
                + ", ".join(f"{name}.jinja" for name in BUILT_IN.names()),
                path=folder,
            )
        for name in names:
            prompts.load(name)
        return prompts

    def load(self, name: str) -> Prompt:
        """Read the prompt `name`.

        Raises
        ------
        InputError
            There is none, or it is damaged, or lets untrusted text past the fence.
        """
        prompt = self._read.get(name) or self._read_file(name)
        return prompt.with_criteria(self.criteria) if name == "examination" else prompt

    def _read_file(self, name: str) -> Prompt:
        folder = self.folder if self.folder and self.overrides(name) else prompts_folder()
        prompt = _read_prompt(name, folder)
        if folder is self.folder and name in BUILT_IN.names():
            _check_compatible(prompt, BUILT_IN.load(name))
        self._read[name] = prompt
        return prompt

    def overrides(self, name: str) -> bool:
        """Whether the folder has a prompt of this name; else the built-in one is used."""
        return self.folder is not None and (self.folder / f"{name}.jinja").exists()

    def names(self) -> list[str]:
        """Names of all prompts, sorted: the built-in ones and those of the folder."""
        folders = [prompts_folder(), *([self.folder] if self.folder else [])]
        return sorted({path.stem for folder in folders for path in folder.glob("*.jinja")})


BUILT_IN = Prompts()


@cache
def prompts_folder() -> Path:
    """The folder of the built-in prompts: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "prompts", package.parents[1] / "prompts"):
        if folder.is_dir():
            return folder
    raise InputError("the prompts folder is missing from this installation; reinstall misslink")


def prompt_languages() -> list[str]:
    """Names of the built-in folders of other languages, sorted, such as ``de``."""
    return sorted({path.parent.name for path in prompts_folder().glob("*/*.jinja")})


def _check_compatible(prompt: Prompt, built_in: Prompt) -> None:
    """Reject a user's prompt whose schema or variables differ from the built-in prompt."""
    if prompt.schema != built_in.schema:
        raise InputError(
            f"its schema is '{prompt.schema}', but the schema of '{prompt.ref.name}' is '{built_in.schema}'",
            path=prompt.path,
            field="schema",
        )
    unknown = sorted(prompt.template.variables - built_in.template.variables)
    if unknown:
        raise InputError(
            f"it reads '{unknown[0]}', which '{built_in.ref.name}' is not given;"
            f" there are {', '.join(sorted(built_in.template.variables))}",
            path=prompt.path,
        )


def _read_prompt(name: str, folder: Path) -> Prompt:
    path = folder / f"{name}.jinja"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such prompt", path=path) from None
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8 text; save it as UTF-8", path=path) from None
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None
    front = _FRONT_MATTER.match(text)
    if front is None:
        raise InputError("a prompt starts with TOML front matter between two +++ lines", path=path)
    ref, schema = _parse_front_matter(front.group(1), text, path)
    if ref.name != name:
        raise InputError(
            f"it calls itself '{ref.name}'; the name is that of the file", path=path, field="name"
        )
    first_line = text[: front.end()].count("\n") + 1
    ours = path.is_relative_to(prompts_folder())
    template = PromptTemplate(text[front.end() :], str(path), first_line, sandboxed=not ours)
    return Prompt(ref, schema, template, text, str(path))


def _parse_front_matter(front: str, text: str, path: Path) -> tuple[PromptRef, str]:
    try:
        head = tomllib.loads(front)
        ref = PromptRef(
            name=head["name"],
            version=head["version"],
            sha256=hashlib.sha256(text.encode()).hexdigest(),
        )
        schema = head["schema"]
    except tomllib.TOMLDecodeError:
        raise InputError(
            "its front matter is not valid TOML; a text needs quotes", path=path
        ) from None
    except KeyError as missing:
        raise InputError(f"its front matter lacks {missing}", path=path) from None
    except ValidationError as problem:
        wrong = problem.errors()[0]
        raise InputError(wrong["msg"].lower(), path=path, field=str(wrong["loc"][0])) from None
    if not isinstance(schema, str):
        raise InputError("it is the name of a schema", path=path, field="schema")
    return ref, schema


# How a prompt and its inputs become messages: its blocks, the fence and what is replaced inside.
# It stands in the digest, so whoever changes a rendered message raises it; a test notices.
RENDERING_VERSION = 2

Message = Mapping[str, str]


class RenderedMessages(Sequence[Message]):
    """Chat messages, rendered on first access; the cache key needs only ``digest``."""

    def __init__(self, prompt: Prompt, inputs: Mapping[str, Any]) -> None:
        self._prompt = prompt
        self._inputs = inputs

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the messages depend on: the prompt's file, its inputs, `RENDERING`."""
        content = [RENDERING_VERSION, self._prompt.ref.sha256, dict(self._inputs)]
        try:
            text = to_json(content)  # a third of the time
        except PydanticSerializationError:  # half a character
            text = json.dumps(content).encode()
        return hashlib.sha256(text).hexdigest()

    @cached_property
    def _messages(self) -> tuple[Message, ...]:
        return self._prompt.messages(self._inputs)

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:
        return self._messages[index]
