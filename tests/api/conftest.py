"""The command line, to compare its documents with what the functions return."""

import json
import sys

import pytest

from misslink.cli.main import main


@pytest.fixture
def misslink_cli(tmp_path, monkeypatch, capsys):
    """Run a command with --json and return its document."""

    def call(*arguments, code=0):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["misslink", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == code, printed.err
        return json.loads(printed.out)

    return call
