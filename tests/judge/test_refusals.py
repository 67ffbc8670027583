import pytest

from misslink.judge.backends.response_parsing import (
    is_length_error,
    is_question_error,
    is_refusal_text,
)


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
    ],
)
def test_a_refusal_in_plain_words_is_recognised(words):
    assert is_refusal_text(words)


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
    assert not is_refusal_text(words)


@pytest.mark.parametrize(
    "complaint",
    [
        "This model's maximum context length is 3000 tokens. However, you requested 5120 tokens",
        "the request exceeds the available context size (1024 tokens), try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Requested tokens exceed context window of 2048",
        "`inputs` tokens + `max_new_tokens` must be <= 4096: too many tokens",
        "Input is too long for requested model.",
        "The input token count (40000) exceeds the maximum number of tokens allowed (32768).",
        "exceed_context_size_error",
    ],
)
def test_a_question_that_is_refused_for_its_length_is_known(complaint):
    assert is_length_error(complaint)
    assert is_question_error(complaint)


@pytest.mark.parametrize(
    "complaint",
    [
        "The response was filtered due to the prompt triggering Azure's content management policy",
        "Your request was rejected as a result of our safety system.",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy",
        "Content violates usage guidelines: moderation",
        "PROHIBITED_CONTENT",
    ],
)
def test_a_question_that_is_refused_by_a_policy_is_not_too_long(complaint):
    assert is_question_error(complaint)
    assert not is_length_error(complaint)


@pytest.mark.parametrize(
    "complaint",
    [
        "",
        "Bad Request",
        "messages: Field required",
        "this is an embedding model",
        "Unsupported parameter: 'max_tokens'",
        "additional properties are prohibited",
        "the judge takes 162 (setting context_length); use a judge that takes more",
    ],
)
def test_other_complaints_are_not_about_the_question(complaint):
    assert not is_question_error(complaint)
