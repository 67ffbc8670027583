"""Evaluate, change, evaluate, compare: an app's connections outlive an evaluation, in every loop."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path

import pytest
from langchain_openai.chat_models import _client_utils

import misslink
from http_apps import ANSWER, APPS, CASES, GOLD, async_lost, call, lost, model_script
from misslink.event_loops import BackgroundLoop, is_of_another_loop, run_async
from misslink.timeouts import DaemonPool

TIMES = 2  # a connection that is bound to a loop that has ended fails where it is used again
KINDS = sorted(APPS)
WHO = ContextVar("who", default="nobody")


@pytest.fixture
def server(judge_server, monkeypatch):
    # LangChain keeps a client for each address: one of a loop that an earlier test ended waits where the
    # system gives its port again.
    _client_utils._cached_async_httpx_client.cache_clear()
    judge_server.script = model_script
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    return judge_server


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_of_one_app_in_a_process_lose_no_case(server, kind):
    app = APPS[kind]()
    assert [lost(app) for _ in range(TIMES)] == [0] * TIMES


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nor_do_apps_that_are_made_anew(server, kind):
    assert [lost(APPS[kind]()) for _ in range(TIMES)] == [0] * TIMES


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "aiohttp"])
def test_nor_evaluations_with_a_time_limit(server, kind):
    app = APPS[kind]()
    assert [lost(app, app_timeout=30) for _ in range(TIMES)] == [0] * TIMES


@pytest.mark.slow
def test_a_time_limit_may_be_added_and_removed(server):
    app = APPS["chain"]()
    assert [lost(app, app_timeout=limit) for limit in (None, 30, None)] == [0] * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "aiohttp"])
def test_under_a_running_loop_the_app_works_before_during_and_after(server, kind):
    async def notebook():
        app = APPS[kind]()
        await asyncio.gather(*(call(app, f"Question {n}?") for n in range(CASES)))
        losses = [lost(app) for _ in range(TIMES)]
        assert ANSWER in str(await call(app, "And now?"))
        return losses, asyncio.get_running_loop().is_running()

    assert asyncio.run(notebook()) == ([0] * TIMES, True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "aiohttp"])
def test_after_an_evaluation_in_a_script_the_app_works_in_a_loop_of_its_own(server, kind):
    app = APPS[kind]()
    assert lost(app) == 0
    assert ANSWER in str(asyncio.run(call(app, "And now?")))
    assert lost(app) == 0


@pytest.mark.slow
def test_another_threads_evaluation_keeps_its_connections_meanwhile(server):
    held, let_go = threading.Event(), threading.Event()

    def slow(body):
        if "Slow?" in str(body):
            held.set()
            let_go.wait(30)
        return model_script(body)

    server.script = slow
    app = APPS["chain"]()
    options = {"judge": "heuristic", "cache": None, "embedding": "none"}

    async def notebook():
        return lost(APPS["chain"]())

    with ThreadPoolExecutor(1) as thread:
        question = [{"id": "a", "question": "Slow?", "relevant": ["times"]}]
        other = thread.submit(misslink.evaluate, app, question, **options)
        assert held.wait(30)
        assert asyncio.run(notebook()) == 0
        let_go.set()
        assert other.result(30).traces[0].answer == ANSWER


@pytest.mark.slow
def test_a_session_of_the_callers_loop_is_reported_with_the_fix(server):
    async def notebook():
        app = APPS["aiohttp"]()
        await call(app, "Mine first?")  # aiohttp keeps its session in this loop for good
        lost(app)

    with pytest.raises(misslink.MisslinkError, match="evaluate_async"):
        asyncio.run(notebook())


def test_so_is_one_of_an_evaluation_with_another_time_limit(server):
    app = APPS["aiohttp"]()
    assert lost(app, app_timeout=30) == 0
    with pytest.raises(misslink.MisslinkError, match="time limit runs the app in another loop"):
        lost(app)


def test_in_the_callers_loop_evaluate_async_uses_its_sessions(server):
    async def notebook():
        app = APPS["aiohttp"]()
        await call(app, "Mine first?")
        options = {"judge": "heuristic", "cache": None, "embedding": "none"}
        runs = [await misslink.evaluate_async(app, GOLD, **options) for _ in range(2)]
        return [trace.answer for run in runs for trace in run.traces]

    assert asyncio.run(notebook()) == [ANSWER] * 2 * CASES


def test_the_callers_event_loop_stays_as_it_was(server):
    def caller():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        lost(APPS["chain"]())
        same = asyncio.get_event_loop() is loop and not loop.is_closed()
        loop.close()
        return same

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(caller).result()


@pytest.mark.slow
def test_evaluations_in_several_threads_at_once_lose_nothing(server):
    app = APPS["chain"]()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: lost(app), range(4))) == [0] * 4


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [True, False])
def test_a_web_app_that_evaluates_in_a_thread_serves_on(server, is_async):
    testclient = pytest.importorskip("starlette.testclient")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    app = APPS["chain"]()

    async def evaluated(_request):
        return PlainTextResponse(str(await run_in_threadpool(lost, app)))

    def evaluated_in_thread(_request):
        return PlainTextResponse(str(lost(app)))

    async def answer(_request):
        return PlainTextResponse(await call(app, "When?"))

    route = evaluated if is_async else evaluated_in_thread
    web = Starlette(routes=[Route("/evaluate", route), Route("/answer", answer)])
    with testclient.TestClient(web) as client:
        assert [client.get("/evaluate").text for _ in range(TIMES)] == ["0"] * TIMES


@pytest.mark.slow
def test_a_fastapi_app_evaluates_in_both_kinds_of_routes(server):
    """In a thread of its pool, and on its own loop by `evaluate_async`."""
    fastapi = pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    web, app = fastapi.FastAPI(), APPS["chain"]()

    @web.get("/sync")
    def evaluate():
        return lost(app)

    @web.get("/async")
    async def evaluate_async():
        return await async_lost(app)

    with testclient.TestClient(web) as client:
        found = [client.get(path).json() for _ in range(2) for path in ("/sync", "/async")]
    assert found == [0] * 4


PYTEST_ASYNCIO = """
import pytest
from http_apps import APPS, async_lost, call, lost

