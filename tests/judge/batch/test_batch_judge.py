"""A judge asked in batches: as few as can be, within all limits, whatever the lines bring."""

import asyncio
import json
import logging

import pytest

from batch_server import EXPIRED, MISSING
from honest_judge import small_ask
from in_batches import ENGINE, ask_all, came, opened
from judge_faults import error
from misslink.engines.batch import BatchEngine
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.batch.queue import BatchTiming
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import SkippedReply, ask_safely
from misslink.judge.middleware.cache import cache_key, identity_json
from misslink.judge.protocol import Reply
from misslink.judge.session import open_judge, with_limits


def test_all_but_the_first_question_go_out_in_one_batch(server, tmp_path):
    replies, spent = ask_all(server, tmp_path, 30)
    assert came(replies) == [True] * 30
    assert len(server.calls) == 1  # live, by which it was found out what the server takes
    assert [len(batch) for batch in server.questions] == [29]
    assert (spent["calls"], spent["in_batches"]) == (30, 29)


def test_a_later_run_puts_nothing_live_where_the_server_is_known(server, tmp_path):
    ask_all(server, tmp_path, 2)
    ask_all(server, tmp_path, 5)
    assert len(server.calls) == 1
    assert [len(batch) for batch in server.questions] == [1, 3]


def test_the_keys_of_the_lines_are_those_of_the_cache(server, tmp_path):
    ask_all(server, tmp_path, 4)
    identity = identity_json(opened(server, tmp_path))
    asked = set(server.questions[0])
    assert asked < {cache_key(small_ask(n), identity) for n in range(4)}
    assert len(asked) == 3
    replies, spent = ask_all(server, tmp_path, 4, reach=with_limits)
    assert spent["from_cache"] == 4
    assert came(replies) == [True] * 4


def test_a_line_is_what_would_have_been_sent_live(server, tmp_path):
    ask_all(server, tmp_path / "batches", 6)
    ask_all(server, tmp_path / "live", 6, reach=with_limits)
    content = server.files[next(iter(server.batches.values()))["input_file_id"]]
    lines = [json.loads(line) for line in content.split(b"\n") if line]
    live = [call.body for call in server.calls[1:]]
    assert len(lines) == 5
    assert all(line["body"] in live for line in lines)
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}


def test_the_responses_interface_has_batches_too(server, tmp_path):
    replies, _ = ask_all(server, tmp_path, 4, judge="openai-responses:test-judge")
    assert came(replies) == [True] * 4
    (batch,) = server.batches.values()
    assert batch["endpoint"] == "/v1/responses"


def test_log_probabilities_come_through_a_batch(server, tmp_path):
    server.logprobs = True
    replies, _ = ask_all(server, tmp_path, 3)
    assert all(reply.chance("claims.0.support", "supported") > 0.5 for reply in replies)


def test_a_server_that_has_changed_since_is_asked_live_what_it_takes(server, tmp_path):
    ask_all(server, tmp_path, 2)

    def no_seed(body):
        return error(400, "unknown parameter: seed") if "seed" in body else None

    server.script = no_seed
    replies, _ = ask_all(server, tmp_path, 8)
    assert came(replies) == [True] * 8
    assert [len(batch) for batch in server.questions] == [1, 6, 5]
    live = [call.status for call in server.calls]
    assert live == [200, 200]  # one to learn it at the first run, one now


def test_the_deadline_ends_the_waiting_and_not_the_batch(server, tmp_path):
    ask_all(server, tmp_path, 1)  # live; so all others wait for the batch, on any machine
    server.meddle = lambda method, path: (
        (200, {}, {**server.batches["batch_0"], "status": "in_progress"})
        if method == "GET" and "batch_0" in path
        else None
    )
    replies, spent = ask_all(server, tmp_path, 4, deadline=0.5)
    assert sum(isinstance(reply, SkippedReply) for reply in replies) == 3
    assert spent["not_asked"] == 3
    assert "deadline 0.5" in next(r.problem for r in replies if isinstance(r, SkippedReply))
    server.meddle = None
    replies, spent = ask_all(server, tmp_path, 4)
    assert came(replies) == [True] * 4
    assert len(server.batches) == 1


def test_no_more_questions_are_submitted_than_calls_are_allowed(server, tmp_path):
    replies, spent = ask_all(server, tmp_path, 12, max_calls=5)
    assert sum(map(sum, [came(replies)])) == 5
    assert [len(batch) for batch in server.questions] == [4]
    assert spent["not_asked"] == 7
    replies, _ = ask_all(server, tmp_path, 12, max_calls=7)
    assert came(replies) == [True] * 12


