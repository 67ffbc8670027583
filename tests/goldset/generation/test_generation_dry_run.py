"""What a dry run foretells is what an honest writer is then asked; and it asks nobody."""

from __future__ import annotations

import asyncio

from misslink.goldset.generation import generate_async, preview_async
from misslink.judge.config import JudgeConfig
from misslink.types import Passage
from question_writer import Writer, islands

PASSAGES = [Passage(id=row["id"], text=row["text"], rank=1) for row in islands(12)]


def both(judge_server, tmp_path, n, **terms):
    options = {
        "embedding": "none",
        "cache": tmp_path / "cache.sqlite",
        "terms": JudgeConfig(base_url=judge_server.url, **terms),
    }
    judge = "openai:test-judge"
    judge_server.script = Writer()
    before = asyncio.run(preview_async(PASSAGES, judge, n, **options))
    assert judge_server.calls == []
    made = asyncio.run(generate_async(PASSAGES, judge, n, **options))
    asked = len(judge_server.calls)
    after = asyncio.run(preview_async(PASSAGES, judge, n, **options))
    assert len(judge_server.calls) == asked
    return before, made, after


def test_calls_are_those_that_an_honest_writer_needs(judge_server, tmp_path):
    before, made, after = both(judge_server, tmp_path, 10)
    assert made.rejected == ()
    usage = made.document["usage"]
    # The honest one says the reference in its own words, as the stand-in does.
    assert before.calls == usage["calls"]
    assert abs(before.prompt_tokens / usage["prompt_tokens"] - 1) < 0.35
    assert before.completion_tokens > 0
    assert after.calls == 0
    assert after.from_cache == usage["calls"]


def test_the_cost_is_known_where_prices_are(judge_server, tmp_path):
    before, made, _ = both(judge_server, tmp_path, 3, price_in=1.0, price_out=4.0)
    tokens = before.prompt_tokens + 4 * before.completion_tokens
    assert before.cost == tokens / 1_000_000
    assert made.document["usage"]["cost"] > 0
