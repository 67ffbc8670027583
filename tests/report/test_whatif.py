"""What other retrieval would change, and how far the forecast held."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, example_run
from misslink.report.diagnosis import read_whatif
from misslink.report.page import build_page, render_page
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _with(run, **parts):
    return run.model_copy(update={"whatif": run.whatif | parts})


def test_a_run_of_before_has_none():
    assert read_whatif(example_run()) is None


def test_options_keep_their_order_and_are_told_by_the_run_s_recall(run):
    found = read_whatif(run)
    best = found.options[0]

    assert found.metric == "recall@5"
    assert [row.option.name for row in found.options] == ["hybrid", "k=10", HOSTILE[0]]
    assert (best.main.today.value, best.main.option.brief) == ("54%", "81% [61, 100]")
    assert best.main.difference.brief == "+27 points [12, 42]"
    assert [tokens.value for tokens in best.tokens] == ["1,020", "1,044"]
    html = render_page(build_page(run))
    assert "<td>5 missed passages</td>" in html
    assert '<b>4.2</b> <span class="interval">[1, 8]' in html


def test_only_what_was_tested_is_better_or_worse(run):
    verdicts = [(option.main.verdict, option.main.p) for option in read_whatif(run).options]
    assert verdicts == [
        ("better", "p = 0.004"), ("no detectable difference", "p = 0.40"), ("worse", "p = 0.010"),
    ]  # fmt: skip
    untested = dict(run.whatif["options"][1])
    untested["metrics"] = {"recall@5": {"p_holm": None, "winner": None}}
    (option,) = read_whatif(_with(run, options=[untested])).options
    assert (option.main.verdict, option.main.p) == ("not tested", "")
    assert not option.main.option.measured


def test_a_difference_of_a_mean_reciprocal_rank_is_no_percentage(run):
    mrr = read_whatif(run).options[0].changes[1]
    assert mrr.difference.brief == "\N{MINUS SIGN}0.01 [\N{MINUS SIGN}0.20, 0.20]"


def test_the_cases_that_were_run_again_are_counted(run):
    rows = dict(read_whatif(run).check)
    assert rows["Cases that it changes"] == ("12 of 20 cases run again: 9 failed before, 3 after")
    assert rows["Not run again"] == "the new answer was not judged"
    assert read_whatif(_with(run, check=None)).check == ()


def test_what_was_not_tried_is_told(run):
    assert read_whatif(run).notes[0].startswith("rerank was not tried: ")


def test_without_a_corpus_it_says_so(run):
    assert read_whatif(_with(run, corpus=None)).facts.startswith("No corpus was given")


def test_the_paired_value_of_today_and_the_cutoff_of_the_option_are_shown(run):
    row = dict(run.whatif["options"][0])
    recall = row["metrics"]["recall@5"]
    paired = recall["difference"] | {"value": 0.7, "low": 0.5, "high": 0.9}
    row["metrics"] = {"recall@5": recall | {"at": 10, "a": paired}}
    row |= {"newly_retrieved": None}
    found = read_whatif(_with(run, options=[row], context_passages=5))
    (option,) = found.options
    assert found.heading == "Recall in the context (today 5 passages)"
    assert (option.main.today.value, option.main.at) == ("70%", "at 10 under the option")
    assert "<td>not known</td>" in render_page(build_page(_with(run, options=[row])))
    assert read_whatif(_with(run, context_passages=7)).heading == ""
    assert read_whatif(run).options[0].main.at == ""
