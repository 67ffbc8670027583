"""A judge's grades: asked blind over HTTP, kept, measured against people by scikit-learn."""

from __future__ import annotations

import asyncio
import json

import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from honest_judge import fenced
from made_pools import HOSTILE, pool_of, put_pool, truth
from misslink.errors import InputError
from misslink.goldset.pooling.grades import (
    PassageGradeReply,
    ask_grade,
    judge_agreement,
    prelabel_pool,
    read_prelabels,
    write_prelabels,
)
from misslink.judge.config import JudgeConfig
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.session import open_judge

LEVELS = ("not_relevant", "relevant", "highly_relevant")


def grader(body):
    """Says of a passage whose topic is asked that it is relevant, whatever its grade."""
    texts = dict(fenced(body))
    topic = texts["question"].rstrip("?").split()[-1]
    said = LEVELS[1 if topic in texts["passage"] else 0]
    return {"grade": said}


def asked(pool, server, cache=None, prompts=BUILT_IN):
    async def ask():
        terms = JudgeConfig(base_url=server.url, api_key="k")
        judge = open_judge("openai:test-judge", cache=cache, concurrency=4, terms=terms)
        try:
            return await prelabel_pool(pool, judge, prompts=prompts)
        finally:
            await judge.close()

    return asyncio.run(ask())


def test_every_item_is_asked_about_alone_and_blind(judge_server):
    judge_server.script = grader
    pool = pool_of(random=1000, passages=27)
    given = asked(pool, judge_server)
    assert [one.item for one in given] == [item.item for item in pool.items]
    for one, item in zip(given, pool.items, strict=True):
        assert one.grade == min(1, truth(item.case_id, item.passage_id))
    sent = [json.dumps(call.body["messages"]) for call in judge_server.calls]
    assert not [text for text in sent if "pooled" in text or "stratum" in text]
    hostile = next(item for item in pool.items if HOSTILE in item.text)
    system, user = ask_grade(hostile).messages
    assert HOSTILE not in system["content"]
    assert HOSTILE.replace("\u2028", "") in user["content"].replace("\u2028", "")


def test_what_was_paid_for_is_not_paid_again(judge_server, tmp_path):
    judge_server.script = grader
    pool = pool_of()
    first = asked(pool, judge_server, tmp_path / "cache.sqlite")
    paid = judge_server.answered
    assert asked(pool, judge_server, tmp_path / "cache.sqlite") == first
    assert judge_server.answered == paid


def test_a_reply_that_cannot_be_read_is_no_grade_and_never_0(judge_server):
    def unsure(body):
        if "passage 1." in dict(fenced(body))["passage"]:
            return "I would rather not say."
        return grader(body)

    judge_server.script = unsure
    pool = pool_of(random=1000, passages=27)
    lost = [one for one in asked(pool, judge_server) if one.grade is None]
    assert {one.item for one in lost} == {i.item for i in pool.items if i.passage_id == "d1"}
    assert all(one.reason for one in lost)


def test_a_judge_that_grades_nothing_is_told(judge_server):
    judge_server.script = lambda _: "no"
    with pytest.raises(InputError, match="gave no grade"):
        asked(pool_of(), judge_server)


def test_the_german_prompt_asks_for_the_same_answer():
    pool = pool_of()
    german = ask_grade(pool.items[0], Prompts.from_spec("de"))
    assert german.schema is PassageGradeReply
    assert BUILT_IN.load("goldset_relevance").schema == PassageGradeReply.__name__
    assert "Textstelle" in german.messages[0]["content"]
    assert set(BUILT_IN.load("goldset_relevance").fields) == set(PassageGradeReply.model_fields)


def test_agreement_with_people_is_that_of_scikit_learn(judge_server):
    judge_server.script = grader
    pool = pool_of(random=1000, passages=27)
    given = {one.item: one for one in asked(pool, judge_server)}
    people = {item.item: truth(item.case_id, item.passage_id) for item in pool.items[::2]}
    found = judge_agreement(given, people)
    said = [given[item].grade for item in people]
    theirs = list(people.values())
    assert found["n"] == len(people)
    assert found["kappa"].value == pytest.approx(
        cohen_kappa_score(theirs, said, labels=[0, 1, 2], weights="quadratic")
    )
    assert found["confusion"] == confusion_matrix(theirs, said, labels=[0, 1, 2]).tolist()
    assert found["grades"]["highly relevant"]["recall"].value == 0
    assert found["grades"]["highly relevant"]["precision"].value is None


def test_prelabels_are_read_back_and_a_damaged_file_is_told(judge_server, tmp_path):
    judge_server.script = grader
    pool = put_pool(tmp_path / "pool")
    given = asked(pool, judge_server)
    path = write_prelabels(tmp_path / "pool", given)
    assert list(read_prelabels(tmp_path / "pool", pool).values()) == given
    path.write_text('{"item": "x", "grade": 7, "judge": "j"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"prelabels\.jsonl, line 1, field 'grade'"):
        read_prelabels(tmp_path / "pool", pool)
    path.write_text('{"item": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"prelabels\.jsonl, line 1"):
        read_prelabels(tmp_path / "pool", pool)
