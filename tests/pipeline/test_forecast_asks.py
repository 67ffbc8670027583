"""A dry run counts what linking will ask about missed passages, too."""

import asyncio

import misslink
from misslink.pipeline.evaluate import forecast_async

NOISE = "Gulls nest under the roof of the old casino, and nobody counts them there in winter."
NEEDED = "The ferry to Holm leaves at seven in the morning, and it takes dogs free of charge."
WRONG = "The ferry to Holm leaves at nine in the evening. It takes dogs free of charge."


def a_run(judge, **terms):
    """Three cases: a hit, a miss with an unfaithful answer, a miss with an answer from noise."""
    question = "When does the ferry to Holm leave?"
    gold = [
        {"id": name, "question": question, "relevant": ["ferry"]}
        for name in ("hit", "bad", "noise")
    ]
    noise, ferry = {"id": "gulls", "text": NOISE}, {"id": "ferry", "text": NEEDED}
    deeper = [{**ferry, "rank": 7}]
    traces = [
        {"case_id": "hit", "retrieved": [ferry], "answer": "It leaves at seven in the morning."},
        {"case_id": "bad", "retrieved": [noise], "deeper": deeper, "depth": 9, "answer": WRONG},
        {"case_id": "noise", "retrieved": [noise], "deeper": deeper, "depth": 9, "answer": NOISE},
    ]
    return {
        "goldset": gold,
        "traces": traces,
        "judge": judge,
        "cache": "cache.sqlite",
        "judge_config": misslink.JudgeConfig(**terms),
    }


def test_the_question_about_what_was_missed_is_foreseen(judge_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = a_run("openai:test-judge", base_url=judge_server.url, api_key="k")
    foreseen = asyncio.run(forecast_async(**given))
    assert judge_server.calls == []
    used = misslink.evaluate(**given).summary["usage"]
    assert foreseen.calls == used["calls"] == len(judge_server.calls) == 4
    again = asyncio.run(forecast_async(**given))
    assert (again.calls, again.from_cache) == (0, 4)


def test_the_heuristic_judge_is_asked_nothing_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    foreseen = asyncio.run(forecast_async(**a_run("heuristic")))
    assert foreseen.calls == 3
