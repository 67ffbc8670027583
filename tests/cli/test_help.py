"""Help pages: all their texts in one file, grouped by task, with examples, by the rules for texts."""

import os
import re
import shlex
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

import message_texts
from misslink.cli.help import EXAMPLES, MAIN_OPTIONS
from misslink.cli.main import build_command

ROOT = Path(__file__).parents[2]
EXPECTED = ROOT / "tests" / "gold" / "help.txt"
LONGEST = 70
# One meaning, and a text that names what the command reads, writes or limits.
NAMES_ITS_FILE = {"--out", "--format", "--markdown", "--json", "--overwrite", "--qrels", "--run"}
NAMES_WHAT_IT_IS_FOR = {
    "--app", "--case", "--column", "--corpus", "--depth", "--embedding", "--judge", "--name", "--k",
    "--metric", "--metrics", "--prompts", "--relevance-level", "--sample", "--split",
}  # fmt: skip
SHELLS = {"install_completion", "show_completion", "help"}  # typer's own


def walk(command, name=""):
    for child, subcommand in getattr(command, "commands", {}).items():
        path = f"{name} {child}".strip()
        yield path, subcommand
        yield from walk(subcommand, path)


COMMANDS = dict(walk(build_command(all_options=True)))
PAGES = {name: command for name, command in COMMANDS.items() if not hasattr(command, "commands")}
OPTIONS = [
    (name, parameter)
    for name, command in PAGES.items()
    for parameter in command.params
    if parameter.name not in SHELLS
]


def written():
    lines = []
    for name, command in COMMANDS.items():
        lines.append(f"misslink {name}")
        lines += textwrap.wrap(
            command.help.replace("\n\n", " "), 98, initial_indent="  ", subsequent_indent="  "
        )
        for parameter in command.params:
            if parameter.name not in SHELLS:
                panel = getattr(parameter, "rich_help_panel", None)
                label = parameter.opts[0] if panel is None else f"{parameter.opts[0]} ({panel})"
                lines.append(f"    {label}: {parameter.help}")
        lines += [f"    $ {line}" for line in EXAMPLES.get(name, ())]
    return "\n".join(lines) + "\n"


def test_all_texts_are_the_expected_ones():
    if os.environ.get("MISSLINK_ACCEPT"):
        EXPECTED.write_text(written(), encoding="utf-8")
    assert written() == EXPECTED.read_text(encoding="utf-8"), "accept with MISSLINK_ACCEPT=1"


def test_the_help_of_an_option_keeps_the_rules():
    for _, parameter in OPTIONS:
        text = parameter.help
        assert re.match(r"[A-Z][^ ]* |[A-Z]+=[A-Z]+ |[A-Z][a-z]+:", text), text
        assert text.endswith("."), text
        assert len(text) <= LONGEST, text
        assert text.split()[0] not in {"Of", "For", "By", "From"}, text


def test_the_help_of_a_command_begins_with_a_short_sentence():
    for name, command in COMMANDS.items():
        first = re.split(r"(?<=[.:]) ", command.help)[0].partition("\n")[0]
        assert first.endswith((".", ":")), name
        assert len(first) <= 88, name


def test_an_option_has_one_text_in_all_commands():
    texts = defaultdict(set)
    for _, parameter in OPTIONS:
        if parameter.param_type_name == "option":
            texts[parameter.opts[0]].add(parameter.help)
    several = {flag for flag, helps in texts.items() if len(helps) > 1}
    assert several == NAMES_ITS_FILE | NAMES_WHAT_IT_IS_FOR


def test_a_page_shows_at_most_ten_main_options_first():
    for name, command in PAGES.items():
        main = [
            parameter.name
            for parameter in command.params
            if parameter.param_type_name == "option"
            and getattr(parameter, "rich_help_panel", None) is None
            and parameter.name not in SHELLS
        ]
        assert len(main) <= 10, f"{name}: {main}"
    for name, options in MAIN_OPTIONS.items():
        names = {parameter.name for parameter in PAGES[name].params}
        assert set(options.split()) <= names, name


