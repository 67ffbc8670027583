"""A comparison for people: what it says, what it links to, and that texts under test stay texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from example_run import HOSTILE
from gold_page import assert_accepted
from misslink.compare.compare_runs import compare_runs
from misslink.compare.preferences import StoredPreferences, answers_hash
from misslink.judge.checks.pairwise import PairOutcome
from misslink.report.comparison import build_comparison_page, render_comparison_page
from misslink.report.comparison_markdown import comparison_markdown
from small_runs import broken, named, small_run

N = 10
A = small_run([0] * N, faithful=[1] * (N - 1) + [0])
B = small_run([1] * N, faithful=[0] + [1] * (N - 1))


def page_of(*runs, reports=None):
    listed = named(*runs)
    return build_comparison_page(
        compare_runs(listed), {one.name: one.run for one in listed}, reports
    )


def told_run(hits, faithful, **more):
    """A run whose questions and answers are hostile."""
    run = small_run(hits, faithful=faithful, questions=HOSTILE, **more)
    traces = [
        trace.model_copy(update={"answer": text})
        for trace, text in zip(run.traces, reversed(HOSTILE), strict=True)
    ]
    return run.model_copy(update={"traces": tuple(traces)})


def whole_page():
    """Everything that a page can hold: a winner, a crash, another judge, preferences, no report."""
    a = told_run([0] * 9 + [None], [1, 1, None, 0, 1, 0, 1, 1, 0, 1])
    b = told_run([1] * 9 + [None], [0, 1, None, 1, 1, 1, 1, 1, 1, 1], over_refused=[0] * 10)
    again = told_run([0] * 9 + [None], [1, 1, None, 0, 1, 0, 1, 1, 0, 1], judge=HOSTILE[3])
    c = broken(again, "c1", "c4")
    listed = named(a, b, c)
    outcomes = (
        PairOutcome("c1", "b", ("b", "b")),
        PairOutcome("c2", "tie", ("a", "b")),
        PairOutcome("c3", "b", ("b", "b")),
        PairOutcome("c4", "a", ("a", "a")),
        PairOutcome("c5", None, reason=HOSTILE[0]),
    )
    asked = StoredPreferences(
        "p.json", "a", "b", (answers_hash(a), answers_hash(b)), HOSTILE[3], outcomes
    )
    document = compare_runs(listed, preferences=[asked])
    reports = {"runs/a": "../a/report.html", "runs/b": "../b%20b/report.html"}
    return build_comparison_page(document, {one.name: one.run for one in listed}, reports)


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.hrefs, self.ids = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.hrefs += [value for name, value in attrs if name == "href"]
        self.ids += [value for name, value in attrs if name == "id"]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]


def test_the_page_is_the_one_a_person_looked_at_and_accepted():
    assert_accepted(render_comparison_page(whole_page()), "comparison.html")


def test_the_finding_names_who_is_better_beyond_chance():
    one = page_of(A, B).comparisons[0]
    assert one.finding.startswith("B is better than A on recall@1 (+100 points")
    assert "2 tests" not in one.finding  # faithfulness is tested too
    assert "10 cases, 3 tests, Holm" in one.finding


def test_the_finding_says_where_nothing_is_beyond_chance():
    finding = page_of(small_run([0, 1, 0, 1, 1]), small_run([1, 1, 0, 1, 1])).comparisons[0].finding
    assert finding.startswith("Nothing measured differs between A and B by more than chance")
    assert finding.endswith(
        "To be seen in 4 of 5 repetitions, recall@1 would have to change by about 75 points."
    )
    alike = page_of(A, A).comparisons[0].finding
    assert alike.startswith("A and B are alike in everything that was measured")


def test_no_metric_is_picked_by_how_it_came_out_for_what_could_have_been_seen():
    """The least and the most that any could have shown, at the level that Holm leaves."""
    a = small_run([0, 1, 0, 1, 1, 1] * 5, faithful=[1] * 29 + [0])
    b = small_run([1, 1, 0, 0, 1, 1] * 5, faithful=[1] * 30)
    finding = page_of(a, b).comparisons[0].finding
    said = "To be seen in 4 of 5 repetitions at the level that Holm leaves, faithfulness"
    assert re.search(rf"{said}\w* would have to change by about \d+ points and recall@1", finding)


def test_what_no_difference_could_show_is_not_given_in_points():
    """Two cases at a third of 5%: even all of the range would be lost in the noise."""
    a, b = small_run([0, 1], faithful=[1, 1]), small_run([1, 1], faithful=[1, 1])
    one = page_of(a, b).comparisons[0]
    assert one.finding.endswith(
        "So few cases show no difference of any size in 4 of 5 repetitions at the level that "
        "Holm leaves."
    )
    assert one.rows[0].detectable == "none of any size"


def crashed():
    """In B the app failed on 4 of 10, and nothing else differs."""
    lost = ["c1", "c2", "c3", "c4"]
    b = small_run([0] * N, faithful=[None] * 4 + [1] * (N - 5) + [0])
    return A, broken(b, *lost)


def test_what_failed_in_one_run_leads_and_is_nowhere_called_the_same():
    one = page_of(*crashed()).comparisons[0]
    assert one.finding == (
        "4 cases of A have no value in B (the app failed). No case that has a value in both A and "
        "B differs (10 cases, 3 tests, Holm)."
    )
    assert one.alike == ()
    assert {row.verdict for row in one.rows} == {"the same in the rest"}
    assert {(row.n, row.of) for row in one.rows} == {(6, "6 of 10 cases")}
    assert all("4 cases left out, 4 with a value in A alone: " in row.left_out for row in one.rows)


def test_a_winner_over_what_is_left_of_a_run_says_so():
    b = broken(small_run([1] * 20, faithful=[1] * 20), "c1")
    finding = page_of(small_run([0] * 20, faithful=[1] * 20), b).comparisons[0].finding
    assert finding.startswith("1 case of A has no value in B (the app failed): recall@1. B is bet")
    assert "beyond chance over the cases that both have (20 cases" in finding


def test_what_is_skipped_in_one_run_is_noted_and_leads_nothing():
    a, b = small_run([1] * 4, faithful=[1] * 4), small_run([1] * 4, faithful=[1, 1, 1, None])
    one = page_of(a, b).comparisons[0]
    assert one.finding.startswith("No case that has a value in both A and B differs")
    assert one.notes[0] == (
        "1 case of A has no value in B (skipped: the answer declines): faithfulness, fully_faithful."
    )
    assert [row.name for row in one.alike] == ["recall@1"]


def test_a_run_that_was_not_judged_is_not_alike_in_everything():
    finding = page_of(A, small_run([0] * N, judge="none")).comparisons[0].finding
    assert finding == (
        "10 cases of A have no value in B (no judge was used): faithfulness, fully_faithful. A and B "
        "are alike in the 1 metric that both have (10 cases, 1 test, Holm)."
    )


def test_cases_without_a_value_in_both_are_counted_beside_what_is_the_same():
    same = small_run([1, 1, None], faithful=[1, None, 1])
    one = page_of(same, same).comparisons[0]
    assert [(row.name, row.of) for row in one.alike] == [
        ("recall@1", "2 of 3 cases"), ("faithfulness", "2 of 3 cases"),
        ("fully_faithful", "2 of 3 cases"),
    ]  # fmt: skip
    assert "`recall@1` (2 of 3 cases)" in comparison_markdown(page_of(same, same))


def test_markdown_and_the_page_say_how_many_were_left_out():
    for written in (
        comparison_markdown(page_of(*crashed())),
        render_comparison_page(page_of(*crashed())),
    ):
        assert "4 cases of A have no value in B" in written.replace("\\", "")
        assert "4 cases left out, 4 with a value in A alone" in written


def test_yes_or_no_metrics_have_the_odds_of_the_cases_that_turned():
    rows = {row.name: row.effect for row in page_of(A, B).comparisons[0].rows}
    assert rows["recall@1"].endswith("no spread; 10 up, 0 down")
    # Of 2 cases 1: the exact interval of the share ends at the roots of 0.975, turned to odds.
    assert rows["fully_faithful"] == "d_z 0.00; 1 up, 1 down, odds 1 [0.0127, 78.5]"


def test_the_biggest_change_beyond_chance_stands_first():
    one = page_of(A, B).comparisons[0]
    assert one.rows[0].name == "recall@1"
    assert one.rows[0].verdict == "better"
    assert one.rows[1].verdict == "within chance"  # one up, one down


def test_the_forest_has_a_line_for_each_row_around_no_difference():
    forest = page_of(A, B).comparisons[0].forest
    middle = (forest.left + forest.right) / 2
    assert forest.ticks[1].x == middle
    assert forest.ticks[1].label == "0 points"
    assert [line.name for line in forest.whiskers] == ["recall@1", "faithfulness", "fully_faithful"]
    assert all(line.low <= line.x <= line.high for line in forest.whiskers)
    assert forest.whiskers[0].low > middle


def test_both_answers_of_a_flipped_case_stand_side_by_side():
    html = render_comparison_page(page_of(A, B))
    assert html.count("Answer to c1.") == 2
    assert "worse: faithfulness, fully_faithful" in html
    assert "Retrieval miss to Passed" in html


def test_links_lead_to_the_case_by_its_number_in_each_run():
    b = small_run([1, 1], ids=["extra", "c1"])
    listed = named(small_run([0], ids=["c1"]), b)
    document = compare_runs(listed, cases="common")
    runs = {one.name: one.run for one in listed}
    page = build_comparison_page(
        document, runs, {"runs/a": "../a/report.html", "runs/b": "../b/report.html"}
    )
    hrefs = Tags(render_comparison_page(page)).hrefs
    assert "../a/report.html#case=1" in hrefs
    assert "../b/report.html#case=2" in hrefs
    assert "../b/report.html#ids=2" in hrefs


def test_without_a_report_beside_there_are_no_links():
    page = page_of(A, B)
    inside = [href for href in Tags(render_comparison_page(page)).hrefs if not href.startswith("#")]
    assert inside == []


def test_ids_are_unique_with_several_runs():
    ids = Tags(render_comparison_page(page_of(A, B, small_run([1, 0] * 5, faithful=[1] * N)))).ids
    assert len(ids) == len(set(ids)) > 20


def test_the_page_allows_no_script_and_loads_nothing():
    html = render_comparison_page(page_of(A, B))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert not {"script", "img", "link", "iframe"} & set(Tags(html).tags)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_text_in_the_page(text):
    """In ids, questions, answers and the runs' names."""
    a, b = (small_run([hit] * 3, ids=[text, "x", "y"]) for hit in (0, 1))
    listed = named(a, b)
    document = compare_runs(listed)
    document["comparisons"][0]["notes"].append(text)
    html = render_comparison_page(
        build_comparison_page(document, {one.name: one.run for one in listed})
    )
    tags = Tags(html)
    clean = Tags(render_comparison_page(page_of(*(small_run([hit] * 3) for hit in (0, 1)))))
    assert set(tags.tags) == set(clean.tags)
    assert tags.hrefs == clean.hrefs


