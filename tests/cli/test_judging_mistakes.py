"""What a mistake about the judge costs: one sentence, an exit code, and nothing else."""

import ctypes
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from judged_app import COMMAND, JUDGE, PRICES, app_was_asked, short_cases
from misslink.judge.prompts import prompts_folder


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--judge-option", "max-cost=1"], "max_cost needs prices: add price_in and price_out"),
        (["--judge-option", "price-in=1"], "give both prices"),
        (["--repeats", "0"], "repeats is 0"),
        (["--judge-option", "cascade-check=2"], "cascade_check is 2; it is a share"),
        (["--judge-option", "max-calls=-1"], "max_calls is -1"),
        (["--judge-option", "rpm=0"], "rpm is 0"),
        (["--judge-option", "deadline=0"], "deadline is 0"),
        (["--judge-option", "timeout=nan"], "timeout is nan"),
        (["--judge-option", "max-cost=nan", *PRICES], "max_cost is nan"),
        (["--judge-option", "temperature=-1"], "temperature is -1"),
        (["--judge-option", "context-length=-5"], "context_length is -5"),
        (["--prompts", "nowhere"], "nowhere: there is no such folder of prompts"),
        (["--judge", "cascade:heuristic"], "cascade:heuristic,openai:MODEL"),
        (
            ["--judge", f"cascade:{JUDGE},heuristic"],
            "it can only be the last of a cascade; put heuristic",
        ),
        (["--judge", "langchain:openai"], "needs a provider and a model"),
        (["--judge", "openai-responses"], "needs a model"),
        (["--judge", "llamacpp:nowhere.gguf"], "nowhere.gguf"),
        (["--judge", "mine.py:judge"], "there is no file mine.py"),
        (["--cache", "."], "Name the file of the response cache"),
        (["--cache", "app.py"], "This file is not a response cache"),
        (["--cache", "app.py/cache"], "The response cache cannot be used (File exists)"),
        (["--cache", "/dev/full"], "/dev/full"),
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


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["ping"], "Missing option '--judge'"),
        (["ping", "--judge", "opanai:x"], "did you mean 'openai'"),
        (["ping", "--judge", "none"], "none"),
        (["redteam", "--judge", "none"], "--judge none makes no model calls"),
        (["redteam", "--judge", JUDGE, "--prompts", "nowhere"], "no such folder of prompts"),
        (["redteam", "--judge", JUDGE, "--concurrency", "0"], "--concurrency"),
        (["redteam", "--judge", JUDGE, "--cache", "."], "This is a folder"),
        (["pairwise", "a", "b", "--judge", JUDGE], "a: this is not a run folder"),
        (["pairwise", "a", "--judge", JUDGE], "run_b"),
    ],
)
def test_a_mistake_with_a_command_of_the_judge_is_exit_code_2(
    misslink, judge_server, monkeypatch, command, message
):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    code, out, err = misslink("judge", *command)
    assert (code, out) == (2, ""), err
    assert message in err
    assert "Traceback" not in err
    assert judge_server.calls == []


def program(*arguments, **options):
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from misslink.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def no_file_may_grow():
    """As on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def without_rights():
    """As anybody but root: what is not writable by its mode cannot be written."""
    drop_from_bounding_set, override_modes = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
    ctypes.CDLL(None).prctl(drop_from_bounding_set, override_modes, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "within", "told"),
    [
        (0o755, no_file_may_grow, "The response cache cannot be written, the disk"),
        (0o555, without_rights, "The response cache"),
    ],
)
def test_a_cache_that_cannot_be_written_is_told_before_anything_is_asked(
    evaluate, judge_server, mode, within, told
):
    short_cases(3)
    evaluate("--judge-option", "max-calls=1", "--cache", "kept/cache.sqlite")
    spent = len(judge_server.calls), app_was_asked()
    Path("kept/cache.sqlite").chmod(mode & 0o644)
    Path("kept").chmod(mode)
    done = program(*COMMAND, "--cache", "kept/cache.sqlite", preexec_fn=within)
    Path("kept").chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert f"kept/cache.sqlite: {told}" in done.stderr
    assert "Traceback" not in done.stderr
    assert (len(judge_server.calls), app_was_asked()) == spent


def files_stay_small():
    """As on a disk with room for the cache of a few replies, but for no run of 50 cases."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**19, 2**19))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "within"), [(0o755, files_stay_small), (0o555, without_rights)], ids=["full", "mode"]
)
def test_a_run_folder_that_cannot_be_written_is_told_before_anything_is_asked(
    misslink, judge_server, monkeypatch, mode, within
):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    short_cases(50)
    Path("run").mkdir()
    Path("run/note.txt").write_text("mine", encoding="utf-8")
    Path("run").chmod(mode)
    done = program(*COMMAND, "--overwrite", preexec_fn=within)
    Path("run").chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert "run: this folder cannot be written" in done.stderr
    assert "choose another --out" in done.stderr
    assert (judge_server.calls, app_was_asked()) == ([], 0)
    assert list(Path().glob(".run*")) == [], "nothing half made stays"
