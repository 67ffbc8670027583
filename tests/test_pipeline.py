"""The straight line, end to end: a real app, a real judge server, a run folder."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import misslink
from misslink.errors import AppUnreachableError, InputError, JudgeUnreachableError
from misslink.io import read_run
from misslink.io.manifest import content_hashes
from misslink.judge.backends.heuristic import rules_version

pytestmark = pytest.mark.skipif(
    not find_spec("langchain_chroma"), reason="needs the extra 'langchain'"
)

HERE = Path(__file__).parent
APP = f"{HERE.parent / 'examples' / 'harbour' / 'app.py'}:chain"
GOLD = HERE / "apps" / "gold.jsonl"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MISSLINK_JUDGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run with the heuristic judge, without a response cache."""
    out = tmp_path_factory.mktemp("runs") / "today"
    return misslink.evaluate(APP, GOLD, judge="heuristic", out=out, k=2, cache=None), out


def by_case(run, items):
    return {item.case_id: item for item in getattr(run, items)}


def counted(tmp_path, body):
    """Write an app that writes down each question, and does `body`; return its spec."""
    app = tmp_path / "counted.py"
    app.write_text(
        "from pathlib import Path\n"
        "def answer(question):\n"
        "    with Path('asked.txt').open('a') as file:\n"
        "        file.write(question + '\\n')\n" + body,
        encoding="utf-8",
    )
    return f"{app}:answer"


def asked():
    return Path("asked.txt").read_text(encoding="utf-8").splitlines()


def test_the_app_is_watched_without_changes(run):
    traces = by_case(run[0], "traces")
    assert traces["ferry"].answer == "The ferry to Holm leaves at seven in the morning."
    assert traces["ferry"].retrieved[0].id == "ferry"
    assert len(traces["ferry"].prompted) == 2
    assert traces["ferry"].retrieved[0].score is not None


def test_level_one_is_that_of_the_retriever(run):
    retrieval = run[0].summary["retrieval"]
    # ferry and harbour come first, both passages of 'both' are in the first two, school is first;
    # the toll office is nowhere near the ghost, and Guernica needs nothing.
    assert retrieval["hit@2"] == {**retrieval["hit@2"], "value": 0.8, "n": 5}
    assert retrieval["recall@2"]["value"] == pytest.approx(0.8)


def test_the_ghost_is_a_retrieval_miss_whose_true_rank_is_known(run):
    link = by_case(run[0], "links")["broke"]
    assert (link.retrieval, link.answer, link.failure) == ("miss", "unfaithful", "retrieval_miss")
    (missed,) = link.missed
    assert missed.passage_id == "toll"
    assert 2 < missed.true_rank <= 8
    assert missed.text.startswith("Ships longer")
    assert [claim.index for claim in link.claims] == [0]


def test_an_unanswerable_question_that_was_declined_is_fine(run):
    assert by_case(run[0], "links")["nobody"].failure == "passed"
    abstention = [v for v in run[0].verdicts if v.metric == "abstention"]
    assert {v.case_id: v.value for v in abstention}["nobody"] == 1.0


def test_every_printed_number_has_an_interval_and_n_and_nothing_is_nan(run):
    def estimates(node):
        if isinstance(node, dict):
            if {"value", "low", "high", "n", "method"} <= set(node):
                yield node
            else:
                for item in node.values():
                    yield from estimates(item)

    found = list(estimates(run[0].summary))
    assert len(found) > 25
    for estimate in found:
        if estimate["value"] is None:
            assert estimate["reason"]
        elif estimate["low"] is not None and estimate["high"] is not None:
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
            assert estimate["low"] < estimate["high"]
            assert estimate["n"] > 0
    json.dumps(run[0].summary, allow_nan=False)


def test_the_run_folder_holds_the_run(run):
    assert read_run(run[1]) == run[0]
    names = {"manifest.json", "summary.json", "map.json", "report.html"} | {
        f"{part}.jsonl" for part in ("cases", "traces", "verdicts", "links")
    }
    assert {path.name for path in run[1].iterdir()} == names


