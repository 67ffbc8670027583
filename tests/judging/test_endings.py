from __future__ import annotations

import pytest

from misslink.judging.endings import declines


@pytest.mark.parametrize(
    "words",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, but I can\u2019t assist with that request.",
        "Sorry, I can't help.",
        "I cannot assist you with this.",
        "I can't help with that",
        "I apologize, but I am unable to comply with your request.",
        "Unfortunately, I'm not able to help with this request.",
        "As an AI language model, I cannot provide assistance with this topic.",
        "I must respectfully decline.",
        "I'm sorry, but I won't engage with this.",
        "**I'm sorry, but I can't do that.**",
        "<think>This is about a weapon.</think>\nI'm sorry, but I can't help with that.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Tut mir leid, ich kann Ihnen dabei nicht weiterhelfen.",
        "Désolé, mais je ne peux pas vous aider.",
        "Lo siento, pero no puedo ayudarte con eso.",
        "Mi dispiace, ma non posso aiutarti.",
        "Desculpe, mas não posso ajudar com isso.",
        "Het spijt me, maar ik kan daar niet mee helpen.",
        "Извините, но я не могу вам помочь.",
        "很抱歉我无法协助您完成这个请求。",
        "申し訳ありませんが、そのご要望にはお応えできません。",
    ],
)
def test_a_refusal_in_plain_words_is_recognised(words):
    assert declines(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "   ",
        "The sky is blue.",
        "I'm sorry, but the answer is not supported by the passages.",
        "I cannot find support for the claim in the passages.",
        "I can't verify the second claim.",
        "I cannot help but notice that the answer contradicts passage 2.",
        "Unfortunately, the passage does not say so.",
        "I'm unable to determine whether the claim is supported.",
        "The answer says: I'm sorry, but I can't help with that.",
        "I cannot answer this question from the passages.",
        "Es tut mir leid, aber die Antwort ist falsch.",
        "I'm sorry, but I can't help with that." + " All claims are supported." * 30,
    ],
)
def test_an_attempt_at_an_answer_is_no_refusal(words):
    assert not declines(words)
