"""The gates as JUnit XML, the form in which build servers show tests: a test case a gate."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from misslink.deciding.outcome import Decision, Outcome

__all__ = ["junit"]

# What XML 1.0 has no way to write, not even as a reference.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(decision: Decision) -> str:
    """Write a decision as JUnit XML.

    Returns
    -------
    str
        A failed gate of severity warning is a test case that passes and says so in its output, as
        it does not fail the build.
    """
    counts = {
        "tests": str(len(decision.outcomes)),
        "failures": str(sum(_fails(one) for one in decision.outcomes)),
        "errors": "0",
    }
    name = _legal(decision.criteria.name)
    root = ET.Element("testsuites", {"name": "misslink gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts, "skipped": "0", "time": "0"})
    for outcome in decision.outcomes:
        _case(suite, f"misslink.gate.{name}", outcome)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _case(suite: ET.Element, group: str, outcome: Outcome) -> None:
    said = _legal("\n".join([outcome.reason, *outcome.notes, *_cases(outcome)]))
    case = ET.SubElement(
        suite, "testcase", {"classname": group, "name": _legal(outcome.gate.name), "time": "0"}
    )
    if _fails(outcome):
        failure = {"message": _legal(outcome.reason), "type": _legal(outcome.metric)}
        ET.SubElement(case, "failure", failure).text = said
    else:
        ET.SubElement(case, "system-out").text = said if outcome.passed else f"warning: {said}"


def _cases(outcome: Outcome) -> list[str]:
    return [] if outcome.passed else [f"case: {name}" for name in outcome.cases]


def _fails(outcome: Outcome) -> bool:
    return not outcome.passed and outcome.gate.severity == "error"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
