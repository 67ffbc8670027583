"""The heuristic judge: an examination by word, number and name overlap, without a model."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from misslink.errors import InputError
from misslink.judge import protocol
from misslink.judge.backends.heuristic.matching import (
    SAME_STATEMENT,
    ClaimMatch,
    MatchingContext,
    leading_polarity,
    number_neighbors,
    strip_polarity,
)
from misslink.registry import judges
from misslink.text import normalization
from misslink.text.abstention import claim_spans, content_stems, declines, states_absence
from misslink.text.assertion import is_negated
from misslink.text.normalization import sentence_spans, stems
from misslink.types import Support

SHORT = 3  # content words; a text this short must be matched in full
_MIN_SHARE = 0.5  # of the words that are not in the question, that the other text must have
_MIN_STEM_LETTERS = 4  # letters that must be left of a word without its ending
_WORD = re.compile(r"non-\w+|\w+(?:['.]\w+|,\d{3}\b)*")
_CHOICE = re.compile(r"(\w+),? or (?:\w+ )??(\w+)")
_SENTENCE_END = re.compile(r"[.!?]\s+")
_YES_OR_NO = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|must)\b"
)


def compare(
    claim: str,
    texts: Sequence[str],
    question: str,
    judged: Callable[[str, MatchingContext], Support],
    *,
    of_reference: bool,
) -> Support:
    """Compare a claim of an answer with references, or a claim of a reference with the answer.

    Parameters
    ----------
    claim : str
    texts : sequence of str
        The references; if `of_reference`, only the answer.
    question : str
        Both may leave out what it says, so each text is read with the question before it.
    judged : callable
        Judges whether passages support a claim.
    of_reference : bool
        Whether `claim` is from a reference; the answer must then have its numbers and names.
    """
    if any(_has_sentence(text, claim) for text in texts):
        return "supported"
    plain = judged(claim, MatchingContext(texts, question))
    if plain == "contradicted":
        return plain
    if texts and all(_has_other_number(claim, text, question) for text in texts):
        return "contradicted"
    if all(_other_choice(claim, text, question) for text in texts):
        return "unsupported"
    if any(_shortly_the_same(claim, text, question, of_reference) for text in texts):
        return "supported"
    new = _new_words(claim, question)
    if not new:  # with the question before it, any text would support it
        return plain if leading_polarity(claim) is None else "unsupported"
    asked = question.strip().rstrip("?!.: ")
    support = judged(claim, MatchingContext([f"{asked} {text}" for text in texts], question))
    held = _share_contained(new, texts)
    if of_reference:
        enough = held == 1 if len(new) <= SHORT else held >= _MIN_SHARE
    else:  # it may add words, but must contain all that a short reference says
        short = [words for text in texts if len(words := _key_words(text, question)) <= SHORT]
        whole = not short or any(_share_contained(words, [claim]) == 1 for words in short)
        enough = held == 1 or (whole and held >= _MIN_SHARE)
    return "supported" if enough and support == "supported" else "unsupported"


def _has_sentence(text: str, sentence: str) -> bool:
    """Whether a sentence of `text` is `sentence` word for word, its yes or no included."""
    words = normalization.fold(sentence).strip(" .!")
    spans = normalization.sentence_spans(text)
    return any(normalization.fold(text[start:end]).strip(" .!") == words for start, end in spans)


def leading_agreement(text: str, others: Sequence[str], question: str = "") -> Support | None:
    """Compare the yes or no of `text` with those of `others`; None if that decides nothing.

    A text that restates a yes-or-no question says yes, and one that denies it says no. The result is
    'contradicted' if every other text with a yes or no says the opposite, and 'supported' if one
    says the same and one of the two says nothing more.
    """
    stance = _stance(text, question)
    stances = {other: _stance(other, question) for other in others}
    if stance is None or all(value is None for value in stances.values()):
        return None
    agreeing = [other for other, value in stances.items() if value == stance]
    if not agreeing:
        return "contradicted"
    return (
        "supported" if any(not _new_words(each, question) for each in (text, *agreeing)) else None
    )


def _stance(text: str, question: str) -> bool | None:
    stance = leading_polarity(text)
    asked = _SENTENCE_END.split(normalization.fold(question).strip())[-1]  # of a conversation
    if stance is not None or " or " in asked or not _YES_OR_NO.match(asked):
        return stance
    words = _words(text)
    restates = bool(words) and not _new_words(text, question)
    return is_negated(text) == is_negated(asked) if restates else None


def _has_other_number(claim: str, text: str, question: str) -> bool:
    """Whether all sentences of `text` on the same matter have another number by the same word.

    Of "10 cents in black, 40 cents in color" both numbers count.
    """
    words = [word for word in _words(claim) if not word[0].isdigit()]
    own = number_neighbors(claim)
    asked = _numbers(question)
    own_numbers = _numbers(claim) - asked
    differs = []
    for start, end in normalization.sentence_spans(text):
        others = number_neighbors(text[start:end])
        shared = own.keys() & others
        if shared and _share_contained(words, [question, text[start:end]]) >= SAME_STATEMENT:
            numbers = _numbers(text[start:end]) - asked
            differs.append(
                any(own[word] not in numbers and others[word] not in own_numbers for word in shared)
            )
    return bool(differs) and all(differs)


def _numbers(text: str) -> set[str]:
    return normalization.extract_numbers(normalization.fold(text))


def _other_choice(claim: str, text: str, question: str) -> bool:
    """Whether the question offers a choice ("A or B"), and the two texts choose differently."""
    for choice in _CHOICE.findall(normalization.fold(question)):
        options = [_word_forms([word]) for word in choice]
        first, second = (_word_forms(_words(each)) for each in (claim, text))
        chosen = [{i for i, o in enumerate(options) if o & forms} for forms in (first, second)]
        if all(chosen) and chosen[0].isdisjoint(chosen[1]):
            return True
    return False


def _shortly_the_same(claim: str, text: str, question: str, of_reference: bool) -> bool:
    """Whether `claim` says all that a short text does; it may add words, but no denial."""
    words = _new_words(text, question)
    if not 0 < len(words) <= SHORT or is_negated(claim) != is_negated(text):
        return False
    if _share_contained(words, [claim]) < 1:
        return False
    if not of_reference:
        return True
    names = set(map(normalization.fold, re.findall(r"\b[A-Z][\w'-]+", claim)))
    facts = [w for w in _new_words(claim, question) if w[0].isdigit() or w in names]
    numbers = [word for word in facts if word[0].isdigit()]
    held = _share_contained(numbers, [text]) == 1 and _share_contained(facts, [text]) >= _MIN_SHARE
    return bool(facts) and held


def _key_words(text: str, question: str) -> list[str]:
    """The words of `text` that are not in the question; all of its words if there are none."""
    return _new_words(text, question) or _words(strip_polarity(text))


def _new_words(text: str, question: str) -> list[str]:
    options = {word for choice in _CHOICE.findall(normalization.fold(question)) for word in choice}
    asked = _word_forms(word for word in _words(question) if word not in options)
    words = _words(strip_polarity(text))
    return [word for word in words if asked.isdisjoint(_word_forms([word]))]


def _share_contained(words: Sequence[str], texts: Iterable[str]) -> float:
    """Share of `words` that are in any of the texts; 1 if there are no words."""
    forms = _word_forms(word for text in texts for word in _words(text))
    held = sum(not forms.isdisjoint(_word_forms([word])) for word in words)
    return held / len(words) if words else 1.0


def _words(text: str) -> list[str]:
    """Content words; an identifier or a word such as "non-zero" counts as one."""
    words = _WORD.findall(
        normalization.number_words_to_digits(normalization.fold(text.replace("\\_", "_")))
    )
    return [word for word in words if word not in normalization.STOPWORDS]


def _word_forms(words: Iterable[str]) -> set[str]:
    """The words as they are, and without their endings if enough letters are left."""
    forms = set()
    for word in words:
        forms.add(word.removesuffix("'s").replace(",", ""))
        if len(short := normalization.strip_ending(word)) >= _MIN_STEM_LETTERS:
            forms.add(short)
    return forms


REFUSED_SHARE = 0.5  # of the cut: what a claim's probability is scaled to where the rules refuse it


@dataclass(frozen=True)
class LogisticFit:
    """A logistic fit of P(supported), and the cut from which a claim is called supported.

    Parameters
    ----------
    intercept : float
    weights : mapping of str to float
        By feature, in the features' order; positive, for every feature grows with doubt.
    cut : float
        In [0, 1].
    figures : mapping
        What was measured on held-out answers; see `fit_figures`.
    """

    intercept: float
    weights: Mapping[str, float]
    cut: float
    figures: Mapping[str, Any]

    @property
    def version(self) -> str:
        """A hash of what the verdicts depend on."""
        content = json.dumps([self.intercept, dict(self.weights), self.cut])
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def probability(self, match: ClaimMatch) -> float:
        """Return P(supported), in [0, 1], rounded to 6 digits.

        Below the cut, whatever the features, where the claim shares no word with the passages,
        contradicts them, or has a name, a number or an identifier that is in none.
        """
        terms = (
            weight * value
            for weight, value in zip(self.weights.values(), match.features, strict=True)
        )
        # Bounded, so that no input overflows.
        doubt = min(max(sum(terms, -self.intercept), -30.0), 30.0)
        probability = 1 / (1 + math.exp(doubt))
        if match.conflict is not None or match.invented or not match.shares_words:
            probability *= REFUSED_SHARE * self.cut
        return round(probability, 6)


@cache
def load_fit() -> LogisticFit:
    """Return the committed fit."""
    source = files("misslink.judge.backends.heuristic") / "coefficients.json"
    return LogisticFit(**json.loads(source.read_text(encoding="utf-8"))["judges"]["heuristic"])


def fit_figures() -> dict[str, Any]:
    """Return what the judge reached on answers that were used for no choice.

    Returns
    -------
    dict
        ``answers``, ``unfaithful``: how many of RAGTruth QA; ``auroc``, ``f1``, ``precision`` and
        ``recall`` of finding the unfaithful ones, ``kappa``; ``fit``: the version of the fit.
    """
    return dict(load_fit().figures)


def fit_note(fit: LogisticFit) -> str:
    """Return what readers of the judge's verdicts must know, in one line."""
    figures = fit.figures
    low = int(10 * figures["precision"])
    earlier = "" if figures["fit"] == fit.version else ", with an earlier fit"
    return (
        f"heuristic; of 10 answers it flags, {low} to {low + 1} are unfaithful; it finds"
        f" {figures['recall']:.0%} ({figures['answers']} RAGTruth QA answers not"
        f" used for fitting{earlier})"
    )


