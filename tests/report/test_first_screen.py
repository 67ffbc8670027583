"""The first screen: modes by owner, failures by exposure, fixes, one example."""

from __future__ import annotations

from example_run import example_run
from misslink.linking.findings import find
from misslink.report.first_screen import read_first_screen
from misslink.types import Run
from proven_run import proven_run


def first_screen(run):
    return read_first_screen(run, find(run))


def test_failures_stand_by_owner_before_what_passed():
    modes = first_screen(example_run()).modes
    assert modes[0].label == "Retrieval miss"
    owners = [part.owner for part in modes]
    failed = [owner for owner in owners if owner]
    assert failed == sorted(failed, key=["retriever", "index", "prompt", "generator"].index)
    assert owners[: len(failed)] == failed
    assert sum(part.count for part in modes) == len(example_run().links)
    assert round(sum(part.width for part in modes)) == 1000
    assert modes[0].fragment == "failure=retrieval_miss"


def test_few_cases_are_counts_and_no_percentages():
    screen = first_screen(example_run())
    assert [(row.level, row.value) for row in screen.exposure] == [
        ("none", "2 of 4"),
        ("some", "1 of 1"),
        ("all", "3 of 5"),
    ]
    assert screen.exposure_title == "Not enough data to tell whether missing passages matter"


def test_a_bound_says_up_to_and_only_a_whole_gain_is_printed():
    fixes = {fix.label: fix for fix in first_screen(proven_run()).fixes}
    assert fixes["Rerank the first 50"].retrieves == "up to 3"
    assert fixes["Larger k"].avoided == ""  # its interval includes 0


def test_the_example_is_a_claim_that_a_missed_passage_contradicts():
    example = first_screen(example_run()).example
    assert example.claim == "The with statement swallows every exception"
    assert (example.relation, example.rank) == ("contradicts it", "rank 17")
    assert example.fragment == "case=14"


def test_a_run_of_nothing_and_one_without_a_judge_state_nothing_about_answers():
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert first_screen(empty).modes == first_screen(empty).exposure == ()
    links = tuple(link.model_copy(update={"failure": None}) for link in example_run().links)
    unjudged = example_run().model_copy(update={"links": links, "verdicts": ()})
    screen = first_screen(unjudged)
    assert (screen.modes, screen.exposure, screen.example) == ((), (), None)
