"""A comparison for people: what it says, what it links to, and that texts under test stay texts."""

import re
from html.parser import HTMLParser

import pytest

from example_run import HOSTILE
from gold_page import assert_accepted
from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.preferences import StoredPreferences, answers_hash
from misslink.judge.checks.pairwise import PairOutcome, summarize_preferences
from misslink.report.changed_cases import mark_difference
from misslink.report.comparison import (
    _row_verdict,
    build_comparison_page,
    comparison_markdown,
    describe_preferences,
    render_comparison_page,
)
from misslink.types import Claim, Evidence, Passage
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


def headline(*runs):
    return page_of(*runs).headline


def test_the_headline_says_who_passes_more_and_by_how_much():
    a, b = small_run([0] * 9 + [1]), small_run([1] * 9 + [0])
    assert headline(a, b) == (
        "runs/b beats runs/a: 9 of 10 answers pass, up from 1. 9 fixed, 1 broken."
    )
    assert headline(b, a) == (
        "runs/b is worse than runs/a: 1 of 10 answers passes, down from 9. 1 fixed, 9 broken."
    )
    assert headline(small_run([0, 1, 1]), small_run([1, 1, 0])) == (
        "Not enough data to tell runs/b from runs/a: 2 of 3 answers pass, 2 in runs/a. 1 fixed, "
        "1 broken."
    )
    assert headline(a, small_run([0] * 9 + [1])) == (
        "runs/b passes the same answers as runs/a: 1 of 10."
    )


def test_metrics_with_a_winner_lead_where_the_answers_tell_too_little():
    a, b = (small_run([1] * N, over_refused=[refused] * N) for refused in (1, 0))
    links = [a.links[0].model_copy(update={"failure": "fabricated"}), *a.links[1:]]
    text = headline(a.model_copy(update={"links": tuple(links)}), b)
    assert text.startswith(
        "Not enough data on answers: 10 of 10 answers pass, 9 in runs/a. 1 fixed, 0 broken. But "
        "runs/b is better than runs/a on over_refused (\N{MINUS SIGN}100 points ["
    )


def test_with_other_judges_neither_run_wins():
    text = headline(small_run([0] * N), small_run([1] * N, judge="openai:m"))
    assert text.startswith("runs/a and runs/b have other judges, so neither wins: 10 of 10 answers")


def unjudged(hits):
    run = small_run(hits, judge="none")
    links = [link.model_copy(update={"failure": None}) for link in run.links]
    return run.model_copy(update={"links": tuple(links)})


def test_without_a_judge_the_headline_is_about_retrieval():
    assert headline(unjudged([0] * N), unjudged([1] * N)).startswith(
        "runs/b is better than runs/a on recall@1 (+100 points ["
    )
    assert headline(unjudged([0, 1]), unjudged([1, 1])) == (
        "Not enough data to tell runs/b from runs/a on 2 cases."
    )
    assert headline(unjudged([0, 1]), unjudged([0, 1])) == (
        "runs/b and runs/a do not differ in any case with a value in both."
    )


def test_several_runs_are_ranked_and_each_is_compared_with_the_first():
    page = page_of(small_run([0] * N), small_run([1] * N), small_run([0, 1] * 5))
    assert page.headline == "runs/b passes most: 10 of 10 answers; runs/c 5, runs/a 0."
    assert [one.headline.partition(":")[0] for one in page.comparisons] == [
        "runs/b beats runs/a", "Not enough data to tell runs/c from runs/a",
    ]  # fmt: skip


def test_what_no_difference_could_show_is_not_given_in_points():
    """Two cases at a third of 5%: even all of the range would be lost in the noise."""
    a, b = small_run([0, 1], faithful=[1, 1]), small_run([1, 1], faithful=[1, 1])
    assert page_of(a, b).comparisons[0].rows[0].detectable == "none of any size"


def crashed():
    """In B the app failed on 4 of 10, and nothing else differs."""
    lost = ["c1", "c2", "c3", "c4"]
    b = small_run([0] * N, faithful=[None] * 4 + [1] * (N - 5) + [0])
    return A, broken(b, *lost)


