"""Whatever breaks, it is one sentence and a code that no CI takes for a failed gate."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.cli import main as program
from misslink.errors import InputError
from small_runs import small_run, write_run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="shells of other systems differ")

GATES = "gates:\n  - name: hits\n    metric: hit@1\n    threshold: 0.01\n"


@pytest.fixture
def folder(tmp_path):
    write_run(tmp_path / "run", small_run([1, 0]))
    Path("gates.yaml").write_text(GATES)
    return tmp_path


@pytest.fixture
def refused(misslink):
    """Run a command of misslink that ends with one sentence, which it gives, and with 2."""

    def run(command):
        code, out, err = misslink(*command.split())
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    return run


def shell(command, **options):
    """Run a command line of misslink, ``misslink`` being this program."""
    words = command.replace("misslink", f"{sys.executable} -m misslink")
    done = subprocess.run(
        ["/bin/sh", "-c", words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


PASSES = "misslink gate run --criteria gates.yaml --json"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full disk to offer")
@pytest.mark.parametrize("command", [PASSES, "misslink gate run --criteria gates.yaml"])
def test_a_full_disk_under_stdout_is_2_also_where_the_gate_passes(folder, command):
    done = shell(f"{command} > /dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output: No space left on device" in done.stderr


@pytest.mark.slow
def test_a_closed_stdout_is_2_before_anything_is_paid_for(folder):
    done = shell(f"{PASSES} >&-")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_a_closed_stderr_leaves_the_document_alone(folder):
    done = shell(f"{PASSES} 2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["passed"]


@pytest.mark.slow
def test_a_closed_stderr_gives_a_mistake_no_place_in_stdout(folder):
    assert shell("misslink gate nowhere --criteria gates.yaml --json 2>&-").stdout == ""


def test_a_working_folder_that_is_gone_is_2(folder):
    done = shell(f"mkdir gone && cd gone && rmdir ../gone && {PASSES}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_a_name_that_is_not_utf_8_is_2_before_anything_is_paid_for(folder):
    done = shell("misslink evaluate app.py:app --goldset g.jsonl --out $(printf 'r\\377')")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not UTF-8" in done.stderr


@pytest.mark.parametrize("name", ["deep.toml", "misslink.toml"])
def test_deep_toml_is_2_and_named(folder, refused, name):
    Path(name).write_text(f"a = {'[' * 5000}{']' * 5000}\n")
    assert name in refused(f"gate run --criteria {name if name == 'deep.toml' else 'gates.yaml'}")


def test_a_grade_beyond_all_numbers_is_2_with_its_line(refused):
    case = {"id": "a", "question": "When?", "relevant": {"x": 10**19}}
    Path("gold.jsonl").write_text(json.dumps(case))
    assert "gold.jsonl, line 1" in refused("goldset check gold.jsonl")


@pytest.mark.slow
def test_a_parquet_file_that_unfolds_to_more_than_the_memory_is_2_and_named(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), ["x" * 2_000_000])
    pq.write_table(pa.table({"question": long}), "bomb.parquet", compression="zstd")
    assert Path("bomb.parquet").stat().st_size < 100_000
    done = shell("ulimit -v 3000000; misslink goldset check bomb.parquet")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "bomb.parquet" in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("this is wrong"), 2, "this is wrong"),
        (RecursionError("maximum recursion depth"), 2, "nested too deeply"),
        (MemoryError(), 2, "more memory"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates"), 2, "UTF-8"),
        (PermissionError(13, "Permission denied", "/secret/file"), 2, "/secret/file: Permission"),
        (KeyError("whatever"), 2, "this is a bug"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_no_command_expects_is_never_1(monkeypatch, capsys, error, code, said):
    def breaks():
        raise error

    monkeypatch.setattr(program, "_run", breaks)
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == code
    told = capsys.readouterr().err
    assert said in told
    assert ("Traceback" in told) is isinstance(error, KeyError)


@pytest.mark.slow
def test_ctrl_c_in_a_command_without_a_judge_is_130(folder):
    os.mkfifo("gold.jsonl")
    process = subprocess.Popen(
        [sys.executable, "-m", "misslink", "goldset", "check", "gold.jsonl"],
        stderr=subprocess.PIPE,
        text=True,
    )
    with Path("gold.jsonl").open("w"):  # it has begun to read
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert "Traceback" not in process.stderr.read()
