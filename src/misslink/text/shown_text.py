"""Find the parts of texts that a prompt shows: each stretch of it belongs to the text that explains most of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, pairwise, zip_longest
from typing import NamedTuple

from misslink.text.normalization import common_start, fold, fold_with_offsets

_GRAM = 5  # words; texts that share one are compared there
_MAX_PLACES = 32  # of a gram; one that stands at more says nothing of which text is shown
_MAX_COPIES = 100  # of one text
_MIN_WORDS = 8  # of a stretch, unless it has a fifth of its text: fewer are a phrase
_MIN_SHARE = 0.2
_MAX_INSERTED = 12  # words of the app between two parts of a stretch
_MAX_REPLACED = 3  # words; more are another text
# Letters of scripts without blanks are words of their own, so that a cut is found to the letter.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f"
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+|[{_UNSPACED}]")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_HALF_WORD = re.compile(r"\w+(?![\w ])")
# What an app adds to the lines of a passage: numbers, and tags.
_MARKS = (
    re.compile(r"</?[A-Za-z][^<>]{0,80}>"),
    re.compile(r"(?:\A|(?<=\n))[ \t]*[(\[]?(?:\d{1,3}|[a-z])[.)\]](?=\s)"),
)
# A tool's result may be shown as JSON or as a repr.
_ESCAPED = re.compile(r"\\+(?:[nrt]|([\"'/])|u([0-9a-fA-F]{4}))")


class Piece(NamedTuple):
    """A part that is shown: character offsets, and its text (another one where it was altered)."""

    start: int
    end: int
    text: str


def find_shown(
    texts: Sequence[str], prompts: Sequence[str], other_texts: Sequence[str] = ()
) -> list[tuple[Piece, ...]]:
    """Return of each text the pieces that the prompts show, in order; none of one that is not shown.

    A text that is shown whole is one piece. Blanks, bullets, numbers and markup that the prompts
    add are no alteration; up to three words that they have in place of others are.

    Parameters
    ----------
    texts : sequence of str
        The best first: of two that are the same where a prompt is cut, the first is shown.
    prompts : sequence of str
    other_texts : sequence of str
        Such as the question: what they explain is shown of no text that shares its words.
    """
    read = [_unescape(prompt) if "\\" in prompt else prompt for prompt in prompts]
    if _are_whole_and_apart(texts, read):
        return [(Piece(0, len(text), text),) for text in texts]
    prompt = _Words("\n\n".join(read))
    units = [_Words(text) for text in texts]
    others = [_Words(text) for text in other_texts]
    owned = _own_stretches(units, others, prompt)
    return [
        tuple(_pieces(unit, stretches, prompt)) if stretches else ()
        for unit, stretches in zip(units, owned, strict=False)
    ]


def _unescape(text: str) -> str:
    def plain(escaped: re.Match[str]) -> str:
        return escaped[1] or (chr(int(escaped[2], 16)) if escaped[2] else " ")

    joined = _ESCAPED.sub(plain, text).encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "replace")


def _are_whole_and_apart(texts: Sequence[str], prompts: Sequence[str]) -> bool:
    """Whether each text is shown once, whole, and none within another: most are, and this is quick."""
    folded = "\n".join(map(fold, prompts))
    spans = []
    for text in texts:
        wanted = fold(text)
        start = folded.find(wanted) if wanted else -1
        end = start + len(wanted)
        before, after = folded[max(start - 1, 0) : start], folded[end : end + 1]
        if start < 0 or before.isalnum() or after.isalnum():
            return False
        spans.append((start, end))
    return all(first[1] <= second[0] for first, second in pairwise(sorted(spans)))


class _Words:
    """The words of a text, folded, and where they stand in it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _readable(self) -> str:
        """The text with blanks for escapes."""
        return _ESCAPED.sub(_blank_escape, self.text) if "\\" in self.text else self.text

    @cached_property
    def words(self) -> list[str]:
        folded = fold(self._readable)
        return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Character offsets of each word."""
        text = self._readable
        found = list(_WORD.finditer(text))
        read = [word[0].lower() for word in found]
        # Folding joins what a hyphen at the end of a line cuts, and takes some characters apart.
        if len(read) == len(self.words) and all(
            one == other or not one.isascii() for one, other in zip(read, self.words, strict=True)
        ):
            return [word.span() for word in found]
        folded, places = fold_with_offsets.__wrapped__(text)
        spans = map(re.Match.span, _WORD.finditer(folded))
        return [(places[start], places[end - 1] + 1) for start, end in spans]

    @cached_property
    def places(self) -> Sequence[int]:
        """The number of each word."""
        return range(len(self.words))

    def readings(self) -> Iterator[_Words]:
        """The words, then those outside of tags, then those without the numbers of lines."""
        yield self
        for marks in _MARKS:
            read = _Words(marks.sub(_blank, self.text))
            if read.text != self.text:
                number = {start: place for place, (start, _) in enumerate(self.spans)}
                # A word may go on behind a tag.
                read.places = places = [number.get(start, -1) for start, _ in read.spans]
                if -1 not in places:
                    yield read

    @cached_property
    def joined(self) -> str:
        return f" {' '.join(self.words)} "

    def grams(self) -> Iterator[tuple[str, ...]]:
        return zip(*(self.words[start:] for start in range(_GRAM)), strict=False)


def _blank(mark: re.Match[str]) -> str:
    return " " * len(mark[0])


def _blank_escape(escaped: re.Match[str]) -> str:
    return escaped[0] if escaped[2] else " " * len(escaped[0])


class _Block(NamedTuple):
    """Words of a text from ``start`` to ``end``, and where they stand in the prompt."""

    start: int
    end: int
    place: int
    place_end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Blocks of one text that follow each other in the prompt; ``size`` is in words."""

    owner: int
    blocks: tuple[_Block, ...]
    size: int
    is_whole: bool

    @property
    def place(self) -> tuple[int, int]:
        return self.blocks[0].place, self.blocks[-1].place_end


