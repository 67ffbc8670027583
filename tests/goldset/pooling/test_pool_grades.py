"""Grades of several people made one, and their agreement against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from misslink.goldset.pooling.grades import annotator_agreement, resolve_grades, weighted_kappa
from misslink.io.labels import ADJUDICATED


def people(count=60, seed=0):
    generator = np.random.default_rng(seed)
    true = generator.integers(0, 3, count)
    noisy = np.clip(true + generator.integers(-1, 2, count), 0, 2)
    return ({f"i{n}": int(grade) for n, grade in enumerate(of)} for of in (true, noisy))


def test_kappa_is_that_of_scikit_learn_with_quadratic_weights():
    ada, bob = people()
    want = cohen_kappa_score(list(ada.values()), list(bob.values()), weights="quadratic")
    assert weighted_kappa(ada, bob).value == pytest.approx(want)


def test_a_grade_that_nobody_gave_keeps_its_distance():
    ada, bob = {"a": 0, "b": 2, "c": 0, "d": 2}, {"a": 0, "b": 2, "c": 2, "d": 2}
    want = cohen_kappa_score(list(ada.values()), list(bob.values()), labels=[0, 1, 2],
                             weights="quadratic")  # fmt: skip
    assert weighted_kappa(ada, bob).value == pytest.approx(want)


def ordinal_alpha(rows):
    """Krippendorff (2011), by his own double sums over ranks."""
    values = sorted({grade for row in rows for grade in row if grade is not None})
    coincidences = {(a, b): 0.0 for a in values for b in values}
    for row in rows:
        said = [grade for grade in row if grade is not None]
        for i, a in enumerate(said):
            for j, b in enumerate(said):
                if i != j:
                    coincidences[a, b] += 1 / (len(said) - 1)
    totals = {a: sum(coincidences[a, b] for b in values) for a in values}
    n = sum(totals.values())

    def distance(a, b):
        low, high = min(a, b), max(a, b)
        between = sum(totals[c] for c in values if low <= c <= high)
        return (between - (totals[a] + totals[b]) / 2) ** 2

    observed = sum(count * distance(a, b) for (a, b), count in coincidences.items())
    expected = sum(totals[a] * totals[b] * distance(a, b) for a in values for b in values)
    return 1 - (n - 1) * observed / expected


def test_alpha_is_krippendorffs_ordinal_one_also_where_some_have_not_graded():
    ada, bob = people()
    cyd = dict(list(ada.items())[:20]) | {"i30": None}
    found = annotator_agreement({"ada": ada, "bob": bob, "cyd": cyd}, 60)
    rows = [[ada[i], bob[i], cyd.get(i)] for i in ada]
    assert found["alpha"].value == pytest.approx(ordinal_alpha(rows))
    assert found["each"]["cyd"] == {"labelled": 20, "skipped": 1, "missing": 39}
    assert [pair["kappa"].n for pair in found["pairs"]] == [60, 20, 20]
    assert "see the pairs" in found["kappa"].reason


def test_one_person_alone_agrees_with_nobody():
    found = annotator_agreement({"ada": {"a": 1}, ADJUDICATED: {"a": 2}}, 3)
    assert (found["annotators"], found["alpha"].value, found["kappa"].value) == (1, None, None)


@pytest.mark.parametrize(
    ("said", "grade", "queued"),
    [
        ({"ada": 2}, 2, None),
        ({"ada": 1, "bob": 1}, 1, None),
        ({"ada": 1, "bob": 2}, None, False),
        ({"ada": 1, "bob": 1, "cyd": 0}, 1, True),
        ({"ada": 0, "bob": 1, "cyd": 2}, None, False),
        ({"ada": 1, "bob": 2, ADJUDICATED: 0}, 0, None),
        ({"ada": 1, "bob": None}, 1, None),
        ({"ada": None}, None, None),
        ({ADJUDICATED: 2}, 2, None),
    ],
)
def test_a_grade_is_the_adjudicated_one_else_that_of_more_than_half(said, grade, queued):
    found = resolve_grades({name: {"i": one} for name, one in said.items()})
    assert found.grades == ({} if grade is None else {"i": grade})
    assert [one["settled"] for one in found.queue] == ([] if queued is None else [queued])
