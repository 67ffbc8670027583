"""Which passages reached the model, by hand."""

from __future__ import annotations

import json

from misslink.capture.prompt_matching import match_prompts
from misslink.capture.recorder import ModelCall
from misslink.types import Passage

OAK = "The oak is a tree that grows acorns\nand lives for centuries in English parks."
PINE = "The pine is a tree that keeps its needles\nin winter and smells of resin."
PASSAGES = (Passage(id="oak", text=OAK, rank=1), Passage(id="pine", text=PINE, rank=2))


def whole(*calls, answer="It is the oak."):
    return match_prompts(PASSAGES, [ModelCall(*call) for call in calls], answer).whole


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
    # OAK has 15 words, so 11 5-grams; its first 8 words hold 4 of them.
    found = match_prompts(PASSAGES, [ModelCall(" ".join(OAK.split()[:8]), "x")], None)
    assert found.whole == ()
    assert found.part == {"oak": 4 / 11}


def test_a_prompt_that_holds_no_passage_holds_none():
    assert whole(("Which tree?", "It is the oak.")) == ()
    assert match_prompts((), [ModelCall("x", "y")], "y").whole == ()


def test_the_prompt_was_not_seen_where_no_model_gave_the_answer_or_was_shown_a_passage():
    rewriter = ("Rewrite: which tree?", "tree species acorns")
    assert whole(rewriter) is None
    assert whole(rewriter, answer=None) is None
    assert whole() is None


def test_a_passage_shown_in_part_is_a_prompt_that_was_seen():
    cut = " ".join(OAK.split()[:8])
    assert whole((cut, "tree species acorns")) == ()


def test_a_passage_of_two_words_must_be_there_whole():
    short = (Passage(id="s", text="hard rock", rank=1),)
    assert match_prompts(short, [ModelCall("a hard, dark rock", "x")], "x").whole == ()
    assert match_prompts(short, [ModelCall("a hard rock", "x")], "x").whole == ("s",)


def test_a_passage_without_text_reaches_nothing():
    assert (
        match_prompts((Passage(id="e", text=" ", rank=1),), [ModelCall("x", "x")], "x").whole == ()
    )


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
