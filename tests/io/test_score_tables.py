"""Score tables, in the shapes that other tools export, as runs."""

import json
from pathlib import Path

import pandas as pd
import pytest

import misslink
from misslink.errors import InputError
from misslink.io.score_tables import read_score_table
from misslink.stats.run_comparison import compare_paired_runs
from score_exports import AFTER, BEFORE, FORMATS, METRICS, promptfoo, write_scores


def compared_in_order():
    """The statistics of the scores themselves, without any file."""
    cases = list(BEFORE[METRICS[0]])
    runs = [{m: [s[m][c] for c in cases] for m in METRICS} for s in (BEFORE, AFTER)]
    [compared] = compare_paired_runs(runs)
    return compared


@pytest.mark.parametrize("form", FORMATS)
def test_every_export_gives_the_numbers_of_its_scores(form, tmp_path):
    compared = misslink.compare(*write_scores(form, tmp_path), metrics=METRICS)
    expected = compared_in_order()
    assert len(compared.cases) == 12
    for metric in METRICS:
        found = compared.metrics[metric]
        for key in ("p", "p_holm", "winner", "n", "detectable"):
            assert getattr(found, key) == expected[metric][key], (metric, key)
        assert found.difference.model_dump() == expected[metric]["difference"]
        assert found.a.model_dump() == expected[metric]["a"]
    assert compared.metrics["answer_relevancy"].winner == "b"
    alone = misslink.compare(*write_scores(form, tmp_path))  # promptfoo has a score of its own
    assert set(alone.metrics) - {"score"} == set(METRICS)


@pytest.mark.parametrize("form", ["ragas", "csv"])
def test_frames_and_lists_are_tables(form, tmp_path):
    frames = [pd.read_csv(path) for path in write_scores(form, tmp_path)]
    from_frames = misslink.compare(*frames)
    from_lists = misslink.compare(*(frame.to_dict("records") for frame in frames))
    assert from_frames.metrics == from_lists.metrics
    assert from_frames.metrics == misslink.compare(*write_scores(form, tmp_path)).metrics


def test_the_runs_of_one_table_are_compared_by_their_names(tmp_path):
    path = tmp_path / "results.json"
    promptfoo({"old": BEFORE, "new": AFTER}, path)
    compared = misslink.compare(path)
    assert compared.names == ("old {{question}}", "new {{question}}")
    assert compared.metrics["answer_relevancy"].winner == "b"
    alone = misslink.compare(f"{path}#new {{{{question}}}}", f"{path}#old {{{{question}}}}")
    assert alone.metrics["answer_relevancy"].winner == "a"
    with pytest.raises(InputError, match="it has no run 'newest'; its runs: old"):
        misslink.compare(f"{path}#newest", path)


def rows(*values, **more):
    return [
        {"case": f"c{n}", "metric": "score of mine", "value": value, **more}
        for n, value in enumerate(values)
    ]


def test_cases_of_a_cluster_change_their_sign_together():
    """24 cases of 6 clusters: of 2^6 signs, two are as far off."""
    apart, together = (
        misslink.compare(
            *(
                [
                    {"case": f"c{n}", "metric": "m", "value": value, "cluster": f"d{n % size}"}
                    for n in range(24)
                ]
                for value in (0, 1)
            )
        ).metrics["m"]
        for size in (24, 6)
    )
    assert together.p == 2 / 2**6
    assert apart.p == 2 / 2**24
    assert together.difference.n == apart.difference.n == 24


def test_epochs_of_inspect_are_cases_of_one_cluster(tmp_path):
    samples = [
        {"id": name, "epoch": epoch, "input": "?", "scores": {"match": {"value": "C"}}}
        for name in ("x", "y")
        for epoch in (1, 2)
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"samples": samples}))
    [run] = read_score_table(path).values()
    assert [(case.id, case.group) for case in run.cases] == [
        ("x", "x"), ("x (epoch 2)", "x"), ("y", "y"), ("y (epoch 2)", "y"),
    ]  # fmt: skip


def test_a_metric_that_is_good_when_low_is_known_or_said():
    table = [
        {"case": f"c{n}", "metric": metric, "value": 0.5, "better": better}
        for n in range(2)
        for metric, better in (("Toxicity", None), ("errors of mine", "low"), ("relevancy", None))
    ]
    compared = misslink.compare(table, [{**row, "value": 0.25} for row in table])
    low = {name for name, metric in compared.metrics.items() if metric.lower_is_better}
    assert low == {"Toxicity", "errors of mine"}


