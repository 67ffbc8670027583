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
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, Field

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem, read_text
from misslink.io.label_sets import importer
from misslink.registry import importers
from misslink.types import Case

_EXPECTED_FILES = "a file such as begin_dev_wow.tsv"
_COLUMNS = ("model_name", "data_source", "knowledge", "message", "response", "begin_label")
_LABELS = {"fully attributable": 1, "not fully attributable": 0, "generic": 0}
_EMPTY_TURN = "..."  # a case needs a question; this one has no word that could support anything


def _parse_label(text: str) -> str:
    if text.strip().casefold() not in _LABELS:
        raise ValueError(f"this is not a label; known: {', '.join(_LABELS)}")
    return text.strip()


def _parse_knowledge(value: Any) -> Any:
    return [importer.require_text(value)] if isinstance(value, str) else value


class _Reply(BaseModel):
    id: importer.Id
    model: importer.Word = Field(None, validation_alias=AliasChoices("model_name", "model"))
    source: importer.Word = Field(None, validation_alias=AliasChoices("data_source", "source"))
    split: importer.Word = None
    knowledge: Annotated[list[str], BeforeValidator(_parse_knowledge)] = Field(
        validation_alias=AliasChoices("knowledge", "contexts")
    )
    turn: str = Field(validation_alias=AliasChoices("message", "previous_turn"))
    answer: str = Field(validation_alias=AliasChoices("response", "answer"))
    label: Annotated[str, AfterValidator(_parse_label)] = Field(
        validation_alias=AliasChoices("begin_label", "human_label")
    )


@importers.register("begin")
def import_begin(
    paths: Sequence[Path], options: importer.ImportOptions
) -> importer.ImportedLabelSet:
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
    options.require_support("BEGIN", split=True)
    builder = importer.LabelSetBuilder(options, "begin")
    empty = 0
    for path in paths:
        for row, reply in _iter_replies(path):
            split = reply.split or importer.detect_split(path)
            if not builder.selects(split):
                continue
            empty += not reply.turn.strip()
            tags = {"model": reply.model, "source": reply.source, "split": split}
            tags["begin_label"] = reply.label
            case = Case(
                id=reply.id,
                question=reply.turn if reply.turn.strip() else _EMPTY_TURN,
                tags={name: value for name, value in tags.items() if value},
            )
            builder.add(row, case, importer.number_passages(case.id, reply.knowledge), reply.answer)
            builder.label(case.id, "faithfulness", _LABELS[reply.label.casefold()])
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
    )


def _iter_replies(path: Path) -> Iterator[tuple[SourceItem, _Reply]]:
    text = read_text(path)
    if text.lstrip()[:1] in {"{", "["}:
        forms = {_Reply: ("contexts", "answer", "human_label")}
        yield from importer.read_rows_of(path, "BEGIN", _EXPECTED_FILES, forms)
        return
    names = text.partition("\n")[0].split("\t")
    header = [name.strip().casefold().replace(" ", "_") for name in names]
    if missing := [name for name in _COLUMNS if name not in header]:
        raise InputError(
            f"this is not of BEGIN (the first line does not name {', '.join(missing)}); give "
            f"{_EXPECTED_FILES} of the release of June 2022",
            path=path,
            line=1,
        )
    for count, row in enumerate(importer.read_tsv(path, text, header)):
        row.data["id"] = f"{path.stem}-{count}"
        yield row, row.parse(_Reply)
