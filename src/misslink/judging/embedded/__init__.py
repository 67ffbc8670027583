"""The judge without a model: shared words, numbers and names, and a fit on human labels."""

from misslink.judging.embedded.judge import (
    RULES,
    EmbeddedJudge,
    figures,
    hold,
    open_embedded,
    relations,
    rules_version,
)

__all__ = [
    "RULES",
    "EmbeddedJudge",
    "figures",
    "hold",
    "open_embedded",
    "relations",
    "rules_version",
]
