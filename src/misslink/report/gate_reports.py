"""Write a gate decision as a pull request comment or as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote
from xml.etree import ElementTree as ET

from misslink.comparison.run_metrics import (
    ROUNDING_TOLERANCE,
    is_rank_metric,
    metric_value,
)
from misslink.documents import cutoff_of, manifest_of
from misslink.errors import InputError
from misslink.failure_modes import FAILURE_MODES
from misslink.gates.criteria import describe_filter, select_gate_cases
from misslink.gates.outcome import GateDecision, GateOutcome
from misslink.parts import by_case
from misslink.registry import judged_metrics, rank_metrics
from misslink.render.format import format_values, metric_cutoff, pluralize
from misslink.render.markdown import code_span, escape_markdown, markdown_table, single_line
from misslink.retrieval import case_needs, match_needs, retrieval_cutoff
from misslink.types import Case, RetrievalMiss, Run, Trace

_MAX_COMMENT = 65_536  # characters of a comment, on GitHub
_RESERVED = 2_000  # of these, for what is said of what was left out
_QUESTIONS, _GROUPS, _PASSAGES = 5, 8, 3
_MAX_TEXT = 200  # characters of a question, of an id
_SECONDS = len("2026-01-31T12:00:00")  # of a timestamp, as the schema of JUnit has it
_UNSAFE_NAME = re.compile(r"[^\w. ]+", re.ASCII)


def comment_marker(name: str) -> str:
    """The first line of the comment, which lets a bot find and update it.

    >>> comment_marker("ship --> criteria")
    '<!-- misslink gate: ship criteria -->'
    """
    return f"<!-- misslink gate: {' '.join(_UNSAFE_NAME.sub(' ', name).split()) or 'criteria'} -->"


def pull_request_comment(decision: GateDecision, report_url: str | None = None) -> str:
    """Return a decision as markdown within GitHub's size limit; what does not fit is counted.

    A question is shown under the first gate that it fails, with a link to the report if its address
    is known.
    """
    head = "✅ Good enough to merge" if decision.passed else "❌ Not good enough to merge"
    text = f"{comment_marker(decision.criteria.name)}\n### {head}\n\n{decision.counted()}\n"
    text += "".join(f"\n{escape_markdown(line[:1000])}\n" for line in decision.scope)
    if report_url is not None:
        text += f"\n[Report of the run]({_link_target(report_url)})\n"
    left_out, shown = 0, set[str]()
    for outcome in decision.failed:
        block = _failure_block(decision, outcome, shown)
        if len(text) + len(block) > _MAX_COMMENT - _RESERVED:
            left_out += 1
            continue
        text += block
    if left_out:
        text += f"\n{left_out:,} more failed; the comment has no room for them.\n"
    notes = [f"- {escape_markdown(note[:1000])}\n" for note in decision.notes[:20]]
    about_baseline = f"\n**The run and its baseline**\n\n{''.join(notes)}" if notes else ""
    for block in (about_baseline, _passed_block(decision)):
        if len(text) + len(block) <= _MAX_COMMENT - _RESERVED // 2:
            text += block
    return text


def _link_target(url: str) -> str:
    """An address inside markdown's brackets, which cannot end the link or begin another."""
    if not url.startswith(("https://", "http://")) or any(char.isspace() for char in url):
        raise InputError(f"--report-url is '{url[:_MAX_TEXT]}'; give an http or https address")
    return quote(url, safe=":/?#[]@!$&'*+,;=%~")


def _failure_block(decision: GateDecision, outcome: GateOutcome, shown: set[str]) -> str:
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
        *_case_list(decision, outcome, entries, shown),
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
        text = f" {pluralize(len(worse), 'question')} got worse"
        if missed_count and is_rank_metric(outcome.metric):
            passage = f"lost {'its' if missed_count == 1 else 'their'} passage"
            text += f", {missed_count:,} of them {passage}"
            text = (
                f" {pluralize(missed_count, 'question')} {passage}"
                if missed_count == len(worse)
                else text
            )
        unmeasured = len(entries) - len(worse)
        has = "has" if unmeasured == 1 else "have"
        return f"{text}, and {unmeasured:,} more {has} no value now:" if unmeasured else f"{text}:"
    return " The questions that count most against it:"


