"""A clean gold set with its corpus, made by hypothesis, and faults to plant in it."""

from hypothesis import strategies as st

from misslink.goldset.checks.passage_search import PassageSearch
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem
from misslink.types import Case, Passage

# Passages and questions share no word, and no two of either are alike.
PLACES = ["Oban", "Mull", "Iona", "Skye", "Rum", "Eigg", "Muck", "Coll", "Tiree", "Jura"]
THINGS = [
    "granite quarries", "herring nets", "woollen mills", "copper kettles", "oak barrels",
    "slate roofs", "peat fires", "barley fields", "iron anchors", "beeswax candles",
]  # fmt: skip
ASKED = [
    "which trade fed most families", "what did fishermen mend", "how was cloth made",
    "with what did people boil water", "where was whisky kept", "what covered houses",
    "how were rooms heated", "which crop grew best", "what held boats", "what lit churches",
]  # fmt: skip


def passage_text(at):
    return (
        f"In the old days {PLACES[at]} lived by its {THINGS[at]}, and nothing else on the island "
        f"was worth as much. Every spring {THINGS[at]} were counted, and the count went to a clerk."
    )


def evidence_text(at):
    return f"In the old days {PLACES[at]} lived by its {THINGS[at]}"


def corpus(many=10):
    return [Passage(id=f"doc#{at}", text=passage_text(at), rank=at + 1) for at in range(many)]


@st.composite
def clean(draw, least=3):
    """Cases of different passages, each labelled by id, by evidence or by both, in any order."""
    chosen = draw(st.lists(st.integers(0, 9), unique=True, min_size=least, max_size=10))
    kinds = [draw(st.sampled_from(["id", "evidence", "both"])) for _ in chosen]
    return [a_case(at, kind) for at, kind in zip(chosen, kinds, strict=True)]


def a_case(at, kind="id", **more):
    labels = {
        "relevant": {f"doc#{at}": 1} if kind != "evidence" else {},
        "evidence": {evidence_text(at): 1} if kind != "id" else {},
    }
    question = f"{ASKED[at].capitalize()}?"
    return Case(**{"id": f"case-{at}", "question": question, **labels, **more})


def gold_of(cases, name="gold.jsonl"):
    places = {case.id: SourceItem(None, name, at) for at, case in enumerate(cases, 1)}
    return GoldSet(tuple(cases), name, places)


TEXTS = PassageSearch(corpus())
