"""What judging a case costs: questions, and prompt tokens as characters / 4."""

from __future__ import annotations

from pydoc_data.topics import topics

import pytest

from misslink.judge.protocol import Reply
from misslink.text.normalization import sentence_spans
from misslink.types import Case, Passage, Trace
from scripted_judge import ScriptedJudge, judged, plain, referenced

WORDS, PASSAGES, SENTENCES = 150, 4, 5
# Prose of the standard library's manual, one topic a passage.
TOPICS = ("naming", "objects", "execmodel", "exceptions")


def prose(topic):
    """The words of a topic's paragraphs; headings, code and lists are left out."""
    blocks = topics[topic].split("\n\n")
    kept = [block for block in blocks if block[:1].isalpha() and "\n*" not in block]
    return " ".join(" ".join(kept).split())


def case_and_trace(*, citing=False):
    texts = [" ".join(prose(topic).split()[:WORDS]) for topic in TOPICS]
    assert [len(text.split()) for text in texts] == [WORDS] * PASSAGES
    said = [text[start:end] for text in texts for start, end in sentence_spans(text)][:SENTENCES]
    if citing:
        said = [f"{sentence} [{n % PASSAGES + 1}]" for n, sentence in enumerate(said)]
    case = Case(
        id="1",
        question="When is a name bound, and what happens if it is used before that?",
        relevant=["p1"],
        references=[f"{said[0]} {said[1]}"],
    )
    passages = tuple(Passage(id=f"p{n}", text=t, rank=n) for n, t in enumerate(texts, 1))
    return case, Trace(case_id="1", retrieved=passages, answer=" ".join(said))


def test_the_default_set_costs_at_most_two_questions_and_1900_tokens_a_case():
    """Every registered metric, 4 passages of 150 words, 5 sentences, one reference."""
    case, trace = case_and_trace()
    judge = ScriptedJudge(Reply(referenced([], [(1, "x", "states")]), "{}"))
    judged(case, trace, judge)
    assert 1 <= len(judge.asked) <= 2
    assert sum(ask.characters for ask in judge.asked) / 4 <= 1900


def test_an_answer_that_cites_costs_one_question_more_and_no_third():
    case, trace = case_and_trace(citing=True)
    judge = ScriptedJudge(Reply(plain(), "{}"))
    judged(case, trace, judge)
    assert sorted(ask.name for ask in judge.asked) == ["citations", "examination"]


@pytest.mark.parametrize("citing", [False, True])
def test_the_first_message_holds_nothing_of_the_case(citing):
    case, trace = case_and_trace(citing=citing)
    judge, other = (ScriptedJudge(Reply(plain(), "{}")) for _ in range(2))
    judged(case, trace, judge)
    changed = trace.model_copy(update={"answer": f"{trace.answer} And so on."})
    judged(case.model_copy(update={"question": "Why?"}), changed, other)
    first = [ask.messages[0] for ask in judge.asked]
    assert first == [ask.messages[0] for ask in other.asked]