def test_each_page_has_examples_of_its_own_command_with_options_that_exist():
    assert set(EXAMPLES) == set(PAGES)
    for name, lines in EXAMPLES.items():
        pages = [name, "canary run"] if name == "canary watch" else [name]  # it passes options on
        known = {
            flag for page in pages for parameter in PAGES[page].params for flag in parameter.opts
        }
        for line in lines:
            assert line.startswith(f"misslink {name}")
            used = {word for word in shlex.split(line) if re.match(r"--?\w", word)}
            assert used <= known, f"{line}: {used - known}"


def test_the_root_groups_the_commands_by_task(misslink):
    code, out, _ = misslink("--help")
    assert code == 0
    panels = ("Evaluate", "Understand and improve", "Compare and gate", "Judge", "Gold sets")
    places = [out.index(f" {panel} ") for panel in (*panels, "Production")]
    assert places == sorted(places)


def test_a_page_names_the_command_that_lists_the_other_options(misslink):
    _, short, _ = misslink("evaluate", "--help")
    code, long, _ = misslink("evaluate", "--help-all")
    assert code == 0
    assert "--help-all lists" in short
    assert "--judge-option" in long
    assert "--judge-option" not in short


def test_a_wrong_name_gets_a_suggestion(misslink):
    code, _, err = misslink("evalute")
    assert (code, "evaluate" in err) == (2, True)
    code, _, err = misslink("evaluate", "--goldest", "gold.jsonl")
    assert (code, "--goldset" in err) == (2, True)


@pytest.mark.source
def test_every_command_that_a_text_names_exists():
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!d]*/*.md"), ROOT / "README.md"]
    texts = {page.name: page.read_text("utf-8") for page in pages} | {
        "messages": message_texts.written()
    }
    wrong = {
        f"{name}: {named[0]}"
        for name, text in texts.items()
        for named in re.finditer(r"misslink ([a-z]+)(?: ([a-z][a-z-]+))?", text)
        if named[1] in COMMANDS and named[1] not in PAGES
        if f"{named[1]} {named[2]}" not in PAGES
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("whatif", "run", "--check", "some"), "'--check': This must be a whole number."),
        (("evaluate", "app.py:x", "--k", "0"), "'--k': This must be at least 1."),
        (("calibrate", "run", "--threshold", "7"), "'--threshold': This must be at most 1."),
    ],
)
def test_a_wrong_number_is_named_in_plain_words(misslink, options, problem):
    code, _, err = misslink(*options)
    assert code == 2
    assert problem in " ".join(err.replace("│", " ").split())


BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
SHELLS_OF_PAGES = {"", "console", "sh", "shell", "text", "cron"}


def _commands(page):
    """The misslink commands in a page's blocks, without ``misslink``."""
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language in SHELLS_OF_PAGES:
            for line in block.replace("\\\n", " ").splitlines():
                if command := re.match(r"\s*(?:.*&& )?misslink ([a-z].*)", line):
                    yield command[1]


@pytest.mark.source
def test_every_option_of_a_command_on_a_page_exists():
    patterns = ("*.md", "docs/**/*.md", "skills/*/*.md", "examples/*/*.md")
    lines = [
        line for pattern in patterns for page in ROOT.glob(pattern) for line in _commands(page)
    ]
    wrong = []
    for line in lines:
        first, second, *_ = [*line.split(), "", ""]
        name = f"{first} {second}" if f"{first} {second}" in PAGES else first
        pages = [name, "canary run"] if name == "canary watch" else [name]  # it passes options on
        known = {flag for page in pages for one in PAGES[page].params for flag in one.opts}
        words = {word.partition("=")[0] for word in shlex.split(line, comments=True)}
        wrong += [(line, word) for word in words - known if re.match(r"--?[a-z]", word)]
    assert wrong == []
    assert len(lines) > 60
