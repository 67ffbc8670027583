"""Gates: limits, severities, new failures, lost values, and every mistake with its place."""

import pytest

from gated_run import decided, gated_run, numbers_of, write
from misslink.comparison.missing_values import unmeasured_cases
from misslink.comparison.run_metrics import metric_value
from misslink.errors import InputError
from misslink.gates.baseline_diff import read_baseline
from misslink.gates.criteria import read_criteria
from misslink.gates.decision import decide_gates
from misslink.io import read_complete_run

TEN = "1111111100"  # recall@1 0.8


def one(tmp_path, gate, run, baseline=None):
    (found,) = decided(tmp_path, [gate], run, baseline).outcomes
    return found


@pytest.mark.parametrize(
    ("gate", "passed"),
    [
        ("name: recall_at_1, threshold: 0.8", True),  # on the limit
        ("name: recall_at_1, threshold: 0.81", False),
        ("name: recall_at_1, threshold: 0, at_most: 0.8", True),
        ("name: recall_at_1, threshold: 0, at_most: 0.79", False),
        ("name: recall_at_1, threshold: 0.5, on: low", False),  # Wilson's low end is 0.49
        ("name: recall_at_1, threshold: 0.49, on: low", True),
        ("name: recall_at_1, threshold: 0, at_most: 0.9, on: high", False),  # its high end is 0.94
        ("name: recall_at_1, threshold: 0, at_most: 0.95, on: high", True),
        ("name: recall_at_1, min_cases: 10", True),
        ("name: recall_at_1, min_cases: 11", False),
        ("metric: recall@1, threshold: 1, tag: {half: first}", True),
        ("metric: recall@1, threshold: 0.7, tag: {half: second}", False),  # 3 of 5
        ("metric: link.failures.retrieval_miss, at_most: 0.2", True),
        ("metric: link.failures.retrieval_miss, at_most: 0.19", False),
        ("metric: helpfulness, threshold: 0.1", False),  # never judged
        ("metric: trust.kappa, threshold: 0", False),  # never calibrated
    ],
)
def test_a_floor_and_a_ceiling(tmp_path, gate, passed):
    found = one(tmp_path, gate, gated_run(TEN))
    assert found.passed is passed
    assert found.reason


@pytest.mark.parametrize(
    ("marks", "reason"),
    [
        ("11100", "recall@1 is 0.60, below the floor of 0.80"),
        ("11111", "recall@1 is 1.00 over 5 questions"),
        ("1110011100", "recall@1 is 60%, below the floor of 80%"),
    ],
)
def test_of_fewer_than_10_questions_no_percentage_is_printed(tmp_path, marks, reason):
    found = one(tmp_path, "metric: recall@1, threshold: 0.8", gated_run(marks))
    assert found.reason == reason


def test_of_fewer_than_10_questions_a_loss_is_no_percentage(tmp_path):
    gate = "metric: recall@1, threshold: 0, regression_max: 0.1"
    found = one(tmp_path, gate, gated_run("11100"), gated_run("11110"))
    assert "from 0.80 to 0.60: a loss of 0.20, more than the 0.10 allowed" in found.reason
    assert "%" not in found.reason.replace("95% interval", "")


def test_what_could_not_be_computed_says_why(tmp_path):
    found = one(tmp_path, "metric: helpfulness, threshold: 0.1", gated_run(TEN))
    assert found.reason.startswith("helpfulness could not be computed: this run was not judged")
    assert found.document()["value"] is None


def test_a_change_of_exactly_what_is_allowed_passes(tmp_path):
    """0.8 - 0.7 is 0.10000000000000009."""
    gate = "name: recall_at_1, regression_max: 0.1"
    assert one(tmp_path, gate, gated_run("1111111000"), gated_run(TEN)).passed


def test_the_change_alone_decides_unless_it_is_to_be_paired(tmp_path):
    run, baseline = gated_run("1111110000"), gated_run(TEN)
    alone = one(tmp_path, "name: recall_at_1, regression_max: 0.1", run, baseline)
    assert not alone.passed
    assert alone.document()["regression"] == pytest.approx(0.2)
    gate = "name: recall_at_1, regression_max: 0.1, regression_test: paired"
    paired = one(tmp_path, gate, run, baseline)
    assert paired.passed, "two of ten questions may be chance"
    loss = paired.change.loss
    low, high = round(100 * loss.low), round(100 * loss.high)
    assert paired.reason == (
        "recall@1 is 60% over 10 questions; paired it was 80% and is 60%; margin 10 points, over "
        f"the 10 questions in both: loss 20 points [\u2212{-low}, {high}], 95% interval, which "
        "reaches below the margin: not enough data to tell"
    )
    assert paired.change.worse == ("c6", "c7")


