"""Numbers in documents by others: what is one, and what is missing with a reason."""

from __future__ import annotations

import pytest

from misslink.deciding.documents import number_at
from misslink.files.numbers import estimate_of, finite
from misslink.report.documents import estimate_in
from misslink.types import Estimate


@pytest.mark.parametrize("value", [True, "3", None, [3], float("nan"), float("-inf"), 10**400])
def test_what_is_no_finite_number_is_none(value):
    assert finite(value) is None


def test_an_estimate_is_read_as_it_was_written():
    found = Estimate(value=0.6, low=0.5, high=0.7, n=87, method="wilson")
    assert estimate_of(found.model_dump()) == found


@pytest.mark.parametrize("wrong", [{"n": "many"}, {"value": float("nan")}, {"high": None}])
def test_a_damaged_estimate_is_missing_and_the_gate_and_the_report_say_the_same(wrong):
    entry = {"value": 0.6, "low": 0.5, "high": 0.7, "n": 87, "method": "wilson", **wrong}
    found = estimate_of(entry)
    assert found.value is None
    assert "the run's entry cannot be read" in found.reason
    assert number_at({"mrr": entry}, "mrr", n=1) == estimate_in({"mrr": entry}, "mrr") == found