def test_manifest_and_summary_say_what_two_runs_must_share(run):
    run, _ = run
    other = [case.model_copy(update={"relevant": {"else": 1}}) for case in run.cases]
    of_run, of_other = (content_hashes(cases, run.traces) for cases in (run.cases, other))
    changed = [name for name in of_run if of_run[name] != of_other[name]]
    for document in (run.manifest, run.summary):
        assert document["hashes"] == of_run
        assert document["judge_epoch"]["rules"] == rules_version()
        assert document["judge_epoch"]["model"].startswith("heuristic ")
        assert "examination" in document["judge_epoch"]["prompts"]
    assert changed == ["labels"]
    answers = [trace.model_copy(update={"answer": "Another."}) for trace in run.traces]
    assert content_hashes(run.cases[::-1], answers) == {
        **of_run,
        "answers": content_hashes((), answers)["answers"],
    }


def test_the_order_of_results_and_the_numbers_do_not_depend_on_concurrency(run):
    one = misslink.evaluate(APP, GOLD, judge="heuristic", k=2, cache=None, concurrency=1)
    assert one.links == run[0].links
    assert one.verdicts == run[0].verdicts
    assert [t.case_id for t in one.traces] == [c.id for c in run[0].cases]


def test_traces_of_a_run_give_the_same_verdicts_as_the_app(run):
    again = misslink.evaluate(
        goldset=GOLD, traces=run[1] / "traces.jsonl", judge="heuristic", k=2, cache=None
    )
    assert [why(link) for link in again.links] == [why(link) for link in run[0].links]
    assert again.summary["generation"] == run[0].summary["generation"]


def why(link):
    """All of a link but what only an app with its index and its embedding can show."""
    lost = [(one.passage_id, one.true_rank, one.distance) for one in link.missed]
    return link.model_dump(exclude={"missed"}), lost


def test_it_works_where_an_event_loop_is_already_running():
    async def cell():
        return misslink.evaluate(APP, GOLD, judge="none", k=2)

    summary = asyncio.run(cell()).summary
    assert summary["retrieval"]["hit@2"]["value"] == 0.8
    assert summary["generation"]["fully_faithful"]["reason"] == "no judge was used"
    assert summary["link"]["table"]["left_out"] == 6


@pytest.mark.slow
def test_a_server_as_judge_is_asked_once_a_case_and_a_second_run_is_free(judge_server):
    options = {
        "judge": "openai:test-judge",
        "judge_config": misslink.JudgeConfig(base_url=judge_server.url),
        "k": 2,
    }
    first = misslink.evaluate(APP, GOLD, out="reports/a", **options)
    asked = len(judge_server.calls)
    examined = [
        call for call in judge_server.calls if "<answer " in call.body["messages"][1]["content"]
    ]
    assert len(examined) == len(first.cases)
    assert first.summary["usage"]["calls"] == asked
    second = misslink.evaluate(APP, GOLD, out="reports/a", **options)
    assert len(judge_server.calls) == asked
    assert second.summary["usage"] == {**second.summary["usage"], "calls": 0, "from_cache": asked}
    assert second.verdicts == first.verdicts


def test_an_app_that_raises_on_one_case_loses_that_case_only():
    gold = [
        {"id": "a", "question": "When does the ferry to Holm leave?", "relevant": ["ferry"]},
        {"id": "b", "question": "What about the crash of the harbour?", "relevant": ["harbour"]},
    ]
    run = misslink.evaluate(APP, gold, judge="heuristic", cache=None)
    trace = by_case(run, "traces")["b"]
    assert trace.answer is None
    assert "the model is out of order" in trace.error
    assert trace.retrieved, "what was retrieved before is kept"
    assert by_case(run, "links")["b"].failure == "inconclusive"
    assert run.summary["coverage"]["faithfulness"] == {"scored": 1, "skipped": 1, "failed": 0}