@pytest.mark.parametrize("text", [*HOSTILE, "| a | b |", "@everyone #1", "[x](javascript:1)"])
def test_hostile_texts_are_text_in_markdown(text):
    ids = [text, "x", "y"]
    a, b = (small_run([hit] * 3, ids=ids, questions=[text, "X", "Y"]) for hit in (0, 1))
    written = comparison_markdown(page_of(a, b))
    rows = [line for line in written.splitlines() if line.startswith("|")]
    bars = {len(re.findall(r"(?<!\\)\|", row)) for row in rows[-3:]}
    assert len(bars) == 1  # no text made another cell
    outside = re.sub(r"`[^`]*`", "", written)
    assert "<script" not in outside
    assert "<img" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "@everyone" not in outside


def test_markdown_folds_every_test_effect_and_what_could_have_been_seen():
    """9 of 9 up: 2 of 2^9 signs are as far off, and with 5 metrics in two runs Holm takes 6."""
    folded = comparison_markdown(whole_page()).split("<details>")[1].split("</details>")[0]
    assert "over the 6 tests made" in folded
    row = next(line for line in folded.splitlines() if line.startswith("| `recall@1`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:3] == ["p = 0.004", "p = 0.023"]  # 2 / 512, and six times that
    assert cells[4] == "p = 0.004"
    assert cells[5].endswith("9 up, 0 down")


def test_markdown_says_what_would_have_been_seen_beside_what_was_not():
    a = small_run([0, 1, 0, 1, 1] * 6)
    b = small_run([1, 1, 0, 0, 1] * 6)
    (row,) = page_of(a, b).comparisons[0].rows
    assert re.fullmatch(r"\d+ points", row.detectable)
    assert f"| within chance (detectable: {row.detectable}) |" in comparison_markdown(page_of(a, b))


def test_markdown_counts_the_causes_that_changed_the_most_frequent_first():
    written = comparison_markdown(page_of(small_run([0, 0, 1, 1]), small_run([1, 1, 0, 1])))
    assert (
        "3 of 4 cases have another failure mode.\n\n| Failure mode in A | Failure mode in B | Cases |"
        in written
    )
    table = written.split("| Failure mode in A |")[1].split("\n\n")[0].splitlines()[2:]
    assert table == ["| Retrieval miss | Passed | 2 |", "| Passed | Retrieval miss | 1 |"]
    assert "| Failure mode in A" not in comparison_markdown(
        page_of(small_run([0, 1]), small_run([0, 1]))
    )


def test_markdown_links_to_the_page_to_its_cases_and_to_the_reports():
    page = whole_page()
    written = comparison_markdown(page, page_at="pages/a%20b.html")
    assert "[the page](pages/a%20b.html)" in written
    assert "- B: [`runs/b`](../b%20b/report.html)\n- C: `runs/c`" in written
    linked = re.findall(r"\(pages/a%20b\.html#([^)]+)\)", written)
    assert len(linked) == sum(len(one.cases) for one in page.comparisons) > 5
    assert set(linked) <= set(Tags(render_comparison_page(page)).ids)
    assert "the page" not in comparison_markdown(page)


def test_markdown_has_the_numbers_and_the_cases():
    written = comparison_markdown(page_of(A, B))
    assert "| `recall@1` | 0% \\[0, 28\\] | 100% \\[72, 100\\] |" in written
    assert "**better**" in written
    assert "<details><summary>Cases that changed</summary>" in written
