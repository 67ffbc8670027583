"""What the README shows runs as it stands; what the pages point to is there, and is listed."""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from misslink.failure_modes import FAILURE_MODES
from misslink.judge.checks.redteam import load_suite
from misslink.judge.middleware import cascade
from misslink.matching.support import fit_figures

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted(
    page
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "skills/*/*.md",
        "benchmarks/**/*.md",
        "examples/*/*.md",
        "reports/*.md",
    )
    for page in ROOT.glob(pattern)
)
OWN_PATH = re.compile(
    r"(?<![\w./-])(?:\.\./)*((?:benchmarks|src|tests)/[\w./-]+\.(?:json|md|py|toml))\b"
)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
# A step of a page, as a reader sees it: a file to write, named in the line before it, a block to run, whose
# last command may name its exit code, or what the block before it prints.
STEP = re.compile(
    r"^(?:`(?P<file>[^`\s]+)`:\n\n)?"
    r"(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
EXIT = re.compile(r"# exit code (\d)\s*$")
APART = {"canary.md", "metrics.md"}  # tests/cli/test_canary_docs.py and tests/plugin run these


def guides():
    """Pages with blocks to run, each with an empty folder; those of the tutorial share one."""
    tutorial = sorted(ROOT.glob("docs/tutorial/*.md"))
    pages = [*sorted(ROOT.glob("docs/**/*.md")), *ROOT.glob("skills/*/SKILL.md")]
    others = [page for page in pages if page not in tutorial]
    groups = [[README], tutorial, *([page] for page in others if page.name not in APART)]
    return [group for group in groups if any(map(runs_something, group))]


def runs_something(page):
    text = page.read_text(encoding="utf-8")
    return any(step["language"] in {"python", "sh"} for step in STEP.finditer(text))


def run_page(page, folder, environment):
    """Run a page's blocks in order; with MISSLINK_ACCEPT its expected output is written anew."""
    text, printed = page.read_text(encoding="utf-8"), ""
    outputs = []
    for step in STEP.finditer(text):
        code = textwrap.dedent(step["text"])
        if step["file"]:
            (folder / step["file"]).write_text(code, encoding="utf-8")
        elif step["language"] == "output":
            outputs.append((step.span("text"), code, textwrap.indent(printed, step["indent"])))
        elif step["language"] in {"python", "sh"}:
            shell = ["bash", "-ec", code]
            command = ["python", "-c", code] if step["language"] == "python" else shell
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            wanted = EXIT.search(code)
            assert done.returncode == int(wanted[1] if wanted else 0), (
                f"{command}\n{done.stdout}\n{done.stderr}"
            )
            printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    if outputs and os.environ.get("MISSLINK_ACCEPT"):
        for (start, end), _, printed in reversed(outputs):
            text = f"{text[:start]}{printed}{text[end:]}"
        page.write_text(text, encoding="utf-8")
    else:
        for _, shown, printed in outputs:
            assert textwrap.dedent(printed) == shown, f"{page.name} shows another output"


@pytest.mark.source
def test_the_tutorial_names_the_failure_modes_that_it_prints():
    text = (ROOT / "docs/tutorial/2-read-the-report.md").read_text(encoding="utf-8")
    printed = {tuple(line.split()[::2]) for line in text.splitlines()}
    named = re.findall(r"`([\w-]+)` is a case of `(\w+)`", text)
    assert len(named) == 2
    assert [pair for pair in named if pair not in printed] == []


def links(page):
    """Where a page points to in this repository, but not what a block of code says."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", text))
    return [link for link in found if "://" not in link]


@cache
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
@pytest.mark.parametrize("pages", guides(), ids=lambda pages: pages[0].stem)
def test_the_blocks_of_a_page_run(pages, tmp_path, judge_server, warm_commands):
    """In their order, as a reader would; the judge is a server on loopback."""
    if pages != [README]:
        pytest.importorskip("langchain")
    if any("import torch" in page.read_text(encoding="utf-8") for page in pages):
        pytest.importorskip("transformers", reason="needs the extra 'minilm'")
    judge_server.models = ("gpt-4.1-mini",)
    programs = [Path(sys.executable).parent, os.environ["PATH"]]
    if (ROOT / "src").is_dir():  # without a source tree it starts as it does for a reader
        programs.insert(0, warm_commands)
    environment = {
        **os.environ,
        "COLUMNS": "80",
        "PATH": os.pathsep.join(map(str, programs)),
        "OPENAI_BASE_URL": judge_server.url,
        "OPENAI_API_KEY": "made-up",
    }
    for page in pages:
        run_page(page, tmp_path, environment)


@pytest.mark.source
def test_no_step_of_a_page_is_hidden():
    """Comments hold marks of generated parts alone: what a test needs, a reader needs too."""
    hidden = re.compile(r"<!-- ?(?:before|file|exit|run):.*")
    assert [(page, hit) for page in PAGES for hit in hidden.findall(page.read_text("utf-8"))] == []


def test_the_readme_runs_python_and_shell_and_shows_an_output():
    steps = [*STEP.finditer(README.read_text(encoding="utf-8"))]
    assert {step["language"] for step in steps} >= {"python", "sh", "output"}
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.source
def test_what_a_page_points_to_is_there():
    to_nothing = [
        (page, link) for page in PAGES for link in links(page) if not leads_somewhere(page, link)
    ]
    assert to_nothing == []


@pytest.mark.slow
@pytest.mark.source
def test_a_path_named_in_a_page_or_in_the_code_is_there():
    folders = ("benchmarks", "docs", "src", "tests")
    code = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    code += [ROOT / name for name in ("Makefile", "mkdocs.yml", "pyproject.toml")]
    named = {
        (str(file.relative_to(ROOT)), path)
        for file in (*PAGES, *code)
        for path in OWN_PATH.findall(file.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert [(file, path) for file, path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#no-such-part", "#no-such-part"])
def test_a_link_to_nothing_is_found(link):
    assert not leads_somewhere(README, link)
    assert leads_somewhere(README, "#quickstart")


@pytest.mark.source
def test_every_page_is_in_the_navigation_and_every_table_in_the_list_of_benchmarks():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    named = set(re.findall(r"[\w./-]+\.md", navigation))
    generated = {
        *("reference/cli.md", "reference/prompts.md", "reference/glossary.md"),
        "about/decisions.md",
    }
    assert {page for page in pages if not page.startswith("decisions/")} == (
        named - generated - {"about/changelog.md"}
    )
    benchmarks = ROOT / "docs/about/benchmarks.md"
    listed = {(benchmarks.parent / link).resolve() for link in links(benchmarks)}
    assert set(ROOT.glob("benchmarks/**/*.md")) == listed


BANNED = re.compile(
    r"\b(held against|(is|are|was|were) told|told (of|apart)|brings?|brought|stands? (in|on|beside|there)"
    r"|lies (in|on|beside|there)|goes on|at hand|anew|mends?|mended|nobody|somebody|whoever|in vain"
    r"|of which|asks? nobody|the way out|what becomes of|as far as|for ever|of its own|well and"
    r"|by heart|cut-off|someone|is home|was said)\b",
    re.IGNORECASE,
)
RECORDS = {"benchmarks", "reports", "CHANGELOG.md"}  # history, and measured tables
PLAIN = [page for page in PAGES if not RECORDS & set(page.relative_to(ROOT).parts)]


@pytest.mark.source
def test_a_page_uses_plain_words():
    hits = []
    for page in PLAIN:
        text = re.sub(r"`[^`\n]+`", "", FENCED.sub("", page.read_text(encoding="utf-8")))
        hits += [(page, hit[0]) for hit in BANNED.finditer(text)]
    assert hits == []


@pytest.mark.source
def test_a_how_to_guide_is_short():
    words = {
        page.name: len(page.read_text(encoding="utf-8").split())
        for page in ROOT.glob("docs/how-to/*.md")
    }
    assert {name: count for name, count in words.items() if count > 600} == {}


def test_the_figures_of_the_heuristic_judge_are_those_that_were_measured():
    text = " ".join((ROOT / "docs/concepts/judges.md").read_text(encoding="utf-8").split())
    measured = fit_figures()
    low = int(10 * measured["precision"])
    assert f"Of 10 answers it flags, {low} to {low + 1} are unfaithful" in text
    assert f"it finds {measured['recall']:.0%}" in text
    assert f"{measured['answers']} answers of RAGTruth QA were kept apart" in text
    assert f"AUROC {measured['auroc']:.2f}, F1 {measured['f1']:.2f}" in text
    guide = (ROOT / "docs/how-to/choose-a-judge.md").read_text(encoding="utf-8")
    assert f"AUROC {measured['auroc']:.2f}, kappa {measured['kappa']:.2f}" in guide
    assert f"{measured['answers']} RAGTruth answers" in guide


def test_the_tokens_of_a_run_are_those_that_were_measured_and_its_price_is_worked_out():
    page = (ROOT / "docs/how-to/what-a-run-costs.md").read_text(encoding="utf-8")
    measured = (
        (ROOT / "benchmarks/judge/judge_cost.md").read_text(encoding="utf-8").replace(",", "")
    )
    rows = re.findall(r"^\| (.+) \| \d+ \| (\d+) \| (\d+) \| (\d+) \|", measured, re.MULTILINE)
    assert len(rows) == 6
    for step, *counts in rows:
        calls, given, written = map(int, counts)
        each = (
            (1, given / calls, written / calls) if "evaluate" in step else (calls, given, written)
        )
        assert "| {:,} | {:,.0f} | {:,.0f} |".format(*each) in page, step
    worked = r"^\| \w+: 100 x (\S+) \| (\S+) \| (\S+) \| (\S+) \|"
    costs = []
    for tokens, total, price, cost in re.findall(worked, page.replace(",", ""), re.MULTILINE):
        assert int(total) == 100 * int(tokens)
        costs.append(int(total) * float(price) / 1e6)
        assert f"{costs[-1]:.2f}" == cost
    assert f"| together | | | {sum(costs):.2f} |" in page
    guide = (ROOT / "docs/how-to/choose-a-judge.md").read_text(encoding="utf-8")
    assert f"About {sum(costs):.2f} USD" in guide


def test_the_figures_of_the_attacks_and_of_the_cascade_are_those_that_were_measured():
    guide = (ROOT / "docs/how-to/test-a-judge.md").read_text(encoding="utf-8")
    attacks = load_suite().attacks
    texts = {(attack.kind, attack.payload) for attack in attacks}
    assert f"tries {len(attacks)} injections ({len(texts)} texts" in guide
    kept = Path(cascade.__file__).with_suffix(".json").read_text(encoding="utf-8")
    band = json.loads(kept)["judges"]["heuristic"]
    measured = band["figures"]
    page = " ".join((ROOT / "docs/concepts/judges.md").read_text(encoding="utf-8").split())
    assert f"people agree with {measured['wanted']:.0%}" in page
    assert band["band"]["low"] is None, "the page says that it never finds an answer unfaithful"


def test_the_figures_of_speed_are_those_that_were_measured():
    page = (ROOT / "docs/about/benchmarks.md").read_text(encoding="utf-8")
    measured = (ROOT / "benchmarks/judge/judge_throughput.md").read_text(encoding="utf-8")
    table = page.partition("## Judging, beside other tools")[2]
    shown = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| ")]
    rows = [row.strip("| ").split(" | ") for row in measured.splitlines() if row.startswith("| ")]
    names, *rows = rows
    wanted = [names.index(name) for name in shown[0]]
    at_32 = [row for row in rows if row[names.index("at once")] == "32"]
    assert shown[1:] == [[row[column] for column in wanted] for row in at_32]
    (seconds,) = re.findall(r"A full cache answers 10,000 cases in ([\d.]+) s", table)
    assert f"With a full cache 10,000 cases take {seconds} s" in measured
    readme = README.read_text(encoding="utf-8")
    for row in shown[1:]:
        if row[0] in {"misslink", "ragas", "deepeval"}:
            assert all(f"{figure}" in readme for figure in row[2:]), "the README has the same"


@pytest.mark.source
def test_the_page_of_failure_modes_has_each_with_its_owner():
    page = (ROOT / "docs/concepts/failure-modes.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([a-z ]+) \|", page, re.MULTILINE))
    assert rows == {
        name: mode.owner.replace("_", " ") for name, mode in FAILURE_MODES.items() if mode.failed
    }


@pytest.mark.source
def test_the_figures_of_the_failure_modes_are_those_that_were_measured():
    measured = (ROOT / "benchmarks/linking/attribution.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/concepts/failure-modes.md").read_text(encoding="utf-8")
    # With labels; and without, but for the search by MiniLM.
    rows = re.findall(
        r"^\| (?:noisy oracle|oracle|heuristic) \|(?: corpus, BM25 \|| traces alone \|)? \d+ \|.*$",
        measured,
        re.MULTILINE,
    )
    assert len(rows) == 9
    assert all(row in page for row in rows)
    cases, right = 0, Counter[str]()
    for name in ("sixth", "seventh", "eighth", "ninth", "tenth"):
        unseen = (ROOT / f"benchmarks/linking/attribution_kinds_{name}.md").read_text("utf-8")
        for judge in ("perfect", "heuristic"):
            row = rf"^\| labels, references, corpus \| {judge} \| (\d+) \| ([\d.]+)%"
            n, share = re.search(row, unseen, re.MULTILINE).groups()
            right[judge] += round(int(n) * float(share) / 100)
        cases += int(n)
    wanted = (
        f"On {cases:,} cases of kinds that its rules were not written for, the owner is right in "
        f"{right['perfect'] / cases:.0%} with a perfect judge, and in "
        f"{right['heuristic'] / cases:.0%} with the heuristic one"
    )
    assert wanted in " ".join(README.read_text(encoding="utf-8").split())
