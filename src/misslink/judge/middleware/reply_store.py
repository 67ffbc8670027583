"""Where a response cache stores replies: the protocol of every store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from misslink.judge.protocol import Ask, Reply

PastUsage = tuple[str, str, int | None, int | None]  # messages, answer, prompt and other tokens


class ReadingStore(Protocol):
    """Where readings are stored; its methods raise InputError where that fails."""

    def reading(self, key: str) -> str | None:
        """Return a reading that is whole, or None."""

    def store_readings(self, readings: Mapping[str, str], rules: str) -> None:
        """Store readings by key in place of those of other rules."""


class ReplyStore(ReadingStore, Protocol):
    """Replies of judges by key. A judge is named by its identity, as JSON.

    `misslink.judge.middleware.sqlite_store.CacheStore` stores them in SQLite. Register another one with
    ``@reply_stores.register("SCHEME")`` on a class or function that takes an address; it is opened
    for ``--cache SCHEME://...``. Methods raise InputError where the store fails.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes use the same store, so that questions are claimed."""

    def get(self, key: str, ask: Ask) -> Reply | None:
        """Return the stored reply with ``from_cache``, parsed as an answer to `ask`, or None."""

    def has(self, key: str) -> bool:
        """Whether a reply is stored."""

    def put(self, key: str, ask: Ask, reply: Reply, *, identity: str, judge: str) -> bool:
        """Store a reply and end the claim; False where another process stored one first."""

    def claim(self, key: str) -> bool:
        """Reserve a question for this process; False if it is answered, or another one asks it."""

    def release(self, key: str) -> None:
        """Give up the claim to a question."""

    def lease(self) -> None:
        """Extend the claims of this process; called at least every 30 seconds while it asks."""

    def has_judge(self, identity: str) -> bool:
        """Whether any reply of this judge is stored."""

    def remove_refusals(self, identity: str) -> None:
        """Remove the replies in which this judge refused to answer."""

    def detach_unreadable(self, key: str) -> None:
        """Store a reply that could not be parsed, and is no refusal, under `key` no longer."""

    def past_usage(self, identity: str, limit: int) -> list[PastUsage]:
        """Return what earlier replies of this judge used, newest first, for forecasts."""

    def abilities(self, identity: str) -> Mapping[str, Any] | None:
        """Return what this judge detected about its server, or None."""

    def save_abilities(self, identity: str, abilities: str) -> None:
        """Store what this judge detected, as JSON."""

    def close(self) -> None:
        """Give up all claims and close the store."""
