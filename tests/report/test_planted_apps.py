"""What the page says first of small apps with a planted fault (`benchmarks/report/planted_apps.py`)."""

import re

import pytest


@pytest.mark.slow
def test_the_page_says_the_planted_fault_first(tmp_path):
    from planted_apps import APPS, rows  # it imports Chroma

    *table, total = rows([*APPS], ["heuristic"], tmp_path)
    assert len(table) == 2 + len(APPS)
    right = re.fullmatch(r"\nRight: heuristic (\d+) of (\d+)\.", total)
    assert int(right[2]) == len(APPS)
    assert int(right[1]) >= 0.9 * len(APPS), table
