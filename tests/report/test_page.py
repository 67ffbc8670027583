"""What the report says, before anything is drawn."""

import re
from pathlib import Path

import pytest

from example_run import HOSTILE, example_run
from misslink.matching import load_fit
from misslink.matching.support import fit_figures
from misslink.pipeline.summary import metric_readings
from misslink.registry import judged_metrics, rank_metrics
from misslink.report import page as page_module
from misslink.report.glossary import _term_rows, metric_words, term_words
from misslink.report.page import build_page
from misslink.types import Case, Run, Trace


@pytest.fixture(scope="module")
def page():
    return build_page(example_run())


def _run(**parts):
    empty = {"manifest": {}, "cases": (), "traces": (), "verdicts": (), "links": (), "summary": {}}
    return Run(**{**empty, **parts})


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        ({"judge": "heuristic"}, "heuristic. Not compared"),
        ({"judge": "openai:some-model"}, "openai:some-model. Not compared with human labels"),
        ({"judge": "none"}, "not used. Only retrieval was measured."),
        ({}, "not recorded."),
    ],
)
def test_the_line_of_the_judge_says_what_it_is_and_whether_it_was_checked(manifest, line):
    assert build_page(_run(manifest=manifest)).judge[0].startswith(line)


def test_the_heuristic_judge_without_labels_shows_its_figures_of_public_data():
    manifest = {"judge": "heuristic", "judge_note": load_fit().note}
    line, basis = build_page(_run(manifest=manifest)).judge
    assert line.startswith("heuristic. On public data, of 10 answers it flags,")
    assert line.endswith("4 to 5 are unfaithful.")
    assert basis.startswith(f"It finds {fit_figures()['recall']:.0%}. ")
    assert "RAGTruth QA answers not used for fitting" in basis


def counts(cross):
    return [(row.bad.cases, row.good.cases) for row in cross.rows]


def test_the_table_of_wrong_answers_stands_beside_that_of_unfaithful_ones(page):
    unfaithful, wrong = page.crosses

    assert counts(unfaithful) == [(2, 2), (1, 0), (1, 3)]
    assert unfaithful.left_out == 5
    assert wrong.bad == "Wrong"
    assert counts(wrong) == [(1, 2), (0, 0), (2, 2)]


def test_causes_are_counted_from_the_links_and_point_at_their_cases(page):
    rows = {row.key: row for row in page.failures}

    assert next(iter(rows)) == "retrieval_miss"
    assert rows["retrieval_miss"].count == 2
    assert sum(row.count for row in rows.values()) == 14
    assert rows["retrieval_miss"].share.brief == "14% [4, 40]"  # Wilson for 2 of 14


def test_what_could_not_be_judged_is_counted_with_its_reason(page):
    generation = {one.shown.name: one for one in page.levels[1].metrics}

    assert generation["faithfulness"].why == ("3 failed: the reply was not JSON",)
    coverage = generation["faithfulness"].coverage
    assert (coverage.scored, coverage.skipped, coverage.failed) == (11, 0, 3)
    assert generation["fully_faithful"].coverage == coverage
    assert not generation["context_utilization"].shown.measured


def test_every_metric_that_is_shown_anywhere_is_explained(page):
    shown = {metric.shown.name for level in page.levels for metric in level.metrics}
    shown |= {name for axis in page.slices for name in axis.metrics}

    assert all("of a plugin" not in metric_words(name) for name in shown)


def test_a_metric_and_a_cause_of_one_name_are_told_apart():
    said = metric_words("over_refused")

    assert "the app declined" in said
    assert (
        "where the relevant passage never reached the prompt, the failure mode is a retrieval miss"
        in said
    )


def test_every_metric_has_words():
    parts = {part for name in judged_metrics.names() for part in metric_readings(name)}
    ranked = {name.partition("@")[0] for name in rank_metrics.names()}

    lacking = {name for name in {*parts, *ranked} if "of a plugin" in metric_words(name)}
    assert lacking == set()
    assert "of a plugin" in metric_words("my_own@5")
    assert metric_words("recall@5") == "Share of the relevant passages that are among the first 5."


