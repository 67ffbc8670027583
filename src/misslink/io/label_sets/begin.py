"""BEGIN: replies of dialogue models, each to be attributed to one piece of knowledge.

The public files are tab-separated with the header ``model_name, data_source, knowledge, message,
response, begin_label``, one line per reply without quotes (google/BEGIN-dataset on GitHub, release
of June 2022; that of 2021 has other columns). The reduced form is JSON Lines with ``contexts,
answer, human_label``.

Source: Dziri et al., Evaluating Attribution in Dialogue Systems: The BEGIN Benchmark, TACL 2022;
the labels are CC BY 4.0, the texts as in the sets they are from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from misslink.errors import InputError
from misslink.io.jsonl import read_objects, read_text
from misslink.io.label_sets.importer import (
    CALIBRATE_COMMAND,
    EVALUATE_COMMAND,
    ImportedLabelSet,
    ImportOptions,
    LabelSetBuilder,
    SourceRow,
    detect_split,
    number_passages,
    read_tsv,
    reject_unsupported_options,
)
from misslink.registry import importers
from misslink.types import Case

_EXPECTED_FILES = "a file such as begin_dev_wow.tsv"
_COLUMNS = ("model_name", "data_source", "knowledge", "message", "response", "begin_label")
_REDUCED_COLUMNS = ("model", "source", "contexts", "previous_turn", "answer", "human_label")
_LABELS = {"fully attributable": 1, "not fully attributable": 0, "generic": 0}
_EMPTY_TURN = "..."  # a case needs a question; this one has no word that could support anything


@importers.register("begin")
def import_begin(paths: Sequence[Path], options: ImportOptions) -> ImportedLabelSet:
    """Read BEGIN: its TSV files, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        The file's name or a field ``split`` gives the split, as in begin_dev_wow.tsv.
    options : ImportOptions

    Returns
    -------
    ImportedLabelSet
        A case per reply; its question is the turn before. Fully attributable is 1; not fully
        attributable and generic are 0, as in the paper's two-way reading, and the tag
        ``begin_label`` tells them apart. An id is the file's name and the number of the reply,
        from 0.

    Raises
    ------
    InputError
        A file is something else or broken, a label is unknown, a reply is repeated, or nothing is
        of the selected split.
    """
    reject_unsupported_options(options, "BEGIN", split=True)
    builder = LabelSetBuilder(options, "begin")
    empty = 0
    for case_id, row, columns in (entry for path in paths for entry in _iter_rows(path)):
        model, source, knowledge, message, response, label_column = columns
        split = row.word("split") or detect_split(row.path)
        if not builder.selects(split):
            continue
        if case_id in builder.cases:
            raise row.repeated("reply", case_id)
        text = row.text(label_column).strip()
        label = _LABELS.get(text.casefold())
        if label is None:
            problem = f"'{text[:40]}' is no label; known: {', '.join(_LABELS)}"
            raise row.wrong(problem, label_column)
        turn = row.text(message, blank=True)
        empty += not turn.strip()
        tags = {
            "model": row.word(model),
            "source": row.word(source),
            "split": split,
            "begin_label": text,
        }
        case = Case(
            id=case_id,
            question=turn if turn.strip() else _EMPTY_TURN,
            tags={name: value for name, value in tags.items() if value},
        )
        texts = row.texts(knowledge) if knowledge == "contexts" else [row.text(knowledge)]
        builder.add(case, number_passages(case_id, texts), row.text(response, blank=True))
        builder.label(case_id, "faithfulness", label)
    return builder.finish(
        title="BEGIN: replies of dialogue models, labelled for attribution to given knowledge",
        source="Dziri et al., The BEGIN Benchmark, TACL 2022, "
        "https://github.com/google/BEGIN-dataset",
        licence="CC BY 4.0 (labels); the texts as in Wizard of Wikipedia, CMU DoG and Topical Chat",
        notes=(
            (
                "Fully attributable is 1, not fully attributable and generic are 0; the tag "
                "begin_label of a case tells them apart."
            ),
            "The question is the turn before the reply"
            + (f"; where there is none ({empty}) it is '{_EMPTY_TURN}'." if empty else "."),
        ),
        commands=(EVALUATE_COMMAND, CALIBRATE_COMMAND),
    )


def _iter_rows(path: Path) -> Iterator[tuple[str, SourceRow, tuple[str, ...]]]:
    """Each reply with its id and the names of its fields in the order of `_COLUMNS`."""
    text = read_text(path)
    if text.lstrip()[:1] in {"{", "["}:
        for line, entry in read_objects(path):
            row = SourceRow(entry, path, line)
            if not row.has("contexts", "answer", "human_label"):
                raise row.unknown("BEGIN", _EXPECTED_FILES)
            yield row.id("id"), row, _REDUCED_COLUMNS
        return
    lines = text.split("\n")  # not splitlines: a text may hold U+2028
    header = [name.strip().casefold().replace(" ", "_") for name in lines[0].split("\t")]
    if missing := [name for name in _COLUMNS if name not in header]:
        raise InputError(
            f"this is not of BEGIN (the first line does not name {', '.join(missing)}); give "
            f"{_EXPECTED_FILES} of the release of June 2022",
            path=path,
            line=1,
        )
    for count, row in enumerate(read_tsv(path, lines, header)):
        yield f"{path.stem}-{count}", row, _COLUMNS
