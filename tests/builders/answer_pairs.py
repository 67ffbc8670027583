"""Pairs of answers, runs of them, and judges that compare them, for the tests beside this file."""

import asyncio

from honest_judge import fenced
from misslink.judge.checks.pairwise import AnswerPair, Preference
from misslink.judge.checks.pairwise import judge_pairs as prefer
from misslink.judge.config import JudgeConfig
from misslink.judge.protocol import Reply
from misslink.judge.session import open_judge
from misslink.types import Case, Run, Trace

GOOD, BAD = "It leaves at seven.", "Ships are big."


def shows(body):
    """What a request shows: its fenced texts by label."""
    return dict(fenced(body))


def honest(body):
    """Prefer the answer that names the hour, wherever it stands."""
    texts = shows(body)
    right = ["seven" in texts[place] for place in ("first", "second")]
    better = "tie" if right[0] == right[1] else "first" if right[0] else "second"
    return {"better": better}


def judge_pairs(server, pairs, tmp_path=None, **terms):
    async def line():
        judge = open_judge(
            "openai:test-judge",
            cache=tmp_path and tmp_path / "cache.sqlite",
            concurrency=4,
            terms=JudgeConfig(base_url=server.url, **terms),
        )
        try:
            return await prefer(pairs, judge), judge.usage()
        finally:
            await judge.close()

    return asyncio.run(line())


def with_own(judge, *pairs):
    return asyncio.run(prefer(pairs, judge))


def said(better, **chances):
    places = {"better": chances} if chances else {}
    return Reply(Preference(better=better), "raw", probabilities=places)


def pair(a=GOOD, b=BAD, case="1"):
    return AnswerPair(case, f"When does ferry {case} leave?", a, b)


def run(**answers):
    return Run(
        manifest={},
        cases=tuple(Case(id=case, question=f"Question {case}?") for case in answers),
        traces=tuple(Trace(case_id=case, answer=text) for case, text in answers.items()),
        verdicts=(),
        links=(),
        summary={},
    )
