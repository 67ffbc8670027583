"""When asking on is pointless: what failures in a row say of the judge, not of the questions."""

from __future__ import annotations

from misslink.judging.protocol import TryAgainError

__all__ = ["Circuit"]

_FAILURES_IN_A_ROW = 5
_ROUNDS = 5
_QUESTIONS = 3
_GO_ON = "what was answered is kept, so run the same command again when it is well"


class Circuit:
    """Counts failures in a row, and says when they are the judge's.

    Five questions in a row to which nothing came after all their tries are enough. A judge of
    which nothing at all is heard (broken connections, no reply in time) is given up sooner: after
    five round trips in a row, over all calls in flight, in which three questions or more took
    part. One question that breaks every connection is that question's failure, and so is a call
    that was out when another one was answered: what it met says nothing of the time since.

    Parameters
    ----------
    name : str
        The judge's.

    Attributes
    ----------
    in_vain : int
        Questions in a row all of whose tries failed for the judge's sake.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_vain = 0
        self._failures = 0
        self._answered_to = 0
        self._rounds = 0
        self._round_ends = 0
        self._unheard: set[int] = set()

    def answered(self, latest: int) -> None:
        """A reply came when `latest` was the latest call begun."""
        self._answered_to = latest
        self.in_vain = self._failures = 0
        self._heard()

    def troubled(self, trouble: TryAgainError, question: int, call: int, latest: int) -> int:
        """A call brought nothing; return for how many round trips in a row nothing was heard.

        Parameters
        ----------
        trouble : TryAgainError
        question, call, latest : int
            Numbers of the question, the call and the latest call begun. Calls that were out
            together break together, which is one round trip.
        """
        if trouble.kind in ("rate", "server"):
            self._heard()
            return 0
        if call <= self._answered_to:
            return 0
        self._unheard.add(question)
        if call > self._round_ends:
            self._rounds += 1
            self._round_ends = latest
        return self._rounds

    def why_silent(self, problem: str) -> str | None:
        """Why asking on is pointless after trouble; None while it is not."""
        if self._rounds < _ROUNDS or len(self._unheard) < _QUESTIONS:
            return None
        return (
            f"the judge {self.name} was not heard {self._rounds} times in a row, the last time "
            f"because {problem}; {_GO_ON}"
        )

    def failed(self, problem: str | None, call: int, trouble: TryAgainError | None) -> str | None:
        """Nothing came to a question; return why asking on is pointless, None while it is not.

        Parameters
        ----------
        problem : str or None
            Why nothing came.
        call : int
            Number of its last call.
        trouble : TryAgainError or None
            What its last try met. None: the judge answers, but refused this question.
        """
        if trouble is None:
            self.in_vain = 0
            self._heard()
        if call <= self._answered_to:
            return None
        if trouble is not None and trouble.kind != "rate":
            self.in_vain += 1
        self._failures += 1
        if self._failures < _FAILURES_IN_A_ROW:
            return None
        return (
            f"the judge {self.name} failed {self._failures} questions in a row, the last one "
            f"because {problem}; {_GO_ON}"
        )

    def gone(self, why: str) -> str:
        """Return `why` as the sentence for the reader, who may have paid for replies already."""
        return f"{why}; {_GO_ON}" if self._answered_to else why

    def _heard(self) -> None:
        if self._rounds:
            self._rounds = 0
            self._unheard.clear()