def test_a_paired_loss_beyond_chance_fails(tmp_path):
    run, baseline = gated_run("1" * 30 + "0" * 10), gated_run("1" * 40)
    gate = "name: recall_at_1, regression_max: 0.1, regression_test: paired"
    found = one(tmp_path, gate, run, baseline)
    assert not found.passed
    assert found.change.loss.low > 0.1
    assert "dropped from 100% to 75%: a loss of 25 points, more than the 10 points allowed" in (
        found.reason
    )
    document = found.document()
    assert (document["loss"]["value"], document["loss_level"]) == (0.25, 0.95)
    loss = found.change.loss
    assert one(tmp_path, gate.replace("0.1", f"{loss.low - 0.001}"), run, baseline).passed is False
    assert one(tmp_path, gate.replace("0.1", f"{loss.low + 0.001}"), run, baseline).passed


def test_of_a_number_that_is_good_when_low_a_rise_is_the_change_for_the_worse(tmp_path):
    gate = "metric: link.failures.retrieval_miss, regression_max: 0.1"
    more, less = gated_run("1111000000"), gated_run(TEN)
    found = one(tmp_path, gate, more, less)
    assert not found.passed
    assert found.change.drop == pytest.approx(0.4)
    assert "rose from 20% to 60%" in found.reason
    assert one(tmp_path, gate, less, more).passed


def test_without_a_baseline_a_regression_is_an_error_and_no_pass(tmp_path):
    for gate in ("name: recall_at_1, regression_max: 0.1", "new_failures: {failure: fabricated}"):
        with pytest.raises(InputError, match=r"criteria.yaml, line 2: gate .*add --baseline"):
            decided(tmp_path, [gate], gated_run(TEN))


def test_a_baseline_without_the_metric_is_an_error_and_no_pass(tmp_path):
    run, bare = gated_run(TEN), gated_run(TEN, verdicts=())
    gate = "metric: faithfulness, regression_max: 0.1"
    with pytest.raises(InputError, match=r"gate 'faithfulness': the baseline base has no faith"):
        decided(tmp_path, [gate], run, bare)
    path = tmp_path / "criteria.yaml"
    path.write_text("gates: [{name: recall_at_7, regression_max: 0.1}]", encoding="utf-8")
    with pytest.raises(InputError, match=r"the baseline summary.json has no recall@7; name its"):
        decide_gates(run, read_criteria(path), numbers_of(run))


def test_a_selection_that_the_baseline_lacks_fails_with_the_reason(tmp_path):
    run = gated_run("1" * 12)
    tagged = [case.model_copy(update={"tags": {"half": "new"}}) for case in run.cases[10:]]
    run = run.model_copy(update={"cases": (*run.cases[:10], *tagged)})
    gate = "metric: recall@1, regression_max: 0.5, tag: {half: new}"
    found = one(tmp_path, gate, run, gated_run("1" * 10))
    assert not found.passed
    assert "the baseline has no recall@1 to compare with: there are no cases" in found.reason


def test_a_summary_as_baseline_gives_values_only_and_says_so(tmp_path):
    run, before = gated_run("1111110000"), gated_run(TEN)
    path = tmp_path / "c.yaml"
    path.write_text(
        "gates:\n"
        "  - {metric: recall@1, regression_max: 0.1, regression_test: paired}\n"
        "  - {metric: link.failures.retrieval_miss, regression_max: 0.3}\n"
        "  - {metric: coverage.faithfulness, regression_max: 0.3}\n",
        encoding="utf-8",
    )
    found = decide_gates(run, read_criteria(path), numbers_of(before))
    assert [gate.passed for gate in found.outcomes] == [False, True, True]
    assert [gate.baseline.value for gate in found.outcomes] == [0.8, 0.2, 1.0]
    assert "summary.json without cases" in found.scope[0]
    for gates in ("new_failures: {}", "metric: recall@1, regression_max: 0.9, tier: A"):
        path.write_text(f"gates: [{{{gates}}}]", encoding="utf-8")
        with pytest.raises(InputError, match=r"summary\.json"):
            decide_gates(run, read_criteria(path), numbers_of(before))


