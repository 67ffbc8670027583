"""Settings of a project, `misslink.toml`, and command `misslink init`, which writes it."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    create_model,
)

from misslink.cli.options import FIELDS_OF_RUN, JSON_OPTION, OF_RUN, OVERWRITE_OPTION, field_type
from misslink.cli.output import first_few, print_json, strip_control
from misslink.errors import InputError, did_you_mean
from misslink.io.config_files import read_toml
from misslink.judge.config import JudgeConfig

CONFIG_FILE = "misslink.toml"
_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list of texts",
    "model_type": "a table",
    "greater_than": "more than 0",
}


class _Settings(BaseModel):
    """A key has the name, type and meaning of the option; options replace settings."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        defer_build=True,  # most commands find no settings
        alias_generator=lambda name: name.replace("_", "-"),
    )

    app: str | None = None
    goldset: str | None = None
    corpus: str | None = None
    judge: str | None = None
    k: PositiveInt | None = None
    ks: str | None = None
    expect: list[str] | None = None
    map_method: str | None = Field(None, alias="map")
    criteria: str | None = None
    labels: list[str] | None = None
    embedding: str | None = None
    cache: str | None = None
    concurrency: PositiveInt | None = None
    id_key: str | None = None
    input_key: str | None = None
    app_timeout: PositiveFloat | None = None
    seed: int | None = None


_JUDGE_FIELDS: Any = {
    field.name: (field_type(field.name) | None, None)
    for field in fields(JudgeConfig)
    if field.name != "api_key"  # secrets belong in the environment
}
Settings = create_model("Settings", __base__=_Settings, **_JUDGE_FIELDS)


def config_file(folder: Path) -> tuple[str, Any] | None:
    """Return the name and the content of a folder's settings; None if it has none.

    Raises
    ------
    InputError
        misslink.toml, or a pyproject.toml that mentions misslink, cannot be read or is not TOML;
        the message names the line. Or pyproject.toml misspells misslink.
    """
    for name in (CONFIG_FILE, "pyproject.toml"):
        if not (folder / name).exists():
            continue
        try:
            data: Any = read_toml(folder / name)
        except InputError:
            if name == CONFIG_FILE or _mentions_misslink(folder / name):
                raise
            continue  # other programs report it
        if name == CONFIG_FILE:
            return name, data
        tool = data.get("tool")
        if not isinstance(tool, dict):
            continue
        if own := tool.get("misslink"):
            return name, own
        near = get_close_matches(
            "misslink", tool, n=1, cutoff=0.85
        )  # an empty section is the nearest
        if near and near[0] != "misslink":
            raise InputError(f"did you mean [tool.misslink], not [tool.{near[0]}]?", path=name)
    return None


def _mentions_misslink(path: Path) -> bool:
    try:
        return b"misslink" in path.read_bytes()
    except OSError:
        return False


def _checked(data: Any, file: str) -> dict[str, object]:
    try:
        settings = Settings.model_validate(data)
        judge_settings = settings.model_dump(include=set(_JUDGE_FIELDS), exclude_none=True)
        JudgeConfig(**judge_settings)  # checks the ranges
    except InputError as error:
        raise InputError(error.problem, path=file) from None
    except ValidationError as invalid:
        problem = invalid.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            keys = [str(field.alias) for field in Settings.model_fields.values()]
            hint = did_you_mean(key.replace("_", "-"), keys) or f"known: {', '.join(keys)}"
            raise InputError(f"there is no setting '{key}'; {hint}", path=file) from None
        kind = _KINDS.get(problem["type"], "another value")
        value = repr(problem["input"])[:60]
        raise InputError(f"this must be {kind} (it is {value})", path=file, field=key) from None
    return settings.model_dump(exclude_none=True)


def read_defaults(command: Any) -> dict[str, object]:
    """Return the settings of the current folder as the default map of a click command.

    Raises
    ------
    InputError
        A key or a value is wrong; the message names the file and the key.
    """
    file = config_file(Path())
    return {} if file is None else _defaults(command, _checked(file[1], file[0]))


