"""What all apps here share: the ferry's passages, a keyword search, and a stand-in for a model."""

from __future__ import annotations

import json
import re
from pathlib import Path

from misslink.examples import load_example

_LINES = Path(load_example("ferry")["corpus"]).read_text(encoding="utf-8").splitlines()
PASSAGES = {row["id"]: row["text"] for row in map(json.loads, _LINES)}


def words(text: str) -> set[str]:
    """The words of a text that have at least three letters."""
    return set(re.findall(r"\w{3,}", text.lower()))


def search(question: str, k: int = 3) -> list[str]:
    """The ids of the passages that share most words with the question."""
    return sorted(PASSAGES, key=lambda name: -len(words(PASSAGES[name]) & words(question)))[:k]


def write_answer(prompt: str) -> str:
    """The sentence of a prompt that shares most words with the question at its end."""
    passages, _, question = prompt.rpartition("Question:")
    sentences = re.split(r"(?<=\.)\s+", passages.strip())
    return max(sentences, key=lambda sentence: len(words(sentence) & words(question)))


def make_prompt(question: str, texts: list[str]) -> str:
    """Passages and question as one text."""
    return "\n".join([*texts, f"Question: {question}"])
