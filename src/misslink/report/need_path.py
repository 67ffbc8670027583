"""Where the needed facts of a run were lost: the staircase of the first screen, and its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from misslink.documents import cutoff_of
from misslink.parts import by_case
from misslink.render.format import pluralize, shorten
from misslink.render.need_sentences import ARRIVED, STAGE_OWNERS, STAGES, describe_need
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import Case, Claim, Need, NeedState, Outcome, Run, Trace

_FEWEST_PIXELS = 1.6  # percent of the drawing: one lost fact of 500 is seen, too
_TOP = 12  # percent above the highest bar, for its count
_MAX_CASES = 5  # of a stage, in the view of retrieval
_QUESTION_LENGTH = 110
_QUESTION_LENGTH, _EXAMPLE_LENGTH = 48, 60  # of the example: its question, and how a fact was lost
_TEXT_LENGTH = 36  # of its fact, claim and reference


@dataclass(frozen=True)
class Bar:
    """One bar of the staircase in percent of its drawing: what is left, and below its top what is lost."""

    kept: float
    lost: float

    @property
    def top(self) -> float:
        """Where the bar ends, from the top."""
        return round(100 - self.kept - self.lost, 1)


@dataclass(frozen=True)
class PathStage:
    """A stage: how many facts are lost there, how many are left after it, and in which cases.

    ``label`` is the count above its bar: what is lost, or what is left after an earlier loss.
    """

    name: str
    owner: str
    lost: int
    left: int
    label: str
    cases: tuple[tuple[str, str], ...]  # fragment and question of the first
    count: int  # of cases
    fragment: str
    bar: Bar


@dataclass(frozen=True)
class NeedPath:
    """The needs of a run, from needed to arrived."""

    needed: int
    stages: tuple[PathStage, ...]
    arrived: int
    title: str
    full: Bar
    end: Bar

    @property
    def losses(self) -> tuple[PathStage, ...]:
        """The stages at which something was lost, or not located."""
        return tuple(stage for stage in self.stages if stage.lost)


def read_need_path(run: Run) -> NeedPath | None:
    """Count the needs of a run by the stage that lost them; None where no fact is known.

    A question that is answered without a reference or a label says nothing of facts.
    """
    lost, is_told = Counter[str](), False
    numbers = number_cases(run.cases)
    holders: dict[str, tuple[list[str], list[str]]] = {}  # of cases that failed, and of others
    for link in run.outcomes:
        lost.update(need.lost_at or ARRIVED for need in link.needs)
        is_told |= any(need.source != "question" or need.lost_at for need in link.needs)
        for stage in dict.fromkeys(need.lost_at for need in link.needs if need.lost_at):
            if link.case_id in numbers:
                holders.setdefault(stage, ([], []))[not link.failed].append(link.case_id)
    if not is_told:
        return None
    needed, cases_of = lost.total(), by_case(run.cases)
    # What is not located has no place on the way, so it leaves the path before its first stage.
    names = [
        *(["unknown"] if lost["unknown"] else []),
        *STAGES,
        *(["data"] if lost["data"] else []),
    ]
    stages, left = list[PathStage](), needed
    for name in names:
        left -= lost[name]
        cases = list(chain(*holders.get(name, ())))
        stages.append(
            PathStage(
                name,
                STAGE_OWNERS[name],
                lost[name],
                left,
                _label(name, lost[name], left, before=stages[-1].lost if stages else 0),
                tuple(
                    (case_fragment(numbers[i]), shorten(cases_of[i].question, _QUESTION_LENGTH))
                    for i in cases[:_MAX_CASES]
                ),
                len(cases),
                view_fragment(lost_at=name),
                _bar(left, lost[name], needed),
            )
        )
    title = _title(stages, needed)
    return NeedPath(
        needed, tuple(stages), left, title, _bar(needed, 0, needed), _bar(left, 0, needed)
    )


def _label(name: str, lost: int, left: int, *, before: int) -> str:
    if lost:
        return f"{lost:,}" if name == "unknown" else f"{lost:,} lost"
    return f"{left:,}" if before else ""


def _bar(left: int, lost: int, needed: int) -> Bar:
    height = 100 - _TOP
    drawn = max(height * lost / needed, _FEWEST_PIXELS) if lost else 0.0
    return Bar(round(min(height * left / needed, height - drawn), 1), round(drawn, 1))


def _title(stages: Sequence[PathStage], needed: int) -> str:
    facts = pluralize(needed, "needed fact")
    located = [stage for stage in stages if stage.lost and stage.name != "unknown"]
    if located:
        worst = max(located, key=lambda stage: stage.lost)
        verb = "is" if worst.lost == 1 else "are"
        return f"{worst.lost:,} of {facts} {verb} lost at {worst.name}"
    if stages[0].lost:
        return f"{stages[0].lost:,} of {facts} could not be located"
    return f"All {facts} arrive" if needed > 1 else "The needed fact arrives"


@dataclass(frozen=True)
class ExampleStop:
    """One stop of the example's route; ``kind`` is 'through', 'lost' or 'said'."""

    kind: str
    label: str
    text: str
    quoted: bool = False


