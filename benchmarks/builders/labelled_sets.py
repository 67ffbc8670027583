"""Label sets to hold judges against: the reduced ones, or folders that  misslink import  wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.io.jsonl import read_objects
from misslink.io.label_sets import ImportOptions
from misslink.io.labels import Labels, read_labels
from misslink.io.trace_formats import read_recording
from misslink.registry import importers
from misslink.types import Case, Trace

DATA = Path(__file__).parents[3] / "shared" / "data"
FITTED_ON = Path("faithfulness", "ragtruth_qa_dev.jsonl")
SETS = {  # of the folder of reduced sets
    "RAGTruth QA, dev": ("ragtruth", FITTED_ON),
    "BEGIN, dev": ("begin", Path("faithfulness", "begin_dev.jsonl")),
    "CLAPNQ, dev": ("clapnq", Path("faithfulness", "clapnq_dev.jsonl")),
    "RAGChecker pairs, dev": ("ragchecker", Path("judges", "ragchecker_pairs_dev.jsonl")),
    "TREC RAG 2025": ("trec-rag", Path("judges", "rag25_human_vs_umbrela2.tsv")),
}
BAD = {  # what is to be found in each metric
    "faithfulness": "unfaithful",
    "context_relevance": "no answer in the passage",
    "context_sufficiency": "no answer in the passage",
    "relevance": "not relevant",
    "preference": "A is better",
}


@dataclass(frozen=True)
class Labelled:
    """A label set, whoever reads it."""

    name: str
    labels: Labels
    cases: Sequence[Case] = ()
    sides: Sequence[Mapping[str, Trace]] = ()  # one app's traces, or those of A and of B
    own: Sequence[Mapping[str, Any]] = ()  # verdicts that came with it

    @property
    def metrics(self) -> list[str]:
        """Those of its metrics that are a question of two answers."""
        return [metric for metric in BAD if metric in self.labels.metrics]

    @property
    def fitted(self) -> bool:
        """Whether the heuristic judges were, or may have been, fitted on some of it."""
        if not any(label.annotator == "ragtruth" for label in self.labels.items):
            return False
        known = fitted_ids()
        return not known or not known.isdisjoint(case.id for case in self.cases)


def fitted_ids() -> frozenset[str]:
    """The answers that the heuristic judges were fitted on; none where the file is not here."""
    path = DATA / FITTED_ON
    if not path.exists():
        return frozenset()
    return frozenset(case.id for case in reduced("", "ragtruth", path).cases)


def reduced(name: str, importer: str, path: Path) -> Labelled:
    """Read one of the reduced sets by its importer."""
    found = importers.get(importer)([path], ImportOptions())
    cases = found.goldsets.get("goldset.jsonl", ())
    sides = [{trace.case_id: trace for trace in each} for each in found.traces.values()]
    return Labelled(name, read_labels(found.labels), cases, sides, found.verdicts)


def imported(folder: Path) -> Labelled:
    """Read a folder that `misslink goldset import` wrote."""
    names = [n for n in ("traces", "traces_a", "traces_b") if (folder / f"{n}.jsonl").exists()]
    gold, own = folder / "goldset.jsonl", folder / "verdicts.jsonl"
    return Labelled(
        folder.name,
        read_labels(folder / "labels.jsonl"),
        read_goldset(gold).cases if gold.exists() else (),
        [read_recording(folder / f"{name}.jsonl").traces for name in names],
        [row.data for row in read_objects(own)] if own.exists() else (),
    )


def read(places: Sequence[Path]) -> Iterator[Labelled]:
    """Read every set that is named."""
    for place in places:
        if (place / "labels.jsonl").exists():
            yield imported(place)
            continue
        there = {name: (kind, place / path) for name, (kind, path) in SETS.items()}
        if not any(path.exists() for _, path in there.values()):
            raise InputError(
                "there is neither a set of labels in it nor the reduced ones; name a folder that "
                " misslink import  wrote",
                path=place,
            )
        for name, (kind, path) in there.items():
            if path.exists():
                yield reduced(name, kind, path)
