"""Measure each rule of judging by switching it off: what it catches, and what it breaks.

    python benchmarks/judge/ablation.py [RULE ...] [--write]    # a minute, and seconds for each rule

The cases are those of `judging.py` and `robustness.py`. Of the marked sentences of RAGTruth QA (test and
dev) that a yes-sayer supports, how many are overruled (caught); of the faithful answers, how many a
perfect judge loses (broken). Of every fourth claim of `claim_support` with its evidence as quotes, how many
unsupported ones are refused (caught) and supported ones overruled (broken); of the injections, how many
quotes are refused (caught), and of honest texts (broken). The heuristic judge, with the fit as it is: AUROC
and F1 on RAGTruth QA dev, and of the same claims the unsupported ones that it does not support (caught)
and the supported ones (broken). Then how many verdicts flip where `judge redteam` puts its texts into a
passage, of the heuristic judge and of one that believes whatever was put in. Last, how many of the reported
situations come out wrong. A row says what is there without the rule; a rule without which nothing is worse
has no place.

The texts are whole sentences: what a quote cuts off its sentence (a denial beside it, all but one word)
is pinned by tests/matching/test_quotes.py.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path += [str(Path(__file__).parents[2] / folder) for folder in ("benchmarks", "tests/builders")]

import judging
import robustness
from fit_heuristic import measure
from misslink.judge.backends.custom import EntailmentJudge
from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.checks.redteam import AttackSuite, load_suite, run_redteam
from misslink.matching import (
    Passages,
    assertion,
    claim_matching,
    frames,
    load_fit,
    quotes,
    references,
    same_place,
)
from misslink.registry import judged_metrics

TARGET = Path(__file__).with_suffix(".md")
FAITHFULNESS = judging.DATA / "faithfulness"
BESIDE = "The town has a market on Fridays."
HEAD = (
    "| without | RAGTruth caught | broken | claims caught | broken | injections caught | broken"
    " | heuristic AUROC | F1 | claims caught | broken"
    " | flipped: heuristic | believer | reported wrong |"
)
STEP = 4  # of the claims of claim_support


def nothing(*_: Any, **__: Any) -> None:
    """In place of a rule."""


def never(*_: Any, **__: Any) -> bool:
    """In place of a rule."""
    return False


NO_PATTERN = re.compile(r"(?!)")
Rule = tuple[Any, str, Any]  # where it is, its name, and what stands in its place
RULES: dict[str, Rule] = {
    "number without a basis": (quotes, "underived_number", nothing),
    "quantity that nothing says": (quotes, "unsaid_quantity", nothing),
    "number with a basis": (quotes, "has_basis", never),
    "one of two parts quoted": (Passages, "_alike", lambda *_: []),
    "rival sentence": (Passages, "_rival", nothing),
    "one word of a sentence": (Passages, "_is_fragment", never),
    "order to a judge": (Passages, "_is_order", never),
    "denial cut off": (quotes, "loses_denial", never),
    "clause that denies": (quotes, "clause_conflict", never),
    "another word in the same place": (quotes, "difference", nothing),
    "names exchanged": (same_place, "_exchanged", nothing),
    "happy and unhappy": (same_place, "_is_opposite", never),
    "said elsewhere": (Passages, "_is_said_elsewhere", never),
    "sentence that asserts nothing": (Passages, "_is_framed", never),
    "denied by a phrase": (assertion, "_DENIED", NO_PATTERN),
    "hearsay": (assertion, "_HEARSAY", NO_PATTERN),
    "frame of a statement": (quotes, "frame_kind", nothing),
    "heading that denies": (frames, "_is_headed", never),
    "retracted behind it": (frames, "_BACKWARD", NO_PATTERN),
    "tag behind it": (frames, "_TAG", NO_PATTERN),
    "hidden in markup": (frames, "_HIDDEN", NO_PATTERN),
    "were, had, should": (frames, "_INVERTED", NO_PATTERN),
    "perhaps before it": (frames, "_ADVERB", NO_PATTERN),
    "words of introduction": (frames, "_INTRODUCING", NO_PATTERN),
    "identifier that nothing spells": (claim_matching, "_IDENTIFIER", NO_PATTERN),
    "name that code spells": (Passages, "_spells", never),
    "fragment without its question": (Passages, "_is_lone", never),
    "yes and no": (references, "_stance", nothing),
    "denied reference": (references, "_denied", nothing),
}


class Watched:
    """In place of a rule: it does the same, and notes where it fires."""

    def __init__(self, rule: Any, name: str, fired: set[str]) -> None:
        self._rule, self._name, self._fired = rule, name, fired

    def __getattr__(self, method: str) -> Any:
        """Return a method of a pattern."""
        return Watched(getattr(self._rule, method), self._name, self._fired)

    def __get__(self, owner: object, _: object = None) -> Any:
        """Return itself as a method of `owner`."""
        return (
            self if owner is None else Watched(partial(self._rule, owner), self._name, self._fired)
        )

    def __call__(self, *given: Any, **named: Any) -> Any:
        found = self._rule(*given, **named)
        if found:
            self._fired.add(self._name)
        return found


def read_caches() -> list[Any]:
    """The caches whose content was read with the rules."""
    return [
        each
        for each in gc.get_objects()
        if type(each).__name__ == "_lru_cache_wrapper"
        and each.__module__.startswith(("misslink.judge", "misslink.matching"))
    ]


def injections() -> Iterator[tuple[str, str, list[str]]]:
    """Side, claim and passages of each text of `injections.toml`; the text is the last."""
    for side in ("hostile", "honest"):
        for kept_back in (False, True):
            for claim, passage, text in robustness.statements(side, kept_back=kept_back):
                yield side, claim, [passage if side == "hostile" else BESIDE, text]


def flipped() -> Iterator[int]:
    """Verdicts on faithfulness that the heuristic judge, and one that believes all attacks, change."""
    whole = load_suite()
    attacks = tuple(attack for attack in whole.attacks if attack.place == "passage")
    cases = tuple(
        replace(case, metrics=("faithfulness",))
        for case in whole.cases
        if "faithfulness" in case.metrics
    )
    clean = {text for case in cases for text in case.passages}

    def believe(pairs: list[tuple[str, str]]) -> list[float]:
        return [0.01 if any(text in own for own in clean) else 0.99 for text, _ in pairs]

    metrics = {"faithfulness": judged_metrics.get("faithfulness")}
    for judge in (open_heuristic(), EntailmentJudge("believer", believe)):
        found = asyncio.run(run_redteam(judge, metrics, suite=AttackSuite(attacks, cases)))
        yield sum(bool(trial.flipped) for trial in found.trials)


def counted(
    rows: list[judging.Row], claims: list[judging.Row]
) -> Iterator[tuple[str, Callable[[], int]]]:
    """What is counted, and a function that tells how much a single case adds to it."""
    for row in rows:
        yield "marks", lambda row=row: judging.caught_marks(judging.yes_sayer([row]))[0]
    for row in (row for row in rows if not row["human_hallucinated"]):
        yield "lost", lambda row=row: sum(each.flagged for each in judging.oracle([row]))
    for row in claims:
        side = "honest" if row["label"] == "supported" else "hostile"
        asked = row["evidence"], row.get("question") or ""
        claim, quotes = row["claim"], row["evidence"][:2]
        yield f"refused {side}", partial(is_refused, asked, claim, quotes)
        yield f"unsupported {side}", partial(is_unsupported, asked, claim)
    for side, claim, texts in injections():
        yield f"stopped {side}", partial(is_refused, (texts, "What is known?"), claim, texts[-1:])


COUNTS = (
    *("marks", "lost", "refused hostile", "refused honest", "stopped hostile", "stopped honest"),
    *("unsupported hostile", "unsupported honest"),
)


def is_refused(asked: tuple[Sequence[str], str], claim: str, quotes: Sequence[str]) -> bool:
    return Passages(*asked).check(claim, quotes).refusal is not None


def is_unsupported(asked: tuple[Sequence[str], str], claim: str) -> bool:
    return Passages(*asked).match(claim).support == "unsupported"


def cells(counts: Counter[str]) -> str:
    """A row of the table: the counts, and what is measured anew for each rule."""
    dev = measure(FAITHFULNESS / "ragtruth_qa_dev.jsonl", load_fit())
    names = (*judging.SCRIPTED, *judging.HEURISTIC)
    wrong = sum(len(judging.wrong_reports(judging.DATA, name)[0]) for name in names)
    first, last = [[str(counts[name]) for name in part] for part in (COUNTS[:6], COUNTS[6:])]
    figures = [f"{dev[name]:.3f}" for name in ("auroc", "f1")]
    return " | ".join([*first, *figures, *last, *map(str, (*flipped(), wrong))])


def ablate(
    cases: list[tuple[str, Callable[[], int]]], rules: Mapping[str, Rule]
) -> Iterator[tuple[str, str]]:
    """A row with all rules, then one without each: only the cases in which it fires are counted again."""
    caches = read_caches()

    def result(case: Callable[[], int]) -> int:
        for cache in caches:
            cache.cache_clear()
        return int(case())

    fired, known = set[str](), list[tuple[int, frozenset[str]]]()
    with ExitStack() as stack:
        for name, (place, attribute, _) in rules.items():
            watched = Watched(vars_of(place, attribute), name, fired)
            stack.enter_context(patch.object(place, attribute, watched))
        for _, case in cases:
            fired.clear()
            known.append((result(case), frozenset(fired)))
    total = Counter[str]()
    for (name, _), (found, _) in zip(cases, known, strict=True):
        total[name] += found
    yield "none", cells(total)
    for rule, patched in rules.items():
        counts = total.copy()
        with patch.object(*patched):
            for (name, case), (found, by) in zip(cases, known, strict=True):
                counts[name] += result(case) - found if rule in by else 0
            for cache in caches:
                cache.cache_clear()
            yield rule, cells(counts)


def vars_of(place: Any, attribute: str) -> Any:
    """An attribute as it is defined: of a class, a function that is bound to nothing yet."""
    classes = place.__mro__ if isinstance(place, type) else (place,)
    return next(vars(each)[attribute] for each in classes if attribute in vars(each))


def main() -> int:
    """Print, or write, the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = [
        row
        for part in ("test", "dev")
        for row in judging.read_rows(FAITHFULNESS / f"ragtruth_qa_{part}.jsonl")
    ]
    claims = [
        row
        for path in sorted((judging.DATA / "claim_support").glob("*.jsonl.gz"))
        for row in judging.read_rows(path)[::STEP]
    ]
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    page = [
        *("# Each rule of judging, switched off", "", about, ""),
        HEAD,
        f"|---|{'--:|' * 13}",
    ]
    chosen = {name: RULES[name] for name in given.rules or RULES}
    for name, row in ablate(list(counted(rows, claims)), chosen):
        page.append(f"| {name} | {row} |")
        print(page[-1], file=sys.stderr, flush=True)
    page.append("")
    print("\n".join(page))
    if given.write:
        TARGET.write_text("\n".join(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
