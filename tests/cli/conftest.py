"""The program, run as from a shell but in this process, in a folder of its own."""

import functools
import json
import sys

import pytest

from judged_app import COMMAND
from misslink.cli.main import build_command, main

# Most commands take less time than the command line takes to be built.
built = functools.cache(build_command)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MISSLINK_JUDGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def misslink(monkeypatch, capsys):
    """Run the program; returns exit code, stdout and stderr."""
    monkeypatch.setattr("misslink.cli.main.build_command", built)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["misslink", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        return (0 if code is None else code), printed.out, printed.err

    return run


@pytest.fixture
def evaluate(misslink, judge_server, monkeypatch):
    """Evaluate the app with the server as judge into ./run; returns the document it prints."""
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)

    def run(*options, expect=0):
        code, out, err = misslink(*COMMAND, "--json", *options)
        assert code == expect, err
        assert "Traceback" not in err
        if code:
            assert out == ""
            return err
        return json.loads(out)  # one document, nothing else

    return run
