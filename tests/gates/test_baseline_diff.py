"""A run beside its baseline: a summary.json, pairs, margins, and intervals widened by Holm."""

import json
from pathlib import Path

import pytest

from gated_run import decided, gated_run, write
from misslink.errors import InputError
from misslink.gates.baseline_diff import (
    GateBaseline,
    loss_can_exceed,
    read_baseline,
    summary_estimate,
)
from misslink.gates.criteria import read_criteria
from misslink.gates.decision import decide_gates

GATES = "gates: [{metric: recall@1, regression_max: 0.1}]"


def decided_against(tmp_path, gates, **changed):
    """The run held against a summary in which some numbers were changed."""
    run = gated_run("1111111100")
    summary = json.loads(json.dumps(gated_run("1111111000").summary))
    for path, value in changed.items():
        room, _, name = path.rpartition("__")
        (summary[room] if room else summary)[name.replace("_at_", "@")] = value
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(gates, encoding="utf-8")
    baseline = read_baseline(tmp_path / "summary.json")
    return decide_gates(run, read_criteria(tmp_path / "c.yaml"), baseline)


@pytest.mark.parametrize("number", [-3, 1.2, 80])
def test_a_number_that_cannot_be_is_refused(tmp_path, number):
    assert decided_against(tmp_path, GATES).passed
    with pytest.raises(InputError, match=r"summary\.json: recall@1 is .* must be between 0 and 1"):
        decided_against(tmp_path, GATES, retrieval__recall_at_1=number)


def test_counts_below_zero_are_no_counts(tmp_path):
    gates = "gates: [{metric: link.failures.retrieval_miss, regression_max: 0.3}]"
    assert decided_against(tmp_path, gates).passed
    with pytest.raises(InputError, match=r"has no link\.failures\.retrieval_miss"):
        decided_against(tmp_path, gates, link__failures={"retrieval_miss": -3, "passed": 13})


def test_another_number_of_cases_is_noted(tmp_path):
    assert "Whether it has the same questions is unknown." in decided_against(tmp_path, GATES).scope
    told = "The baseline has other cases: 500, and the run has 10."
    assert told in decided_against(tmp_path, GATES, cases=500).scope
    assert not any("other cases" in note for note in decided_against(tmp_path, GATES).scope)


def test_the_undecided_are_no_part_of_a_share():
    summary = {
        **{level: {} for level in ("retrieval", "generation", "answer")},
        "link": {"failures": {"retrieval_miss": 2, "passed": 6, "inconclusive": 2}},
    }
    found = summary_estimate(summary, "link.failures.retrieval_miss")
    assert (found.value, found.n) == (0.25, 8)
    assert summary_estimate(summary, "link.failures.inconclusive").value == 0.2


def test_the_folder_or_the_summary_of_the_run_is_no_baseline_of_it(tmp_path):
    folder = write(tmp_path / "today", gated_run("1111111100"))
    other = write(tmp_path / "main", gated_run("1111111000"))
    (tmp_path / "c.yaml").write_text(GATES, encoding="utf-8")
    wanted = read_criteria(tmp_path / "c.yaml")
    run = gated_run("1111111100")
    for own in (folder, folder / "summary.json", tmp_path / "main" / ".." / "today"):
        with pytest.raises(InputError, match="the baseline is the run itself"):
            decide_gates(run, wanted, read_baseline(own), folder=folder)
    assert decide_gates(run, wanted, read_baseline(other), folder=folder).passed


def test_another_k_is_told_by_its_name_as_it_is_written(tmp_path):
    assert "k was 7 in the baseline and is 1 now." in decided_against(tmp_path, GATES, k=7).notes


PAIRED = "name: recall_at_1, regression_max: 0.03, regression_test: paired"


def one(tmp_path, gate, run, baseline):
    (found,) = decided(tmp_path, [gate], run, baseline).outcomes
    return found


def renamed(run, kept):
    """The run as if only its first `kept` cases were those of the baseline."""
    found = [f"c{at}" if at < kept else f"new{at}" for at in range(len(run.cases))]
    return gated_run(
        "".join("1" if link.retrieval == "hit" else "0" for link in run.links), ids=found
    )


