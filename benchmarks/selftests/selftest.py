"""Does a selftest see what is wrong with a judge, and is its figure of owners right?

    python benchmarks/selftests/selftest.py [--write | --smoke]

Worlds of invented facts (`faults/facts.py`), with faults and owners that are known
(`faults/kinds.py`); neither was used to write the rules of `misslink.selftests`. A judge that knows
what was planted is weakened in one way after the other; and the share of right owners that a
selftest finds in a world's good cases is compared with that over the world's own faults. With
RAGTruth beside the checkout, planted faults are compared with natural ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / "linking"), str(ROOT / "tests" / "builders")]

import misslink  # noqa: E402
from attribution import CONTEXT, corpus_of, corpus_passages, recorded_traces, stage_round  # noqa: E402
from fake_judge import complete  # noqa: E402
from faults.facts import FERRIES, PUMPS, Domain  # noqa: E402
from knowing_judge import KnowingJudge, nearest  # noqa: E402
from misslink import selftest  # noqa: E402
from misslink.failure_modes import FAILURE_MODES, FAILURES  # noqa: E402
from misslink.judge.protocol import Ask, Reply  # noqa: E402
from misslink.selftests.good_cases import GoodCase, find_good_cases  # noqa: E402
from misslink.selftests.mutants import Mutant, plant  # noqa: E402
from misslink.types import Case, Passage, Run, Trace  # noqa: E402

TARGET = Path(__file__).with_suffix(".md")
DATA = ROOT.parent / "shared" / "data" / "faithfulness" / "ragtruth_qa_test.jsonl"
WITHIN = 0.06
MUTANTS = 9  # of a kind: about 200 in all
GENERATOR = [
    "number",
    "date",
    "name",
    "unit",
    "negated",
    "roles",
    "sentence",
    "other",
    "part",
    "refusal",
]


INTRO = """\
# Selftest: does it see what is wrong?

Made by `python benchmarks/selftests/selftest.py --write`. The worlds were not used to write the rules.

## Weakened judges

A judge that knows what was planted, weakened in one way. Detected: the 95% interval of the kind excludes the share
of the intact judge. No effect: misslink's checks of quotes refuse what the weak judge says, so that judge and
rules together are as good as before."""
OWNERS_INTRO = """\
## Owners

The share of right owners over a world's own faults, and over those planted into its good cases, with the heuristic
judge: within 6 points in {within} of {worlds} worlds and within {most} in all, over the faults that the run can see. Without a corpus it cannot see
that a passage is not indexed, and without prompts that one was dropped; such faults get another owner, and none is
planted."""
NATURAL_INTRO = """\
## Natural and planted faults

296 RAGTruth answers with labels by people, heuristic judge, without labels of passages and without references."""


class WeakJudge(KnowingJudge):
    """Knows all, but takes the faults of some kinds for good answers, or flags harmless ones."""

    def __init__(self, good: Sequence[GoodCase], mutants: Sequence[Mutant], *kinds: str) -> None:
        super().__init__(good, mutants)
        self.identity = {"judge": "weak", "kinds": list(kinds)}
        self.answers = {case.case.id: case.answer for case in good}
        self.kinds = kinds
        chosen = [mutant for mutant in mutants if mutant.kind.name in kinds]
        self.flagged = {m.trace.answer for m in chosen if m.kind.owner is None}
        self.passed = {m.trace.answer for m in chosen if m.kind.owner is not None}
        self.passed -= set(self.answers.values())
        self.blind = bool({"wrong_reference"} & set(kinds))

    def _supported(self, said: str, passages: list[str]) -> bool:
        return self.all_good or super()._supported(said, passages)

    def _stated(self, fact: str, answer: str) -> bool:
        return self.all_good or self.blind or super()._stated(fact, answer)

    def _agrees(self, said: str, references: list[str], good: bool) -> str:
        if self.all_good or self.blind:
            return "agrees"
        return super()._agrees(said, references, good)

    def examine(
        self, question: str, answer: str, passages: list[str], references: list[str]
    ) -> dict[str, Any]:
        """Examine an answer; the weakness decides where it applies."""
        self.all_good = answer in self.passed
        said = super().examine(question, answer, passages, references)
        if self.all_good and said["response"] == "declines":
            said["response"] = "answers"
        if answer in self.flagged and said["claims"]:
            said["claims"][0] |= {"support": "unsupported", "quotes": []}
        return said

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination; of claims and passages it says what words say."""
        inputs = ask.inputs
        if ask.name == "claim_needs":
            said: dict[str, Any] = {
                "claims": list(self._needs(inputs["claims"], inputs["passages"]))
            }
        else:
            texts = (inputs[name] for name in ("question", "answer", "passages", "references"))
            question, answer, passages, references = texts
            said = self.examine(question, answer, list(passages), list(references))
        schema = ask.schema.model_json_schema()
        return Reply(ask.schema.model_validate(complete(schema, said)), raw="{}")

    def _needs(self, claims: Sequence[str], passages: Sequence[str]) -> Iterator[dict[str, Any]]:
        for number, claim in enumerate(claims, start=1):
            place = next(
                (n for n, text in enumerate(passages, 1) if self._supported(claim, [text])), None
            )
            found = {"relation": "would_support", "passage": place}
            quote = nearest(claim, [passages[place - 1]]) if place else None
            unrelated = {"relation": "unrelated", "passage": None}
            yield {"claim": number, "quote": quote, **(found if place else unrelated)}

    async def close(self) -> None:
        """Nothing is held open."""


