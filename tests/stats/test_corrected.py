import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.stats import attributable_fraction, correct_association, proportion
from misslink.types import Estimate

NAMES = (
    "risk_given_miss",
    "risk_given_hit",
    "risk_difference",
    "risk_ratio",
    "attributable_fraction",
)
cells = st.tuples(*[st.integers(0, 60)] * 4)


def judge(sensitivity, specificity):
    return {"sensitivity": proportion(*sensitivity), "specificity": proportion(*specificity)}


def test_the_judges_error_is_undone_exactly():
    # Truly bad: 60 % of 1,000 misses and 10 % of 2,000 hits. The judge calls 80 % of the bad ones
    # bad and 5 % of the good ones: 480 + 20 and 160 + 90.
    found = correct_association(500, 500, 250, 1750, **judge((950, 1000), (800, 1000))).estimates
    assert found["risk_given_miss"].value == pytest.approx(0.6)
    assert found["risk_given_hit"].value == pytest.approx(0.1)
    assert found["risk_difference"].value == pytest.approx(0.5)
    assert found["risk_ratio"].value == pytest.approx(6)
    assert found["attributable_fraction"].value == pytest.approx(1 - 0.1 / (800 / 3000))
    for estimate in found.values():
        assert estimate.low < estimate.value < estimate.high
        assert estimate.method == "rogan-gladen"


def test_a_perfect_judge_measured_often_leaves_the_table_as_it_is():
    table = (120, 90, 70, 700)
    found = correct_association(*table, **judge((100_000, 100_000), (100_000, 100_000))).estimates
    crude = attributable_fraction(*table)
    ours = found["attributable_fraction"]
    assert (ours.value, ours.low, ours.high) == pytest.approx(
        (crude.value, crude.low, crude.high), abs=0.01
    )


def test_the_fewer_labels_the_wider_the_interval():
    def width(labels):
        measured = judge((int(0.9 * labels), labels), (int(0.8 * labels), labels))
        found = correct_association(120, 90, 170, 600, **measured).estimates["risk_given_miss"]
        return found.high - found.low

    assert width(20) > 1.5 * width(100) > 1.5 * width(10_000)


def test_a_risk_below_0_is_cut_with_a_warning_and_not_certain():
    # 1 of 60 is called bad, where 10 % of good ones should be.
    found = correct_association(30, 20, 1, 59, **judge((45, 50), (45, 50)))
    assert "the risk given a hit would be outside of 0 to 1" in found.warning
    risk = found.estimates["risk_given_hit"]
    assert (risk.value, risk.low) == (0, 0)
    assert risk.high > 0.01
    assert found.estimates["risk_ratio"].value is None
    assert "no ratio" in found.estimates["risk_ratio"].reason
    assert found.estimates["attributable_fraction"].low < 0.98


@pytest.mark.parametrize("specificity", [(30, 100), (10, 100)])
def test_a_judge_no_better_than_chance_corrects_nothing_and_says_so(specificity):
    found = correct_association(30, 20, 10, 90, **judge((70, 100), specificity))
    assert "no better than chance" in found.warning
    for estimate in found.estimates.values():
        assert estimate.value is None
        assert "no better than chance" in estimate.reason


def test_a_table_that_the_judges_errors_cannot_have_made_is_not_corrected():
    # None of 500 is called bad by a judge that calls half of the good ones bad.
    found = correct_association(10, 10, 0, 500, **judge((500, 1000), (800, 1000)))
    assert "contradict each other" in found.warning
    assert all(estimate.value is None for estimate in found.estimates.values())


def test_an_unmeasured_judge_is_missing_not_perfect():
    unmeasured = Estimate.missing("no bad case was labelled")
    known = proportion(9, 10)
    found = correct_association(3, 4, 5, 60, sensitivity=known, specificity=unmeasured)
    assert found.warning is None
    assert found.estimates["risk_ratio"].reason == "the judge's specificity was not measured"


def test_an_empty_row_has_no_risk_and_leaves_the_other_its_own():
    found = correct_association(0, 0, 20, 60, **judge((90, 100), (80, 100))).estimates
    assert found["risk_given_miss"].reason == "no case with a miss"
    assert found["risk_difference"].value is None
    assert found["risk_given_hit"].value == pytest.approx((0.25 - 0.1) / 0.7)
    found = correct_association(20, 60, 0, 0, **judge((90, 100), (80, 100))).estimates
    assert found["attributable_fraction"].reason == "no case with a hit"


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="negative"):
        correct_association(-1, 2, 3, 4, **judge((9, 10), (9, 10)))


@settings(deadline=None, max_examples=40)
@given(cells, st.integers(5, 40), st.integers(5, 40))
def test_whatever_the_table_every_number_is_possible_and_repeats(table, good, bad):
    measured = judge((good, 40), (bad, 40))
    found = correct_association(*table, **measured, seed=6)
    assert found == correct_association(*table, **measured, seed=6)
    assert tuple(found.estimates) == NAMES
    for name, (least, most) in {
        "risk_given_miss": (0, 1),
        "risk_given_hit": (0, 1),
        "risk_difference": (-1, 1),
        "attributable_fraction": (float("-inf"), 1),
    }.items():
        estimate = found.estimates[name]
        if estimate.value is None:
            assert estimate.reason
        else:
            assert least <= estimate.low <= estimate.value <= estimate.high <= most
            assert estimate.low < estimate.high