def test_new_failures_are_those_that_the_baseline_had_not(tmp_path):
    run, before = gated_run("0011111100"), gated_run(TEN)
    found = one(tmp_path, "new_failures: {failure: retrieval_miss, at_most: 1}", run, before)
    assert (found.passed, found.cases) == (False, ("c0", "c1"))
    of_a = one(
        tmp_path, "new_failures: {failure: retrieval_miss, tier: A, at_most: 1}", run, before
    )
    assert (of_a.passed, of_a.cases) == (True, ("c0",))
    others = one(tmp_path, "new_failures: {failure: fabricated}", run, before)
    assert (others.passed, others.cases) == (True, ())


def test_a_failed_answer_of_unknown_cause_is_a_failure(tmp_path):
    before, run = gated_run(TEN), gated_run("0011111100")
    links = tuple(
        link.model_copy(update={"failure": "inconclusive", "unexplained": True})
        if link.case_id in ("c0", "c1")
        else link
        for link in run.links
    )
    run = run.model_copy(update={"links": links})
    found = one(tmp_path, "new_failures: {at_most: 1}", run, before)
    assert (found.passed, found.cases) == (False, ("c0", "c1"))
    failed = sum(bool(link.failed) for link in run.links)
    passed = metric_value(run, "link.failures.passed").estimate
    assert (passed.n, passed.value) == (10, 1 - failed / 10)
    of_mode = one(tmp_path, "metric: link.failures.retrieval_miss, at_most: 0.9", run)
    assert any(note.startswith("2 failed answers have no known cause") for note in of_mode.notes)


def test_a_case_that_asks_something_else_now_is_new_and_is_not_paired(tmp_path):
    run = gated_run("0111111100", questions={0: "Another?"})
    decision = decided(
        tmp_path,
        ["name: recall_at_1, regression_max: 0.9", "new_failures: {}"],
        run,
        gated_run(TEN),
    )
    assert decision.outcomes[0].change.loss.n == 9
    assert decision.outcomes[1].cases == ("c0",)
    assert "9 ask the same in both, of 10 in the run and 10" in decision.scope[0]


def test_a_baseline_without_a_common_case_is_an_error(tmp_path):
    other = gated_run(TEN, ids=[f"x{at}" for at in range(10)])
    with pytest.raises(InputError, match="share no case"):
        decided(tmp_path, ["name: recall_at_1, regression_max: 0.9"], gated_run(TEN), other)


def test_another_judge_is_noted_on_what_it_judged_alone(tmp_path):
    run = gated_run(TEN, manifest={"judge": "openai:large"})
    gates = ["name: recall_at_1, threshold: 0.1", "metric: fully_faithful, threshold: 0.1"]
    by_rank, by_judge = decided(tmp_path, gates, run, gated_run(TEN)).outcomes
    assert by_rank.notes == ()
    assert any("openai:large" in note for note in by_judge.notes)


def test_judging_that_stopped_at_a_cap_fails_what_it_concerns(tmp_path):
    run = gated_run(TEN, "11111111--", manifest={"unfinished": 2})
    gates = [
        "metric: faithfulness, threshold: 0.1",
        "metric: recall@1, threshold: 0.1",
        "metric: link.failures.passed, threshold: 0.1",
        "metric: faithfulness, threshold: 0.1, tag: {half: first}",  # complete there
    ]
    found = decided(tmp_path, gates[:3], run).outcomes
    assert [gate.passed for gate in found] == [False, True, False]
    assert "stopped early (2 questions left)" in found[0].reason
    assert one(tmp_path, gates[3], run).passed


def test_a_failed_verdict_is_noted_and_is_no_cap(tmp_path):
    run = gated_run(TEN, "111111111f", manifest={"unfinished": 1})
    found = one(tmp_path, "metric: faithfulness, threshold: 0.9", run)
    assert found.passed
    assert found.notes == ("1 of its verdicts failed and are not counted.",)