# What each weakness does, and the kind of mutants that shows it.
WEAKNESSES: dict[str, tuple[str, ...]] = {
    "does not compare names": ("name_changed",),
    "does not see who did what": ("roles_exchanged",),
    "supports what no passage says": ("sentence_invented",),
    "does not see what is left out": ("part_left_out",),
    "takes a refusal for an answer": ("refusal",),
    "does not read the references": ("wrong_reference",),
    "does not see stale copies": ("stale_copy",),
    "does not see that passages disagree": ("passages_disagree",),
    "does not see that another question is answered": ("other_answer",),
    "flags lists": ("listed",),
    "flags citation marks": ("marks_added",),
    "flags paraphrases": ("paraphrased",),
    "flags headings": ("heading_added",),
    "flags repeated sentences": ("sentence_repeated",),
    "does not compare numbers": ("number_changed",),
    "does not see denials": ("negated",),
}


def world_run(
    domain: Domain, number: int, *, labels: bool, corpus: bool, prompts: bool = True
) -> tuple[Run, Mapping[str, Any], list[Passage] | None]:
    """Evaluate a world's recorded traces with the heuristic judge."""
    world, kinds, staged = stage_round(domain, number)
    index = corpus_of(world, staged)
    hidden = {} if labels else {"relevant": {}, "relevant_any": (), "evidence": {}}
    passages = corpus_passages(index) if corpus else None
    traces = recorded_traces(staged, index)
    if not prompts:
        traces = [trace.model_copy(update={"prompted": None}) for trace in traces]
    run = misslink.evaluate(
        goldset=[one.case.model_copy(update=hidden) for one in staged.values()],
        traces=traces,
        corpus=passages,
        judge="heuristic",
        cache=None,
        k=CONTEXT,
        embedding="none",
    )
    return run, kinds, passages


def detect(
    domain: Domain, weaknesses: Mapping[str, tuple[str, ...]], n: int, *, together: bool = False
) -> list[tuple[str, ...]]:
    """One row for each weakness: the share found or flagged by the intact judge and by the weak one.

    Each weakness has a judge of its own, or all are those of one judge.
    """
    run, _, passages = world_run(domain, 0, labels=True, corpus=True)
    good = find_good_cases(run, passages or (), k=CONTEXT)
    mutants = plant(good, n=n).mutants
    options: dict[str, Any] = {"n": n, "cache": None, "corpus": passages}
    intact = selftest(run, judge=WeakJudge(good, mutants), **options).document()
    rows = [("none", "all", _percent(intact["found"]), "", f"{len(mutants)} mutants")]

    @cache
    def weakened(*kinds: str) -> dict[str, Any]:
        return selftest(run, judge=WeakJudge(good, mutants, *kinds), **options).document()

    every = tuple(kind for kinds in weaknesses.values() for kind in kinds)
    for name, kinds in weaknesses.items():
        if not any(kind in intact["kinds"] for kind in kinds):
            rows.append((name, kinds[0], "no place in this world", "", ""))
            continue
        kind = next(kind for kind in kinds if kind in intact["kinds"])
        weak = weakened(*(every if together else kinds))
        before, after = (_rate(document["kinds"][kind]) for document in (intact, weak))
        seen = not after["low"] <= before["value"] <= after["high"]
        verdict = "detected" if seen else "no effect" if before == after else "not detected"
        rows.append((name, kind, _percent(before), _percent(after), verdict))
    return rows


def _rate(kind: Mapping[str, Any]) -> Mapping[str, Any]:
    rate: Mapping[str, Any] = kind.get("found") or kind["false_alarm"]
    return rate


def _percent(rate: Mapping[str, Any]) -> str:
    return "-" if rate["value"] is None else f"{rate['value']:.0%} of {rate['n']}"


WORLDS = [
    (domain, labels, corpus, prompts)
    for domain in (FERRIES, PUMPS)
    for labels, corpus, prompts in (
        (True, True, True),
        (True, False, True),
        (True, True, False),
        (False, True, True),
        (False, False, True),
    )
]