def _defaults(command: Any, settings: Mapping[str, Any]) -> dict[str, object]:
    if hasattr(command, "commands"):
        children = command.commands.items()
        return {name: _defaults(child, settings) for name, child in children}
    by_run = {parameter.name for parameter in command.params if parameter.show_default == OF_RUN}
    ignored = {*by_run, *FIELDS_OF_RUN} if by_run else set()
    names = {parameter.name for parameter in command.params}
    used = {name: value for name, value in settings.items() if name not in ignored}
    defaults = {name: value for name, value in used.items() if name in names}
    others = [
        f"{name}={json.dumps(value) if isinstance(value, bool) else value}"
        for name, value in used.items()
        if name in _JUDGE_FIELDS and name not in names
    ]
    return defaults | ({"judge_option": others} if others and "judge_option" in names else {})


_TEMPLATE = (
    {"id": "opening-hours", "question": "When does the office open?", "reference": "At nine."},
    {
        "id": "refunds",
        "question": "How many days do refunds take?",
        "reference": "Refunds take 14 days.",
        "relevant": ["ID-OF-A-PASSAGE"],
    },
    {"id": "no-answer", "question": "Who won the 1950 final?", "answerable": False},
)
# Module-level names of apps, the most likely first.
_APP_NAMES = (
    *("rag_chain", "chain", "agent", "graph", "app", "rag", "qa", "query_engine", "chat_engine"),
    *("pipeline", "build_chain", "build_app", "build", "answer", "ask", "retriever"),
)
_FRAMEWORKS = ("langchain", "langgraph", "llama_index", "haystack")
_QUESTION = {"question", "query"}
_SKIPPED = {"tests", "build", "dist", "node_modules", "site-packages"}
_MAX_FILES = 500
_SHOWN = 5  # candidates in a comment


