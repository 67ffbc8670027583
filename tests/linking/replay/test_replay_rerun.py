"""One case run again: what is kept, what is judged, and whether it is judged as in the run."""

import asyncio
from pathlib import Path

import pytest

from misslink.documents import manifest_of
from misslink.errors import InputError
from misslink.io.manifest import flatten_inputs
from misslink.judge.prompts import BUILT_IN
from misslink.judge.session import open_judge
from misslink.linking.replay import REPLAY_METRICS, Rerunner, RerunSettings, open_rerunner
from misslink.linking.replay.rerun import (
    NO_RETRIEVER,
    ReplayCache,
    judging_difference,
)
from misslink.types import Passage, Reason, Run, Trace
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
        again = Rerunner(app, judge, RerunSettings(**options))
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
    assert set(verdicts) == set(REPLAY_METRICS)
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
    assert (trace.error, verdicts) == ("OSError: broken (app.py, line 16)", {})
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


class Stub:
    def __init__(self, name="openai:m", **identity):
        self.name = name
        self.identity = {"judge": "openai", "model": "m", "temperature": 0, **identity}


def run_by(judge, **manifest):
    told = {
        "judge": judge.name,
        "judging": {"repeats": 1},
        "inputs": flatten_inputs({"k": 5, "judge_identity": judge.identity}),
        "prompts": [BUILT_IN.load("examination").ref.model_dump()],
    }
    return Run(manifest=told | manifest, cases=(), traces=(), verdicts=(), links=(), summary={})


def test_the_same_judge_on_the_same_terms_judges_alike():
    assert judging_difference(run_by(Stub()), Stub(), BUILT_IN) is None


@pytest.mark.parametrize(
    ("judge", "manifest", "what", "differs"),
    [
        (Stub("openai:n"), {}, "judge", {"was": "openai:m", "now": "openai:n"}),
        (
            Stub(temperature=0.7),
            {},
            "setting",
            {"setting": "temperature", "was": "0", "now": "0.7"},
        ),
        (Stub(seed=3), {}, "setting", {"setting": "seed", "was": "not given", "now": "3"}),
        (Stub(), {"judging": {"repeats": 3}}, "repeats", {"was": 3, "now": 1}),
        (
            Stub(),
            {"prompts": [{"name": "examination", "sha256": "0"}]},
            "prompt",
            {"prompt": "examination"},
        ),
        (Stub(), {"prompts": [{"name": "gone", "sha256": "0"}]}, "prompt", {"prompt": "gone"}),
    ],
)
def test_what_differs_is_said(judge, manifest, what, differs):
    found = judging_difference(run_by(Stub(), **manifest), judge, BUILT_IN)
    assert found == Reason(code=f"replay_other_{what}", **differs)


@pytest.mark.parametrize("inputs", [{}, None])
def test_of_a_run_that_does_not_say_more_the_name_decides(inputs):
    run = run_by(Stub(), inputs=inputs, prompts=None, judging=None)
    assert manifest_of(run).judge_identity == {}
    assert judging_difference(run, Stub(temperature=1), BUILT_IN) is None


TRACE = Trace(case_id="a", retrieved=(Passage(id="p", text="Ünï\u2028code.", rank=1),), answer="A")


def test_what_was_kept_is_found_by_another_process(tmp_path):
    ReplayCache(tmp_path / "r.jsonl").put("key", TRACE, intervention="first")
    kept = ReplayCache(tmp_path / "r.jsonl")
    assert kept.get("key") == TRACE
    assert kept.get("other") is None


def test_half_a_line_is_passed_over_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "r.jsonl"
    ReplayCache(path).put("one", TRACE, intervention="")
    ReplayCache(path).put("two", TRACE, intervention="")
    path.write_bytes(path.read_bytes()[:-30])
    kept = ReplayCache(path)
    assert (kept.get("one"), kept.get("two")) == (TRACE, None)
    kept.put("three", TRACE, intervention="")
    kept.close()
    again = ReplayCache(path)
    assert [again.get(key) is not None for key in ("one", "two", "three")] == [True, False, True]


@pytest.mark.parametrize(
    "line", ["[1]", "{}", '{"key": "x", "trace": {"wrong": 1}}', "3", '{"key": []}']
)
def test_lines_of_anybody_else_are_passed_over(tmp_path, line):
    (tmp_path / "r.jsonl").write_text(line + "\n", encoding="utf-8")
    assert ReplayCache(tmp_path / "r.jsonl").get("x") is None


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.*cannot be written"):
        ReplayCache(tmp_path / "nowhere" / "r.jsonl")


def test_a_file_that_goes_away_meanwhile_is_told(tmp_path):
    path = tmp_path / "r.jsonl"
    kept = ReplayCache(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"r.jsonl: it cannot be written \(it was removed\)"):
        kept.put("key", TRACE, intervention="")


def test_a_file_that_is_moved_meanwhile_goes_on_being_written(tmp_path):
    (tmp_path / "run").mkdir()
    kept = ReplayCache(tmp_path / "run" / "r.jsonl")
    (tmp_path / "run").rename(tmp_path / "old")
    kept.put("key", TRACE, intervention="")
    kept.close()
    assert ReplayCache(tmp_path / "old" / "r.jsonl").get("key") == TRACE


def test_the_file_is_one_processs_at_a_time(tmp_path):
    kept = ReplayCache(tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="another misslink is replaying this run; wait for it"):
        ReplayCache(tmp_path / "r.jsonl")
    kept.close()
    ReplayCache(tmp_path / "r.jsonl").close()


def test_without_a_path_it_keeps_in_memory():
    kept = ReplayCache(None)
    kept.put("key", TRACE, intervention="")
    assert kept.get("key") == TRACE
