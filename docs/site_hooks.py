"""Hooks of the documentation site: generated pages, pages from outside docs/, and llms.txt.

The command-line reference, the rendered prompts and llms.txt are made at build time, so they are
never out of date. Links to files of the repository that are not pages become plain text.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages of the repository that the site shows too, with their folders.
OUTSIDE = ("benchmarks/**/*.md", "examples/*/README.md", "CONTRIBUTING.md")
CLI = "reference/cli.md"
# The files of an example that its page on the site shows, with their languages.
CODE = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
MAX_SHOWN_LINES = 130
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
BLANK_FENCE = re.compile(r"^( *)```output$", re.MULTILINE)


def outside_pages() -> dict[str, Path]:
    """Site path to file, of the pages outside docs/."""
    found = {
        str(path.relative_to(ROOT)): path for pattern in OUTSIDE for path in ROOT.glob(pattern)
    }
    glossary = ROOT / "src" / "misslink" / "report" / "glossary.md"
    return found | {"about/changelog.md": ROOT / "CHANGELOG.md", "reference/glossary.md": glossary}


@cache
def generated_pages() -> dict[str, str]:
    """Site path to text, of the pages that are made from the code."""
    return {
        **cli_reference(),
        "reference/prompts.md": rendered_prompts(),
        "about/decisions.md": decisions(),
    }


def on_config(config: Any) -> Any:
    """List the page of each command under the command line."""
    commands = [site for site in generated_pages() if site.startswith("reference/cli/")]
    for section in config.nav:
        for items in section.values():
            if CLI in items:
                items[items.index(CLI)] = {"Command line": [CLI, *commands]}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    pages = {
        site: path.read_text(encoding="utf-8") + example_files(path)
        for site, path in outside_pages().items()
    }
    pages |= generated_pages()
    for site, text in pages.items():
        files.append(File.generated(config, site, content=text))
    return files


def example_files(page: Path) -> str:
    """The short files beside the page of an example: the site shows no repository."""
    if not page.is_relative_to(ROOT / "examples"):
        return ""
    parts = []
    for path in sorted(page.parent.iterdir()):
        if (language := CODE.get(path.suffix)) is None:
            continue
        text = path.read_text(encoding="utf-8").strip()
        if 1 < len(text.splitlines()) <= MAX_SHOWN_LINES:
            parts.append(f"\n## {path.name}\n\n```{language}\n{text}\n```\n")
    return "".join(parts)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to the site's copy, or make them text."""
    site = page.file.src_uri
    source = outside_pages().get(site, DOCS / site)
    copies = {path.resolve(): copy for copy, path in outside_pages().items()}

    def moved(link: re.Match[str]) -> str:
        image, text, target, anchor = link.groups()
        if "://" in target:
            return link[0]
        path = (source.parent / target).resolve()
        if path in copies:
            site_path = copies[path]
        elif path.is_relative_to(DOCS):
            site_path = str(path.relative_to(DOCS))
        elif site.startswith("about/decisions"):
            return link[0]
        else:
            return text
        start = Path(site).parent
        return f"{image}[{text}]({os.path.relpath(site_path, start)}{anchor or ''})"

    fences: list[str] = []

    def hidden(fence: re.Match[str]) -> str:
        fences.append(fence[0])
        return f"\x00{len(fences) - 1}\x00"

    text = LINK.sub(moved, FENCE.sub(hidden, markdown))
    text = re.sub(r"\x00(\d+)\x00", lambda mark: fences[int(mark[1])], text)
    return BLANK_FENCE.sub(r"\1```text", text)