def test_what_failed_in_one_run_leads_and_is_nowhere_called_the_same():
    one = page_of(*crashed()).comparisons[0]
    assert one.headline.startswith(
        "4 cases of runs/a have no value in runs/b (the app failed). runs/b"
    )
    assert one.alike == ()
    assert {row.verdict for row in one.rows} == {"the same in the rest"}
    assert {(row.n, row.of) for row in one.rows} == {(6, "6 of 10 cases")}
    left_out = "4 cases left out, 4 with a value in runs/a alone: "
    assert all(left_out in row.left_out for row in one.rows)


def test_what_is_skipped_in_one_run_is_noted_and_leads_nothing():
    a, b = small_run([1] * 4, faithful=[1] * 4), small_run([1] * 4, faithful=[1, 1, 1, None])
    one = page_of(a, b).comparisons[0]
    assert one.headline.startswith("runs/b passes the same answers")
    assert one.faults == ()
    assert one.notes[0] == (
        "1 case of runs/a has no value in runs/b (skipped: the answer declines): faithfulness, "
        "fully_faithful."
    )
    assert [row.name for row in one.alike] == ["recall@1"]


def test_cases_without_a_value_in_both_are_counted_beside_what_is_the_same():
    same = small_run([1, 1, None], faithful=[1, None, 1])
    one = page_of(same, same).comparisons[0]
    assert [(row.name, row.of) for row in one.alike] == [
        ("faithfulness", "2 of 3 cases"), ("fully_faithful", "2 of 3 cases"),
        ("recall@1", "2 of 3 cases"),
    ]  # fmt: skip
    assert "`recall@1` (2 of 3 cases)" in comparison_markdown(page_of(same, same))


def test_markdown_and_the_page_say_how_many_were_left_out():
    for written in (
        comparison_markdown(page_of(*crashed())),
        render_comparison_page(page_of(*crashed())),
    ):
        assert "4 cases of runs/a have no value in runs/b" in written.replace("\\", "")
        assert "4 cases left out, 4 with a value in runs/a alone" in written


def test_yes_or_no_metrics_have_the_odds_of_the_cases_that_turned():
    rows = {row.name: row.effect for row in page_of(A, B).comparisons[0].rows}
    assert rows["recall@1"].endswith("no spread; 10 up, 0 down")
    # Of 2 cases 1: the exact interval of the share ends at the roots of 0.975, turned to odds.
    assert rows["fully_faithful"] == "d_z 0.00; 1 up, 1 down, odds 1 [0.0127, 78.5]"


def test_answers_stand_first_then_generation_then_retrieval():
    one = page_of(A, B).comparisons[0]
    assert (one.rows[0].name, one.rows[0].verdict) == ("passed", "better")
    assert [title for title, _, _ in one.families] == ["Answers", "Generation", "Retrieval"]
    retrieval = one.families[-1][2]
    assert (retrieval[0].name, retrieval[0].verdict) == ("recall@1", "better")
    assert one.families[1][2][0].verdict == "not enough data"  # one up, one down
    page = render_comparison_page(page_of(A, B))
    assert page.index(">Answers <") < page.index(">Generation <") < page.index(">Retrieval <")


@pytest.mark.parametrize(("k", "leads"), [(1, True), (3, False)])
def test_precision_leads_no_headline_where_k_changed(k, leads):
    a, b = unjudged([0] * N), unjudged([1] * N)
    b = b.model_copy(update={"summary": {**b.summary, "k": k}, "manifest": {**b.manifest, "k": k}})
    document = compare_runs(named(a, b), metrics=["precision@1"])
    page = build_comparison_page(document, {one.name: one.run for one in named(a, b)})
    assert page.comparisons[0].rows[0].verdict == "better"
    assert ("precision@1" in page.headline) == leads


@pytest.mark.parametrize(
    ("p", "p_holm", "verdict"), [(0.01, 0.24, "not significant"), (0.3, 1.0, "not enough data")]
)
def test_one_of_many_tests_is_not_for_want_of_data(p, p_holm, verdict):
    metric = {
        "winner": None,
        "p": p,
        "p_holm": p_holm,
        "difference": {"value": -0.39},
        "detectable": 0.1,
        "left_out": None,
    }
    assert _row_verdict(metric) == verdict


def test_right_is_always_better():
    """Fewer refusals are a gain, as more recall is."""
    a = small_run([0] * N, over_refused=[1] * N)
    one = page_of(a, small_run([1] * N, over_refused=[0] * N)).comparisons[0]
    gains = {row.name: row.gain for row in one.rows}
    assert gains["recall@1"][0] == gains["over_refused"][0] == 1
    assert all(low <= value <= high for value, low, high in gains.values())