@dataclass(frozen=True)
class NeedExample:
    """One needed fact of a failed case, followed to where it was lost."""

    fragment: str
    question: str
    owner: str
    stops: tuple[ExampleStop, ...]


def find_example(run: Run, blamed: Collection[str]) -> NeedExample | None:
    """Return a fact that the owner with most failures lost, with the shortest texts; None without."""
    lost_at_least = {  # characters of the fact alone
        link.case_id: need.length
        for link in run.outcomes
        if link.failed and link.owner in blamed and (need := _lost_need(link))
    }
    links, traces = by_case(run.links), by_case(run.traces)
    faithfulness = by_case(run.verdicts_of("faithfulness"))
    waiting = sorted(
        (len(case.question) + lost_at_least[case.id], number)
        for number, case in enumerate(run.cases, 1)
        if case.id in lost_at_least and case.id in traces
    )
    example: tuple[int, int, str, str, tuple[ExampleStop, ...]] | None = None
    for least, number in waiting:
        if example and example[0] < least:
            break
        case = run.cases[number - 1]
        link, verdict = links[case.id], faithfulness.get(case.id)
        if isinstance(need := _lost_need(link), Need):
            claims = verdict.claims if verdict else ()
            stops = _stops(case, need, traces[case.id], claims, cutoff_of(run))
            length = len(case.question) + sum(len(stop.text) for stop in stops)
            if example is None or (length, number) < example[:2]:
                example = (length, number, case.question, link.owner or "", tuple(stops))
    if example is None:
        return None
    _, number, question, owner, stops = example
    return NeedExample(
        case_fragment(number),
        shorten(question, _QUESTION_LENGTH),
        owner,
        tuple(
            replace(stop, text=shorten(stop.text, _TEXT_LENGTH if stop.quoted else _EXAMPLE_LENGTH))
            for stop in stops
        ),
    )


def _lost_need(link: Outcome) -> Need | NeedState | None:
    """The first need that its owner lost, located."""
    lost = (need for need in link.needs if STAGE_OWNERS.get(need.lost_at or "") == link.owner)
    return next((need for need in lost if need.by), None)


def _stops(
    case: Case, need: Need, trace: Trace, claims: Sequence[Claim], k: int
) -> tuple[ExampleStop, ...]:
    what, how = describe_need(need, trace, k)
    bad = [claim for claim in claims if claim.support != "supported" or claim.correct is False]
    said = bad[0].text if bad else trace.answer or "nothing"
    needed = ExampleStop("through", "Needed fact", need.text, quoted=True)
    spoken = ExampleStop("said", "The answer says", said, quoted=True)
    lost = ExampleStop("lost", what, how)
    if need.lost_at == "answer":
        stops = [needed, ExampleStop("through", "Prompt", "in it"), replace(spoken, kind="lost")]
    else:
        stops = [needed, lost, spoken]
    if case.references and need.source != "reference":
        stops.append(ExampleStop("said", "Reference", case.references[0], quoted=True))
    return tuple(stops)
