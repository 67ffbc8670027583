"""One file and one line make a new metric, judge or exporter."""

import pytest

from misslink.errors import InputError
from misslink.registry import Registry, exporters, judged_metrics, judges, rank_metrics


def test_built_in_names_are_found_by_importing_their_rooms():
    assert {"faithfulness", "answer_relevance", "context_relevance", "context_utilization"} <= set(
        judged_metrics.names()
    )
    assert {"abstention", "correctness"} <= set(judged_metrics.names())
    assert {"openai", "heuristic"} <= set(judges.names())
    assert len(rank_metrics.names()) >= 5


def test_an_unknown_name_gives_the_nearest_known_one():
    with pytest.raises(InputError, match="unknown judge 'opanai'; did you mean 'openai'"):
        judges.get("opanai")


def test_a_name_written_short_gives_the_one_that_it_stands_for():
    with pytest.raises(InputError, match="unknown exporter 'md'; did you mean 'markdown'"):
        exporters.get("md")


@pytest.mark.parametrize("name", ["m", "dm", "mx", "", "x"])
def test_a_name_that_stands_for_none_gives_all(name):
    with pytest.raises(
        InputError, match=f"unknown exporter '{name}'; known: csv, github-issues, html"
    ):
        exporters.get(name)


def test_an_unknown_judge_is_told_also_what_is_no_name():
    with pytest.raises(InputError, match=r"openai-responses, .*cascade, FILE\.py:NAME, none$"):
        judges.get("mine")


def test_two_things_of_one_name_are_refused():
    shelf = Registry("thing", (), "misslink.nothing")
    shelf.register("a")(Registry)
    assert shelf.get("a") is Registry
    with pytest.raises(InputError, match="two things are called 'a'"):
        shelf.register("a")(InputError)
