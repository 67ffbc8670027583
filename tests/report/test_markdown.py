"""The report as markdown: the page's story, and nobody else's markup in it."""

import html
import re
from itertools import pairwise, takewhile

import pytest
from markdown_it import MarkdownIt

from example_run import example_run
from misslink.report.page import build_page, render_markdown, render_page, write_markdown
from misslink.types import Case, Run
from proven_run import proven_run

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKUP = "](https://e.org) ![x](https://e.org/p.png) @all `x` | y |\n# loud\n\n<b>#12 ~~a~~ **b**"
# What GitHub takes as the text of a pull request or a comment.
LONGEST = 65_536
SECTIONS = [
    "What to do next",
    "Failure modes",
    "What other retrieval settings would change",
    "Why passages were missed",
    "Groups of cases, the worst first",
    "The worst cases",
    "Can the judge be trusted?",
]


def hostile_run():
    """Markup of this very format in every text that reaches it, long ones among them."""
    run = proven_run()
    long = MARKUP * 200
    group = run.summary["slices"]["category"]["simple_factual"]
    metrics = run.summary["generation"]
    return run.model_copy(
        update={
            "cases": tuple(
                case.model_copy(update={"question": long, "category": long, "tags": {MARKUP: long}})
                for case in run.cases
            ),
            "traces": tuple(
                one.model_copy(update={"error": long, "answer": long}) for one in run.traces
            ),
            "links": tuple(link.model_copy(update={"reason": long}) for link in run.links),
            "manifest": run.manifest | {"app": MARKUP, "goldset": MARKUP, "judge_note": MARKUP},
            "summary": run.summary
            | {
                "slices": {
                    f"{MARKUP}{place}": {f"{long}{one}": group for one in range(9)}
                    for place in range(12)
                },
                "generation": metrics | {MARKUP: metrics["fully_faithful"]},
            },
        }
    )


def tokens_of(markdown):
    """Every token of a document, those within lines too."""
    for token in PARSER.parse(markdown):
        yield token
        yield from token.children or ()


def headings(markdown, level):
    tokens = PARSER.parse(markdown)
    return [
        after.content
        for token, after in pairwise(tokens)
        if token.type == "heading_open" and token.tag == f"h{level}"
    ]


def rows(markdown):
    """The rows of all tables, as the texts of their cells."""
    found = []
    for token in PARSER.parse(markdown):
        if token.type == "tr_open":
            found.append([])
        if token.type == "inline" and found and found[-1] is not None and token.level > 2:
            found[-1].append("".join(child.content for child in token.children))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("run", [example_run, proven_run, hostile_run])
def test_no_text_under_test_becomes_markup(run):
    markdown = render_markdown(build_page(run()))
    kinds = {token.type for token in tokens_of(markdown)}
    assert not kinds & {"html_block", "link_open", "image", "s_open", "fence", "code_block"}
    tags = {token.content for token in tokens_of(markdown) if token.type == "html_inline"}
    assert tags <= {"<code>", "</code>"}
    assert headings(markdown, 2) == [name for name in SECTIONS if name in headings(markdown, 2)]
    assert len(headings(markdown, 1)) == 1
    assert "@all" not in markdown
    assert "://" not in markdown


def test_the_worst_run_fits_into_a_pull_request():
    assert len(render_markdown(build_page(hostile_run()), page_at="report.html")) < LONGEST


def test_it_tells_what_the_page_tells_in_its_order():
    run = proven_run()
    page, markdown = build_page(run), render_markdown(build_page(run))
    seen = html.unescape(markdown).replace("\\", "").replace("\u2060", "")
    assert headings(markdown, 2) == SECTIONS
    assert f"**{page.verdict}**" in seen
    assert page.errors in seen
    assert page.evidence in seen
    assert all(m.shown.text in seen for level in page.levels for m in level.metrics)
    assert all(step.action.replace("`", "") in seen.replace("`", "") for step in page.steps)
    assert all(f"| {failure.count} | {failure.share.text} |" in seen for failure in page.failures)
    assert all(row.main.option.text in seen for row in page.whatif.options)
    assert all(row.share.text in seen for row in page.misses)
    assert page.judge[0] in seen
    assert page.command in seen


def test_warnings_of_the_run_are_on_the_page_and_in_markdown_and_inert():
    warning = {"code": "no_prompt", "message": "<script>alert(1)</script> was captured."}
    summary = {**example_run().summary, "warnings": [warning]}
    page = build_page(example_run().model_copy(update={"summary": summary}))
    assert '<li dir="auto">&lt;script&gt;alert(1)&lt;/script&gt; was captured.</li>' in (
        render_page(page)
    )
    assert "- &lt;script" in render_markdown(page)
    assert "html_block" not in {token.type for token in tokens_of(render_markdown(page))}