def test_a_warning_fails_and_does_not_fail_the_whole(tmp_path):
    gates = ["name: recall_at_1, threshold: 0.9, severity: warning", "name: mrr, threshold: 0.5"]
    found = decided(tmp_path, gates, gated_run(TEN))
    assert (found.passed, [gate.passed for gate in found.outcomes]) == (True, [False, True])


def test_a_misspelt_metric_names_the_nearest(tmp_path):
    with pytest.raises(InputError, match=r"line 2: gate 'a': .*did you mean 'faithfulness'"):
        decided(tmp_path, ["name: a, metric: faithfulnes, threshold: 0.1"], gated_run(TEN))
    with pytest.raises(
        InputError, match=r"gate 'generation_faithfulnes': its name is not a metric"
    ):
        decided(tmp_path, ["name: generation_faithfulnes, threshold: 0.1"], gated_run(TEN))


@pytest.mark.parametrize("part", ["cases", "traces", "verdicts", "links"])
def test_a_folder_that_lost_a_line_or_a_file_is_refused(tmp_path, part):
    folder = write(tmp_path / "run", gated_run(TEN))
    assert len(read_complete_run(folder).cases) == 10
    path = folder / f"{part}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(InputError, match="not complete"):
        read_complete_run(folder)
    path.unlink()
    with pytest.raises(InputError, match=rf"it has no {part}.jsonl"):
        read_baseline(folder)


def test_what_is_no_summary_is_no_baseline(tmp_path):
    for text in ("[]", "{}", "no", "[" * 100_000):
        (tmp_path / "summary.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="this is not a baseline"):
            read_baseline(tmp_path / "summary.json")


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("metric: noise_sensitivity, threshold: 0.2", "noise_sensitivity is good when low; write"),
        ("metric: over_refused, threshold: 0.05, regression_max: 0.1", "write at_most instead"),
        ("metric: link.failures.retrieval_miss, threshold: 0.1", "good when low; write at_most"),
        ("metric: latency, threshold: 0.1, severity: warning", "latency is good when low"),
        ("name: recall_at_1, at_most: 0.5", "recall@1 is good when high; write threshold in"),
        ("metric: fully_faithful, at_most: 0.5", "fully_faithful is good when high"),
    ],
)
def test_a_limit_that_is_kept_more_easily_the_worse_it_gets_is_refused(tmp_path, limit, said):
    with pytest.raises(InputError, match=r"line 2: gate '.*'") as raised:
        decided(tmp_path, [limit], gated_run(TEN), gated_run(TEN))
    assert said in str(raised.value)


def test_a_floor_and_a_ceiling_together_are_a_band_and_declining_may_be_wanted(tmp_path):
    gates = [
        "name: a, metric: link.failures.retrieval_miss, threshold: 0.1, at_most: 0.5",
        "metric: link.answers.declined, threshold: 0.9",
    ]
    found = decided(tmp_path, gates, gated_run(TEN)).outcomes
    assert [gate.passed for gate in found] == [True, False]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        ("category: evne", "has category 'evne'; did you mean 'even'?"),
        ("tier: Q", "has tier 'Q'; tier is 'A'"),
        ("tag: {hlf: first}", "has tag hlf 'first'; did you mean 'half'?"),
        ("tag: {half: secnd}", "has tag half 'secnd'; did you mean 'second'?"),
    ],
)
def test_a_selection_by_an_unknown_name_is_a_mistake_and_no_decision(tmp_path, selection, said):
    for gate in ("name: recall_at_1, threshold: 0.1", "name: new, new_failures: {}"):
        with pytest.raises(InputError) as raised:
            one(tmp_path, f"{gate}, {selection}", gated_run(TEN), gated_run("0" + TEN[1:]))
        assert raised.value.line == 2
        assert str(raised.value).endswith(f": no question of the run {said}")


def test_a_selection_of_known_names_that_no_question_has_together_fails(tmp_path):
    gate = "name: recall_at_1, threshold: 0.1, category: odd, tier: A"
    found = one(tmp_path, gate, gated_run(TEN))
    assert not found.passed
    assert found.reason == "no question of the run has tier 'A' and category 'odd'"