def _own_stretches(
    texts: Sequence[_Words], others: Sequence[_Words], prompt: _Words
) -> list[list[_Stretch]]:
    """The stretches that each text owns, then those of the others.

    The longest stretch comes first. Of texts that explain the same one, it is that of a text that
    is there whole, then of one of the others, then of one that owns none yet, then of the first.
    """
    units, count = [*texts, *others], len(texts)
    stretches: list[_Stretch] = []
    lacking = [number for number, unit in enumerate(units) if unit.words]
    for reading in prompt.readings():
        if not lacking:
            break
        whole = [
            stretch
            for number in lacking
            for stretch in _whole_stretches(number, units[number], reading)
        ]
        stretches += whole
        lacking = sorted({*lacking} - {stretch.owner for stretch in whole})
        places = _gram_places([units[number] for number in lacking], reading)
        for number in lacking if places else ():
            blocks = _matching_blocks(units[number].words, reading, places)
            stretches += _chain_blocks(number, blocks, len(units[number].words), reading.places)
    owned: list[list[_Stretch]] = [[] for _ in units]
    taken = bytearray(len(prompt.words))
    stretches.sort(key=lambda stretch: (-stretch.size, stretch.place))
    for _, equal in groupby(stretches, key=lambda stretch: (-stretch.size, stretch.place)):
        stretch = min(
            equal,
            key=lambda one: (
                not one.is_whole,
                not one.is_whole and one.owner < count,
                bool(owned[one.owner]),
                one.owner,
            ),
        )
        new = sum(taken.count(0, block.place, block.place_end) for block in stretch.blocks)
        if _is_enough(new, stretch, len(units[stretch.owner].words)):
            owned[stretch.owner].append(stretch)
            for block in stretch.blocks:
                taken[block.place : block.place_end] = b"\1" * (block.place_end - block.place)
    return owned


def _is_enough(new: int, stretch: _Stretch, length: int) -> bool:
    """Whether words that no other text explains show a text, or are a phrase that texts share."""
    if stretch.is_whole:
        return new >= min(stretch.size, _MIN_WORDS)
    return new >= _GRAM and (new >= _MIN_WORDS or new >= _MIN_SHARE * length)


def _whole_stretches(number: int, unit: _Words, prompt: _Words) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    size, searched, place = len(unit.words), 0, 0
    while (
        len(stretches) < _MAX_COPIES and (start := prompt.joined.find(unit.joined, searched)) >= 0
    ):
        place += prompt.joined.count(" ", searched, start)
        places = prompt.places[place], prompt.places[place + size - 1] + 1
        block = _Block(0, size, *places)
        stretches.append(_Stretch(number, (block,), size, is_whole=True))
        searched = start + len(unit.joined) - 1
        place += size
    return stretches


def _gram_places(units: Sequence[_Words], prompt: _Words) -> dict[tuple[str, ...], list[int]]:
    """Where the prompt has the grams of the texts, unless they are all over it."""
    wanted = {gram for unit in units for gram in unit.grams()}
    places: dict[tuple[str, ...], list[int]] = {}
    for place, gram in enumerate(prompt.grams() if wanted else ()):
        if gram in wanted:
            places.setdefault(gram, []).append(place)
    return {gram: found for gram, found in places.items() if len(found) <= _MAX_PLACES}


def _matching_blocks(
    words: Sequence[str], reading: _Words, places: dict[tuple[str, ...], list[int]]
) -> list[_Block]:
    """The longest runs of words that a text shares with the prompt."""
    blocks, prompt = [], reading.words
    reached: dict[int, int] = {}  # by diagonal, the end of the block on it
    grams = enumerate(zip(*(words[n:] for n in range(_GRAM)), strict=False))
    for start, found in [(start, places[gram]) for start, gram in grams if gram in places]:
        for place in found:
            if reached.get(place - start, 0) > start:
                continue
            end, place_end = start + _GRAM, place + _GRAM
            while end < len(words) and place_end < len(prompt) and words[end] == prompt[place_end]:
                end, place_end = end + 1, place_end + 1
            first, first_place = start, place
            while first and first_place and words[first - 1] == prompt[first_place - 1]:
                first, first_place = first - 1, first_place - 1
            reached[place - start] = end
            blocks.append(_Block(first, end, first_place, place_end))
    return blocks