def init(
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Write misslink.toml from what this folder holds, and a gold set template.

    It looks for an app (LangChain, LlamaIndex, Haystack, or a function of a question), and here and in
    the app's folder for a gold set, a corpus and ship criteria. If it finds several, it takes the most
    likely one and lists the others. No file is imported or run.
    """
    folder = Path()
    if not overwrite and (file := config_file(folder)):
        raise InputError("The settings exist. Edit them, or add --overwrite.", path=file[0])
    candidates = _find_candidates(folder)
    written = [CONFIG_FILE]
    if not candidates["goldset"]:
        target = folder / "goldset.jsonl"
        if target.exists() and not overwrite:
            raise InputError(
                "This is not a gold set: its first case needs a 'question' and no 'answer'. Fix it, or"
                " add --overwrite to replace it.",
                path=target,
            )
        lines = [json.dumps(case) for case in _TEMPLATE]
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        candidates["goldset"].append(target.name)
        written.append(target.name)
    found = {name: values[0] for name, values in candidates.items() if values}
    others = {name: values[1:] for name, values in candidates.items() if values[1:]}
    Path(CONFIG_FILE).write_text(_config_text(candidates), encoding="utf-8")
    next_step = "misslink evaluate" if "app" in found else "misslink evaluate APP"
    if as_json:
        print_json({"found": found, "others": others, "written": written, "next": next_step})
        return
    for name, value in found.items():
        origin = "template" if value in written else "found"
        print(strip_control(f"{name:9} {value} ({origin})"))
        if name in others:
            listed = ", ".join(first_few(others[name], _SHOWN, "and {} more"))
            print(
                strip_control(
                    f"{'':9} others: {listed}; to use one, edit '{name}' in {CONFIG_FILE}"
                )
            )
    fill_in = f"write your questions into {written[1]}, then run " if len(written) > 1 else ""
    print(f"Written: {', '.join(written)}. Next: {fill_in} {next_step}")


def _find_candidates(folder: Path) -> dict[str, list[str]]:
    """The values that each setting could have, the most likely first."""
    apps = _find_apps(folder)
    folders = dict.fromkeys([folder, *(Path(app.rpartition(":")[0]).parent for app in apps)])

    def files(pattern: str) -> list[str]:
        return [path.as_posix() for place in folders for path in sorted(place.glob(pattern))]

    columns = {name: _column_names(Path(name)) for name in files("*.jsonl") + files("*.csv")}
    return {
        "app": apps,
        "goldset": [n for n, keys in columns.items() if keys & _QUESTION and "answer" not in keys],
        "corpus": [
            n for n, keys in columns.items() if {"id", "text"} <= keys and not keys & _QUESTION
        ],
        "criteria": files("*criteria*.y*ml"),
    }


def _column_names(path: Path) -> set[str]:
    """The keys of the first object or row; none if it cannot be read."""
    from misslink.io.rows import read_rows

    try:
        return set(next(read_rows(path, path.name)).data)
    except InputError:  # evaluate reports it, if it is named
        return set()


def _find_apps(folder: Path) -> list[str]:
    """The apps of the modules, such as 'app.py:chain': those of a framework first, the most likely first."""
    candidates = []
    paths = (
        path
        for path in sorted(folder.rglob("*.py"))
        if not any(part in _SKIPPED or part.startswith((".", "venv")) for part in path.parts[:-1])
    )
    for path in islice(paths, _MAX_FILES):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        imports = [
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        ]
        functions = [
            node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        is_plain = not any(name.startswith(_FRAMEWORKS) for name in imports)
        if is_plain:
            names = {node.name for node in functions if _takes_question(node)}
        else:
            targets = [
                target
                for node in tree.body
                if isinstance(node, ast.Assign | ast.AnnAssign)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            ]
            names = {target.id for target in targets if isinstance(target, ast.Name)} | {
                node.name
                for node in functions
                if not (node.name.startswith("build") and node.args.args)  # it is given nothing
            }
        candidates += [
            (is_plain, rank, len(path.parts), f"{path.as_posix()}:{name}")
            for rank, name in enumerate(_APP_NAMES)
            if name in names
        ]
    return [app for *_, app in sorted(candidates)]


def _takes_question(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function can be an app without a framework: it asks for a question and no more."""
    given = [*function.args.posonlyargs, *function.args.args]
    return (
        bool(given) and given[0].arg in _QUESTION and len(given) == len(function.args.defaults) + 1
    )


def _config_text(candidates: Mapping[str, Sequence[str]]) -> str:
    """The file, with a comment for each setting; what was not found is commented out."""

    def line(name: str, example: str) -> str:
        if not candidates[name]:
            return f"# {name} = {example}"
        others = [f"# {name} = {json.dumps(value)}" for value in candidates[name][1:]]
        left_out = "# and {} more: misslink init --overwrite --json lists them all"
        chosen = f"{name} = {json.dumps(candidates[name][0])}"
        return "\n".join([chosen, *first_few(others, _SHOWN, left_out)])

    return f"""\
# Settings of misslink for this folder. A key is the name of an option without its dashes, as
# misslink evaluate --help-all  lists them. Options on the command line override settings.

# The app: path/to/file.py:name or package.module:name.
{line("app", '"app.py:chain"')}
# Questions with relevant passages and reference answers.
{line("goldset", '"goldset.jsonl"')}
# All passages of the index: shows which missed passages are not indexed.
{line("corpus", '"corpus.jsonl"')}
# Number of passages that count.
# k = 5

# The judge: heuristic (no model), openai:MODEL, langchain:PROVIDER:MODEL and others.
judge = "heuristic"
# base-url = "http://localhost:8000/v1"
# temperature = 0.0
# retries = 5
# max-cost = 2.0  # needs the prices of a million tokens:
# price-in = 0.4
# price-out = 1.6

# Ship criteria for  misslink gate.
{line("criteria", '"ship-criteria.yaml"')}
"""
