"""Gold sets that hypothesis makes."""

from hypothesis import strategies as st

from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem
from misslink.types import Case

IDS = st.text("abcdefghij", min_size=1, max_size=3)
PASSAGES = st.dictionaries(st.sampled_from(["p1", "p2", "d#1", "d#2", "e#1"]), st.integers(0, 2))


@st.composite
def cases(draw, most=12):
    ids = draw(st.lists(IDS, unique=True, min_size=1, max_size=most))
    return tuple(
        Case(
            id=case_id,
            question=draw(st.text("xyz ?", min_size=1).filter(str.strip)),
            relevant=draw(PASSAGES),
            relevant_any=draw(st.sampled_from([[], [["p1", "p2"], ["d#1"]]])),
            evidence=draw(st.dictionaries(st.sampled_from(["a text", "A  TEXT"]), st.just(1))),
            references=draw(st.lists(st.sampled_from(["one", "two"]), unique=True)),
            category=draw(st.sampled_from([None, "simple", "odd"])),
            tags=draw(st.dictionaries(st.sampled_from(["topic", "source"]), st.just("d"))),
        )
        for case_id in ids
    )


def gold(cases, name="gold.jsonl"):
    places = {case.id: SourceItem(None, name, at) for at, case in enumerate(cases, 1)}
    return GoldSet(tuple(cases), name, places)
