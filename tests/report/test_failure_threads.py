"""What failures share: planted groups are found, chance is not, and each leads to its cases."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from misslink.report.failure_threads import (
    case_traits,
    find_threads,
    rank_documents,
    read_threads,
)
from misslink.report.github_issues import write_issues
from misslink.report.json_document import build_document
from misslink.report.page import build_page, render_markdown, render_page
from misslink.types import Case, FailureEvidence, Passage, Trace
from small_runs import small_run

NUMBERS = range(1, 401)


def planted(failing):
    draw = random.Random(5)
    traits = {
        n: frozenset({("tag", f"x={n % 8}"), ("tag", f"y={draw.randrange(9)}")}) for n in NUMBERS
    }
    return find_threads(traits, {n: failing(n, draw) for n in NUMBERS})


def test_a_planted_group_is_found_with_its_counts():
    (found,) = planted(lambda n, draw: draw.random() < (0.7 if n % 8 == 3 else 0.05))
    assert (found.kind, found.value, found.n, found.n_elsewhere) == ("tag", "x=3", 50, 350)
    assert found.failed == len(found.cases) > 25
    assert found.fragment.startswith("ids=3,")
    assert found.p <= found.q < 1e-6


def test_nothing_is_shared_by_chance_or_where_all_cases_fail():
    assert planted(lambda _, draw: draw.random() < 0.2) == ()
    assert planted(lambda *_: True) == planted(lambda *_: False) == ()


def test_two_names_of_the_same_cases_are_one_group():
    traits = {n: {("tag", f"x={n % 8}"), ("category", f"c{n % 8}")} for n in NUMBERS}
    (found,) = find_threads(traits, {n: n % 8 == 3 for n in NUMBERS})
    assert (found.label, found.also) == ("category: c3", ("tag: x=3",))


def test_traits_of_a_case():
    table = Passage(
        id="p1", rank=1, text="| a | b |\n| 1 | 2 |",
        metadata={"source": "fees.md", "section": "Fees", "updated": "2019-04-02", "language": "de"},
    )  # fmt: skip
    case = Case(id="a", question="How much is 1 ticket?", relevant={"p1": 1}, reference="7 crowns")
    traits = set(case_traits(case, Trace(case_id="a", retrieved=(table,), answer="x")))
    assert traits >= {
        ("document", "fees.md"), ("section", "Fees"), ("date", "document of 2019"),
        ("language", "de"), ("table", "the relevant passage has a table"),
        ("answer type", "number"), ("query shape", "has a number"),
    }  # fmt: skip


def test_a_run_has_its_groups_on_page_in_json_and_as_issues(tmp_path):
    run = small_run([1, 1, 1, 1, 0, 0, 0, 0] * 5)
    failing = [link for link in run.links if link.failed]
    assert failing
    assert len(failing) < len(run.links)
    bad = {link.case_id for link in failing}
    cases = tuple(
        case.model_copy(update={"tags": {"kind": "<b>bad" if case.id in bad else "good"}})
        for case in run.cases
    )
    evidence = FailureEvidence(failure="distracted", passage_id="old.md#2", reason_code="x")
    links = tuple(
        link.model_copy(update={"evidence": (evidence,)}) if link.failed else link
        for link in run.links
    )
    run = run.model_copy(update={"cases": cases, "links": links})
    thread = next(one for one in read_threads(run) if "kind=<b>bad" in (one.label, *one.also)[0])
    assert thread.failed == thread.n == len(bad)
    (document,) = rank_documents(run)
    assert (document.document, document.failed) == ("old.md", len(bad))
    assert document.harms == (("distraction", len(bad)),)
    page = render_page(build_page(run))
    assert "What failures share" in page
    assert "<b>bad" not in page.partition('id="threads"')[2].partition("</section>")[0]
    assert f'href="#{thread.fragment}"' in page
    markdown = render_markdown(build_page(run), page_at="report.html")
    shared = markdown.partition("## What failures share")[2].partition("\n## ")[0]
    assert f"report.html#{thread.fragment}" in shared
    assert f"{len(bad)} of {len(bad)}" in shared
    assert "old.md" in shared
    assert "<b>" not in shared
    record = json.loads(json.dumps(build_document(run)))
    assert record["threads"][0]["fix"]
    assert record["documents"][0]["failed"] == len(bad)
    issues = write_issues(run, tmp_path / "issues.md").read_text()
    assert issues.count("**Owner:**") == len(read_threads(run))
    assert "<b>" not in issues
    quiet = run.model_copy(update={"links": ()})
    assert "No group" in write_issues(quiet, tmp_path / "none.md").read_text()
    assert replace(thread, also=()).fragment == thread.fragment
