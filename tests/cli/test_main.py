"""The program as a whole: what of its packages' logs reaches a person."""

from __future__ import annotations

import logging


def test_a_package_whose_logger_is_verbose_says_nothing_below_a_warning(
    misslink, monkeypatch, capsys
):
    """bm25s sets its own logger to DEBUG and tells of every index that it builds."""
    import bm25s

    assert logging.getLogger("bm25s").level == logging.DEBUG
    # A fresh process has no handlers; pytest puts its own there for each test.
    monkeypatch.setattr(logging.root, "handlers", [])
    misslink("--version")  # installs the handler
    bm25s.BM25().index([["one"], ["two"]], show_progress=False)
    logging.getLogger("bm25s").warning("careful")
    assert capsys.readouterr().err == "misslink: careful\n"
