"""Whether two passages can stand side by side in one document, as far as their signs tell."""

from __future__ import annotations

import re

from misslink.types import Passage

__all__ = ["may_adjoin"]

_DOCUMENT = ("source", "document_id", "file_path", "file_name", "filename")
_START = "start_index"  # a character offset, where LangChain's splitters are asked for it
_NUMBER = ("chunk", "chunk_index", "chunk_id", "chunk_number", "chunk_no", "seq_num")
# 'compound#12', 'guide.pdf:6:2'; more digits than these are a hash or a part of a UUID.
_NUMBERED = re.compile(r"(.*?)((?:[#:_/|-]\d{1,6})+)", re.DOTALL)
_NEAR = 2  # chunks that overlap by half share text with the next but one
_TRIMMED = 40  # characters of blank that a splitter may have dropped between two chunks


def may_adjoin(first: Passage, second: Passage) -> bool:
    """Whether the text of `second` can go on where that of `first` ends, or overlap its end.

    Only what both passages carry is held against them: another document (``source`` and the like
    in the metadata, else what stands before the numbers of ids such as 'guide#12'), or a place in
    the same document that is not near and after. Places are compared where nothing else differs,
    since splitters often count anew on every page or under every heading.

    Examples
    --------
    >>> one, next_, other = (Passage(id=i, rank=1) for i in ("a#12", "a#13", "b#13"))
    >>> may_adjoin(one, next_), may_adjoin(next_, one), may_adjoin(one, other)
    (True, False, False)
    """
    same_document = _same_document(first, second)
    if same_document is False:
        return False
    one, other = _parts(first.id), _parts(second.id)
    if one is not None and other is not None:
        if one[0] == other[0]:
            if one[1][:-1] == other[1][:-1] and not _near(one[1][-1], other[1][-1]):
                return False
        elif not same_document:
            return False
    return _places_fit(first, second)


def _same_document(first: Passage, second: Passage) -> bool | None:
    """By the metadata; None where it does not tell."""
    for key in _DOCUMENT:
        one, other = first.metadata.get(key), second.metadata.get(key)
        if one is not None and other is not None:
            return one == other
    return None


def _parts(name: str) -> tuple[str, list[int]] | None:
    """What an id begins with, and the numbers it ends with; None for an id of another kind."""
    found = _NUMBERED.fullmatch(name)
    if found is None or not found[1]:
        return None
    return found[1], [int(number) for number in re.findall(r"\d+", found[2])]


def _places_fit(first: Passage, second: Passage) -> bool:
    keys = first.metadata.keys() | second.metadata.keys()
    others = keys - {_START, *_NUMBER}
    if any(first.metadata.get(key) != second.metadata.get(key) for key in others):
        return True
    one, other = _whole(first, _START), _whole(second, _START)
    if one is not None and other is not None:
        return one < other <= one + len(first.text) + _TRIMMED
    for key in _NUMBER:
        one, other = _whole(first, key), _whole(second, key)
        if one is not None and other is not None:
            return _near(one, other)
    return True


def _whole(passage: Passage, key: str) -> int | None:
    value = passage.metadata.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _near(one: int, other: int) -> bool:
    return 0 < other - one <= _NEAR