def _case_list(
    decision: GateDecision, outcome: GateOutcome, entries: list[RegressedCase], shown: set[str]
) -> Iterator[str]:
    k = cutoff_of(decision.run)
    new = [entry for entry in entries if entry.case.id not in shown]
    for entry in new[:_QUESTIONS]:
        shown.add(entry.case.id)
        question = single_line(entry.case.question)
        if len(question) > _MAX_TEXT:
            question = f"{question[:_MAX_TEXT]}…"
        question = escape_markdown(question)
        yield f"- {question} ({code_span(entry.case.id[:_MAX_TEXT])}){_case_detail(outcome, entry, k)}"
    if len(new) > _QUESTIONS:
        yield f"- and {pluralize(len(new) - _QUESTIONS, 'question')} more"
    if above := [entry.case.id for entry in entries if entry not in new]:
        names = ", ".join(code_span(name[:_MAX_TEXT]) for name in above[:_QUESTIONS])
        more = len(above) - _QUESTIONS
        yield f"- listed above: {names}{f' and {more:,} more' if more > 0 else ''}"
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
        was, is_now = format_values(outcome.metric, *entry.values, n=1)
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
        f"{code_span(name[:_MAX_TEXT])} "
        + (f"at rank {now} now" if now else "not retrieved now")
        + f", was {before}"
        for name, now, before in entry.moved
    ]


def _group_table(decision: GateDecision, outcome: GateOutcome) -> Iterator[str]:
    groups = regressed_groups(decision, outcome)[:_GROUPS] if outcome.cases else []
    if not groups:
        return
    rows, fewest = [], min(cases for _, cases, *_ in groups)
    for name, cases, before, now in groups:
        numbers = (now,) if before is None else (before, now)
        shown = format_values(outcome.metric, *numbers, n=fewest)  # a column is in one unit
        rows.append([code_span(name[:_MAX_TEXT]), str(cases), *shown])
    header = ["where it is lowest", "questions", "now"]
    if outcome.lower_is_better:
        header[0] = "where it is highest"
    if groups[0][2] is not None:
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


def _capitalized_reason(outcome: GateOutcome) -> str:
    """The reason as a sentence; a metric's name keeps its case."""
    reason = outcome.reason
    return reason if reason.startswith(outcome.metric) else reason[:1].upper() + reason[1:]


@dataclass(frozen=True)
class RegressedCase:
    """A case to look at, with what changed.

    Parameters
    ----------
    case : Case
    newly_missed : tuple of RetrievalMiss
        Passages missed now and not in the baseline; without a baseline, all missed passages.
    now, before : str
        Its failure mode; "" if unknown.
    trace : Trace or None
        In the run.
    moved : tuple of (str, int or None, int)
        For a rank metric: passages with a lower rank now than before; None: not retrieved.
    values : pair of float or None
        Of the metric in the baseline and in the run.
    answer : str
        The outcome of the answer if it changed; else "".
    """

    case: Case
    newly_missed: tuple[RetrievalMiss, ...]
    now: str
    before: str
    trace: Trace | None
    moved: tuple[tuple[str, int | None, int], ...]
    values: tuple[float, float] | None
    answer: str


def regressed_cases(decision: GateDecision, outcome: GateOutcome) -> list[RegressedCase]:
    """Return the cases of an outcome, those to look at first."""
    runs, both = (decision.baseline, decision.run), decision.both
    cases = by_case(decision.run.cases)
    before, now = (by_case(run.links) if run else {} for run in runs)
    earlier, traces = (by_case(run.traces) if run else {} for run in runs)
    old, new = (_value_by_case(run, outcome) if run else {} for run in runs)
    cases_to_show = []
    for name in outcome.cases:
        link, previous = now.get(name), before.get(name) if name in both else None
        missed_before = {miss.passage_id for miss in previous.missed} if previous else set()
        missed = {miss.passage_id: miss for miss in link.missed} if link else {}
        compared = name in both and name in old and name in new
        ranked = is_rank_metric(outcome.metric) and compared and name in traces and name in earlier
        cutoff = metric_cutoff(outcome.metric)
        moved = _moved_passages(cases[name], traces[name], earlier[name], cutoff) if ranked else ()
        changed_answer = link and previous and link.answer != previous.answer
        entry = RegressedCase(
            cases[name],
            tuple(miss for passage, miss in missed.items() if passage not in missed_before),
            (link.failure or "inconclusive") if link else "",
            (previous.failure or "inconclusive") if previous else "",
            traces.get(name),
            moved,
            (old[name], new[name]) if compared else None,
            link.answer if link and changed_answer else "",
        )
        cases_to_show.append(entry)
    return cases_to_show


