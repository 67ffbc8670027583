"""Verdicts from run folders, with what their errors may depend on."""

from __future__ import annotations

import pytest

from labelled import METRIC
from misslink.calibration import verdicts_from_run
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
    found = verdicts_from_run(run(), METRIC, "reports/today")
    one = found.items["a"]
    assert (one.length, one.score, one.label) == (4, 0.4, False)
    assert one.covariates == {
        "passages": 2.0, "evidence_position": 2.0, "category": "law", "tag t": "x",
    }  # fmt: skip
    assert found.judge == "cascade:heuristic,openai:m"
    assert found.prompts == {"examination": "ab" * 32}
    assert found.identity == {"judge_identity.temperature": "0.0"}


def test_a_tag_model_is_the_model_that_answered_and_a_question_groups_its_answers():
    whole = run()
    case = Case(id="a", question="What  is IT?", tags={"model": "gpt", "t": "x"})
    one = verdicts_from_run(whole.model_copy(update={"cases": (case,)}), METRIC, "run").items["a"]
    assert one.covariates["model"] == "gpt"
    assert one.covariates["tag t"] == "x"
    assert one.group == "what is it?"


def test_how_many_passages_were_seen_is_not_told_where_the_manifest_has_no_k():
    whole = run()
    manifest = {name: value for name, value in whole.manifest.items() if name != "k"}
    found = verdicts_from_run(
        whole.model_copy(update={"manifest": manifest}), METRIC, "reports/today"
    )
    assert found.items["a"].covariates == {"category": "law", "tag t": "x"}


def test_a_metric_that_the_run_lacks_is_named_with_those_it_has():
    with pytest.raises(InputError, match="did you mean 'faithfulness'"):
        verdicts_from_run(run(), "faithfullness", "reports/today")
