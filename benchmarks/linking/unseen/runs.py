"""Small runs of which most failures have one owner; half of them mislead by labels or exposure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kinds import KINDS
from .planted import App, Planted, planted

RIGHT = {"answers_right": 7, "right_with_more_detail": 3}


@dataclass(frozen=True)
class PlantedRun:
    """How many cases of which kind, and whose failures most are. `misleads`: by what, if at all."""

    name: str
    owner: str
    kinds: dict[str, int]
    misleads: str = ""
    labels: bool = True

    def plant(self, world: dict[str, Any], seed: int) -> tuple[App, list[Planted]]:
        """The app and its cases."""
        app = App(world, seed, seed)
        cases = []
        for name, count in self.kinds.items():
            cases += [planted(name, number, KINDS[name](app)) for number in range(count)]
        return app, cases


RUNS = (
    PlantedRun(
        "searches by other words", "retriever",
        {**RIGHT, "synonyms_missed": 7, "synonyms_missed_declines": 5, "misreads_the_value": 3},
    ),
    PlantedRun(
        "documents not indexed", "index",
        {**RIGHT, "never_indexed_declines": 5, "never_indexed_invents": 5, "just_below_cutoff": 3},
    ),
    PlantedRun(
        "a template that cuts passages", "prompt",
        {"right_from_half_a_passage": 8, "template_cuts_declines": 6, "template_cuts_invents": 5},
    ),
    PlantedRun(
        "a reranker that drops", "prompt",
        {**RIGHT, "reranker_drops": 6, "token_limit_drops_last": 4, "synonyms_missed": 3},
    ),
    PlantedRun(
        "an agent that does not search", "prompt",
        {**RIGHT, "no_search": 9, "misreads_the_value": 2},
    ),
    PlantedRun(
        "an instruction to decline", "generator",
        {**RIGHT, "refuses": 8, "refuses_part_shown": 3, "synonyms_missed": 3},
    ),
    PlantedRun(
        "a model that misreads", "generator",
        {**RIGHT, "misreads_the_value": 6, "adds_an_invention": 5, "just_below_cutoff": 3},
    ),
    PlantedRun(
        "references of last year", "gold_set",
        {**RIGHT, "wrong_reference": 8, "misreads_the_value": 3},
    ),
    PlantedRun(
        "wrong beside unlisted passages", "generator",
        {"wrong_beside_an_unlisted_passage": 7, "refuses_beside_an_unlisted_passage": 4,
         "right_from_an_unlisted_passage": 5, "just_below_cutoff": 3},
        "every failure misses its label",
    ),
    PlantedRun(
        "labels of other passages", "generator",
        {"label_of_another_passage": 12, "misreads_the_value": 7, "synonyms_missed": 2},
        "the labels of right answers are missed",
    ),
    PlantedRun(
        "wrong beside missed copies", "generator",
        {"wrong_beside_a_missed_copy": 9, "right_beside_a_missed_copy": 3, "answers_right": 10,
         "synonyms_missed": 2},
        "failures go with missed labels",
    ),
    PlantedRun(
        "labels of background", "retriever",
        {"background_labelled": 9, "answers_right": 10, "refuses": 3},
        "every label is in the prompt",
    ),
    PlantedRun(
        "half passages, and refusals", "generator",
        {"right_from_half_a_passage": 12, "refuses_part_shown": 8},
        "no label is shown whole",
    ),
    PlantedRun(
        "no labels, split evidence", "retriever",
        {"split_half_invented": 4, "three_places_one_found": 4, "synonyms_missed_declines": 4,
         "answers_half": 3, "answers_right": 8},
        "there are no labels", labels=False,
    ),
    PlantedRun(
        "a stale index", "index",
        {"stale_index": 8, "right_from_an_unlisted_passage": 10, "just_below_cutoff": 2},
        "the labels of failures are in the prompt, those of right answers are not",
    ),
    PlantedRun(
        "labels with typos, and a compressor", "prompt",
        {"label_with_a_typo": 12, "compressor_alters_value": 5, "compressor_leaves_out": 3,
         "misreads_the_value": 2},
        "the labels of right answers seem missed",
    ),
)  # fmt: skip
