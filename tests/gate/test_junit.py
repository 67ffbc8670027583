"""JUnit XML: a test case a gate, and no character that XML cannot hold."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from gated_run import decided, gated_run
from misslink.gate.ci_reports import junit_xml

GATES = [
    "name: mrr, threshold: 0.1",
    "name: recall_at_1, threshold: 0.9",
    "name: ndcg_at_1, threshold: 0.9, severity: warning",
]


def parsed(decision):
    return ET.fromstring(junit_xml(decision))  # noqa: S314 -- what this package wrote


def test_a_gate_is_a_test_case_and_a_warning_does_not_fail(tmp_path):
    root = parsed(decided(tmp_path, GATES, gated_run("1111111100")))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    passed, failed, warned = suite
    assert [case.get("name") for case in suite] == ["mrr", "recall_at_1", "ndcg_at_1"]
    assert passed.find("failure") is None
    assert "below the floor of 90%" in failed.find("failure").get("message")
    assert "case: c8" in failed.find("failure").text
    assert warned.find("failure") is None
    assert warned.findtext("system-out").startswith("warning: ")


def test_characters_that_xml_cannot_hold_are_replaced(tmp_path):
    ids = [f"c{at}\x00\x1b\ufffe]]><x>" for at in range(4)]
    root = parsed(decided(tmp_path, GATES, gated_run("0000", ids=ids)))
    said = root[0][0].find("failure").text
    assert "case: c0\ufffd\ufffd\ufffd]]><x>" in said