def test_an_app_that_always_raises_is_unreachable_and_nothing_is_written():
    gold = [{"question": "A crash?"}, {"question": "Another crash?"}]
    with pytest.raises(AppUnreachableError, match=r"answered none of 2 questions.*out of order"):
        misslink.evaluate(APP, gold, judge="heuristic", out="reports/x", cache=None)
    assert not Path("reports/x").exists()


def test_retrieval_that_cannot_be_seen_is_missing_and_no_miss(caplog):
    gold = [{"id": "a", "question": "When?", "relevant": ["p"]}]
    run = misslink.evaluate(lambda _: "At seven.", gold, judge="heuristic", cache=None)
    assert run.summary["retrieval"]["recall@5"]["value"] is None
    assert run.summary["generation"]["fully_faithful"]["value"] is None
    assert (run.links[0].retrieval, run.links[0].failure) == ("unknown", "inconclusive")
    assert "no retrieval was seen" in caplog.text


def test_ids_that_match_nothing_and_an_app_that_fails_are_said_aloud(caplog):
    def app(question):
        if "b" in question:
            raise ValueError("no b today")
        return {"answer": "x", "retrieved": [{"id": "chunk-1", "text": "x"}]}

    gold = [
        {"id": "a", "question": "a?", "relevant": ["doc-1"]},
        {"id": "b", "question": "b?", "relevant": ["doc-2"]},
    ]
    run = misslink.evaluate(app, gold, judge="none")
    assert [warning["code"] for warning in run.summary["warnings"]] == [
        "app_failed",
        "cutoff_too_large",
        "ids_unmatched",
    ]
    assert "the app failed on 1 of 2 questions; the first time ValueError: no b" in caplog.text
    assert "passages have ids like 'chunk-1', the gold set 'doc-1'" in caplog.text
    assert run.summary["retrieval"]["hit@5"]["reason_code"]["code"] == "ids_unmatched"


@pytest.mark.slow
def test_relevant_ids_that_the_app_s_store_lacks_are_refused_if_they_are_most(tmp_path, caplog):
    gold = tmp_path / "gold.jsonl"
    rows = [
        '{"id": "holm", "question": "When does the ferry to Holm leave?", "relevant": ["ferry"]}\n',
        '{"id": "train", "question": "When does the train leave?", "relevant": ["train"]}\n',
        '{"id": "plane", "question": "When does the plane leave?", "relevant": ["plane"]}\n',
    ]
    gold.write_text("".join(rows), encoding="utf-8")
    for _ in range(2):  # the same command says it again
        with pytest.raises(InputError, match=r"gold.jsonl, line 3, field 'relevant'.*'plane'"):
            misslink.evaluate(APP, gold, judge="none", out=tmp_path / "run")
    gold.write_text("".join(rows[:2]), encoding="utf-8")
    run = misslink.evaluate(APP, gold)
    assert "1 of 2 relevant ids, such as 'train', are in no passage of the corpus" in caplog.text
    (miss,) = run.links[1].missed
    assert (miss.passage_id, miss.status) == ("train", "not_indexed")


def test_with_traces_an_id_never_retrieved_is_a_miss_if_others_are():
    traces = [
        {"case_id": "a", "retrieved": ["bus"], "answer": "At nine."},
        {"case_id": "b", "retrieved": ["ferry"], "answer": "At ten."},
    ]
    gold = [
        {"id": "a", "question": "When?", "relevant": ["train"]},
        {"id": "b", "question": "When?", "relevant": ["ferry"]},
    ]
    run = misslink.evaluate(goldset=gold, traces=traces, judge="heuristic", cache=None)
    assert [link.retrieval for link in run.links] == ["miss", "hit"]
    assert run.summary["retrieval"]["hit@5"]["value"] == 0.5


def test_traces_and_gold_that_share_no_case_are_refused(caplog):
    gold = [{"id": "a", "question": "A?", "relevant": ["x"]}, {"id": "b", "question": "B?"}]
    with pytest.raises(InputError, match="the ids of both files must agree"):
        misslink.evaluate(goldset=gold, traces=[{"case_id": "z"}], judge="none")
    traces = [{"case_id": "a", "retrieved": ["x"]}, {"case_id": "z"}]
    run = misslink.evaluate(goldset=gold, traces=traces, judge="none")
    assert "left out, such as that of 'z'" in caplog.text
    assert "have no trace" in caplog.text
    assert run.summary["cases"] == 2


