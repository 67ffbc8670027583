"""Settings of generation: question categories, personas, lengths and thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from misslink.errors import InputError, known_names
from misslink.io.config_files import read_yaml
from misslink.io.jsonl import SourceItem

ShareField = Annotated[float, Field(ge=0, le=1_000_000)]
_MAX_PASSAGES = 10  # of one question
_RANGE_ENDS = 2


class _ClosedModel(BaseModel):
    """Frozen; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class QuestionCategory(_ClosedModel):
    """A category of questions.

    Parameters
    ----------
    share : float
        Relative to the other categories; 0: none.
    passages : pair of int
        Minimum and maximum number of passages that answer it together; ``2-3``, ``2`` or
        ``[2, 3]`` in a file. 0: nothing in the corpus answers it.
    asks : str
        Description for the writer.
    prefers : {'dates', 'steps', 'names'} or None
        Passages that contain these are used first.
    """

    share: ShareField
    passages: tuple[int, int]
    asks: str = Field(min_length=1)
    prefers: Literal["dates", "steps", "names"] | None = None

    @field_validator("passages", mode="before")
    @classmethod
    def _as_range(cls, value: Any) -> Any:
        if isinstance(value, int):
            return value, value
        if isinstance(value, str):
            ends = [end.strip() for end in value.split("-")]
            if len(ends) <= _RANGE_ENDS and all(end.isdecimal() for end in ends):
                return int(ends[0]), int(ends[-1])
        return value

    @field_validator("passages")
    @classmethod
    def _check_range(cls, value: tuple[int, int]) -> tuple[int, int]:
        least, most = value
        if not 0 <= least <= most <= _MAX_PASSAGES or (most and not least):
            raise ValueError(f"write a number from 0 to {_MAX_PASSAGES}, or two such as 2-3")
        return value

    @property
    def negative(self) -> bool:
        """Whether nothing may answer its questions."""
        return self.passages[1] == 0


class QuestionPersona(_ClosedModel):
    """Who asks; `asks` describes them to the writer."""

    share: ShareField = 1.0
    asks: str = Field(min_length=1)


class QuestionLength(_ClosedModel):
    """How long a question is; `words` describes it to the writer."""

    share: ShareField = 1.0
    words: str = Field(min_length=1)


_CATEGORIES = {
    "simple_factual": QuestionCategory(
        share=0.25, passages=(1, 1), asks="A question for one fact that one passage states."
    ),
    "complex_factual": QuestionCategory(
        share=0.2,
        passages=(2, 3),
        asks="A question whose answer needs facts from every one of the passages, put together.",
    ),
    "procedural": QuestionCategory(
        share=0.15,
        passages=(1, 2),
        prefers="steps",
        asks="A question how something is done, whose answer is steps or conditions.",
    ),
    "entity_centric": QuestionCategory(
        share=0.1,
        passages=(1, 2),
        prefers="names",
        asks="A question about one named person, place, organisation, product or thing.",
    ),
    "comparative": QuestionCategory(
        share=0.1,
        passages=(2, 2),
        asks="A question that compares two things, one from each passage, in one respect.",
    ),
    "temporal": QuestionCategory(
        share=0.1,
        passages=(1, 2),
        prefers="dates",
        asks="A question for a time, a duration or an order of events.",
    ),
    "negative": QuestionCategory(
        share=0.1,
        passages=(0, 0),
        asks="A question that sounds as if the collection answered it, and that it does not.",
    ),
}
_PERSONAS = {
    "newcomer": QuestionPersona(asks="A person new to the subject, who knows none of its terms."),
    "practitioner": QuestionPersona(
        asks="A person who works with it daily and asks to get a task done."
    ),
    "expert": QuestionPersona(
        asks="A person who knows the subject and asks precisely, in its terms."
    ),
    "hurried": QuestionPersona(
        asks="A person in a hurry, who types a few words as into a search box."
    ),
}
_LENGTHS = {
    "short": QuestionLength(words="at most 8 words"),
    "medium": QuestionLength(share=2.0, words="9 to 16 words"),
    "long": QuestionLength(words="17 to 30 words, with the situation it arises from"),
}


class GenerationSettings(_ClosedModel):
    """Settings of generation.

    Parameters
    ----------
    categories, personas, lengths : mapping by name
        At least one of each with a share above 0.
    attempts : float
        Maximum number of candidates for each question.
    passage_characters : int
        Maximum length of a passage; longer documents are cut.
    least_words : int
        Minimum number of content words of a passage.
    longest_run : int
        A question with so many words in a row of a passage copies it.
    shared_words : float
        A question with this share of its rewordable stems in a passage copies it, in (0, 1].
    others : int
        Number of other passages to verify each question against.
    most_others : int
        Maximum number of them that may answer it too.
    against_negative : int
        Number of passages to verify each negative question against.
    near_duplicate : float
        Token sort ratio (rapidfuzz) of near-duplicate questions, from 0 to 100.
    near_meaning : float
        Cosine of near-duplicate questions, with an embedding.
    """

    categories: dict[str, QuestionCategory] = _CATEGORIES
    personas: dict[str, QuestionPersona] = _PERSONAS
    lengths: dict[str, QuestionLength] = _LENGTHS
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
    def _check_shares(cls, group: dict[str, Any]) -> dict[str, Any]:
        if not any(item.share > 0 for item in group.values()):
            raise ValueError("none of them has a share above 0; give one to at least one")
        return group

    def only(self, names: Iterable[str]) -> GenerationSettings:
        """Return these settings with only the named categories, each with a share above 0.

        Raises
        ------
        InputError
            A category is unknown, or none is named.
        """
        names = list(dict.fromkeys(name.strip() for name in names if name.strip()))
        if not names:
            raise InputError("--categories is empty. Name some: simple_factual,negative.")
        categories = {}
        for name in names:
            if name not in self.categories:
                hint = known_names(name, self.categories)
                raise InputError(f"--categories: unknown category '{name}'; {hint}")
            category = self.categories[name]
            share = category.share or 1.0
            categories[name] = category.model_copy(update={"share": share})
        return self.model_copy(update={"categories": categories})


def read_generation_settings(path: Path | None) -> GenerationSettings:
    """Read settings from a YAML file.

    Parameters
    ----------
    path : Path or None
        None: the defaults. The file contains only what differs: single fields of a known category,
        persona or length, ``null`` to remove one, or one with a new name.

    Raises
    ------
    InputError
        It cannot be read, is not YAML, or a field is unknown or wrong.
    """
    if path is None:
        return GenerationSettings()
    merged = _checked_mapping(read_yaml(path).data or {}, path, None)
    defaults = GenerationSettings().model_dump()
    for group in ("categories", "personas", "lengths"):
        if group not in merged:
            continue
        items: dict[str, Any] = defaults[group]
        for name, fields in _checked_mapping(merged[group], path, group).items():
            if fields is None:
                items.pop(name, None)
            else:
                items[name] = items.get(name, {}) | _checked_mapping(
                    fields, path, f"{group}.{name}"
                )
        merged[group] = items
    return SourceItem(merged, str(path)).parse(GenerationSettings)


def _checked_mapping(content: Any, path: Path, field: str | None) -> dict[str, Any]:
    if not isinstance(content, dict):
        message = "This is not a mapping. Write names and values, such as  attempts: 3."
        raise InputError(message, path=path, field=field)
    return dict(content)
