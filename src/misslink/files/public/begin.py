"""BEGIN: replies of dialogue models, each to be attributed to one piece of knowledge.

The public files are tab-separated with the header ``model_name, data_source, knowledge, message,
response, begin_label``, one line a reply and nothing quoted (google/BEGIN-dataset on GitHub, the
release of June 2022; the one of 2021 has other columns). The reduced form is JSON Lines with
``contexts, answer, human_label``.

Source: Dziri et al., Evaluating Attribution in Dialogue Systems: The BEGIN Benchmark, TACL 2022;
the labels are CC BY 4.0, the texts as in the sets they are from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from misslink.errors import InputError
from misslink.files.jsonl import read_objects, read_text
from misslink.files.public.fields import Entry, passages, split_of
from misslink.files.public.imported import (
    CALIBRATE,
    EVALUATE,
    SKIPPED,
    Imported,
    Wanted,
    none_left,
    refuse_unasked,
)
from misslink.registry import importers
from misslink.types import Case, Trace

__all__ = ["begin"]

_NAME = "BEGIN"
_FORMS = "a file such as begin_dev_wow.tsv"
_COLUMNS = ("model_name", "data_source", "knowledge", "message", "response", "begin_label")
_LABELS = {"fully attributable": 1, "not fully attributable": 0, "generic": 0}
_REDUCED = {
    "model_name": "model",
    "data_source": "source",
    "message": "previous_turn",
    "response": "answer",
    "begin_label": "human_label",
}
_NOTHING_SAID = "..."  # a case needs a question; this one has no word that could support anything


@importers.register("begin")
def begin(paths: Sequence[Path], wanted: Wanted) -> Imported:
    """Read BEGIN: its TSV files, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        The split is told by the file's name, as in begin_dev_wow.tsv, or by a field ``split``.
    wanted : Wanted

    Returns
    -------
    Imported
        A case a reply, asked by the turn before it. Fully attributable is 1; not fully attributable
        and generic are 0, as in the paper's two-way reading, and the tag ``begin_label`` tells them
        apart. An id is the file's name and the line of the reply, from 0.

    Raises
    ------
    InputError
        A file is something else or broken, a label is unknown, a reply stands twice, or nothing is
        of the wanted split.
    """
    refuse_unasked(wanted, _NAME, split=True)
    cases: dict[str, Case] = {}
    traces, labels = [], []
    left_out: Counter[str] = Counter()
    splits = set()
    empty = 0
    for case_id, entry, names in (found for path in paths for found in _entries(path)):
        split = entry.word("split") or split_of(entry.path)
        splits.add(split or "")
        if wanted.split not in {None, split}:
            left_out[SKIPPED] += 1
            continue
        if case_id in cases:
            raise entry.wrong(f"the reply '{case_id}' stands twice; name each file once")
        said = entry.text(names["begin_label"])
        label = _LABELS.get(said.strip().casefold())
        if label is None:
            problem = f"'{said[:40]}' is no label; known: {', '.join(_LABELS)}"
            raise entry.wrong(problem, names["begin_label"])
        before = entry.text(names["message"], blank=True)
        empty += not before.strip()
        tags = {
            "model": entry.word(names["model_name"]),
            "source": entry.word(names["data_source"]),
        }
        tags |= {"split": split, "begin_label": said.strip()}
        cases[case_id] = Case(
            id=case_id,
            question=before if before.strip() else _NOTHING_SAID,
            tags={name: value for name, value in tags.items() if value},
        )
        held = entry.texts("contexts") if entry.has("contexts") else [entry.text("knowledge")]
        found = passages(case_id, held)
        answer = entry.text(names["response"], blank=True)
        ids = tuple(passage.id for passage in found)
        traces.append(Trace(case_id=case_id, retrieved=found, prompted=ids, answer=answer))
        labels.append(
            {"case_id": case_id, "metric": "faithfulness", "label": label, "annotator": "begin"}
        )
    if not cases:
        raise none_left(wanted, splits - {""})
    return Imported(
        title="BEGIN: replies of dialogue models, labelled for attribution to given knowledge",
        source="Dziri et al., The BEGIN Benchmark, TACL 2022, "
        "https://github.com/google/BEGIN-dataset",
        licence="CC BY 4.0 (labels); the texts as in Wizard of Wikipedia, CMU DoG and Topical Chat",
        labels=labels,
        goldsets={"goldset.jsonl": tuple(cases.values())},
        traces={"traces.jsonl": traces},
        notes=(
            (
                "Fully attributable is 1, not fully attributable and generic are 0; the tag "
                "begin_label of a case tells them apart."
            ),
            "The question is the turn before the reply"
            + (f"; where there is none ({empty}) it is '{_NOTHING_SAID}'." if empty else "."),
        ),
        commands=(
            EVALUATE,
            CALIBRATE,
        ),
        left_out=left_out,
    )


def _entries(path: Path) -> Iterator[tuple[str, Entry, dict[str, str]]]:
    """Each reply with its id and what its fields are called."""
    text = read_text(path)
    if text.lstrip()[:1] in {"{", "["}:
        for line, row in read_objects(path):
            entry = Entry(row, path, line)
            if not entry.has("contexts", "answer", "human_label"):
                raise entry.unknown(_NAME, _FORMS)
            yield entry.id("id"), entry, _REDUCED
        return
    yield from _of_tsv(path, text)


def _of_tsv(path: Path, text: str) -> Iterator[tuple[str, Entry, dict[str, str]]]:
    lines = text.split("\n")  # not splitlines: a text may hold U+2028
    header = [name.strip().casefold().replace(" ", "_") for name in lines[0].split("\t")]
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        raise InputError(
            f"this is not of {_NAME} (the first line does not name {', '.join(missing)}); give "
            f"{_FORMS} of the release of June 2022",
            path=path,
            line=1,
        )
    same = {name: name for name in _COLUMNS}
    count = 0
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("\t")
        if len(fields) != len(header):
            raise InputError(
                f"{len(fields)} fields where the first line names {len(header)}; download the "
                "file again",
                path=path,
                line=number,
            )
        row = dict(zip(header, fields, strict=True))
        yield f"{path.stem}-{count}", Entry(row, path, number), same
        count += 1
    if not count:
        raise InputError("there is no line below the names", path=path)
