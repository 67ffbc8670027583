"""The pull request comment and the JUnit file: what got worse, in plain words, within the limits."""

from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from gated_run import decided, gated_run
from misslink.errors import InputError
from misslink.failure_modes import FAILURE_MODES
from misslink.report.gate_reports import (
    comment_marker,
    describe_location,
    junit_xml,
    pull_request_comment,
    regressed_cases,
    regressed_groups,
)
from misslink.types import Passage, RetrievalMiss, Trace

TEN = "1111111100"
HOSTILE = "</details><script>alert(1)</script> @octocat [x](https://a.example) `a` | b\n# head --> "


def test_the_first_line_is_a_marker_that_no_name_ends(tmp_path):
    assert comment_marker("a --> <b>") == "<!-- misslink gate: a b -->"
    text = pull_request_comment(decided(tmp_path, ["name: mrr, threshold: 0.1"], gated_run(TEN)))
    assert text.splitlines()[0] == "<!-- misslink gate: criteria -->"


def test_a_loss_is_told_in_plain_words_with_the_questions_and_the_rank(tmp_path):
    run, before = gated_run("0" * 6 + "1" * 34), gated_run("1" * 40)
    gates = ["name: retrieval_recall_at_1, regression_max: 0.03, regression_test: paired"]
    text = pull_request_comment(
        decided(tmp_path, [*gates, "name: mrr, threshold: 0.1"], run, before)
    )
    assert "1 of 2 gates failed over 40 questions." in text
    assert "dropped from 100% to 85%" in text
    assert "(over the 40 questions in both: loss 15 points \\[" in text
    assert " 6 questions lost their passage:" in text
    assert "- Question 0? (`c0`): `gold0` is at rank 10 now, and the app takes 1\n" in text
    assert "- and 1 question more\n" in text
    assert "| `category: even` | 20 | 100% | 85% |" in text
    assert "<details>\n<summary>1 gate passed</summary>" in text


def test_the_groups_of_a_table_are_in_one_unit(tmp_path):
    run, before = gated_run("0" * 6 + "1" * 34), gated_run("1" * 40)
    desks = [
        case.model_copy(update={"tags": {"desk": "new" if at < 4 else "old"}})
        for at, case in enumerate(run.cases)
    ]
    run = run.model_copy(update={"cases": tuple(desks)})
    gates = ["name: retrieval_recall_at_1, regression_max: 0.03"]
    text = pull_request_comment(decided(tmp_path, gates, run, before))
    assert "| `desk: new` | 4 | 1.00 | 0.00 |" in text
    assert "| `category: even` | 20 | 1.00 | 0.85 |" in text


def test_questions_without_a_value_are_told_apart_from_those_that_got_worse(tmp_path):
    run, before = gated_run("xx00111111"), gated_run("1" * 10)
    gates = ["name: recall_at_1, regression_max: 0.03", "name: mrr, threshold: 0.1"]
    text = pull_request_comment(decided(tmp_path, gates, run, before))
    assert "2 questions lost their passage, and 2 more have no value now:" in text
    assert "(`c0`): was `passed`, is `inconclusive`" in text
    assert "(The app failed on 2 questions; mrr leaves them out.) |" in text, "though it passed"


def test_what_may_be_chance_is_said_to_be(tmp_path):
    run, before = gated_run("1111110000"), gated_run(TEN)
    text = pull_request_comment(
        decided(tmp_path, ["name: recall_at_1, regression_max: 0.1"], run, before)
    )
    assert "the interval reaches below the margin, but this gate goes by the change alone" in text


def test_all_passed_is_one_sentence_and_a_fold(tmp_path):
    text = pull_request_comment(decided(tmp_path, ["name: mrr, threshold: 0.1"], gated_run(TEN)))
    assert "All of 1 gate passed over 10 questions." in text
    assert "####" not in text


def test_a_question_is_listed_once_and_the_report_is_linked(tmp_path):
    gates = ["name: recall_at_1, threshold: 0.9", "metric: link.failures.passed, threshold: 0.95"]
    decision = decided(tmp_path, gates, gated_run(TEN))
    text = pull_request_comment(decision, "https://ci.example.org/a_(b)/report.html?run=1")
    assert text.count("(`c8`)") == 1
    assert "- listed above: `c8`, `c9`\n" in text
    assert "The share of cases that pass is 80%, below the floor of 95%" in text
    html = MarkdownIt().render(text)
    assert '<a href="https://ci.example.org/a_%28b%29/report.html?run=1">' in html


