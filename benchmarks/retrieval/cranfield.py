"""Three retrievers on Cranfield: BM25, MiniLM, and both made one by reciprocal rank fusion.

    python benchmarks/retrieval/cranfield.py [--data FOLDER] [--cache FILE] [--keep FOLDER] [--write]

FOLDER is in BEIR's layout (corpus.jsonl, queries.jsonl, qrels.tsv); by default shared/data beside
the checkout. The searches are those of  misslink whatif;  their rankings go into TREC runs, which
`misslink retrieval` scores and holds against each other. pytrec_eval has to have the same value
for every query, or the benchmark fails. --cache keeps the vectors between runs, --keep the three
TREC runs. --write makes benchmarks/retrieval/cranfield.md. Needs the extras minilm and dev.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from misslink.embedding import Embedder, open_embedder
from misslink.linking.corpus_search import DenseSearch, LexicalSearch, fuse_rankings
from misslink.retrieval.evaluate import evaluate_run

TARGET = Path(__file__).with_suffix(".md")
DATA = Path(__file__).parents[3] / "shared" / "data" / "retrieval" / "cranfield"
DEPTH = 100
# Ours, and what trec_eval calls it.
METRICS = {
    "ndcg@10": "ndcg_cut_10",
    "mrr": "recip_rank",
    "precision@5": "P_5",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
    "map": "map",
    "bpref": "bpref",
}
JUDGED = "judged@10"
NAMES = {"fused": "fused", "bm25": "BM25", "minilm": "MiniLM"}
Document = dict[str, Any]
Runs = dict[str, dict[str, list[str]]]


@dataclass(frozen=True)
class Collection:
    """Texts and questions by id."""

    texts: Mapping[str, str]
    questions: Mapping[str, str]


def read(folder: Path, field: str = "text") -> Collection:
    """Read corpus and queries; `field` is what is indexed, 'text' or 'title'."""

    def lines(name: str) -> list[dict[str, str]]:
        text = (folder / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    return Collection(
        {each["_id"]: each[field] for each in lines("corpus.jsonl")},
        {each["_id"]: each["text"] for each in lines("queries.jsonl")},
    )


async def search(collection: Collection, embedder: Embedder) -> Runs:
    """The rankings of each retriever, best first."""
    ids, texts = list(collection.texts), list(collection.texts.values())
    questions = list(collection.questions.values())
    words = await LexicalSearch(texts).rank(questions, DEPTH)
    meaning = await DenseSearch(texts, embedder).rank(questions, DEPTH)
    both = [fuse_rankings(pair, DEPTH) for pair in zip(words, meaning, strict=True)]
    return {
        name: {
            query: [ids[place] for place in places]
            for query, places in zip(collection.questions, found, strict=True)
        }
        for name, found in (("fused", both), ("bm25", words), ("minilm", meaning))
    }


def write_runs(runs: Runs, folder: Path) -> list[Path]:
    """Write them as TREC runs, whose scores keep the order."""
    paths = []
    for name, rankings in runs.items():
        lines = (
            f"{query} Q0 {document} {place} {DEPTH - place + 1} {name}\n"
            for query, documents in rankings.items()
            for place, document in enumerate(documents, start=1)
        )
        paths.append(folder / f"{name}.trec")
        paths[-1].write_text("".join(lines), encoding="utf-8")
    return paths


def scored(qrels: Path, paths: Sequence[Path], metrics: Sequence[str], *options: str) -> Document:
    """What `misslink retrieval` says of them; the first is held against the others."""
    program = Path(sys.executable).with_name("misslink")
    runs = [argument for path in paths for argument in ("--run", str(path))]
    asked = ["--metrics", ",".join(metrics), "--per-query", "--json", *options]
    command = [str(program), "retrieval", "--qrels", str(qrels), *runs, *asked]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    document: Document = json.loads(done.stdout)
    return document


def check(qrels: Path, paths: Sequence[Path], document: Document) -> int:
    """Hold every value against pytrec_eval's; return how many there were."""
    import pytrec_eval

    def columns(path: Path) -> list[list[str]]:
        return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]

    judged: dict[str, dict[str, int]] = {}
    for query, document_id, grade in columns(qrels)[1:]:  # behind the header
        judged.setdefault(query, {})[document_id] = int(grade)
    asked = {"ndcg_cut.10", "recip_rank", "P.5", "recall.10,100", "map", "bpref"}
    compared = 0
    for path in paths:
        run: dict[str, dict[str, float]] = {}
        for query, _, document_id, _, score, _ in columns(path):
            run.setdefault(query, {})[document_id] = float(score)
        theirs = pytrec_eval.RelevanceEvaluator(judged, asked).evaluate(run)
        ours = document["runs"][path.name]
        metrics = [name for name in ours["metrics"] if name in METRICS]
        again = evaluate_run(qrels, path, metrics).per_query()
        for query in judged:
            for name in metrics:
                value = ours["per_query"][query][name]
                assert value == again[query][name], (path, query, name)
                # Of a query that is missing from the run pytrec_eval says nothing.
                expected = theirs[query][METRICS[name]] if query in run else 0
                assert abs(value - expected) < 1e-9, (path, query, name)
                compared += 1
    return compared