def _chain_blocks(
    number: int, blocks: list[_Block], length: int, places: Sequence[int]
) -> Iterator[_Stretch]:
    """Stretches of blocks in the order of the text, each word of the prompt in the longest one."""
    kept: list[_Block] = []
    taken = bytearray(max((block.place_end for block in blocks), default=0))
    for block in sorted(blocks, key=lambda block: (-block.size, block.place)):
        start = taken.find(0, block.place, block.place_end)
        end = taken.rfind(0, block.place, block.place_end) + 1
        if start >= 0 and 1 not in taken[start:end]:
            taken[start:end] = b"\1" * (end - start)
            first = block.start + start - block.place
            kept.append(_Block(first, first + end - start, start, end))
    kept.sort(key=lambda block: block.place)
    run: list[_Block] = []
    for block, after in zip_longest(kept, kept[1:]):
        run.append(block)
        is_near = after is not None and after.place - block.place_end <= _MAX_INSERTED
        if not is_near or after.start < block.end:
            size = sum(one.size for one in run)
            read = [
                one._replace(place=places[one.place], place_end=places[one.place_end - 1] + 1)
                for one in run
            ]
            yield _Stretch(number, tuple(read), size, is_whole=size == length)
            run = []


def _pieces(unit: _Words, stretches: Sequence[_Stretch], prompt: _Words) -> Iterator[Piece]:
    """The parts of a text that stretches of the prompt show."""
    covered = bytearray(len(unit.words))
    blocks = [block for stretch in stretches for block in stretch.blocks]
    for block in blocks:
        covered[block.start : block.end] = b"\1" * block.size
    replaced = dict(_fill_gaps(unit, stretches, prompt, covered))
    if 0 not in covered and not replaced:
        yield Piece(0, len(unit.text), unit.text)
        return
    for is_shown, places in groupby(range(len(covered)), key=covered.__getitem__):
        if is_shown:
            run = list(places)
            start, end = _extent(unit, run[0], run[-1], prompt)
            reached = start
            text = ""
            for other in filter(None, map(replaced.get, run)):
                text += unit.text[reached : other.start] + other.text
                reached = other.end
            yield Piece(start, end, text + unit.text[reached:end])


def _fill_gaps(
    unit: _Words, stretches: Sequence[_Stretch], prompt: _Words, covered: bytearray
) -> Iterator[tuple[int, Piece]]:
    """Cover what is only marked up between two blocks; yield what the prompt has in place of words."""
    for before, after in chain.from_iterable(pairwise(stretch.blocks) for stretch in stretches):
        start, end, place, place_end = before.end, after.start, before.place_end, after.place
        gap, other = unit.words[start:end], prompt.words[place:place_end]
        is_same = _is_same(gap, other)
        is_replaced = bool(other) and max(len(gap), len(other)) <= _MAX_REPLACED
        if not gap or 1 in covered[start:end] or not (is_same or is_replaced):
            continue
        covered[start:end] = b"\1" * len(gap)
        if not is_same:
            text = prompt.text[prompt.spans[place][0] : prompt.spans[place_end - 1][1]]
            yield start, Piece(unit.spans[start][0], unit.spans[end - 1][1], text)


def _is_same(gap: Sequence[str], other: Sequence[str]) -> bool:
    """Whether words of a text stand in other words of the prompt, in pieces or between marks."""
    rest = iter(other)
    return "".join(gap) == "".join(other) or all(word in rest for word in gap)


def _extent(unit: _Words, first: int, last: int, prompt: _Words) -> tuple[int, int]:
    """Where a part of words is: with the marks around it, and half of the next word, as in the prompt."""
    start, end = unit.spans[first][0], unit.spans[last][1]
    before, limit = unit.spans[first - 1][1] if first else 0, len(unit.text)
    if last + 1 < len(unit.words):
        limit = unit.spans[last + 1][0]
    place = prompt.text.find(unit.text[start:end])
    if place >= 0:
        place_end = place + end - start
        marks = common_start(
            unit.text[before:start][::-1], prompt.text[:place][: before - start - 1 : -1]
        )
        start -= len(marks.rstrip())
        marks = common_start(unit.text[end:limit], prompt.text[place_end : place_end + limit - end])
        half = _HALF_WORD.match(prompt.text, place_end + len(marks))
        if end + len(marks) == limit and half and unit.text.startswith(half[0], limit):
            end = limit + len(half[0])
        else:
            end += len(marks.rstrip())
    return 0 if first == 0 else start, len(unit.text) if last + 1 == len(unit.words) else end