def test_so_few_pairs_that_no_loss_could_show_fail(tmp_path):
    """All of one to five lost: the sign-flip test of 5 of 5 has p = 0.06."""
    assert [n for n in range(8) if loss_can_exceed(0.0, n)] == [6, 7]
    assert [n for n in range(8) if loss_can_exceed(0.03, n)] == [6, 7]
    for kept in (1, 3):
        found = one(tmp_path, PAIRED, renamed(gated_run("0" * 50), kept), gated_run("1" * 50))
        assert not found.passed
        assert f"only {kept} question" in found.reason
        assert "so nothing is decided" in found.reason
    better = one(tmp_path, PAIRED, renamed(gated_run("1" * 50), 3), gated_run("0" * 50))
    assert not better.passed, "also where they got better"


def test_fewest_cases_are_asked_of_the_pairs_too(tmp_path):
    run, before = renamed(gated_run("1" * 50), 9), gated_run("1" * 40 + "0" * 10)
    found = one(tmp_path, f"{PAIRED}, min_cases: 10", run, before)
    assert found.reason == "only 9 questions have a value of recall@1 in both runs, and 10 must"
    assert one(tmp_path, f"{PAIRED}, min_cases: 9", run, before).passed


def test_the_means_that_are_told_are_those_of_the_pairs(tmp_path):
    """Over all questions it rose from 33 to 80%; over the ten in both it fell from 100 to 0%."""
    run = renamed(gated_run("0" * 10 + "1" * 40), 10)
    found = one(tmp_path, PAIRED, run, gated_run("1" * 10 + "0" * 20))
    assert "recall@1 dropped from 100% to 0%: a loss of 100 points" in found.reason
    assert (
        "(over the 10 questions in both: loss 100 points [44, 100], 95% interval)" in found.reason
    )


def test_a_number_of_which_nobody_said_what_is_worse_is_refused(tmp_path):
    run = gated_run("1111111100")
    summary = {**run.summary, "diagnosis": {"n": {"near_duplicates": 3}}}
    run = run.model_copy(update={"summary": summary})
    gate = "metric: diagnosis.n.near_duplicates, regression_max: 2"
    with pytest.raises(InputError, match="it is not known whether a higher diagnosis"):
        one(tmp_path, gate, run, gated_run("1111111000"))


@pytest.mark.parametrize(
    ("path", "now", "before", "passed"),
    [
        ("coverage.faithfulness.skipped", 5, 2, False),
        ("coverage.faithfulness.skipped", 2, 5, True),
        ("coverage.faithfulness.scored", 2, 5, False),
        ("usage.calls", 90, 10, False),
    ],
)
def test_of_counts_the_direction_is_known(tmp_path, path, now, before, passed):
    def having(count):
        run = gated_run("1111111100")
        counts = {
            "coverage": {"faithfulness": {path.rpartition(".")[2]: count}},
            "usage": {"calls": count},
        }
        return run.model_copy(update={"summary": {**run.summary, **counts}})

    assert (
        one(tmp_path, f"metric: {path}, regression_max: 1", having(now), having(before)).passed
        is passed
    )


def test_a_run_is_never_its_own_baseline(tmp_path):
    run = gated_run("1111111100")
    with pytest.raises(InputError, match="the baseline is the run itself"):
        one(tmp_path, PAIRED, run, gated_run("1111111100"))