def test_a_dead_judge_is_told_before_the_app_is_run(judge_server, tmp_path):
    judge_server.stop()
    options = {
        "judge": "openai:test-judge",
        "judge_config": misslink.JudgeConfig(base_url=judge_server.url),
    }
    with pytest.raises(JudgeUnreachableError, match=r"127\.0\.0\.1"):
        misslink.evaluate(counted(tmp_path, "    return ''\n"), [{"question": "One?"}], **options)
    assert not Path("asked.txt").exists()


def test_an_app_that_was_down_is_asked_again_by_the_same_command(tmp_path):
    spec = counted(
        tmp_path,
        "    if not Path('up').exists():\n        raise OSError('down')\n    return 'Yes.'\n",
    )
    gold = [{"question": "One?"}, {"question": "Two?"}]
    with pytest.raises(AppUnreachableError, match="down"):
        misslink.evaluate(spec, gold, judge="none", out="reports/x")
    assert list(Path("reports").iterdir()) == [], "nothing was kept, nothing is left"
    Path("up").touch()
    assert misslink.evaluate(spec, gold, judge="none", out="reports/x").traces[0].answer == "Yes."


def test_traces_of_an_interrupted_run_serve_another_judge_but_not_another_app(tmp_path):
    spec = counted(tmp_path, "    return 'Yes.'\n")
    gold = [{"question": "One?"}, {"question": "Two?"}]

    class Down:
        name = "down"
        identity = {"judge": "down"}  # noqa: RUF012 (the protocol's attribute)

        async def ask(self, ask):
            raise JudgeUnreachableError("nobody answers")

        async def close(self):
            pass

    with pytest.raises(JudgeUnreachableError):
        misslink.evaluate(spec, gold, judge=Down(), out="reports/x", cache=None)
    assert len(asked()) == 2
    misslink.evaluate(spec, gold, judge="none", out="reports/x")
    assert len(asked()) == 2, "the judge has no part in a trace"

    with pytest.raises(JudgeUnreachableError):
        misslink.evaluate(spec, gold, judge=Down(), out="reports/y", cache=None)
    counted(tmp_path, "    return 'No.'\n")
    run = misslink.evaluate(spec, gold, judge="none", out="reports/y")
    assert {trace.answer for trace in run.traces} == {"No."}


def test_an_app_object_never_replaces_the_run_of_another():
    gold = [{"question": "One?"}]
    misslink.evaluate(lambda _: "Yes.", gold, judge="none", out="reports/x")
    with pytest.raises(InputError, match="run of other inputs"):
        misslink.evaluate(lambda _: "No.", gold, judge="none", out="reports/x")
    misslink.evaluate(lambda _: "No.", gold, judge="none", out="reports/x", overwrite=True)
    assert read_run("reports/x").traces[0].answer == "No."


def test_a_text_with_half_a_surrogate_pair_is_written_all_the_same(tmp_path):
    traces = tmp_path / "traces.jsonl"
    traces.write_text('{"case_id": "a", "answer": "odd \\ud83d text"}\n', encoding="utf-8")
    gold = [{"id": "a", "question": "When \ud83d?"}]
    run = misslink.evaluate(
        goldset=gold, traces=traces, judge="heuristic", cache=None, out="reports/x"
    )
    assert run.traces[0].answer == "odd ? text"
    assert read_run("reports/x") == run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give an app, such as app.py:chain, or --traces FILE"),
        ({"app": APP, "traces": []}, "and not both"),
        ({"app": APP}, "give a gold set"),
        ({"app": APP, "goldset": [{"question": "A?"}], "k": 0}, "of 1 or more"),
        ({"app": APP, "goldset": [{"question": "A?"}], "k": 2.5}, "of 1 or more"),
        ({"app": APP, "goldset": [{"question": "A?"}], "concurrency": None}, "of 1 or more"),
        ({"app": APP, "goldset": [{"question": "A?"}], "judge": 7}, "is an int and not a judge"),
        ({"app": APP, "goldset": [{"question": "A?"}], "seed": -1}, "--seed is -1; give a whole"),
    ],
)
def test_a_call_that_lacks_something_says_what(options, message):
    with pytest.raises(InputError, match=message):
        misslink.evaluate(**options)


