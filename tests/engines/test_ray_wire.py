"""What crosses to workers and back arrives as it was."""

import asyncio
import pickle

import pytest
from pydantic import BaseModel

from honest_judge import small_ask
from misslink.engines.ray.worker import RaisedError, WorkerReply, restore_reply, serializable_ask
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.config import JudgeConfig
from misslink.judge.examination import Examination
from misslink.judge.protocol import Reply, RetryableError, SkippedAskError
from misslink.judge.session import create_judge


def crossed(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 (our own)


@pytest.mark.parametrize(
    "error",
    [
        RetryableError("told to wait", "rate", 2.5),
        SkippedAskError("used up"),
        JudgeUnreachableError("nobody there"),
        InputError("is no number", path="gold.jsonl", line=3, field="k"),
        KeyError("sky"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_arrives_with_all_it_says(error):
    with pytest.raises(type(error)) as caught:
        crossed(WorkerReply(raised=RaisedError.from_error(error))).result()
    assert str(caught.value) == str(error)
    assert vars(caught.value) == vars(error)


def test_an_exception_that_cannot_cross_is_told_in_words():
    class Odd(Exception):  # noqa: N818 (of somebody's own)
        pass

    with pytest.raises(RuntimeError, match="Odd: no disk"):
        crossed(WorkerReply(raised=RaisedError.from_error(Odd("no disk")))).result()


def test_a_question_arrives_rendered_under_the_key_it_had():
    ask = small_ask(3)
    sent = crossed(serializable_ask(ask))
    assert sent.key == ask.key
    assert [dict(message) for message in sent.messages] == [dict(m) for m in ask.messages]
    assert (sent.schema, sent.inputs, sent.prompt) == (ask.schema, ask.inputs, ask.prompt)
    assert sent.characters == ask.characters


def test_a_judge_answers_a_question_that_crossed_as_it_answers_the_question():
    judge = create_judge("heuristic", JudgeConfig())
    ask = small_ask(3)

    async def both():
        return await judge.ask(ask), await judge.ask(crossed(serializable_ask(ask)))

    here, there = asyncio.run(both())
    assert crossed(there) == here


def test_a_reply_in_another_class_of_the_same_schema_is_read_as_this_processs():
    asked = Examination
    said = {"claims": [], "passages": [], "sufficient": "yes", "response": "answers", "helpful": 4}
    parsed = asked.model_validate(said)
    twin = type("Examination", (BaseModel,), {"__annotations__": dict.fromkeys(said, object)})
    there = Reply(parsed=twin(**{**said, "claims": [], "passages": []}), raw="{}")
    assert restore_reply(there, small_ask(1)).parsed == parsed
    same = Reply(parsed=parsed, raw="{}")
    assert restore_reply(same, small_ask(1)) is same
