"""Measure each rule of judging by switching it off: what it catches, and what it breaks.

    python benchmarks/judge/ablation.py [RULE ...] [--write]    # half a minute for each rule

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
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
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
    "happy and unhappy": (same_place, "_PREFIXES", ("\0",)),
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
    "fragment without its question": (Passages, "_why_fragment", nothing),
    "yes and no": (references, "_stance", nothing),
    "denied reference": (references, "_denied", nothing),
}


def forget() -> None:
    """Empty the caches: what they hold was read with other rules."""
    for each in gc.get_objects():
        if type(each).__name__ == "_lru_cache_wrapper" and each.__module__.startswith("misslink."):
            each.cache_clear()


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


def measured(rows: list[judging.Row], claims: list[judging.Row]) -> list[str]:
    """What is caught and broken."""
    caught = judging.caught_marks(judging.yes_sayer(rows))[0]
    lost = int(judging.detection(judging.oracle(rows))["false"])
    refused = {"hostile": 0, "honest": 0}
    unsupported, stopped = refused.copy(), refused.copy()
    for row in claims:
        passages = Passages(row["evidence"], row.get("question") or "")
        side = "honest" if row["label"] == "supported" else "hostile"
        check = passages.check(row["claim"], row["evidence"][:2])
        refused[side] += check.refusal is not None
        unsupported[side] += passages.match(row["claim"]).support == "unsupported"
    for side, claim, texts in injections():
        check = Passages(texts, "What is known?").check(claim, texts[-1:])
        stopped[side] += check.refusal is not None
    dev = measure(FAITHFULNESS / "ragtruth_qa_dev.jsonl", load_fit())
    names = (*judging.SCRIPTED, *judging.HEURISTIC)
    wrong = sum(len(judging.wrong_reports(judging.DATA, name)[0]) for name in names)
    counts = caught, lost, *refused.values(), *stopped.values()
    figures = [f"{dev[name]:.3f}" for name in ("auroc", "f1")]
    return [*map(str, counts), *figures, *map(str, (*unsupported.values(), *flipped(), wrong))]


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
    for name, rule in {"none": None, **chosen}.items():
        forget()
        with ExitStack() as stack:
            if rule is not None:
                stack.enter_context(patch.object(*rule))
            page.append(f"| {name} | {' | '.join(measured(rows, claims))} |")
        print(page[-1], file=sys.stderr, flush=True)
    page.append("")
    print("\n".join(page))
    if given.write:
        TARGET.write_text("\n".join(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