def test_a_cut_off_beyond_what_was_retrieved_is_noted(tmp_path):
    gates = ["name: recall_at_9, threshold: 0.1", "name: recall_at_1, threshold: 0.1"]
    deep, as_retrieved = decided(tmp_path, gates, gated_run(TEN)).outcomes
    assert deep.notes == ("recall@9 covers the first 9, and only 1 was retrieved.",)
    assert as_retrieved.notes == ()


def test_a_regression_on_what_the_baseline_was_not_asked_is_not_known(tmp_path):
    stopped = gated_run(TEN, "11111111--", manifest={"unfinished": 2})
    gate = "metric: faithfulness, regression_max: 0.9"
    found = one(tmp_path, gate, gated_run(TEN), stopped)
    assert not found.passed
    assert found.reason == (
        "the judging of the baseline was stopped early (2 questions left), so how far "
        "faithfulness changed is not known; run the same  misslink evaluate  command again"
    )
    assert one(tmp_path, f"{gate}, tag: {{half: first}}", gated_run(TEN), stopped).passed
    assert one(tmp_path, "metric: recall@1, regression_max: 0.9", gated_run(TEN), stopped).passed


def test_too_few_cases_blame_no_question(tmp_path):
    gate = "name: recall_at_1, min_cases: 11"
    assert one(tmp_path, gate, gated_run(TEN)).cases == ()
    assert one(tmp_path, f"{gate}, threshold: 0.9", gated_run(TEN)).cases == ("c8", "c9")


def test_one_sentence_counts_what_failed(tmp_path):
    low, high = "name: {0}, metric: mrr, threshold: 0.1", "name: {0}, metric: mrr, threshold: 0.9"
    warning = high + ", severity: warning"
    for gates, said in (
        ([low], "All of 1 gate passed over 10 questions."),
        ([low, warning], "None of 2 gates failed over 10 questions; 1 warns."),
        ([high, warning, warning], "1 of 3 gates failed over 10 questions; 2 more warn."),
    ):
        named = [gate.format(f"g{at}") for at, gate in enumerate(gates)]
        decision = decided(tmp_path, named, gated_run(TEN))
        assert decision.counted() == said
        assert decision.text().splitlines()[0] == f"criteria: {said}"


@pytest.mark.parametrize("gate", ["name: recal_at_2", "name: a, metric: recal_at_2"])
def test_a_typo_in_a_rank_metric_is_answered_with_the_metric_at_that_cutoff(tmp_path, gate):
    with pytest.raises(InputError, match=r"did you mean 'recall@2'\?"):
        decided(tmp_path, [f"{gate}, threshold: 0.5"], gated_run("1100"))


def test_a_case_that_is_undecided_now_and_was_decided_may_have_failed(tmp_path):
    run, before = gated_run(TEN, "1111111u00"), gated_run(TEN)
    found = one(tmp_path, "new_failures: {at_most: 0}", run, before)
    assert (found.passed, found.cases) == (False, ("c7",))
    assert (
        "1 question was decided before and is inconclusive now, and may be among them"
        in found.reason
    )
    assert "the judge's verdicts do not settle the failure mode" in found.reason
    assert one(tmp_path, "new_failures: {at_most: 1}", run, before).passed, "even if it is one"
    assert one(tmp_path, "new_failures: {category: even}", run, before).passed, "c7 is odd"


def test_a_crash_may_be_a_lost_passage(tmp_path):
    found = one(
        tmp_path, "new_failures: {retrieval: miss}", gated_run("x" + TEN[1:]), gated_run(TEN)
    )
    assert (found.passed, found.cases) == (False, ("c0",))
    assert "(the app failed on 1 question)" in found.reason


def test_who_failed_before_or_was_undecided_before_does_not_fail_anew(tmp_path):
    undecided = gated_run(TEN, "11111111uu")
    assert one(tmp_path, "new_failures: {}", undecided, gated_run(TEN)).passed
    assert (
        one(tmp_path, "new_failures: {}", gated_run(TEN, "u111111100"), undecided).passed is False
    )
    assert one(tmp_path, "new_failures: {}", undecided, gated_run(TEN, "11111111u0")).passed


