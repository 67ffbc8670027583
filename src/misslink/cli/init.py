"""Command `misslink init`."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from misslink.cli.config import CONFIG_FILE, config_file
from misslink.cli.options import JSON_OPTION, option
from misslink.cli.output import print_json, strip_control
from misslink.errors import InputError

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
_APP_NAMES = ("rag_chain", "chain", "agent", "graph", "app", "rag", "qa", "pipeline")
_QUESTION = {"question", "query"}
_SKIPPED = {"tests", "build", "dist", "node_modules", "site-packages"}
_MAX_FILES = 500


def init(
    overwrite: bool = option(False, "--overwrite", "Replace existing files."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Write misslink.toml from what this folder holds, and a gold set template.

    It looks for a LangChain app, a gold set, a corpus and ship criteria. No file is imported or
    run.
    """
    folder = Path()
    if not overwrite and (file := config_file(folder)):
        raise InputError("it holds settings already; edit it, or add --overwrite", path=file[0])
    found = dict(_find_settings(folder))
    written = [CONFIG_FILE]
    if "goldset" not in found:
        target = folder / "goldset.jsonl"
        if target.exists() and not overwrite:
            raise InputError(
                "this is not a gold set: its first case needs a 'question' and no 'answer'; fix it, or"
                " add --overwrite to replace it",
                path=target,
            )
        lines = [json.dumps(case) for case in _TEMPLATE]
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found["goldset"] = target.name
        written.append(target.name)
    Path(CONFIG_FILE).write_text(_config_text(found), encoding="utf-8")
    next_step = "misslink evaluate" if "app" in found else "misslink evaluate APP"
    if as_json:
        print_json({"found": found, "written": written, "next": next_step})
        return
    for name, value in found.items():
        origin = "template" if value in written else "found"
        print(strip_control(f"{name:9} {value} ({origin})"))
    print(f"Written: {', '.join(written)}. Next:  {next_step}")


def _find_settings(folder: Path) -> Iterator[tuple[str, str]]:
    if app := _find_app(folder):
        yield "app", app
    paths = [path for form in ("*.jsonl", "*.csv") for path in sorted(folder.glob(form))]
    columns = {path.name: _column_names(path) for path in paths}
    for name, keys in columns.items():
        if keys & _QUESTION and "answer" not in keys:
            yield "goldset", name
            break
    for name, keys in columns.items():
        if {"id", "text"} <= keys and not keys & _QUESTION:
            yield "corpus", name
            break
    if criteria := sorted([*folder.glob("*criteria*.y*ml")]):
        yield "criteria", criteria[0].name


def _column_names(path: Path) -> set[str]:
    """The keys of the first object or row; none if it cannot be read."""
    from misslink.io.rows import read_rows

    try:
        return set(next(read_rows(path, path.name)).data)
    except InputError:  # evaluate reports it, if it is named
        return set()


def _find_app(folder: Path) -> str | None:
    """The most likely app of the modules that import LangChain, such as 'app.py:chain'."""
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
        nodes = list(ast.walk(tree))
        imports = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        imports += [
            name.name for node in nodes if isinstance(node, ast.Import) for name in node.names
        ]
        if not any(name.startswith(("langchain", "langgraph")) for name in imports):
            continue
        names = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        ranks = [rank for rank, name in enumerate(_APP_NAMES) if name in names]
        candidates += [(rank, len(path.parts), path.as_posix()) for rank in ranks]
    rank, _, file = min(candidates, default=(0, 0, ""))
    return f"{file}:{_APP_NAMES[rank]}" if file else None


def _config_text(found: dict[str, str]) -> str:
    """The file, with a comment for each setting; what was not found is commented out."""

    def line(name: str, example: str) -> str:
        return f"{name} = {json.dumps(found[name])}" if name in found else f"# {name} = {example}"

    return f"""\
# Settings of misslink for this folder. A key is an option without its dashes; options override it.
# All keys: docs/reference/configuration.md.

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

# Ship criteria of  misslink gate.
{line("criteria", '"ship-criteria.yaml"')}
"""
