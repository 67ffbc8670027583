"""What judge and rules find of the mutants, and how it is counted."""

import json

import pytest

import misslink
from good_runs import K, good_run
from knowing_judge import KnowingJudge, YesSayer
from misslink.errors import InputError
from misslink.examples import load_example
from misslink.judge.config import JudgeConfig
from misslink.render.selftest_sentences import (
    KIND_LABELS,
    describe_selftest,
    selftest_groups,
    selftest_notes,
)
from misslink.selftests.faults import FAULTS
from misslink.selftests.good_cases import find_good_cases
from misslink.selftests.harmless import HARMLESS
from misslink.selftests.mutants import plant
from misslink.selftests.runner import selftest_figures
from misslink.types import Estimate, Link

JUDGE = "openai:test-judge"


@pytest.fixture(scope="module")
def run():
    return good_run(18)


@pytest.fixture(scope="module")
def good(run):
    return find_good_cases(run, k=K)


def asked(run, script, server, n):
    server.script = script
    judge_config = JudgeConfig(base_url=server.url)
    return misslink.selftest(run, judge=JUDGE, n=n, cache=None, judge_config=judge_config)


@pytest.mark.slow
def test_a_judge_that_knows_all_finds_everything_with_its_owner(run, good, judge_server):
    script = KnowingJudge(good, plant(good, n=3).mutants)
    document = asked(run, script, judge_server, n=3).document()
    assert document["found"]["value"] == document["owner_right"]["value"] == 1
    assert document["false_alarm"]["value"] == 0
    assert document["usage"]["calls"] >= document["mutants"] + document["harmless"]
    assert document["cases"] == 18
    assert not document["not_judged"]
    wrong = {name: kind["cases"] for name, kind in document["kinds"].items() if kind["cases"]}
    assert wrong == {}


@pytest.mark.slow
def test_a_judge_that_says_yes_to_all_is_not_to_be_trusted(run, judge_server):
    document = asked(run, YesSayer(), judge_server, n=3)
    assert document.found.value < 0.6
    assert describe_selftest(document).judge == "do not use"
    assert document.kinds["refusal"].found.value == 0


@pytest.mark.slow
def test_three_judges_are_told_apart_in_the_first_line(judge_server):
    run = good_run(45)
    good = find_good_cases(run, k=K)
    script = KnowingJudge(good, plant(good, n=30).mutants, right=0.9)
    documents = [
        misslink.selftest(run, n=30, cache=None),
        asked(run, script, judge_server, n=30),
        asked(run, YesSayer(), judge_server, n=30),
    ]
    heuristic, most, yes = (describe_selftest(document) for document in documents)
    assert "roles of two names" in heuristic.line  # its own blind spot
    assert (most.judge, yes.judge) == ("trust", "do not use")
    assert "roles of two names" not in most.line
    assert documents[1].false_alarm.value == pytest.approx(0.1, abs=0.08)
    assert len({heuristic.line, most.line, yes.line}) == 3


def made_link(mutant, failure):
    return Link(
        case_id=mutant.case.id,
        retrieval="hit",
        answer="unfaithful",
        failure=failure,
        reason="planted",
        unexplained=False,
    )


def test_counts_by_hand(good):
    planted = plant(good, n=2, kinds=["number_changed", "stale_copy", "marks_added"])
    names = [mutant.kind.name for mutant in planted.mutants]
    assert names == ["number_changed", "number_changed", "stale_copy", "stale_copy", "marks_added"]
    failures = ["fabricated", "inconclusive", "conflicting_sources", "fabricated", "passed"]
    links = [made_link(m, f) for m, f in zip(planted.mutants, failures, strict=True)]
    run = good_run(6)
    judged = [
        run.verdicts[0].model_copy(update={"case_id": mutant.case.id, "status": "scored"})
        for mutant in planted.mutants
    ]
    document = selftest_figures(planted, links, judged, seed=0).document()
    assert (document["mutants"], document["harmless"], document["not_judged"]) == (4, 1, 0)
    assert document["found"]["value"] == 0.75  # what is left undecided was not found
    assert document["owner_right"]["value"] == pytest.approx(2 / 3)
    assert document["false_alarm"]["value"] == 0
    kind = document["kinds"]["stale_copy"]
    assert (kind["named"], kind["expected_owner"]) == ({"index": 1, "generator": 1}, "index")
    assert kind["near"]["n"] + kind["far"]["n"] == 2
    assert Estimate.model_validate(kind["owner_right"]).low < 0.5
    # Without a verdict the undecided mutant was not judged, and enters no number.
    lost = selftest_figures(planted, links, judged[:1] + judged[2:], seed=0).document()
    assert (lost["mutants"], lost["not_judged"]) == (3, 1)
    assert lost["found"]["value"] == 1


def test_too_few_good_cases_are_one_sentence():
    with pytest.raises(
        InputError, match="4 of 4 cases of this run are good, and a selftest needs 5"
    ):
        misslink.selftest(good_run(4), cache=None)
    with pytest.raises(InputError, match="--n is 0"):
        misslink.selftest(good_run(6), n=0, cache=None)
    with pytest.raises(InputError, match="name one with --judge"):
        misslink.selftest(good_run(6), judge="none", n=1, cache=None)


def test_traces_without_prompts_and_references_have_mutants_too():
    document = misslink.selftest(good_run(9, prompts=False, references=False), n=2, cache=None)
    left_out = {"wrong_reference", "stale_copy", "part_left_out", "dropped_from_prompt"}
    assert left_out <= document.left_out.keys()  # what a run cannot see is not planted
    for name in ("passage_removed", "number_changed"):
        assert document.kinds[name].owner_right.value == 1
    notes = list(selftest_notes(document))
    assert any("None of 9 cases has a place for it" in note for note in notes)


def test_every_kind_has_its_words(run):
    assert KIND_LABELS.keys() == FAULTS.keys() | HARMLESS.keys()
    document = misslink.selftest(run, n=1, cache=None)
    rows = [row for _, _, kinds in selftest_groups(document) for row in kinds]
    assert len(rows) == len(document.kinds)


@pytest.mark.slow
def test_the_function_adds_its_result_to_the_run_and_shows_it_in_a_notebook(tmp_path):
    folder = tmp_path / "run"
    misslink.evaluate(**load_example("ferry"), out=folder)
    tested = misslink.selftest(folder, n=1, cache=None)
    saved = json.loads((folder / "selftest.json").read_text(encoding="utf-8"))
    assert tested.document()["found"] == saved["found"]
    assert tested.found.n == tested.mutants == saved["mutants"] > 0
    assert "harmless" in tested._repr_html_()
