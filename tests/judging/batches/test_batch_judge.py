"""A judge asked in batches: as few as can be, nothing twice, nothing lost, every end told."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from in_batches import ENGINE, ask_all, came, opened

from batch_server import EXPIRED, MISSING
from honest_judge import small_ask
from judge_faults import Reset, error
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.asking import Unasked, put
from misslink.judging.batches.notes import pending
from misslink.judging.opening import open_judge
from misslink.judging.protocol import Reply
from misslink.judging.reaching import within_limits
from misslink.judging.terms import Terms
from misslink.judging.wrappers.ledger import identity_text, reply_key


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


def test_the_keys_of_the_lines_are_those_of_the_ledger(server, tmp_path):
    ask_all(server, tmp_path, 4)
    identity = identity_text(opened(server, tmp_path))
    asked = set(server.questions[0])
    assert asked < {reply_key(small_ask(n), identity) for n in range(4)}
    assert len(asked) == 3
    replies, spent = ask_all(server, tmp_path, 4, reach=within_limits)
    assert spent["from_ledger"] == 4
    assert came(replies) == [True] * 4


def test_a_line_is_what_would_have_been_sent_live(server, tmp_path):
    ask_all(server, tmp_path / "batches", 6)
    ask_all(server, tmp_path / "live", 6, reach=within_limits)
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


def test_an_expired_batch_counts_as_far_as_it_came(server, tmp_path, caplog):
    server.end = lambda number: "expired" if number == 0 else "completed"
    replies, _ = ask_all(server, tmp_path, 9)
    assert came(replies) == [True] * 9
    assert [len(batch) for batch in server.questions] == [8, 4]
    assert set(server.asked.values()) == {1}


def test_a_cancelled_batch_ends_the_run_and_the_next_one_goes_on(server, tmp_path):
    server.end = lambda number: "cancelled" if number == 0 else "completed"
    with pytest.raises(JudgeUnreachableError, match=r"batch_0 was cancelled with 4 questions open"):
        ask_all(server, tmp_path, 9)
    replies, spent = ask_all(server, tmp_path, 9)
    assert came(replies) == [True] * 9
    assert [len(batch) for batch in server.questions] == [8, 4]
    assert spent["from_ledger"] == 5


def test_a_batch_that_is_refused_is_told_with_what_is_wrong(server, tmp_path):
    server.end = lambda _: "failed"
    server.problems = [{"code": "invalid_json_line", "message": "This line is no JSON", "line": 3}]
    with pytest.raises(
        JudgeUnreachableError, match=r"refuses the batch batch_0: line 3: This line"
    ):
        ask_all(server, tmp_path, 4)
    assert pending(tmp_path / "ledger.sqlite") == []


def test_what_is_too_much_at_once_goes_out_in_parts(server, tmp_path):
    server.end = lambda number: "failed" if len(server.questions[number]) > 3 else "completed"
    server.problems = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    replies, _ = ask_all(server, tmp_path, 10)
    assert came(replies) == [True] * 10
    sizes = [len(batch) for batch in server.questions]
    begun = [size for size in sizes if size <= 3]
    assert sizes[0] == sum(begun) == sum(server.asked.values()) == 9
    assert set(server.asked.values()) == {1}


def test_a_look_that_shows_nothing_is_repeated(server, tmp_path):
    looks = iter(range(100))

    def meddle(method, path):
        if method == "GET" and "batch_" in path and next(looks) < 4:
            return error(500, "out of order")
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 4)
    assert came(replies) == [True] * 4
    assert len(server.batches) == 1


def test_a_server_whose_looks_fail_for_good_is_given_up_and_nothing_is_asked_again(
    server, tmp_path
):
    server.meddle = lambda _, path: error(502, "away") if "batch_" in path else None
    with pytest.raises(JudgeUnreachableError, match=r"502: away; its batch goes on"):
        ask_all(server, tmp_path, 4)
    (out,) = pending(tmp_path / "ledger.sqlite")
    assert (out["batch"], out["waiting"]) == ("batch_0", 3)
    server.meddle = None
    replies, _ = ask_all(server, tmp_path, 4)
    assert came(replies) == [True] * 4
    assert len(server.batches) == 1
    assert pending(tmp_path / "ledger.sqlite") == []


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_without_batches_is_told_and_the_way_out_named(server, tmp_path, status):
    server.meddle = lambda *_: error(status, "no such path")
    with pytest.raises(InputError, match=r"has no batch interface .* use --engine local"):
        ask_all(server, tmp_path, 4)
    assert server.batches == {}
    assert len(server.calls) == (0 if status == 404 else 1)


def test_a_refused_key_is_told_before_anything_is_submitted(server, tmp_path):
    server.key = "another"
    with pytest.raises(JudgeUnreachableError, match=r"refuses the key \(401\)"):
        ask_all(server, tmp_path, 4)
    assert server.files == {}


def test_a_line_that_says_that_the_key_is_refused_ends_the_run(server, tmp_path):
    server.line = lambda *_: error(401, "Incorrect API key provided", "invalid_api_key")
    with pytest.raises(JudgeUnreachableError, match=r"refuses the key \(401\)"):
        ask_all(server, tmp_path, 4)


def test_lines_of_no_question_broken_ones_and_second_ones_do_no_harm(server, tmp_path, caplog):
    again = {"custom_id": "nobody's", "response": {"status_code": 200, "body": {}}, "error": None}
    server.stray = ["{broken", "[]", '"text"', "", json.dumps(again), "{}"]
    with caplog.at_level(logging.WARNING):
        replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert "4 lines of file file-1 are none of a batch" in caplog.text


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


def test_answers_that_are_kept_no_more_are_asked_anew(server, tmp_path, caplog):
    gone = iter([True])

    def meddle(method, path):
        return error(404, "no such file") if path.endswith("content") and next(gone, 0) else None

    server.meddle = meddle
    with caplog.at_level(logging.WARNING):
        replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert "the answers of batch batch_0 are not kept there any more" in caplog.text
    assert [len(batch) for batch in server.questions] == [4, 4]


def test_a_batch_that_is_not_there_any_more_is_asked_anew(server, tmp_path):
    gone = iter([True])

    def meddle(method, path):
        if method == "GET" and path.endswith("batch_0"):
            return error(404, "No batch found") if next(gone, False) else None
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert len(server.batches) == 2


def test_a_batch_whose_making_was_not_told_is_found_and_not_made_again(server, tmp_path):
    def late(method, path):
        if method == "POST" and path == "/v1/batches":
            raise Reset

    server.late = late
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert len(server.batches) == 1


def test_a_batch_is_found_on_a_later_page_of_the_list_by_its_file_alone(server, tmp_path):
    def late(method, path):
        if method == "POST" and path == "/v1/batches":
            mine = server.batches["batch_0"]
            del mine["metadata"]
            for n in range(250):  # of others, made since
                server.batches[f"other-{n}"] = {**mine, "id": f"other-{n}", "input_file_id": "x"}
            raise Reset

    server.late = late
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert len(server.batches) == 251


def test_the_deadline_ends_the_waiting_and_not_the_batch(server, tmp_path):
    server.meddle = lambda method, path: (
        (200, {}, {**server.batches["batch_0"], "status": "in_progress"})
        if method == "GET" and "batch_0" in path
        else None
    )
    replies, spent = ask_all(server, tmp_path, 4, deadline=0.5)
    assert sum(isinstance(reply, Unasked) for reply in replies) == 3
    assert spent["not_asked"] == 3
    assert "--deadline 0.5" in next(r.problem for r in replies if isinstance(r, Unasked))
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
                *(put(run, small_ask(n)) for n in range(20) for run in runs)
            )
        finally:
            for run in runs:
                await run.close()

    replies = asyncio.run(both())
    assert came(replies) == [True] * 40
    assert set(server.asked.values()) == {1}
    assert len(server.asked) == 19


def test_only_judges_with_a_batch_service_are_taken(server, tmp_path):
    with pytest.raises(InputError, match=r"the judge \S+ has no batch service; .*openai:MODEL"):
        open_judge("embedded", ledger=tmp_path / "l", concurrency=8, reach=ENGINE.reach)
    cascade = "cascade:embedded,openai:test-judge"
    assert came(ask_all(server, tmp_path, 4, judge=cascade, audit=1.0)[0]) == [True] * 4
    assert len(server.batches) == 1


def test_without_a_ledger_nothing_is_submitted(server):
    with pytest.raises(InputError, match=r"--engine batch needs a ledger"):
        open_judge(
            "openai:m",
            ledger=None,
            concurrency=8,
            reach=ENGINE.reach,
            terms=Terms(base_url=server.url, api_key="k"),
        )


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
