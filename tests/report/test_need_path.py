"""Where needed facts were lost: the staircase, its cases, and one fact as an example."""

import re

import pytest

from example_run import example_run
from misslink.render.need_sentences import describe_need
from misslink.report.cases import build_case_entries
from misslink.report.explorer import count_facets
from misslink.report.need_path import find_example, read_need_path
from misslink.report.page import build_page, render_page
from misslink.types import Case, Link, Need, Passage, Run, Trace

OWNERS = {
    "retriever": "retrieval_miss", "generator": "fabricated", "prompt": "dropped_from_prompt",
    "index": "conflicting_sources", "gold_set": "gold_suspect",
}  # fmt: skip


def need(lost_at=None, text="It is 3.", **more):
    return Need(text=text, source="reference", lost_at=lost_at, **more)


def run_of(*cases):
    """A run with a case for each (owner or None, needs)."""
    links, traces = [], []
    for n, (owner, needs) in enumerate(cases):
        failure = OWNERS[owner] if owner else "passed"
        links.append(
            Link(case_id=f"c{n}", retrieval="hit", answer="faithful", failure=failure,
                 reason="-", needs=tuple(needs))
        )  # fmt: skip
        passage = Passage(id="p", text="It is 3.", rank=1)
        traces.append(Trace(case_id=f"c{n}", retrieved=(passage,), answer="It is 4."))
    return Run(
        manifest={"k": 3}, summary={"k": 3}, verdicts=(), links=tuple(links), traces=tuple(traces),
        cases=tuple(Case(id=link.case_id, question=f"What is {link.case_id}?") for link in links),
    )  # fmt: skip


LOST = need("rank", passage_id="q", true_rank=5, by="label")


def test_the_stages_add_up_from_needed_to_arrived():
    run = run_of(
        ("retriever", [LOST, LOST]), ("generator", [need("answer")]), (None, [need(), need()]),
        (None, [need("unknown")]),
    )  # fmt: skip
    path = read_need_path(run)
    assert (path.needed, path.arrived, path.title) == (
        6, 2, "2 of 6 needed facts are lost at rank",
    )  # fmt: skip
    assert [(stage.name, stage.lost, stage.left) for stage in path.stages] == [
        ("unknown", 1, 5), ("index", 0, 5), ("search", 0, 5), ("filter", 0, 5),
        ("rank", 2, 3), ("prompt", 0, 3), ("answer", 1, 2),
    ]  # fmt: skip
    assert [(stage.name, stage.owner) for stage in path.losses] == [
        ("unknown", "unknown"), ("rank", "retriever"), ("answer", "generator"),
    ]  # fmt: skip
    assert path.losses[1].cases == (("case=1", "What is c0?"),)
    assert path.losses[1].fragment == "lost_at=rank"


def test_what_was_not_located_is_no_loss():
    path = read_need_path(run_of(("retriever", [need("unknown"), need()])))
    assert path.title == "1 of 2 needed facts could not be located"


def test_an_app_that_does_well_has_a_path_without_losses():
    page = render_page(build_page(run_of((None, [need()]), (None, [need()]))))
    assert "All 2 needed facts arrive" in page
    assert 'class="lost"' not in page.partition('class="stairs"')[2].partition("</ol>")[0]


def test_one_lost_fact_of_five_hundred_is_seen():
    run = run_of(("retriever", [LOST]), *[(None, [need()] * 499)])
    rank = next(stage for stage in read_need_path(run).stages if stage.name == "rank")
    assert rank.bar.lost > 1.5  # percent of twelve rem: three pixels
    assert rank.bar.kept + rank.bar.lost < 100


def test_a_run_without_needs_has_no_path():
    assert read_need_path(run_of(("retriever", []))) is None


def test_answered_questions_alone_say_nothing_of_facts():
    asked = Need(text="What?", source="question", stated="states")
    assert read_need_path(run_of((None, [asked]), (None, [asked]))) is None
    lost = asked.model_copy(update={"stated": None, "lost_at": "rank"})
    assert read_need_path(run_of((None, [asked]), ("retriever", [lost]))).needed == 2


def test_the_example_follows_a_fact_of_the_owner_with_most_failures():
    run = run_of(("generator", [need("answer", by="label")]), ("retriever", [LOST]))
    example = find_example(run, ("retriever",))
    assert (example.fragment, example.owner) == ("case=2", "retriever")
    assert [(stop.kind, stop.text) for stop in example.stops] == [
        ("through", "It is 3."), ("lost", "rank 5, cutoff 3"),
        ("said", "It is 4."),
    ]  # fmt: skip
    said = find_example(run, ("generator",)).stops[-1]
    assert (said.kind, said.text) == ("lost", "It is 4.")
    assert find_example(run, ("prompt",)) is None
    assert find_example(run_of(("retriever", [need("rank")])), ("retriever",)) is None


@pytest.mark.parametrize(
    ("owner", "lost_at", "how"),
    [("index", "index", "does not say it"), ("gold_set", "data", "disagrees")],
)
def test_the_example_shows_where_a_passage_in_the_prompt_says_otherwise(owner, lost_at, how):
    run = run_of((owner, [need(lost_at, by="matcher", passage_id="p")]))
    kinds = [(stop.kind, stop.label) for stop in find_example(run, (owner,)).stops]
    assert kinds == [
        ("through", "Needed fact"), ("lost", f"Lost at {lost_at}"), ("said", "The answer says"),
    ]  # fmt: skip
    assert how in find_example(run, (owner,)).stops[1].text


def test_a_case_has_a_row_for_each_need():
    entry = build_case_entries(run_of(("retriever", [LOST, need()])), 3)[0]
    assert [(row.stage, row.what) for row in entry.needs] == [
        ("rank", "Lost at rank"), ("arrived", "Arrived"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lost_at", "more", "how"),
    [
        ("prompt", {"passage_id": "p"}, "then cut or altered"),
        ("prompt", {"passage_id": "q"}, "not in the prompt"),
        ("answer", {"stated": "contradicts"}, "says otherwise"),
        ("rank", {"stated": "states", "true_rank": 9}, "states it all the same"),
        ("unknown", {}, "no stage is blamed"),
    ],
)
def test_how_it_was_lost_is_said(lost_at, more, how):
    passage = Passage(id="p", text="It is 3. It is late.", rank=1)
    trace = Trace(case_id="c", retrieved=(passage,), prompted=("p",), shown={"p": "It is late."})
    assert how in describe_need(need(lost_at, **more), trace, 3)[1]


def test_the_bars_open_the_cases_that_the_list_finds():
    run = example_run()
    page = render_page(build_page(run))
    stairs = page.partition('class="stairs"')[2].partition("</ol>")[0]
    opened = set(re.findall(r'href="#lost_at=(\w+)"', stairs))
    assert set(count_facets(run)["lost_at"]) <= opened
