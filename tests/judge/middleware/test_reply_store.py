"""A response cache over another store: one class with the methods of the protocol, registered."""

import asyncio
import dataclasses
from pathlib import Path

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from misslink.judge.middleware.cache import CachedJudge, open_reply_store
from misslink.judge.middleware.sqlite_store import CacheStore
from misslink.judge.protocol import Reply
from misslink.registry import reply_stores

SHELVES = {}  # what is stored, by address; shared as a server is


class ShelfStore:
    """Replies in a dict that several caches share."""

    shared = True

    def __init__(self, url):
        self.replies, self.claims = SHELVES.setdefault(url, ({}, set()))
        self.leases = 0

    def get(self, key, ask):
        found = self.replies.get(key)
        return found and dataclasses.replace(found, from_cache=True)

    def has(self, key):
        return key in self.replies

    def put(self, key, ask, reply, *, identity, judge):
        self.claims.discard(key)
        return self.replies.setdefault(key, reply) is reply

    def claim(self, key):
        free = key not in self.claims and key not in self.replies
        self.claims.add(key)
        return free

    def release(self, key):
        self.claims.discard(key)

    def lease(self):
        self.leases += 1

    def has_judge(self, identity):
        return bool(self.replies)

    def remove_refusals(self, identity): ...

    def detach_unreadable(self, key): ...

    def past_usage(self, identity, limit):
        return []

    def abilities(self, identity):
        return None

    def save_abilities(self, identity, abilities): ...

    def reading(self, key):
        return None

    def store_readings(self, readings, rules): ...

    def close(self): ...


@pytest.fixture(autouse=True)
def shelf():
    reply_stores.register("shelf")(ShelfStore)
    yield
    reply_stores._entries.pop("shelf")
    SHELVES.clear()


@pytest.mark.parametrize("address", ["shelf://host/a", Path("shelf://host/a")])
def test_a_registered_store_is_opened_by_its_scheme(address, tmp_path):
    assert isinstance(open_reply_store(address), ShelfStore)
    assert isinstance(open_reply_store(tmp_path / "cache.sqlite"), CacheStore)
    assert isinstance(open_reply_store(None), CacheStore)


def test_two_caches_over_one_store_ask_each_question_once():
    async def both():
        judges = [
            FakeJudge(lambda ask: Reply(answer_to(ask, response="answers"), "{}")) for _ in "ab"
        ]
        caches = [CachedJudge(judge, "shelf://host/a") for judge in judges]
        asks = [small_ask(n) for n in range(3)]
        replies = await asyncio.gather(*(cache.ask(ask) for cache in caches for ask in asks))
        for cache in caches:
            await cache.close()
        return judges, caches, replies

    judges, caches, replies = asyncio.run(both())
    assert sum(len(judge.asked) for judge in judges) == 3
    assert sum(cache.from_cache for cache in caches) == 3
    assert all(reply.parsed is not None for reply in replies)
    assert caches[0].has_replies()


def test_a_call_that_fails_leaves_the_question_to_others():
    async def failing():
        cache = CachedJudge(FakeJudge(RuntimeError("no")), "shelf://host/b")
        with pytest.raises(RuntimeError):
            await cache.ask(small_ask(1))
        await cache.close()

    asyncio.run(failing())
    assert SHELVES["shelf://host/b"] == ({}, set())