@pytest.mark.parametrize("url", ["javascript:alert(1)", "report.html", "https://a.example/x y"])
def test_an_address_of_the_report_is_one_of_the_web(tmp_path, url):
    decision = decided(tmp_path, ["name: mrr, threshold: 0.1"], gated_run(TEN))
    with pytest.raises(InputError, match="--report-url"):
        pull_request_comment(decision, url)


def test_hostile_texts_stay_texts(tmp_path):
    questions = dict.fromkeys(range(10), HOSTILE)
    run = gated_run("0" * 10, ids=[f"{HOSTILE}{at}" for at in range(10)], questions=questions)
    cases = tuple(
        case.model_copy(update={"category": HOSTILE if at < 5 else "x", "tags": {HOSTILE: "v"}})
        for at, case in enumerate(run.cases)
    )
    run = run.model_copy(update={"cases": cases})
    text = pull_request_comment(decided(tmp_path, ["name: recall_at_1, threshold: 0.5"], run))
    html = MarkdownIt("commonmark", {"linkify": False}).enable("table").render(text)
    assert "<script" not in html
    assert "<a " not in html
    assert html.count("<h4>") == 1
    assert "<h1>" not in html
    outside_code = "".join(part.split("</code>")[-1] for part in html.split("<code>"))
    assert "@octocat" not in outside_code


@pytest.mark.slow
def test_no_comment_is_longer_than_github_takes(tmp_path):
    run = gated_run("0" * 60, questions=dict.fromkeys(range(60), "why " * 1000))
    gates = [f"name: g{at}, metric: recall@1, threshold: 0.5" for at in range(300)]
    text = pull_request_comment(decided(tmp_path, gates, run))
    assert len(text) <= 65_536
    assert "more failed; the comment has no room for them." in text


def test_each_question_says_what_is_worse_and_the_heading_counts_the_lost(tmp_path):
    """Of c0 the passage is gone, of c1 it stands second now."""
    before = gated_run("1" * 10)
    run = gated_run("01" + "1" * 8)
    noise = Passage(id="noise", text="Noise.", rank=1)
    lower = [noise, run.traces[1].retrieved[0].model_copy(update={"rank": 2})]
    traces = list(run.traces)
    traces[1] = traces[1].model_copy(update={"retrieved": lower})
    run = run.model_copy(update={"traces": tuple(traces)})
    text = pull_request_comment(
        decided(tmp_path, ["name: recall_at_1, regression_max: 0.1"], run, before)
    )
    assert "2 questions got worse, 1 of them lost its passage:\n" in text
    assert "(`c0`): `gold0` is at rank 10 now, and the app takes 1\n" in text
    assert "(`c1`): `gold1` at rank 2 now, was 1\n" in text


def test_of_a_judged_metric_a_question_says_what_became_of_its_answer(tmp_path):
    run, before = gated_run("1" * 10, "0" + "1" * 9), gated_run("1" * 10)
    text = pull_request_comment(
        decided(tmp_path, ["metric: fully_faithful, regression_max: 0.01"], run, before)
    )
    assert "(`c0`): answer unfaithful now; was `passed`, is `fabricated`\n" in text
    value = [run.verdicts[1].model_copy(update={"value": 0.5})]
    run = run.model_copy(update={"verdicts": (run.verdicts[0], *value, *run.verdicts[2:])})
    text = pull_request_comment(
        decided(tmp_path, ["metric: faithfulness, regression_max: 0.01"], run, before)
    )
    assert "(`c1`): `faithfulness` 0.50 now, was 1.00\n" in text


def test_where_a_passage_is_now_goes_by_what_was_seen():
    prompted = Trace(case_id="c", retrieved=[{"id": "x", "text": "X.", "rank": 1}], prompted=["x"])
    unseen = prompted.model_copy(update={"prompted": None})
    assert (
        describe_location(RetrievalMiss(passage_id="p"), prompted, 3) == "did not reach the prompt"
    )
    assert describe_location(RetrievalMiss(passage_id="p"), unseen, 3) == "was not retrieved"
    assert (
        describe_location(RetrievalMiss(passage_id="p", depth=9), unseen, 3)
        == "is not among the first 9 now"
    )
    at_two = RetrievalMiss(passage_id="p", true_rank=2)
    assert describe_location(at_two, unseen, 3) == "is at rank 2 now, and the app takes 1"


