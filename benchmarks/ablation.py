"""Measure each rule of judging by switching it off: what it catches, and what it breaks.

    python benchmarks/ablation.py [RULE ...] [--write]    # half a minute of CPU for each rule

The cases are those of `judging.py` and `robustness.py`. Of the rules that refuse a quote: of the marked
sentences of RAGTruth QA (test and dev) that a yes-sayer supports, how many are overruled (caught); of the
faithful answers, how many a perfect judge loses (broken); of every fourth claim of `claim_support` with
its evidence as quotes, how many unsupported ones are refused (caught) and supported ones overruled
(broken); of the injections, how many are refused (caught), and of honest texts (broken); and how many of
the reported situations come out wrong. Of the rules of the heuristic judge, with the fit as it is: AUROC
and F1 on RAGTruth QA (test and dev), claims of `claim_support` that are unsupported and not called
supported (caught) and supported ones that are called unsupported (broken), injections and honest texts
likewise, and reported situations. A row says what is there without the rule; a rule without which
nothing is worse has no place.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.append(str(Path(__file__).parents[1] / "tests" / "builders"))

import judging
import robustness
from fit_heuristic import measure
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.matching import (
    Passages,
    claim_matching,
    frames,
    load_fit,
    quotes,
    same_place,
)

TARGET = Path(__file__).with_suffix(".md")
FAITHFULNESS = judging.DATA / "faithfulness"
BESIDE = "The town has a market on Fridays."
STEP = 4  # of the claims of claim_support


def nothing(*_: Any, **__: Any) -> None:
    """In place of a rule."""


def never(*_: Any, **__: Any) -> bool:
    """In place of a rule."""
    return False


NO_PATTERN = re.compile(r"(?!)")
Rule = tuple[Any, str, Any]  # where it is, its name, and what stands in its place
OF_QUOTES: dict[str, Rule] = {
    "number without a basis": (quotes, "underived_number", nothing),
    "quantity that nothing says": (quotes, "unsaid_quantity", nothing),
    "one of two parts quoted": (Passages, "_alike", lambda *_: []),
    "rival sentence": (Passages, "_rival", nothing),
    "one word of a sentence": (Passages, "_is_fragment", never),
    "order to a judge": (Passages, "_is_order", never),
    "denial cut off": (quotes, "loses_denial", never),
    "clause that denies": (quotes, "clause_conflict", never),
    "another word in the same place": (quotes, "difference", nothing),
    "names exchanged": (same_place, "_exchanged", nothing),
    "all and some": (same_place, "_WEAKER", ()),
    "happy and unhappy": (same_place, "_PREFIXES", ("\0",)),
    "number with a basis": (quotes, "has_basis", never),
    "said elsewhere": (Passages, "_is_said_elsewhere", never),
    "frame of a statement": (quotes, "frame_kind", nothing),
    "sentence that asserts nothing": (Passages, "_is_framed", never),
    "heading that denies": (frames, "_is_headed", never),
    "retracted behind it": (frames, "_BACKWARD", NO_PATTERN),
    "opening of a tale": (frames, "_OPENING", NO_PATTERN),
    "tag behind it": (frames, "_TAG", NO_PATTERN),
    "hidden in markup": (frames, "_HIDDEN", NO_PATTERN),
    "were, had, should": (frames, "_INVERTED", NO_PATTERN),
    "perhaps before it": (frames, "_ADVERB", NO_PATTERN),
    "words of introduction": (frames, "_INTRODUCING", NO_PATTERN),
}
_CONTEXT = claim_matching.Passages
OF_HEURISTIC: dict[str, Rule] = {
    "another word in the same place (heuristic)": (claim_matching, "difference", nothing),
    "clause that denies (heuristic)": (claim_matching, "clause_conflict", never),
    "quantity that nothing says (heuristic)": (claim_matching, "unsaid_quantity", nothing),
    "number with a basis (heuristic)": (claim_matching, "has_basis", never),
    "sentence that asserts nothing (heuristic)": (_CONTEXT, "_is_framed", never),
    "frame of a statement (heuristic)": (claim_matching, "frame_kind", nothing),
    "identifier that nothing spells": (claim_matching, "_IDENTIFIER", NO_PATTERN),
    "name that code spells": (_CONTEXT, "_spells", never),
    "fragment without its question": (_CONTEXT, "_why_fragment", nothing),
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


def of_quotes(rows: list[judging.Row], claims: list[judging.Row]) -> list[str]:
    """The figures of the quote checks."""
    caught = judging.caught_marks(judging.yes_sayer(rows))[0]
    lost = int(judging.detection(judging.oracle(rows))["false"])
    broken = sum(note is not None for _, note in judging.overruled_evidence(claims))
    refused = sum(
        Passages(row["evidence"], row.get("question") or "")
        .check(row["claim"], row["evidence"][:2])
        .refusal
        is not None
        for row in claims
        if row["label"] != "supported"
    )
    stopped = {"hostile": 0, "honest": 0}
    for side, claim, texts in injections():
        stopped[side] += (
            Passages(texts, "What is known?").check(claim, texts[-1:]).refusal is not None
        )
    wrong = reported(judging.SCRIPTED)
    return [str(n) for n in (caught, lost, refused, broken, *stopped.values(), wrong)]


def reported(names: Sequence[str]) -> int:
    """How many reported situations come out wrong."""
    return sum(len(judging.wrong_reports(judging.DATA, name)[0]) for name in names)


def of_heuristic(claims: list[judging.Row]) -> list[str]:
    """The figures of the heuristic judge."""
    parts = [
        measure(FAITHFULNESS / f"ragtruth_qa_{part}.jsonl", load_fit()) for part in ("test", "dev")
    ]
    refused = {"hostile": 0, "honest": 0}
    for row in claims:
        match = Passages(row["evidence"], row.get("question") or "").match(row["claim"])
        side = "honest" if row["label"] == "supported" else "hostile"
        refused[side] += match.support == "unsupported"
    stopped = {"hostile": 0, "honest": 0}
    for side, claim, texts in injections():
        row = {"id": "a", "question": "What is known?", "answer": claim, "contexts": texts}
        stopped[side] += not asyncio.run(judging.judge(row, HeuristicJudge())).label
    figures = [f"{part[name]:.3f}" for part in parts for name in ("auroc", "f1")]
    counts = (*refused.values(), *stopped.values(), reported(judging.HEURISTIC))
    return [*figures, *map(str, counts)]


def lines(rules: dict[str, Rule], head: str, measured: Callable[[], list[str]]) -> Iterator[str]:
    """A table, a row for each rule."""
    cells = head.count("|") - 1
    yield from (head, f"|---|{'--:|' * (cells - 1)}")
    for name, rule in {"none": None, **rules}.items():
        forget()
        with ExitStack() as stack:
            if rule is not None:
                stack.enter_context(patch.object(*rule))
            row = f"| {name} | {' | '.join(measured())} |"
        print(row, file=sys.stderr, flush=True)
        yield row


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
    chosen = [
        {name: rule for name, rule in rules.items() if not given.rules or name in given.rules}
        for rules in (OF_QUOTES, OF_HEURISTIC)
    ]
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    of_quote = "| without | RAGTruth caught | broken | claims caught | broken | injections caught | broken | reported wrong |"
    of_judge = (
        "| without | test AUROC | F1 | dev AUROC | F1 | claims caught | broken"
        " | injections caught | broken | reported wrong |"
    )
    page = ["# Each rule of judging, switched off", "", about, ""]
    if chosen[0]:
        page += [*lines(chosen[0], of_quote, lambda: of_quotes(rows, claims)), ""]
    if chosen[1]:
        page += [*lines(chosen[1], of_judge, lambda: of_heuristic(claims)), ""]
    print("\n".join(page))
    if given.write:
        TARGET.write_text("\n".join(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
