"""On a real cluster of two nodes a run comes out as in one process, whatever becomes of workers."""

import asyncio
import json
import os
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

import misslink
from judge_faults import no_schema
from misslink.errors import EngineUnreachableError, InputError, JudgeUnreachableError
from ray_runs import lines, said, write_towns

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("two_nodes", "imports_forgotten")]
JUDGE = "openai:test-judge"


@pytest.fixture(autouse=True)
def towns(tmp_path, monkeypatch, judge_server):
    """A folder of inputs as the working folder, and the server as the judge's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    write_towns(tmp_path)
    return tmp_path


def evaluate(app="plain.py:app", out=None, judge=JUDGE, engine="ray", workers=2, **options):
    terms = misslink.JudgeConfig(**options.pop("terms", {}))
    return misslink.evaluate(
        app, "gold.jsonl", judge=judge, out=out or engine, engine=engine, judge_config=terms,
        workers=workers if engine == "ray" else None,
        cache=options.pop("cache", f"{engine}.sqlite"), **options,
    )  # fmt: skip


def parts(out):
    return [Path(out, f"{name}.jsonl").read_bytes() for name in ("cases", "verdicts", "links")]


def test_a_run_says_the_same_as_in_one_process_for_a_fresh_cache_and_for_a_full_one(
    judge_server, monkeypatch
):
    monkeypatch.setattr("misslink.pipeline.shards.SHARD_CASES", 5)
    judge_server.key = "a-key-of-the-driver"
    keys = {"api_key": "a-key-of-the-driver"}
    limits = {"max_calls": 99, "rpm": 6000}
    evaluate("chain.py:chain", engine="local", terms=keys | limits)
    asked = len(judge_server.calls)
    evaluate("chain.py:chain", terms=keys | limits)
    assert said("ray") == said("local")
    assert parts("ray") == parts("local")
    assert len(judge_server.calls) == 2 * asked
    evaluate("chain.py:chain", out="again", cache="local.sqlite", terms=keys)
    assert said("again", usage=False) == said("local", usage=False)
    assert parts("again") == parts("local")
    assert len(judge_server.calls) == 2 * asked  # all of it was in the cache


def test_what_a_server_takes_is_found_out_once_for_all_workers(judge_server):
    judge_server.script = no_schema
    evaluate(engine="local")
    alone = Counter(call.status for call in judge_server.calls)
    assert alone[400] == 1
    judge_server.calls.clear()
    evaluate()
    assert Counter(call.status for call in judge_server.calls) == alone


def test_limits_hold_for_all_workers_together(judge_server):
    evaluate(terms={"rpm": 5, "deadline": 25, "max_calls": 50})
    assert judge_server.calls
    assert len(judge_server.calls) <= 5
    run = evaluate(out="more", terms={"max_calls": 3})
    assert len(judge_server.calls) <= 8
    assert run.summary["usage"]["not_asked"] > 0


def test_never_more_calls_are_out_than_were_asked_for_on_all_workers_together(judge_server):
    three = threading.Barrier(3)
    waited = []

    def script(_):
        if len(waited) < 3:
            waited.append(1)
            three.wait(60)  # only three calls at once let each other go on

    judge_server.script = script
    evaluate(concurrency=3)
    assert judge_server.most_at_once == 3


def test_a_question_whose_worker_dies_is_put_to_another_one():
    evaluate(judge="deadly.py:Deadly")
    assert len(list(Path().glob("death-*"))) == 1
    asked_of = set(Path("asked.txt").read_text(encoding="utf-8").split())
    assert len(asked_of) >= 2
    assert "failed" not in {verdict["status"] for verdict in lines("ray/verdicts.jsonl")}


def test_a_case_whose_worker_dies_is_run_on_another_one():
    evaluate("deadly.py:app", judge="none")
    traces = lines("ray/traces.jsonl")
    assert [trace["answer"] for trace in traces] == ["The sky is blue."] * 12


def test_a_case_that_kills_every_worker_is_that_cases_error():
    evaluate("deadly.py:always", judge="none")
    errors = {trace["case_id"]: trace["error"] for trace in lines("ray/traces.jsonl")}
    assert "3 worker processes died" in errors.pop("case-3")
    assert set(errors.values()) == {None}


def test_what_the_app_raises_is_its_trace_as_in_one_process(towns):
    app = "class Odd(BaseException): pass\ndef app(question):\n"
    app += "    if 'town 3' in question: raise Odd('past all')\n"
    app += "    return {2: 'blue'}[len(question) % 3]\n"
    (towns / "raising.py").write_text(app, encoding="utf-8")
    evaluate("raising.py:app", judge="none", engine="local")
    evaluate("raising.py:app", judge="none")
    errors = {trace["error"] for trace in lines("ray/traces.jsonl")}
    of_key, odd = "KeyError: 0 (raising.py, line 4)", "Odd: past all (raising.py, line 3)"
    assert errors == {None, of_key, odd}
    assert said("ray") == said("local")


def test_an_app_that_cannot_be_sent_is_a_sentence_before_anything_is_asked():
    lock = threading.Lock()

    def app(question):
        with lock:
            return question

    with pytest.raises(InputError, match=r"app was given as an object, .*name where it is"):
        evaluate(app, judge="none")


def test_an_app_given_as_an_object_is_sent_where_it_can_be():
    suffix = " is blue."
    evaluate(lambda question: question + suffix, judge="none", workers=1)
    assert lines("ray/traces.jsonl")[5]["answer"].endswith("town 5 blue by day? is blue.")


def test_an_app_that_does_not_exist_on_the_workers_is_a_sentence(towns):
    app = "import os\nassert os.getpid() == {}, 'not elsewhere'\napp = lambda question: ''\n"
    (towns / "shy.py").write_text(app.format(os.getpid()), encoding="utf-8")
    with pytest.raises(InputError, match=r"on the worker misslink-worker-\d+: .*not elsewhere"):
        evaluate("shy.py:app", judge="none", workers=1)


def test_workers_that_all_die_of_loading_the_app_end_the_run(towns, monkeypatch):
    monkeypatch.setattr("misslink.engines.ray.workers._MIN_FATAL_DEATHS", 3)
    app = "import os\nif os.getpid() != {}: os._exit(1)\napp = lambda question: ''\n"
    (towns / "deadly_to_load.py").write_text(app.format(os.getpid()), encoding="utf-8")
    with pytest.raises(EngineUnreachableError, match="3 workers died in a row"):
        evaluate("deadly_to_load.py:app", workers=1, judge="none")


def test_a_judge_that_is_another_one_on_the_workers_is_refused(towns):
    judge = "import os\nfrom deadly import Deadly\n"
    judge += "class Judge(Deadly):\n    identity = {'judge': 'mine', 'process': os.getpid()}\n"
    (towns / "mine.py").write_text(judge, encoding="utf-8")
    with pytest.raises(InputError, match=r"on the cluster's node .* has another address"):
        evaluate(judge="mine.py:Judge", workers=1)


def test_a_judge_that_nobody_answers_for_ends_the_run_with_its_sentence(judge_server):
    judge_server.stop()
    with pytest.raises(JudgeUnreachableError, match="test-judge"):
        evaluate(workers=1)


def test_workers_that_cannot_be_had_end_the_run(monkeypatch):
    monkeypatch.setattr("misslink.engines.ray.workers._START_TIMEOUT_S", 0.01)
    with pytest.raises(EngineUnreachableError, match="the same command continues") as caught:
        evaluate(judge="none")
    assert caught.value.exit_code == 3


def test_workers_that_do_not_see_this_folder_are_sent_the_apps(towns, monkeypatch):
    monkeypatch.setattr(
        "misslink.engines.ray.cluster._node_machine", lambda node: (node["NodeID"], "")
    )
    (towns / "sub").mkdir()
    app = "import os, beside\napp = lambda question: os.getcwd() + beside.told\n"
    (towns / "sub" / "travelling.py").write_text(app, encoding="utf-8")
    (towns / "sub" / "beside.py").write_text("told = ' is where'\n", encoding="utf-8")
    (towns / "sub" / "reading.py").write_text(READING, encoding="utf-8")
    before = folders_of_workers()
    evaluate("sub/travelling.py:app", judge="sub/reading.py:Judge")
    answers = [trace["answer"] for trace in lines("ray/traces.jsonl")]
    assert answers[0] == f"{towns} is where"  # the first case is run here
    assert all("misslink-app-" in answer for answer in answers[1:])
    assert not any("failed" in verdict["status"] for verdict in lines("ray/verdicts.jsonl"))
    assert folders_of_workers() == before  # what was unpacked went with them


def folders_of_workers():
    return set(Path(tempfile.gettempdir()).glob("misslink-worker-*"))


READING = """
from pathlib import Path
from misslink.judge.session import create_judge
from misslink.judge.config import JudgeConfig

