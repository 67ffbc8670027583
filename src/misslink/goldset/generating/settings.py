"""What questions are wanted: kinds with their shares, askers, lengths, and where the lines lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from misslink.errors import InputError, known_names
from misslink.files.jsonl import parse, read_text

__all__ = ["Category", "Length", "Persona", "Settings", "read_settings"]

Share = Annotated[float, Field(ge=0, le=1_000_000)]
_MOST_PASSAGES = 5  # that one question rests on
_RANGE = 2


class _Closed(BaseModel):
    """Frozen and closed: a misspelt field is told, not passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Category(_Closed):
    """A kind of question.

    Parameters
    ----------
    share : float
        Of all questions, relative to the other kinds; 0: none.
    passages : pair of int
        On how many passages a question rests, at least and at most; ``2-3``, ``2`` or ``[2, 3]``
        in a file. 0: nothing in the corpus answers it.
    asks : str
        What the writer is told of this kind.
    prefers : {'dates', 'steps', 'names'} or None
        Passages that hold these are written from first.
    """

    share: Share
    passages: tuple[int, int]
    asks: str = Field(min_length=1)
    prefers: Literal["dates", "steps", "names"] | None = None

    @field_validator("passages", mode="before")
    @classmethod
    def _as_range(cls, given: Any) -> Any:
        if isinstance(given, int):
            return given, given
        if isinstance(given, str):
            ends = [end.strip() for end in given.split("-")]
            if len(ends) <= _RANGE and all(end.isdecimal() for end in ends):
                return int(ends[0]), int(ends[-1])
        return given

    @field_validator("passages")
    @classmethod
    def _in_order(cls, given: tuple[int, int]) -> tuple[int, int]:
        least, most = given
        if not 0 <= least <= most <= _MOST_PASSAGES or (most and not least):
            raise ValueError(f"write a number from 0 to {_MOST_PASSAGES}, or two such as 2-3")
        return given

    @property
    def negative(self) -> bool:
        """Whether nothing may answer its questions."""
        return self.passages[1] == 0


class Persona(_Closed):
    """Who asks; `asks` is what the writer is told, `share` relative to the others."""

    share: Share = 1.0
    asks: str = Field(min_length=1)


class Length(_Closed):
    """How long a question is: `words` is told to the writer, `share` relative to the others."""

    share: Share = 1.0
    words: str = Field(min_length=1)


_CATEGORIES = {
    "simple_factual": Category(
        share=0.25, passages=(1, 1), asks="A question for one fact that one passage states."
    ),
    "complex_factual": Category(
        share=0.2,
        passages=(2, 3),
        asks="A question whose answer needs facts from every one of the passages, put together.",
    ),
    "procedural": Category(
        share=0.15,
        passages=(1, 2),
        prefers="steps",
        asks="A question how something is done, whose answer is steps or conditions.",
    ),
    "entity_centric": Category(
        share=0.1,
        passages=(1, 2),
        prefers="names",
        asks="A question about one named person, place, organisation, product or thing.",
    ),
    "comparative": Category(
        share=0.1,
        passages=(2, 2),
        asks="A question that compares two things, one from each passage, in one respect.",
    ),
    "temporal": Category(
        share=0.1,
        passages=(1, 2),
        prefers="dates",
        asks="A question for a time, a duration or an order of events.",
    ),
    "negative": Category(
        share=0.1,
        passages=(0, 0),
        asks="A question that sounds as if the collection answered it, and that it does not.",
    ),
}
_PERSONAS = {
    "newcomer": Persona(asks="Somebody new to the subject, who knows none of its terms."),
    "practitioner": Persona(asks="Somebody who works with it daily and asks to get a task done."),
    "expert": Persona(asks="Somebody who knows it well and asks precisely, in its terms."),
    "hurried": Persona(asks="Somebody in a hurry, who types a few words as into a search box."),
}
_LENGTHS = {
    "short": Length(words="at most 8 words"),
    "medium": Length(share=2.0, words="9 to 16 words"),
    "long": Length(words="17 to 30 words, with the situation it arises from"),
}


