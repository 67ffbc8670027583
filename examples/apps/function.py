"""A function of the question that returns its answer and the passages it retrieved."""

from __future__ import annotations

from desk import PASSAGES, make_prompt, search, write_answer


def app(question: str) -> dict[str, object]:
    """Answer a question."""
    names = search(question)
    return {
        "answer": write_answer(make_prompt(question, [PASSAGES[name] for name in names])),
        "retrieved": [{"id": name, "text": PASSAGES[name]} for name in names],
    }
