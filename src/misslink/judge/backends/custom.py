"""Judges of a user's own: FILE.py:NAME, objects, and models that give entailment."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.judge.backends.decisions import is_decision_model, judge_from_model
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.config import split_spec
from misslink.judge.examination import Examination, ExaminedClaim
from misslink.judge.protocol import Ask, Judge, JudgeInfo, JudgeLayer, Reply
from misslink.text.normalization import sentence_spans
from misslink.user_code import import_target, resolve_attribute, with_article

_REQUIRED_MEMBERS = ("name", "identity", "ask", "close")


def load_custom_judge(spec: str, options: Mapping[str, Any] | None = None) -> Judge:
    """Import a judge from a file or module.

    Parameters
    ----------
    spec : str
        ``path/to/judge.py:name`` or ``package.module:name``, from the working folder. The name is
        a judge, or a class or function that makes one.
    options : mapping or None
        Such as ``temperature``, for a class or function that has a parameter of that name.

    Returns
    -------
    Judge
        Its identity contains the SHA-256 of its file, so that changed code does not reuse cached
        replies. Changes in modules that the file imports are not detected.

    Raises
    ------
    InputError
        The file or name does not exist, cannot be imported, or is no judge; or an option is not
        accepted.
    """
    target, name = split_spec(spec) or ("", "")
    if not (target and name):
        raise InputError(
            f"'{spec}' does not name a judge; write  path/to/judge.py:name  or  package.module:name"
        )
    module = import_target(target, Path.cwd())
    thing = resolve_attribute(module, name, target)
    judge = as_judge(_create_judge(thing, spec, options or {}), spec)
    for part in ("ask", "close"):
        if not inspect.iscoroutinefunction(getattr(judge, part)):
            raise InputError(f"{spec}: its {part} must be a function declared with  async def")
    if not isinstance(judge.name, str) or not judge.name.strip():
        raise InputError(f"{spec}: its name must be a text that is not empty")
    source = getattr(module, "__file__", None)
    content = Path(source).read_bytes() if source else b""
    return CustomJudge(judge, hashlib.sha256(content).hexdigest())


class CustomJudge(JudgeLayer):
    """A judge from a file or module, whose identity includes the hash of its file."""

    def __init__(self, judge: Judge, sha256: str) -> None:
        super().__init__(judge)
        self.identity = {**judge.identity, "file_sha256": sha256}

    async def ask(self, ask: Ask) -> Reply:
        """Answer, as the judge does."""
        return await self.judge.ask(ask)


def _create_judge(thing: Any, spec: str, options: Mapping[str, Any]) -> Any:
    """The judge that `thing` is or makes."""
    is_judge = not inspect.isclass(thing) and (hasattr(thing, "ask") or is_decision_model(thing))
    is_made = callable(thing) and not is_judge
    if foreign := foreign_options(thing, options) if is_made else [*options]:
        raise InputError(f"the judge {spec} has no {', '.join(foreign)}; leave it out")
    if not is_made:
        return thing
    try:
        return thing(**options)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{spec} made no judge: {type(error).__name__}: {error}; it is called without "
            "arguments beside the options given"
        ) from error


def foreign_options(factory: Callable[..., Any], options: Mapping[str, Any]) -> list[str]:
    """Return the options that a class or function has no parameters for."""
    taken: Mapping[str, inspect.Parameter] = {}
    with contextlib.suppress(TypeError, ValueError):  # a builtin without a signature
        taken = inspect.signature(factory).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values()):
        return []
    return [option for option in options if option not in taken]


def as_judge(thing: Any, shown: str) -> Judge:
    """Return an object, `shown` so in messages, as a judge: LangChain's decision models are asked by one.

    Raises
    ------
    InputError
        It lacks what every judge has.
    """
    judge: Judge = judge_from_model(thing) if is_decision_model(thing) else thing
    lacking = [part for part in _REQUIRED_MEMBERS if not hasattr(judge, part)]
    if lacking:
        raise InputError(
            f"{shown} is {with_article(type(judge).__name__)} and not a judge: it lacks "
            f"{', '.join(lacking)}; see misslink.judge.Judge"
        )
    try:
        json.dumps(dict(judge.identity), sort_keys=True)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"{shown}: its identity must be a mapping of JSON values, such as "
            f'{{"model": "mine", "version": 1}} ({problem})'
        ) from None
    return judge


@dataclass(eq=False, repr=False)
class EntailmentJudge:
    """A judge that takes support from a model which scores pairs of a text and a claim.

    The answer is split into sentences, each compared with each passage. The best passage decides,
    and its best sentence is the quote. Relevance and references are judged by words, as the
    heuristic judge does.

    Parameters
    ----------
    name : str
    score : callable
        Takes ``(text, claim)`` pairs and returns P(the text supports the claim) for each, in [0, 1].
        It runs in a thread, one call at a time.
    threshold : float
        P(supported) from which a claim is called supported. Choose it on labels of your own.
    identity : mapping
        What the scores depend on, such as the model's version; JSON values.
    """

    name: str
    score: Callable[[list[tuple[str, str]]], Sequence[float]]
    _: KW_ONLY
    threshold: float = 0.5
    identity: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._words = HeuristicJudge()
        self.identity = {
            "judge": self.name,
            "threshold": self.threshold,
            "rules": self._words.identity["rules"],
            **(self.identity or {}),
        }
        self.info = JudgeInfo(
            note=f"{self.name} judges support alone; relevance and references are matched by words",
            max_concurrency=1,
        )

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination; any other question gets a reply without an answer.

        Raises
        ------
        InputError
            The scores are not one number in [0, 1] for each pair.
        """
        reply = await self._words.ask(ask)
        examination, passages = reply.parsed, ask.inputs.get("passages", ())
        if not isinstance(examination, Examination):
            return Reply.nothing(f"the judge {self.name} judges answers, not '{ask.name}'")
        if not (examination.claims and passages):
            return reply
        texts = [claim.text for claim in examination.claims]
        chances = await self._chances([(passage, text) for text in texts for passage in passages])
        rows = [chances[i : i + len(passages)] for i in range(0, len(chances), len(passages))]
        claims: list[ExaminedClaim] = []
        probabilities = dict(reply.probabilities)
        for number, (claim, row) in enumerate(zip(examination.claims, rows, strict=True)):
            chance = max(row)
            probabilities[f"claims.{number}.support"] = {
                "supported": chance,
                "unsupported": 1 - chance,
            }
            decided: dict[str, Any] = {"support": "unsupported", "quotes": ()}
            if chance >= self.threshold:
                quote = await self._best_sentence(passages[row.index(chance)], claim.text)
                decided = {"support": "supported", "quotes": (quote,)}
            claims.append(claim.model_copy(update=decided))
        parsed = examination.model_copy(update={"claims": tuple(claims)})
        return replace(reply, parsed=parsed, probabilities=probabilities)

    async def close(self) -> None:
        """Nothing is held open."""

    async def _best_sentence(self, passage: str, claim: str) -> str:
        sentences = [passage[start:end] for start, end in sentence_spans(passage)] or [passage]
        chances = await self._chances([(sentence, claim) for sentence in sentences])
        return sentences[chances.index(max(chances))]

    async def _chances(self, pairs: list[tuple[str, str]]) -> list[float]:
        scores = [float(score) for score in await asyncio.to_thread(self.score, pairs)]
        if len(scores) != len(pairs) or not all(0 <= score <= 1 for score in scores):
            raise InputError(
                f"the judge {self.name}: score returned {len(scores)} numbers for {len(pairs)} pairs,"
                f" from {min(scores, default=0):g} to {max(scores, default=0):g}; it must return"
                " P(the text supports the claim), from 0 to 1, for each pair"
            )
        return scores
