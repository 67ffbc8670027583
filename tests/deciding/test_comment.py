"""The comment on a pull request: what reviewers read, and texts that stay texts."""

from __future__ import annotations

from gated_run import decided, gated_run
from markdown_it import MarkdownIt

from misslink.deciding.comment import comment, marker

TEN = "1111111100"
HOSTILE = "</details><script>alert(1)</script> @octocat [x](https://a.example) `a` | b\n# head --> "


def test_the_first_line_is_a_marker_that_no_name_ends(tmp_path):
    assert marker("a --> <b>") == "<!-- misslink gate: a b -->"
    text = comment(decided(tmp_path, ["name: mrr, threshold: 0.1"], gated_run(TEN)))
    assert text.splitlines()[0] == "<!-- misslink gate: criteria -->"


def test_a_loss_is_told_in_plain_words_with_the_questions_and_the_rank(tmp_path):
    run, before = gated_run("0" * 6 + "1" * 34), gated_run("1" * 40)
    gates = ["name: retrieval_recall_at_1, regression_max: 0.03, regression_test: paired"]
    text = comment(decided(tmp_path, [*gates, "name: mrr, threshold: 0.1"], run, before))
    assert "1 of 2 gates failed over 40 questions." in text
    assert "dropped from 100 % to 85 %" in text
    assert "Over the 40 questions in both the change is \u221215 points" in text
    assert "its 95 % interval leaves out 0. 6 questions lost their passage:" in text
    assert "- Question 0? (`c0`): `gold0` is now at rank 10\n" in text
    assert "- and 1 question more\n" in text
    assert "| `category: even` | 20 | 100 % | 85 % |" in text
    assert "<details>\n<summary>1 gate passed</summary>" in text


def test_questions_without_a_value_are_told_apart_from_those_that_got_worse(tmp_path):
    run, before = gated_run("xx00111111"), gated_run("1" * 10)
    gates = ["name: recall_at_1, regression_max: 0.03", "name: mrr, threshold: 0.1"]
    text = comment(decided(tmp_path, gates, run, before))
    assert "2 questions lost their passage, the others have no value now:" in text
    assert "(`c0`): was `fine`, is `undecided`" in text
    assert "(The app failed on 2 questions; mrr leaves them out.) |" in text, "though it passed"


def test_what_may_be_chance_is_said_to_be(tmp_path):
    run, before = gated_run("1111110000"), gated_run(TEN)
    text = comment(decided(tmp_path, ["name: recall_at_1, regression_max: 0.1"], run, before))
    assert "holds 0, so that it may be chance, but this gate goes by the change alone." in text


def test_all_passed_is_one_sentence_and_a_fold(tmp_path):
    text = comment(decided(tmp_path, ["name: mrr, threshold: 0.1"], gated_run(TEN)))
    assert "All of 1 gate passed over 10 questions." in text
    assert "####" not in text


def test_hostile_texts_stay_texts(tmp_path):
    questions = dict.fromkeys(range(10), HOSTILE)
    run = gated_run("0" * 10, ids=[f"{HOSTILE}{at}" for at in range(10)], questions=questions)
    cases = tuple(
        case.model_copy(update={"category": HOSTILE if at < 5 else "x", "tags": {HOSTILE: "v"}})
        for at, case in enumerate(run.cases)
    )
    run = run.model_copy(update={"cases": cases})
    text = comment(decided(tmp_path, ["name: recall_at_1, threshold: 0.5"], run))
    html = MarkdownIt("commonmark", {"linkify": False}).enable("table").render(text)
    assert "<script" not in html
    assert "<a " not in html
    assert html.count("<h4>") == 1
    assert "<h1>" not in html
    outside_code = "".join(part.split("</code>")[-1] for part in html.split("<code>"))
    assert "@octocat" not in outside_code


def test_no_comment_is_longer_than_github_takes(tmp_path):
    run = gated_run("0" * 60, questions=dict.fromkeys(range(60), "why " * 5000))
    gates = [f"name: g{at}, metric: recall@1, threshold: 0.5" for at in range(300)]
    text = comment(decided(tmp_path, gates, run))
    assert len(text) <= 65_536
    assert "more failed; there is no room for them here." in text