def test_regressions_come_first_and_every_case_says_what_became_of_it():
    a = small_run([1, 0, 1, 1], faithful=[1, 1, 1, 1])
    b = small_run([1, 1, 0, 1], faithful=[1, 1, 1, 0])
    cases = page_of(a, b).cases
    assert [(case.id, case.change) for case in cases] == [
        ("c3", "broken"), ("c4", "worse"), ("c2", "fixed"), ("c1", "same"),
    ]  # fmt: skip
    assert cases[0].sides[1].failure == "Retrieval miss"
    assert cases[1].sides[1].worse == ("faithfulness", "fully_faithful")
    assert all(case.sides[1].same_answer for case in cases)
    html = render_comparison_page(page_of(a, b))
    assert html.count("Same answer as runs/a.") == 4
    assert html.count("Answer to c1.") == 1


def with_trace(run, claims=(), **update):
    """The run's first case, retrieved or answered otherwise."""
    trace = run.traces[0].model_copy(update=update)
    verdict = run.verdicts[0].model_copy(update={"claims": tuple(claims)})
    return run.model_copy(
        update={"traces": (trace, *run.traces[1:]), "verdicts": (verdict, *run.verdicts[1:])}
    )


def listed(*ids):
    return tuple(Passage(id=name, text=f"Of {name}.", rank=n) for n, name in enumerate(ids, 1))


def test_a_case_says_which_passages_came_in_went_out_and_moved():
    run = small_run([1], faithful=[1], k=9)
    a = with_trace(run, retrieved=listed("x", "right", "stays", "gone"))
    b = with_trace(run, retrieved=listed("right", "x", "stays", "new"))
    side = page_of(a, b).cases[0].sides[1]
    assert [(one.id, one.before, one.after, one.relevant) for one in side.passages] == [
        ("new", None, 4, False), ("right", 2, 1, True), ("x", 1, 2, False),
        ("gone", 4, None, False),
    ]  # fmt: skip
    assert (side.same_passages, side.change) == (1, "better")
    unknown = with_trace(run, unmeasured="no retrieval was seen")
    assert page_of(a, unknown).cases[0].sides[1].passages is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (("right",), (), "passage 'right' supports it and is only in the prompt of runs/a"),
        ((), ("right",), "passage 'right' supports it and is only in the prompt of runs/b"),
        (
            ("right",),
            ("right",),
            "the same passages were in both prompts; the judge's label differs",
        ),
    ],
)
def test_a_claim_whose_label_changed_says_why(before, after, why):
    run = small_run([1], faithful=[1])
    quote = Evidence(passage_id="right", quote="Of right.", start=0, end=9)
    supported = Claim(text="It sails.", support="supported", evidence=(quote,))
    unsupported = Claim(text="It  sails.", support="unsupported")
    told = (unsupported, supported) if after and not before else (supported, unsupported)
    a, b = (
        with_trace(run, [claim], retrieved=listed(*ids))
        for claim, ids in zip(told, (before, after), strict=True)
    )
    (change,) = page_of(a, b).cases[0].sides[1].claims
    assert (change.before, change.after) == tuple(claim.support for claim in told)
    assert change.why == why


def test_the_words_of_an_answer_that_the_other_lacks_are_marked():
    assert mark_difference("It costs 9 crowns.", "It now costs 9 crowns.") == (
        ("It", False), (" now", True), (" costs 9 crowns.", False),
    )  # fmt: skip
    assert mark_difference("It costs 9.", "Nobody knows anything about that") == (
        ("Nobody knows anything about that", False),
    )
    assert mark_difference("", "") == ()
    long = "word " * 5000
    assert mark_difference(long, f"{long}x") == ((f"{long}x", False),)


def test_links_lead_to_the_case_by_its_number_in_each_run():
    b = small_run([1, 1], ids=["extra", "c1"])
    listed = named(small_run([0], ids=["c1"]), b)
    document = compare_runs(listed)
    runs = {one.name: one.run for one in listed}
    page = build_comparison_page(
        document, runs, {"runs/a": "../a/report.html", "runs/b": "../b/report.html"}
    )
    hrefs = Tags(render_comparison_page(page)).hrefs
    assert "../a/report.html#case=1" in hrefs
    assert "../b/report.html#case=2" in hrefs


