"""What several replies used together, and answers by the schema of a question."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from fake_judge import answer_to
from honest_judge import honest, small_ask
from misslink.judge.examination import Examination, ExaminedPassage
from misslink.judge.protocol import (
    Reply,
    schema_json,
    strict_schema,
    total_usage,
)
from misslink.types import Usage


def used(prompt=None, completion=None):
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
    return Reply(None, "said", usage)


SILENT = Reply(None, "said")


@pytest.mark.parametrize(
    ("replies", "total"),
    [
        ([], None),
        ([SILENT, SILENT], None),
        ([used(3, 4)], Usage(prompt_tokens=3, completion_tokens=4)),
        ([used(3, 4), SILENT, used(5, 6)], Usage(prompt_tokens=8, completion_tokens=10)),
        ([used(3), used(5)], Usage(prompt_tokens=8)),
        ([used(0, None), used(None, 6)], Usage(prompt_tokens=0, completion_tokens=6)),
        ([used()], Usage()),
    ],
)
def test_a_count_that_nobody_tells_is_missing_and_not_zero(replies, total):
    assert total_usage(replies) == total
    assert total_usage(iter(replies)) == total


def test_fake_judges_fill_fields_that_no_test_knows_yet():
    class WiderPassage(ExaminedPassage):
        grade: int

    class Wider(Examination):
        passages: tuple[WiderPassage, ...]
        tone: Literal["plain", "sharp"]

    ask = replace(small_ask(1), schema=Wider)
    formats = {"response_format": {"json_schema": {"schema": strict_schema(Wider)}}}
    in_prompt = {"role": "user", "content": f"As JSON:\n{schema_json(Wider)}"}
    for body in (
        {"messages": list(ask.messages), **formats},
        {"messages": [*ask.messages, in_prompt]},
    ):
        said = Wider.model_validate(honest(body))
        assert (said.tone, {passage.grade for passage in said.passages}) == ("plain", {0})
    assert answer_to(ask).response == "answers"
