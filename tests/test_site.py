"""The site as a reader sees it: its blocks are those that tests/test_readme.py runs."""

import os
import re
import subprocess
import sys
import textwrap
from html import unescape
from pathlib import Path

import pytest

from test_readme import STEP

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.source]


def visible(html):
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, str(folder)], cwd=ROOT, env=environment, check=True)
    return folder


def test_a_reader_sees_every_step_that_is_run_and_the_name_of_each_file(site):
    hidden = []
    pages = [page for page in ROOT.glob("docs/**/*.md") if "decisions" not in page.parts]
    for page in pages:
        html = (site / page.relative_to(ROOT / "docs")).with_suffix(".html").read_text("utf-8")
        blocks = {
            visible(one).strip() for one in re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)
        }
        for step in STEP.finditer(page.read_text(encoding="utf-8")):
            shown = textwrap.dedent(step["text"]).strip() in blocks
            named = step["file"] is None or step["file"] in visible(html)
            hidden += [] if shown and named else [(page.name, step["text"][:60])]
    assert len(pages) > 60
    assert hidden == []


def test_the_page_of_the_app_examples_has_their_code(site):
    html = (site / "examples" / "apps" / "index.html").read_text(encoding="utf-8")
    blocks = {visible(one).strip() for one in re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)}
    listed = set(
        re.findall(r"`(\w+\.(?:py|toml))`", (ROOT / "examples/apps/README.md").read_text())
    )
    missing = {
        name
        for name in listed
        if (ROOT / "examples" / "apps" / name).read_text(encoding="utf-8").strip() not in blocks
    }
    assert (len(listed) > 9, missing) == (True, set())
