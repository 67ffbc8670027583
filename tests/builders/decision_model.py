"""The decision model that the judge server is on /v1/decisions and /v1/systemone: lexical, and strict."""

from __future__ import annotations

import re
from typing import Any

from honest_judge import _DECLINES
from misslink.text.normalization import content_words, fold

Body = dict[str, Any]

_FENCED = re.compile(r"<(\w+) ([a-p]+)>\n(.*?)\n</\1 \2>", re.DOTALL)
_MARKED = re.compile(r"\[([crs]\d+)\] (.*?)(?=\s*(?:\[[crs]\d+\]|\n<|\Z))", re.DOTALL)
_NAMED = re.compile(r"\b(?:(?:passage|statement|answer)_\d+|[cr]\d+)\b")
_BARE = re.compile(r"\[[crs]\d+\] ")
SURE = 0.9  # the probability of the likeliest option


def labels_of(question: Body) -> list[Any]:
    """The labels that a question leaves, in either format."""
    if question["type"] in ("predicate", "noul"):
        return [True, False]
    if "criteria" in question:
        return list(question["criteria"])
    return [
        item.get("value", item.get("label"))
        for item in question.get("choices", question.get("levels"))
    ]


def pick(state: str, question: Body) -> Any:
    """The label that a lexical reader chooses."""
    marked = dict(_MARKED.findall(state))
    texts = {label: _BARE.sub("", text) for label, _, text in _FENCED.findall(state)}
    asked, named = question["instructions"], _NAMED.search(question["instructions"])
    about = fold((marked | texts).get(named.group(), "")).rstrip(".") if named else ""
    passages = {name: fold(text) for name, text in texts.items() if name.startswith("passage")}
    references = " ".join(
        fold(text) for name, text in texts.items() if name.startswith("reference")
    )
    holds = any(about in text for text in passages.values())
    labels = labels_of(question)
    if "sentence" in asked:
        found = [m for m in labels if about and about in fold(marked.get(m, texts.get(m, "")))]
        return found[0] if found else "none"
    if "references agree" in asked:
        return "agrees" if about in references else "silent"
    if "answer state" in asked:
        return "states" if about in fold(texts["answer"]) else "omits"
    if "cannot answer" in asked:
        return _DECLINES.search(fold(texts["answer"])) is not None
    if "help to answer" in asked:
        return len(set(content_words(texts["question"])) & set(content_words(about))) > 1
    if "support c" in asked or "passages say" in asked:
        return labels[0 if holds else -1]
    if "Which passage" in asked:
        return next((name for name, text in passages.items() if about in text), "none")
    return labels[0]


def distribution(labels: list[Any], likeliest: Any) -> list[float]:
    """The probability of each label."""
    rest = (1 - SURE) / max(1, len(labels) - 1)
    return [SURE if label == likeliest else rest for label in labels]


def problem(body: Body, questions: list[Body], limits: Body) -> str | None:
    """What a strict server complains of."""
    if not isinstance(body.get("model"), str):
        return "model is missing"
    if not 1 <= len(questions) <= limits.get("questions", 400):
        return f"Provide at most {limits.get('questions', 400)} questions."
    for question in questions:
        labels = labels_of(question)
        if not isinstance(question.get("instructions"), str) or not question["instructions"]:
            return "instructions are missing"
        if not 2 <= len(labels) <= limits.get("choices", 255):
            return f"A choice takes at most {limits.get('choices', 255)} options."
        if len(set(map(str, labels))) < len(labels):
            return "choices must be unique"
    return None


def decisions(body: Body, limits: Body) -> Body | str:
    """The answer of /v1/decisions, or what is wrong with the request."""
    questions = body.get("questions", [])
    if set(body) - {"model", "input", "questions"} or not isinstance(body.get("input"), str):
        return "unknown parameter, or no input"
    for question in questions:
        fields = {"predicate": set(), "choice": {"choices"}, "score": {"levels"}}
        if set(question) != {"type", "instructions", *fields.get(question["type"], {"unknown"})}:
            return f"a question has the fields {sorted(question)}"
    if wrong := problem(body, questions, limits):
        return wrong
    answers = []
    for question in questions:
        labels = labels_of(question)
        chances = distribution(labels, likeliest := pick(body["input"], question))
        answer: Body = {"type": question["type"], "name": None}
        if question["type"] == "predicate":
            answer["probability"] = chances[0]
        elif question["type"] == "choice":
            listed = [{"value": v, "probability": p} for v, p in zip(labels, chances, strict=True)]
            answer |= {"choice": likeliest, "confidence": SURE, "probabilities": listed}
        else:
            listed = [
                {"label": label, "value": n, "probability": p}
                for n, (label, p) in enumerate(zip(labels, chances, strict=True))
            ]
            answer |= {"score": 0.4, "confidence": SURE, "probabilities": listed}
        answers.append(answer)
    tokens = len(str(body)) // 4
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens,
    }
    return {"answers": answers, "model": body["model"], "usage": usage}


def system_one(body: Body, limits: Body) -> Body | str:
    """The answer of /v1/systemone, or what is wrong with the request."""
    questions = body.get("questions", {})
    if wrong := problem(body, list(questions.values()), limits):
        return wrong
    answers = {}
    for name, question in questions.items():
        labels = labels_of(question)
        chances = distribution(labels, likeliest := pick(body["state"], question))
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": chances[0]}
        else:
            keys = labels if question["type"] == "choice" else map(str, range(len(labels)))
            of_label = dict(zip(keys, chances, strict=True))
            answers[name] = {
                "type": question["type"],
                "confidence": SURE,
                "probabilities": of_label,
            }
            answers[name] |= (
                {"choice": likeliest} if question["type"] == "choice" else {"score": 0.4}
            )
    usage = {"input_tokens": len(str(body)) // 4, "output_tokens": 0}
    return {"model": body["model"], "answers": answers, "usage": usage}
