"""Write a gate decision as a pull request comment or as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from misslink.compare.run_metrics import is_rank_metric, manifest_int
from misslink.failure_modes import FAILURE_MODES
from misslink.gate.criteria import describe_filter
from misslink.gate.new_failures import (
    RegressedCase,
    describe_location,
    regressed_cases,
    regressed_groups,
)
from misslink.gate.outcome import GateDecision, GateOutcome
from misslink.registry import judged_metrics, rank_metrics
from misslink.render.format import format_values, question_count
from misslink.render.markdown import code_span, escape_markdown, markdown_table, single_line

_MAX_COMMENT = 65_536  # characters of a comment, on GitHub
_RESERVED = 2_000  # of these, for what is said of what was left out
_QUESTIONS, _GROUPS, _PASSAGES = 5, 8, 3
_MAX_TEXT = 200  # characters of a question, of an id
_UNSAFE_NAME = re.compile(r"[^\w. ]+", re.ASCII)


def comment_marker(name: str) -> str:
    """The first line of the comment, which lets a bot find and update it.

    >>> comment_marker("ship --> criteria")
    '<!-- misslink gate: ship criteria -->'
    """
    return f"<!-- misslink gate: {' '.join(_UNSAFE_NAME.sub(' ', name).split()) or 'criteria'} -->"


def pull_request_comment(decision: GateDecision) -> str:
    """Return a decision as markdown within GitHub's size limit; what does not fit is counted."""
    text = f"{comment_marker(decision.criteria.name)}\n{_headline(decision)}\n"
    left_out = 0
    for outcome in decision.failed:
        block = _failure_block(decision, outcome)
        if len(text) + len(block) > _MAX_COMMENT - _RESERVED:
            left_out += 1
            continue
        text += block
    if left_out:
        text += f"\n{left_out:,} more failed; the comment has no room for them.\n"
    for block in (_notes_block(decision), _passed_block(decision)):
        if len(text) + len(block) <= _MAX_COMMENT - _RESERVED // 2:
            text += block
    return text


def _headline(decision: GateDecision) -> str:
    head = "✅ Good enough to merge" if decision.passed else "❌ Not good enough to merge"
    return f"### {head}\n\n{decision.counted()}"


def _failure_block(decision: GateDecision, outcome: GateOutcome) -> str:
    mark = "❌" if outcome.gate.severity == "error" else "⚠️"
    selection = describe_filter(outcome.gate.new_failures or outcome.gate)
    head = f"\n#### {mark} {code_span(outcome.gate.name[:_MAX_TEXT])}"
    head += f" (questions with {escape_markdown(selection[:_MAX_TEXT])})" if selection else ""
    entries = regressed_cases(decision, outcome)
    parts = [
        head,
        "",
        f"{escape_markdown(_capitalized_reason(outcome))}.{_case_list_intro(outcome, entries)}",
        "",
        *_case_list(decision, outcome, entries),
        *_group_table(decision, outcome),
        *_advice(outcome),
        *(f"- {escape_markdown(note)}" for note in outcome.notes if note not in decision.notes),
    ]
    return "\n".join(parts) + "\n"


def _case_list_intro(outcome: GateOutcome, entries: list[RegressedCase]) -> str:
    if not entries:
        return ""
    if outcome.metric == "new_failures":
        return " These questions:"
    if outcome.change is not None and (outcome.change.worse or outcome.change.unmeasured):
        worse = [entry for entry in entries if entry.case.id not in outcome.change.unmeasured]
        if not worse:
            return " These have no value now:"
        missed_count = sum(bool(entry.newly_missed) for entry in worse)
        text = f" {question_count(len(worse))} got worse"
        if missed_count and is_rank_metric(outcome.metric):
            passage = f"lost {'its' if missed_count == 1 else 'their'} passage"
            text += f", {missed_count:,} of them {passage}"
            text = (
                f" {question_count(missed_count)} {passage}" if missed_count == len(worse) else text
            )
        unmeasured = len(entries) - len(worse)
        has = "has" if unmeasured == 1 else "have"
        return f"{text}, and {unmeasured:,} more {has} no value now:" if unmeasured else f"{text}:"
    return " The questions that count most against it:"


def _case_list(
    decision: GateDecision, outcome: GateOutcome, entries: list[RegressedCase]
) -> Iterator[str]:
    k = manifest_int(decision.run, "k", 1)
    for entry in entries[:_QUESTIONS]:
        question = escape_markdown(_shorten(entry.case.question))
        yield f"- {question} ({code_span(entry.case.id[:_MAX_TEXT])}){_case_detail(outcome, entry, k)}"
    if len(entries) > _QUESTIONS:
        yield f"- and {question_count(len(entries) - _QUESTIONS)} more"
    if entries:
        yield ""


def _case_detail(outcome: GateOutcome, entry: RegressedCase, k: int) -> str:
    """What is worse in a case than before, else its failure mode."""
    rank = is_rank_metric(outcome.metric)
    if details := _passage_details(entry, k) if rank or outcome.metric == "new_failures" else []:
        more = len(details) - _PASSAGES
        return ": " + ", ".join(details[:_PASSAGES]) + (f", and {more} more" if more > 0 else "")
    parts = []
    is_the_answer = outcome.metric.startswith("link.") or (
        entry.answer == "unfaithful" and outcome.metric in {"fully_faithful", "faithfulness"}
    )
    if entry.values and entry.values[0] != entry.values[1] and not is_the_answer:
        was, is_now = format_values(outcome.metric, *entry.values)
        parts.append(f"{code_span(outcome.metric)} {is_now} now, was {was}")
    if entry.answer and not rank:
        parts.append(f"answer {entry.answer} now")
    if entry.now and entry.before and entry.now != entry.before:
        parts.append(f"was {code_span(entry.before)}, is {code_span(entry.now)}")
    elif entry.now and not parts:
        parts.append(code_span(entry.now))
    return ": " + "; ".join(parts) if parts else ""


