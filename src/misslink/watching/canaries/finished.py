"""A finished run, as it is handed to the history, and kept beside it where that is held."""

from __future__ import annotations

import glob
import json
import logging
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from misslink.files.whole import put
from misslink.watching.canaries.fingerprint import Fingerprint
from misslink.watching.canaries.results import Result, plain_result

__all__ = ["Finished", "keep_beside", "kept_beside"]

_log = logging.getLogger("misslink")


@dataclass(frozen=True)
class Finished:
    """What one run found and how it was set up.

    Parameters
    ----------
    name : str
        Of the series it belongs to.
    at : float
        When it began, in Unix seconds.
    key : str
        What makes runs comparable: the canaries, k, the judge, and what relevance is.
    settings : mapping
        The same for people: app, canaries, k, judge, relevance.
    results : sequence of Result
    fingerprint : Fingerprint or None
    corpus_known : bool
    code : str or None
        Digest of the app's own code, where it is known.
    accept : bool
        Whether what is seen now is the new norm: nothing before it is compared with.
    tell : bool
        Whether alarms are to be told to a webhook.
    learn : int
        From how many runs a measure's usual state is learnt.
    notes : sequence of str
    uid : str
        By which it is entered once.
    """

    name: str
    at: float
    key: str
    settings: dict[str, Any]
    results: tuple[Result, ...]
    fingerprint: Fingerprint | None
    corpus_known: bool = True
    code: str | None = None
    accept: bool = False
    tell: bool = False
    learn: int = 20
    notes: tuple[str, ...] = ()
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)


def keep_beside(finished: Finished, history: Path) -> Path:
    """Write a run beside a history that cannot take it now; the next run enters it.

    Raises
    ------
    InputError
        It cannot be written.
    """
    plain = {
        **asdict(finished),
        "results": [plain_result(one) for one in finished.results],
        "fingerprint": finished.fingerprint
        and {
            "documents": dict(finished.fingerprint.documents),
            "embedding": finished.fingerprint.embedding,
        },
    }
    place = history.with_name(f"{history.name}.{finished.uid}.pending.json")
    return put(json.dumps(plain, ensure_ascii=False) + "\n", place)


def kept_beside(history: Path) -> Iterator[tuple[Path, Finished]]:
    """Runs that wait beside a history, the oldest first; one that cannot be read is told of."""
    found = []
    for path in sorted(history.parent.glob(f"{glob.escape(history.name)}.*.pending.json")):
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            prints = plain["fingerprint"]
            plain |= {
                "results": tuple(Result(**one) for one in plain["results"]),
                "fingerprint": Fingerprint(**prints) if prints else None,
                "notes": tuple(plain["notes"]),
            }
            found.append((path, Finished(**plain)))
        except (OSError, ValueError, TypeError, KeyError) as problem:
            _log.warning("%s cannot be read as a kept run (%s); it is left there", path, problem)
    yield from sorted(found, key=lambda pair: pair[1].at)
