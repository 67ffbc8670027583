import asyncio
import subprocess
import sys

import pytest

from fake_judge import FakeJudge
from honest_judge import small_ask
from judge_server import JudgeServer
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.checks.ping import ping_judge
from misslink.judge.config import JudgeConfig
from misslink.judge.protocol import JudgeInfo, judge_info
from misslink.judge.session import JudgeSession, open_judge
from misslink.registry import judges

KEY = "sk-secret-0123456789"


@pytest.fixture
def lone():
    """A judge of somebody else's: no server, no options, nothing but the protocol."""

    arguments = []

    def factory(argument):
        arguments.append(argument)
        return FakeJudge(name="lone")

    judges.names()  # the built-in ones first
    judges.register("lone")(factory)
    yield arguments
    judges._entries.pop("lone")


def with_judge(server, action, spec="openai:test-judge", **options):
    async def act():
        judge = open_judge(
            spec,
            cache=None,
            concurrency=2,
            terms=JudgeConfig(**{"base_url": server.url, **options}),
        )
        try:
            return await action(judge)
        finally:
            await judge.close()

    return asyncio.run(act())


def test_a_spec_opens_a_throttled_judge_with_a_cache(judge_server, tmp_path):
    path = tmp_path / "cache.sqlite"

    async def twice():
        judge = open_judge(
            "openai:test-judge",
            cache=path,
            concurrency=2,
            terms=JudgeConfig(base_url=judge_server.url),
        )
        asks = (judge.ask(small_ask(n)) for n in (1, 2, 1))
        found = await asyncio.gather(*asks)
        await judge.close()
        return judge.name, [reply.parsed is not None for reply in found], judge.usage().calls

    assert asyncio.run(twice()) == ("openai:test-judge", [True] * 3, 2)
    assert path.is_file()


def test_what_follows_the_first_colon_is_the_judges_own(lone):
    for spec in ("lone", "lone:", "lone:a:b"):
        open_judge(spec, cache=None, concurrency=1)
    assert lone == [None, None, "a:b"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [("", "no judge is named"), (":x", "no judge is named"), ("openia:m", "did you mean 'openai'")],
)
def test_a_spec_that_names_no_judge_is_refused(spec, why):
    with pytest.raises(InputError, match=why):
        open_judge(spec, cache=None, concurrency=1)


@pytest.mark.parametrize("judge", [None, "none"])
def test_none_opens_nothing(judge):
    assert open_judge(judge, cache=None, concurrency=1) is None


def test_a_judge_of_ones_own_is_wrapped_and_its_note_kept(lone, tmp_path):
    mine = judges.get("lone")(None)
    mine.info = JudgeInfo(note="a heuristic")

    async def twice():
        judge = open_judge(mine, cache=tmp_path / "l", concurrency=1)
        found = [await judge.ask(small_ask(1)) for _ in range(2)]
        await judge.close()
        return judge, found

    judge, found = asyncio.run(twice())
    assert (judge.name, judge_info(judge).note) == ("lone", "a heuristic")
    assert [reply.from_cache for reply in found] == [False, True]
    assert lone == [None]


def test_an_option_the_judge_does_not_have_is_refused(lone):
    with pytest.raises(InputError, match="'lone' has no base_url"):
        open_judge(
            "lone", cache=None, concurrency=1, terms=JudgeConfig(base_url="http://localhost/v1")
        )
    assert lone == []


def test_a_ping_goes_past_the_cache(judge_server):
    async def thrice(judge):
        return [(await ping_judge(judge))["ok"] for _ in range(3)]

    assert with_judge(judge_server, thrice) == [True] * 3
    assert len(judge_server.calls) == 3
    assert judge_server.answered == 3


def test_a_ping_of_an_unknown_model_says_so(judge_server):
    with pytest.raises(JudgeUnreachableError, match="does not know the model 'other'"):
        with_judge(judge_server, ping_judge, "openai:other")


def test_reachable_asks_no_question(judge_server):
    with_judge(judge_server, JudgeSession.check_reachable)
    assert (judge_server.listed, judge_server.calls) == (1, [])


def test_reachable_says_that_nobody_is_there():
    with JudgeServer() as gone:
        pass
    with pytest.raises(JudgeUnreachableError, match="no connection"):
        with_judge(gone, JudgeSession.check_reachable)


def test_reachable_says_that_the_key_is_wrong(judge_server):
    judge_server.key = KEY
    with pytest.raises(JudgeUnreachableError, match=r"\(HTTP 401\)"):
        with_judge(judge_server, JudgeSession.check_reachable, api_key="sk-wrong")
    with_judge(judge_server, JudgeSession.check_reachable, api_key=KEY)


def test_a_judge_without_the_check_is_reachable(lone):
    asyncio.run(open_judge("lone", cache=None, concurrency=1).check_reachable())
    assert lone == [None]


@pytest.mark.slow
def test_judges_import_no_client_and_no_heavy_package_before_they_are_asked():
    code = """
import sys
from misslink.judge.backends.heuristic import open_heuristic
from misslink.matching import Passages
open_heuristic()
Passages(("a b",)).match("a b").relation
clients = {"openai", "langchain", "langchain_core", "langsmith", "xllamacpp", "chromadb"}
heavy = clients | {"pandas", "scipy", "torch", "sentence_transformers", "transformers"}
print(sorted((heavy | {"numpy"}) & set(sys.modules)))
import misslink.judge.backends.langchain
import misslink.judge.backends.llamacpp
from misslink.judge.config import JudgeConfig
from misslink.judge.session import open_judge
terms = JudgeConfig(base_url="http://localhost/v1")
open_judge("openai:m", cache=None, concurrency=1, terms=terms)
print(sorted(heavy & set(sys.modules)))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["[]", "[]"]


def test_an_identity_that_is_no_json_is_refused():
    odd = FakeJudge()
    odd.identity = {"judge": object()}
    with pytest.raises(InputError, match="its identity must be a mapping of JSON values"):
        open_judge(odd, cache=None, concurrency=1)
