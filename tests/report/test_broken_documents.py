"""Documents of any shape read as what is there, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.render.json_fields import JsonFields
from misslink.report.html import render_page
from misslink.report.page import build_page
from proven_run import proven_run

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "number", "count", "text"),
    [
        (3, 3.0, 3, ""),
        (0.5, 0.5, 0, ""),
        (True, None, 0, ""),
        (float("nan"), None, 0, ""),
        (10**400, None, 10**400, ""),
        ("3", None, 0, "3"),
        (None, None, 0, ""),
        ([1], None, 0, ""),
    ],
)
def test_a_value_of_another_kind_reads_as_absent(value, number, count, text):
    fields = JsonFields({"x": value})
    assert (fields.number("x"), fields.count("x"), fields.text("x")) == (number, count, text)


def test_rows_are_the_objects_of_an_array():
    rows = JsonFields({"x": [{"a": 1}, 2, None, {"b": 2}]}).rows("x")
    assert [row.values for row in rows] == [{"a": 1}, {"b": 2}]
    assert all(JsonFields({"x": value}).rows("x") == () for value in ({"a": 1}, "ab", None))


def _broken(document, path, value):
    """`document` with the part at `path` (a choice at each level) replaced by `value`."""
    if not path or not isinstance(document, dict | list) or not document:
        return value
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = keys[path[0] % len(keys)]
    copy = document.copy()
    copy[key] = _broken(document[key], path[1:], value)
    return copy


RUN = proven_run()


@settings(deadline=None)
@given(
    name=st.sampled_from(["replay", "whatif", "map", "link", "diagnosis"]),
    path=st.lists(st.integers(0, 8), min_size=1, max_size=5),
    value=JSON,
)
def test_no_document_however_broken_keeps_the_page_from_being_built(name, path, value):
    if name in ("link", "diagnosis"):
        summary = RUN.summary | {name: _broken(RUN.summary[name], path, value)}
        broken = RUN.model_copy(update={"summary": summary})
    else:
        broken = RUN.model_copy(update={name: _broken(getattr(RUN, name), path, value)})
    assert render_page(build_page(broken)).endswith("</html>\n")