def test_a_cost_is_never_exceeded_not_even_at_worst(server, tmp_path):
    prices = {"price_in": 1.0, "price_out": 4.0, "max_tokens": 300}
    _, needed = ask_all(server, tmp_path / "free", 12, **prices)
    cap = needed["cost"] * 0.8
    replies, spent = ask_all(server, tmp_path / "capped", 12, **prices, max_cost=cap)
    assert 0 < sum(came(replies)) < 12
    assert spent["cost"] <= cap
    assert spent["not_asked"] == 12 - sum(came(replies))


def test_batches_cost_their_share_and_the_live_question_its_whole_price(server, tmp_path):
    prices = {"price_in": 1.0, "price_out": 4.0}
    replies, spent = ask_all(server, tmp_path, 12, **prices, batch_price=0.25)
    cost = [
        (r.usage.prompt_tokens + 4 * r.usage.completion_tokens) / 1e6 * share
        for r, share in zip(replies, [1.0, *[0.25] * 11], strict=True)
    ]
    assert spent["cost"] == pytest.approx(sum(cost), rel=1e-12)


def test_two_runs_beside_each_other_pay_once(server, tmp_path):
    ask_all(server, tmp_path, 1)  # what the server takes is known to both

    async def both():
        runs = [opened(server, tmp_path) for _ in range(2)]
        try:
            return await asyncio.gather(
                *(ask_safely(run, small_ask(n)) for n in range(20) for run in runs)
            )
        finally:
            for run in runs:
                await run.close()

    replies = asyncio.run(both())
    assert came(replies) == [True] * 40
    assert set(server.asked.values()) == {1}
    assert len(server.asked) == 19


def test_what_another_run_has_fetched_and_tidied_away_is_not_submitted_again(server, tmp_path):
    ask_all(server, tmp_path, 1)  # what the server takes is known to both

    async def within():
        looked, gone = asyncio.Event(), asyncio.Event()

        async def sleep(seconds):
            if seconds:
                looked.set()
                await gone.wait()

        slow = BatchEngine(BatchTiming(linger=0, first=1, longest=1, sleep=sleep))
        first = opened(server, tmp_path, reach=slow.reach)
        waiting = [asyncio.create_task(ask_safely(first, small_ask(n))) for n in range(6)]
        await looked.wait()
        other = opened(server, tmp_path)
        await asyncio.gather(*(ask_safely(other, small_ask(n)) for n in range(6)))
        await other.close()
        gone.set()
        try:
            return await asyncio.gather(*waiting), first.usage().document()
        finally:
            await first.close()

    replies, spent = asyncio.run(within())
    assert came(replies) == [True] * 6
    assert (spent["calls"], spent["from_cache"]) == (0, 6)
    assert len(server.batches) == 1


def test_only_judges_with_a_batch_service_are_taken(server, tmp_path):
    with pytest.raises(InputError, match=r"the judge \S+ has no batch service; .*openai:MODEL"):
        open_judge("heuristic", cache=tmp_path / "l", concurrency=8, reach=ENGINE.reach)
    cascade = "cascade:heuristic,openai:test-judge"
    assert came(ask_all(server, tmp_path, 4, judge=cascade, cascade_check=1.0)[0]) == [True] * 4
    assert len(server.batches) == 1


def test_without_a_cache_nothing_is_submitted(server):
    with pytest.raises(InputError, match=r"--engine batch needs a response cache"):
        open_judge(
            "openai:m",
            cache=None,
            concurrency=8,
            reach=ENGINE.reach,
            terms=JudgeConfig(base_url=server.url, api_key="k"),
        )


def test_that_a_cap_makes_small_batches_is_told_once(server, tmp_path, caplog):
    prices = {"price_in": 1.0, "price_out": 4.0, "max_tokens": 300}
    _, needed = ask_all(server, tmp_path / "free", 30, **prices)
    assert "max_cost" not in caplog.text
    replies, _ = ask_all(server, tmp_path, 30, **prices, max_cost=needed["cost"] * 2)
    assert came(replies) == [True] * 30
    first, *later = [len(batch) for batch in list(server.questions)[1:]]
    assert later
    assert caplog.text.count(f"allows {first} questions at a time") == 1
    assert caplog.text.count("the others wait until a batch has ended") == 1


def test_a_batch_that_was_not_begun_does_not_count_as_calls(server, tmp_path):
    server.end = lambda number: "failed" if number == 0 else "completed"
    server.problems = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    replies, spent = ask_all(server, tmp_path, 10, max_calls=10)
    assert came(replies) == [True] * 10
    assert (spent["calls"], spent["not_asked"]) == (10, 0)


def test_answers_that_were_lost_count_at_the_most_that_they_can_have_cost(server, tmp_path):
    prices = {"price_in": 1.0, "price_out": 4.0, "max_tokens": 300}
    _, needed = ask_all(server, tmp_path / "free", 3, **prices)
    cap = needed["cost"] * 3  # all three at worst, and none of them twice
    server.meddle = lambda _, path: error(404, "no such file") if "content" in path else None
    replies, spent = ask_all(server, tmp_path, 3, **prices, max_cost=cap)
    assert spent["not_asked"] > 0
    assert any("max_cost" in r.problem for r in replies if isinstance(r, SkippedReply))
    assert sum(map(len, server.questions[1:])) <= 4


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_line_that_brought_nothing_goes_into_a_further_batch(server, tmp_path, status):
    server.line = lambda _, tries: error(status, "busy") if tries == 1 else None
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert [len(batch) for batch in server.questions] == [5, 5]
    assert set(server.asked.values()) == {1}