app = APPS["chain"]()

@pytest.mark.asyncio
@pytest.mark.parametrize("again", range(2))
async def test_async(again):
    assert await async_lost(app) == 0
    assert lost(app) == 0  # as in a notebook's cell
    assert await call(app, "When?")

@pytest.mark.parametrize("again", range(2))
def test_sync(again):
    assert lost(app) == 0
"""


def test_tests_of_pytest_asyncio_lose_nothing(server, tmp_path):
    """Each has a loop of its own."""
    pytest.importorskip("pytest_asyncio")
    (tmp_path / "test_app.py").write_text(PYTEST_ASYNCIO, encoding="utf-8")
    builders = str(Path(__file__).parent / "builders")
    path = os.pathsep.join([builders, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:langsmith_plugin", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout


def test_context_variables_of_the_caller_reach_the_app():
    async def app(question):
        return f"{WHO.get()} {await asyncio.to_thread(WHO.get)}"

    token = WHO.set("caller")
    try:
        run = misslink.evaluate(app, GOLD[:1], judge="heuristic", cache=None, embedding="none")
    finally:
        WHO.reset(token)
    assert run.traces[0].answer == "caller caller"


@pytest.mark.slow
def test_an_app_may_evaluate_another(server):
    inner = APPS["chain"]()

    async def outer(question):
        return f"{lost(inner)} lost"

    options = {"judge": "heuristic", "cache": None, "embedding": "none"}
    run = misslink.evaluate(outer, GOLD[:2], **options)
    assert [trace.answer for trace in run.traces] == ["0 lost"] * 2


def test_a_sync_app_finds_an_event_loop_in_its_thread(server):
    async def answer():
        return ANSWER

    def app(question):
        answer_one = asyncio.get_event_loop().run_until_complete(answer())
        return asyncio.run(answer()) and answer_one  # which takes the thread's loop away

    assert [lost(app) for _ in range(2)] == [0, 0]


def test_a_worker_threads_loop_ends_with_it(monkeypatch):
    monkeypatch.setattr("misslink.timeouts._IDLE_S", 0.001)
    pool = DaemonPool(1)

    def loop_and_thread():
        return asyncio.get_event_loop(), threading.current_thread()

    loop, thread = pool.submit(loop_and_thread).result(30)
    thread.join(30)
    assert loop.is_closed()


def test_what_a_library_set_in_a_thread_stays():
    pool, mine = DaemonPool(1), asyncio.new_event_loop()
    pool.submit(asyncio.set_event_loop, mine).result(30)
    assert pool.submit(asyncio.get_event_loop).result(30) is mine
    mine.close()


def test_a_task_that_exits_does_not_end_the_loop():
    async def exits():
        raise SystemExit(3)

    async def leaves_behind():
        asyncio.get_running_loop().create_task(exits())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "went on"

    with pytest.raises(SystemExit):
        run_async(exits)
    assert [run_async(leaves_behind) for _ in range(2)] == ["went on"] * 2


def test_every_call_has_the_same_loop_and_not_the_callers():
    async def which():
        return asyncio.get_running_loop()

    async def caller():
        return run_async(which), asyncio.get_running_loop()

    seen, own = asyncio.run(caller())
    assert run_async(which) is seen is not own


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork_the_child_has_a_loop_of_its_own():
    async def seven():
        return 7

    assert run_async(seven) == 7
    child = os.fork()
    if not child:
        os._exit(0 if run_async(seven) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def interrupt_when(begun):
    """Send this process the interrupt of Ctrl-C once the event is set."""

    def send():
        begun.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def test_an_interrupt_cancels_the_work_and_waits_for_its_end():
    begun, saved = threading.Event(), []

    async def work():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            saved.append("what is paid for")

    interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt):
        run_async(work)
    assert saved == ["what is paid for"]


def test_an_interrupt_leaves_work_that_blocks_the_loop_and_the_next_call_works(monkeypatch):
    monkeypatch.setattr("misslink.event_loops._RESPONSIVE_S", 0.05)
    loop, begun, let_go = BackgroundLoop(), threading.Event(), threading.Event()

    async def blocks():
        begun.set()
        let_go.wait(30)  # where an await belongs

    async def seven():
        return 7

    interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt):
        loop.call(blocks)
    assert loop.call(seven) == 7
    let_go.set()
    loop.close()


def test_connections_close_behind_tasks_that_are_about_to_end(server, monkeypatch):
    """Found: a client that was let go closed itself in a task, and a pool stayed bound to the loop."""
    loop, host = BackgroundLoop(), server.url.partition("//")[2].partition("/")[0].split(":")
    takes_turn, let_go, kept = BackgroundLoop._takes_turn, asyncio.Event(), []

    async def ends():
        await let_go.wait()
        await asyncio.sleep(0)

    async def connects():
        _, writer = await asyncio.open_connection(*host)
        kept.extend([writer, asyncio.create_task(ends())])

    def turn(running, action):
        return takes_turn(running, lambda: (let_go.set(), action()))

    loop.call(connects)
    monkeypatch.setattr(loop, "_takes_turn", turn)
    loop.drop_connections()
    assert kept[0].is_closing()
    loop.close()


def test_connections_of_a_task_that_stays_are_kept(server):
    loop, host = BackgroundLoop(), server.url.partition("//")[2].partition("/")[0].split(":")
    kept = []

    async def connects():
        _, writer = await asyncio.open_connection(*host)
        kept.extend([writer, asyncio.create_task(asyncio.Event().wait())])

    loop.call(connects)
    loop.drop_connections()
    assert not kept[0].is_closing()
    loop.close()


@pytest.mark.parametrize(
    ("text", "is_foreign"),
    [
        ("Event loop is closed", True),
        ("<asyncio.locks.Event object> is bound to a different event loop", True),
        ("Task <Task> got Future <Future> attached to a different loop", True),
        ("Timeout context manager should be used inside a task", True),
        ("There is no current event loop in thread 'x'", False),
        ("the store is closed", False),
    ],
)
def test_an_error_of_another_loop_is_told_by_its_cause(text, is_foreign):
    wrapped = ValueError("the model failed")
    wrapped.__cause__ = RuntimeError(text)
    assert is_of_another_loop(wrapped) is is_foreign
    assert not is_of_another_loop(ValueError(text))


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["uvloop", "nest_asyncio"])
def test_other_event_loops_work_too(server, warm_commands, loop):
    pytest.importorskip(loop)
    script = Path(__file__).parent / "builders" / "http_apps.py"
    command = [warm_commands / "python", script, "chain", loop]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == str([0] * TIMES)
