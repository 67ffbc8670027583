"""The page as a file: escaped, closed off by its policy, whole or not there.

The expected page is ``tests/gold/report.html``; `gold_page` says how a new one is accepted.
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import parse_qsl

import pyarrow.parquet as pq
import pytest

from example_run import HOSTILE, example_run
from gold_page import assert_accepted
from misslink.errors import InputError
from misslink.io.run_folder import run_files
from misslink.report import cases as worst
from misslink.report.links import FILTERS
from misslink.report.page import CASE_TABLE, build_page, render_page, write_html
from misslink.types import Case, Run
from proven_run import LONG_WORD, proven_run


class _Reader(HTMLParser):
    """Collects what a browser would see, and the texts in blocks of data."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.ids, self.inline, self.policy = [], [], [], {}, ""
        self.text, self.data = [], {}
        self._inside = self._block = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        self._block = dict(attrs)["id"] if ("type", "application/json") in attrs else None
        self._inside = tag if tag in ("style", "script") else None
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"]

    def handle_endtag(self, tag):
        self._inside = self._block = None

    def handle_data(self, data):
        if self._block:
            self.data[self._block] = json.loads(data)
        elif self._inside:
            self.inline.setdefault(self._inside, []).append(data)
        else:
            self.text.append(data)


def _texts(data):
    """Every text in JSON, whatever it is part of."""
    if isinstance(data, dict | list):
        for part in data.values() if isinstance(data, dict) else data:
            yield from _texts(part)
    elif isinstance(data, str):
        yield data


@pytest.fixture(scope="module")
def html():
    return render_page(build_page(proven_run()))


@pytest.fixture(scope="module")
def read(html):
    return _Reader(html)


def test_the_page_is_the_one_a_person_looked_at_and_accepted(html):
    assert_accepted(html, "report.html")


def test_the_policy_allows_the_page_s_own_style_and_script_and_nothing_else(read):
    allowed = dict(part.strip().split(" ", 1) for part in read.policy.split(";"))
    assert allowed["default-src"] == "'none'"
    assert "unsafe" not in read.policy
    for kind in ("style", "script"):
        (source,) = read.inline[kind]
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert allowed[f"{kind}-src"] == f"'sha256-{digest}'"


def test_a_run_of_before_renders_without_the_sections_it_has_nothing_for(html):
    sections = ("within", "misses", "checklist", "holes", "replay", "whatif", "map")
    old, new = _Reader(render_page(build_page(example_run()))), _Reader(html)
    links = [value for tag, name, value in old.attributes if (tag, name) == ("a", "href")]

    assert set(sections) <= set(new.ids)
    assert {one for one in sections if one in old.ids} == {"misses"}  # miss types are older
    assert {target[1:] for target in links if "=" not in target} <= set(old.ids)
    assert "confirmed" not in "".join(old.text).replace("confirmed by replay", "")


def test_long_words_and_map_titles_are_whole(read):
    assert "".join(read.text).count(LONG_WORD) >= 5  # group, example, finding, gap, option
    assert read.tags.count("circle") > 150


@pytest.mark.parametrize("part", ["replay", "whatif", "map"])
def test_each_document_alone_gives_its_section_alone(part):
    run = example_run().model_copy(update={part: getattr(proven_run(), part)})
    found = _Reader(render_page(build_page(run)))
    assert {"replay", "whatif", "map"} & set(found.ids) == {part}


def test_hostile_text_makes_no_element_and_no_attribute(read):
    assert Counter(read.tags)["script"] == 1 + len(read.data)
    assert Counter(read.tags)["style"] == 1
    assert not {"img", "link", "iframe", "object", "base", "form"} & set(read.tags)
    names = {name for _, name, _ in read.attributes}
    assert not any(name.startswith("on") for name in names)
    assert not {"style", "src", "srcdoc", "action", "formaction"} & names


def test_every_link_stays_on_the_page_and_leads_somewhere(read):
    targets = [value for tag, name, value in read.attributes if (tag, name) == ("a", "href")]
    views = [parse_qsl(target[1:], strict_parsing=True) for target in targets if "=" in target]

    assert len(targets) > 30
    assert {target[0] for target in targets} == {"#"}
    assert {target[1:] for target in targets if "=" not in target} <= set(read.ids)
    assert len(views) > 20
    assert {key for view in views for key, _ in view} <= {*FILTERS, "case", "claim", "passage"}
    numbers = {str(row["number"]) for row in read.data["case-list"]["rows"]}
    assert {value for view in views for key, value in view if key == "case"} <= numbers


def test_no_id_is_given_twice_and_none_is_made_of_text_under_test(read):
    assert [one for one, count in Counter(read.ids).items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z]+(-[a-z_\d]+)*", one) for one in read.ids)


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if "\0" not in text])
def test_hostile_text_is_shown_as_it_was_written(read, hostile):
    assert hostile in "".join(read.text) + "".join(_texts(read.data))