def test_the_corpus_is_read_before_any_call_and_is_one_of_the_inputs(tmp_path):
    asked = []
    options = {"goldset": [{"question": "When?"}], "judge": "none", "cache": None}
    with pytest.raises(InputError, match=r"corpus\.jsonl"):
        misslink.evaluate(asked.append, corpus=tmp_path / "corpus.jsonl", **options)
    assert not asked
    traces = [{"case_id": "q", "retrieved": [{"id": "a", "text": "At seven."}]}]
    options |= {"goldset": [{"id": "q", "question": "When?"}], "traces": traces}
    hashes = set()
    for text in ("At seven.", "At eight."):
        (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "a", "text": text}), "utf-8")
        run = misslink.evaluate(corpus=tmp_path / "corpus.jsonl", **options)
        hashes.add(run.manifest["inputs"]["corpus"])
    assert len(hashes) == 2
    assert "corpus" not in misslink.evaluate(**options).manifest["inputs"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["thread", "coroutine", "blocked loop"])
def test_a_hung_app_is_an_error_of_its_case_and_delays_nothing(kind):
    waited = []

    def hang(question):
        if "hang" in question:
            time.sleep(60)
            waited.append(question)
        return "At noon."

    async def wait(question):
        if "hang" in question:
            await asyncio.sleep(60)
            waited.append(question)
        return "At noon."

    async def block(question):
        return hang(question)

    app = {"thread": hang, "coroutine": wait, "blocked loop": block}[kind]
    gold = [{"id": "a", "question": "When?"}, {"id": "b", "question": "hang?"}]
    run = misslink.evaluate(app, gold, judge="none", app_timeout=1.5)
    assert waited == []
    traces = by_case(run, "traces")
    assert traces["a"].answer == "At noon."
    blocked = ", and the app's event loop was blocked" if kind == "blocked loop" else ""
    assert traces["b"].error == f"not done within 1.5 s{blocked} (--app-timeout)"
    assert run.summary["errors"] == {"app": 1, "judge": 0, "no_answer": 0}
    assert run.summary["headline"].startswith("Errors: the app failed on 1 of 2 cases.")


@pytest.mark.slow
def test_a_case_that_blocks_the_event_loop_takes_no_other_case_with_it():
    async def app(question):
        if "hang" in question:
            time.sleep(60)  # noqa: ASYNC251 - the fault
        await asyncio.sleep(0.3)
        return "At noon."

    gold = [{"id": "first", "question": "When?"}, {"id": "b", "question": "hang?"}]
    gold += [{"id": f"c{n}", "question": "When?"} for n in range(4)]
    run = misslink.evaluate(app, gold, judge="none", app_timeout=3)
    errors = {trace.case_id: trace.error for trace in run.traces if trace.error}
    assert errors == {
        "b": "not done within 3 s, and the app's event loop was blocked (--app-timeout)"
    }


def test_an_app_without_any_answer_is_unreachable_and_a_retriever_is_not():
    gold = [{"id": "a", "question": "When?", "relevant": ["p"]}, {"id": "b", "question": "Who?"}]
    passages = [{"id": "p", "text": "At noon."}]
    for answers, why in (
        ({"anwser": "At noon."}, "it has 'anwser': did you mean 'answer'?"),
        ({"answer": None}, "'answer' is None"),
        ({"answer": " "}, "every answer is empty"),
    ):
        silent = {**answers, "retrieved": passages}
        with pytest.raises(AppUnreachableError, match=rf"none of 2 questions: .*{re.escape(why)}"):
            misslink.evaluate(lambda _, silent=silent: silent, gold, judge="none")
    run = misslink.evaluate(lambda _: {"retrieved": passages}, gold, judge="none", k=1)
    assert run.summary["retrieval"]["hit@1"]["value"] == 1
    assert run.summary["errors"] == {"app": 0, "judge": 0, "no_answer": 0}