RELEVANCE_THRESHOLD = 0.5  # the cut of both rules
_MAX_PROBABILITY = 0.95  # shared words alone never make certain


def estimate_relevance(question: str, passage: str) -> float:
    """P(the passage helps to answer the question), a heuristic, in [0.05, 0.95].

    The share of the question's content words that the passage holds. A passage without words is
    irrelevant; a question without content words says nothing, so it is 0.5 for any other passage.
    """
    return _relevance_probability(question, stems(passage))


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
    probability = (
        _relevance_probability(question, stems(" ".join((answer, *evidence)))) if answer else 0.05
    )
    if probability < RELEVANCE_THRESHOLD:
        return "evades", probability
    return ("partly" if states_absence(answer) else "answers"), probability


def _relevance_probability(question: str, words: Sequence[str]) -> float:
    question_words = content_stems(question)
    if not words:
        share = 0.0
    elif not question_words:
        share = 0.5
    else:
        share = len(question_words.intersection(words)) / len(question_words)
    return round(1 - _MAX_PROBABILITY + (2 * _MAX_PROBABILITY - 1) * share, 6)


_CITATION = re.compile(r"\s*\[\^?\d{1,3}(?:\s*[-,;\u2013]\s*\d{1,3})*\]")  # "[2, 3]" is no number