def family(tmp_path, losses, size=100):
    """Paired gates on categories of `size` questions, of which so many were lost."""
    before = gated_run("1" * size * len(losses))
    marks = "".join("0" * lost + "1" * (size - lost) for lost in losses)
    runs = []
    for run in (gated_run(marks), before):
        cases = tuple(
            case.model_copy(update={"category": str(place // size)})
            for place, case in enumerate(run.cases)
        )
        runs.append(run.model_copy(update={"cases": cases}))
    gates = [
        f"name: g{part}, metric: recall@1, category: '{part}', regression_max: 0.03, "
        "regression_test: paired"
        for part in range(len(losses))
    ]
    return decided(tmp_path, gates, *runs).outcomes


def test_several_paired_gates_are_corrected_for_each_other(tmp_path):
    """A loss that fails alone passes among four others without a loss, as Holm's level is 99%."""
    (alone,) = family(tmp_path, [8])
    assert not alone.passed
    outcomes = family(tmp_path, [8, 0, 0, 0, 0])
    assert all(outcome.passed for outcome in outcomes)
    assert {outcome.change.level for outcome in outcomes} == {0.99}
    assert outcomes[0].change.loss.low < 0.03 < alone.change.loss.low
    assert "99% interval, which reaches below the margin" in outcomes[0].reason


def test_holm_lowers_the_level_for_each_gate_that_fails(tmp_path):
    outcomes = family(tmp_path, [40, 8, 40, 0, 40])
    assert [outcome.passed for outcome in outcomes] == [False, True, False, True, False]
    assert [outcome.change.level for outcome in outcomes] == [0.99, 0.975, 0.99, 0.975, 0.99]


@pytest.mark.parametrize(
    ("marks", "loss"),
    [("1" * 90 + "0" * 10, 0.1), ("1" * 99 + "0", 0.01), ("1" * 97 + "000", 0.03)],
)
def test_the_default_compares_the_loss_itself_with_the_margin(tmp_path, marks, loss):
    outcome = one(
        tmp_path, "name: recall_at_1, regression_max: 0.03", gated_run(marks), gated_run("1" * 100)
    )
    assert outcome.passed is (loss <= 0.03)
    assert outcome.document()["regression"] == pytest.approx(loss)


@pytest.mark.slow
def test_error_rates_at_the_margin(monkeypatch):
    """By the benchmark's own simulation, in few rounds."""
    from gate_errors import MARGIN, count_failures

    nothing = count_failures(100, 0.0, rounds=12)
    exactly = count_failures(100, MARGIN, rounds=12)
    assert nothing["paired"] == 0
    assert exactly["paired"] <= 2 < exactly["value"]
    assert count_failures(100, 10 * MARGIN, rounds=3)["paired"] == 3


@pytest.mark.slow
def test_error_rates_of_one_gate_and_of_a_family(monkeypatch):
    from gate_errors import FAMILY, MARGIN, count_failures

    # A family takes five times as long; of 20 rounds 2 are the most that 2.5% gives in 99 of 100 draws.
    for n, family, rounds, most in ((100, 1, 100, 6), (100 * FAMILY, FAMILY, 20, 2)):
        exactly = count_failures(n, MARGIN, family=family, rounds=rounds)
        assert exactly["paired"] <= most, "2.5% by design, 5% two-sided"
        assert exactly["value"] > 0.3 * rounds


def test_a_first_run_without_a_baseline_passes_if_that_is_allowed(tmp_path):
    gates = [
        "name: recall_at_1, threshold: 0.5, regression_max: 0.03",
        "name: paired, metric: mrr, regression_max: 0.03, regression_test: paired",
        "new_failures: {}",
        "metric: hit@1, threshold: 0.9",
    ]
    run = gated_run("1111111100")
    with pytest.raises(InputError, match="--allow-missing-baseline for a first run"):
        decided(tmp_path, gates, run)
    criteria = read_criteria(tmp_path / "criteria.yaml")
    outcomes = decide_gates(run, criteria, allow_missing_baseline=True).outcomes
    assert [outcome.passed for outcome in outcomes] == [True, True, True, False], "limits decide"
    codes = [outcome.reasons[0] for outcome in outcomes]
    assert codes[0].parameters["change"] == codes[1].parameters["change"] == {"by": "no_baseline"}
    assert codes[2].code == "no_baseline"
    assert outcomes[2].document()["value"] is None
    before = GateBaseline(Path("base"), gated_run("1" * 10), {})
    checked = decide_gates(run, criteria, before, allow_missing_baseline=True).outcomes
    assert not checked[0].passed, "a baseline that is there is used"


@pytest.mark.parametrize(
    ("gates", "warned"),
    [
        (["name: mrr, threshold: 0.1"], True),
        (["name: hit_at_1, threshold: 0.1", "name: mrr, threshold: 0.1"], True),
        (["name: hit_at_1, threshold: 0.1", "name: recall_at_1, threshold: 0.1"], False),
        (["name: hit_at_1, threshold: 0.1", "metric: link.retrieval.miss, at_most: 0.9"], False),
        (["name: faithfulness, threshold: 0.1"], False),
    ],
)
def test_a_gate_on_retrieval_that_one_passage_satisfies_is_warned_of(tmp_path, gates, warned):
    notes = decided(tmp_path, gates, gated_run("1111111100")).notes
    assert any("one relevant passage is enough" in note for note in notes) is warned
