"""docs/scale.md is computed from what the benchmarks measured."""

import json
import runpy
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "make_scale.py"
GIVEN = {"price_in": 0.4, "price_out": 1.6, "batch_price": 0.5, "rpm": 10_000, "latency": 2.0}


def test_the_page_is_what_its_script_writes():
    made = subprocess.run([sys.executable, SCRIPT, "--check"], check=False, timeout=300)
    assert made.returncode == 0, "run  python docs/make_scale.py"


def row(text, name):
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.split("|")[2:-1]]


@pytest.fixture(scope="module")
def page():
    return runpy.run_path(str(SCRIPT))["page"]


def test_money_is_tokens_times_price_and_a_batch_costs_its_share(page):
    measured = json.loads(
        (ROOT / "benchmarks" / "pipeline" / "scale.json").read_text(encoding="utf-8")
    )[-1]
    tokens = [count / measured["cases"] for count in measured["filling"]["tokens"]]
    text = page(Namespace(**GIVEN | {"price_in": 10.0, "price_out": 30.0, "batch_price": 0.25}))
    live = [float(cell.replace(",", "")) for cell in row(text, "cost, live")]
    batches = [float(cell.replace(",", "")) for cell in row(text, "cost, in batches")]
    assert live[1] == pytest.approx(10 * tokens[0] + 30 * tokens[1], rel=1e-3)
    assert batches[1] == pytest.approx(live[1] / 4, rel=1e-3)


def test_twice_the_limit_takes_half_the_hours(page):
    hours = [
        float(row(page(Namespace(**GIVEN | {"rpm": rpm})), "hours, live")[2].replace(",", ""))
        for rpm in (1_000, 2_000)
    ]
    assert hours[0] == pytest.approx(2 * hours[1], rel=1e-3)
