"""misslink prompts: what a judge reads, and how a prompt of one's own differs from it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json
from misslink.cli.terms import PROMPTS
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.prompting import Prompt, Prompts

__all__ = ["app"]

app = typer.Typer(help="Show and compare what a judge reads.", no_args_is_help=True)

_BUILT_IN = "built-in"
_ENGLISH = "the built-in prompt is asked for it, in English"
# What an example is rendered from; a name that is not here is shown as "(its name)".
_EXAMPLES: dict[str, Any] = {
    "question": "When does the ferry leave?",
    "passages": ["The ferry leaves at seven.", "It carries thirty cars."],
    "answer": "It leaves at seven.",
    "references": ["At seven."],
    "claims": ["It leaves at seven."],
    "cited": {1: "The ferry leaves at seven."},
    "statements": [{"text": "It leaves at seven [1].", "passages": [1]}],
    "first": "It leaves at seven.",
    "second": "It leaves at eight.",
    "passage": "The ferry leaves at seven.",
    "reference": "At seven.",
    "evidence": ["The ferry leaves at seven."],
    "answers": ["It leaves at seven."],
    "copied": ["does the ferry leave"],
    "kind": "A question for one fact that one passage states.",
    "asker": "Somebody new to the subject.",
    "length": "at most 8 words",
}


@app.callback()
def group() -> None:
    """Show and compare what a judge reads."""


@app.command("show")
def show(
    name: str | None = typer.Argument(None, help="A prompt; without one all are listed."),
    prompts: str | None = PROMPTS,
    rendered: bool = typer.Option(
        False, "--rendered", help="Show the messages of a small example, as a judge gets them."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """List the prompts, or show one: its file, or what a judge gets of it."""
    from misslink.prompting import Prompts

    found = Prompts.of(prompts)
    if name is None:
        if rendered:
            raise InputError("--rendered shows one prompt; name it, such as  examination")
        listed = [_about(found.load(each), found, prompts) for each in found.names()]
        if as_json:
            print_json({"prompts": listed})
        else:
            _print_table(listed)
            _print_fallback(listed, prompts)
        return
    prompt = _named(found, name)
    if prompts is not None and not found.holds(name):
        print(f"misslink: {prompts} has no {name}.jinja; {_ENGLISH}", file=sys.stderr)
    messages = list(prompt.messages(_example(prompt))) if rendered else None
    if as_json:
        print_json({**_about(prompt, found, prompts), "text": prompt.text, "messages": messages})
    elif messages is None:
        print(prompt.text, end="" if prompt.text.endswith("\n") else "\n")
    else:
        for message in messages:
            print(f"[{message['role']}]\n{message['content']}\n")


@app.command("diff")
def diff(
    name: str = typer.Argument(..., help="A prompt that the folder holds."),
    prompts: str = typer.Option(
        ..., "--prompts", help="Folder of prompts, or a language: de.", show_default=False
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Show how a prompt of a folder differs from the built-in one, as a unified diff."""
    import difflib

    from misslink.prompting import BUILT_IN, Prompts

    folder = Prompts.of(prompts)
    built_in, own = _named(BUILT_IN, name), _named(folder, name)
    if not folder.holds(name):
        raise InputError(
            f"there is no {name}.jinja in it, so the built-in one is asked", path=prompts
        )
    lines = list(
        difflib.unified_diff(
            built_in.text.splitlines(),
            own.text.splitlines(),
            f"built-in/{name}.jinja",
            f"{prompts}/{name}.jinja",
            lineterm="",
        )
    )
    if as_json:
        both = {"built_in": _about(built_in, BUILT_IN), "own": _about(own, folder, prompts)}
        print_json({"name": name, **both, "same": not lines, "diff": lines})
    elif lines:
        print("\n".join(lines))
    else:
        print(f"{name} is the same in both")


def _named(prompts: Prompts, name: str) -> Prompt:
    if name not in prompts.names():
        raise InputError(f"there is no prompt '{name}'; there are {', '.join(prompts.names())}")
    return prompts.load(name)


def _about(prompt: Prompt, prompts: Prompts, spec: str | None = None) -> dict[str, Any]:
    own = spec is not None and prompts.holds(prompt.ref.name)
    return {
        "name": prompt.ref.name,
        "from": spec if own else _BUILT_IN,
        "version": prompt.ref.version,
        "sha256": prompt.ref.sha256,
        "schema": prompt.schema,
        "fields": dict(prompt.fields),
        "path": prompt.path,
    }


def _example(prompt: Prompt) -> dict[str, Any]:
    return {name: _EXAMPLES.get(name, f"({name})") for name in sorted(prompt.template.variables)}


def _print_table(listed: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table()
    for column in ("prompt", "from", "version", "hash", "answered as", "fields"):
        table.add_column(column)
    for each in listed:
        version, fields = str(each["version"]), str(len(each["fields"]))
        cells = each["name"], each["from"], version, each["sha256"][:12], each["schema"], fields
        table.add_row(*(cell(console, text) for text in cells))
    console.print(table)


def _print_fallback(listed: list[dict[str, Any]], spec: str | None) -> None:
    lacking = [each["name"] for each in listed if each["from"] == _BUILT_IN]
    if spec is not None and lacking:
        print(f"{spec} has no {', '.join(f'{name}.jinja' for name in lacking)}; {_ENGLISH}")
