"""Bad answers by exposure: the tables, within groups, corrected, and replayed."""

import pytest

from example_run import HOSTILE, estimate, missing
from misslink.report.association import (
    adjust_associations,
    contingency_tables,
    correct_association,
    describe_case_replays,
    read_replay,
)
from misslink.report.page import build_page
from misslink.types import Case, Link, Run
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _linked(counted):
    return counted.cases, counted.fragment


def _with(run, **link):
    summary = run.summary | {"link": run.summary["link"] | link}
    return run.model_copy(update={"summary": summary})


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            {"p": 0.03, "method": "m"},
            "differs between the groups by more than chance would explain (p = 0.030, m)",
        ),
        (
            {"p": 0.3, "method": "m"},
            "differs between the groups no more than chance would explain (p = 0.30, m)",
        ),
        (
            {"p": None, "reason": "one group"},
            "Whether the risk difference differs between the groups was not tested: one group",
        ),
    ],
)
def test_heterogeneity_is_said_in_words(run, test, said):
    document = run.summary["link"]["adjusted"] | {"heterogeneity": test}
    (table,) = adjust_associations(_with(run, adjusted=document))
    change, heterogeneity, left_out = table.notes
    assert said in heterogeneity
    assert change.startswith("It changes to")
    assert left_out.endswith("1 group (5 cases).")


def test_the_warning_says_on_how_many_cases_the_adjusted_numbers_rest(run):
    (table,) = adjust_associations(run)
    assert table.warning.endswith("The adjusted numbers rest on 31 of 36 cases.")
    calm = run.summary["link"]["adjusted"] | {"warning": None}
    assert adjust_associations(_with(run, adjusted=calm))[0].warning == ""


@pytest.mark.parametrize(
    ("trend", "note"),
    [
        ({"p": 0.0004, "slope": -0.16}, "answers falls as more of the relevant passages"),
        ({"p": 0.0004, "slope": 0.16}, "answers rises as more of the relevant passages"),
        ({"p": 0.4, "method": "exact"}, "No trend beyond chance is seen (p = 0.40, exact)."),
        ({"p": None, "reason": "too few cases"}, "A trend was not tested: too few cases."),
    ],
)
def test_the_trend_stands_under_the_table(run, trend, note):
    assert note in " ".join(contingency_tables(_with(run, trend=trend))[0].notes)


def test_corrected_numbers_stand_beside_those_as_judged_and_the_judge_s_line_says_so(run):
    found = correct_association(run)

    assert [shown.value for shown in found.rows[0][1:]] == ["2 of 4", "61%"]
    assert (
        found.brief == "Corrected for the judge's errors, the attributable fraction is 43% [3, 70]."
    )
    assert "do not differ by more than chance would explain (p = 0.40)" in found.note
    judge, _ = build_page(run.model_copy(update={"calibration": None})).judge
    assert "72% of unfaithful ones unfaithful" in judge


FAILURES = {"miss": "retrieval_miss", "hit": "fabricated", "not_needed": "should_have_abstained"}


def link_of(number, retrieval, answer):
    bad = answer == "unfaithful"
    return Link(
        case_id=f"c{number}",
        retrieval=retrieval,
        answer=answer,
        failure=FAILURES.get(retrieval, "inconclusive") if bad else "passed",
        reason="-",
    )


def run_of(*outcomes, share=None, verdicts=()):
    """A run of cases with these outcomes, and the table that they count up to."""
    links = [link_of(number, *one) for number, one in enumerate(outcomes, 1)]
    rows = {"miss": "none", "partial": "some", "hit": "all"}
    table = {name: {"bad": 0, "good": 0} for name in rows.values()}
    for link in links:
        if link.retrieval in rows and link.answer in ("unfaithful", "faithful"):
            table[rows[link.retrieval]]["bad" if link.answer == "unfaithful" else "good"] += 1
    n = sum(sum(row.values()) for row in table.values())
    return Run(
        manifest={"judge": "heuristic"},
        cases=tuple(Case(id=link.case_id, question="?") for link in links),
        traces=(),
        verdicts=verdicts,
        links=tuple(links),
        summary={
            "link": {
                "exposure": "labels",
                "table": {**table, "left_out": len(links) - n},
                "attributable_fraction": share or estimate(1.0, 0.22, 1.0, n),
                "risk_given_none": estimate(0.67, 0.21, 0.94, 3),
                "risk_given_all": estimate(0.0, 0.0, 0.15, 21),
            }
        },
    )


MISS, GOOD, HIT = ("miss", "unfaithful"), ("hit", "faithful"), ("hit", "unfaithful")
NONE, UNSEEN = ("not_needed", "unfaithful"), ("unknown", "unfaithful")


PART = ("partial", "unfaithful")


