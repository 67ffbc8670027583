"""Gold sets that hypothesis makes."""

from hypothesis import strategies as st

from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem
from misslink.types import Case

IDS = st.text("abcdefghij", min_size=1, max_size=3)
# Made once: a strategy that is made in each draw is checked in each, which takes as long as to draw.
CASE = {
    "question": st.text("xyz ?", min_size=1).filter(str.strip),
    "relevant": st.dictionaries(
        st.sampled_from(["p1", "p2", "d#1", "d#2", "e#1"]), st.integers(0, 2)
    ),
    "relevant_any": st.sampled_from([[], [["p1", "p2"], ["d#1"]]]),
    "evidence": st.dictionaries(st.sampled_from(["a text", "A  TEXT"]), st.just(1)),
    "references": st.lists(st.sampled_from(["one", "two"]), unique=True),
    "category": st.sampled_from([None, "simple", "odd"]),
    "tags": st.dictionaries(st.sampled_from(["topic", "source"]), st.just("d")),
}


@st.composite
def cases(draw, most=12):
    ids = draw(st.lists(IDS, unique=True, min_size=1, max_size=most))
    return tuple(
        Case(id=case_id, **{name: draw(value) for name, value in CASE.items()}) for case_id in ids
    )


def gold(cases, name="gold.jsonl"):
    places = {case.id: SourceItem(None, name, at) for at, case in enumerate(cases, 1)}
    return GoldSet(tuple(cases), name, places)
