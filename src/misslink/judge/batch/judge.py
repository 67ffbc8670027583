"""A judge whose questions are submitted in batches, and what that saves."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from misslink.errors import JudgeUnreachableError, MisslinkError
from misslink.judge.backends.connection import ServerError
from misslink.judge.backends.openai import OpenAIJudge
from misslink.judge.batch import queue
from misslink.judge.batch.service import (
    MAX_BYTES,
    MAX_QUESTIONS,
    BatchService,
    BatchStore,
    input_line,
)
from misslink.judge.config import JudgeConfig, Price
from misslink.judge.middleware.budget import BatchTerms, BudgetedJudge
from misslink.judge.middleware.cache import cache_key, identity_json
from misslink.judge.protocol import Ask, Judge, JudgeLayer, Reply, RetryableError, SkippedAskError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchSavings:
    """Forecast of the questions a run submits in batches, and what that saves."""

    questions: int
    submitted: int  # questions already in batches without fetched answers
    batches: int  # at least: replies may lead to more batches
    bytes: int  # of all batch files
    price: float  # of a token in a batch, as a share of the live price
    cost: float | None  # of all calls; None without prices
    saving: float | None  # compared with live calls


class BatchJudge(JudgeLayer):
    """Submit questions to a server in batches, and record each batch in the response cache."""

    def __init__(
        self,
        live: Judge,
        budget: BudgetedJudge,
        bare: OpenAIJudge,
        cache: Path,
        config: JudgeConfig,
        timing: queue.BatchTiming,
    ) -> None:
        super().__init__(live)
        self.share = config.batch_price
        self.questions = 0  # answered in batches
        self._prompt_tokens = self._completion_tokens = 0
        self._bare = bare
        self._budget = budget
        self._config = config
        self._identity = identity_json(bare)
        self._store = BatchStore(cache, self._identity, self.name)
        service = BatchService(bare.connection, config.timeout)
        self._queue = queue.BatchQueue(
            service, self._store, timing, bare.path, config.retries, self._end
        )
        self._opening: asyncio.Task[None] | None = None
        self._finding_out = asyncio.Lock()
        self._answers: set[queue.Answer] = set()  # that are waited for
        self._end_error: Exception | None = None
        self._is_cap_reported = False
        self._deadline: asyncio.TimerHandle | None = None

    async def ask(self, ask: Ask) -> Reply:
        """Ask with the next batch, or wait for the batch that contains the question.

        Raises
        ------
        InputError
            The server has no batch API.
        JudgeUnreachableError
            The server is unreachable or refuses a batch; what is paid for is cached.
        SkippedAskError
            The budget or the time of the run is used up.
        """
        key = cache_key(ask, self._identity)
        tries = 0
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        await asyncio.shield(self._opening)
        while True:
            self._raise_if_ended()
            row = self._store.row_of(key)
            if row is None:
                reply = await self._ask_first_live(ask)
                if reply is not None:
                    return reply
            try:
                terms = BatchTerms(self.share, row is not None, self._report_cap)
                reply = await self._budget.call_within_caps(
                    ask, partial(self._ask_in_batch, key, ask), terms
                )
            except queue.ResubmitError:  # another process may have fetched it
                if (cached := self._store.get(key, ask)) is not None:
                    return cached
            except SkippedAskError:
                self._raise_if_ended()
                raise
            except RetryableError as error:
                tries += 1
                if tries > self._config.retries:
                    times = "once" if tries == 1 else f"{tries} times"
                    return Reply.nothing(f"{error.problem} (tried {times}, in batches)")
            else:
                self.questions += reply.came
                if reply.usage is not None:
                    self._prompt_tokens += reply.usage.prompt_tokens or 0
                    self._completion_tokens += reply.usage.completion_tokens or 0
                return reply

    def is_submitted(self, ask: Ask) -> bool:
        """Whether a question is in a batch whose answers are not fetched."""
        return self._store.row_of(cache_key(ask, self._identity)) is not None

    def line_bytes(self, ask: Ask) -> int:
        """Length of the line with which a question is submitted."""
        key = cache_key(ask, self._identity)
        return len(input_line(key, self._bare.path, self._bare.request(ask)))

    def forecast(self, calls: int, submitted: int, size: int, cost: float | None) -> BatchSavings:
        """Return what a run would save.

        `calls` are not cached and have lines of `size` bytes and a live cost of `cost`; `submitted`
        of them are in batches already.
        """
        # The first question goes live where it is not known yet what the server supports.
        live = int(calls > submitted and not self._bare.abilities)
        questions = calls - live
        in_batches = questions / calls if calls else 0.0
        saving = None if cost is None else cost * in_batches * (1 - self.share)
        new = questions - submitted
        size = round(size * new / calls) if calls else 0
        return BatchSavings(
            questions=questions,
            submitted=submitted,
            batches=max(-(-new // MAX_QUESTIONS), -(-size // MAX_BYTES)),
            bytes=size,
            price=self.share,
            cost=None if cost is None or saving is None else cost - saving,
            saving=saving,
        )

    def saved(self, price: Price) -> float:
        """How much less the batches cost than live calls would have."""
        return (1 - self.share) * price.cost(self._prompt_tokens, self._completion_tokens)

    async def close(self) -> None:
        """Stop polling; batches in progress are recorded, and continue."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._opening is not None:
            self._opening.cancel()
        await self._queue.close()
        self._end(JudgeUnreachableError("the run has ended"))
        self._store.prune()
        self._store.close()
        await super().close()

    async def _open(self) -> None:
        """Check that the server has a batch API, and start the deadline."""
        self._store.prune()
        deadline = self._config.deadline
        if deadline is not None:
            error = SkippedAskError(
                f"the time of the run is used up (deadline {deadline:g}); "
                "the same command continues it"
            )
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(deadline, self._end, error)
        await self._queue.check_service()

    async def _ask_first_live(self, ask: Ask) -> Reply | None:
        """Ask live where that shows what the server supports; None where that is known."""
        if self._bare.abilities:
            return None
        async with self._finding_out:
            self._raise_if_ended()
            return None if self._bare.abilities else await self.judge.ask(ask)

    async def _ask_in_batch(self, key: str, ask: Ask) -> Reply:
        batch: int | None = None  # that has answered

        async def post(path: str, body: dict[str, Any]) -> str:
            """In place of a request: return the body of the answer, or raise why there is none."""
            nonlocal batch
            row = self._store.row_of(key)
            if row is None and not self._bare.abilities:  # what was known of the server is wrong
                raise queue.ResubmitError
            self._raise_if_ended()
            if row is not None:
                answer = self._queue.attach(key, row)
            else:
                answer = self._queue.add(key, input_line(key, path, body))
            self._answers.add(answer)
            answer.add_done_callback(self._answers.discard)
            del body  # frees memory: the line is on disk
            batch, line = await answer
            if line.status is not None and not line.good:
                raise ServerError(line.status, line.body)
            return self._bare.connection.censored(json.dumps(line.body, ensure_ascii=False))

        try:
            return await self._bare.ask_by(post, ask)
        except RetryableError:
            if batch is not None:  # it is asked again in another batch
                self._store.remove(batch, key)
            raise

    def _report_cap(self, calls: int) -> None:
        """Warn once that a cap makes small batches, each of which may take a day."""
        if not self._is_cap_reported:
            self._is_cap_reported = True
            _log.warning(
                "max_cost %g allows %d questions at a time, at the highest cost of each; the others"
                " wait until a batch has ended (a higher max_cost, or a lower max_tokens, makes"
                " fewer batches)",
                *(self._config.max_cost, calls),
            )

    def _end(self, error: Exception) -> None:
        """Fail all calls, now and later."""
        connection = self._bare.connection
        if not isinstance(error, MisslinkError | SkippedAskError):
            message = connection.censored(f"{type(error).__name__}: {error}")
            error = connection.unreachable(
                f"its batches failed unexpectedly ({message}); batches in progress are recorded, "
                "and the same command continues"
            )
        if self._end_error is None:
            self._end_error = error
        queue.fail_answers(list(self._answers), partial(copy.copy, self._end_error))
        self._budget.stop()

    def _raise_if_ended(self) -> None:
        if self._end_error is not None:  # one object would collect the tracebacks of all callers
            raise copy.copy(self._end_error)
