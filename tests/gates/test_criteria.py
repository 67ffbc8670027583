"""Criteria files: every form that is accepted, every mistake in one sentence with its place."""

import jsonschema
import pytest

from misslink.errors import InputError
from misslink.gates.criteria import criteria_schema, read_criteria


def read(tmp_path, text, name="ship.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_criteria(path)


def test_a_gate_is_read_with_everything_it_can_say(tmp_path):
    text = (
        "gates:\n"
        "  - name: a\n    metric: recall@5\n    threshold: 0.85\n    at_most: 1\n"
        "    regression_max: 0.03\n    regression_test: paired\n    severity: warning\n"
        "    tag: {year: 2024, sure: yes}\n    tier: 1\n    category: x\n    min_cases: 5\n"
        "    on: low\n"
    )
    (gate,) = read(tmp_path, text).gates
    assert gate.tag == {"year": "2024", "sure": "yes"}, "as the gold set writes them: as text"
    assert (gate.tier, gate.on, gate.severity, gate.min_cases) == ("1", "low", "warning", 5)
    assert (gate.threshold, gate.at_most, gate.regression_max) == (0.85, 1.0, 0.03)


def test_a_mapping_of_names_to_gates_is_the_same_as_a_list(tmp_path):
    as_list = "gates: [{name: retrieval_recall_at_5, threshold: 0.85}]"
    as_mapping = "gates:\n  retrieval_recall_at_5: {threshold: 0.85}"
    assert read(tmp_path, as_list).gates == read(tmp_path, as_mapping).gates


def test_json_is_read_also_with_tabs_and_exponents(tmp_path):
    found = read(tmp_path, '{\n\t"gates": [{"name": "a", "threshold": 85e-2}]}', "ship.json")
    assert found.gates[0].threshold == 0.85
    assert found.name == "ship"


def test_new_failures_stand_in_a_list_and_in_a_mapping(tmp_path):
    (one,) = read(tmp_path, "gates: [{new_failures: {failure: fabricated, at_most: 2}}]").gates
    assert (one.name, one.new_failures.at_most) == ("new_failures_fabricated", 2)
    text = "gates:\n  new_failures: {failure: fabricated, tier: A, severity: warning}"
    (two,) = read(tmp_path, text).gates
    assert (two.new_failures.tier, two.severity) == ("A", "warning")


ONE = "gates:\n  - {name: a, metric: recall@5, "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"ship.yaml: the file is empty"),
        ("- a", r"line 1: the file is not a mapping"),
        ("gates: []", r"line 1: it has no gate, so every run would pass"),
        ("gates: word", r"line 1: gates must be a list of gates, or a mapping"),
        ("gate: []", r"line 1: a criteria file has no 'gate'; did you mean 'gates'"),
        ("gates:\n  - word", r"line 2: gate 1 is not a mapping"),
        ("gates:\n  a: 0.5", r"line 2: gate 'a' is not a mapping.*write a: {threshold: 0.85}"),
        ("gates:\n  - {threshold: 0.5}", r"line 2: gate 1 has no name"),
        (ONE + "treshold: 0.5}", r"line 2: gate 'a': there is no 'treshold'; .*'threshold'"),
        (ONE + "min_cases: 2.5}", r"line 2, field 'min_cases': gate 'a': .*whole number"),
        (ONE + "threshold: true}", r"line 2, field 'threshold': gate 'a': this should be a number"),
        (ONE + "threshold: .nan}", r"gate 'a': this should be a finite number"),
        (ONE + "threshold: .inf}", r"gate 'a': this should be a finite number"),
        (ONE + "threshold: 85}", r"gate 'a': 85 is not between 0 and 1; write 0.85 for 85%"),
        (ONE + "threshold: 85%}", r"should be a number such as 0.85 \(it is '85%'\)"),
        (ONE + "threshold: -0.1}", r"gate 'a': -0.1 is not between 0 and 1"),
        (ONE + "regression_max: -1}", r"gate 'a': this should be at least 0"),
        (ONE + "regression_max: 1}", r"a change of 1 is never exceeded; write 0.03 for 3 points"),
        (
            ONE + "threshold: 0, at_most: 1}",
            r"line 2: gate 'a': every run passes, as recall",
        ),
        (ONE + "threshold: 0}", r"every run passes"),
        (
            "gates:\n  - {metric: retrieval.recall@2, regression_max: 3}",
            r"3 is not between 0 and 1; write 0.03 for 3%",
        ),
        (
            "gates:\n  - {metric: slices.tag.a.metrics.recall@2, at_most: 3}",
            r"3 is not between 0 and 1",
        ),
        (
            "gates:\n  - {metric: link.attributable_fraction, regression_max: 1}",
            r"a change of 1 is never exceeded",
        ),
        ("gates:\n  - {metric: link.attributable_fraction, at_most: 5}", r"5 is not at most 1;"),
        (
            "gates:\n  - {metric: link.risk_difference, regression_max: 2}",
            r"2 is not between -1 and 1; write 0.02 for 2%",
        ),
        ("gates:\n  - {metric: coverage.faithfulness.failed, at_most: -1}", r"-1 is not between 0"),
        (
            "gates:\n  - name: a\n    threshold: 0.5\n    regression_max:\n",
            r"line 4, field 'regression_max': gate 1: 'regression_max' is empty; give a value",
        ),
        (
            "gates:\n  - name: a\n    threshold: 0.5\n    tag:\n      lang:\n",
            r"line 5, field 'lang': gate 1: 'lang' is empty",
        ),
        ("gates:\n  a: {threshold: 0.5, category: null}", r"gate 'a': 'category' is empty"),
        ("gates:\n  - new_failures:\n", r"line 2, field 'new_failures': .* is empty"),
        ("gates:\n  - new_failures: {failure: }", r"'failure' is empty"),
        (
            "gates:\n  - new_failures: {failure: fabricated, retrieval: miss}",
            r"takes failure or retrieval, not both",
        ),
        (
            "gates:\n  - {new_failures: {tier: A}, tier: B}",
            r"line 2: gate 'new_failures': 'tier' is both in new_failures and next to it; remove one",
        ),
        ("gates:\n  - {new_failures: {}, on: low}", r"is a count and takes no on"),
        ("gates:\n  - {new_failures: {}, regression_test: value}", r"takes no regression_test"),
        ("gates:\n  - {new_failures: {}, threshold: 0.5}", r"new_failures cannot be combined"),
        ("gates:\n  - new_failures: {retrieval: hit}", r"'miss' or 'partial' \(it is 'hit'\)"),
        (ONE + f"threshold: {'9' * 6000}" + "}", r"line 2: this number is too long"),
        (ONE + "severity: eror}", r"'error' or 'warning' \(it is 'eror'\); .*'error'"),
        (ONE + "tier: A}", r"line 2: gate 'a': it has no limit"),
        (ONE + "threshold: 0.5, at_most: 0.4}", r"no value is at least 0.5 and at most 0.4"),
        (ONE + "threshold: 0.5, on: high}", r"on: high is for at_most"),
        (ONE + "at_most: 0.5, on: low}", r"on: low is for a threshold"),
        (ONE + "at_most: 1, regression_test: paired}", r"needs regression_max"),
        (ONE + "new_failures: {}}", r"new_failures cannot be combined"),
        (ONE + "threshold: 0.5, threshold: 0.6}", r"line 2: 'threshold' is repeated here"),
        (
            ONE + "threshold: 1}\n  - {name: a, threshold: 1}",
            r"line 3: gate 'a' repeats the one in line 2",
        ),
        ("gates:\n  - {new_failures: {failure: retrieval_mis}}", r"'retrieval_miss'\?"),
        (
            "gates:\n  - {new_failures: {failur: passed}}",
            r"there is no 'failur'; did you mean 'failure'",
        ),
        ("gates: &a\n  - *a", r"line 1: YAML anchors and aliases are not read"),
        ("gates: !!python/object/apply:os.system ['x']", r"line 1: YAML tags"),
        ("gates: " + "[" * 5000, r"line 1: this is more than 30 levels deep"),
        ("gates:\n  - {name: a", r"this is not YAML"),
        ("gates: \x07", r"this is not YAML"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as raised:
        read(tmp_path, text)
    assert "\n" not in str(raised.value)


def test_a_metric_that_is_no_share_may_have_any_limit(tmp_path):
    text = (
        "gates: [{name: latency, at_most: 12}, {metric: usage.cost, at_most: 3.5}, "
        "{metric: coverage.faithfulness.failed, at_most: 3}, {metric: cases, at_most: 500}]"
    )
    assert [gate.at_most for gate in read(tmp_path, text).gates] == [12, 3.5, 3, 500]


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({"gates": [{"name": "a", "threshold": 0.5}]}, True),
        ({"gates": {"a": {"at_most": 1}}}, True),
        ({"gates": [{"new_failures": {"failure": "fabricated"}}]}, True),
        ({"gates": [{"name": "a", "treshold": 0.5}]}, False),
        ({"gates": [{"name": "a", "severity": "fatal"}]}, False),
        ({"gates": [{"name": "a", "threshold": None}]}, False),
        ({"gates": [{"new_failures": {"retrieval": "miss"}}]}, True),
        ({}, False),
    ],
)
def test_the_schema_takes_what_is_read(document, fits):
    checker = jsonschema.Draft202012Validator(criteria_schema())
    assert checker.is_valid(document) is fits


def test_criteria_in_toml_are_read_and_broken_toml_is_called_so(tmp_path):
    path = tmp_path / "ship.toml"
    path.write_text('[[gates]]\nname = "hit_at_5"\nmetric = "hit@5"\nthreshold = 0.5\n')
    assert read_criteria(path).gates[0].threshold == 0.5
    path.write_text("[[gates]\nname = 3")
    with pytest.raises(InputError, match=r"line 1: this is not valid TOML"):
        read_criteria(path)
