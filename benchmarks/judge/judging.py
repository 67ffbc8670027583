"""Measure what the checks between a judge and its verdict catch, and what they break.

    python benchmarks/judge/judging.py [--data ../shared/data] [--write]    # a minute

Three judges answer RAGTruth QA (Niu et al., ACL 2024, MIT), through the code of `misslink evaluate`:

- the oracle knows the spans that people marked: a sentence that overlaps one is unsupported, any other
  is supported, with the nearest sentence of the passages as its quote. What it loses, the checks broke.
- the yes-sayer supports every sentence, with the same quotes. What it finds, the checks caught.
- the heuristic judge, on the test answers, to which nothing is fitted.

Then every supported claim of the sets of `claim_support` is judged by one who quotes the evidence
itself: what is overruled there is broken. And small situations that people reported are judged, by a
perfect judge or by the heuristic one. With --write the tables go to benchmarks/judge/judging.md;
tests/matching/test_release.py asserts the goals.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fit_heuristic import measure
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.protocol import Ask, Judge, Reply
from misslink.matching import load_fit
from misslink.registry import judged_metrics
from misslink.stats import proportion
from misslink.types import Case, Passage, Trace, Verdict

DATA = Path(__file__).parents[3] / "shared" / "data"
TARGET = Path(__file__).with_suffix(".md")
K = 100  # all passages
_SENTENCE = re.compile(r"[^\n]+?(?:(?<!^\d)(?<!^\d\d)(?<!\n\d)(?<!\n\d\d)[.!?](?=\s|$)|$|(?=\n))")
_LETTERS = re.compile(r"[a-z]{3,}|\d+")
Row = Mapping[str, Any]


def sentences(text: str) -> list[tuple[int, int]]:
    """The offsets of sentences, cut by a simpler rule than misslink's own."""
    found = (match.span() for match in _SENTENCE.finditer(text))
    return [(a, b) for a, b in found if _LETTERS.search(text[a:b].lower())]


def words(text: str) -> set[str]:
    return set(_LETTERS.findall(text.lower()))


def dice(own: set[str], other: set[str]) -> float:
    return 2 * len(own & other) / max(len(own) + len(other), 1)


def recall(own: set[str], other: set[str]) -> float:
    return len(own & other) / max(len(own), 1) - len(other) / 1e6


NEAREST: dict[str, Callable[[set[str], set[str]], float]] = {"dice": dice, "recall": recall}