def test_what_no_file_can_carry_is_replaced(tmp_path):
    run = Run(
        manifest={"app": "half \ud800 a pair"}, cases=(Case(id="q", question="\0 nothing"),),
        traces=(), verdicts=(), links=(), summary={},
    )  # fmt: skip

    written = write_html(run, tmp_path / "r.html").read_text(encoding="utf-8")

    assert "half ? a pair" in written
    assert "\N{REPLACEMENT CHARACTER} nothing" in written


def test_long_and_right_to_left_answers_are_whole(read):
    text = "".join(_texts(read.data))

    assert "x" * 900 in text
    assert "匿名函数 🐍 naïve café" in text


@pytest.mark.slow
def test_runs_without_judge_links_or_cases_render():
    run = example_run()
    for part in (
        {"verdicts": ()},
        {"links": ()},
        {"traces": ()},
        {"summary": {}},
        {"cases": run.cases[:1], "traces": run.traces[:1]},
        {"manifest": {"judge": "none"}, "verdicts": (), "links": ()},
        {"manifest": {}, "cases": (), "traces": (), "verdicts": (), "links": (), "summary": {}},
    ):
        html = render_page(build_page(run.model_copy(update=part)))
        assert html.startswith("<!doctype html>")
        assert "None" not in "".join(_Reader(html).text).replace("None needed", "").replace(
            "None of ", ""
        )


def test_the_folder_is_made_and_an_older_report_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "report.html"

    write_html(example_run(), path)
    path.write_text("old")

    assert write_html(example_run(), path) == path
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()

    with pytest.raises(InputError, match=r"file.report\.html: it cannot be written"):
        write_html(example_run(), tmp_path / "file" / "report.html")
    with pytest.raises(InputError, match="give another path"):
        write_html(example_run(), tmp_path / "folder")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


def test_a_run_writes_itself(tmp_path):
    assert example_run().html(tmp_path / "r.html").stat().st_size > 50_000


@pytest.mark.slow
def test_looking_the_exporter_up_imports_nothing_heavy():
    code = (
        "import sys; from misslink.registry import exporters; exporters.get('html');"
        "print(sorted({'torch', 'pandas', 'scipy', 'chromadb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.fixture
def large(monkeypatch):
    """A run counts as large from the eleventh case on, and its page tells five."""
    monkeypatch.setattr(worst, "MAX_FULL_PAGE", 10)
    monkeypatch.setattr(worst, "PARTIAL_PAGE_CASES", 5)


def test_a_large_run_s_page_tells_the_worst_and_leads_to_all_beside_it(tmp_path, large):
    path = write_html(proven_run(), tmp_path / "mine #1.html")
    read = _Reader(path.read_text(encoding="utf-8"))

    assert len(read.data["case-list"]["rows"]) == 5
    assert "The worst 5 of 14 cases are here in full." in "".join(read.text)
    assert ("a", "href", "mine%20%231.parquet") in read.attributes
    assert {one.name for one in tmp_path.iterdir()} == {path.name, "mine #1.parquet"}
    assert pq.read_table(tmp_path / "mine #1.parquet").num_rows == 14


def test_all_else_on_it_is_of_all_cases(tmp_path, large):
    def scrubbed(run, **parts):
        html = render_page(build_page(run, **parts))
        section = r'(?s)<section aria-labelledby="cases-title">.*?</section>|<script.*?</script>|sha256-[^\']+'
        return re.sub(section, "", html)

    assert scrubbed(proven_run()) == scrubbed(proven_run(), cases=14)


def test_in_a_run_folder_the_table_is_called_as_the_run_s_own(tmp_path, large):
    write_html(proven_run(), tmp_path / "report.html")
    assert {one.name for one in tmp_path.iterdir()} == {"report.html", CASE_TABLE}
    assert CASE_TABLE in run_files()


def test_a_small_run_has_no_table_beside_its_page(tmp_path):
    write_html(proven_run(), tmp_path / "report.html")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_table_of_somebody_else_stops_the_page_before_anything_is_written(tmp_path, large):
    mine = tmp_path / "mine.parquet"
    mine.write_text("not of misslink")
    with pytest.raises(InputError, match="misslink did not write it"):
        write_html(proven_run(), tmp_path / "mine.html")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [
        ("mine.parquet", "not of misslink")
    ]


def test_a_page_that_is_called_as_a_table_is_not_lost(tmp_path, large):
    path = write_html(proven_run(), tmp_path / "odd.parquet")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert pq.read_table(tmp_path / "odd.parquet.parquet").num_rows == 14


def test_a_large_run_s_page_without_a_file_says_how_to_write_one(large):
    read = _Reader(render_page(build_page(proven_run())))
    assert "misslink report RUN --format parquet" in "".join(read.text)
    assert not [name for _, name, _ in read.attributes if name == "download"]
