"""A response cache that SQLite finds whole, and in which single replies are damaged all the same."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from misslink.errors import InputError
from misslink.io.sqlite import SqliteFormat
from misslink.judge.middleware import cache_admin as records
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.protocol import Reply
from misslink.types import Usage

SAID = Reply(
    answer_to(small_ask(1), response="answers"),
    "said",
    Usage(prompt_tokens=7),
    {"response": {"answers": 1.0}},
)


@pytest.fixture
def damaged(tmp_path):
    """Make a response cache of two replies, and change it by an SQL statement."""

    def make(change, *values):
        path = tmp_path / "l"

        async def put():
            kept = CachedJudge(FakeJudge(SAID, abilities={"seed": True}), path)
            for n in (1, 2):
                await kept.ask(small_ask(n))
            await kept.close()

        asyncio.run(put())
        with sqlite3.connect(path) as file:
            file.execute(change, values)
        file.close()
        return path

    return make


def opened(path, act, judge=None):
    async def use():
        kept = CachedJudge(judge or FakeJudge(SAID), path)
        try:
            found = act(kept)
            return await found if asyncio.iscoroutine(found) else found
        finally:
            await kept.close()

    return asyncio.run(use())


@pytest.mark.parametrize("chances", ["{", "[1]", '{"response": 1}', '{"a": {"b": "c"}}'])
def test_damaged_probabilities_make_a_reply_that_cannot_be_read(damaged, chances):
    """As an unreadable one it is asked for again by whoever repairs, and its words are kept."""
    path = damaged("UPDATE replies SET probabilities = ? WHERE rowid = 1", chances)
    reply = opened(path, lambda kept: kept.ask(small_ask(1)))
    assert (reply.parsed, reply.raw, reply.usage, dict(reply.probabilities)) == (
        *(None, "said", SAID.usage, {}),
    )
    assert reply.problem == "the reply in the cache is damaged"
    assert opened(path, lambda kept: kept.ask(small_ask(2))).probabilities == SAID.probabilities


@pytest.mark.parametrize("abilities", ["{", "[1]", "null"])
def test_damaged_abilities_are_found_out_again(damaged, abilities):
    path = damaged("UPDATE judges SET abilities = ?", abilities)
    judge = FakeJudge(SAID, abilities={"seed": True})
    opened(path, lambda kept: kept.ask(small_ask(3)), judge)
    assert judge.learned == []
    later = FakeJudge(SAID)
    opened(path, lambda kept: kept.has_replies(), later)
    assert later.learned == [{"seed": True}]


DAMAGE = {
    "the answer": "UPDATE replies SET parsed = '{' WHERE rowid = 2",
    "the probabilities": "UPDATE replies SET probabilities = '{' WHERE rowid = 2",
    "the messages": "UPDATE replies SET messages = '[{' WHERE rowid = 2",
    "a message": "UPDATE replies SET messages = '[1]' WHERE rowid = 2",
    "a text": "DELETE FROM texts WHERE id = (SELECT max(id) FROM texts)",
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_an_export_comes_to_what_is_damaged_and_names_it(damaged, change):
    path = damaged(change)
    rows = records.export_replies(path)
    assert next(rows)["raw"] == "said"
    with pytest.raises(InputError, match=r"damaged: the reply \w{12} or its question") as refusal:
        next(rows)
    assert refusal.value.path == str(path)


@pytest.mark.parametrize("part", ["the messages", "a message", "a text"])
def test_nothing_is_learned_from_a_reply_whose_question_is_damaged(damaged, part):
    path = damaged(DAMAGE[part])
    ((messages, _, prompt, _),) = opened(path, lambda kept: kept.past_usage(9))
    assert "town 1" in messages
    assert prompt == SAID.usage.prompt_tokens


@pytest.mark.parametrize(
    "look", [records.cache_stats, lambda path: list(records.export_replies(path))]
)
def test_what_a_killed_run_left_beside_a_cache_is_not_lost_on_a_read_only_medium(
    damaged, monkeypatch, look
):
    """There SQLite reads the file alone, as if the replies beside it had never come."""
    path = damaged("UPDATE replies SET raw = 'said'")
    checked = SqliteFormat._open_checked

    def on_a_medium(self, where, *more):
        if "mode=rw" in where:
            raise sqlite3.OperationalError("unable to open database file")
        return checked(self, where, *more)

    monkeypatch.setattr(SqliteFormat, "_open_checked", on_a_medium)
    log = path.with_name("l-wal")
    log.touch()
    assert look(path)
    log.write_bytes(b"a log")
    with pytest.raises(InputError, match="newest rows are in l-wal"):
        look(path)
