"""Feedback is of a kind and has a value of that kind."""

from __future__ import annotations

import pytest

from misslink.errors import InputError
from misslink.live.requests import check_feedback


@pytest.mark.parametrize(
    ("kind", "value"), [("thumbs", True), ("task_done", 0), ("cost", 0.1), ("my own", -3)]
)
def test_what_fits_is_a_number(kind, value):
    assert check_feedback(kind, value) == float(value)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("thumbs", 0.5, "1 is good"),
        ("click", -1, "at least 0"),
        ("cost", float("inf"), "number"),
        ("my own", float("nan"), "number"),
        ("my own", "1", "number"),
        ("my own", 10**400, "too large"),
        (" ", 1, "kind"),
        ("k" * 201, 1, "kind"),
    ],
)
def test_what_does_not_fit_is_refused(kind, value, said):
    with pytest.raises(InputError, match=said):
        check_feedback(kind, value)
