"""Documents as passages, and several lists as one."""

import datetime as dt
import json
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from misslink.capture.passages import (
    adopt_inner_ids,
    passage_from,
    passages_from,
)
from misslink.text.normalization import content_id
from misslink.text.prompt_matching import ModelCall, match_prompts, merge_rankings
from misslink.types import Passage


def test_the_id_is_the_key_then_the_documents_then_its_text():
    document = Document("the text", id="own", metadata={"key": 17})
    assert passage_from(document, id_key="key").id == "17"
    assert passage_from(document, id_key="absent").id == "own"
    assert passage_from(document).id == "own"
    # printf 'the text' | sha256sum
    assert passage_from(Document("the text")).id == "text-41a1f654dc79a9ac"
    assert content_id("the text") == "text-41a1f654dc79a9ac"


def test_metadata_becomes_json_and_never_holds_what_json_cannot():
    odd = {
        "day": dt.date(2026, 1, 2),
        "score": float("nan"),
        "array": np.array([1.0]),
        "number": np.float64(0.5),
        "flag": True,
        "list": [1, (2, {"deep": float("inf")})],
        3: None,
    }
    passage = passage_from(Document("x", metadata=odd))
    assert passage.metadata["day"] == "2026-01-02"
    assert passage.metadata["list"] == [1, [2, {"deep": "inf"}]]
    assert passage.metadata["flag"] is True
    assert passage.score is None  # not a number
    assert json.loads(json.dumps(passage.metadata, allow_nan=False)) == passage.metadata


def test_half_a_surrogate_pair_becomes_a_question_mark_wherever_it_stands():
    half = "half \ud83d"
    document = Document(half, id=half, metadata={half: [half, {"deep": {half: half}}]})
    for passage in (
        passage_from(document),
        passage_from({"id": half, "text": half, "metadata": document.metadata}),
        passage_from(document, id_key="absent"),
    ):
        assert (passage.id, passage.text) == ("half ?", "half ?")
        assert passage.metadata == {"half ?": ["half ?", {"deep": {"half ?": "half ?"}}]}
    assert passage_from(half).id == content_id("half ?")


def test_a_rerankers_score_is_read_from_the_metadata():
    reranked = Document("x", metadata={"relevance_score": np.float32(0.25)})
    assert passage_from(reranked).score == 0.25
    assert passage_from(reranked, score=0.75).score == 0.75


def test_a_repeated_id_keeps_its_first_place():
    found = [Document("a", id="1"), Document("b", id="2"), Document("a", id="1"), Document("c")]
    passages = passages_from(found)
    assert [(one.id, one.rank) for one in passages[:2]] == [("1", 1), ("2", 2)]
    assert passages[2].rank == 3


def test_no_documents_no_passages():
    assert passages_from([]) == ()
    assert merge_rankings([]) == ()


def test_best_rank_then_call_order():
    def ranked(names):
        return tuple(Passage(id=name, text=name, rank=at) for at, name in enumerate(names, 1))

    passages = merge_rankings([ranked("abc"), ranked("dca")])
    # ranks: a 1, d 1, b 2, c 2 (second call)
    assert [(one.id, one.rank) for one in passages] == [("a", 1), ("d", 2), ("b", 3), ("c", 4)]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4))
def test_merging_ranks_every_passage_once_from_one(names):
    lists = [
        tuple(Passage(id=one, text=one, rank=at) for at, one in enumerate(part, 1))
        for part in names
    ]
    passages = merge_rankings(lists)
    assert [one.rank for one in passages] == list(range(1, len(passages) + 1))
    assert {one.id for one in passages} == {one for part in names for one in part}
    if len(names) == 1:
        assert [one.id for one in passages] == names[0]


def test_merging_one_list_with_itself_changes_nothing():
    names = random.Random(3).sample("abcdefgh", 8)
    ranked = tuple(Passage(id=one, text=one, rank=at) for at, one in enumerate(names, 1))
    assert merge_rankings([ranked, ranked]) == merge_rankings([ranked])


OAK = "The oak is a tree that grows acorns\nand lives for centuries in English parks."
PINE = "The pine is a tree that keeps its needles\nin winter and smells of resin."
PASSAGES = (Passage(id="oak", text=OAK, rank=1), Passage(id="pine", text=PINE, rank=2))


def whole(*calls, answer="It is the oak."):
    """Ids of the passages that the calls show, each of them whole."""
    shown = match_prompts(PASSAGES, [ModelCall(*call) for call in calls], answer).shown
    assert not shown or all(shown.get(p.id, p.text) == p.text for p in PASSAGES)
    return None if shown is None else tuple(shown)


def test_the_text_as_it_is():
    assert whole((f"Context: {OAK} Question: which?", "It is the oak.")) == ("oak",)


