"""What replay confirmed, in the headline, in its table and in the cases."""

from __future__ import annotations

import re

import pytest

from example_run import HOSTILE, estimate, example_run, missing
from misslink.report.association import describe_case_replays, read_replay
from misslink.report.page import build_page, render_page
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _with(run, **parts):
    return run.model_copy(update={"replay": run.replay | parts})


def test_a_run_that_was_not_replayed_has_no_replay_section():
    page = build_page(example_run())
    assert page.replay is None


def test_the_causal_fraction_leads_and_broken_answers_stand_beside_fixed_ones(run):
    replay = read_replay(run)
    assert replay.causal.text == "29% [15, 43], n = 41"
    assert replay.causal_words == "of failed answers are caused by missed passages"
    shares = dict(replay.shares)
    assert shares["Failed answers fixed by the missed passages"] == "76% [60, 87], n = 41"
    assert shares["Good answers broken by them"] == "10% [3, 30], n = 20"


def test_a_fraction_that_may_be_nothing_says_so(run):
    lost = _with(run, causal_fraction=estimate(0.05, -0.2, 0.1, 98))
    assert read_replay(lost).causal_words.endswith("missed passages; not enough data to tell")
    gone = _with(run, causal_fraction=missing("another judge"))
    assert read_replay(gone).causal.brief == "not measured: another judge"


def test_each_mode_has_its_net_effect_in_a_sentence(run):
    first, second = read_replay(run).sentences  # nothing is claimed of what was not measured
    assert first == (
        "Retrieval miss, 40 cases replayed: the missed passages fix +68 points [50, 80] more than "
        "irrelevant ones do. 26 confirmed."
    )
    assert second == (
        "Fabricated, 1 case replayed: not enough data to tell whether the missed passages are the "
        "cause."
    )


def test_the_table_has_each_mode_with_its_placebo(run):
    found = read_replay(run)
    assert next((label, row.replayed, row.cases) for label, row in found.failures) == (
        "Retrieval miss", 40, 60,
    )  # fmt: skip
    html = render_page(build_page(run)).partition('class="replays"')[2].partition("</table>")[0]
    miss, fabricated, _ = html.split("<tr>")[2:]
    cells = re.findall(r"<td>(\S.*?)</td>", miss)
    assert cells == ["78% [62, 88]", "10% [4, 23]", "+68 points [50, 80]"]
    assert '<b>65%</b> <span class="interval">[49, 78]' in miss
    assert "not measured" in fabricated
    assert [share.partition(", n")[0] for _, share in found.shares] == [
        "76% [60, 87]", "10% [3, 30]", "5% [1, 24]", "5% [1, 16]", "10% [5, 20]"
    ]  # fmt: skip
    assert found.facts == (
        "App examples/python_reference/app.py:chain, judge openai:some-model, at most 40 cases a "
        "failure mode, seed 0, 171 questions to the judge."
    )


def test_what_was_not_replayed_is_counted_by_reason(run):
    assert read_replay(run).skipped == (
        "2 cases: the missed passage has no text", f"1 case: {HOSTILE[0]}",
    )  # fmt: skip


def test_a_case_says_what_each_arm_gave(run):
    texts = describe_case_replays(run)
    (text,) = texts["with-exit"]
    assert text == (
        "Confirmed by replay: answer of the run: unfaithful, run again unchanged: unfaithful, "
        "missed passages first: good, irrelevant passages first: unfaithful."
    )
    assert "Flaky: the answer changes when nothing is changed." in texts[HOSTILE[0]][0]
    entries = build_page(run).cases.entries
    assert next(entry for entry in entries if entry.id == "with-exit").replays == (text,)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"turned": True, "confirmed": False}, "Fixed by replay, and not confirmed"),
        ({"confirmed": False}, "Not fixed by replay"),
        ({"failure": "passed", "turned": True}, "Broken by the missed passage"),
        ({"failure": "passed"}, "Not broken by the missed passage"),
        (
            {"outcomes": {"observed": "good"}},
            (
                "Not fixed by replay: answer of the run: good. The answer is true by the missed "
                "passage; only its evidence was missing."
            ),
        ),
        ({"note": "1 of 2 missed"}, "Not fixed by replay. 1 of 2 missed."),
    ],
)
def test_a_case_that_was_not_confirmed_says_what_happened(run, row, words):
    case = {"case_id": "x", "failure": "retrieval_miss"} | row
    (text,) = describe_case_replays(_with(run, cases=[case]))["x"]
    assert text.startswith(words)
    assert "Confirmed" not in text


def test_reused_answers_are_counted(run):
    kept = _with(run, usage={"generations_kept": 20})
    assert "20 answers of the app reused" in read_replay(kept).facts