def test_a_count_leads_to_its_cases():
    (cross,) = contingency_tables(run_of(MISS, MISS, PART, *[GOOD] * 10, HIT, NONE))
    none, some, all_ = cross.rows

    assert none.label == "None of them"
    assert [_linked(one) for one in (none.bad, none.good)] == [(2, "ids=1,2"), (0, "")]
    assert _linked(some.bad) == (1, "ids=3")
    assert _linked(all_.bad) == (1, "ids=14")
    assert cross.left_out == 1


def test_a_count_that_the_links_do_not_bear_out_leads_nowhere():
    run = run_of(MISS, *[GOOD] * 10)
    table = {"none": {"bad": 5, "good": 0}, "all": {"bad": 0, "good": 10}}
    summary = {"link": {**run.summary["link"], "table": table}}

    (cross,) = contingency_tables(run.model_copy(update={"summary": summary}))
    assert _linked(cross.rows[0].bad) == (5, "")
    assert cross.rows[2].good.fragment.startswith("ids=2,3")


def test_wrong_answers_lead_to_what_is_wrong_by_the_reference():
    run = run_of(MISS, *[GOOD] * 10)
    links = tuple(
        link.model_copy(update={"correct": link.retrieval == "hit"}) for link in run.links
    )
    table = {"none": {"bad": 1, "good": 0}, "all": {"bad": 0, "good": 10}}
    summary = {"link_correctness": {"exposure": "labels", "table": table}}
    run = run.model_copy(update={"links": links, "summary": summary})

    (wrong,) = contingency_tables(run)
    assert (wrong.bad, wrong.good) == ("Wrong", "Right")
    assert _linked(wrong.rows[0].bad) == (1, "ids=1")


def test_a_run_without_a_table_has_none():
    assert contingency_tables(run_of()) == ()


def _with_replay(run, **parts):
    return run.model_copy(update={"replay": run.replay | parts})


def test_a_fraction_that_may_be_nothing_says_so(run):
    lost = _with_replay(run, causal_fraction=estimate(0.05, -0.2, 0.1, 98))
    assert read_replay(lost).causal_words.endswith("missed passages; not enough data to tell")
    little = _with_replay(run, causal_fraction=estimate(0.0, -0.2, 0.05, 98))
    assert read_replay(little).causal_words.endswith("caused by missed passages: at most 5%")
    gone = _with_replay(run, causal_fraction=missing("another judge"))
    assert read_replay(gone).causal.brief == "not measured: another judge"


def test_what_was_not_replayed_is_counted_by_reason(run):
    assert read_replay(run).skipped == (
        "2 cases: the missed passage has no text", f"1 case: {HOSTILE[0]}",
    )  # fmt: skip


def test_a_case_says_what_each_arm_gave(run):
    texts = describe_case_replays(run)
    (text,) = texts["with-exit"]
    assert text == (
        "Confirmed by replay, caused by a missed passage: answer of the run: unfaithful, "
        "missed passages first: good, placebo: unfaithful."
    )
    assert "Flaky: an irrelevant change turns the answer, too." in texts[HOSTILE[0]][0]
    entries = build_page(run).cases.entries
    assert next(entry for entry in entries if entry.id == "with-exit").replays == (text,)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"turned": True, "confirmed": False}, "Fixed by replay, and not confirmed"),
        ({"confirmed": False}, "Not confirmed by replay"),
        ({"failure": "passed", "turned": True}, "Broken by the missed passage"),
        ({"failure": "passed"}, "Not broken by the missed passage"),
        (
            {"outcomes": {"observed": "good"}},
            (
                "Not confirmed by replay: answer of the run: good. The answer is true by the missed "
                "passage; only its evidence was missing."
            ),
        ),
        ({"note": "1 of 2 missed"}, "Not confirmed by replay. 1 of 2 missed."),
    ],
)
def test_a_case_that_was_not_confirmed_says_what_happened(run, row, words):
    case = {"case_id": "x", "failure": "retrieval_miss"} | row
    (text,) = describe_case_replays(_with_replay(run, cases=[case]))["x"]
    assert text.startswith(words)
    assert "Confirmed" not in text


def test_several_causes_are_named_and_the_owners_counted(run):
    case = {"case_id": "x", "failure": "retrieval_miss", "confirmed": True,
            "cause": "missed_passage+distractor"}  # fmt: skip
    replayed = _with_replay(run, cases=[case])
    assert describe_case_replays(replayed)["x"] == (
        "Confirmed by replay, caused by a missed passage together with a distracting passage.",
    )
    assert read_replay(run).owners == (
        "Replay confirms the owner of 27 of 2 replayed failures: retriever 26, generator 1. "
        "The app answered 2.6 times a failure."
    )
    other = replayed.model_copy(
        update={"replay": replayed.replay | {"cases": [case | {"owner": "generator"}]}}
    )
    assert "The run names another owner in 1 of them." in read_replay(other).owners
    assert [label for label, _ in read_replay(run).arms][:2] == [
        "its verdict again", "missed passages first"
    ]  # fmt: skip


def test_reused_answers_are_counted(run):
    kept = _with_replay(run, usage={"generations_kept": 20})
    assert "20 answers of the app reused" in read_replay(kept).facts
