"""The first screen: modes by owner, failures by exposure, fixes, one example."""

from __future__ import annotations

import re

from example_run import example_run
from misslink.linking.findings import find
from misslink.report.page import build_page, render_page
from misslink.report.summary import read_first_screen
from misslink.types import Run
from proven_run import proven_run


def html(run):
    return render_page(build_page(run))


def first_screen(run):
    return read_first_screen(run, find(run))


def test_failures_stand_by_owner_before_what_passed():
    modes = first_screen(example_run()).modes
    assert modes[0] == ("Retrieval miss", "retriever", 2, "failure=retrieval_miss")
    owners = [owner for _, owner, _, _ in modes]
    failed = [owner for owner in owners if owner]
    assert failed == sorted(failed, key=["retriever", "index", "prompt", "generator"].index)
    assert owners[: len(failed)] == failed
    assert sum(count for _, _, count, _ in modes) == len(example_run().links)
    bar = re.findall(r'<rect class="part \w+" x="[\d.]+" width="([\d.]+)"', html(example_run()))
    assert round(sum(map(float, bar))) == 1000


def test_few_cases_are_counts_and_no_percentages():
    screen = first_screen(example_run())
    assert [(level, outcome) for level, outcome, _ in screen.exposure] == [
        ("none", "miss"), ("some", "partial"), ("all", "hit"),
    ]  # fmt: skip
    rows = html(example_run()).partition('class="exposure"')[2].partition("</table>")[0]
    assert re.findall(r"strong\">(.*?)</td>", rows) == ["2 of 4", "1 of 1", "3 of 5"]
    assert "95%" not in rows
    assert screen.exposure_title == "Not enough data to tell whether missing passages matter"


def test_a_bound_says_up_to_and_only_a_whole_gain_is_printed():
    rows = html(proven_run()).partition('class="fixes"')[2].partition("</table>")[0].split("<tr>")
    fixes = {re.search(r'">([^<]+)</a>', row)[1]: row for row in rows[1:]}
    assert ">up to 3</td>" in fixes["Rerank the first 50"]
    assert "saves" not in fixes["Larger k"]  # its interval includes 0
    assert "saves 4.2 [1, 8] answers" in fixes["Add keyword search"]


def test_the_example_is_a_claim_that_a_missed_passage_contradicts():
    example = first_screen(example_run()).example
    assert example["claim"] == "The with statement swallows every exception"
    assert (example["relation"], example["rank"]) == ("contradicts it", "rank 17")
    assert example["fragment"] == "case=14"


def test_a_run_of_nothing_and_one_without_a_judge_state_nothing_about_answers():
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert first_screen(empty).modes == first_screen(empty).exposure == ()
    links = tuple(link.model_copy(update={"failure": None}) for link in example_run().links)
    unjudged = example_run().model_copy(update={"links": links, "verdicts": ()})
    screen = first_screen(unjudged)
    assert (screen.modes, screen.exposure, screen.example) == ((), (), None)