ScoredMatch = tuple[ClaimMatch, float]  # a claim's match and its P(supported)


def match_claims(claims: Sequence[str], context: MatchingContext) -> list[ScoredMatch]:
    """Match claims, but for citation numbers in brackets; return each match and P(supported)."""
    matches = [context.match(_CITATION.sub("", claim)) for claim in claims]
    return [(match, load_fit().probability(match)) for match in matches]


def match_support(match: ClaimMatch, probability: float) -> Support:
    """Return what a match says of its claim."""
    if match.conflict is not None:
        return "contradicted"
    return "supported" if probability >= load_fit().cut else "unsupported"


def claim_relations(
    claims: Sequence[str], context: MatchingContext
) -> list[tuple[Literal["would_support", "would_contradict", "unrelated"], str | None, float]]:
    """Return what passages would say about claims, by the lexical judge; a heuristic.

    Returns
    -------
    list of (relation, quote, probability)
        For each claim 'would_support', 'would_contradict' or 'unrelated'; the deciding sentence,
        verbatim, None where they are unrelated; and P(the passages support the claim).
    """
    relations: list[
        tuple[Literal["would_support", "would_contradict", "unrelated"], str | None, float]
    ] = []
    for match, probability in match_claims(claims, context):
        support = match_support(match, probability)
        if match.best is None or support == "unsupported":
            relations.append(("unrelated", None, probability))
        elif support == "supported":
            relations.append(("would_support", match.best.text, probability))
        else:
            relations.append(("would_contradict", match.best.text, probability))
    return relations