def page(document: Document, collection: Collection, compared: int, made: str) -> str:
    """The page: means, bounds, and paired differences."""
    first = next(iter(document["runs"].values()))
    counts = first["counts"]
    about = (
        f"{len(collection.texts):,} texts, {counts['evaluated']} queries, the first {DEPTH} of "
        "each ranking. BM25 is over stems (bm25s), MiniLM is all-MiniLM-L6-v2, which reads the "
        "first 256 tokens of a text, by cosine; fused is reciprocal rank fusion of these two, "
        "1 / (60 + rank). They are the searches that `misslink whatif` tries. Nothing was tuned. "
        f"pytrec_eval has the same value to 1e-9 in all {compared:,} comparisons (a value of a "
        "metric for a query and a run). Intervals are 95%, by bootstrap over the queries."
    )
    lines = [
        "# Keyword, dense and fused retrieval on Cranfield",
        *("", wrapped(made), "", wrapped(about), ""),
        "| metric | " + " | ".join(NAMES[path.split(".")[0]] for path in document["runs"]) + " |",
        "| --- |" + " --: |" * len(document["runs"]),
    ]
    for name in first["metrics"]:
        cells = [estimate(run["metrics"][name]) for run in document["runs"].values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *_bounds(document), *_differences(document)]
    return "\n".join(lines) + "\n"


def _bounds(document: Document) -> list[str]:
    runs = document["runs"]
    ends = [
        f"{NAMES[path.split('.')[0]]} {found['low']['value']:.3f} to {found['high']['value']:.3f}"
        for path, run in runs.items()
        for found in [run["bounds"]["ndcg@10"]]
    ]
    told = (
        "What was never judged counts as not relevant, as trec_eval has it (but for bpref, which "
        "passes over it), and judged@10 says how much of the first 10 was judged. `--bounds` tells "
        "between which values a mean could lie, had the rest been judged too. Of ndcg@10: "
        f"{', '.join(ends)}."
    )
    return [wrapped(told), ""]


def _differences(document: Document) -> list[str]:
    compare = document["compare"]
    a = compare["a"]
    tests = sum(len(one["metrics"]) for one in compare["comparisons"])
    told = (
        f"How much higher {NAMES[a.split('.')[0]]} is, query by query. p is of the randomisation "
        f"test, by Holm over all {tests} tests; d_z is Cohen's; detectable is the difference that "
        "so many queries show in 4 of 5 repetitions."
    )
    lines = [
        *(wrapped(told), ""),
        "| metric | than | difference | p Holm | d_z | detectable | better / worse / same |",
        "| --- | --- | --: | --: | --: | --: | --: |",
    ]
    own = document["runs"][a]["per_query"]
    for one in compare["comparisons"]:
        other = document["runs"][one["b"]]["per_query"]
        for name, found in one["metrics"].items():
            each = [own[query][name] - other[query][name] for query in own]
            turned = (sum(d > 0 for d in each), sum(d < 0 for d in each), sum(d == 0 for d in each))
            difference = found["difference"]
            low, high = -difference["high"], -difference["low"]
            lines.append(
                f"| {name} | {NAMES[one['b'].split('.')[0]]} "
                f"| {-difference['value']:+.3f} [{low:+.3f}, {high:+.3f}] "
                f"| {p_value(found['p_holm'])} | {-found['effect']['value']:+.2f} "
                f"| {found['detectable']:.3f} | {' / '.join(map(str, turned))} |"
            )
    return lines


def wrapped(text: str) -> str:
    """A paragraph in lines of 100 characters."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def estimate(found: Mapping[str, Any]) -> str:
    """Value and interval."""
    return f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def p_value(p: float) -> str:
    """Three digits, or less than that."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def main() -> None:
    """Search, score, check, and print the page or write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    collection = read(given.data)
    runs = asyncio.run(search(collection, open_embedder("minilm", cache=given.cache)))
    with tempfile.TemporaryDirectory() as passing:
        folder = given.keep or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        paths = write_runs(runs, folder)
        qrels = given.data / "qrels.tsv"
        document = scored(qrels, paths, [*METRICS, JUDGED], "--bounds")
        compared = check(qrels, paths, document)
    versions = ", ".join(f"{name} {version(name)}" for name in ("misslink", "bm25s"))
    made = (
        f"Made by `python benchmarks/retrieval/cranfield.py --write` on {dt.datetime.now(dt.UTC).date()}: "
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"{versions}."
    )
    told = page(document, collection, compared, made)
    print(told)
    if given.write:
        TARGET.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
