"""BEIR folders: which file of one holds the qrels."""

from __future__ import annotations

from pathlib import Path

from misslink.errors import InputError

__all__ = ["beir_qrels"]


def beir_qrels(folder: Path) -> Path:
    """The qrels of a BEIR folder: those of its test split, or of the only split there is.

    Parameters
    ----------
    folder : Path
        With ``qrels/SPLIT.tsv``, or ``qrels.tsv``; or the folder ``qrels`` itself.

    Raises
    ------
    InputError
        There are none, or those of several splits and none is the test split.
    """
    places = [folder / "qrels", folder]
    for place in places:
        found = sorted([*place.glob("*.tsv"), *place.glob("*.tsv.gz")])
        test = [path for path in found if path.name.split(".")[0] in {"test", "qrels"}]
        if len(test or found) == 1:
            return (test or found)[0]
        if found:
            names = ", ".join(path.name for path in found)
            raise InputError(f"there are several qrels in it ({names}); name one", path=place)
    raise InputError(
        "this folder holds no qrels (qrels/test.tsv, as BEIR has it); name the file", path=folder
    )
