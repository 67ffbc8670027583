"""Writes docs/scale.md from what the benchmarks measured: `python docs/make_scale.py [--check]`.

Nothing here is typed in but what nobody can measure for somebody else: prices, a provider's rate
limit, its latency. Give your own: `python docs/make_scale.py --price-in 2 --price-out 8 --print`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "scale.md"
TEXT = HERE / "scale.template"
MEASURED = HERE.parent / "benchmarks"
SIZES = (100_000, 1_000_000, 100_000_000)
WHOLE = 100_000  # cases of one run, the most that was measured
BATCH = 50_000  # questions of one batch, as OpenAI's interface takes them
KB, MB, GB, TB = 1024, 1024**2, 1024**3, 1024**4


def main() -> None:
    """Write the page, or see whether it is what would be written."""
    options = _options()
    text = page(options)
    if options.print:
        sys.stdout.write(text)
    elif options.check:
        sys.exit(PAGE.read_text(encoding="utf-8") != text)
    else:
        PAGE.write_text(text, encoding="utf-8")


def page(given: argparse.Namespace) -> str:
    """Return the page for these prices and limits."""
    rows = json.loads((MEASURED / "pipeline" / "scale.json").read_text(encoding="utf-8"))
    small, large = rows[0], rows[-1]
    ray = json.loads((MEASURED / "engines" / "ray_workers.json").read_text(encoding="utf-8"))[
        "rows"
    ][-1]
    cases = large["cases"]
    first = large["filling"]
    driver = 1000 * ray["driver_cpu_s"] / ray["calls"]
    worker = 1000 * ray["worker_cpu_s"] / ray["calls"]
    a_case: dict[str, float] = {
        "calls": first["calls"] / cases,
        "tokens_in": first["tokens"][0] / cases,
        "tokens_out": first["tokens"][1] / cases,
        "line": 1000 * first["cpu"] / cases,
        "again": 1000 * sum(large["cpu"]) / cases,
        "memory": KB * large["peaks"][-1] / cases,
        "cache": KB * large["cache"] / cases,
        "folder": KB * large["run"] / cases,
    }
    rate = given.rpm / 60
    cost = (given.price_in * a_case["tokens_in"] + given.price_out * a_case["tokens_out"]) / 1e6
    hours = a_case["calls"] / given.rpm / 60
    table = {
        "questions": [f"{n * a_case['calls']:,.0f}" for n in SIZES],
        "prompt tokens, millions": [f"{n * a_case['tokens_in'] / 1e6:,.0f}" for n in SIZES],
        "completion tokens, millions": [f"{n * a_case['tokens_out'] / 1e6:,.0f}" for n in SIZES],
        "cost, live": [f"{n * cost:,.0f}" for n in SIZES],
        "cost, in batches": [f"{n * cost * given.batch_price:,.0f}" for n in SIZES],
        "batches": [f"{math.ceil(n * a_case['calls'] / BATCH):,}" for n in SIZES],
        "hours, live": [f"{n * hours:,.1f}" for n in SIZES],
        "CPU hours of the line": [f"{n * a_case['line'] / 3.6e6:,.1f}" for n in SIZES],
        "CPU hours of the clients": [f"{n * a_case['calls'] * worker / 3.6e6:,.1f}" for n in SIZES],
        "memory in one run": [_size(n * a_case["memory"] * KB) for n in SIZES],
        f"runs of {WHOLE:,}": [f"{math.ceil(n / WHOLE):,}" for n in SIZES],
        "cache": [_size(n * a_case["cache"] * KB) for n in SIZES],
        "run folders": [_size(n * a_case["folder"] * KB) for n in SIZES],
    }
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in table.items()]
    # Local, the client's work is done by the same process.
    alone = (worker * a_case["calls"] + a_case["line"]) / 1000 / a_case["calls"]
    most_cases = 64 * GB / (a_case["memory"] * KB)
    return TEXT.read_text(encoding="utf-8").format(
        **a_case,
        price_in=given.price_in,
        price_out=given.price_out,
        percent=100 * given.batch_price,
        rpm=given.rpm,
        latency=given.latency,
        cores=large["cores"],
        cases=cases,
        small=small["cases"],
        times=cases / small["cases"],
        slower=sum(large["cpu"]) / sum(small["cpu"]),
        larger=large["peaks"][-1] / small["peaks"][-1],
        driver=driver,
        worker=worker,
        heads=" | ".join(f"{n:,}" for n in SIZES),
        dashes=" --: |" * len(SIZES),
        rows="\n".join(lines),
        rate=rate,
        out=rate * given.latency,
        busy=100 * rate * driver / 1000,
        cores_out=rate * worker / 1000,
        alone=rate * alone,
        most=1 / alone,
        fits=f"64 GB hold about {most_cases / 1e6:.1f} million cases.",
        batch=BATCH,
        hours_million=1e6 * hours,
        memory_million=1e6 * a_case["memory"] * KB / GB,
        memory_whole=WHOLE * a_case["memory"] * KB / GB,
        whole=WHOLE,
        driver_most=1000 / driver,
    )


def _size(count: float) -> str:
    for unit, name in ((TB, "TB"), (GB, "GB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count / MB:,.0f} MB"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--price-in", type=float, default=0.4)
    parser.add_argument("--price-out", type=float, default=1.6)
    parser.add_argument("--batch-price", type=float, default=0.5)
    parser.add_argument("--rpm", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
