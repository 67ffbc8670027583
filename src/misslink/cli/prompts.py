"""Commands `misslink prompts show` and `diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import JSON_OPTION, PROMPTS_OPTION, option
from misslink.cli.output import print_json, print_line, print_table
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.judge.prompts import Prompt, Prompts


app = typer.Typer(help="Show and compare the judge's prompts.", no_args_is_help=True)

_BUILT_IN = "built-in"
_ENGLISH = "the built-in English prompt is used"
# Values of the example; other variables are shown as "(name)".
_EXAMPLES: dict[str, Any] = {
    "question": "When does the ferry leave?",
    "passages": ["The ferry leaves at seven.", "It carries thirty cars."],
    "answer": "It leaves at seven.",
    "references": ["At seven."],
    "history": [
        {"role": "user", "content": "Is there a ferry?"},
        {"role": "assistant", "content": "Yes, once a day."},
    ],
    "claims": ["It leaves at seven."],
    "shown": 1,
    "sentences": ["It leaves at seven."],
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
    "asker": "A person new to the subject.",
    "length": "at most 8 words",
}


@app.callback()
def group() -> None:
    """Show and compare the judge's prompts."""


@app.command("show")
def show(
    name: str | None = typer.Argument(None, help="A prompt; without one all are listed."),
    prompts: str | None = PROMPTS_OPTION,
    rendered: bool = option(False, "--rendered", "Show the messages of a small example."),
    as_json: bool = JSON_OPTION,
) -> None:
    """List the prompts, or show one: its file, or its messages for an example."""
    from misslink.judge.prompts import Prompts

    folder = Prompts.from_spec(prompts)
    if name is None:
        if rendered:
            raise InputError("--rendered shows one prompt; name it, such as  examination")
        listed = [_about(folder.load(prompt), folder, prompts) for prompt in folder.names()]
        if as_json:
            print_json({"prompts": listed})
        else:
            rows = [
                (one["name"], one["from"], str(one["version"]), one["sha256"][:12], one["schema"])
                for one in listed
            ]
            columns = ("prompt", "from", "version", "hash", "answered as")
            print_table(TextTable(columns, rows))
            missing = [f"{one['name']}.jinja" for one in listed if one["from"] == _BUILT_IN]
            if prompts is not None and missing:
                print(f"{prompts} has no {', '.join(missing)}; {_ENGLISH}")
        return
    prompt = _named(folder, name)
    if prompts is not None and not folder.overrides(name):
        print_line(f"misslink: {prompts} has no {name}.jinja; {_ENGLISH}", stderr=True)
    messages = render_example(prompt) if rendered else None
    if as_json:
        print_json({**_about(prompt, folder, prompts), "text": prompt.text, "messages": messages})
    elif messages is None:
        print(prompt.text, end="" if prompt.text.endswith("\n") else "\n")
    else:
        for message in messages:
            print(f"[{message['role']}]\n{message['content']}\n")


def render_example(prompt: Prompt) -> list[dict[str, str]]:
    """Return the messages of a prompt for a small example."""
    variables = sorted(prompt.template.variables)
    example = {variable: _EXAMPLES.get(variable, f"({variable})") for variable in variables}
    return list(prompt.messages(example))


@app.command("diff")
def diff(
    name: str = typer.Argument(..., help="A prompt in the folder."),
    prompts: str = option(
        ..., "--prompts", "Folder of prompts, or a language: de.", show_default=False
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Show the unified diff of a prompt against the built-in one."""
    import difflib

    from misslink.judge.prompts import BUILT_IN, Prompts

    folder = Prompts.from_spec(prompts)
    built_in, own = _named(BUILT_IN, name), _named(folder, name)
    if not folder.overrides(name):
        raise InputError(
            f"there is no {name}.jinja in it, so the built-in one is used", path=prompts
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
    own = spec is not None and prompts.overrides(prompt.ref.name)
    return {
        "name": prompt.ref.name,
        "from": spec if own else _BUILT_IN,
        "version": prompt.ref.version,
        "sha256": prompt.ref.sha256,
        "schema": prompt.schema,
        "path": prompt.path,
    }
