"""A judge that knows what each sentence states, and one that errs about claims by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

from misslink.judge import Ask, Reply

from .planted import App, Fact, Planted, Row, Say

Stated = tuple[tuple[Fact, str], ...]


class TruthJudge:
    """Answers from the truth. Sensitivity and specificity are those of finding a bad claim."""

    def __init__(self, app: App, cases: Sequence[Planted], errors: int | str | None = None) -> None:
        self.name = "truth" if errors is None else "noisy truth"
        self.identity = {"judge": self.name, "app": app.world["name"], "errors": errors}
        self.app, self.errors, self.calls = app, errors, 0
        self.sensitivity, self.specificity = 0.8, 0.9
        self.cases: dict[str, list[Planted]] = {}
        self.shown: dict[str, tuple[str, ...]] = {}
        for case in cases:
            self.cases.setdefault(case.question, []).append(case)

    async def ask(self, ask: Ask) -> Reply:
        """Examine an answer, or say what passages hold of claims."""
        self.calls += 1
        if ask.name in ("examination", "examination_rest"):
            reply = self._examine(ask.inputs)
        elif ask.name == "claim_needs":
            reply = self._needs(ask)
        else:
            return Reply.nothing(f"not asked of this judge: {ask.name}")
        known = ask.schema.model_fields
        reply = {key: value for key, value in reply.items() if key in known}
        return Reply(ask.schema.model_validate(reply), json.dumps(reply))

    async def close(self) -> None:
        """Nothing is open."""

    def _errs(self, what: str, *, bad: bool) -> bool:
        """Whether the noisy judge is wrong here: drawn once for a text, the same in any order."""
        if self.errors is None:
            return False
        drawn = random.Random(f"{self.errors}-{what}").random()  # noqa: S311
        return drawn > (self.sensitivity if bad else self.specificity)

    def _case(self, question: str, answer: str | None = None, texts: Iterable[str] = ()) -> Planted:
        cases = self.cases[question]
        for case in cases:
            whole = " ".join(one.text for one in case.answer)
            if whole == answer or {one.text for one in says(case)} & set(texts):
                return case
        return cases[0]

    def _examine(self, inputs: Row) -> Row:
        case = self._case(inputs["question"], inputs["answer"])
        passages = tuple(inputs["passages"])
        self.shown[case.case_id] = passages
        held, stated = self.app.held(passages), _stated(case.references)
        claims = [
            claim
            for one in case.answer
            if one.stated is None or one.stated
            if "sentences" not in inputs
            or any(text in one.text or one.text in text for text in inputs["sentences"])
            for claim in self._claims(case, one, held, stated, passages)
        ]
        needed = [fact for fact, _ in case.needs]
        found = [fact in held for fact in needed]
        sufficient = "yes" if found and all(found) else "partly" if any(found) else "no"
        if self._errs(f"{case.case_id} sufficient", bad=sufficient != "yes"):
            sufficient = "no" if sufficient == "yes" else "yes"
        parts = {part for fact in needed for part, _ in self.app.derived.get(fact, ("", ()))[1]}
        relevant = [bool({*needed, *parts} & set(self.app.held([one]))) for one in passages]
        response = case.response
        return {
            "claims": claims,
            "passages": [{"passage": n, "relevant": is_} for n, is_ in enumerate(relevant, 1)],
            "sufficient": sufficient,
            "response": response,
            "helpful": {"answers": 4, "partly": 3}.get(response, 1),
            "reference_claims": self._reference_claims(case),
            "standalone_question": case.question,
        }

    def _claims(
        self,
        case: Planted,
        said: Say,
        held: dict[Fact, dict[str, list[str]]],
        reference: dict[Fact, str],
        passages: Sequence[str],
    ) -> list[Row]:
        facts = said.stated or ()
        support, quotes = _support(facts, held)
        against = "silent"
        if any(fact in reference for fact, _ in facts):
            agrees = all(reference.get(fact, value) == value for fact, value in facts)
            against = "agrees" if agrees else "contradicts"
        bad = support != "supported" or against == "contradicts"
        if self._errs(f"{case.case_id} {said.text}", bad=bad):
            if bad:
                support, quotes, against = "supported", [_nearest(said.text, passages)], "agrees"
            else:
                support, quotes, against = "unsupported", [], "silent"
        span = said.text
        return [
            {
                "span": span,
                "claim": None,
                "quotes": quotes[:2],
                "support": support,
                "reference": against,
            }
        ]

    def _reference_claims(self, case: Planted) -> list[Row]:
        stated = {
            fact: value
            for one in case.answer
            for fact, value in one.stated or ()
        }  # fmt: skip
        replies = []
        for one in case.references:
            facts = one.stated or ()
            values = [stated.get(fact) for fact, _ in facts]
            said = "states" if all(stated.get(f) == v for f, v in facts) else "contradicts"
            said = "omits" if facts and all(value is None for value in values) else said
            about = [
                a for a in case.answer if {f for f, _ in a.stated or ()} & {f for f, _ in facts}
            ]
            if about and self._errs(f"{case.case_id} {about[0].text}", bad=said != "states"):
                said = "omits" if said == "states" else "states"
            replies.append({"reference": 1, "text": one.text, "answer": said})
        return replies

    def _needs(self, ask: Ask) -> Row:
        """What the passages say of each claim: of an answer, of a reference, or the question."""
        inputs = ask.inputs
        texts = [text if isinstance(text, str) else text["text"] for text in inputs["claims"]]
        passages: list[str] = list(inputs["passages"])
        case = self._case(inputs["question"], texts=texts)
        seen = {" ".join(one.split()) for one in self.shown.get(case.case_id, ())}
        shown = [n for n, one in enumerate(passages, 1) if " ".join(one.split()) in seen]
        missed = [n for n in range(1, len(passages) + 1) if n not in shown]
        fields = _entry_fields(ask)
        replies = []
        for number, text in enumerate(texts, 1):
            facts = self._meaning(case, text)
            best = self._best(facts, passages, range(1, len(passages) + 1))
            relation, passage, quote, _ = best
            errs = self._errs(f"{case.case_id} needs {text}", bad=relation == "unrelated")
            entry: Row = {"claim": number, "relation": relation, "passage": passage, "quote": quote}
            if "missed_passage" in fields:
                of_shown, of_missed = (
                    self._best(facts, passages, some) for some in (shown, missed)
                )
                _, at, said, extent = of_shown
                entry |= {"passage": at, "quote": said, "extent": extent}
                entry |= {"missed_passage": of_missed[1], "missed_quote": of_missed[2]}
            if errs:
                entry |= self._mistaken(relation, text, passages, fields)
            replies.append(entry)
        return {"claims": replies}

    def _mistaken(self, relation: str, text: str, passages: Sequence[str], fields: set[str]) -> Row:
        """A wrong reply: what supports is overlooked, or what does not is taken for support."""
        wrong: Row = {"relation": "unrelated", "passage": None, "quote": None}
        if relation == "unrelated" and passages:
            quote = _nearest(text, passages)
            at = next(n for n, one in enumerate(passages, 1) if quote in one)
            wrong = {"relation": "would_support", "passage": at, "quote": quote}
        if "missed_passage" in fields:
            wrong |= {"missed_passage": None, "missed_quote": None}
        return wrong

    def _meaning(self, case: Planted, text: str) -> Stated:
        """What a claim states; a question asks for all that the case needs."""
        for one in says(case):
            if one.text == text or one.text.rstrip(".") == text.rstrip("."):
                return one.stated or ()
        for one in says(case):
            if text in one.text or one.text in text:
                return one.stated or ()
        return case.needs if text == case.question else ()

    def _best(
        self, facts: Stated, passages: Sequence[str], among: Iterable[int]
    ) -> tuple[str, int | None, str | None, str]:
        """The relation, the passage that decides it, its quote, and how much of it it holds."""
        parts = {part for fact, _ in facts for part in self.app.derived.get(fact, ("", ()))[1]}
        found: list[tuple[int, str, int, str]] = []
        for number in among:
            held = self.app.held([passages[number - 1]])
            for fact, value in (*facts, *parts):
                for stated, quotes in held.get(fact, {}).items():
                    order = 0 if stated == value else 1
                    relation = ("would_support", "would_contradict")[order]
                    found.append((order, relation, number, quotes[0]))
        if not found:
            return "unrelated", None, None, "whole"
        _, relation, number, quote = min(found)
        whole = len({quote for order, *_, quote in found if order == 0}) >= len(facts) and not parts
        return relation, number, quote, "whole" if whole else "part"


def says(case: Planted) -> tuple[Say, ...]:
    """All sentences of answer and reference."""
    return (*case.answer, *case.references)


def _stated(references: Sequence[Say]) -> dict[Fact, str]:
    return {fact: value for one in references for fact, value in one.stated or ()}


def _support(facts: Stated, held: dict[Fact, dict[str, list[str]]]) -> tuple[str, list[str]]:
    """Whether texts support a claim, and the sentences that decide it."""
    if not facts:
        return "unsupported", []
    for fact, value in facts:
        if fact in held and value not in held[fact]:
            return "contradicted", next(iter(held[fact].values()))
    if any(fact not in held for fact, _ in facts):
        return "unsupported", []
    return "supported", [quote for fact, value in facts for quote in held[fact][value]]


def _nearest(text: str, passages: Sequence[str]) -> str:
    """The sentence that shares most words with a text."""
    words = set(text.lower().split())
    sentences = [part for one in passages for part in one.split(". ")] or [""]
    return max(sentences, key=lambda part: len(words & set(part.lower().split())))


def _entry_fields(ask: Ask) -> set[str]:
    """The fields of an entry of the reply's list."""
    schema: dict[str, Any] = ask.schema.model_json_schema()
    fields: set[str] = set()
    for definition in schema.get("$defs", {}).values():
        fields |= set(definition.get("properties", {}))
    return fields