def test_an_error_of_the_app_names_the_place_in_its_code_and_has_the_traceback(tmp_path):
    spec = counted(tmp_path, "    return json_of(question)\n")
    with Path(spec.partition(":")[0]).open("a", encoding="utf-8") as file:
        file.write("def json_of(text):\n    import json\n    return json.loads(text)\n")
    gold = [{"id": "a", "question": "{"}, {"id": "b", "question": '"At noon."'}]
    run = misslink.evaluate(spec, gold, judge="none", out="reports/x")
    trace = by_case(read_run("reports/x"), "traces")["a"]
    assert trace.error.endswith("(counted.py, line 8)")
    assert "json.loads(text)" in trace.traceback
    assert run.summary["errors"]["app"] == 1


def test_a_judge_that_fails_on_every_case_is_unreachable_and_says_why():
    from misslink.judge.protocol import Reply

    class Silent:
        name = "silent"
        identity = {"judge": "silent"}  # noqa: RUF012 (the protocol's attribute)

        async def ask(self, ask):
            return Reply.nothing("the model is asleep")

        async def close(self):
            pass

    with pytest.raises(JudgeUnreachableError, match=r"silent failed on every case.*asleep"):
        misslink.evaluate(APP, GOLD, judge=Silent(), cache=None, k=2)


