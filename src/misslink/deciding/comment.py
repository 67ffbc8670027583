"""The gates as a comment on a pull request, for reviewers who know the app and no statistics.

Its first line is a marker that stays the same, so that a bot finds its comment and updates it.
Whatever comes from the app, the gold set or the judge is text in it and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from misslink.deciding.cause_words import CAUSES
from misslink.deciding.figures import cases_in_words, interval_in_words, written
from misslink.deciding.numbers import number_in
from misslink.deciding.outcome import Decision, Outcome
from misslink.deciding.selection import where
from misslink.deciding.values import is_rank
from misslink.deciding.worse import Question, groups, questions, where_now
from misslink.files.markdown import code, in_line, inline, table
from misslink.registry import judged_metrics, rank_metrics

__all__ = ["comment", "marker"]

_LIMIT = 65_536  # characters of a comment, on GitHub
_KEPT = 2_000  # of these, for what is said of what was left out
_QUESTIONS, _GROUPS, _PASSAGES = 5, 8, 3
_LONGEST = 200  # characters of a question, of an id
_NAME = re.compile(r"[^\w. ]+", re.ASCII)


def marker(name: str) -> str:
    """The first line of the comment, by which a bot finds it.

    >>> marker("ship --> criteria")
    '<!-- misslink gate: ship criteria -->'
    """
    return f"<!-- misslink gate: {' '.join(_NAME.sub(' ', name).split()) or 'criteria'} -->"


def comment(decision: Decision) -> str:
    """Write a decision as markdown.

    Returns
    -------
    str
        Never longer than GitHub takes: what does not fit is counted and said.
    """
    text = f"{marker(decision.criteria.name)}\n{_verdict(decision)}\n"
    left_out = 0
    for outcome in decision.failed:
        block = _failure(decision, outcome)
        if len(text) + len(block) > _LIMIT - _KEPT:
            left_out += 1
            continue
        text += block
    if left_out:
        text += f"\n{left_out:,} more failed; there is no room for them here.\n"
    for block in (_notes(decision), _passed(decision)):
        if len(text) + len(block) <= _LIMIT - _KEPT // 2:
            text += block
    return text


def _verdict(decision: Decision) -> str:
    head = "✅ Good enough to merge" if decision.passed else "❌ Not good enough to merge"
    return f"### {head}\n\n{decision.counted()}"


def _failure(decision: Decision, outcome: Outcome) -> str:
    mark = "❌" if outcome.gate.severity == "error" else "⚠️"
    narrowed = where(outcome.gate.new_failures or outcome.gate)
    head = f"\n#### {mark} {code(outcome.gate.name[:_LONGEST])}"
    head += f" (questions with {inline(narrowed[:_LONGEST])})" if narrowed else ""
    listed = questions(decision, outcome)
    parts = [
        head,
        "",
        f"{inline(_capital(outcome))}.{_chance(outcome)}{_so_many(outcome, listed)}",
        "",
        *_listed(decision, outcome, listed),
        *_breakdown(decision, outcome),
        *_meaning(outcome),
        *(f"- {inline(note)}" for note in outcome.notes if note not in decision.notes),
    ]
    return "\n".join(parts) + "\n"


def _so_many(outcome: Outcome, listed: list[Question]) -> str:
    """How many questions it is about, before the list of them."""
    if not listed:
        return ""
    if outcome.metric == "new_failures":
        return " These are they:"
    if outcome.change is not None and (outcome.change.worse or outcome.change.lost):
        worse = [one for one in listed if one.case.id not in outcome.change.lost]
        if not worse:
            return " These have no value now:"
        lost = sum(bool(one.lost) for one in worse)
        told = f" {cases_in_words(len(worse))} got worse"
        if lost and is_rank(outcome.metric):
            passage = f"lost {'its' if lost == 1 else 'their'} passage"
            told += f", {lost:,} of them {passage}"
            told = f" {cases_in_words(lost)} {passage}" if lost == len(worse) else told
        none = len(listed) - len(worse)
        has = "has" if none == 1 else "have"
        return f"{told}, and {none:,} more {has} no value now:" if none else f"{told}:"
    return " The questions that count most against it:"


def _chance(outcome: Outcome) -> str:
    found = outcome.change
    if found is None or found.difference is None or found.by_chance is None or found.drop <= 0:
        return ""
    if outcome.gate.regression_max is None:
        return ""
    over = cases_in_words(found.difference.n)
    change = interval_in_words(outcome.metric, found.difference)
    told = f" Over the {over} in both the change is {inline(change)}; its 95 % interval"
    if not found.by_chance:
        return f"{told} leaves out 0."
    by_value = ", but this gate goes by the change alone" if not outcome.paired else ""
    return f"{told} holds 0, so that it may be chance{by_value}."


def _listed(decision: Decision, outcome: Outcome, listed: list[Question]) -> Iterator[str]:
    k = number_in(decision.run, "k", 1)
    for one in listed[:_QUESTIONS]:
        asked = inline(_short(one.case.question))
        yield f"- {asked} ({code(one.case.id[:_LONGEST])}){_matter(outcome, one, k)}"
    if len(listed) > _QUESTIONS:
        yield f"- and {cases_in_words(len(listed) - _QUESTIONS)} more"
    if listed:
        yield ""


def _matter(outcome: Outcome, one: Question, k: int) -> str:
    """What is the matter with a question: what of it is worse than before, else its cause."""
    rank = is_rank(outcome.metric)
    if told := _passages(one, k) if rank or outcome.metric == "new_failures" else []:
        more = len(told) - _PASSAGES
        return ": " + ", ".join(told[:_PASSAGES]) + (f", and {more} more" if more > 0 else "")
    parts = []
    told_by_answer = outcome.metric.startswith("link.") or (
        one.answer == "unfaithful" and outcome.metric in {"faithful", "faithfulness"}
    )
    if one.values and one.values[0] != one.values[1] and not told_by_answer:
        was, is_now = written(outcome.metric, *one.values)
        parts.append(f"{code(outcome.metric)} {is_now} now, was {was}")
    if one.answer and not rank:
        parts.append(f"answer {one.answer} now")
    if one.now and one.before and one.now != one.before:
        parts.append(f"was {code(one.before)}, is {code(one.now)}")
    elif one.now and not parts:
        parts.append(code(one.now))
    return ": " + "; ".join(parts) if parts else ""


def _passages(one: Question, k: int) -> list[str]:
    """The passages that are missed anew, else those that stand lower now."""
    if one.lost:
        return [
            f"{code(lost.passage_id[:_LONGEST])} {inline(where_now(lost, one.trace, k))}"
            for lost in one.lost
        ]
    return [
        f"{code(moved.passage_id[:_LONGEST])} "
        + (f"at rank {moved.now} now" if moved.now else "not retrieved now")
        + f", was {moved.before}"
        for moved in one.moved
    ]


def _breakdown(decision: Decision, outcome: Outcome) -> Iterator[str]:
    found = groups(decision, outcome)[:_GROUPS] if outcome.cases else []
    if not found:
        return
    rows = []
    for one in found:
        numbers = (one.now,) if one.before is None else (one.before, one.now)
        name = code(one.name[:_LONGEST])
        rows.append([name, str(one.cases), *written(outcome.metric, *numbers)])
    header = ["where it is lowest", "questions", "now"]
    if outcome.lower_is_better:
        header[0] = "where it is highest"
    if found[0].before is not None:
        header = ["where it got worse", "questions", "before", "now"]
    yield table(header, rows, right=range(1, len(header)))


def _meaning(outcome: Outcome) -> Iterator[str]:
    asked = outcome.gate.new_failures
    cause = asked.cause if asked else outcome.metric.removeprefix("link.causes.")
    if cause in CAUSES:
        yield f"{code(cause)}: {inline(CAUSES[cause].meaning)}"
        yield ""
        return
    base = outcome.metric.partition("@")[0]
    for registry, name in (
        (rank_metrics, f"{base}@{{k}}"),
        (rank_metrics, base),
        (judged_metrics, base),
    ):
        if name in registry.names():
            said = (registry.get(name).__doc__ or "").partition("\n")[0]
            if said:
                yield f"{code(outcome.metric)}: {inline(said)}"
                yield ""
            return


def _notes(decision: Decision) -> str:
    if not decision.notes:
        return ""
    lines = "\n".join(f"- {inline(note[:1000])}" for note in decision.notes[:20])
    return f"\n**The run beside its baseline**\n\n{lines}\n"


def _passed(decision: Decision) -> str:
    rows = []
    for one in decision.outcomes:
        own = [f"({note})" for note in one.notes if note not in decision.notes]
        said = " ".join([_capital(one), *own])
        if one.passed:
            rows.append([code(one.gate.name[:_LONGEST]), inline(said[:600])])
    if not rows:
        return ""
    shown = rows[:100]
    if more := len(rows) - len(shown):
        shown.append(["", f"and {more:,} more"])
    head = "1 gate passed" if len(rows) == 1 else f"{len(rows):,} gates passed"
    listed = table(["gate", "what it found"], shown)
    return f"\n<details>\n<summary>{head}</summary>\n\n{listed}\n</details>\n"


def _short(text: str) -> str:
    line = in_line(text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _capital(outcome: Outcome) -> str:
    """Why, as a sentence; a metric's name stays as it is written."""
    said = outcome.reason
    return said if said.startswith(outcome.metric) else said[:1].upper() + said[1:]
