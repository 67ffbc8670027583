"""What the page says first of small apps with a planted fault (`benchmarks/report/planted_apps.py`)."""

import pytest


@pytest.mark.slow
def test_the_page_says_the_planted_fault_first(tmp_path):
    from planted_apps import APPS, Said, evaluate  # it imports Chroma

    def names_its_fault(name):
        planted = APPS[name]()
        return all(Said.of(evaluate(planted, "heuristic", tmp_path)).names(planted))

    right = [name for name in APPS if names_its_fault(name)]
    assert len(right) >= 0.9 * len(APPS), APPS.keys() - {*right}