@pytest.mark.parametrize(
    ("verdict", "advice"),
    [("trust", ""), ("caution", " Use it with caution."), ("distrust", " Do not trust it.")],
)
def test_a_calibrated_judge_is_described_by_people_s_labels(verdict, advice):
    counts = {"true_good": 40, "false_good": 3, "true_bad": 7, "false_bad": 5}
    known = {"verdict": verdict, "reasons": ["Specificity is 70%."], "confusion": counts}
    run = _run(manifest={"judge": "heuristic"}).model_copy(update={"calibration": known})
    assert build_page(run).judge == (
        f"heuristic. Of 12 answers it calls bad, annotators agree on 7.{advice}",
        "It finds 70% of their bad answers. Specificity is 70%.",
    )


def test_groups_come_worst_first_and_small_ones_last_and_marked(page):
    category = page.slices[0]

    assert [(group.name, group.small) for group in category.groups] == [
        ("negative", False), ("comparative", False), ("simple_factual", False), (HOSTILE[3], True),
    ]  # fmt: skip
    assert category.groups[1].fragment == "category=comparative"
    assert page.slices[1].groups[0].fragment == "tag=topic%3Afunctions"


def test_a_group_s_cases_are_found_by_its_field_or_where_no_case_has_that_by_its_tag():
    group = example_run().summary["slices"]["category"]["comparative"]
    summary = {"slices": {"tier": {"A": group}}}

    def fragment(**fields):
        cases = (Case(id="c", question="?", **fields), Case(id="d", question="?"))
        return build_page(_run(cases=cases, summary=summary)).slices[0].groups[0].fragment

    assert fragment(tier="A") == "tier=A"
    assert fragment(tags={"tier": "A"}) == "tag=tier%3AA"
    assert fragment(tier="A", tags={"tier": "B"}) == "tier=A"


def test_how_deep_retrievers_were_asked_is_told_where_they_were():
    def deepest(*depths):
        traces = tuple(Trace(case_id=str(n), depth=depth) for n, depth in enumerate(depths))
        return dict(build_page(_run(manifest={"depth": 100}, traces=traces)).manifest).get(
            "Depth of the deeper search"
        )

    assert deepest(None, 100, None) == "100"
    assert deepest(None) is None


def test_a_run_of_nothing_at_all_is_a_page_that_says_so():
    page = build_page(_run())

    assert page.title == "A RAG app"
    assert page.flow is None
    assert page.cases.entries == page.failures == page.crosses == page.slices == page.curves == ()
    assert page.steps == ()
    assert page.no_steps == "Nothing can be advised: this run has no cases."
    assert page.audits is page.used is None
    assert page.trusts == ()


def test_the_manifest_names_the_only_cases_that_were_asked_where_it_was_told_which():
    run = example_run()
    told = run.model_copy(update={"manifest": {**run.manifest, "inputs": {"cases": '["a", "b"]'}}})

    assert dict(build_page(told).manifest)["Only these cases"] == '["a", "b"]'
    assert "Only these cases" not in dict(build_page(run).manifest)


def test_the_glossary_is_sorted_and_every_section_of_the_page_has_its_terms():
    rows = _term_rows()
    assert {len(row) for row in rows} == {4}
    assert all(term and text.endswith(".") for term, text, *_ in rows)
    names = [row[0].casefold() for row in rows]
    assert names == sorted(set(names))
    templates = Path(page_module.__file__).parent / "templates"
    pages = "".join(path.read_text(encoding="utf-8") for path in templates.glob("*.jinja"))
    used = set(re.findall(r'(?:terms|defined)\((?:level, |\d, )?"(\w+)"\)', pages))
    assert len(used) > 8
    assert {key for row in rows for key in row[3].split(", ") if key} == used
    assert all(term_words(section) for section in used)
