"""News for the webhook of a series, kept until it arrives or is refused for good."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.watching.canaries.history_file import changing, speaking

__all__ = ["Letter", "Outbox", "Refused"]


@dataclass(frozen=True)
class Letter:
    """News that has not reached its webhook yet."""

    id: int
    content: dict[str, Any]


@dataclass(frozen=True)
class Refused:
    """News that its webhook will not take.

    Parameters
    ----------
    run : int
        The run it is of.
    error : str
        What the webhook said.
    content : dict
        What it was told.
    """

    run: int
    error: str
    content: dict[str, Any]


class Outbox:
    """The news of a history's runs.

    Parameters
    ----------
    file : sqlite3.Connection
        As `open_history` gives it.
    path : Path
        Its place, for messages.

    Raises
    ------
    HeldError, InputError
        From every method, as `speaking`.
    """

    def __init__(self, file: sqlite3.Connection, path: Path) -> None:
        self._file, self._path = file, path

    def letters(self, name: str) -> tuple[Letter, ...]:
        """News of a series that has not reached its webhook yet, the earliest first."""
        rows = self._read("SELECT id, content FROM outbox WHERE name = ? ORDER BY id", name)
        return tuple(Letter(number, json.loads(content)) for number, content in rows)

    def refused(self, name: str) -> tuple[Refused, ...]:
        """News of a series that its webhook would not take, the earliest first."""
        rows = self._read(
            "SELECT run, error, content FROM refused WHERE name = ? ORDER BY id", name
        )
        return tuple(Refused(run, error, json.loads(content)) for run, error, content in rows)

    def arrived(self, letter: Letter) -> None:
        """Forget news that has reached its webhook."""
        with changing(self._file, self._path) as file:
            file.execute("DELETE FROM outbox WHERE id = ?", (letter.id,))

    def came_back(self, letter: Letter, error: str) -> None:
        """Note why news has not reached its webhook; it stays for the next run."""
        with changing(self._file, self._path) as file:
            file.execute(
                "UPDATE outbox SET tries = tries + 1, error = ? WHERE id = ?", (error, letter.id)
            )

    def give_up(self, letter: Letter, error: str) -> None:
        """Send news no more, for its webhook refuses it; it is kept with the reason."""
        with changing(self._file, self._path) as file:
            file.execute(
                "INSERT OR IGNORE INTO refused SELECT id, name, run, content, ? FROM outbox "
                "WHERE id = ?",
                (error, letter.id),
            )
            file.execute("DELETE FROM outbox WHERE id = ?", (letter.id,))

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with speaking(self._path):
            return self._file.execute(statement, values).fetchall()