def test_where_all_are_undecided_nothing_passes(tmp_path):
    run = gated_run("1" * 10, "u" * 10)
    for gate in ("new_failures: {at_most: 99}", "new_failures: {failure: fabricated, at_most: 99}"):
        found = one(tmp_path, gate, run, gated_run(TEN, "u" * 10))
        assert not found.passed
        assert "the failure mode of every case is unknown" in found.reason


def test_a_lost_passage_counts_though_the_answer_is_right_all_the_same(tmp_path):
    run, before = gated_run("0" + TEN[1:], TEN), gated_run(TEN)
    assert run.links[0].failure == "passed"
    assert one(tmp_path, "new_failures: {failure: retrieval_miss}", run, before).passed
    found = one(tmp_path, "new_failures: {retrieval: miss}", run, before)
    assert (found.passed, found.cases, found.gate.name) == (False, ("c0",), "new_failures_miss")
    assert found.reason.startswith("1 question has the retrieval outcome miss now and had not")


@pytest.mark.parametrize(
    ("name", "value", "n"),
    [
        ("link.failures.retrieval_miss", 0.25, 8),
        ("link.failures.inconclusive", 0.2, 10),
        ("link.answers.unfaithful", 0.25, 8),
        ("link.answers.unknown", 0.2, 10),
        ("link.retrieval.miss", 2 / 9, 9),
        ("link.retrieval.unknown", 0.1, 10),
    ],
)
def test_a_share_is_of_the_decided(name, value, n):
    found = metric_value(gated_run("11111100x1", "11111100xu"), name).estimate
    assert (found.value, found.n) == (pytest.approx(value), n)


def test_a_share_of_which_nothing_is_known_fails(tmp_path):
    run = gated_run("1" * 10, "u" * 10)
    gates = [
        "metric: link.failures.retrieval_miss, at_most: 0.05",
        "metric: link.answers.unfaithful, at_most: 0.1",
    ]
    found = decided(tmp_path, gates, run).outcomes
    assert [gate.passed for gate in found] == [False, False]
    assert "the failure mode of every case is unknown" in found[0].reason


def test_a_baseline_whose_judging_was_stopped_invents_no_new_failures(tmp_path):
    run = gated_run(TEN)  # c8 and c9 fail
    failures = {"c8": "inconclusive", "c9": "inconclusive"}
    before = gated_run(TEN, "11111111--", manifest={"unfinished": 2})
    links = tuple(
        link.model_copy(
            update={"failure": failures.get(link.case_id, link.failure), "answer": "unknown"}
        )
        for link in before.links
    )
    before = before.model_copy(update={"links": links})
    found = one(tmp_path, "new_failures: {}", run, before)
    assert not found.passed
    assert found.reason == (
        "the judging of the baseline was stopped early (2 questions left), so who failed "
        "before is not known; run the same  misslink evaluate  command again"
    )
    worse = one(tmp_path, "new_failures: {}", gated_run("0" + TEN[1:]), before)
    assert worse.cases == ("c0", "c8", "c9"), "c0 is one whatever the others are"
    assert worse.reason.startswith("3 questions have a failure mode now and had not")
    assert any("the baseline was stopped early (2 questions" in n for n in worse.notes)
    assert one(tmp_path, "new_failures: {at_most: 2}", run, before).passed, "even if both are new"


def test_a_selection_beside_new_failures_is_one_of_them(tmp_path):
    run, before = gated_run("0011111100"), gated_run(TEN)
    for gate in ("new_failures: {at_most: 1}, tier: A", "new_failures: {tier: A, at_most: 1}"):
        found = one(tmp_path, gate, run, before)
        assert (found.passed, found.cases) == (True, ("c0",))
        assert found.document()["selection"]["tier"] == "A"
    found = one(tmp_path, "new_failures: {tier: A}, category: odd", run, before)
    assert found.reason == "no question of the run has tier 'A' and category 'odd'"


CRASHED = "11111111xx"  # as if it were 1.0


@pytest.mark.parametrize("test", ["value", "paired"])
def test_a_regression_fails_where_the_app_failed_on_questions_that_had_a_value(tmp_path, test):
    gate = f"name: recall_at_1, regression_max: 0.03, regression_test: {test}"
    found = one(tmp_path, gate, gated_run(CRASHED), gated_run(TEN))
    assert found.estimate.value == 1.0, "it looks better"
    assert not found.passed
    assert found.reason == (
        "2 questions have no value of recall@1 now that had one: the app failed on 2 questions"
    )
    assert found.cases == ("c8", "c9")
    assert found.document()["lost"] == ["c8", "c9"]


