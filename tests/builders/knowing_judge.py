"""Scripts of the judge server that know what was planted: right so often, or saying yes to all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from fake_judge import complete, wanted_schema
from honest_judge import fenced
from misslink.matching import declines
from misslink.text.normalization import content_words, fold, sentence_spans

Body = dict[str, Any]


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def nearest(sentence: str, texts: Iterable[str]) -> str | None:
    """The sentence of texts that shares most words with one."""
    words = set(content_words(sentence))
    every = [said for text in texts for said in sentences(text)]
    return max(every, key=lambda said: len(words & set(content_words(said))), default=None)


def _plain(sentence: str) -> str:
    return fold(sentence).strip(" .!")


class KnowingJudge:
    """Knows of each planted sentence whether it says what a sentence of the good answer says.

    `right` is the share of answers that it judges as they are; of the others it says the opposite.
    """

    def __init__(self, good: Sequence[Any], mutants: Iterable[Any], right: float = 1.0) -> None:
        self.right = right
        self.name, self.identity = "knowing", {"judge": "knowing", "right": right}
        sources = {case.case.id: [p.text for p in case.sources] for case in good}
        answers = {case.case.id: sentences(case.answer) for case in good}
        self.same = {
            _plain(said): nearest(said, sources[name]) for name in answers for said in answers[name]
        }
        for mutant in mutants:
            if mutant.kind.owner is None:
                for said in sentences(mutant.trace.answer):
                    self.learn(said, nearest(said, answers[mutant.origin]))

    def learn(self, said: str, original: str | None) -> None:
        """Take a sentence for one of a good answer."""
        if original is not None:
            self.same.setdefault(_plain(said), self.same.get(_plain(original), original))

    def __call__(self, body: Body) -> Body | None:
        texts = fenced(body)
        by_label = dict(texts)
        if "answer" not in by_label:
            return None
        passages = [text for label, text in texts if label.startswith("passage_")]
        references = [text for label, text in texts if label.startswith("reference_")]
        said = self.examine(by_label["question"], by_label["answer"], passages, references)
        return complete(wanted_schema(body), said)

    def examine(
        self, question: str, answer: str, passages: list[str], references: list[str]
    ) -> Body:
        refuses = declines(answer)
        stated = [] if refuses else sentences(answer)
        verdicts = [self._supported(said, passages) for said in stated]
        told = [self._stated(said, answer) for text in references for said in sentences(text)]
        asked = set(content_words(question))
        facts = [fact for text in references for fact in sentences(text)]
        sufficient = any(
            len(asked & set(content_words(text))) >= len(asked) - 2 for text in passages
        )
        if facts:
            sufficient = all(KnowingJudge._supported(self, fact, passages) for fact in facts)
        if self._errs(f"{question} {answer}"):
            if refuses:
                refuses, stated, verdicts = False, [answer], [True]
            elif all(verdicts) and all(told):
                verdicts = [False, *verdicts[1:]]
            else:
                verdicts, told = [True] * len(verdicts), [True] * len(told)
        claims = [
            {
                "span": said,
                "claim": None,
                "quotes": [quote] if good and (quote := nearest(said, passages)) else [],
                "support": "supported" if good else "unsupported",
                **({"reference": self._agrees(said, references, good)} if references else {}),
            }
            for said, good in zip(stated, verdicts, strict=True)
        ]
        examined = {
            "claims": claims,
            "passages": [
                {"passage": n, "relevant": len(asked & set(content_words(text))) >= len(asked) - 2}
                for n, text in enumerate(passages, 1)
            ],
            "response": "declines" if refuses else "answers",
            "sufficient": "yes" if sufficient else "no",
        }
        if references:
            examined["reference_claims"] = [
                {"reference": n, "text": said, "answer": "states" if good else "omits"}
                for (n, said), good in zip(
                    ((n, said) for n, text in enumerate(references, 1) for said in sentences(text)),
                    told,
                    strict=True,
                )
            ]
        return examined

    def _supported(self, said: str, passages: list[str]) -> bool:
        meant = _plain(self.same.get(_plain(said), said) or said)
        return any(meant in fold(text) for text in passages)

    def _stated(self, fact: str, answer: str) -> bool:
        fact = self.same.get(_plain(fact), fact) or fact
        meant = {_plain(self.same.get(_plain(said), said) or said) for said in sentences(answer)}
        return _plain(fact) in meant

    def _agrees(self, said: str, references: list[str], good: bool) -> str:
        meant = _plain(self.same.get(_plain(said), said) or said)
        facts = [fact for text in references for fact in sentences(text)]
        if meant in {_plain(self.same.get(_plain(fact), fact) or fact) for fact in facts}:
            return "agrees"
        other = nearest(said, references) or ""
        alike = len(set(content_words(said)) & set(content_words(other)))
        return "contradicts" if alike >= len(set(content_words(said))) - 2 else "silent"

    def _errs(self, text: str) -> bool:
        number = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        return number / 16**8 >= self.right


class YesSayer(KnowingJudge):
    """Supports everything with the nearest sentence as its quote."""

    def __init__(self) -> None:
        super().__init__((), ())

    def _supported(self, said: str, passages: list[str]) -> bool:
        return True

    def _stated(self, fact: str, answer: str) -> bool:
        return True

    def _agrees(self, said: str, references: list[str], good: bool) -> str:
        return "agrees"

    def examine(
        self, question: str, answer: str, passages: list[str], references: list[str]
    ) -> Body:
        said = super().examine(question, answer, passages, references)
        return {
            **said,
            "passages": [{**entry, "relevant": True} for entry in said["passages"]],
            "response": "answers",
            "sufficient": "yes",
        }