def test_a_line_that_is_missing_goes_into_a_further_batch(server, tmp_path):
    seen = []

    def line(key, tries):
        seen.append(key)
        return MISSING if key == seen[0] and tries == 1 else None

    server.line = line
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert [len(batch) for batch in server.questions] == [5, 1]


def test_after_so_many_retries_the_question_has_brought_nothing(server, tmp_path):
    server.line = lambda *_: error(503, "overloaded")
    replies, _ = ask_all(server, tmp_path, 3, retries=2)
    assert sorted(came(replies)) == [False, False, True]
    assert [len(batch) for batch in server.questions] == [2, 2, 2]
    told = [reply.problem for reply in replies if reply.problem]
    assert told == ["the server answers 503: overloaded (tried 3 times, in batches)"] * 2


def test_a_refused_question_is_refused_as_live_and_asked_once(server, tmp_path):
    refused = error(400, "Your prompt was flagged by the content policy", "content_policy")
    flagged = []

    def line(key, _):
        flagged.append(key)
        return refused if key == flagged[0] else None

    server.line = line
    replies, _ = ask_all(server, tmp_path, 5)
    assert sum(came(replies)) == 4
    (lost,) = [reply for reply in replies if reply.parsed is None]
    assert lost.problem.startswith("the judge refused the question: Your prompt was flagged")
    assert len(server.batches) == 1


def test_a_line_that_says_that_the_key_is_refused_ends_the_run(server, tmp_path):
    server.line = lambda *_: error(401, "Incorrect API key provided", "invalid_api_key")
    with pytest.raises(JudgeUnreachableError, match=r"refuses the key \(HTTP 401\)"):
        ask_all(server, tmp_path, 4)


def test_lines_of_no_question_broken_ones_and_second_ones_do_no_harm(server, tmp_path, caplog):
    again = {"custom_id": "nobody's", "response": {"status_code": 200, "body": {}}, "error": None}
    server.stray = ["{broken", "[]", '"text"', "", json.dumps(again), "{}"]
    with caplog.at_level(logging.WARNING):
        replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert caplog.text.count("file file-1 has invalid lines, which are ignored") == 1


def test_a_judge_s_words_may_hold_what_others_take_for_the_end_of_a_line(server, tmp_path):
    def odd(body):
        asked = next(m["content"] for m in body["messages"] if m["role"] == "user")
        return None if "town 0" in asked else '{"no": "\u2028\x85\u2029 JSON of ours"}'

    server.script = odd
    replies, _ = ask_all(server, tmp_path, 3)
    assert [reply.raw for reply in replies[1:]] == ['{"no": "\u2028\x85\u2029 JSON of ours"}'] * 2


def test_a_file_that_breaks_off_is_fetched_again_and_nothing_asked_twice(server, tmp_path):
    broken = iter([True, True])

    def meddle(method, path):
        if path.endswith("/content") and next(broken, False):
            content = server.files[path.split("/")[3]]
            return 200, {"content-length": str(len(content))}, iter([content[:-100]])
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 20)
    assert came(replies) == [True] * 20
    assert set(server.asked.values()) == {1}


def test_no_reply_is_not_the_same_as_an_empty_one(server, tmp_path):
    server.line = lambda _, tries: (200, {}, {"error": {"message": "lost"}}) if tries < 3 else None
    replies, _ = ask_all(server, tmp_path, 3)
    assert came(replies) == [True] * 3
    assert all(isinstance(reply, Reply) for reply in replies)
    assert len(server.batches) == 3


def test_questions_that_were_not_reached_in_time_are_asked_again(server, tmp_path):
    server.line = lambda _, tries: EXPIRED if tries == 1 else None
    replies, _ = ask_all(server, tmp_path, 3)
    assert came(replies) == [True] * 3
    assert len(server.batches) == 2


def test_answers_under_other_names_than_the_questions_end_the_run_and_are_paid_once(
    server, tmp_path
):
    def meddle(_, path):
        if not path.endswith("/content"):
            return None
        content = server.files[path.split("/")[3]]
        return 200, {}, iter([content.replace(b'"custom_id": "', b'"custom_id": "their-')])

    server.meddle = meddle
    told = r"batch batch_0 have other names \(custom_id\) .* use --engine local"
    for _ in range(2):
        with pytest.raises(JudgeUnreachableError, match=told):
            ask_all(server, tmp_path, 6)
    assert len(server.batches) == 1
