"""Numbers in documents by others: what is one, and what is missing with a reason."""

import itertools

import pyarrow as pa
import pytest
from pyarrow import csv

from misslink.comparison.run_metrics import find_estimate
from misslink.io.numbers import as_finite, parse_decimal, parse_estimate
from misslink.types import Estimate


@pytest.mark.parametrize("value", [True, "3", None, [3], float("nan"), float("-inf"), 10**400])
def test_what_is_no_finite_number_is_none(value):
    assert as_finite(value) is None


def test_an_estimate_is_read_as_it_was_written():
    found = Estimate(value=0.6, low=0.5, high=0.7, n=87, method="wilson")
    assert parse_estimate(found.model_dump()) == found


@pytest.mark.parametrize("wrong", [{"n": "many"}, {"value": float("nan")}, {"high": None}])
def test_a_damaged_estimate_is_missing_and_the_gate_says_the_same(wrong):
    entry = {"value": 0.6, "low": 0.5, "high": 0.7, "n": 87, "method": "wilson", **wrong}
    found = parse_estimate(entry)
    assert found.value is None
    assert "the run's entry cannot be read" in found.reason
    assert find_estimate({"mrr": entry}, "mrr", n=1) == found


def read_by_arrow(text):
    """The number, or None, as the reader of columns finds it."""
    try:
        table = csv.read_csv(
            pa.py_buffer(f"{text},\n".encode()),
            read_options=csv.ReadOptions(column_names=["number", "rest"]),
            convert_options=csv.ConvertOptions(
                column_types={"number": pa.float64()}, null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table["number"][0].as_py()


def test_a_decimal_number_is_what_the_quick_reader_of_columns_takes_for_one():
    """Else a file would be read or refused by which of its lines is odd, not by what it holds."""
    texts = ["".join(t) for n in (1, 2, 3) for t in itertools.product("1+-.eE0_x", repeat=n)]
    texts += ["".join(t) for t in itertools.product("1-.e", repeat=4)]
    texts += ["1_000", "\uff11", "\u0661", "0x10", "1e400", "Infinity", "-inf", "1f", "true", "1 2"]
    told = {text: parse_decimal(text) for text in texts}
    assert told == {text: read_by_arrow(text) for text in texts}
    assert sum(value is not None for value in told.values()) > 50


@pytest.mark.parametrize(
    "text", ["1_000", "\uff13", "\u00b2", "", " 1", "1\n", "nan(1)", "\u0131nf"]
)
def test_digits_are_those_from_0_to_9_and_nothing_stands_beside_them(text):
    assert parse_decimal(text) is None