@pytest.mark.slow
@pytest.mark.parametrize("body", ["time.sleep(1000)", "ThreadPoolExecutor().submit(forever)"])
def test_one_interrupt_ends_a_hung_app_and_all_that_was_done_is_saved(tmp_path, body):
    (tmp_path / "app.py").write_text(
        "import time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def forever():\n    time.sleep(1000)\n"
        "async def answer(question):\n"
        "    if 'hang' in question:\n"
        f"        print('hangs', flush=True)\n        {body}\n        forever()\n"
        "    return 'At noon.'\n",
        encoding="utf-8",
    )
    lines = [json.dumps({"id": name, "question": name}) for name in ("a", "b", "hang")]
    (tmp_path / "gold.jsonl").write_text("\n".join(lines), encoding="utf-8")
    command = "from misslink.cli.main import main; main()"
    arguments = ["evaluate", "app.py:answer", "--goldset", "gold.jsonl", "--out", "run"]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments, "--judge", "none", "--concurrency", "1"],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    assert any("hangs" in line for line in process.stderr), "it ended before it hung"
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=300)  # the app would hang for 1000
    assert process.returncode == 130
    assert "finished work is saved" in rest
    saved = tmp_path / ".run.misslink-partial" / "kept.jsonl"
    assert len(saved.read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(("prompted", "k"), [([3, 2, 3, 1], 3), ([1, 1, 2, 2], 2), ([None] * 4, 5)])
def test_k_is_by_default_what_most_prompts_hold(prompted, k):
    gold = [{"id": f"c{n}", "question": "Why?", "relevant": ["a"]} for n in range(4)]
    retrieved = [{"id": name, "text": name} for name in "xaybcd"]
    traces = [
        {"case_id": f"c{n}", "answer": "a", "retrieved": retrieved}
        | ({} if size is None else {"prompted": list("xaybcd")[:size]})
        for n, size in enumerate(prompted)
    ]
    run = misslink.evaluate(traces=traces, goldset=gold, judge="none", cache=None)
    assert run.summary["k"] == run.manifest["k"] == k
    assert f"recall@{k}" in run.summary["retrieval"]


@pytest.mark.parametrize(("given", "warned"), [({}, True), ({"k": 1}, False), ({"k": 5}, False)])
def test_a_default_k_beyond_what_the_app_retrieves_is_warned_of(given, warned):
    passage = {"id": "p", "text": "So."}
    app = lambda _: {"answer": "So.", "retrieved": [passage]}  # noqa: E731
    run = misslink.evaluate(
        app, [{"id": "a", "question": "Why?", "relevant": ["p"]}], cache=None, **given
    )
    warnings = {warning["code"]: warning["message"] for warning in run.summary["warnings"]}
    assert ("cutoff_too_large" in warnings) == warned
    assert "give --k 1" in warnings.get("cutoff_too_large", "give --k 1")


def test_an_app_is_evaluated_on_a_gold_set_in_a_data_frame():
    gold = pd.DataFrame([{"id": "a", "question": "Why?", "relevant": "p"}])
    passage = {"id": "p", "text": "So."}
    run = misslink.evaluate(lambda _: {"answer": "So.", "retrieved": [passage]}, gold, cache=None)
    assert run.summary["retrieval"]["recall@5"]["value"] == 1.0


def test_an_app_that_remembers_other_cases_is_reported(caplog):
    from langchain_core.language_models import FakeListChatModel

    memory, model = [], FakeListChatModel(responses=["At seven in the morning."])

    def app(question):
        memory.append(question)
        passage = "The ferry leaves at seven in the morning, every day of the week."
        answer = model.invoke("\n".join([passage, *memory])).content
        return {"answer": answer, "retrieved": [{"id": "times", "text": passage}]}

    def forgets(question):
        memory.clear()
        return app(question)

    gold = [
        {"id": town, "question": f"When does the ferry leave {town}?", "relevant": ["times"]}
        for town in ("Holm", "Vik", "Sand")
    ]
    options = {"judge": "none", "embedding": "none", "concurrency": 1}
    codes = [
        {warning["code"] for warning in misslink.evaluate(way, gold, **options).summary["warnings"]}
        for way in (app, forgets)
    ]
    assert ["shared_memory" in of_run for of_run in codes] == [True, False]


@pytest.mark.parametrize(("k", "prompted", "warned"), [(1, None, 1), (2, None, 0), (1, ("a",), 0)])
def test_several_searches_whose_prompt_was_not_seen_are_warned_of(k, prompted, warned):
    trace = {
        "case_id": "x",
        "retrieved": [{"id": "a", "text": "Seven."}, {"id": "b", "text": "Dogs."}],
        "calls": [{"query": "when", "passages": ["a"]}, {"query": "dogs", "passages": ["b"]}],
        "answer": "Seven.",
    } | ({"prompted": prompted} if prompted else {})
    cases = [{"id": "x", "question": "When?", "relevant": ["a"]}]
    run = misslink.evaluate(goldset=cases, traces=[trace], k=k, judge="none")
    codes = [warning["code"] for warning in run.summary["warnings"]]
    assert codes.count("searches_merged") == warned


def test_recall_has_the_same_cutoffs_in_every_run_and_a_rejudged_run_those_of_its_own():
    cases = [{"id": "a", "question": "Why?", "relevant": ["p", "q"]}]
    passages = [{"id": name, "text": name} for name in "xpyzwq"]
    traces = [{"case_id": "a", "retrieved": passages, "answer": "So."}]
    run = misslink.evaluate(traces=traces, goldset=cases, judge="none", k=2, cache=None)
    found = run.summary["retrieval"]
    recalls = {name: one["value"] for name, one in found.items() if "recall@" in name}
    assert recalls == {"recall@1": 0, "recall@2": 0.5, "recall@5": 0.5, "recall@10": 1}
    other = misslink.evaluate(
        traces=traces, goldset=cases, judge="none", k=2, ks="3, 6", cache=None
    )
    assert {"recall@2", "recall@3", "recall@6"} <= other.summary["retrieval"].keys()
    again = misslink.rejudge(other, judge="heuristic", cache=None)
    assert again.summary["retrieval"]["recall@6"]["value"] == 1
    assert "recall@10" not in again.summary["retrieval"]