def test_a_cause_is_explained_in_one_sentence(tmp_path):
    run, before = gated_run("0" * 5 + "1" * 5), gated_run("1" * 10)
    gates = ["metric: link.failures.retrieval_miss, at_most: 0.1", "new_failures: {}"]
    text = pull_request_comment(decided(tmp_path, gates, run, before))
    assert text.count(f"`retrieval_miss`: {FAILURE_MODES['retrieval_miss'].meaning}") == 1
    by_name = pull_request_comment(
        decided(tmp_path, ["new_failures: {failure: retrieval_miss}"], run, before)
    )
    assert FAILURE_MODES["retrieval_miss"].meaning in by_name


def test_too_few_cases_list_no_question_and_no_group(tmp_path):
    run, before = gated_run("0" * 5 + "1" * 5), gated_run("1" * 10)
    text = pull_request_comment(
        decided(tmp_path, ["name: recall_at_1, min_cases: 11"], run, before)
    )
    assert "Only 10 questions have a value of recall@⁠1, and 11 must." in text
    assert "lost" not in text
    assert "where it got worse" not in text


def test_a_metric_keeps_its_name_and_notes_stand_under_what_they_are_about(tmp_path):
    run = gated_run(TEN, verdicts=(), manifest={"judge": "none", "k": 2})
    text = pull_request_comment(
        decided(tmp_path, ["metric: fully_faithful, threshold: 0.1"], run, gated_run(TEN))
    )
    assert "\nfully\\_faithful could not be computed" in text
    assert "**The run and its baseline**" in text
    assert "\n- The cutoff k: 2 in the run, 1 in the baseline;" in text


GATES = [
    "name: mrr, threshold: 0.1",
    "name: recall_at_1, threshold: 0.9",
    "name: ndcg_at_1, threshold: 0.9, severity: warning",
]


def parsed(decision):
    return ET.fromstring(junit_xml(decision))  # noqa: S314 -- what this package wrote


def test_a_gate_is_a_test_case_and_a_warning_does_not_fail(tmp_path):
    root = parsed(decided(tmp_path, GATES, gated_run("1111111100")))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    about, passed, failed, warned = suite
    assert [one.get("name") for one in about] == ["run"]
    assert [case.get("name") for case in suite.findall("testcase")] == [
        "mrr",
        "recall_at_1",
        "ndcg_at_1",
    ]
    assert passed.find("failure") is None
    assert "below the floor of 90%" in failed.find("failure").get("message")
    assert "case: c8" in failed.find("failure").text
    assert warned.find("failure") is None
    assert warned.findtext("system-out").startswith("warning: ")


def test_characters_that_xml_cannot_hold_are_replaced(tmp_path):
    ids = [f"c{at}\x00\x1b\ufffe]]><x>" for at in range(4)]
    root = parsed(decided(tmp_path, GATES, gated_run("0000", ids=ids)))
    said = root.find(".//failure").text
    assert "case: c0\ufffd\ufffd\ufffd]]><x>" in said


GATE = "name: recall_at_1, regression_max: 0.03"


def test_a_case_that_asks_something_else_now_is_in_no_group_and_has_no_before(tmp_path):
    """Cases 0 to 4 ask otherwise now: of the compared 5 to 9 the odd ones 5 and 7 got worse."""
    others = {at: f"Another {at}?" for at in range(5)}
    run, before = gated_run("0000000011", questions=others), gated_run("1" * 10)
    decision = decided(tmp_path, [GATE, "new_failures: {}"], run, before)
    by_mean, by_count = decision.outcomes
    found = {
        name: (cases, before, now)
        for name, cases, before, now in regressed_groups(decision, by_mean)
    }
    assert found == {
        "category: odd": (3, 1.0, 1 / 3),
        "category: even": (2, 1.0, 0.5),
        "tier: A": (2, 1.0, 0.5),
    }
    assert [one.case.id for one in regressed_cases(decision, by_mean)] == ["c5", "c6", "c7"]
    assert {one.before for one in regressed_cases(decision, by_count) if one.case.id < "c5"} == {""}
