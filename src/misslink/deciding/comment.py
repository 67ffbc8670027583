"""The gates as a comment on a pull request, for reviewers who know the app and no statistics.

Its first line is a marker that stays the same, so that a bot finds its comment and updates it.
Whatever comes from the app, the gold set or the judge is text in it and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from misslink.deciding.figures import cases_in_words, interval_in_words, written
from misslink.deciding.outcome import Decision, Outcome
from misslink.deciding.selection import where
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
    failed = decision.failed
    errors = sum(one.gate.severity == "error" for one in failed)
    warnings = len(failed) - errors
    of = f"{len(decision.outcomes)} {'gate' if len(decision.outcomes) == 1 else 'gates'}"
    over = f"over {cases_in_words(len(decision.run.cases))}"
    if errors:
        head, said = "### ❌ Not good enough to merge", f"{errors} of {of} failed {over}"
    else:
        head = "### ✅ Good enough to merge"
        said = f"{'None' if not failed else 'No error'} of {of} failed {over}"
        said = f"All of {of} passed {over}" if not failed else said
    more = f"; {warnings} more {'warns' if warnings == 1 else 'warn'}" if errors else ""
    if warnings and not errors:
        more = f"; {warnings} {'warns' if warnings == 1 else 'warn'}"
    return f"{head}\n\n{said}{more if warnings else ''}."


def _failure(decision: Decision, outcome: Outcome) -> str:
    mark = "❌" if outcome.gate.severity == "error" else "⚠️"
    narrowed = where(outcome.gate.new_failures or outcome.gate)
    head = f"\n#### {mark} {code(outcome.gate.name[:_LONGEST])}"
    head += f" (questions with {inline(narrowed[:_LONGEST])})" if narrowed else ""
    listed = questions(decision, outcome)
    parts = [
        head,
        "",
        f"{inline(_capital(outcome.reason))}.{_chance(outcome)}{_so_many(outcome, listed)}",
        "",
        *_listed(outcome, listed),
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
        if lost and _is_rank(outcome.metric):
            told = f" {cases_in_words(lost)} lost {'its' if lost == 1 else 'their'} passage"
        return f"{told}, the others have no value now:" if len(worse) < len(listed) else f"{told}:"
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


def _listed(outcome: Outcome, listed: list[Question]) -> Iterator[str]:
    for one in listed[:_QUESTIONS]:
        asked = inline(_short(one.case.question))
        yield f"- {asked} ({code(one.case.id[:_LONGEST])}){_matter(outcome, one)}"
    if len(listed) > _QUESTIONS:
        yield f"- and {cases_in_words(len(listed) - _QUESTIONS)} more"
    if listed:
        yield ""


def _matter(outcome: Outcome, one: Question) -> str:
    """What is the matter with a question."""
    if one.lost and (_is_rank(outcome.metric) or outcome.metric == "new_failures"):
        told = [
            f"{code(lost.passage_id[:_LONGEST])} {inline(where_now(lost))}"
            for lost in one.lost[:_PASSAGES]
        ]
        more = len(one.lost) - _PASSAGES
        return ": " + ", ".join(told) + (f", and {more} more" if more > 0 else "")
    if one.now and one.before and one.now != one.before:
        return f": was {code(one.before)}, is {code(one.now)}"
    return f": {code(one.now)}" if one.now else ""


def _breakdown(decision: Decision, outcome: Outcome) -> Iterator[str]:
    found = groups(decision, outcome)[:_GROUPS]
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
    return f"\n**Of the baseline**\n\n{lines}\n"


def _passed(decision: Decision) -> str:
    rows = []
    for one in decision.outcomes:
        own = [f"({note})" for note in one.notes if note not in decision.notes]
        said = " ".join([_capital(one.reason), *own])
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


def _is_rank(metric: str) -> bool:
    base = metric.partition("@")[0]
    return base in {name.partition("@")[0] for name in rank_metrics.names()}


def _short(text: str) -> str:
    line = in_line(text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:] if not re.match(r"\w+[@.]", sentence) else sentence
