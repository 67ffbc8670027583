"""A criterion of the user's own, judged in the same call as the other metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from misslink.errors import InputError
from misslink.io.config_files import read_config_file
from misslink.judge.examination import JudgedCriteria
from misslink.judge.judged_metric import (
    REFUSED,
    Finding,
    JudgedMetric,
    Subject,
    failed_finding,
    skipped_finding,
)
from misslink.judge.prompts import Criterion, Prompts
from misslink.judge.protocol import Reply
from misslink.metrics import SOURCE_METRICS
from misslink.registry import judged_metrics, rank_metric_key
from misslink.types import Reason

_PREFIX = "rubric:"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VALUES = {"yes": 1.0, "partly": 0.5, "no": 0.0}


@dataclass(frozen=True)
class Rubric(JudgedMetric):
    """1 if the answer meets a criterion of the user's own, 0.5 if it does in part, else 0.

    The label is good at 1; its probability is P(yes). Skipped if the judge does not judge criteria,
    such as the heuristic judge.

    Parameters
    ----------
    name : str
        What the metric is called: lowercase letters, digits and underscores.
    question : str
        About the answer; yes is good.
    good, bad : str
        What annotators call a good and a bad answer.

    Raises
    ------
    InputError
        The name is that of another metric, or a text is empty.
    """

    name: str
    question: str
    good: str = "yes"
    bad: str = "no"
    level = 3

    def __post_init__(self) -> None:
        for setting in ("name", "question", "good", "bad"):
            value = getattr(self, setting)
            if not isinstance(value, str) or not value.strip():
                raise InputError("give a text", field=setting)
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"'{self.name}' cannot name a metric; use lowercase letters, digits and underscores"
            )
        taken = self.name in SOURCE_METRICS or rank_metric_key(self.name)
        if taken or self.name in judged_metrics:
            raise InputError(f"there is a metric '{self.name}' already; choose another name")
        object.__setattr__(self, "label_question", (self.question, self.good, self.bad))

    @classmethod
    def read_file(cls, path: str | Path) -> Rubric:
        """Read a criterion; the file's name without its ending names the metric.

        Parameters
        ----------
        path : str or Path
            TOML, YAML or JSON with ``question``, and perhaps ``good`` and ``bad``.

        Raises
        ------
        InputError
            It cannot be read, lacks the question, or has another key.
        """
        path = Path(path)
        data = read_config_file(path).data
        known = ("question", "good", "bad")
        if not isinstance(data, dict) or "question" not in data:
            raise InputError(
                'a criterion has a question: question = "Is the answer polite?"', path=path
            )
        if unknown := [key for key in data if key not in known]:
            raise InputError(f"there are the keys {', '.join(known)}", path=path, field=unknown[0])
        try:
            return cls(path.stem, **data)
        except InputError as error:
            raise InputError(error.problem, path=path, field=error.field) from None

    @property
    def criterion(self) -> Criterion:
        """The question to the judge."""
        return Criterion(self.name, self.question)

    def read(self, subject: Subject, reply: Reply) -> Finding:  # noqa: ARG002 (the protocol's)
        """Read whether the criterion is met."""
        judged = reply.parsed.criteria if isinstance(reply.parsed, JudgedCriteria) else ()
        place = next((n for n, each in enumerate(judged) if each.criterion == self.name), None)
        if place is None:
            return failed_finding(Reason(code="criterion_left_out"))
        met, where = judged[place].met, f"criteria.{place}.met"
        if reply.refuses(where):
            return failed_finding(REFUSED)
        if met is None:
            return skipped_finding(Reason(code="criteria_not_judged"))
        return Finding(
            "scored",
            value=_VALUES[met],
            label=met == "yes",
            probability=reply.chance(where, "yes"),
            reason=f"met: {met}",
        )


def read_rubrics(given: Iterable[str | Rubric]) -> tuple[Rubric, ...]:
    """Read what a user names as metrics: criteria, or ``rubric:FILE``.

    Raises
    ------
    InputError
        One is neither, a file is wrong, or two have the same name.
    """
    rubrics: dict[str, Rubric] = {}
    for one in given:
        if isinstance(one, str) and not is_rubric(one):
            raise InputError(
                f"'{one}' is no criterion; all metrics are judged anyway, and rubric:FILE adds one"
            )
        rubric = Rubric.read_file(one.removeprefix(_PREFIX)) if isinstance(one, str) else one
        if rubric.name in rubrics:
            raise InputError(f"two criteria are called '{rubric.name}'; rename one of them")
        rubrics[rubric.name] = rubric
    return tuple(rubrics.values())


def is_rubric(given: str) -> bool:
    """Whether a metric is given as ``rubric:FILE``."""
    return given.startswith(_PREFIX)


def load_prompts(spec: str | Path | None, rubrics: Iterable[Rubric] = ()) -> Prompts:
    """Return the prompts that a user names, which ask for these criteria, too."""
    asked = tuple(rubric.criterion for rubric in rubrics)
    return replace(Prompts.from_spec(spec), criteria=asked)


def metric_name(given: str) -> str:
    """Return the name of a metric that may be given as ``rubric:FILE``."""
    return read_rubrics([given])[0].name if is_rubric(given) else given
