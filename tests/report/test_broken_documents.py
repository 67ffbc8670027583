"""A document that does not fit is refused with its file; no other error comes of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.report.page import build_page, render_page
from proven_run import proven_run

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
    max_leaves=8,
)  # fmt: skip


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


@pytest.mark.slow
@settings(max_examples=40)  # each makes a whole page
@given(
    name=st.sampled_from(
        ["replay", "whatif", "map", "audit", "selftest", "calibration", "link", "diagnosis"]
    ),
    path=st.lists(st.integers(0, 8), min_size=1, max_size=5),
    value=JSON,
)
def test_a_document_however_broken_gives_a_page_or_names_its_file(name, path, value):
    if name in ("link", "diagnosis"):
        summary = RUN.summary | {name: _broken(RUN.summary[name], path, value)}
        broken = RUN.model_copy(update={"summary": summary})
    else:
        broken = RUN.model_copy(update={name: _broken(getattr(RUN, name), path, value)})
    try:
        html = render_page(build_page(broken))
    except InputError as refused:
        expected = "summary" if name in ("link", "diagnosis") else name
        if refused.path != f"{expected}.json":
            raise
    else:
        assert html.endswith("</html>\n")
