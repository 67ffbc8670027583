"""What several replies used together."""

from __future__ import annotations

import pytest

from misslink.judge.protocol import Reply, total_usage
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