class Settings(_Closed):
    """How a gold set is generated.

    Parameters
    ----------
    categories, personas, lengths : mapping by name
        At least one of each with a share above 0.
    attempts : float
        How many candidates are written at most for each question that is wanted.
    passage_characters : int
        What is longer is cut into passages of at most so many.
    least_words : int
        A passage of fewer content words carries no question.
    longest_run : int
        So many words in a row as in a passage: the question copies it.
    shared_words : float
        From this share of a question's words on, names and numbers left out, it copies, in (0, 1].
    others : int
        So many other passages are held against each question.
    most_others : int
        A question that more of them answer is dropped.
    against_negative : int
        So many passages are held against a question that nothing may answer.
    near_duplicate : float
        Questions this alike are one, from 0 to 100 (rapidfuzz's token sort ratio).
    near_meaning : float
        So are questions of this cosine, where there is an embedding.
    """

    categories: dict[str, Category] = _CATEGORIES
    personas: dict[str, Persona] = _PERSONAS
    lengths: dict[str, Length] = _LENGTHS
    attempts: float = Field(default=3.0, ge=1, le=100)
    passage_characters: int = Field(default=2_000, ge=100)
    least_words: int = Field(default=15, ge=1)
    longest_run: int = Field(default=6, ge=2)
    shared_words: float = Field(default=0.8, gt=0, le=1)
    others: int = Field(default=8, ge=0, le=50)
    most_others: int = Field(default=3, ge=0)
    against_negative: int = Field(default=10, ge=1, le=50)
    near_duplicate: float = Field(default=90.0, gt=0, le=100)
    near_meaning: float = Field(default=0.95, gt=0, le=1)

    @field_validator("categories", "personas", "lengths")
    @classmethod
    def _some(cls, given: dict[str, Any]) -> dict[str, Any]:
        if not any(each.share > 0 for each in given.values()):
            raise ValueError("none of them has a share above 0; give one to at least one")
        return given

    def only(self, names: Iterable[str]) -> Settings:
        """Return these settings with the named categories alone, each with some share.

        Raises
        ------
        InputError
            There is no such category, or none is named.
        """
        wanted = list(dict.fromkeys(name.strip() for name in names if name.strip()))
        if not wanted:
            raise InputError("--categories names none; give names, such as simple_factual,negative")
        for name in wanted:
            if name not in self.categories:
                hint = known_names(name, self.categories)
                raise InputError(f"there is no category '{name}'; {hint}")
        kept = {name: self.categories[name] for name in wanted}
        kept = {
            name: one if one.share else one.model_copy(update={"share": 1.0})
            for name, one in kept.items()
        }
        return self.model_copy(update={"categories": kept})


def read_settings(path: Path | None) -> Settings:
    """Read settings from a YAML file, which says what differs from the usual ones.

    Parameters
    ----------
    path : Path or None
        None: the usual ones. Of a category, persona or length that is known a file may change
        single fields; ``null`` takes it out; one of a new name is added.

    Raises
    ------
    InputError
        It cannot be read, is no YAML, or a field is unknown or wrong; with its name.
    """
    if path is None:
        return Settings()
    import yaml

    try:
        given = yaml.safe_load(read_text(path))
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        said = " ".join(str(getattr(problem, "problem", None) or "it cannot be read").split())
        line = None if mark is None else mark.line + 1
        raise InputError(f"this is not YAML ({said}); mend it", path=path, line=line) from None
    except RecursionError:
        raise InputError("this is nested too deeply to be read", path=path) from None
    if given is None:
        return Settings()
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        problem_said = "this is not a mapping; write fields, such as  attempts: 3"
        raise InputError(problem_said, path=path)
    merged = dict(given)
    usual = Settings().model_dump()
    for group in ("categories", "personas", "lengths"):
        if group in given:
            merged[group] = _merged(usual[group], given[group], path, group)
    return parse(Settings, merged, path, None)


def _merged(
    usual: Mapping[str, Mapping[str, Any]], given: Any, path: Path, group: str
) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise InputError("this is not a mapping of names to fields", path=path, field=group)
    merged: dict[str, Any] = dict(usual)
    for name, fields in given.items():
        if fields is None:
            merged.pop(name, None)
        elif isinstance(fields, dict):
            merged[name] = {**merged.get(name, {}), **fields}
        else:
            raise InputError(
                "this is not a mapping of fields; write, say, {share: 0.5}, or null for none",
                path=path,
                field=f"{group}.{name}",
            )
    return merged
