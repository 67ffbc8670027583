"""Mutants have the fault that they are said to have, and nothing else."""

from collections import Counter
from dataclasses import replace

import pytest

from good_runs import K, good_run
from misslink.calibration.verdicts import hash_verdicts
from misslink.failure_modes import OWNERS
from misslink.retrieval import retrieval_outcome
from misslink.selftests.faults import FAULTS
from misslink.selftests.good_cases import contains_sentence, find_good_cases
from misslink.selftests.harmless import HARMLESS
from misslink.selftests.mutants import plant
from misslink.types import Trace


@pytest.fixture(scope="module")
def run():
    return good_run(18)


@pytest.fixture(scope="module")
def good(run):
    return find_good_cases(run, k=K)


@pytest.fixture(scope="module")
def planted(good):
    return plant(good, n=9)


def of_kind(planted, name):
    return [mutant for mutant in planted.mutants if mutant.kind.name == name]


def test_all_kinds_find_a_place(planted):
    counts = Counter(mutant.kind.name for mutant in planted.mutants)
    assert counts.keys() == FAULTS.keys() | HARMLESS.keys()
    assert {kind.owner for kind in FAULTS.values()} <= set(OWNERS)
    assert all(counts[name] <= (9 if name in FAULTS else 3) for name in counts)
    assert len({mutant.case.id for mutant in planted.mutants}) == len(planted.mutants)


def test_traces_stay_valid(planted):
    for mutant in planted.mutants:
        trace = Trace.model_validate_json(mutant.trace.model_dump_json())
        assert trace == mutant.trace
        assert trace.case_id == mutant.case.id
        assert [p.rank for p in trace.retrieved] == list(range(1, len(trace.retrieved) + 1))
        assert set(trace.prompted or ()) <= {passage.id for passage in trace.retrieved}


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("passage_removed", "miss"),
        ("passage_filtered", "miss"),
        ("dropped_from_prompt", "miss"),
        ("cut_in_prompt", "partial"),
        ("passages_disagree", "hit"),
        ("number_changed", "hit"),
        ("unanswerable_flag", "not_needed"),
    ],
)
def test_the_labels_see_what_was_planted(planted, kind, level):
    for mutant in of_kind(planted, kind):
        assert retrieval_outcome(mutant.case, mutant.trace, K).retrieval == level


def test_nothing_left_in_the_prompt_holds_the_answer(good, planted):
    answers = {case.case.id: case for case in good}
    for name in ("passage_removed", "passage_filtered", "dropped_from_prompt", "cut_in_prompt"):
        for mutant in of_kind(planted, name):
            texts = [passage.text for passage in mutant.trace.context(K)]
            sentences = answers[mutant.origin].sentences
            assert not any(
                contains_sentence(text, sentence) for text in texts for sentence in sentences
            )
            assert mutant.trace.answer != answers[mutant.origin].answer


def test_prompts_show_what_the_traces_say(good, planted):
    answers = {case.case.id: case for case in good}
    for mutant in of_kind(planted, "passage_removed") + of_kind(planted, "cut_in_prompt"):
        source = answers[mutant.origin].sources[0]
        assert source.text not in mutant.trace.prompt
        for passage in mutant.trace.context(K):
            assert passage.text in mutant.trace.prompt


def test_near_and_far_ones_take_turns(planted):
    counts = Counter(mutant.distance for mutant in of_kind(planted, "wrong_reference"))
    assert counts["near"] >= 4
    assert counts["far"] >= 4


def test_removed_passages_rank_below_the_cutoff_where_a_deeper_search_was_seen(good, planted):
    removed = of_kind(planted, "passage_removed")
    assert {mutant.trace.deeper[0].rank for mutant in removed} == {K + 1, K + 40}
    assert all(not mutant.trace.deeper for mutant in of_kind(planted, "passage_filtered"))
    unsearched = [
        replace(case, trace=case.trace.model_copy(update={"depth": None})) for case in good
    ]
    removed = plant(unsearched, n=9, kinds=["passage_removed"]).mutants
    assert all(not mutant.trace.deeper for mutant in removed)


def test_one_seed_plants_the_same(good, planted):
    assert plant(good, n=9) == planted
    assert plant(good, n=9, seed=1) != planted
    assert plant(tuple(reversed(good)), n=9) == planted


def test_only_the_answer_of_a_harmless_mutant_changes(good, planted):
    traces = {case.case.id: case.trace for case in good}
    for mutant in planted.mutants:
        if mutant.kind.owner in {None, "generator"}:
            same = {"case_id": mutant.origin, "answer": traces[mutant.origin].answer}
            assert mutant.trace.model_copy(update=same) == traces[mutant.origin]


def test_ten_styles_of_marks(good):
    answers = set()
    for seed in range(40):
        answers |= {mutant.trace.answer for mutant in plant(good[:1], n=1, seed=seed, kinds=["marks_added"]).mutants}  # fmt: skip
    assert len(answers) == 10


def test_a_case_that_failed_takes_its_reference_where_its_passages_are_known(run):
    traces = [
        trace.model_copy(update={"answer": "The lighthouse of Nowhere fell in 1600."})
        for trace in run.traces
    ]
    links = [link.model_copy(update={"failure": "fabricated"}) for link in run.links]
    failed = run.model_copy(update={"traces": tuple(traces), "links": tuple(links)})
    good = find_good_cases(failed, k=K)
    assert len(good) == len(run.cases)
    assert {case.answer for case in good} == {case.references[0] for case in run.cases}
    unlabelled = failed.model_copy(
        update={"cases": tuple(case.model_copy(update={"references": ()}) for case in run.cases)}
    )
    assert find_good_cases(unlabelled, k=K) == []


def test_texts_without_numbers_or_names_leave_kinds_out(good):
    plain = [
        replace(
            case,
            case=case.case.model_copy(update={"references": ()}),
            trace=case.trace.model_copy(update={"answer": "la tour haute brille loin dehors"}),
        )
        for case in good[:6]
    ]
    planted = plant(plain, n=3)
    names = {mutant.kind.name for mutant in planted.mutants}
    left_out = {name for name, tried in planted.without_place.items() if name not in names}
    assert {"number_changed", "date_changed", "unit_changed", "negated"} <= left_out
    assert planted.without_place["number_changed"] == 6


def test_people_say_what_is_good(run):
    labelled = {case.id: float(number % 2) for number, case in enumerate(run.cases)}
    calibration = {
        "metric": "faithfulness",
        "labelled": labelled,
        "verdicts_sha256": hash_verdicts(run, "faithfulness"),
    }
    plain = run.model_copy(
        update={
            "calibration": calibration,
            "cases": tuple(case.model_copy(update={"references": ()}) for case in run.cases),
        }
    )
    good = find_good_cases(plain, k=K)
    assert {case.case.id for case in good} == {name for name, label in labelled.items() if label}
