"""Coverage of the association by exposure, as benchmarks/association_coverage.py measures it."""

import pytest

import association_coverage
from association_coverage import JUDGES, LINKS, simulate_scenario
from misslink.stats import clustered

LABELLED = "100 labels of the run"


def test_labels_correct_a_judge_that_errs_more_after_hits_and_the_judge_alone_misleads(monkeypatch):
    monkeypatch.setattr(clustered, "DRAWS", 500)
    scenario = (LINKS["no link"], JUDGES["better after misses"], (300, 60), 8)
    rows = {(row.method, row.name): row for row in simulate_scenario("made", *scenario)}
    assert rows[LABELLED, "risk_difference"].coverage >= 6 / 8
    assert rows[LABELLED, "risk_given_all"].coverage >= 6 / 8
    assert rows["judge alone", "risk_given_all"].coverage <= 0.3


@pytest.mark.slow
def test_intervals_cover_with_clusters_differential_error_and_strong_links(monkeypatch):
    monkeypatch.setattr(clustered, "DRAWS", association_coverage.DRAWS)
    monkeypatch.setattr(
        association_coverage, "OTHER_LABELS", ()
    )  # what other labels give is not asserted
    measured = association_coverage.measure(40)
    for name in association_coverage.NAMES:
        for method in (LABELLED, "perfect judge"):
            rows = [row for row in measured if (row.method, row.name) == (method, name)]
            assert sum(row.coverage for row in rows) / len(rows) >= 0.93