def test_without_a_report_beside_there_are_no_links():
    page = page_of(A, B)
    inside = [href for href in Tags(render_comparison_page(page)).hrefs if not href.startswith("#")]
    assert inside == []


def test_ids_are_unique_with_several_runs():
    ids = Tags(render_comparison_page(page_of(A, B, small_run([1, 0] * 5, faithful=[1] * N)))).ids
    assert len(ids) == len(set(ids)) > 20


def test_the_page_allows_its_own_script_alone_and_loads_nothing():
    html = render_comparison_page(page_of(A, B))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1]
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[^' ]+'", policy)
    assert html.count("<script>") == Tags(html).tags.count("script") == 1
    assert not {"img", "link", "iframe"} & set(Tags(html).tags)


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
    """9 of 9 up: 2 of 2^9 signs are as far off, and of 2 tests of retrieval Holm takes 2."""
    folded = comparison_markdown(whole_page()).split("<details>")[1].split("</details>")[0]
    assert "within each level (retrieval 2 tests, generation 4 tests)" in folded
    row = next(line for line in folded.splitlines() if line.startswith("| `recall@1`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:3] == ["p = 0.008", "p = 0.004"]  # 2 / 512, and twice that before
    assert cells[4] == "p = 0.004"
    assert cells[5].endswith("9 up, 0 down")


def test_markdown_counts_the_causes_that_changed_the_most_frequent_first():
    written = comparison_markdown(page_of(small_run([0, 0, 1, 1]), small_run([1, 1, 0, 1])))
    assert "<summary>Failure modes that changed: 3 of 4 cases</summary>" in written
    table = written.split("| runs/a | runs/b | Cases |")[1].split("\n\n")[0].splitlines()[2:4]
    assert table == ["| Retrieval miss | Passed | 2 |", "| Passed | Retrieval miss | 1 |"]
    assert "Failure modes that changed" not in comparison_markdown(
        page_of(small_run([0, 1]), small_run([0, 1]))
    )


def test_markdown_links_to_the_page_to_its_cases_and_to_the_reports():
    page = whole_page()
    written = comparison_markdown(page, page_at="pages/a%20b.html")
    assert "[the page](pages/a%20b.html)" in written
    assert "[`runs/b`](../b%20b/report.html), `runs/c`." in written
    linked = re.findall(r"\(pages/a%20b\.html#([^)]+)\)", written)
    assert len(linked) == len([case for case in page.cases if case.change != "same"]) > 5
    assert set(linked) <= set(Tags(render_comparison_page(page)).ids)
    assert "the page" not in comparison_markdown(page)


A_PREFERENCE_TABLE, B_PREFERENCE_TABLE, TIE = (
    PairOutcome(side, side, (side, side)) for side in ("a", "b", "tie")
)
TURNED = PairOutcome("t", "tie", ("a", "b"))


def sentences_of(*outcomes, not_asked=0):
    sides = {"a": 0, "b": 0, "tie": 0}
    found = {
        **summarize_preferences(outcomes),
        "judge": "j",
        "not_asked": not_asked,
        "by_order": {"a_first": sides, "b_first": sides},
    }
    return list(describe_preferences(("A", "B"), found))


def test_a_share_says_of_how_many_it_is():
    said = sentences_of(A_PREFERENCE_TABLE, A_PREFERENCE_TABLE, B_PREFERENCE_TABLE, TURNED)
    assert said[0] == "The judge preferred B in 1 of 3 decided cases, p = 1.00 (sign test)."
    assert said[1] == "Only the order of the two answers decided in 1 of 4 pairs."


def test_one_decided_case_is_one():
    assert " in 1 of 1 decided case, p = 1.00" in sentences_of(B_PREFERENCE_TABLE)[0]


def test_without_a_decided_case_there_is_no_preference():
    said = sentences_of(TIE)
    assert said[0] == "No preference: no case was decided."
    assert said[1].endswith(" in 0 of 1 pair.")


def test_without_a_pair_nothing_is_made_up():
    said = sentences_of(PairOutcome("n", None, reason="the judge failed"), not_asked=2)
    assert said[1].startswith("How far the order of the two answers decides is not known: ")
    assert said[2] == "3 cases left out: the judge failed; not asked."


def test_no_preferences_are_none():
    assert list(describe_preferences(("A", "B"), None)) == []