def test_a_regression_of_a_number_that_is_no_mean_fails_too(tmp_path):
    gate = "metric: link.risk_given_all, regression_max: 0.03"
    run, before = gated_run("1111111111xx"), gated_run("111111111111")
    found = one(tmp_path, gate, run, before)
    assert not found.passed
    assert "the app failed on 2 questions" in found.reason
    assert one(tmp_path, gate, gated_run("111111111100"), before).passed


def test_against_numbers_alone_fewer_questions_with_a_failed_app_fail(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("gates: [{metric: recall@1, regression_max: 0.1}]", encoding="utf-8")
    (found,) = decide_gates(
        gated_run(CRASHED), read_criteria(path), numbers_of(gated_run(TEN))
    ).outcomes
    assert not found.passed
    assert found.reason == (
        "recall@1 is over 8 questions now and was over 10: the app failed on 2 questions"
    )
    same = decide_gates(gated_run(TEN), read_criteria(path), numbers_of(gated_run("1111111000")))
    assert same.passed


def test_a_question_on_which_the_app_failed_before_too_is_not_lost(tmp_path):
    gate = "name: recall_at_1, regression_max: 0.03, regression_test: paired"
    assert one(
        tmp_path, gate, gated_run("11111110xx"), gated_run("11111110xx"[:8] + "0x")
    ).change.unmeasured == {"c8": "app_failed"}
    run = gated_run("11111111xx")
    assert one(tmp_path, gate, run, gated_run("11111110xx")).passed


def test_what_is_left_out_is_noted_at_every_gate_that_leaves_it_out(tmp_path):
    gates = [
        "metric: recall@1, threshold: 0.5",
        "metric: fully_faithful, threshold: 0.5",
        "metric: link.failures.retrieval_miss, at_most: 0.5",
        "metric: errors, at_most: 0.5",
    ]
    notes = [gate.notes for gate in decided(tmp_path, gates, gated_run(CRASHED)).outcomes]
    for name, told in zip(
        ("recall@1", "fully_faithful", "link.failures.retrieval_miss"), notes, strict=False
    ):
        assert f"The app failed on 2 questions; {name} leaves them out." in told
    assert notes[3] == ()


def test_errors_are_a_share_that_is_good_when_low(tmp_path):
    value = metric_value(gated_run(CRASHED), "errors")
    assert (value.estimate.value, value.estimate.n, value.estimate.method) == (0.2, 10, "wilson")
    assert value.lower_is_better
    found = one(tmp_path, "name: errors, at_most: 0.05", gated_run(CRASHED))
    assert found.reason == "errors is 20%, above the ceiling of 5%"
    assert one(tmp_path, "name: errors, at_most: 0.05", gated_run(TEN)).passed


def test_what_the_app_failed_on_is_not_covered():
    """8 scored, 1 whose app failed, 1 with nothing to judge: 8 of 9."""
    run = gated_run("111111111x", "11111111-x")
    value = metric_value(run, "coverage.faithfulness").estimate
    assert (value.value, value.n) == (pytest.approx(8 / 9), 9)


def test_why_there_was_nothing_to_measure():
    run = gated_run("11x")
    traces = (run.traces[0].model_copy(update={"unmeasured": "no retriever seen"}), run.traces[2])
    found = unmeasured_cases(run.model_copy(update={"traces": traces}))
    assert found == {
        "c0": "retrieval_unknown",
        "c1": "no_trace",
        "c2": "app_failed",
    }


def test_a_graded_gold_set_is_gated_by_ndcg_too(tmp_path):
    run = gated_run(TEN)
    graded = run.cases[0].model_copy(update={"relevant": {**run.cases[0].relevant, "other": 2}})
    run = run.model_copy(update={"cases": (graded, *run.cases[1:])})
    recall, ndcg = "metric: recall@1, threshold: 0.1", "metric: ndcg@10, threshold: 0.1"
    assert [note for note in decided(tmp_path, [recall], run).notes if "ndcg@10" in note]
    assert not [note for note in decided(tmp_path, [recall, ndcg], run).notes if "ndcg@10" in note]
