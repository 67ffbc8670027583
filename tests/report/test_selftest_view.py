"""The selftest in the Trust view."""

import json

import pytest
from test_judge_trust import DOCUMENT as LABELLED

from attacks import ATTACKS, PWNED
from example_run import estimate, example_run, missing
from misslink.report.page import build_page, render_page
from misslink.report.selftest import read_selftest


def document(**more):
    kinds = {
        "number_changed": {
            "n": 40,
            "found": estimate(0.35, 0.22, 0.5, 40),
            "owner_right": estimate(0.93, 0.69, 0.99, 14),
            "expected_owner": "generator",
            "named": {"generator": 13, "unknown": 1},
            "near": estimate(0.2, 0.08, 0.42, 20),
            "far": estimate(0.5, 0.3, 0.7, 20),
            "cases": ["with-exit", "no-such-case"],
        },
        "refusal": {
            "n": 30,
            "found": estimate(1.0, 0.89, 1.0, 30),
            "owner_right": estimate(1.0, 0.89, 1.0, 30),
            "expected_owner": "generator",
        },
        "roles_exchanged": {
            "n": 3,
            "found": estimate(0.0, 0.0, 0.56, 3),
            "owner_right": missing("no fault was found"),
            "expected_owner": "generator",
        },
        "marks_added": {"n": 20, "false_alarm": estimate(0.05, 0.01, 0.24, 20), "cases": []},
    }
    return {
        "judge": "heuristic",
        "cases": 46,
        "mutants": 73,
        "harmless": 20,
        "found": estimate(0.8, 0.76, 0.84, 73),
        "owner_right": estimate(0.92, 0.88, 0.95, 58),
        "false_alarm": estimate(0.05, 0.01, 0.11, 20),
        "kinds": kinds,
        "left_out": {"unit_changed": 46},
        **more,
    }


def view(**more):
    made = json.loads(json.dumps(document(**more)))
    return read_selftest(example_run().model_copy(update={"selftest": made}))


def test_the_weakest_kind_of_an_owner_comes_first():
    tested = view()
    (owner, _, rows), (harmless, _, changed) = tested.groups
    assert (owner, harmless) == ("generator", "")
    assert [row.rate.value for row in rows] == ["0 of 3", "35%", "100%"]
    assert [row.weak for row in rows] == [False, True, False]  # 3 are too few for a weakness
    assert rows[1].distances == "near 20%, far 50%"
    assert len(rows[1].cases) == 1  # the other is in no run
    assert changed[0].owner_right is None
    assert tested.verdict == "trust"
    assert "a number changed" in tested.blind_spots
    assert [counts for *_, counts in tested.figures] == ["58 of 73 planted", "53 of 58 found", "1 of 20 changed"]  # fmt: skip
    assert len(tested.notes) == 1


@pytest.mark.parametrize(
    ("found", "alarms", "verdict"),
    [
        ((0.8, 0.76, 0.84), (0.05, 0.01, 0.11), "trust"),
        ((0.8, 0.7, 0.84), (0.05, 0.01, 0.11), "caution"),
        ((0.8, 0.76, 0.84), (0.1, 0.04, 0.25), "caution"),
        ((0.59, 0.5, 0.7), (0.0, 0.0, 0.1), "do not use"),
        ((1.0, 0.9, 1.0), (0.31, 0.2, 0.4), "do not use"),
    ],
)
def test_the_verdict_rests_on_both_intervals(found, alarms, verdict):
    numbers = {"found": estimate(*found, 70), "false_alarm": estimate(*alarms, 20)}
    assert view(**numbers).verdict == verdict


def test_nothing_measured_is_said():
    nothing = missing("none was planted")
    tested = view(found=nothing, owner_right=nothing, kinds={})
    assert tested.verdict == "not measured"
    assert tested.groups == ()


def test_another_judge_is_named():
    assert "not the judge of this run" in view(judge="openai:other").about
    assert "not the judge of this run" not in view().about


def test_what_people_labelled_says_what_is_found_of_natural_faults():
    calibration = {
        "metric": "faithfulness",
        "agreement": {"specificity": estimate(0.57, 0.4, 0.72, 40)},
    }
    run = example_run().model_copy(update={"selftest": document(), "calibration": calibration})
    assert "57% [40, 72], n = 40" in read_selftest(run).limits[0]
    assert len(read_selftest(run).limits) == len(view().limits) + 1


def test_the_page_shows_it_and_without_it_says_how_to_get_it():
    run = example_run().model_copy(update={"selftest": document()})
    html = render_page(build_page(run))
    assert 'id="selftest"' in html
    assert "misslink selftest RUN" not in html
    assert "misslink selftest RUN" in render_page(build_page(example_run()))


@pytest.mark.slow
@pytest.mark.parametrize("attack", [texts[0] for texts in ATTACKS.values()], ids=ATTACKS)
def test_a_hostile_document_stays_text(attack):
    kinds = {attack: {**document()["kinds"]["refusal"], "cases": [attack]}}
    made = document(judge=attack, kinds=kinds, left_out={attack: 3})
    html = render_page(build_page(example_run().model_copy(update={"selftest": made})))
    assert f"<script>{PWNED}" not in html
    assert "<img src=x" not in html


def test_figures_of_the_own_app_replace_those_of_public_data():
    run = example_run()
    tested = run.model_copy(update={"selftest": document(judge=run.manifest["judge"])})
    assert "80% [76, 84] of the planted faults" in build_page(tested).judge[0]
    assert "planted" not in build_page(run).judge[0]


def test_what_people_say_of_the_judge_comes_before_planted_faults():
    unlabelled = example_run().model_copy(update={"selftest": document()})
    labelled = unlabelled.model_copy(update={"calibration": LABELLED})
    for run, first, second in ((unlabelled, "selftest", "judge"), (labelled, "judge", "selftest")):
        html = render_page(build_page(run))
        assert html.index(f'<h2 id="{first}"') < html.index(f'<h2 id="{second}"')
        assert html.count('<h2 id="selftest"') == 1
