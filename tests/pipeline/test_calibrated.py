"""A calibration reaches the numbers, the links and the manifest of a run."""

from __future__ import annotations

import json
from pathlib import Path

import misslink
from misslink.files import read_run

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"


def rate(value):
    return {"value": value, "low": value, "high": value, "n": 80, "method": "wilson"}


def test_the_risks_are_corrected_on_every_judged_case_of_the_table(tmp_path):
    agreement = {"sensitivity": rate(0.9), "specificity": rate(0.8)}
    document = {"metric": "faithfulness", "threshold": 0.5, "agreement": agreement}
    document["reasons"] = ["kept as it was given"]
    (tmp_path / "calibration.json").write_text(json.dumps(document), encoding="utf-8")
    run = misslink.evaluate(
        f"{HARBOUR / 'app.py'}:chain",
        HARBOUR / "goldset.jsonl",
        k=2,
        ledger=None,
        calibration=tmp_path / "calibration.json",
        out=tmp_path / "run",
    )
    link = run.summary["link"]
    used = {name: count for name, count in link["corrected"]["table"].items() if name != "left_out"}
    assert sum(used.values()) == sum(
        count for name, count in link["table"].items() if name != "left_out"
    )
    assert sum(used.values()) > 0
    assert link["corrected"]["risk_given_hit"]["value"] is not None
    assert run.manifest["calibration"]["metric"] == "faithfulness"
    assert run.calibration == document
    assert read_run(tmp_path / "run").calibration == document