def on_post_build(config: Any) -> None:
    """Write llms.txt: one line for each page, as https://llmstxt.org proposes."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    lines += nav_lines(config.nav)
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def nav_lines(items: list[Any], section: str | None = None) -> list[str]:
    """The pages of the navigation under their sections."""
    lines: list[str] = []
    for item in items:
        title, value = next(iter(item.items())) if isinstance(item, dict) else (None, item)
        if isinstance(value, list):
            lines += ["", f"## {section or title}", ""] if section is None else []
            lines += nav_lines(value, section or title)
        else:
            name, about = page_summary(value)
            lines.append(f"- [{title or name}]({value.removesuffix('.md')}.html): {about}")
    return lines


def page_summary(site: str) -> tuple[str, str]:
    """The title of a page and its first sentence."""
    text = generated_pages().get(site)
    if text is None:
        text = outside_pages().get(site, DOCS / site).read_text(encoding="utf-8")
    text = FENCE.sub("", text)
    title, _, rest = text.strip().removeprefix("# ").partition("\n")
    parts = (part.strip() for part in rest.split("\n\n"))
    skipped = ("#", "<", "!", "```", "|", "- ", ":::", "**")
    first = next((part for part in parts if part and not part.startswith(skipped)), title)
    sentence = re.split(r"(?<=[.:])\s", " ".join(first.split()))[0].rstrip(":.")
    return title, re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence) + "."


def decisions() -> str:
    """The index of the decision records."""
    lines = [
        "# Decisions",
        "",
        "Each record says what was decided, why, and what was rejected.",
        "",
    ]
    for path in sorted(DOCS.glob("decisions/*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}](../decisions/{path.name})")
    return "\n".join(lines) + "\n"


def cli_reference() -> dict[str, str]:
    """A page for each command, and one that lists them."""
    from misslink.cli.main import build_command

    listed = [
        "# Command line",
        "",
        "`misslink COMMAND --help` prints the main options, `misslink COMMAND --help-all` all of them.",
        "[Exit codes](exit-codes.md) are the same for all commands.",
        "",
        "| command | |",
        "|---|---|",
    ]
    pages = {}
    for name, command in build_command(all_options=True).commands.items():
        lines: list[str] = []
        add_command(lines, f"misslink {name}", command, "#")
        pages[f"reference/cli/{name}.md"] = "\n".join(lines) + "\n"
        does = " ".join((command.help or "").strip().split("\n\n")[0].split())
        listed.append(f"| [`{name}`](cli/{name}.md) | {escaped(does)} |")
    return {CLI: "\n".join(listed) + "\n", **pages}


def add_command(lines: list[str], name: str, command: Any, heading: str = "##") -> None:
    """Append a command, or the commands of a group."""
    lines += [f"{heading} {name}", "", (command.help or "").strip(), ""]
    if command.epilog:
        examples = [line.strip() for line in command.epilog.split("Examples:\n\n")[1].split("\n\n")]
        lines += ["```console", *examples, "```", ""]
    for child, subcommand in getattr(command, "commands", {}).items():
        add_command(lines, f"{name} {child}", subcommand)
    if hasattr(command, "commands"):
        return
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            panel, label = "Arguments", (parameter.metavar or parameter.name).upper()
        else:
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            label = ", ".join(parameter.opts)
        panels.setdefault(panel, []).append(
            f"| `{label}` | {escaped(parameter.help or '')} | {default(parameter)} |"
        )
    for panel, rows in panels.items():
        lines += [f"| {panel} | | Default |", "|---|---|---|", *rows, ""]


def default(parameter: Any) -> str:
    """The default as `--help` shows it."""
    if parameter.required:
        return "required"
    shown = parameter.show_default
    if isinstance(shown, str):
        return escaped(shown)
    if parameter.default in (None, False, [], ()) or callable(parameter.default) or not shown:
        return ""
    return f"`{parameter.default}`"


def escaped(text: str) -> str:
    """A text in a table cell."""
    return re.sub(r"([|*_<\[\]])", r"\\\1", text.replace("\n", " "))


def rendered_prompts() -> str:
    """Every prompt as a judge receives it for a small example."""
    from misslink.cli.prompts import render_example
    from misslink.judge.prompts import Prompts

    lines = [
        "# Rendered prompts",
        "",
        "Each prompt as a judge receives it for a small example. `misslink prompts show NAME` prints",
        "the file; `--prompts DIR` replaces it.",
        "",
    ]
    folder = Prompts.from_spec(None)
    for name in folder.names():
        lines += [f"## {name}", ""]
        for message in render_example(folder.load(name)):
            lines += [f"**{message['role']}**", "", "````text", message["content"], "````", ""]
    return "\n".join(lines) + "\n"
