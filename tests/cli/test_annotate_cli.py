"""misslink annotate: served until Ctrl-C, exported, and what is told before."""

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from labelled_runs import ask, label_all, put, run_of
from misslink.annotation import AnnotationSession
from misslink.io.labels import read_labels

PROGRAM = (sys.executable, "-c", "from misslink.cli.main import main; main()")


@pytest.fixture
def run():
    return put(Path("run"), run_of([0.1, 0.4, 0.6, 0.9]))


@pytest.fixture
def started():
    """Start the command as from a shell; gives the process and the port it prints."""
    begun = []

    def start(*options):
        process = subprocess.Popen(
            [*PROGRAM, "annotate", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        address = process.stderr.readline().rpartition("http://127.0.0.1:")[2]
        port, _, query = address.strip().partition("/?")
        asks = functools.partial(ask, int(port), token=parse_qs(query)["token"][0])
        return process, asks, query

    yield start
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such signal there")
def test_labels_given_before_ctrl_c_lie_where_it_says_and_calibrate_comes_next(run, started):
    process, asks, _ = started("run", "--annotator", "ada", "--no-browser")
    label = {"annotator": "ada", "at": 0, "metric": "faithfulness", "label": 1}
    assert asks("/api/label", label)[0] == 200
    second = subprocess.run(
        [*PROGRAM, "annotate", "run", "--annotator", "ada", "--no-browser"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 2
    assert "another misslink annotate has this open" in second.stderr
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "Labels in run/labels: 1; 1 by ada.\nNext:  misslink calibrate run\n" in out
    assert len(read_labels(run / "labels").items) == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal there")
def test_a_killed_server_loses_nothing_and_goes_on(run, started):
    process, asks, query = started(
        *("run", "--annotator", "ada", "--no-browser", "--json", "--case", "c2")
    )
    places = {asks(f"/api/item?annotator=ada&at={at}")[2].find('"c2"') > 0: at for at in range(4)}
    assert parse_qs(query)["case"] == [str(places[True] + 1)]
    for at in range(3):
        label = {"annotator": "ada", "at": at, "metric": "faithfulness", "label": at % 2}
        assert asks("/api/label", label)[0] == 200
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with AnnotationSession(run) as desk:
        assert desk.session("ada")["done"] == 3


def test_all_labels_are_exported(misslink, run):
    with AnnotationSession(run) as desk:
        label_all(desk, "ada", lambda _: 1)
    code, out, _ = misslink("annotate", "run", "--export", "all.csv")
    assert (code, "Labels of run written to all.csv: 4" in out) == (0, True)
    assert len(read_labels("all.csv").items) == 4
    code, out, _ = misslink("annotate", "run", "--export", "all.jsonl", "--json")
    assert json.loads(out) == {"run": "run", "labels": 4, "export": "all.jsonl"}


def test_where_people_agree_there_is_nothing_to_adjudicate(misslink, run):
    with AnnotationSession(run) as desk:
        for who in ("ada", "bob"):
            label_all(desk, who, lambda _: 1)
    code, out, _ = misslink("annotate", "run", "--adjudicate", "--no-browser")
    assert (code, out.partition("\n")[0]) == (
        0,
        "Annotators agree on every case that several of them labelled.",
    )
    code, out, _ = misslink("annotate", "run", "--adjudicate", "--json")
    assert json.loads(out)["annotators"] == {"ada": 4, "bob": 4}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("nowhere",), "nowhere: this is not a run folder"),
        (("run", "--annotator", "../x"), "a name is 1 to 40 letters"),
        (("run", "--annotator", "adjudicated"), "reserved for --adjudicate"),
        (("run", "--metric", "faithfull"), "did you mean 'faithfulness'?"),
        (("run", "--case", "c22"), "field '--case': no case 'c22' is to be labelled here"),
        (("run", "--adjudicate"), "this run has no labels"),
        (("run", "--export", "x.pdf"), "exported as .csv or .jsonl"),
        (("run", "--export", "run/cases.jsonl"), "This is a part of a run"),
        (("run", "--export", "x.csv"), "this run has no labels"),
        (("nowhere", "--export", "x.csv"), "this is not a run folder"),
    ],
)
def test_a_mistake_is_one_sentence(misslink, run, options, told):
    code, out, err = misslink("annotate", *options, "--no-browser")
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_what_is_not_installed_is_told_with_the_command(misslink, run, monkeypatch, package):
    for name in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = misslink("annotate", "run", "--no-browser")
    assert code == 2
    assert f"{package} is not installed: run  pip install 'misslink[annotate]'" in err


def test_a_report_and_an_evaluation_do_not_mind_the_labels(misslink, run):
    with AnnotationSession(run) as desk:
        label_all(desk, "ada", lambda _: 1)
    put(run, run_of([0.1, 0.4, 0.6, 0.9]))
    assert misslink("report", "run")[0] == 0
    assert len(read_labels(run / "labels").items) == 4