def _passage_details(entry: RegressedCase, k: int) -> list[str]:
    """The newly missed passages, else those with a lower rank."""
    if entry.newly_missed:
        return [
            f"{code_span(miss.passage_id[:_MAX_TEXT])} {escape_markdown(describe_location(miss, entry.trace, k))}"
            for miss in entry.newly_missed
        ]
    return [
        f"{code_span(moved.passage_id[:_MAX_TEXT])} "
        + (f"at rank {moved.now} now" if moved.now else "not retrieved now")
        + f", was {moved.before}"
        for moved in entry.moved
    ]


def _group_table(decision: GateDecision, outcome: GateOutcome) -> Iterator[str]:
    groups = regressed_groups(decision, outcome)[:_GROUPS] if outcome.cases else []
    if not groups:
        return
    rows = []
    for group in groups:
        numbers = (group.now,) if group.before is None else (group.before, group.now)
        name = code_span(group.name[:_MAX_TEXT])
        rows.append([name, str(group.cases), *format_values(outcome.metric, *numbers)])
    header = ["where it is lowest", "questions", "now"]
    if outcome.lower_is_better:
        header[0] = "where it is highest"
    if groups[0].before is not None:
        header = ["where it got worse", "questions", "before", "now"]
    yield markdown_table(header, rows, right=range(1, len(header)))


def _advice(outcome: GateOutcome) -> Iterator[str]:
    spec = outcome.gate.new_failures
    failure = spec.failure if spec else outcome.metric.removeprefix("link.failures.")
    if failure in FAILURE_MODES:
        yield f"{code_span(failure)}: {escape_markdown(FAILURE_MODES[failure].meaning)}"
        yield ""
        return
    base = outcome.metric.partition("@")[0]
    for registry, name in (
        (rank_metrics, f"{base}@{{k}}"),
        (rank_metrics, base),
        (judged_metrics, base),
    ):
        if name in registry.names():
            summary = (registry.get(name).__doc__ or "").partition("\n")[0]
            if summary:
                yield f"{code_span(outcome.metric)}: {escape_markdown(summary)}"
                yield ""
            return


def _notes_block(decision: GateDecision) -> str:
    if not decision.notes:
        return ""
    lines = "\n".join(f"- {escape_markdown(note[:1000])}" for note in decision.notes[:20])
    return f"\n**The run and its baseline**\n\n{lines}\n"


def _passed_block(decision: GateDecision) -> str:
    rows = []
    for outcome in decision.outcomes:
        notes = [f"({note})" for note in outcome.notes if note not in decision.notes]
        text = " ".join([_capitalized_reason(outcome), *notes])
        if outcome.passed:
            rows.append([code_span(outcome.gate.name[:_MAX_TEXT]), escape_markdown(text[:600])])
    if not rows:
        return ""
    first_rows = rows[:100]
    if more := len(rows) - len(first_rows):
        first_rows.append(["", f"and {more:,} more"])
    head = "1 gate passed" if len(rows) == 1 else f"{len(rows):,} gates passed"
    listed = markdown_table(["gate", "result"], first_rows)
    return f"\n<details>\n<summary>{head}</summary>\n\n{listed}\n</details>\n"


def _shorten(text: str) -> str:
    line = single_line(text)
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT]}…"


def _capitalized_reason(outcome: GateOutcome) -> str:
    """The reason as a sentence; a metric's name keeps its case."""
    reason = outcome.reason
    return reason if reason.startswith(outcome.metric) else reason[:1].upper() + reason[1:]


# Characters that XML 1.0 does not allow, not even as a reference.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(decision: GateDecision) -> str:
    """Return a decision as JUnit XML; a failed warning is a passing test with a note in its output."""
    counts = {
        "tests": str(len(decision.outcomes)),
        "failures": str(sum(_is_error(outcome) for outcome in decision.outcomes)),
        "errors": "0",
    }
    name = _strip_illegal(decision.criteria.name)
    root = ET.Element("testsuites", {"name": "misslink gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts, "skipped": "0", "time": "0"})
    for outcome in decision.outcomes:
        _test_case(suite, f"misslink.gate.{name}", outcome)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _test_case(suite: ET.Element, group: str, outcome: GateOutcome) -> None:
    text = _strip_illegal("\n".join([outcome.reason, *outcome.notes, *_case_lines(outcome)]))
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": group, "name": _strip_illegal(outcome.gate.name), "time": "0"},
    )
    if _is_error(outcome):
        failure = {
            "message": _strip_illegal(outcome.reason),
            "type": _strip_illegal(outcome.metric),
        }
        ET.SubElement(case, "failure", failure).text = text
    else:
        ET.SubElement(case, "system-out").text = text if outcome.passed else f"warning: {text}"


def _case_lines(outcome: GateOutcome) -> list[str]:
    return [] if outcome.passed else [f"case: {name}" for name in outcome.cases]


def _is_error(outcome: GateOutcome) -> bool:
    return not outcome.passed and outcome.gate.severity == "error"


def _strip_illegal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
