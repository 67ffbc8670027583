"""Coverage of the association by exposure, as benchmarks/stats/association_coverage.py measures it."""

import pytest

import association_coverage
from association_coverage import CHOSEN, NAMES, OTHERS, simulate_scenario
from misslink.stats import clustered
from misslink.stats.exposure import ExposedCases, powered_exposure_risks

LABELLED = "labels of the run"


def test_labels_correct_a_judge_that_errs_more_after_hits_and_the_judge_alone_misleads(monkeypatch):
    monkeypatch.setattr(clustered, "DRAWS", 500)
    wanted = "300 cases on 60 documents, no link, judge better after misses"
    (scenario,) = (each for each in CHOSEN if each.where == wanted)
    rows = {(row.method, row.name): row for row in simulate_scenario(scenario, 8)}
    assert rows[LABELLED, "risk_difference"].coverage >= 6 / 8
    assert rows[LABELLED, "risk_given_all"].coverage >= 6 / 8
    assert rows["judge alone", "risk_given_all"].coverage <= 0.3


def test_the_fewer_clusters_the_labels_are_of_the_wider_is_the_interval():
    """Of 40 labels, half of them bad: Student's t of 38 degrees of freedom, and of 2."""
    exposure, called = [0] * 80 + [2] * 80, [0.0, 1.0] * 80
    labels = [float(place % 4 > 1) if place % 80 < 40 else None for place in range(160)]
    width = {}
    for size in (1, 10):
        clusters = [place // size for place in range(160)]
        found = powered_exposure_risks(ExposedCases(exposure, called, clusters), labels)
        width[size] = found["risk_given_all"].high - found["risk_given_all"].low
    assert 0.28 < width[1] < 0.40
    assert width[10] > 0.9


@pytest.mark.slow
def test_intervals_cover_with_clusters_differential_error_and_strong_links(monkeypatch):
    monkeypatch.setattr(clustered, "DRAWS", association_coverage.DRAWS)
    for scenarios in (CHOSEN, OTHERS):
        rows = [row for each in scenarios for row in simulate_scenario(each, 10)]
        for name in NAMES:
            for method in (LABELLED, "perfect judge"):
                found = [row for row in rows if (row.method, row.name) == (method, name)]
                known = [row.coverage for row in found if row.coverage is not None]
                assert sum(known) / len(known) >= 0.93