def test_every_number_of_a_table_has_its_interval_and_its_n():
    found = rows(render_markdown(build_page(proven_run())))
    shares = [cell for row in found for cell in row if re.match(r"[\d<>]+%", cell)]
    assert len(shares) > 20
    assert all(re.fullmatch(r"\S+% \[\S+, \S+\], n = \d+", cell) for cell in shares)


def test_the_cases_are_the_ten_worst_worst_first():
    found = rows(render_markdown(build_page(proven_run())))
    place = next(place for place, row in enumerate(found) if row[0] == "No.")
    numbers = [int(row[0]) for row in takewhile(lambda row: row[0].isdigit(), found[place + 1 :])]
    # By failure mode in the order of severity, then by faithfulness, then by recall: worked out from
    # example_run by hand. Annotators call case 4 good, and 10 bad, which the judge passed.
    assert numbers == [14, 5, 3, 6, 7, 8, 9, 10, 12, 11]
    assert found[place + 1][3:5] == ["Retrieval miss", "miss, unfaithful, wrong"]


def test_a_case_s_tier_stands_beside_its_id():
    run = proven_run()
    cases = [case.model_copy(update={"tier": "*A*"}) for case in run.cases]
    found = rows(render_markdown(build_page(run.model_copy(update={"cases": tuple(cases)}))))
    place = next(place for place, row in enumerate(found) if row[0] == "No.")
    assert found[place + 1][1] == "with-exit tier *A*"  # as it is read: nothing is set in italics
    assert "tier" not in render_markdown(build_page(run))


def test_links_lead_into_the_page_where_it_stands_beside(tmp_path):
    alone = write_markdown(proven_run(), tmp_path / "report.md").read_text(encoding="utf-8")
    assert "](" not in alone
    (tmp_path / "report.html").write_text("", encoding="utf-8")
    beside = write_markdown(proven_run(), tmp_path / "report.md").read_text(encoding="utf-8")
    targets = {token.attrs["href"] for token in tokens_of(beside) if token.type == "link_open"}
    assert {"report.html", "report.html#failure=retrieval_miss", "report.html#case=14"} <= targets
    assert all(target.startswith("report.html") for target in targets)


def test_a_run_without_a_judge_has_no_sections_of_answers():
    run = example_run()
    bare = run.model_copy(
        update={
            "manifest": run.manifest | {"judge": "none"},
            "verdicts": (),
            "links": (),
            "summary": {key: run.summary[key] for key in ("cases", "k", "retrieval")},
        }
    )
    markdown = render_markdown(build_page(bare))
    assert headings(markdown, 2) == ["What to do next"]


def test_an_empty_run_is_a_document_too():
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert headings(render_markdown(build_page(empty)), 1) == ["A RAG app"]
    assert "this run has no cases" in render_markdown(build_page(empty))


def test_half_a_surrogate_pair_is_no_obstacle(tmp_path):
    case = Case(id="c", question="What?").model_copy(update={"question": "What\ud800?"})
    run = Run(manifest={}, cases=(case,), traces=(), verdicts=(), links=(), summary={})
    assert (
        write_markdown(run, tmp_path / "r.md").read_text(encoding="utf-8").startswith("# A RAG app")
    )


def test_one_number_stands_for_a_share_that_labels_correct():
    text = render_markdown(build_page(proven_run()))
    shares = {row[0]: row[1] for row in rows(text)}
    assert shares["Share of"] == "By annotators"
    assert shares["faithful answers"] == "65% [59, 71], n = 220"
    assert ["2. Generation", "fully_faithful, by annotators", "65% [59, 71], n = 220"] in rows(text)
    assert "64% [35, 85]" not in text  # what the judge calls faithful
    assert "correct answers" in shares
    assert "Share of" not in render_markdown(build_page(example_run()))


def test_the_judge_has_its_verdicts_its_ties_and_its_audits():
    said = render_markdown(build_page(proven_run()))
    assert "- faithfulness: **caution**." in said
    assert "- correctness: **caution**." in said
    assert "`misslink annotate RUN --adjudicate`" in said
    assert "| answer padded with its passages | `faithfulness` |" in said
    assert "Can the judge be trusted?" not in render_markdown(build_page(example_run()))
