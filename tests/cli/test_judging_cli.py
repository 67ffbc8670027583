"""The judge on the command line: what it may cost, what it is told, and what a mistake is called."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from honest_judge import fenced, honest
from judge_faults import Reset, error
from misslink.cli import main
from misslink.judging.forecast import Forecast
from misslink.prompting import prompts_folder

JUDGE = "openai:test-judge"
PRICES = ("--price-in", "1", "--price-out", "4")
APP = """
import json
from pathlib import Path

TRACES = json.loads(Path("told.json").read_text(encoding="utf-8"))

def app(question):
    with Path("asked.txt").open("a", encoding="utf-8") as file:
        file.write(question + "\\n")
    return TRACES[question]
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MISSLINK_JUDGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def misslink(monkeypatch, capsys):
    """Run the program in this process; returns exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["misslink", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        return (0 if code is None else code), printed.out, printed.err

    return run


@pytest.fixture
def evaluate(misslink, judge_server):
    """Evaluate the app with the server as judge into ./run; returns the document it prints."""

    def run(*options, judge=JUDGE, expect=0):
        code, out, err = misslink(
            "evaluate", "app.py:app", "--goldset", "gold.jsonl", "--judge", judge,
            "--base-url", judge_server.url, "--out", "run", "--json", *options,
        )  # fmt: skip
        assert code == expect, err
        assert "Traceback" not in err
        if code:
            assert out == ""
            return err
        return json.loads(out)  # one document, nothing else

    return run


def write_inputs(count, passages, answer):
    """A gold set of so many questions, and an app that writes down what it is asked."""
    told, gold = {}, []
    for n in range(count):
        question = f"What colour is the sky over town {n}?"
        retrieved = [{"id": f"p{n}-{i}", "text": text} for i, text in enumerate(passages(n), 1)]
        gold.append({"id": f"case-{n}", "question": question, "relevant": [f"p{n}-1"]})
        told[question] = {"answer": answer(n), "retrieved": retrieved}
    lines = "".join(json.dumps(case) + "\n" for case in gold)
    Path("gold.jsonl").write_text(lines, encoding="utf-8")
    Path("told.json").write_text(json.dumps(told), encoding="utf-8")
    Path("app.py").write_text(APP, encoding="utf-8")


def short_cases(count):
    write_inputs(
        count,
        lambda n: [f"By day the sky over town {n} is blue. Clouds are white.", "Grass is green."],
        lambda n: f"The sky over town {n} is blue. Grass is red.",
    )


def cases_of_default_size(count):
    """Four passages of 150 words, answers of five sentences, of which one is invented."""
    chance = random.Random(7)
    words = "water stone river market window copper bridge letter summer engine garden silver"

    def sentence():
        return " ".join(chance.choices(words.split(), k=15)).capitalize() + "."

    told = [[[sentence() for _ in range(10)] for _ in range(4)] for _ in range(count)]
    write_inputs(
        count,
        lambda n: [" ".join(passage) for passage in told[n]],
        lambda n: " ".join([*told[n][n % 4][:4], sentence()]),
    )


def app_was_asked():
    path = Path("asked.txt")
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def lines(name):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def manifest():
    return json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))


def faithfulness():
    return [v for v in lines("run/verdicts.jsonl") if v["metric"] == "faithfulness"]


def statuses():
    return [verdict["status"] for verdict in faithfulness()]


def test_a_dry_run_asks_nothing_and_says_what_the_run_then_uses(evaluate, judge_server):
    cases_of_default_size(10)
    foreseen = evaluate("--dry-run", *PRICES)
    assert judge_server.calls == []
    assert not Path("run").exists()
    assert app_was_asked() == 10
    used = evaluate(*PRICES)["usage"]
    assert app_was_asked() == 10  # its traces were kept
    assert set(foreseen) == set(Forecast.__dataclass_fields__)
    assert foreseen["calls"] == used["calls"] == len(judge_server.calls) == 10
    for name in ("prompt_tokens", "completion_tokens", "cost"):
        assert foreseen[name] == pytest.approx(used[name], rel=0.10), name
    assert evaluate("--dry-run", *PRICES)["calls"] == 0
    assert len(judge_server.calls) == 10


def test_a_dry_run_for_people_ends_by_saying_that_nothing_was_asked(misslink, judge_server):
    short_cases(2)
    code, out, _ = misslink(
        "evaluate", "app.py:app", "--goldset", "gold.jsonl", "--judge", JUDGE,
        "--base-url", judge_server.url, "--out", "run", "--dry-run", *PRICES,
    )  # fmt: skip
    assert code == 0
    assert "The judge would be asked 2 questions (0 more are answered by the ledger)" in out
    assert "which cost about" in out
    assert out.endswith("Nothing has been asked.\n")
    assert judge_server.calls == []


def test_max_calls_is_never_passed_and_the_same_command_goes_on(evaluate, judge_server):
    short_cases(8)
    capped = ("--max-calls", "3", "--concurrency", "4")
    for scored, unfinished in [(3, True), (6, True), (8, False)]:
        before = len(judge_server.calls)
        document = evaluate(*capped)
        assert len(judge_server.calls) - before == document["usage"]["calls"] <= 3
        assert statuses().count("scored") == scored
        skipped = [v for v in faithfulness() if v["status"] == "skipped"]
        assert len(skipped) == document["usage"]["not_asked"] == 8 - scored
        for verdict in skipped:
            assert verdict["value"] is None
            assert "--max-calls 3 is used up; the same command goes on" in verdict["reason"]
        assert document["coverage"]["faithfulness"]["skipped"] == 8 - scored
        assert bool(manifest()["unfinished"]) is unfinished
    assert len(judge_server.calls) == 8
    assert app_was_asked() == 8


def test_max_cost_is_never_passed_whatever_is_in_flight(evaluate, judge_server):
    short_cases(12)
    small = ("--max-tokens", "300", *PRICES)
    whole = evaluate("--dry-run", *small)["cost"]
    cap = 0.6 * whole + 0.0016  # what is held back for the longest reply is not spent in the end
    document = evaluate("--max-cost", cap, *small)
    spent = document["usage"]["cost"]
    bill = sum(completion_cost(call.body) for call in judge_server.calls)
    assert spent == pytest.approx(bill)
    assert 0 < spent <= cap
    assert 0 < statuses().count("scored") < 12
    assert "raise it, and the same command goes on" in str(faithfulness())
    assert manifest()["unfinished"]
    done = len(judge_server.calls)
    document = evaluate("--max-cost", 10, *small)
    assert document["usage"]["from_ledger"] == done
    assert statuses() == ["scored"] * 12
    assert len(judge_server.calls) == app_was_asked() == 12
    assert not manifest()["unfinished"]


def completion_cost(body):
    """What the test server's bill for an honest answer is, at PRICES."""
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    return (prompt + 4 * (len(json.dumps(honest(body))) // 4)) / 1e6


def test_no_call_at_all_is_allowed_and_says_so(evaluate, judge_server):
    short_cases(2)
    document = evaluate("--max-calls", "0")
    assert judge_server.calls == []
    assert document["generation"]["faithfulness"]["value"] is None
    assert document["usage"]["not_asked"] == 2


def test_a_deadline_skips_what_is_left_and_says_so(evaluate, judge_server):
    short_cases(5)
    judge_server.script = lambda _: judge_server.pause(0.6) and None
    evaluate("--deadline", "0.5", "--concurrency", "1")
    assert len(judge_server.calls) == 1
    assert statuses() == ["scored", *["skipped"] * 4]
    assert "the time of the run is used up (--deadline 0.5)" in faithfulness()[-1]["reason"]
    judge_server.script = None
    evaluate()
    assert len(judge_server.calls) == 5
    assert statuses() == ["scored"] * 5


@pytest.mark.parametrize("pace", [("--rpm", "3"), ("--tpm", "6000")])
def test_a_minute_holds_no_more_than_it_may(evaluate, judge_server, pace):
    short_cases(8)
    # The next call would have to wait a minute, which the deadline does not leave.
    evaluate(*pace, "--deadline", "20")
    assert 0 < len(judge_server.calls) < 8
    if pace[0] == "--rpm":
        assert len(judge_server.calls) == 3
    else:
        characters = sum(len(json.dumps(call.body["messages"])) for call in judge_server.calls)
        assert characters / 4 <= 6000
    assert statuses().count("scored") == len(judge_server.calls)
    assert statuses().count("skipped") == 8 - len(judge_server.calls)


def test_an_account_without_credit_is_told_at_once(evaluate, judge_server):
    short_cases(20)
    judge_server.script = lambda _: error(429, "You exceeded your quota", "insufficient_quota")
    told = evaluate("--concurrency", "4", expect=3)
    assert "its account has no credit left" in told
    assert len(judge_server.calls) <= 4
    assert not Path("run").exists()


def test_a_server_that_dies_costs_nothing_that_was_paid(evaluate, judge_server):
    short_cases(10)

    def dying(_):
        if len(judge_server.calls) > 4:
            raise Reset
        return None

    judge_server.script = dying
    told = evaluate("--concurrency", "2", expect=3)
    assert "run the same command again when it is well" in told
    assert len(judge_server.calls) < 20  # not five tries of every question
    judge_server.script, before = None, len(judge_server.calls)
    document = evaluate("--concurrency", "2")
    assert document["usage"]["from_ledger"] == 4
    assert len(judge_server.calls) - before == document["usage"]["calls"] == 6
    assert app_was_asked() == 10


def test_german_prompts_are_asked_in_german_and_told_apart(evaluate, judge_server):
    short_cases(2)
    evaluate()
    english = {v["prompt"]["sha256"] for v in faithfulness()}
    assert evaluate("--prompts", "de", expect=2).count("choose another --out") == 1
    evaluate("--prompts", "de", "--overwrite")
    german = {v["prompt"]["sha256"] for v in faithfulness()}
    assert not english & german
    systems = [call.body["messages"][0]["content"] for call in judge_server.calls]
    assert [system.startswith("Du prüfst") for system in systems] == [False, False, True, True]
    assert statuses() == ["scored"] * 2
    assert manifest()["judging"]["prompts"] == "de"


def test_a_prompt_that_does_not_fence_is_refused_with_its_line(evaluate, judge_server):
    short_cases(1)
    shutil.copytree(prompts_folder(), "mine", ignore=shutil.ignore_patterns("de"))
    path = Path("mine/examination.jinja")
    text = path.read_text(encoding="utf-8")
    broken = text.replace('{{ fence("answer", answer) }}', "{{ answer }}")
    assert broken != text
    path.write_text(broken, encoding="utf-8")
    line = broken[: broken.index("{{ answer }}")].count("\n") + 1
    told = evaluate("--prompts", "mine", expect=2)
    assert f"mine/examination.jinja, line {line}" in told
    assert told.strip().count("\n") == 0
    assert (judge_server.calls, app_was_asked()) == ([], 0)


def whole_or_part(body):
    """The honest judge, for later parts of a long context too."""
    held = [text for label, text in fenced(body) if label.startswith("claim_")]
    if not held:
        return honest(body)
    passages = [text for label, text in fenced(body) if label.startswith("passage_")]
    said = []
    for number, claim in enumerate(held, 1):
        quote = claim.rstrip(".")
        found = any(quote in text for text in passages)
        support = "supported" if found else "unsupported"
        said.append({"claim": number, "support": support, "quote": quote if found else None})
    relevant = [{"passage": n, "relevant": False} for n in range(1, len(passages) + 1)]
    return {"claims": said, "passages": relevant, "sufficient": "no"}


def test_a_short_context_is_judged_in_parts_that_are_one_verdict(evaluate, judge_server):
    tale = " ".join(["The gulls over the pier speak of nets and of tar, and nobody listens."] * 40)
    blue = "The sky over town {n} is blue."
    write_inputs(
        2,
        lambda n: [tale, tale[::-1], f"{tale} {blue.format(n=n)}"],
        lambda n: f"{blue.format(n=n)} Grass is red.",
    )
    judge_server.script = whole_or_part
    foreseen = evaluate("--dry-run", "--context-length", "2500")
    document = evaluate("--context-length", "2500")
    assert len(judge_server.calls) > 4
    assert foreseen["calls"] == document["usage"]["calls"] == len(judge_server.calls)
    for call in judge_server.calls:
        assert sum(len(m["content"]) for m in call.body["messages"]) / 4 < 2500
    for number, verdict in enumerate(faithfulness()):
        assert verdict["value"] == 0.5
        supported, invented = verdict["claims"]
        assert (supported["support"], invented["support"]) == ("supported", "unsupported")
        assert [found["passage_id"] for found in supported["evidence"]] == [f"p{number}-3"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-cost", "1"], "--max-cost needs prices: add --price-in and --price-out"),
        (["--price-in", "1"], "give both prices"),
        (["--repeats", "0"], "--repeats is 0"),
        (["--audit", "2"], "--audit is 2; it is a share"),
        (["--max-calls", "-1"], "--max-calls is -1"),
        (["--rpm", "0"], "--rpm is 0"),
        (["--deadline", "0"], "--deadline is 0"),
        (["--timeout", "nan"], "--timeout is nan"),
        (["--max-cost", "nan", *PRICES], "--max-cost is nan"),
        (["--temperature", "-1"], "--temperature is -1"),
        (["--context-length", "-5"], "--context-length is -5"),
        (["--prompts", "nowhere"], "nowhere: there is no such folder of prompts"),
        (["--judge", "cascade:embedded"], "cascade:embedded,openai:MODEL"),
        (["--judge", f"cascade:{JUDGE},embedded"], "cannot be the first of a cascade"),
        (["--judge", "langchain:openai"], "needs a provider and a model"),
        (["--judge", "openai-responses"], "needs a model"),
        (["--judge", "llamacpp:nowhere.gguf"], "nowhere.gguf"),
        (["--judge", "mine.py:judge"], "there is no file mine.py"),
        (["--ledger", "."], "the ledger is a file and this is a folder"),
        (["--ledger", "app.py"], "this file is no ledger"),
        (["--ledger", "app.py/ledger"], "the ledger's folder cannot be made"),
        (["--ledger", "/dev/full"], "/dev/full"),
        (["--out", "app.py/run"], "cannot be written"),
    ],
)
def test_a_mistake_costs_one_sentence_and_nothing_else(evaluate, judge_server, options, message):
    short_cases(1)
    told = evaluate(*options, expect=2)
    assert message in told
    assert told.strip().count("\n") == 0
    assert (judge_server.calls, app_was_asked()) == ([], 0)
    assert not Path("run").exists()


def program(*arguments, **options):
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from misslink.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_a_ledger_that_may_not_be_written_is_told_before_anything_is_asked(judge_server):
    short_cases(3)
    command = (
        "evaluate", "app.py:app", "--goldset", "gold.jsonl", "--judge", JUDGE,
        "--base-url", judge_server.url, "--out", "run", "--ledger", "kept/ledger.sqlite",
    )  # fmt: skip
    assert program(*command, "--max-calls", "1").returncode == 0
    asked = len(judge_server.calls)
    full = program(*command, preexec_fn=lambda: no_file_may_grow_beyond(0))
    assert full.returncode == 2, full.stderr
    assert "kept/ledger.sqlite: the ledger cannot be written, the disk" in full.stderr
    assert "Traceback" not in full.stderr
    assert len(judge_server.calls) == asked
    Path("kept").chmod(0o555)
    Path("kept/ledger.sqlite").chmod(0o444)
    try:
        refused = program(*command, preexec_fn=without_rights)
    finally:
        Path("kept").chmod(0o755)
    assert refused.returncode == 2, refused.stderr
    assert "kept/ledger.sqlite: the ledger cannot be " in refused.stderr
    assert "Traceback" not in refused.stderr
    assert len(judge_server.calls) == asked


def no_file_may_grow_beyond(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def without_rights():
    if os.geteuid() == 0:
        os.seteuid(65534)
