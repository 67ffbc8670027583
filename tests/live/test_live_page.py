"""The page, the rows and the markdown of a live experiment."""

import re

import pytest

from live_logs import SALT, report, rows, simulated
from misslink.live import Experiment
from misslink.live.log_store import plan_entry
from misslink.live.page import (
    build_live_page,
    disagreement_sentences,
    live_chart,
    page_parts,
    render_live_page,
)
from misslink.render.table import parts_markdown

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    log = tmp_path_factory.mktemp("live") / "live.sqlite"
    return report(simulated(log, 600, (0.4, 0.7)), guardrails=["errors:at_most=0.05"])


def test_the_page_says_what_to_do_and_holds_the_tables_numbers(document):
    page = build_live_page(document)
    html = render_live_page(page)
    assert document["verdict"]["headline"] == "Ship B."
    assert document["verdict"]["headline"] in html
    assert document["verdict"]["detail"].replace("<", "&lt;") in html
    for row in page["comparisons"][0]["metrics"].rows:
        for text in row:
            assert text.replace("<", "&lt;") in html
    assert "<script" not in html
    assert "http" not in re.sub(r"<style>.*?</style>|http-equiv", "", html, flags=re.DOTALL)


def test_no_share_leaves_0_and_1_and_no_table_stands_twice(tmp_path):
    """Of four users all are pleased or none: a mean of 0 and 1 has the widest interval."""
    found = report(simulated(tmp_path / "few.sqlite", 4, (0.5, 0.5)))
    means = [
        mean
        for comparison in found["comparisons"]
        for result in comparison["metrics"].values()
        if result["unit"] == "share"
        for mean in (result["control"], result["variant"])
    ]
    assert means
    for mean in means:
        ends = [mean["low"], mean["high"]]
        assert all(end is None or 0 <= end <= 1 for end in ends), mean
    html = render_live_page(build_live_page(found))
    tables = re.findall(r"<tbody>.*?</tbody>", html, flags=re.DOTALL)
    assert len(tables) == len(set(tables)) > 0


def test_hostile_names_stay_texts(tmp_path):
    name = f"B{HOSTILE}"
    entry = plan_entry(Experiment(f"x{HOSTILE}", {"A": 1, name: 1}), SALT)
    exposures = [
        {"id": f"q{n}", "unit": f"u{n}", "variant": ["A", name][n % 2], "at": 1.0 * n}
        for n in range(200)
    ]
    feedback = [(f"q{n}", None, f"own {HOSTILE}|*", n % 3, None, 1.0) for n in range(200)]
    found = report(rows(tmp_path / "l.sqlite", entry, exposures, feedback))
    page = build_live_page(found)
    assert "<script" not in render_live_page(page)
    text = parts_markdown(page_parts(page))
    assert "<script" not in text
    heads = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in heads if "own" in line}) == 1


def test_a_log_of_nothing_still_has_a_page(tmp_path):
    entry = plan_entry(Experiment("x", {"A": 1, "B": 1}), SALT)
    found = report(rows(tmp_path / "l.sqlite", entry, [], [("q", None, "up", 1, None, 1.0)]))
    page = build_live_page(found)
    assert "Nothing to compare" in render_live_page(page)
    assert "Nothing to compare" in parts_markdown(page_parts(page))


def test_only_what_is_beyond_chance_is_called_a_disagreement(document):
    one = document["comparisons"][0]
    estimate = {"value": -0.2, "low": -0.3, "high": -0.1}
    told = {
        "offline": "fully_faithful",
        "live": "satisfaction",
        "offline_winner": "A",
        "live_winner": "B",
        "offline_difference": estimate,
        "live_difference": one["metrics"]["satisfaction"]["always_valid"]["difference"],
        "unit": "share",
        "variant": "B",
        "is_clear": True,
    }
    clear = {**document, "comparisons": [{**one, "disagreements": [told]}]}
    sentence = disagreement_sentences(clear)[0]
    assert sentence.startswith("Offline and live disagree: offline A has the better fully_faithful")
    by_chance = [{**told, "is_clear": False}]
    unclear = {**document, "comparisons": [{**one, "disagreements": by_chance}]}
    assert disagreement_sentences(unclear) == []


def test_the_chart_ends_at_the_last_interval_and_needs_two(document):
    steps = document["comparisons"][0]["over_time"]
    chart = live_chart(steps, "share")
    assert chart["xs"][-1][1] == f"{steps[-1]['units']:,} users"
    inside = [float(y) for y in re.findall(r" ([\d.]+)", chart["band"])]
    top, bottom = chart["frame"][3], chart["frame"][5]
    assert top <= min(inside) <= max(inside) <= bottom
    assert live_chart(steps[-1:], "share") is None
    assert live_chart([], "share") is None