class HeuristicJudge:
    """Answers the examination from its structured inputs."""

    name = "heuristic"

    def __init__(self) -> None:
        fit = load_fit()
        self.info = protocol.JudgeInfo(note=fit_note(fit))
        self.threshold = fit.cut
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
        reply = self._examine(**ask.inputs)
        if ask.inputs.get("history") and reply.parsed:  # the schema of a conversation has more
            return replace(reply, parsed=ask.schema.model_validate(reply.parsed.model_dump()))
        return reply

    async def close(self) -> None:
        """Nothing is held open."""

    def _citations(self, ask: protocol.Ask) -> protocol.Reply:
        """Compare every statement with each passage that it cites."""
        citations = []
        for number, statement in enumerate(ask.inputs["statements"], start=1):
            for passage in statement["passages"]:
                context = MatchingContext((ask.inputs["cited"][passage],), ask.inputs["question"])
                ((match, probability),) = match_claims([statement["text"]], context)
                supported = match_support(match, probability) == "supported"
                quote = match.best.text if match.best and supported else None
                pair = {"statement": number, "passage": passage, "quote": quote}
                citations.append({**pair, "supported": "yes" if supported else "no"})
        return protocol.Reply(ask.schema.model_validate({"citations": citations}), raw="")

    def _examine(
        self,
        question: str,
        passages: Sequence[str],
        answer: str,
        references: Sequence[str] = (),
        history: Sequence[Mapping[str, str]] = (),
    ) -> protocol.Reply:
        asked = [message["content"] for message in history if message["role"] == "user"]
        question = " ".join((*asked[-1:], question))
        spans = [] if declines(answer) else claim_spans(answer)
        texts = [answer[start:end] for start, end in spans]
        matches = match_claims(texts, MatchingContext(passages, question))
        if history:  # weaker evidence: only where the passages decide nothing
            messages = MatchingContext([message["content"] for message in history], question)
            earlier = match_claims(texts, messages)
            matches = [
                after
                if match_support(*match) == "unsupported" and match_support(*after) == "supported"
                else match
                for match, after in zip(matches, earlier, strict=True)
            ]
        claims = []
        for text, match in zip(texts, matches, strict=True):
            support = match_support(*match)
            best = match[0].best if support != "unsupported" else None
            quote = best and best.text
            claims.append(
                protocol.ExaminedClaim(span=text, claim=text, support=support, quote=quote)
            )
        relevance = [estimate_relevance(question, passage) for passage in passages]
        quotes = [claim.quote for claim in claims if claim.quote and claim.support == "supported"]
        response, response_probability = classify_response(question, answer, quotes)
        parsed = protocol.Examination(
            claims=tuple(claims),
            passages=tuple(
                protocol.ExaminedPassage(
                    passage=number, relevant=probability >= RELEVANCE_THRESHOLD
                )
                for number, probability in enumerate(relevance, start=1)
            ),
            response=response,
        )
        return protocol.Reply(
            parsed=self._with_references(parsed, question, answer, references)
            if references
            else parsed,
            raw="",
            probabilities={
                **{
                    f"claims.{i}.support": {"supported": p, "unsupported": 1 - p}
                    for i, (_, p) in enumerate(matches)
                },
                **{
                    f"passages.{i}.relevant": {"true": p, "false": 1 - p}
                    for i, p in enumerate(relevance)
                },
                "response": {"answers": response_probability, "evades": 1 - response_probability},
            },
        )

    def _with_references(
        self,
        examination: protocol.Examination,
        question: str,
        answer: str,
        references: Sequence[str],
    ) -> protocol.ExaminationWithReference:
        """Compare the claims with the references, and the references' claims with the answer."""
        agreement: dict[Support, Literal["agrees", "contradicts", "silent"]] = {
            "supported": "agrees",
            "contradicted": "contradicts",
            "unsupported": "silent",
        }
        statement: dict[Support, Literal["states", "contradicts", "omits"]] = {
            "supported": "states",
            "contradicted": "contradicts",
            "unsupported": "omits",
        }
        by_references = self._agree(
            [claim.claim for claim in examination.claims], references, question, of_reference=False
        )
        if by_references:
            first = leading_agreement(answer, references, question)
            by_references[0] = first or by_references[0]
        reference_claims: list[tuple[int, str, Support]] = []
        for number, reference in enumerate(references, start=1):
            # A reference of one word, "None." say, is an answer all the same.
            spans = claim_spans(reference) or sentence_spans(reference)
            texts = [reference[start:end] for start, end in spans]
            reference_matches = self._agree(texts, (answer,), question, of_reference=True)
            if reference_matches:
                reference_matches[0] = (
                    leading_agreement(reference, (answer,), question) or reference_matches[0]
                )
            reference_claims += (
                (number, text, each) for text, each in zip(texts, reference_matches, strict=True)
            )
        return protocol.ExaminationWithReference(
            claims=tuple(
                protocol.ExaminedClaimWithReference(**dict(claim), reference=agreement[each])
                for claim, each in zip(examination.claims, by_references, strict=True)
            ),
            passages=examination.passages,
            response=examination.response,
            reference_claims=tuple(
                protocol.ExaminedReferenceClaim(reference=number, text=text, answer=statement[each])
                for number, text, each in reference_claims
            ),
        )

    def _agree(
        self, claims: Sequence[str], texts: Sequence[str], question: str, *, of_reference: bool
    ) -> list[Support]:
        """Compare claims of an answer with references, or of a reference with the answer."""

        def judged(claim: str, context: MatchingContext) -> Support:
            (match,) = match_claims([claim], context)
            return match_support(*match)

        return [
            compare(claim, texts, question, judged, of_reference=of_reference) for claim in claims
        ]


@cache
def rules_version() -> str:
    """SHA-256 (16 digits) of the deciding code: replies cached under other rules are not reused."""
    package = files("misslink")
    folders = package / "text", package / "judge" / "backends" / "heuristic"
    sources = [
        file
        for folder in folders
        for file in sorted(folder.iterdir(), key=str)
        if file.name.endswith(".py")
    ]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


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
