"""What ppi-python says of a few samples, kept in ppi_python_values.json.

    pip install ppi-python==0.2.3
    python tests/oracles/ppi_python_values.py

It needs numba, pandas and gdown, which nothing else here does, so it is no development dependency.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).with_suffix(".json")


def samples() -> list[dict[str, Any]]:
    """Labels, verdicts, verdicts of other cases and weights, small enough to be kept."""
    rng = np.random.default_rng(7)
    found = []
    for n, others, share, soft in (
        (40, 120, 0.7, False),
        (60, 200, 0.2, True),
        (25, 80, 0.5, True),
    ):
        y = (rng.random(n + others) < share).astype(float)
        right = rng.random(n + others) < 0.85
        calls = np.where(right, y, 1 - y)
        blurred = np.clip(0.2 + 0.6 * calls + 0.12 * rng.normal(size=n + others), 0, 1)
        f = blurred.round(3) if soft else calls
        weights = rng.choice([1.0, 2.0, 5.0], n)
        parts = {"labels": y[:n], "verdicts": f[:n], "others": f[n:], "weights": weights}
        found.append({name: part.tolist() for name, part in parts.items()})
    return found


def main() -> None:
    """Ask ppi-python with the power given, and write its answers beside the samples."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    kept = []
    for sample in samples():
        y, f, rest, w = (np.array(sample[k]) for k in ("labels", "verdicts", "others", "weights"))
        every = np.concatenate([f, rest])
        power = np.cov(y, f, ddof=0)[0, 1] / every.var() / (1 + len(y) / len(rest))
        low, high = ppi_mean_ci(y, f, rest, alpha=0.05, lam=power)
        # by weights: the power of the labelled against all cases
        scaled = w / w.mean()
        around = (y - scaled @ y / len(y)) * (f - scaled @ f / len(f))
        weighted = float(scaled @ around / len(y) / every.var())
        sample |= {
            "power": float(power),
            "value": float(ppi_mean_pointestimate(y, f, rest, lam=power)[0]),
            "low": float(low[0]),
            "high": float(high[0]),
            "weighted_value": float(ppi_mean_pointestimate(y, f, every, lam=weighted, w=w)[0]),
        }
        kept.append(sample)
    PAGE.write_text(json.dumps({"made_by": "ppi-python 0.2.3", "samples": kept}) + "\n")


if __name__ == "__main__":
    main()
