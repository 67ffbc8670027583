"""Which passages a question is tried from: by seed alone, documents in turn, what suits first."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.goldset.generation.candidates import CandidatePlan
from misslink.goldset.generation.corpus import PassageIndex, read_source_corpus
from misslink.goldset.generation.settings import GenerationSettings
from misslink.goldset.versions import apportion
from misslink.types import Passage
from question_writer import islands


def plan(n=20, seed=0, rows=None, **settings):
    rows = rows or islands(18)
    passages = [
        Passage(id=row["id"], text=row["text"], rank=rank, metadata=row.get("metadata", {}))
        for rank, row in enumerate(rows, 1)
    ]
    chosen = GenerationSettings(**settings)
    sources = read_source_corpus(passages, chosen)
    return CandidatePlan(
        sources, PassageIndex([one.text for one in passages], None, None), chosen, n, seed
    )


@given(
    st.integers(0, 500),
    st.dictionaries(st.text(max_size=3), st.floats(0.01, 50), min_size=1, max_size=8),
)
def test_shares_add_up_and_miss_the_exact_ones_by_less_than_one(n, weights):
    found = apportion(n, weights)
    assert sum(found.values()) == n
    total = sum(weights.values())
    assert all(abs(found[name] - n * weights[name] / total) < 1 for name in weights)


def test_the_same_seed_draws_the_same_and_another_one_other_passages():
    first, same, other = (plan(seed=seed).slots("simple_factual", 0, 5) for seed in (3, 3, 4))
    assert first == same != other


def test_more_questions_begin_with_the_same_ones():
    assert plan(100).slots("procedural", 0, 5) == plan(20).slots("procedural", 0, 5)


COUNTS = {"simple_factual": {1}, "comparative": {2}, "complex_factual": {2, 3}, "negative": {3}}


@pytest.mark.parametrize(("category", "counts"), COUNTS.items())
def test_a_slot_has_as_many_passages_as_its_kind_wants_and_none_twice(category, counts):
    slots = plan(200).slots(category, 0, 18)
    assert {len(slot.passages) for slot in slots} == counts
    assert all(len(set(slot.passages)) == len(slot.passages) for slot in slots)


def test_documents_come_in_turn():
    rows = [{**row, "metadata": {"source": f"file-{n % 3}"}} for n, row in enumerate(islands(18))]
    made = plan(90, rows=rows)
    firsts = [slot.passages[0] % 3 for slot in made.slots("simple_factual", 0, 18)]
    assert all(set(firsts[at : at + 3]) == {0, 1, 2} for at in range(0, 18, 3))


def test_attempts_are_limited_and_end():
    made = plan(4, attempts=2)
    wanted = made.wanted["simple_factual"]
    assert len(made.slots("simple_factual", 0, 1_000)) == 2 * wanted
    assert made.slots("simple_factual", 2 * wanted, 10) == []


def test_passages_with_dates_come_first_for_questions_of_time():
    about = "are sold along this quiet western shore by merchants of great patience and high renown"
    goods = ("Slate and wool", "Amber and herring", "Barley and timber", "Salt and honey")
    rows = [
        {"id": f"plain-{n}", "text": f"{each}, candles, ropes, nets, sails, tar {about}."}
        for n, each in enumerate(goods)
    ]
    dated = "Since 1904 the harbour opens at 07:30, and candles, ropes, nets, sails, tar"
    rows.insert(2, {"id": "dated", "text": f"{dated} {about}."})
    assert plan(50, rows=rows).slots("temporal", 0, 1)[0].passages[0] == 2


def test_personas_and_lengths_come_in_their_shares():
    made = plan(600, attempts=3)
    slots = [slot for name in made.wanted for slot in made.slots(name, 0, 54)]
    personas = Counter(slot.persona for slot in slots)
    lengths = Counter(slot.length for slot in slots)
    assert len(personas) == 4
    assert min(personas.values()) > len(slots) / 4 * 0.7
    assert lengths["medium"] > max(lengths["short"], lengths["long"])