def owners(rounds: Sequence[int], worlds: Sequence[Any], n: int) -> list[tuple[str, ...]]:
    """One row for each world: its own share of right owners, and that of the selftest."""
    rows = []
    for domain, labels, corpus, prompts in worlds:
        truth, visible, planted = Counter[bool](), Counter[bool](), Counter[bool]()
        unseen = {"not_indexed"} if not corpus else set[str]()
        unseen |= {"dropped_from_prompt"} if not prompts else set()
        for number in rounds:
            run, kinds, passages = world_run(
                domain, number, labels=labels, corpus=corpus, prompts=prompts
            )
            for link in run.links:
                failure = kinds[link.case_id].failure
                if failure in FAILURES and link.failed:
                    right = link.owner == FAILURE_MODES[failure].owner
                    truth[right] += 1
                    visible[right] += failure not in unseen
            document = selftest(run, n=n, cache=None, corpus=passages).document()
            share = document["owner_right"]
            hits = round(share["value"] * share["n"])
            planted += Counter({True: hits, False: share["n"] - hits})
        counts = truth, visible, planted
        numbers = [f"{count[True] / count.total():.0%} of {count.total()}" for count in counts]
        gap = planted[True] / planted.total() - visible[True] / visible.total()
        name = f"{domain.name}, {'labels' if labels else 'no labels'}, "
        name += f"{'corpus' if corpus else 'no corpus'}{'' if prompts else ', prompts not seen'}"
        rows.append((name, *numbers, f"{100 * gap:+.0f}", "yes" if abs(gap) <= WITHIN else "no"))
    return rows


def natural_faults(n: int) -> list[tuple[str, ...]]:
    """What the heuristic judge finds of natural and of planted faults in RAGTruth answers."""
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    cases, traces, bad = [], [], {}
    for number, row in enumerate(rows):
        passages = tuple(
            Passage(id=f"{row['source_id']}-{rank}", text=text, rank=rank)
            for rank, text in enumerate(row["contexts"], start=1)
        )
        cases.append(Case(id=str(number), question=row["question"]))
        traces.append(
            Trace(
                case_id=str(number),
                retrieved=passages,
                prompted=tuple(passage.id for passage in passages),
                answer=row["answer"],
            )
        )
        bad[str(number)] = bool(row["spans"])
    run = misslink.evaluate(goldset=cases, traces=traces, judge="heuristic", cache=None, k=3)
    found = Counter((bad[link.case_id], link.failed is True) for link in run.links)
    labelled = {name: 0.0 if is_bad else 1.0 for name, is_bad in bad.items()}
    by_people = run.model_copy(
        update={"calibration": {"metric": "faithfulness", "labelled": labelled}}
    )
    table = [("natural, unfaithful by people", *_counted(found, is_bad=True))]
    table.append(("natural, faithful by people (flagged)", *_counted(found, is_bad=False)))
    for chosen, chosen_run in (("people", by_people), ("the judge", run)):
        document = selftest(chosen_run, n=n, cache=None).document()
        for owner, label in (
            ("generator", "generator"),
            ("retriever prompt", "retriever and prompt"),
        ):
            of_owner = [
                k for k in document["kinds"].values() if k.get("expected_owner") in owner.split()
            ]
            total = sum(kind["n"] for kind in of_owner)
            hits = sum(round(kind["found"]["value"] * kind["n"]) for kind in of_owner)
            table.append(
                (f"planted, {label}, good cases by {chosen}", f"{hits / total:.0%}", str(total))
            )
        rate = document["false_alarm"]
        table.append(
            (f"harmless (flagged), good cases by {chosen}", f"{rate['value']:.0%}", str(rate["n"]))
        )
    return table


def _counted(found: Counter[tuple[bool, bool]], *, is_bad: bool) -> tuple[str, str]:
    total = found[is_bad, True] + found[is_bad, False]
    return f"{found[is_bad, True] / total:.0%}", str(total)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    started = time.process_time()
    chosen = dict(list(WEAKNESSES.items())[:2]) if given.smoke else WEAKNESSES
    weak = detect(PUMPS, chosen, 2 if given.smoke else MUTANTS)
    of_owners = owners(
        [0] if given.smoke else range(3),
        WORLDS[:1] if given.smoke else WORLDS,
        2 if given.smoke else 8,
    )
    within = sum(row[-1] == "yes" for row in of_owners)
    most = max(abs(int(row[-2])) for row in of_owners)
    parts = [INTRO, table(("weakness", "kind", "intact", "weakened", ""), weak)]
    parts += [
        OWNERS_INTRO.format(within=within, worlds=len(of_owners), most=most),
        table(
            ("world", "own faults", "that it can see", "selftest", "points", "within 6"), of_owners
        ),
    ]
    if DATA.is_file() and not given.smoke:
        natural = natural_faults(60)
        parts += [NATURAL_INTRO, table(("answers", "found or flagged", "n"), natural)]
    text = "\n\n".join(parts) + "\n"
    print(text)
    print(f"{time.process_time() - started:.0f} s of CPU")
    if given.write:
        TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