def test_an_empty_value_is_missing_and_not_zero():
    compared = misslink.compare(rows(0.5, 0.5, 0.5), rows(1, None, 1))
    metric = compared.metrics["score of mine"]
    assert (metric.n, metric.a.value, metric.b.value) == (2, 0.5, 1)
    [lacking] = compared.document()["lacking"]
    assert (lacking["run"], lacking["cases"]) == ("b", ["c1"])


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (rows("high"), "score of mine.*'high' is not a number"),
        (rows(4), "4 is not between 0 and 1; scale it"),
        (rows(float("inf")), "is not a number"),
        ([*rows(0.5), *rows(1.0)], "the case 'c0' has a value of 'score of mine' in .*, too"),
        ([{"metric": "m", "value": 1}], "no column names the case; call it 'case'"),
        ([{"case": "c", "question": "?", "note": "text"}], "it has no scores.*columns: case, quest"),
        ([{"case": "c", "metric": "m"}], "it has no scores; give the columns case, metric"),
        ([{"case": "a", "metric": "m", "value": 1}, {"case": "b", "value": 1}], "names no metric"),
        ([{"case": "a", "m": 0.5}, {"case": "b", "m": "n/a"}], "'n/a' is not a number"),
        ([], "is empty"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_in_one_sentence(table, problem):
    with pytest.raises(InputError, match=problem):
        misslink.compare(table, rows(1, 1))


def test_tables_without_a_common_case_or_metric_are_refused():
    with pytest.raises(InputError, match="share no case; name equal cases alike"):
        misslink.compare(rows(1, 1), [{**row, "case": f"x{row['case']}"} for row in rows(1, 1)])
    other = [{**row, "metric": "another"} for row in rows(1, 1)]
    with pytest.raises(InputError, match="have no metric in common; they have score of mine, ano"):
        misslink.compare(rows(1, 1), other)
    known = [{**row, "metric": "faithfulness"} for row in rows(1, 1)]
    with pytest.raises(InputError, match="have no metric in common"):
        misslink.compare(known, other)


def test_a_metric_of_one_table_alone_is_not_measured():
    more = [{**row, "metric": "another"} for row in rows(1, 1)]
    compared = misslink.compare(rows(1, 1), [*rows(0, 1), *more])
    assert compared.metrics["another"].difference.value is None
    [lacking] = compared.document()["lacking"]
    assert (lacking["reason"], lacking["metrics"]) == ("the table has no value", ["another"])
    assert "another" in [row.name for row in compared.page().comparisons[0].unmeasured]


def test_a_packed_log_of_inspect_says_how_to_unpack_it(tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\3\4")
    with pytest.raises(InputError, match="inspect log convert"):
        read_score_table(path)


def test_columns_that_are_no_scores_are_passed_over():
    """A latency of 12 s is neither a score nor an error."""
    table = [{"question": "?", "answer": "12", "latency": 12, "model": "m", "relevancy": 0.5}]
    [(name, run)] = read_score_table(table).items()
    assert name == "m"
    assert [(verdict.metric, verdict.value) for verdict in run.verdicts] == [("relevancy", 0.5)]


CRITERIA = """
gates:
  - {name: relevancy, metric: answer_relevancy, threshold: 0.5, regression_max: 0.05}
  - {name: paired, metric: answer_relevancy, regression_max: 0.05, regression_test: paired}
"""


@pytest.mark.parametrize("form", FORMATS)
def test_a_gate_reads_tables(form, tmp_path):
    before, after = write_scores(form, tmp_path)
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text(CRITERIA)
    better = misslink.gate(after, criteria, before)
    assert better.passed
    assert better.comparable == {"judge": True, "questions": 12, "of": 12, "labels": True}
    worse = misslink.gate(before, criteria, after)
    assert [outcome.passed for outcome in worse.outcomes] == [False, False]
    assert worse.outcomes[1].change.drop == 0.25


def test_a_gate_needs_one_run_and_a_baseline_that_is_one(tmp_path):
    path, criteria = tmp_path / "results.json", tmp_path / "criteria.yaml"
    promptfoo({"old": BEFORE, "new": AFTER}, path)
    criteria.write_text(CRITERIA)
    with pytest.raises(InputError, match=r"it has several runs .*; name one as"):
        misslink.gate(path, criteria, path)
    names = [f"{path}#{name} {{{{question}}}}" for name in ("new", "old")]
    assert misslink.gate(names[0], criteria, names[1]).passed
    with pytest.raises(InputError, match="there is no such run folder or s"):
        misslink.gate(names[0], criteria, Path("nothing.csv"))
    with pytest.raises(InputError, match="the baseline is the run itself"):
        misslink.gate(names[0], criteria, names[0])


def test_values_that_a_table_lost_fail_a_gate(tmp_path):
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text("gates: [{name: m, metric: score of mine, regression_max: 0.5}]")
    before, after = rows(1, 1, 0), rows(1, 1, None)
    assert misslink.gate(before, criteria, [{**row, "value": 1} for row in before]).passed
    [outcome] = misslink.gate(after, criteria, before).outcomes
    assert [reason.code for reason in outcome.reasons] == ["values_lost"]


def test_scores_by_other_judges_have_no_winner():
    a, b = (rows(*[value] * 8, judge=judge) for value, judge in ((0, "one"), (1, "two")))
    compared = misslink.compare(a, b)
    assert not compared.same_judge
    assert compared.metrics["score of mine"].winner is None
    again = misslink.compare(a, [{**row, "judge": "one"} for row in b])
    assert again.metrics["score of mine"].winner == "b"
