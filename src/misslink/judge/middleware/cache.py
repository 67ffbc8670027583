"""The response cache: judge replies on disk, read before calling the judge."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from misslink.errors import InputError
from misslink.io.storage import as_url
from misslink.judge.config import DEFAULTS, JudgeConfig
from misslink.judge.middleware.reply_store import PastUsage, ReplyStore
from misslink.judge.middleware.sqlite_store import LEASE_S, CacheStore
from misslink.judge.protocol import Ask, Judge, JudgeLayer, Reply, judge_info, unwrap_judge
from misslink.judge.readings import Readings
from misslink.registry import reply_stores
from misslink.text.normalization import valid_text
from misslink.types import Usage


def open_reply_store(cache: Path | None) -> ReplyStore:
    """Open the store of a cache: by the scheme of its address, else the SQLite file of a path."""
    url = None if cache is None else as_url(cache)
    if url is None or (scheme := url.partition("://")[0]) not in reply_stores:
        return CacheStore(cache)
    store: ReplyStore = reply_stores.get(scheme)(url)
    return store


class CacheUsage(NamedTuple):
    """What a judge behind a cache was asked since opening, and what that cost; None: not known."""

    calls: int = 0
    from_cache: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None


_CLAIM_POLL_S = 0.1
_MAX_TOKENS = 2**53  # larger counts are wrong, and some JSON readers cannot represent them


class CachedJudge(JudgeLayer):
    """A judge that answers each question once; later the reply comes from the cache.

    The cache key is the SHA-256 of the judge's identity, the ask's key and the number of the
    repetition. Replies that could not be parsed are cached too: they were paid for. What repairs one
    is asked again, once a run, until a reply can be read: the judge may be fixed by then. Failed calls
    are not cached. Several processes may share one file, and a question in flight in this process
    is awaited, not repeated.

    What the judge detected about its server (``abilities``) is stored with its replies, so that a
    resumed run asks as the first one did. `path` None caches in memory only.

    With `claims`, of several processes that need one reply the first asks, and the others wait.
    """

    def __init__(
        self,
        judge: Judge,
        path: Path | None,
        config: JudgeConfig = DEFAULTS,
        *,
        claims: bool = True,
    ) -> None:
        super().__init__(judge)
        self.path = path
        self.calls = 0  # questions put to the judge since opening
        self.from_cache = 0  # questions answered from the cache since opening
        self._price = config.price
        self._tokens = Usage()
        self._identity = identity_json(judge)
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._repairs: set[str] = set()  # the keys of those put since opening
        self._store = open_reply_store(path)
        if config.retry_refused:
            self._store.remove_refusals(self._identity)
        self.readings = Readings(self._store if path is not None else None)
        self._claims = claims and self._store.shared
        self._renewal: asyncio.Task[None] | None = None
        self._inner = unwrap_judge(judge)
        self._abilities: Mapping[str, Any] | None = None
        abilities = self._store.abilities(self._identity)
        learn = judge_info(self._inner).learn
        if abilities is not None and learn is not None:
            learn(abilities)
            self._abilities = copy.deepcopy(abilities)

    async def ask(self, ask: Ask) -> Reply:
        """Return the judge's reply to `ask`, from the cache where it is there."""
        key = cache_key(ask, self._identity)
        if ask.repairs and key not in self._repairs:
            self._repairs.add(key)
            self._store.detach_unreadable(key)
        cached = self._store.get(key, ask)
        if cached is not None:
            self.from_cache += 1
            return cached
        running = self._in_flight.get(key)
        if running is not None:
            reply = await asyncio.shield(running)
            if reply.came:
                self.from_cache += 1
                return replace(reply, from_cache=True)
            return reply
        task = asyncio.create_task(self._ask_and_store(key, ask))
        self._in_flight[key] = task
        task.add_done_callback(lambda done: self._remove_task(key, done))
        # Shielded: a call in flight is paid for, so its reply is cached even if no caller waits.
        return await asyncio.shield(task)

    def is_cached(self, ask: Ask) -> bool:
        """Whether a reply of this judge to `ask` is cached, so that asking it costs nothing."""
        return self._store.has(cache_key(ask, self._identity))

    def has_replies(self) -> bool:
        """Whether any reply of this judge is cached, so that a repeated run may need no judge."""
        return self._store.has_judge(self._identity)

    def past_usage(self, limit: int) -> list[PastUsage]:
        """Return what earlier replies of this judge used; see `CacheStore.past_usage`."""
        return self._store.past_usage(self._identity, limit)

    def usage(self) -> CacheUsage:
        """Return what was used; the tokens are None where there were calls and no reply reported any."""
        used = self._tokens if self.calls else Usage(prompt_tokens=0, completion_tokens=0)
        prompt, completion = used.prompt_tokens, used.completion_tokens
        price, cost = self._price or judge_info(self.judge).price, None
        if price is not None and prompt is not None and completion is not None:
            cost = price.cost(prompt, completion)
        return CacheUsage(self.calls, self.from_cache, prompt, completion, cost)

    async def close(self) -> None:
        """Close the judge, which may let calls in flight finish, then the file."""
        await super().close()
        if self._renewal is not None:
            self._renewal.cancel()
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.readings.flush()
        self._store.close()

    async def _ask_and_store(self, key: str, ask: Ask) -> Reply:
        if not self._claims:
            return await self._ask_and_add(key, ask)
        while not self._store.claim(key):
            if (cached := self._store.get(key, ask)) is not None:
                self.from_cache += 1
                return cached
            await asyncio.sleep(_CLAIM_POLL_S)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew_claims())
        try:
            reply = await self._ask_and_add(key, ask)
        except BaseException:
            with contextlib.suppress(InputError):  # where the disk is full, the claim expires
                self._store.release(key)
            raise
        if not reply.came:
            self._store.release(key)
        return reply

    async def _renew_claims(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 4)
            self._store.lease()

    async def _ask_and_add(self, key: str, ask: Ask) -> Reply:
        reply = await self.judge.ask(ask)
        if reply.from_cache:  # another process asked meanwhile, and cached it in the same file
            self.from_cache += 1
            return reply
        reply = _storable_reply(reply)
        self.calls += 1
        self._tokens = Usage.total((self._tokens, reply.usage)) or Usage()
        if not reply.came:
            return reply
        added = self._store.put(key, ask, reply, identity=self._identity, judge=self.name)
        self._save_abilities()
        # Where another process was first, both continue with the reply in the file.
        stored = None if added else self._store.get(key, ask)
        return reply if stored is None else replace(stored, from_cache=False)

    def _save_abilities(self) -> None:
        abilities = judge_info(self._inner).abilities
        if abilities and abilities != self._abilities:
            self._store.save_abilities(self._identity, json.dumps(dict(abilities), sort_keys=True))
            self._abilities = copy.deepcopy(abilities)

    def _remove_task(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not report it


def identity_json(judge: Judge) -> str:
    """Return a judge's identity as JSON with sorted keys."""
    return json.dumps(dict(judge.identity), sort_keys=True, ensure_ascii=False)


def cache_key(ask: Ask, identity: str) -> str:
    """Return the key of the reply to `ask` by the judge with this `identity_json`."""
    return hashlib.sha256(f"{ask.key}:{ask.repeat}:{identity}".encode()).hexdigest()


def _storable_reply(reply: Reply) -> Reply:
    """Return the reply as a file can store it, so that a resumed run reads the very same.

    A server may send unpaired surrogates, and implausible token counts.
    """
    usage = reply.usage and Usage(
        **{n: c for n, c in reply.usage if c is not None and 0 <= c <= _MAX_TOKENS}
    )
    return replace(
        reply,
        parsed=reply.parsed and _serializable_model(reply.parsed),
        raw=reply.raw if reply.raw.isascii() else valid_text(reply.raw),
        problem=reply.problem and valid_text(reply.problem),
        usage=None if usage == Usage() else usage,
    )


def _serializable_model(parsed: BaseModel) -> BaseModel:
    try:
        parsed.model_dump_json()
    except PydanticSerializationError:
        text = valid_text(json.dumps(parsed.model_dump(), ensure_ascii=False))
        return type(parsed).model_validate_json(text)
    return parsed
