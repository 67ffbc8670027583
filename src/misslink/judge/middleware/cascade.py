"""A cheap judge decides where it is sure, and a second judge decides the rest."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from misslink.documents import Cascade
from misslink.errors import InputError
from misslink.judge import examination, protocol
from misslink.judge.backends.decisions import DecisionJudge
from misslink.judge.claims import examined_coverage, read_claims
from misslink.judge.config import is_custom_judge
from misslink.registry import judges
from misslink.stats import proportion
from misslink.types import Passage


@dataclass(frozen=True)
class UncertaintyBand:
    """Where a judge is not sure whether an answer is faithful.

    The measure is the least P(supported) of an answer's claims.

    Parameters
    ----------
    low : float or None
        At this or below, the answer is surely unfaithful; None: never.
    high : float or None
        At this or above, the answer is surely faithful; None: never.
    """

    low: float | None
    high: float | None

    def faithful(self, least: float) -> bool | None:
        """Whether an answer whose least P(supported) is `least` is faithful; None: not sure."""
        if self.high is not None and least >= self.high:
            return True
        if self.low is not None and least <= self.low:
            return False
        return None


# Of decision models, until labels say better: their probabilities are meant to be calibrated.
UNFITTED_BAND = UncertaintyBand(0.1, 0.9)


class CascadeJudge:
    """Asks the cheap judge first, and the expensive one if the cheap one is not sure.

    The expensive judge may be a cascade itself.

    The cheap judge's reply is used if it gives a probability for every claim and the least of them
    is outside the band. The expensive judge answers everything else, answers without claims
    included. It also answers a sample of what the cheap judge decided, drawn by a hash of the
    question so that a resumed run draws the same; for these its reply is used.

    Parameters
    ----------
    cheap : Judge
        With its cache, throttle and budget around it, unless its replies cost nothing.
    expensive : Judge
        With its cache, throttle and budget around it.
    band : Band
        Where the cheap judge is not sure; `band_of` has the fitted one.
    audit : float
        Share of the cheap judge's decisions that is drawn, in [0, 1].
    """

    def __init__(
        self,
        cheap: protocol.Judge,
        expensive: protocol.Judge,
        *,
        band: UncertaintyBand,
        audit: float = 0.05,
    ) -> None:
        self.cheap = cheap
        self.judge = expensive
        self.band = band
        self.name = f"cascade:{cheap.name},{expensive.name.removeprefix('cascade:')}"
        self.identity: Mapping[str, Any] = {
            "judge": "cascade",
            "cheap": dict(cheap.identity),
            "dear": dict(expensive.identity),
            "band": asdict(band),
            "cascade_check": audit,
        }
        self._audit = audit
        self._seen_by: Counter[str] = Counter()
        self._sure = 0
        self._drawn = 0
        self._audited: list[bool] = []

    @property
    def info(self) -> protocol.JudgeInfo:
        """The info of the expensive judge, with the notes of both."""
        notes = [
            note if note.startswith(judge.name) else f"{judge.name}: {note}"
            for judge in (self.cheap, self.judge)
            if (note := protocol.judge_info(judge).note)
        ]
        note = "; ".join(notes) or None
        return replace(protocol.judge_info(self.judge), note=note)

    async def ask(self, ask: protocol.Ask) -> protocol.Reply:
        """Answer by one of the two judges; ``judge`` of the reply says which.

        What the cheap judge cannot answer, the expensive one answers; its errors are raised.
        """
        cheap, decided = await self._ask_cheap(ask)
        if cheap is None or decided is None:
            return await self._ask_expensive(ask)
        self._sure += 1
        # Where the budget is spent, this question is answered already.
        with contextlib.suppress(protocol.SkippedAskError):
            if self._draws(ask):
                expensive = await self._ask_expensive(ask)
                self._drawn += 1
                second = _is_faithful(ask, expensive)
                if second is not None:
                    self._audited.append(second == decided)
                return expensive
        self._seen_by[self.cheap.name] += 1
        return replace(cheap, judge=cheap.judge or self.cheap.name)

    async def planned_asks(self, ask: protocol.Ask) -> tuple[protocol.Ask, ...]:
        """Return the questions that the expensive judge would get; all, if finding out costs money."""
        if protocol.judge_info(self.cheap).requests_sent is not None:
            return (ask,)
        _, decided = await self._ask_cheap(ask)
        return () if decided is not None and not self._draws(ask) else (ask,)

    async def close(self) -> None:
        """Close both."""
        try:
            await self.cheap.close()
        finally:
            await self.judge.close()

    def summary(self) -> Cascade:
        """Return who answered what so far; its ``stages`` are left empty.

        Returns
        -------
        Cascade
            ``asked``, the number of questions with a reply; ``seen_by``, how many of them by judge;
            ``share_dear``, an Estimate of the expensive judge's share; ``sure``, how many the cheap
            judge would have decided; ``drawn``, how many of those the expensive one answered too;
            ``audited``, how many of the drawn have a label of the expensive judge; ``agreed``, for how
            many of these the cheap judge's label is the same; ``agreement``, an Estimate of that share.
        """
        seen = {self.cheap.name: 0, **self._seen_by}
        answered = sum(seen.values())
        agreed = sum(self._audited)
        return Cascade(
            asked=answered,
            seen_by=seen,
            share_dear=proportion(answered - seen[self.cheap.name], answered),
            sure=self._sure,
            drawn=self._drawn,
            audited=len(self._audited),
            agreed=agreed,
            agreement=proportion(agreed, len(self._audited)),
            stages={},
        )

    async def _ask_cheap(self, ask: protocol.Ask) -> tuple[protocol.Reply | None, bool | None]:
        """The cheap judge's reply, where one came, and whether the answer is surely faithful or not."""
        try:
            reply = await self.cheap.ask(ask)
        except protocol.RetryableError:
            return None, None
        least = least_supported(reply)
        decided = None if least is None else self.band.faithful(least)
        if decided and _is_faithful(ask, reply) is False:
            decided = None  # what the checks overrule is not sure: the next judge sees it
        return reply, decided

    async def _ask_expensive(self, ask: protocol.Ask) -> protocol.Reply:
        reply = await self.judge.ask(ask)
        name = reply.judge or self.judge.name
        self._seen_by[name] += 1
        return replace(reply, judge=name)

    def _draws(self, ask: protocol.Ask) -> bool:
        """Whether a question is in the audit sample; every sample of it is, or none."""
        digest = hashlib.sha256(ask.key.encode()).digest()
        return int.from_bytes(digest[:8], "big") < self._audit * 2**64


