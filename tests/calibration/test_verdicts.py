"""Verdicts of one metric, from a run or a file."""

import json

import pytest

from labelled import METRIC, verdict
from misslink.calibration import read_verdicts, verdicts_from_run
from misslink.errors import InputError
from misslink.types import Case, Passage, PromptRef, Run, Trace, Verdict


def run(**verdict_fields):
    passages = tuple(Passage(id=f"p{n}", text=f"text {n}", rank=n) for n in (1, 2, 3))
    prompt = PromptRef(name="examination", version=2, sha256="ab" * 32)
    said = Verdict(
        case_id="a", metric=METRIC, status="scored", value=0.5, label=False, probability=0.4,
        judge="openai:m", prompt=prompt, **verdict_fields,
    )  # fmt: skip
    inputs = {"judge_identity.temperature": "0.0", "k": "3"}
    return Run(
        manifest={"judge": "cascade:heuristic,openai:m", "k": 3, "inputs": inputs},
        cases=(Case(id="a", question="q", relevant={"p2": 1}, category="law", tags={"t": "x"}),),
        traces=(Trace(case_id="a", retrieved=passages, prompted=("p1", "p2"), answer="abcd"),),
        verdicts=(said,),
        links=(),
        summary={},
    )


def test_a_run_tells_what_errors_may_depend_on():
    found = verdicts_from_run(run(), METRIC, "reports/today", {"a"})
    one = found.items["a"]
    assert (one.length, one.score, one.label) == (4, 0.4, False)
    assert one.covariates == {
        "passages": 2.0, "evidence_position": 2.0, "category": "law", "tag t": "x",
    }  # fmt: skip
    assert found.judge == "cascade:heuristic,openai:m"
    assert found.prompts == {"examination": "ab" * 32}
    assert found.identity == {"judge_identity.temperature": "0.0"}


def test_of_a_case_without_a_label_only_the_verdict_is_held():
    one = verdicts_from_run(run(), METRIC, "reports/today", ()).items["a"]
    assert (one.score, one.label, one.status) == (0.4, False, "scored")
    assert (one.length, one.answer_hash, one.covariates, one.claims) == (None, None, {}, ())


def test_a_tag_model_is_the_model_that_answered_and_a_question_groups_its_answers():
    whole = run()
    case = Case(id="a", question="What  is IT?", tags={"model": "gpt", "t": "x"})
    other = whole.model_copy(update={"cases": (case,)})
    one = verdicts_from_run(other, METRIC, "run", {"a"}).items["a"]
    assert one.covariates["model"] == "gpt"
    assert one.covariates["tag t"] == "x"
    assert one.group == "what is it?"


def test_how_many_passages_were_seen_is_not_told_where_the_manifest_has_no_k():
    whole = run()
    manifest = {name: value for name, value in whole.manifest.items() if name != "k"}
    found = verdicts_from_run(
        whole.model_copy(update={"manifest": manifest}), METRIC, "reports/today", {"a"}
    )
    assert found.items["a"].covariates == {"category": "law", "tag t": "x"}


def test_a_metric_that_the_run_lacks_is_named_with_those_it_has():
    with pytest.raises(InputError, match="did you mean 'faithfulness'"):
        verdicts_from_run(run(), "faithfullness", "reports/today", {"a"})


def write(tmp_path, *rows):
    path = tmp_path / "verdicts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_three_fields_are_enough_also_in_csv(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("case_id,metric,value\na,faithfulness,0.25\nb,correctness,1\n")
    found = read_verdicts(path, METRIC)
    assert {name: one.score for name, one in found.items.items()} == {"a": 0.25}
    assert found.cases == {"a", "b"}


def test_the_probability_goes_before_the_value(tmp_path):
    path = write(tmp_path, {**verdict("a", 0.9), "probability": 0.3})
    assert read_verdicts(path, METRIC).items["a"].score == 0.3


def test_the_length_is_the_answers_or_else_the_claims(tmp_path):
    claims = [{"text": "abc"}, {"text": "de"}]
    path = write(
        tmp_path, verdict("a", 1, answer="four", claims=claims), verdict("b", 1, claims=claims),
        verdict("c", 1),
    )  # fmt: skip
    found = read_verdicts(path, METRIC).items
    assert [found[case].length for case in "abc"] == [4, 6, None]


@pytest.mark.parametrize("passages", [0, "0", [], {}])
def test_no_passage_is_a_number_of_passages(passages):
    found = read_verdicts([verdict("a", 1, passages=passages), verdict("b", 1)], METRIC).items
    assert (found["a"].covariates, found["b"].covariates) == ({"passages": 0.0}, {})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"metric": METRIC, "value": 1}], "line 1, field 'case_id': this field is required"),
        ([{"case_id": "a", "value": 1}], "line 1, field 'metric'"),
        ([verdict("a", 1), verdict("a", 0)], "line 2, field 'case_id'.*first on line 1"),
        (
            [verdict("a", 1), {"case_id": "b", "metric": METRIC, "valeu": 1}],
            "line 2, field 'valeu': there is no such field; did you mean 'value'",
        ),
        (
            [{"case_id": "b", "metric": METRIC, "outcome": 1}],
            "line 1, field 'value': this field is required",
        ),
        ([verdict("a", 1, metric="correctness")], "no verdict is of the metric 'faithfulness'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, rows, said):
    with pytest.raises(InputError, match=said):
        read_verdicts(write(tmp_path, *rows), METRIC)


def test_a_verdict_may_have_no_value_where_others_have_one(tmp_path):
    rows = verdict("a", 1), {"case_id": "b", "metric": METRIC, "value": None}
    found = read_verdicts(write(tmp_path, *rows), METRIC)
    assert [case.status for case in found.items.values()] == ["scored", "failed"]
    skipped = {"case_id": "b", "metric": METRIC, "status": "skipped", "reason": "declined"}
    assert read_verdicts(write(tmp_path, skipped), METRIC).items["b"].status == "skipped"


def test_pooled_verdicts_of_two_judges_are_of_no_one_judge(tmp_path):
    path = write(tmp_path, verdict("a", 1, judge="x"), verdict("b", 1, judge="y"))
    assert read_verdicts(path, METRIC).judge is None


@pytest.mark.parametrize("broken", [{"claims": "x"}, {"prompt": 5}, {"tags": [1]}, {"label": {}}])
def test_what_is_not_needed_may_be_of_any_shape(tmp_path, broken):
    found = read_verdicts(write(tmp_path, verdict("a", 0.5, **broken)), METRIC)
    assert found.items["a"].score == 0.5