def describe_location(miss: RetrievalMiss, trace: Trace | None, k: int) -> str:
    """Where a missed passage is now, in words that follow its name; `k` is the usual cutoff."""
    takes = retrieval_cutoff(trace, k) if trace else k
    seen = trace is not None and trace.prompted is not None
    if miss.status == "dropped_from_prompt":
        return "was retrieved, and dropped before the prompt"
    if miss.true_rank is not None:
        decides = f", and the app takes {takes}" if miss.true_rank > takes else ""
        return f"is at rank {miss.true_rank} now{decides}"
    if miss.status == "not_indexed":
        return "is not in the index now"
    if miss.depth:
        return f"is not among the first {miss.depth} now"
    return "did not reach the prompt" if seen else "was not retrieved"


def regressed_groups(
    decision: GateDecision, outcome: GateOutcome
) -> list[tuple[str, int, float | None, float]]:
    """Return the groups of compared cases that got worse, or without a baseline the lowest.

    Each has its name, its number of cases, and their mean before and now. A group of all cases,
    or without a value, is left out.
    """
    now = _value_by_case(decision.run, outcome)
    before = _value_by_case(decision.baseline, outcome) if decision.baseline else {}
    earlier = {name: value for name, value in before.items() if name in decision.both}
    compared = now.keys() & earlier.keys() if decision.baseline else now.keys()
    cases = [case for case in decision.run.cases if case.id in compared]
    members: dict[str, list[str]] = {}
    for case in cases:
        for axis, value in {**case.tags, "category": case.category, "tier": case.tier}.items():
            if value is not None:
                members.setdefault(f"{axis}: {value}", []).append(case.id)
    sign, whole = 1.0 if outcome.lower_is_better else -1.0, outcome.estimate.value
    groups = []
    for name, ids in members.items():
        mean_now = sum(now[case_id] for case_id in ids) / len(ids)
        mean_before = sum(earlier[case_id] for case_id in ids) / len(ids) if earlier else None
        compared_with = whole if mean_before is None else mean_before
        if len(ids) < len(cases) and compared_with is not None:
            loss = sign * (mean_now - compared_with)
            groups.append((loss, (name, len(ids), mean_before, mean_now)))
    groups = [(loss, group) for loss, group in groups if loss > ROUNDING_TOLERANCE]
    return [group for _, group in sorted(groups, key=lambda entry: -entry[0])]


def _moved_passages(
    case: Case, trace: Trace, before: Trace, k: int | None
) -> tuple[tuple[str, int | None, int], ...]:
    """Relevant passages within the cutoff in the baseline that have a lower rank now."""
    needs = {
        need.id: need for alternative in case_needs(case, before.retrieved) for need in alternative
    }
    ranks = {hit.need.id: hit.rank for hit in match_needs([*needs.values()], trace.retrieved)}
    return tuple(
        (hit.passages[-1].id, ranks.get(hit.need.id), hit.rank)
        for hit in match_needs([*needs.values()], before.retrieved)
        if (k is None or hit.rank <= k) and not 0 < ranks.get(hit.need.id, 0) <= hit.rank
    )


def _value_by_case(run: Run, outcome: GateOutcome) -> dict[str, float]:
    try:
        values = metric_value(select_gate_cases(run, outcome.gate), outcome.metric).of_case or {}
    except InputError:  # a count of cases has no value per case
        return {}
    return {name: value for name, value in values.items() if value is not None}


# Characters that XML 1.0 does not allow, not even as a reference.
_ILLEGAL = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def junit_xml(decision: GateDecision) -> str:
    """Return a decision as JUnit XML; a failed warning is a passing test with a note in its output."""
    counts = {
        "tests": str(len(decision.outcomes)),
        "failures": str(sum(_is_error(outcome) for outcome in decision.outcomes)),
        "errors": "0",
    }
    name = _strip_illegal(decision.criteria.name)
    root = ET.Element("testsuites", {"name": "misslink gate", **counts})
    about = {"name": name, **counts, "skipped": "0", "time": "0"}
    if made := manifest_of(decision.run).created:
        about["timestamp"] = _strip_illegal(made[:_SECONDS])
    suite = ET.SubElement(root, "testsuite", about)
    if decision.places:
        properties = ET.SubElement(suite, "properties")
        for part, place in decision.places.items():
            about = {"name": part, "value": _strip_illegal(place)}
            ET.SubElement(properties, "property", about)
    for outcome in decision.outcomes:
        _test_case(suite, f"misslink.gate.{name}", outcome)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _test_case(suite: ET.Element, group: str, outcome: GateOutcome) -> None:
    cases = [] if outcome.passed else [f"case: {name}" for name in outcome.cases]
    text = _strip_illegal("\n".join([outcome.reason, *outcome.notes, *cases]))
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


def _is_error(outcome: GateOutcome) -> bool:
    return not outcome.passed and outcome.gate.severity == "error"


def _strip_illegal(text: str) -> str:
    return re.sub(_ILLEGAL, "\ufffd", text)
