"""What the README shows runs as it stands; what the pages point to is there, and is listed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.judge.backends.heuristic import fit_figures
from misslink.judge.checks.redteam import load_suite
from misslink.judge.middleware import cascade

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "examples/*/*.md", "reports/*.md")
    for page in ROOT.glob(pattern)
)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"(?:<!-- file: (\S+) -->\n)?```(python|sh)\n(.*?)```", re.DOTALL)


def links(page):
    """Where a page points to in this repository, but not what a block of code says."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", text))
    return [link for link in found if "://" not in link]


def anchors(page):
    """What a link may name behind its #: the headings, spelled as GitHub spells them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page, link):
    path, _, part = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not part or part in anchors(target))


@pytest.mark.slow
def test_every_python_and_shell_block_runs(tmp_path, judge_server):
    """In one folder, in their order, as a reader would; the judge is a server on loopback."""
    pytest.importorskip("langchain_core")
    judge_server.models = ("gpt-4.1-mini",)
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert {language for _, language, _ in blocks} == {"python", "sh"}
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_BASE_URL": judge_server.url,
        "OPENAI_API_KEY": "made-up",
    }
    for name, language, text in blocks:
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
            continue
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-ec", text]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        if language == "python":
            assert "retrieval_miss" in done.stdout, "the example shows what misslink is for"
    for page in ("first.html", "reports/first.html", "reports/mine/report.html"):
        assert (tmp_path / page).stat().st_size > 10_000
    assert len(judge_server.calls) >= 2


@pytest.mark.source
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_points_to_is_there(page):
    broken = [link for link in links(page) if not leads_somewhere(page, link)]
    assert not broken, f"{page.relative_to(ROOT)} points to nothing: {broken}"


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#no-such-part", "#no-such-part"])
def test_a_link_to_nothing_is_found(link):
    assert not leads_somewhere(README, link)
    assert leads_somewhere(README, "#can-the-judge-be-trusted")


def test_every_page_and_every_table_stands_in_the_index():
    """A line each, with what it is for."""
    listed = {(INDEX.parent / link).resolve() for link in links(INDEX)}
    pages = [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    missing = [str(page.relative_to(ROOT)) for page in pages if page not in listed | {INDEX}]
    assert not missing, f"docs/README.md does not list {missing}"
    assert len(pages) > len(list(ROOT.glob("docs/decisions/*.md"))) > 0
    for line in INDEX.read_text(encoding="utf-8").splitlines():
        assert not line.startswith("- ") or re.fullmatch(r"- \[[^\]]+\]\([^)]+\): .*\S", line), line


def test_the_figures_of_the_heuristic_judge_are_those_that_were_measured():
    text = README.read_text(encoding="utf-8")
    for name, measured in fit_figures().items():
        shown = (f"{measured[figure]:.2f}" for figure in ("auroc", "f1", "begin_auroc"))
        assert f"| `{name}` | {' | '.join(shown)} |" in text


def test_the_figures_of_the_attacks_and_of_the_cascade_are_those_that_were_measured():
    text = " ".join(README.read_text(encoding="utf-8").split())
    attacks = load_suite().attacks
    texts = {(attack.kind, attack.payload) for attack in attacks}
    assert f"tries {len(attacks)} injections ({len(texts)} texts" in text
    kept = Path(cascade.__file__).with_suffix(".json").read_text(encoding="utf-8")
    band = json.loads(kept)["judges"]["heuristic"]
    measured = band["figures"]
    assert f"people agree with {measured['wanted']:.0%}" in text
    assert f"it decides {measured['share_decided']:.0%}" in text
    assert band["band"]["low"] is None, "the README says that it never convicts"


def test_the_figures_of_speed_are_those_that_were_measured():
    text = README.read_text(encoding="utf-8")
    measured = (ROOT / "benchmarks" / "judge_throughput.md").read_text(encoding="utf-8")
    table = text.partition("### How fast")[2].partition("### ")[0]
    shown = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| ")]
    found = [row.strip("| ").split(" | ") for row in measured.splitlines() if row.startswith("| ")]
    names, *rows = found
    wanted = [names.index(name) for name in shown[0]]
    at_32 = [row for row in rows if row[names.index("at once")] == "32"]
    assert shown[1:] == [[row[column] for column in wanted] for row in at_32]
    (seconds,) = re.findall(r"A full cache answers 10,000 cases in ([\d.]+) s", table)
    assert f"With a full cache 10,000 cases take {seconds} s" in measured
