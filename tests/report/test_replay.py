"""What replay confirmed, in the headline, in its table and in the cases."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, estimate, example_run, missing
from misslink.report.page import build_page
from misslink.report.replay import causal_figures, describe_case_replays, read_replay
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _with(run, **parts):
    return run.model_copy(update={"replay": run.replay | parts})


def test_a_run_that_was_not_replayed_has_no_replay_section():
    page = build_page(example_run())
    assert page.proof is page.proven.replay is None


def test_the_headline_puts_cause_beside_association_over_the_same_answers(run):
    association, failure = causal_figures(run).figures

    assert (association[0], association[2].text) == ("Association", "35% [20, 50], n = 98")
    assert (failure[0], failure[2].text) == ("Cause, by replay", "29% [15, 43], n = 98")
    assert failure[1] == (
        "fewer bad answers (unfaithful, wrong, or declined where an answer was due; full misses "
        "only) when what was missed is handed over"
    )


def test_the_association_is_not_borrowed_from_other_answers(run):
    replay = {name: part for name, part in run.replay.items() if not name.startswith("observed")}
    (_, _, shown), _ = causal_figures(run.model_copy(update={"replay": replay})).figures
    assert not shown.measured


def test_a_fraction_that_is_not_above_zero_avoided_none(run):
    lost = _with(run, causal_attributable_fraction=estimate(-0.05, -0.2, 0.1, 98))
    _, words, share = causal_figures(lost).figures[1]
    assert share.brief.replace("\u2212", "-") == "5% [-10, 20]"
    assert words.startswith("more bad answers (")
    assert words.endswith("(the interval includes 0: these cases do not establish it)")
    assert read_replay(lost).causal_words == f"M{words[1:]}"
    zero = _with(run, causal_attributable_fraction=estimate(0.0, -0.18, 0.15, 98))
    assert causal_figures(zero).figures[1][1].startswith("fewer bad answers (")
    rarer = _with(run, observed_attributable_fraction=estimate(-0.1, -0.3, -0.05, 98))
    assert causal_figures(rarer).figures[0][1].endswith("they are no more frequent after a miss")
    gone = _with(run, causal_attributable_fraction=missing("another judge"))
    assert causal_figures(gone).figures[1][2].brief == "not measured: another judge"


def test_the_confirmed_share_is_told_as_a_count_of_cases(run):
    first, second, *rest = causal_figures(run).sentences

    assert first == (
        "Of 40 replayed retrieval misses, 31 (78% [62, 88]) were fixed by handing over the "
        "missed passage."
    )
    assert second.startswith("Of 1 replayed case of ignored context, 1 (100% [21, 100]) was")
    assert rest == []  # nothing is claimed of what was not measured


def test_the_table_has_each_cause_with_its_interventions(run):
    found = read_replay(run)
    miss, ignored, other = found.failures  # nothing is said of distracted, which nobody replayed

    assert (miss.label, miss.count, miss.of) == ("Retrieval miss", 40, "of 60 cases, 2 flaky")
    assert [(name, share.brief) for name, share in miss.interventions] == [
        ("needed passage first", "78% [62, 88]"), ("needed passage last", "60% [45, 74]"),
    ]  # fmt: skip
    assert ignored.of == ""
    assert other.count == 1
    assert found.flaky.text == "5% [1, 16], n = 43"
    assert found.facts == (
        "App examples/python_reference/app.py:chain, judge openai:some-model, at most 40 cases a "
        "failure mode, seed 0, 171 questions to the judge."
    )


def test_what_was_not_replayed_is_counted_by_reason(run):
    assert read_replay(run).skipped == (
        "2 cases: the missed passage has no text", f"1 case: {HOSTILE[0]}",
    )  # fmt: skip


def test_a_case_says_what_each_rerun_gave(run):
    said = describe_case_replays(run)
    (told,) = said["with-exit"]

    assert told == (
        "Confirmed by replay: as the run observed it: unfaithful, run again unchanged: unfaithful, "
        "needed passage first: faithful, needed passage last: unfaithful."
    )
    assert said[HOSTILE[0]][0].startswith("Flaky: the answer changes when nothing is changed")
    assert (
        next(c for c in build_page(run).cases.entries if c.id == "with-exit").replays
        == said["with-exit"]
    )


@pytest.mark.parametrize(
    ("confirmed", "words"),
    [
        (False, "Not confirmed by replay"),
        (None, "Replayed, inconclusive"),
    ],
)
def test_a_case_that_was_not_mended_is_not_called_confirmed(run, confirmed, words):
    row = {"case_id": "x", "confirmed": confirmed, "flaky": False, "reason": "Because."}
    (said,) = describe_case_replays(_with(run, cases=[row]))["x"]
    assert said.startswith(words)
    assert said.endswith(" Because.")


def test_what_else_is_to_know_of_a_cause_and_of_a_case(run):
    row = {"cases": 3, "also": 2, "replayed": 5, "flaky": 1, "same_answer": 1}
    (failure,) = read_replay(_with(run, failures={"ignored_context": row})).failures
    assert failure.of == (
        "of 3 cases, 2 to which it only contributes, 1 flaky, 1 with the same answer"
    )
    case = {
        "case_id": "x", "failure": "fabricated", "replayed_as": "ignored_context", "flaky": False,
        "confirmed": True, "outcomes": {"first": "good", "alone": "good"},
        "repeats": {"first": "good", "alone": "wrong"},
    }  # fmt: skip
    (said,) = describe_case_replays(_with(run, cases=[case]))["x"]
    assert said == (
        "Confirmed by replay as ignored context: needed passage first: good (twice), needed "
        "passage alone: good (and once wrong)."
    )
    kept = _with(run, usage={"generations_kept": 20})
    assert "20 answers of the app kept from before" in read_replay(kept).facts