class QuotingJudge:
    """Supports every sentence with the nearest one of the passages, but for those that people marked."""

    name = "oracle"
    identity: Mapping[str, Any] = {"judge": "oracle"}

    def __init__(self, marks: Sequence[Mapping[str, int]], likeness: str = "dice") -> None:
        self._marks = marks
        self._score = NEAREST[likeness]

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination."""
        answer, passages = ask.inputs["answer"], ask.inputs["passages"]
        pool = [text[a:b] for text in passages for a, b in sentences(text)]
        claims = []
        for start, end in sentences(answer):
            span = answer[start:end]
            bad = any(mark["start"] < end and mark["end"] > start for mark in self._marks)
            quote = max(pool, key=lambda each: self._score(words(span), words(each)), default=None)
            support = "unsupported" if bad or quote is None else "supported"
            claims.append({"span": span, "claim": span, "quote": quote, "support": support})
        reply = {"claims": claims, "passages": [], "sufficient": "yes", "response": "answers"}
        return Reply(ask.schema.model_validate({**reply, "helpful": 5}), json.dumps(reply))

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class Judged:
    """A labelled answer and the verdict on it."""

    row: Row
    verdict: Verdict

    @property
    def bad(self) -> bool:
        return bool(self.row["human_hallucinated"])

    @property
    def flagged(self) -> bool:
        """Whether it was called unfaithful, or got no verdict although people call it faithful."""
        if self.verdict.status == "failed":
            return not self.bad
        return self.verdict.label is False


def read_rows(path: Path) -> list[Row]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


async def judge(row: Row, asked: Judge) -> Verdict:
    passages = tuple(Passage(id=f"p{n}", text=t, rank=n) for n, t in enumerate(row["contexts"], 1))
    case = Case(id=str(row["id"]), question=row["question"])
    trace = Trace(case_id=case.id, retrieved=passages, answer=row["answer"])
    (verdict,) = await judge_case(
        Subject(case, trace, K), [judged_metrics.get("faithfulness")], asked
    )
    return verdict


def run(rows: Sequence[Row], judge_of: Callable[[Row], Judge]) -> list[Judged]:
    async def all_of() -> list[Judged]:
        return [Judged(row, await judge(row, judge_of(row))) for row in rows]

    return asyncio.run(all_of())


def oracle(rows: Sequence[Row], likeness: str = "dice") -> list[Judged]:
    return run(rows, lambda row: QuotingJudge(row["spans"], likeness))


def yes_sayer(rows: Sequence[Row], likeness: str = "dice") -> list[Judged]:
    return run(rows, lambda _: QuotingJudge((), likeness))


def detection(judged: Sequence[Judged]) -> dict[str, float]:
    """F1 of finding the unfaithful, and the share of faithful answers that were flagged."""
    found = sum(each.bad and each.flagged for each in judged)
    flagged, bad = sum(each.flagged for each in judged), sum(each.bad for each in judged)
    return {
        "f1": 2 * found / (flagged + bad),
        "false": flagged - found,
        "faithful": len(judged) - bad,
        "found": found,
        "bad": bad,
    }


def caught_marks(judged: Sequence[Judged]) -> tuple[int, int]:
    """How many claims that people marked were overruled, of how many."""
    caught = marked = 0
    for each in judged:
        places = [(c.start, c.end, c.support) for c in each.verdict.claims if c.start is not None]
        for start, end in sentences(each.row["answer"]):
            if not any(m["start"] < end and m["end"] > start for m in each.row["spans"]):
                continue
            marked += 1
            caught += any(a < end and b > start and s != "supported" for a, b, s in places)
    return caught, marked


def overruled_evidence(rows: Sequence[Row]) -> Iterator[tuple[Row, str | None]]:
    """The supported claims of a set, and why one is overruled that quotes its evidence."""
    from misslink.judge.claims import read_claims
    from misslink.judge.examination import Examination

    for row in rows:
        if row["label"] != "supported":
            continue
        claim = row["claim"]
        passages = [Passage(id=f"p{n}", text=t, rank=n) for n, t in enumerate(row["evidence"], 1)]
        quotes = [passage.text for passage in passages][:2]
        reply = {
            "claims": [{"span": claim, "claim": claim, "quote": quotes[0], "quotes": quotes, "support": "supported"}],
            "passages": [], "sufficient": "yes", "response": "answers", "helpful": 5,
        }  # fmt: skip
        parsed = Examination.model_validate(reply)
        history = [m["text"] if isinstance(m, dict) else m for m in row["meta"].get("history", ())]
        claims = read_claims(
            Reply(parsed, "{}"), claim, passages, row.get("question") or "", history
        )
        note = next((c.note for c in claims if c.overruled), None)
        yield row, note if claims else "the claim is not the answer's"


class ScriptedClaims:
    """A perfect judge: replies the claims that a row has."""

    name = "scripted"
    identity: Mapping[str, Any] = {"judge": "scripted"}

    def __init__(self, claims: Sequence[Mapping[str, Any]]) -> None:
        self._claims = claims

    async def ask(self, ask: Ask) -> Reply:
        """Answer an examination."""
        reply = {"claims": self._claims, "passages": [], "sufficient": "yes", "response": "answers"}
        return Reply(ask.schema.model_validate({**reply, "helpful": 5}), json.dumps(reply))

    async def close(self) -> None:
        """Nothing is open."""


SCRIPTED = "citations", "numbered_lines", "paraphrase"
HEURISTIC = "equal_forms", "short_references", "months_signs", "roles", "furniture"


def wrong_reports(data: Path, name: str) -> tuple[list[str], int]:
    """The reported rows of a file that come out wrong, of how many."""
    rows = read_rows(data / "reported" / f"{name}.jsonl")
    wrong = []
    for row in rows:
        asked = ScriptedClaims(row["claims"]) if "claims" in row else HeuristicJudge()
        references = (row["reference"],) if row.get("reference") else ()
        case = Case(id=row["case_id"], question=row["question"], references=references)
        passages = tuple(
            Passage(id=f"p{n}", text=text, rank=n) for n, text in enumerate(row["passages"], 1)
        )
        trace = Trace(case_id=case.id, retrieved=passages, answer=row["answer"])
        metrics = [
            judged_metrics.get(name)
            for name in row["right"]
            if name in ("faithfulness", "correctness")
        ]
        verdicts = asyncio.run(judge_case(Subject(case, trace, K), metrics, asked))
        for verdict in verdicts:
            right = float(row["right"][verdict.metric])
            found = (
                verdict.value if verdict.metric == "faithfulness" else float(bool(verdict.label))
            )
            if verdict.status != "scored" or found != right:
                wrong.append(f"{row['case_id']}: {verdict.metric} {found} ({verdict.reason})")
    return wrong, len(rows)


def tables(data: Path) -> list[str]:
    """The page's lines."""
    folder = data / "faithfulness"
    test, dev = (read_rows(folder / f"ragtruth_qa_{part}.jsonl") for part in ("test", "dev"))
    lines = ["| judge | answers | F1 | faithful flagged |", "|---|--:|--:|--:|"]
    for name, rows in (("test", test), ("dev", dev)):
        found = detection(oracle(rows))
        flagged = proportion(int(found["false"]), int(found["faithful"]))
        low, high = (f"{100 * (end or 0):.1f}" for end in (flagged.low, flagged.high))
        share = f"{found['false'] / found['faithful']:.1%} [{low}, {high}], {found['false']} of {found['faithful']}"
        lines.append(f"| oracle, {name} | {len(rows)} | {found['f1']:.3f} | {share} |")
    caught, marked = caught_marks(yes_sayer([*test, *dev]))
    figures = measure(folder / "ragtruth_qa_test.jsonl", load_fit())
    lines += [
        "",
        f"The yes-sayer: {caught} of {marked} marked sentences are overruled ({caught / marked:.1%}).",
        "",
        (
            f"The heuristic judge on the test answers: AUROC {figures['auroc']}, F1 {figures['f1']},"
            f" precision {figures['precision']}, recall {figures['recall']}."
        ),
        "",
        "| supported claims of | overruled | of |",
        "|---|--:|--:|",
    ]
    total = broken = 0
    for path in sorted((data / "claim_support").glob("*.jsonl.gz")):
        notes = [note for _, note in overruled_evidence(read_rows(path))]
        lost = sum(note is not None for note in notes)
        lines.append(f"| {path.name.removesuffix('.jsonl.gz')} | {lost} | {len(notes)} |")
        total, broken = total + len(notes), broken + lost
    lines += [f"| all | {broken} ({broken / total:.1%}) | {total} |", ""]
    lines += ["| reported situations | wrong | of |", "|---|--:|--:|"]
    for name in (*SCRIPTED, *HEURISTIC):
        wrong, count = wrong_reports(data, name)
        lines.append(f"| {name} | {len(wrong)} | {count} |")
    return lines


def main() -> int:
    """Print, or write, the tables."""
    parser = argparse.ArgumentParser(description="What the checks of judging catch and break.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    about = (__doc__ or "").split("\n\n", 2)[2]
    head = ["# What the checks of judging catch, and what they break", "", about.strip(), ""]
    page = "\n".join([*head, *tables(given.data), ""])
    print(page)
    if given.write:
        TARGET.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
