"""What the page says first of small apps with a planted fault (`benchmarks/report/planted_apps.py`)."""

import pytest

from planted_apps import APPS, Said, evaluate


def names_its_fault(name, folder):
    planted = APPS[name]()
    return all(Said.of(evaluate(planted, "heuristic", folder)).names(planted))


@pytest.mark.slow
def test_the_page_says_the_planted_fault_first(tmp_path):
    right = [name for name in APPS if names_its_fault(name, tmp_path)]
    assert len(right) >= 0.9 * len(APPS), APPS.keys() - {*right}
