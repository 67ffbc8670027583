"""What the report says, before anything is drawn."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, estimate, example_run, missing
from misslink.pipeline.summary import metric_readings
from misslink.registry import judged_metrics, rank_metrics
from misslink.report.glossary import metric_words
from misslink.report.page import build_page
from misslink.types import Case, Run, Trace
from proven_run import proven_run


@pytest.fixture(scope="module")
def page():
    return build_page(example_run())


def _run(**parts):
    empty = {"manifest": {}, "cases": (), "traces": (), "verdicts": (), "links": (), "summary": {}}
    return Run(**{**empty, **parts})


def _linked(value, low, high, n=100, wrong=None):
    link: dict = {
        "attributable_fraction": estimate(value, low, high, n),
        "risk_given_miss": estimate(0.57, 0.37, 0.76, 21),
        "risk_given_hit": estimate(0.09, 0.05, 0.17, 77),
        "risk_difference": estimate(0.48, 0.27, 0.67, 98),
        "risk_ratio": estimate(6.3, 2.9, 13.5, 98),
    }
    if wrong is not None:
        share = estimate(wrong, wrong - 0.3, wrong + 0.3, n)
        link["wrong"] = {"attributable_fraction": share}
    return build_page(_run(summary={"link": link})).headline


def test_the_headline_is_the_share_of_unfaithful_answers_that_go_with_a_miss():
    said = _linked(0.38, 0.24, 0.51)

    assert f"{said.share} {said.interval} {said.words}" == (
        "38% [24, 51] of unfaithful answers go with a retrieval miss"
    )
    assert "57% [37, 76] of answers were unfaithful (21 cases)" in said.paragraphs[0]
    assert "it was 9% [5, 17] (77 cases)" in said.paragraphs[0]
    assert "+48 points [27, 67], the ratio 6.3 times [2.9, 13.5]" in said.paragraphs[0]
    assert "association, not cause" in said.paragraphs[1]
    assert "includes 0" not in said.paragraphs[1]


def test_the_headline_admits_an_interval_over_zero_and_few_cases():
    said = _linked(0.38, -0.08, 0.61, n=9).paragraphs[1]

    assert "includes 0" in said
    assert "Only 9 cases" in said


def test_the_headline_does_not_claim_a_link_that_is_not_there():
    said = _linked(-0.2, -0.4, 0.1, wrong=-0.1)
    text = " ".join(said.paragraphs)

    assert said.share == ""
    assert said.words == "Unfaithful answers are no more frequent after a miss than after a hit"
    assert (
        "The attributable fraction, \N{MINUS SIGN}20% [\N{MINUS SIGN}40, 10], is not above 0"
        in text
    )
    assert "wrong by the reference are no more frequent after a miss" in text
    assert "go with a retrieval miss" not in text
    assert "could save" not in text


def test_the_headline_tells_the_share_of_wrong_answers_too():
    said = _linked(0.38, 0.24, 0.51, wrong=0.3)

    assert said.paragraphs[-1] == (
        "Of answers to questions with a passage to find that are wrong by the reference, "
        "30% [0, 60] go with a retrieval miss."
    )


@pytest.mark.parametrize(
    ("manifest", "summary", "reason"),
    [
        ({"judge": "none"}, {}, "no judge was asked"),
        (
            {"judge": "none"},
            {"link": {"attributable_fraction": missing("no cases")}},
            "no judge was asked",
        ),
        ({"judge": "heuristic"}, {}, "this run holds no links"),
        (
            {"judge": "heuristic"},
            {"link": {"attributable_fraction": missing("no answer is unfaithful")}},
            "no answer is unfaithful",
        ),
    ],
)
def test_a_headline_that_cannot_be_given_says_why(manifest, summary, reason):
    said = build_page(_run(manifest=manifest, summary=summary)).headline

    assert said.share == ""
    assert "not measured" in said.words
    assert reason in said.paragraphs[0]


@pytest.mark.parametrize(
    ("judge", "badge"),
    [
        ("heuristic", "heuristic judge"),
        ("heuristic:minilm", "heuristic judge"),
        ("openai:some-model", "not calibrated"),
        ("none", "no judge"),
        (None, "judge not recorded"),
    ],
)
def test_the_badge_says_how_far_to_trust_the_judge(judge, badge):
    assert build_page(_run(manifest={"judge": judge})).badge.text == badge


def test_one_number_a_level_at_the_run_s_own_cutoff(page):
    assert [one.shown.text for one in page.numbers] == [
        "54% [29, 78], n = 12", "55% [28, 79], n = 11", "57% [25, 84], n = 7",
    ]  # fmt: skip


def counts(cross):
    return [tuple(cell.count for cell in row) for row in (cross.miss, cross.hit)]


def test_the_table_of_wrong_answers_stands_beside_that_of_unfaithful_ones(page):
    unfaithful, wrong = page.crosses

    assert counts(unfaithful) == [(2, 2), (2, 3)]
    assert unfaithful.left_out == 5
    assert wrong.bad == "Wrong"
    assert counts(wrong) == [(1, 2), (2, 2)]


def test_causes_are_counted_from_the_links_and_point_at_their_cases(page):
    rows = {row.key: row for row in page.failures}

    assert [(key, row.count) for key, row in rows.items()][:2] == [
        ("retrieval_miss", 2), ("over_refused", 1),
    ]  # fmt: skip
    assert sum(row.count for row in rows.values()) == 14
    assert rows["retrieval_miss"].share.brief == "14% [4, 40]"  # Wilson for 2 of 14
    assert rows["retrieval_miss"].fragment == "failure=retrieval_miss"


def test_what_could_not_be_judged_is_counted_with_its_reason(page):
    generation = {one.shown.name: one for one in page.levels[1].metrics}

    assert generation["faithfulness"].why == ("3 failed: the reply was not JSON",)
    coverage = generation["faithfulness"].coverage
    assert (coverage.scored, coverage.skipped, coverage.failed) == (11, 0, 3)
    assert generation["fully_faithful"].coverage == coverage
    assert not generation["context_utilization"].shown.measured


def test_the_first_screen_says_the_risks_and_how_far_to_take_them_in_short():
    assert _linked(0.38, -0.08, 0.61, n=9).caution == (
        "This is association, not cause. Its interval includes 0: no link is established. "
        "Only 9 cases: a hint."
    )
    assert _linked(0.38, 0.2, 0.61).caution == "This is association, not cause."
    assert _linked(0.38, 0.2, 0.61).risks == (
        "After a miss 57% [37, 76] of answers were unfaithful (n = 21), "
        "after a hit 9% [5, 17] (n = 77)."
    )
    assert build_page(_run()).headline.caution == ""


def test_every_metric_that_is_shown_anywhere_is_explained(page):
    shown = {metric.shown.name for level in page.levels for metric in level.metrics}
    shown |= {name for axis in page.slices for name in axis.metrics}

    assert shown == set(dict(page.metrics))
    assert all(words and "outside misslink" not in words for words in dict(page.metrics).values())


def test_a_metric_and_a_cause_of_one_name_are_told_apart():
    said = metric_words("over_refused")

    assert "the app declined" in said
    assert (
        "where the needed passage never reached the prompt, the failure mode is a retrieval miss"
        in said
    )


def test_every_metric_of_the_package_has_words_and_one_from_elsewhere_says_that_it_is():
    parts = {part for name in judged_metrics.names() for part in metric_readings(name)}
    ranked = {name.partition("@")[0] for name in rank_metrics.names()}

    lacking = {name for name in {*parts, *ranked} if "outside misslink" in metric_words(name)}
    assert lacking == set()
    assert "outside misslink" in metric_words("my_own@5")


def test_the_sections_stand_in_the_page_s_order_and_each_is_there(page):
    assert [anchor for anchor, _ in page.sections] == [
        "flow", "next", "failures", "misses", "curve", "cases", "slices", "levels", "trust", "used",
        "reading",
    ]  # fmt: skip


def test_terms_are_explained_once():
    page = build_page(proven_run())
    names = [name for name, _ in page.terms]

    assert len(names) == len(set(names))
    assert "cut-off k" in names


@pytest.mark.parametrize(
    ("verdict", "badge", "warns"),
    [
        ("trust", "calibrated: trust it", False),
        ("caution", "calibrated: use with caution", True),
        ("distrust", "calibrated: do not trust it", True),
    ],
)
def test_a_calibrated_judge_gives_the_badge_its_verdict_and_first_reason(verdict, badge, warns):
    run = _run(manifest={"judge": "heuristic"})
    known = {"verdict": verdict, "reasons": ["Specificity is 55%.", "More."]}
    found = build_page(run.model_copy(update={"calibration": known})).badge

    assert (found.text, found.note, found.warns) == (badge, "Specificity is 55%.", warns)


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
            "Asked deeper to"
        )

    assert deepest(None, 100, None) == "100"
    assert deepest(None) is None


def test_a_run_of_nothing_at_all_is_a_page_that_says_so():
    page = build_page(_run())

    assert page.title == "A RAG app"
    assert page.flow is None
    assert page.cases.entries == page.failures == page.crosses == page.slices == ()
    assert page.steps == ()
    assert page.nothing == "Nothing can be advised: this run holds no cases."
    assert page.curve is page.audits is page.used is None
    assert page.trusts == ()
    assert all(not number.shown.measured for number in page.numbers)


def test_the_manifest_names_the_only_cases_that_were_asked_where_it_was_told_which():
    run = example_run()
    told = run.model_copy(update={"manifest": {**run.manifest, "inputs": {"cases": '["a", "b"]'}}})

    assert dict(build_page(told).manifest)["Only these cases"] == '["a", "b"]'
    assert "Only these cases" not in dict(build_page(run).manifest)
