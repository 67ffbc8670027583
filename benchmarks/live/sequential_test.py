"""How often the sequential test of `misslink live report` errs when it is looked at all the time.

Every row simulates experiments without a difference, looked at after each pair of units from the
first look allowed to the last unit, and counts those in which some look finds a difference; then
experiments with one, for how often and how early it is found, against a test of fixed size.

    python benchmarks/live/sequential_test.py [--write]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.stats import proportion
from misslink.stats.experiments import (
    MIN_SEQUENTIAL_UNITS,
    TUNED_FOR,
    sequential_boundary,
    sequential_test,
)

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

SEED = 8
EXPERIMENTS = 2_000  # of each row; a share of 5% has a standard error of half a point
MOST = 5_000  # units of each variant
EFFECTS = (0.1, 0.2, 0.4)  # in standard deviations
PAGE = Path(__file__).with_suffix(".md")
MARKS = "<!-- table -->", "<!-- /table -->"
SHAPES: dict[str, tuple[Draw, float, bool]] = {  # how a unit is drawn, standard deviation, a share
    "normal": (lambda rng, shape: rng.standard_normal(shape), 1.0, False),
    "yes or no, half": (lambda rng, shape: _yes(rng, shape, 0.5), 0.5, True),
    "yes or no, 1 in 20": (lambda rng, shape: _yes(rng, shape, 0.05), 0.05**0.5 * 0.95**0.5, True),
    "skewed (lognormal, sigma 1)": (
        lambda rng, shape: rng.lognormal(0.0, 1.0, shape),
        (np.e - 1) ** 0.5 * np.e**0.5,
        False,
    ),
    "very skewed (sigma 1.5)": (
        lambda rng, shape: rng.lognormal(0.0, 1.5, shape),
        float(((np.exp(2.25) - 1) * np.exp(2.25)) ** 0.5),
        False,
    ),
}


def _yes(rng: np.random.Generator, shape: tuple[int, int], chance: float) -> Floats:
    return (rng.random(shape) < chance).astype(np.float64)


def scores(control: Floats, variant: Floats, *, is_share: bool) -> Floats:
    """Difference in standard errors after each pair of units, experiments x pairs."""
    error = spreads(control, is_share=is_share) + spreads(variant, is_share=is_share)
    count = np.arange(1, control.shape[1] + 1)
    gap = (np.cumsum(variant, axis=1) - np.cumsum(control, axis=1)) / count
    found: Floats = np.divide(gap, np.sqrt(error), out=np.zeros_like(gap), where=error > 0)
    return found


def spreads(values: Floats, *, is_share: bool) -> Floats:
    """The variance of the mean of the first so many units, as the product estimates it."""
    count = np.arange(1, values.shape[1] + 1, dtype=np.float64)
    total, squares = np.cumsum(values, axis=1), np.cumsum(values**2, axis=1)
    taken = count + 2 * is_share
    total, squares = total + is_share, squares + is_share
    variance: Floats = (squares - total**2 / taken) / np.maximum(taken - 1, 1)
    return np.maximum(variance, 0.0) / count


def verify(draw: Draw, *, is_share: bool) -> None:
    """Hold what is computed here against what the product says."""
    rng = np.random.default_rng(SEED)
    control, variant = draw(rng, (1, 400)), draw(rng, (1, 400))
    found = scores(control, variant, is_share=is_share)[0]
    for size in (MIN_SEQUENTIAL_UNITS, 173, 400):
        said, _ = sequential_test(control[0, :size], variant[0, :size], is_share=is_share)
        assert said.value is not None
        assert said.high is not None
        half = sequential_boundary(2.0 * size)
        assert np.isclose(said.value / (said.high - said.value), found[size - 1] / half)


def table() -> list[str]:
    """The rows of the page."""
    units = 2.0 * np.arange(1, MOST + 1)
    bounds = np.array([sequential_boundary(each) for each in units])
    lines = [
        "| values | some look errs | 1.96 at every look errs | "
        + " | ".join(f"effect {effect}: found, units" for effect in EFFECTS)
        + " |",
        "| --- | --: | --: |" + " --: |" * len(EFFECTS),
    ]
    for place, (name, (draw, deviation, is_share)) in enumerate(SHAPES.items()):
        verify(draw, is_share=is_share)
        rng = np.random.default_rng([SEED, place])
        shape = EXPERIMENTS, MOST
        control, variant = draw(rng, shape), draw(rng, shape)
        null = np.abs(scores(control, variant, is_share=is_share))[:, MIN_SEQUENTIAL_UNITS - 1 :]
        cells = [
            written((null > bounds[MIN_SEQUENTIAL_UNITS - 1 :]).any(axis=1)),
            written((null > 1.96).any(axis=1)),
        ]
        for effect in EFFECTS:
            moved = shifted(rng, name, effect * deviation, variant)
            cells.append(found(np.abs(scores(control, moved, is_share=is_share)), bounds, effect))
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def shifted(rng: np.random.Generator, name: str, by: float, values: Floats) -> Floats:
    """Values with a mean that is higher by so much; of yes or no, by a higher chance."""
    if not name.startswith("yes"):
        return values + by
    chance = 0.5 if "half" in name else 0.05
    return _yes(rng, values.shape, chance + by)


def found(values: Floats, bounds: Floats, effect: float) -> str:
    """Share found by the last unit, and mean units until then, against those of a fixed size."""
    over = (values > bounds)[:, MIN_SEQUENTIAL_UNITS - 1 :]
    hit = over.any(axis=1)
    stop = np.where(hit, 2 * (over.argmax(axis=1) + MIN_SEQUENTIAL_UNITS), 2 * MOST)
    fixed = 2 * int(np.ceil(2 * ((1.959964 + 0.841621) / effect) ** 2))
    return f"{written(hit)}, {stop.mean():,.0f} (fixed {fixed:,})"


def written(yes: Any) -> str:
    """A share in per cent with its interval."""
    share = proportion(int(yes.sum()), len(yes))
    assert share.value is not None
    assert share.low is not None
    assert share.high is not None
    return f"{100 * share.value:.1f}% [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def main(arguments: list[str]) -> None:
    """Verify, print, and write where that is asked for."""
    lines = table()
    if "--write" not in arguments:
        return
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(MARKS[0])
    assert rest, f"{PAGE} has no place for the table"
    _, _, after = rest.partition(MARKS[1])
    whole = "\n".join([MARKS[0], *lines, MARKS[1]])
    PAGE.write_text(before + whole + after, encoding="utf-8")


if __name__ == "__main__":
    print(
        f"first look at {MIN_SEQUENTIAL_UNITS} a variant, tuned for {TUNED_FOR:,} units",
        file=sys.stderr,
    )
    main(sys.argv[1:])
