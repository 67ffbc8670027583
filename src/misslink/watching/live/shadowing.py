"""Requests copied to variants that answer nobody, and what came of it logged."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from typing import Any

from misslink.watching.live.answering import Answering
from misslink.watching.live.copying import containers_copied
from misslink.watching.live.listening import LISTENING
from misslink.watching.live.shadows import Shadows
from misslink.watching.live.traffic import Request, Traffic

__all__ = ["Copied", "Shadowing"]

Copied = tuple[list[str], Any]  # the names of shadows, and their input


class Shadowing:
    """Copies requests to shadows.

    Parameters
    ----------
    answering : Answering
        Knows the variants, and what an answer is.
    traffic : Traffic
    shadows : Shadows
    by_loop : bool
        Ask by ``ainvoke``, in an event loop of the shadows' own.
    """

    def __init__(
        self, answering: Answering, traffic: Traffic, shadows: Shadows, *, by_loop: bool
    ) -> None:
        self._answering = answering
        self._traffic = traffic
        self._shadows = shadows
        self._by_loop = by_loop

    def copied(self, request: Request, asked: Any) -> Copied | None:
        """Return what shadows are given: the input as it came, before the app changes it."""
        try:
            names = (
                self._traffic.experiment.shadows(request.id)
                if self._traffic.experiment.shadow
                else []
            )
            return (names, copy.copy(containers_copied(asked))) if names else None
        except Exception as error:  # noqa: BLE001 - an input of the user's own making
            self._traffic.trouble("an input could not be copied for a shadow", error)
            return None

    def ask(self, request: Request, own: Copied | None, keywords: Mapping[str, Any]) -> None:
        """Have the shadows of a request asked; the caller waits for none."""
        if own is None:
            return
        try:
            for variant in own[0]:
                self._ask(variant, request, own[1], dict(keywords))
        except Exception as error:  # noqa: BLE001 - the answer is there, and goes out
            self._traffic.trouble("a request could not be shadowed", error)

    def _ask(self, variant: str, request: Request, asked: Any, keywords: dict[str, Any]) -> None:
        app = self._answering.variants[variant]
        beside = Request(
            uuid.uuid4().hex,
            request.config,
            variant,
            mode="shadow",
            open_share=request.open_share,
            unit=request.unit,
            question=request.question,
        )
        tally = self._traffic.tally(beside)
        known = ("configurable", "tags", "metadata", "recursion_limit")
        config: Any = {key: request.config[key] for key in known if key in request.config}

        def work() -> Any:
            LISTENING.set(tally)  # in a context of the shadow's own
            if self._by_loop:
                return self._shadows.awaited(lambda: app.ainvoke(asked, config, **keywords))()
            return app.invoke(asked, config, **keywords)

        def tell(output: Any, error: BaseException | None, seconds: float | None) -> None:
            if seconds is None:
                self._dropped(beside, request)
                return
            try:
                if error is None:
                    self._answering.must_be_answer(output)
            except Exception as refusal:  # noqa: BLE001 - a finding on the shadow
                error = refusal
            if error is not None:
                beside.errors.append((variant, error))
            outcome = "ok" if error is None else "failed"
            self._traffic.end(beside, outcome, output, of=request.id, latency_s=seconds)

        if not self._shadows.submit(work, tell):
            self._dropped(beside, request)

    def _dropped(self, beside: Request, request: Request) -> None:
        self._traffic.trouble("shadows were dropped for want of room")
        self._traffic.end(beside, "dropped", of=request.id, latency_s=None, retrieved=None)
