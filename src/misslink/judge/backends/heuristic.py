"""The heuristic judge: an examination by word, number and name overlap, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from misslink.errors import InputError
from misslink.judge import protocol
from misslink.matching import (
    Passages,
    claim_spans,
    compare,
    declines,
    load_fit,
    rules_version,
    states_absence,
)
from misslink.registry import judges
from misslink.text.near_duplicates import passage_stems
from misslink.text.normalization import content_stems, sentence_spans, stems

RELEVANCE_THRESHOLD = 0.5  # the cut of both rules
_MAX_PROBABILITY = 0.95  # shared words alone never make certain


def classify_response(
    question: str, answer: str, evidence: Sequence[str]
) -> tuple[Literal["answers", "partly", "evades", "declines"], float]:
    """What the answer does with the question, and P(it is relevant), a heuristic.

    Parameters
    ----------
    question, answer : str
    evidence : sequence of str
        The passage sentences that the answer's supported claims rest on: "Paris." answers what
        the capital of France is, because the sentence behind it says so.

    Returns
    -------
    response : {'answers', 'partly', 'evades', 'declines'}
        'partly' where the answer also says that something is not known.
    probability : float
    """
    if declines(answer):
        return "declines", round(1 - _MAX_PROBABILITY, 6)
    probability = _relevance(question, stems(" ".join((answer, *evidence)))) if answer else 0.05
    if probability < RELEVANCE_THRESHOLD:
        return "evades", probability
    return ("partly" if states_absence(answer) else "answers"), probability


def _relevance(question: str, words: Sequence[str]) -> float:
    """P(these words help to answer the question), a heuristic, in [0.05, 0.95].

    The share of the question's content words among them. Without words it is 0; a question without
    content words says nothing, so the share is 0.5.
    """
    question_words = content_stems(question)
    if not words:
        share = 0.0
    elif not question_words:
        share = 0.5
    else:
        share = len(question_words.intersection(words)) / len(question_words)
    return round(1 - _MAX_PROBABILITY + (2 * _MAX_PROBABILITY - 1) * share, 6)


class HeuristicJudge:
    """Answers the examination from its structured inputs."""

    name = "heuristic"

    def __init__(self) -> None:
        fit = load_fit()
        self.info = protocol.JudgeInfo(note=fit.note)
        self.identity: Mapping[str, Any] = {
            "judge": self.name,
            "coefficients": fit.version,
            "rules": rules_version(),
        }

    async def ask(self, ask: protocol.Ask) -> protocol.Reply:
        """Answer an examination; any other question gets a reply without an answer."""
        if {"question", "statements", "cited"} <= set(ask.inputs):
            return self._citations(ask)
        if not {"question", "passages", "answer"} <= set(ask.inputs):
            problem = f"the judge {self.name} knows the examination only, not '{ask.name}'"
            return protocol.Reply(parsed=None, raw="", problem=problem)
        inputs = dict(ask.inputs)
        criteria = [{"criterion": each["name"]} for each in inputs.pop("criteria", ())]
        examination, probabilities = self._examine(**inputs)
        parsed = ask.schema.model_validate({**examination, "criteria": criteria})
        return protocol.Reply(parsed, raw="", probabilities=probabilities)

    async def close(self) -> None:
        """Nothing is held open."""

    def _citations(self, ask: protocol.Ask) -> protocol.Reply:
        """Compare every statement with each passage that it cites."""
        citations = []
        for number, statement in enumerate(ask.inputs["statements"], start=1):
            for passage in statement["passages"]:
                cited = Passages.of((ask.inputs["cited"][passage],), ask.inputs["question"])
                quote = cited.match(statement["text"]).quote
                pair = {"statement": number, "passage": passage, "quote": quote}
                citations.append({**pair, "supported": "yes" if quote else "no"})
        return protocol.Reply(ask.schema.model_validate({"citations": citations}), raw="")

    def _examine(
        self,
        question: str,
        passages: Sequence[str],
        answer: str,
        references: Sequence[str] = (),
        history: Sequence[Mapping[str, str]] = (),
    ) -> tuple[Mapping[str, Any], protocol.Probabilities]:
        asked = [message["content"] for message in history if message["role"] == "user"]
        question = " ".join((*asked[-1:], question))
        spans = [] if declines(answer) else claim_spans(answer)
        texts = [answer[start:end] for start, end in spans]
        shown = Passages.of(tuple(passages), question)
        matches = [shown.match(text, alone=len(texts) == 1) for text in texts]
        if history:  # weaker evidence: only where the passages decide nothing
            messages = Passages.of(tuple(message["content"] for message in history), question)
            earlier = [messages.match(text) for text in texts]
            matches = [
                after if match.quote is None and after.quote else match
                for match, after in zip(matches, earlier, strict=True)
            ]
        relevance = [_relevance(question, passage_stems(passage)) for passage in passages]
        evidence = [match.quote for match in matches if match.quote is not None]
        response, response_probability = classify_response(question, answer, evidence)
        examination: dict[str, Any] = {
            "claims": [
                {"span": text, "support": match.support, "quote": match.quote}
                for text, match in zip(texts, matches, strict=True)
            ],
            "passages": [
                {"passage": number, "relevant": probability >= RELEVANCE_THRESHOLD}
                for number, probability in enumerate(relevance, start=1)
            ],
            "response": response,
        }
        if references:
            self._compare_references(examination, question, answer, references)
        probabilities = {
            **{
                f"claims.{i}.support": {"supported": p, "unsupported": 1 - p}
                for i, p in enumerate(match.probability for match in matches)
            },
            **{
                f"passages.{i}.relevant": {"true": p, "false": 1 - p}
                for i, p in enumerate(relevance)
            },
            "response": {"answers": response_probability, "evades": 1 - response_probability},
        }
        return examination, probabilities

    def _compare_references(
        self, examination: dict[str, Any], question: str, answer: str, references: Sequence[str]
    ) -> None:
        """Compare the claims with the references, and the references' claims with the answer."""
        agreement = {"supported": "agrees", "contradicted": "contradicts", "unsupported": "silent"}
        statement = {"supported": "states", "contradicted": "contradicts", "unsupported": "omits"}
        examination["reference_claims"] = []
        for number, reference in enumerate(references, start=1):
            # A reference of one word, "None." say, is an answer all the same.
            spans = claim_spans(reference) or sentence_spans(reference)
            texts = [reference[start:end] for start, end in spans]
            found = [compare(text, (answer,), question, of_reference=True) for text in texts]
            if set(found) == {"supported"}:  # the answer states all of it: no claim contradicts it
                agreement["contradicted"] = "silent"
            examination["reference_claims"] += [
                {"reference": number, "text": text, "answer": statement[each]}
                for text, each in zip(texts, found, strict=True)
            ]
        for claim in examination["claims"]:
            found_there = compare(claim["span"], references, question, of_reference=False)
            claim["reference"] = agreement[found_there]


@judges.register("heuristic")
def open_heuristic(argument: str | None = None) -> protocol.Judge:
    """Open the judge ``heuristic``.

    Raises
    ------
    InputError
        There is an `argument`: the judge has no variants.
    """
    if argument is not None:
        raise InputError(f"there is no judge 'heuristic:{argument}'; write heuristic")
    return HeuristicJudge()