def test_other_blanks_quotes_and_capitals():
    assert whole((f"CONTEXT {'  '.join(OAK.upper().split())}", "It is the oak.")) == ("oak",)


def test_as_json_with_its_breaks_escaped():
    assert whole((json.dumps([OAK, PINE]), "It is the oak.")) == ("oak", "pine")


def test_as_a_repr():
    assert whole((repr([{"text": PINE}]), "It is the oak.")) == ("pine",)


def test_markup_between_a_few_words():
    assert whole((OAK.replace("parks", "<b>parks</b>"), "It is the oak.")) == ("oak",)


def test_cut_short():
    found = match_prompts(PASSAGES, [ModelCall(" ".join(OAK.split()[:9]), "x")], None)
    assert found.shown == {"oak": "The oak is a tree that grows acorns\nand"}


def test_a_prompt_that_holds_no_passage_holds_none():
    assert whole(("Which tree?", "It is the oak.")) == ()
    assert match_prompts((), [ModelCall("x", "y")], "y").shown == {}


def test_the_prompt_was_not_seen_where_no_model_gave_the_answer_or_was_shown_a_passage():
    rewriter = ("Rewrite: which tree?", "tree species acorns")
    assert whole(rewriter) is None
    assert whole(rewriter, answer=None) is None
    assert whole() is None


def test_a_passage_shown_in_part_is_a_prompt_that_was_seen():
    cut = " ".join(OAK.split()[:8])
    found = match_prompts(PASSAGES, [ModelCall(cut, "tree species acorns")], "It is the oak.")
    assert found.shown == {"oak": cut}


def test_a_passage_of_two_words_must_be_there_whole():
    short = (Passage(id="s", text="hard rock", rank=1),)
    for prompt, shown in (("a hard, dark rock", {}), ("a hard rock", {"s": "hard rock"})):
        assert match_prompts(short, [ModelCall(prompt, "x")], "x").shown == shown


def test_a_passage_without_text_reaches_nothing():
    empty = (Passage(id="e", text=" ", rank=1),)
    assert match_prompts(empty, [ModelCall("x", "x")], "x").shown == {}


def test_a_graders_prompt_is_not_what_the_answer_was_written_from():
    graded = [
        (f"Is this relevant? {text}", "no" if text is PINE else "yes") for text in (OAK, PINE)
    ]
    assert whole(*graded, (f"Answer from: {OAK}", "It is the oak.")) == ("oak",)


def test_summaries_that_went_into_the_last_prompt_count():
    summaries = [
        (OAK, "oaks live long and grow acorns"),
        (PINE, "pines keep needles in winter"),
    ]
    last = "\n".join(said for _, said in summaries)
    assert whole(*summaries, (last, "It is the oak.")) == ("oak", "pine")


def test_an_answer_that_no_model_gave_word_for_word_counts_every_call():
    assert whole((OAK, "yes"), (PINE, "no"), answer="composed by hand") == ("oak", "pine")
    assert whole((OAK, "yes"), (PINE, "no"), answer=None) == ("oak", "pine")


def test_the_prompt_of_the_call_that_made_the_answer_is_recorded():
    calls = [ModelCall(f"grade: {OAK}", "yes"), ModelCall(f"answer: {OAK}", "It is a tree.")]
    assert match_prompts(PASSAGES, calls, "It is a tree.").text == f"answer: {OAK}"
    assert match_prompts(PASSAGES, calls, "Something else.").text is None


CHUNKS = [{"id": "fares", "text": text} for text in ("One way 12.", "Return 20.", "One way 12.")]


def test_chunks_of_one_id_are_one_passage_with_all_their_texts():
    (passage,) = passages_from(CHUNKS)
    assert (passage.text, passage.rank) == ("One way 12.\n\nReturn 20.", 1)
    one, two = ([Passage(rank=1, **chunk)] for chunk in CHUNKS[:2])
    assert merge_rankings([one, two]) == (passage,)


def test_of_the_chunks_of_one_id_those_in_the_prompt_are_what_the_model_read():
    texts = ("One way 12.", "Return 20.", "Dogs on a leash.", "Cats too.")
    ids = ("fares", "fares", "dogs", "dogs")
    chunks = [Passage(id=i, text=text, rank=1) for i, text in zip(ids, texts, strict=True)]
    calls = [ModelCall("Return 20. Dogs on a leash. Cats too.", "20")]
    found = match_prompts(chunks, calls, "20")
    assert found.shown == {"fares": "Return 20.", "dogs": "Dogs on a leash.\n\nCats too."}


def test_pieces_of_a_chunk_have_its_id():
    inner = [Passage(id="oak", text=OAK, rank=1)]
    pieces = passages_from([Document(OAK[:40]), Document(OAK[40:]), Document("Something else.")])
    first, second, other = adopt_inner_ids(pieces, inner)
    assert (first.id, second.id) == ("oak", "oak")
    assert other == pieces[2]
