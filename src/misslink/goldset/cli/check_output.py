"""Output of misslink goldset check: JSON document, terminal table and markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from misslink.cli.output import print_line, print_table

if TYPE_CHECKING:
    from misslink.goldset.checks import CheckInputs, GoldSetFinding
    from misslink.io.goldset import GoldSet


# Inputs of each check, of which one suffices, and the options for them.
_CHECK_INPUTS = {
    "unreachable": (("corpus",), "--corpus"),
    "evidence": (("corpus",), "--corpus"),
    "stale": (("before", "baseline"), "--before or --baseline"),
    "changed": (("before",), "--before"),
    "balance": (("log",), "--logs"),
    "unjudged": (("run",), "--run"),
    "power": (("demands",), "--criteria"),
}
_CHECK_NAMES = ("duplicates", "leakage", *_CHECK_INPUTS)
_SHOWN_FINDINGS = 5  # of one check and severity
_SHOWN_IDS = 3  # of a finding
_MAX_ID_LENGTH = 30


def check_document(
    gold: GoldSet,
    inputs: CheckInputs,
    findings: Sequence[GoldSetFinding],
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """Return the JSON document, with the most severe findings first."""
    from misslink.goldset.checks import SEVERITIES, gate_power

    not_checked = {
        name: f"no {option} was given"
        for name, (fields, option) in _CHECK_INPUTS.items()
        if not (any(getattr(inputs, field) for field in fields) or (name == "power" and left_out))
    }
    counts = Counter(finding.severity for finding in findings)
    powers = (power for demand in inputs.demands for power in gate_power(demand, inputs.effect))
    return {
        "goldset": gold.name,
        "cases": len(gold.cases),
        "by": "words" if inputs.vectors is None else inputs.vectors.model,
        "counts": {severity: counts[severity] for severity in SEVERITIES},
        "checked": [name for name in _CHECK_NAMES if name not in not_checked],
        "not_checked": not_checked,
        "findings": [
            {
                **asdict(finding),
                "cases": list(finding.cases),
                "lines": list(finding.lines(gold)),
                "proposals": [asdict(proposal) for proposal in finding.proposals],
            }
            for finding in findings
        ],
        "power": [asdict(power) for power in powers],
        "gates_left_out": dict(left_out),
    }


def print_findings(document: Mapping[str, Any]) -> None:
    """Print the findings, at most five of a kind, and what was not checked."""
    from rich.console import Console

    from misslink.render.table import TextTable

    console = Console()
    print_line(console, f"{document['goldset']}: {_findings_summary(document)}", "bold")
    rows = []
    counts: Counter[tuple[str, str]] = Counter()
    for finding in document["findings"]:
        kind = finding["check"], finding["severity"]
        counts[kind] += 1
        if counts[kind] <= _SHOWN_FINDINGS:
            text = f"{_as_sentence(finding['message'])} {_as_sentence(finding['way_out'])}"
            rows.append((finding["severity"], finding["check"], _case_list(finding), text))
    print_table(console, TextTable(("", "check", "case", "problem and fix"), rows))
    for (check, severity), count in counts.items():
        if count > _SHOWN_FINDINGS:
            more = f"And {count - _SHOWN_FINDINGS:,} more of {check} ({severity})"
            print_line(console, f"{more}; --json lists all.")
    for line in _closing_lines(document):
        print_line(console, line)


def findings_as_markdown(document: Mapping[str, Any]) -> str:
    """Return all findings as a markdown table; their text is escaped."""
    from misslink.render.markdown import code_span, escape_markdown, markdown_table

    rows = [
        [
            finding["severity"],
            finding["check"],
            ", ".join(map(code_span, finding["cases"])),
            escape_markdown(_as_sentence(finding["message"])),
            escape_markdown(_as_sentence(finding["way_out"])),
        ]
        for finding in document["findings"]
    ]
    lines = [f"Gold set {code_span(document['goldset'])}: {_findings_summary(document)}.\n"]
    lines.append(markdown_table(["", "check", "cases", "problem", "fix"], rows))
    lines += [f"{escape_markdown(line)}\n" for line in _closing_lines(document)]
    return "\n".join(filter(None, lines))


def _findings_summary(document: Mapping[str, Any]) -> str:
    counts = ", ".join(
        f"{count:,} {severity}{'' if count == 1 else 's'}"
        for severity, count in document["counts"].items()
        if count
    )
    return f"{counts or 'no findings'} in {document['cases']:,} cases"


def _case_list(finding: Mapping[str, Any]) -> str:
    shown = []
    for case_id, line in zip(finding["cases"][:_SHOWN_IDS], finding["lines"], strict=False):
        cut = f"{case_id[: _MAX_ID_LENGTH - 3]}..."
        name = case_id if len(case_id) <= _MAX_ID_LENGTH else cut
        shown.append(name if line is None else f"{name} (line {line})")
    more = len(finding["cases"]) - _SHOWN_IDS
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?")) else ".")


def _closing_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """How questions were compared, what was not checked, and what was fixed."""
    model = "" if document["by"] == "words" else f" and by {document['by']}"
    yield f"Questions were compared by words{model}."
    by_reason: dict[str, list[str]] = {}
    for name, reason in document["not_checked"].items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"Not checked: {', '.join(names)} ({reason})."
    for power in document["power"]:
        if power["reason"]:
            yield f"Gate {power['gate']}, {power['limit']}: not computed, {power['reason']}."
    for name, reason in document["gates_left_out"].items():
        yield f"Gate {name}: {reason}."
    fix = document["fix"]
    if fix is not None:
        yield (
            f"{fix['goldset']}: {fix['accepted']:,} of {fix['proposed']:,} proposals applied to "
            f"{fix['cases']:,} cases (similarity at least {fix['above']:.0%}, the same numbers and "
            "negations), tagged rematched."
        )
        if fix["replaced"]:
            yield f"The replaced labels are in {fix['replaced']}. Review both files."
    elif any(finding["proposals"] for finding in document["findings"]):
        yield "Some labels have a proposal. Apply them to a tagged copy with --fix FILE."