def least_supported(reply: protocol.Reply) -> float | None:
    """The least P(supported) of an examination's claims, in [0, 1].

    None where the reply is no examination, has no claims, or a claim has no probability.
    """
    if not isinstance(reply.parsed, examination.Examination):
        return None
    chances = [
        reply.chance(f"claims.{number}.support", "supported")
        for number in range(len(reply.parsed.claims))
    ]
    probabilities = [chance for chance in chances if chance is not None]
    return min(probabilities) if probabilities and len(probabilities) == len(chances) else None


def _is_faithful(ask: protocol.Ask, reply: protocol.Reply) -> bool | None:
    """Whether every claim is supported, its quote looked up; None where no claim is known."""
    passages = [
        Passage(id=str(number), text=text, rank=number)
        for number, text in enumerate(ask.inputs["passages"], start=1)
    ]
    answer, question = ask.inputs["answer"], ask.inputs["question"]
    if not isinstance(reply.parsed, examination.Examination):
        return None
    history = [message["content"] for message in ask.inputs.get("history", ())]
    claims = read_claims(reply, answer, passages, question, history)
    if any(claim.support != "supported" for claim in claims):
        return False
    covered = not examined_coverage(reply.parsed, answer, question).uncovered
    return True if claims and covered else None


def parse_cascade_spec(argument: str | None) -> list[str]:
    """Return the judges that ``cascade:CHEAP,...,EXPENSIVE`` names, two or more.

    Raises
    ------
    InputError
        It names fewer, or one of them is a cascade itself.
    """
    stages: list[str] = []
    for part in map(str.strip, (argument or "").split(",")):
        is_judge = part.partition(":")[0] in {*judges.names(), "cascade", ""} or is_custom_judge(
            part
        )
        if stages and not is_judge:
            stages[-1] += f",{part}"  # a comma in the name of a model
        else:
            stages.append(part)
    if len(stages) < 2 or not all(stages):
        raise InputError(
            "a cascade needs a cheap judge and another one: --judge cascade:heuristic,openai:MODEL"
        )
    if "cascade" in {stage.partition(":")[0] for stage in stages}:
        raise InputError("a cascade cannot contain another cascade; name plain judges")
    return stages


def stage_band(judge: protocol.Judge) -> UncertaintyBand:
    """Return the band of a stage before the last: fitted on labels, else that of decision models.

    Raises
    ------
    InputError
        No band was fitted for it, and it gives no probabilities.
    """
    bands = _fitted_bands()
    if judge.name in bands:
        return bands[judge.name]
    if isinstance(protocol.unwrap_judge(judge), DecisionJudge):
        return UNFITTED_BAND
    raise InputError(
        f"the judge {judge.name} has no fitted uncertainty band, so it can only be the last of a"
        f" cascade; put {' or '.join(bands)} or a decision model before it"
    )


@cache
def _fitted_bands() -> Mapping[str, UncertaintyBand]:
    """The bands by the names of their judges."""
    source = files("misslink.judge.middleware").joinpath("cascade.json")
    judges = json.loads(source.read_text(encoding="utf-8"))["judges"]
    return {name: UncertaintyBand(**fitted["band"]) for name, fitted in judges.items()}