class Judge:
    name = "reading"
    identity = {"judge": "reading"}

    def __init__(self):
        self.inner = create_judge("heuristic", JudgeConfig())

    async def ask(self, ask):
        Path("beside.py").read_text()  # as every file of its folder
        return await self.inner.ask(ask)

    async def close(self):
        await self.inner.close()
"""


def test_two_runs_of_one_connection_do_not_take_each_others_workers_for_their_own():
    async def both():
        from misslink.engines.ray.engine import open_ray

        first, second = open_ray(None, 1), open_ray(None, 1)
        try:
            await asyncio.gather(first.workers.ready(), second.workers.ready())
        finally:
            await first.close()
            await second.close()

    asyncio.run(both())


SLEEPY = """
import asyncio
import json
from pathlib import Path

class Judge:
    name = "sleepy"
    identity = {"judge": "sleepy"}

    async def ask(self, ask):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with Path("cancelled.txt").open("a") as file:
                file.write("once\\n")
            raise

    async def close(self):
        pass
"""


def test_a_call_whose_time_is_up_ends_on_its_worker_too(towns):
    (towns / "sleepy.py").write_text(SLEEPY, encoding="utf-8")
    with pytest.raises(JudgeUnreachableError, match=r"no reply came within 0\.5 s"):
        evaluate(
            judge="sleepy.py:Judge", workers=1, terms={"timeout": 0.5, "retries": 0}, concurrency=1
        )
    ended = (towns / "cancelled.txt").read_text(encoding="utf-8").splitlines()
    assert len(ended) >= 4  # of five calls; the engine is closed right after the last


def test_retrievers_are_asked_deeper_where_the_app_ran_so_that_links_are_those_of_one_process(
    towns,
):
    rows = lines("gold.jsonl")
    text = "".join(f"{json.dumps({**row, 'relevant': None})}\n" for row in rows)
    Path("gold.jsonl").write_text(text, encoding="utf-8")
    evaluate("chain.py:chain", engine="local", judge="heuristic")
    evaluate("chain.py:chain", judge="heuristic")
    needs = [need for link in lines("local/links.jsonl") for need in link["needs"]]
    assert any(need["true_rank"] for need in needs)
    assert parts("ray") == parts("local")


def test_a_question_that_kills_every_worker_is_that_questions_failure(towns):
    source = (towns / "deadly.py").read_text(encoding="utf-8")
    source = source.replace("str(ask.inputs)", "str(ask.inputs['question']), times=99")
    (towns / "deadly.py").write_text(source, encoding="utf-8")
    evaluate(judge="deadly.py:Deadly")
    failed = {v["case_id"] for v in lines("ray/verdicts.jsonl") if v["status"] == "failed"}
    assert failed == {"case-3"}
