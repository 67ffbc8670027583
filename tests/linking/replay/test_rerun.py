"""One case asked again with given passages: what is kept, what is judged, what is not measured."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from misslink.errors import InputError
from misslink.judge.session import open_judge
from misslink.linking.replay import Rerunner, open_rerunner
from misslink.linking.replay.rerun import NO_RETRIEVER
from misslink.types import Passage
from replayed_app import (
    JUDGE,
    K,
    case,
    chain,
    corpus,
    forget_stores,
    question,
    retriever,
    run_of,
    truth,
)

GOLD = (Passage(id="gold-1", text=truth("1"), rank=1),)
APP = """
from pathlib import Path
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

class Nothing(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return []

retriever = Nothing()

def app(question):
    with Path("asked.txt").open("a", encoding="utf-8") as file:
        file.write(question)
    if Path("broken").exists():
        raise OSError("broken")
    return "\\n".join(one.page_content for one in retriever.invoke(question))
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, judge_server, imports_forgotten):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP, encoding="utf-8")
    yield
    forget_stores()


@pytest.fixture
def run(judge_server):
    return run_of(lambda _: "Nothing.", [case("1")], judge_server, name="app.py:app")


def asked_again(app, *calls, **options):
    """What each call (passages, intervention) gives, of a new Rerunner, and that Rerunner."""

    async def go():
        judge = open_judge(JUDGE, cache=None, concurrency=2)
        again = Rerunner(app, judge, **options)
        try:
            return [await again(case("1"), one, intervention=name) for one, name in calls], again
        finally:
            await judge.close()

    return asyncio.run(go())


def kept(run, *calls, app="app.py:app"):
    async def go():
        judge = open_judge(JUDGE, cache=None, concurrency=2)
        again = open_rerunner(run, app, judge, folder=Path())
        try:
            found = [await again(case("1"), one, intervention=name) for one, name in calls]
        finally:
            again.close()
            await judge.close()
        return found, again

    return asyncio.run(go())


def times():
    return Path("asked.txt").read_text(encoding="utf-8").count(question("1"))


def test_it_gives_the_trace_and_the_verdicts_that_decide():
    app = chain(retriever(corpus(missed=("1",))))
    ((trace, verdicts),), again = asked_again(app, (GOLD, ""), k=K)
    assert [passage.id for passage in trace.retrieved] == ["gold-1"]
    assert (trace.answer, trace.prompted) == (truth("1"), ("gold-1",))
    assert set(verdicts) == {"faithfulness", "context_relevance", "abstention", "correctness"}
    assert verdicts["faithfulness"].label is True
    assert (again.generated, again.reused) == (1, 0)


def test_what_was_generated_is_used_again_by_the_next_process(run):
    first, _ = kept(run, (GOLD, "first"), (GOLD, "unchanged"))
    again, rerunner = kept(run, (GOLD, "first"), (GOLD, "unchanged"))
    assert again == first
    assert (times(), rerunner.generated, rerunner.reused) == (2, 0, 2)


def test_other_passages_and_other_code_are_generated_anew(run):
    kept(run, (GOLD, ""))
    other = (GOLD[0].model_copy(update={"text": "Something else."}),)
    kept(run, (other, ""))
    assert times() == 2
    Path("app.py").write_text(f"{APP}\nchanged = True\n", encoding="utf-8")
    kept(run, (GOLD, ""))
    assert times() == 3


def test_an_app_that_failed_is_asked_again(run):
    Path("broken").touch()
    ((trace, verdicts),), _ = kept(run, (GOLD, ""))
    assert (trace.error, verdicts) == ("OSError: broken", {})
    Path("broken").unlink()
    ((trace, verdicts),), _ = kept(run, (GOLD, ""))
    assert (trace.error, trace.answer) == (None, truth("1"))


def test_an_app_that_asks_no_retriever_is_not_measured(judge_server):
    ((trace, verdicts),), _ = asked_again(lambda _: "By heart.", (GOLD, ""))
    assert (trace.unmeasured, verdicts) == (NO_RETRIEVER, {})
    assert judge_server.calls == []


def test_an_app_object_is_asked_every_time(run):
    asked = []

    def app(question):
        asked.append(question)
        return "By heart."

    kept(run, (GOLD, ""), app=app)
    kept(run, (GOLD, ""), app=app)
    assert len(asked) == 2
    assert not Path("replays.jsonl").exists()


def test_an_app_that_is_not_there_is_told(run):
    with pytest.raises(InputError, match="has no 'ap'; did you mean 'app'"):
        kept(run, app="app.py:ap")
