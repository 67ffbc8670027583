"""When asking on is pointless: what failures in a row say of the judge, not of the questions."""

from __future__ import annotations

from misslink.judging.endings import about_the_question
from misslink.judging.protocol import TryAgainError

__all__ = ["Circuit"]

# If each question failed for itself once in ten, of 1,000 five in a row would in one run of 110.
_FAILURES_IN_A_ROW = 5
_REFUSED_AT_FIRST = 10  # free, and a gold set may well begin with a few that no filter lets pass
_ROUNDS = 5  # with the waits between them some seconds, so that a server may restart
_QUESTIONS = 3  # two may both be such that a server breaks off, three hardly
_GO_ON = "what was answered is kept, so run the same command again when it is well"


class Circuit:
    """Counts failures in a row, and says when they are the judge's.

    Five questions in a row to which nothing came after all their tries are enough. A judge of
    which nothing at all is heard (broken connections, no reply in time) is given up sooner: after
    five round trips in a row, over all calls in flight, in which three questions or more took
    part; one is enough where nobody takes the connection. One question that breaks every
    connection is that question's failure, and so is a call that was out when another one was
    answered: what it met says nothing of the time since.

    A judge that refuses a question is up. What it refuses for its length or by a policy says
    nothing of the others, nor does any refusal once a question was answered, in this run or an
    earlier one. Only a judge that never answered anything is given up when it has refused ten
    different questions for other reasons.

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
        self._ever_answered = False
        self._refused: set[str] = set()

    def answered(self, latest: int) -> None:
        """A reply came when `latest` was the latest call begun."""
        self._answered_to = latest
        self.answers()
        self.in_vain = self._failures = 0
        self._heard()

    def answers(self) -> None:
        """Take the judge to answer questions, as it did in an earlier run."""
        self._ever_answered = True
        self._refused.clear()

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

    def why_silent(self, trouble: TryAgainError) -> str | None:
        """Why asking on is pointless after trouble; None while it is not."""
        about_a_question = trouble.kind != "absent" and len(self._unheard) < _QUESTIONS
        if self._rounds < _ROUNDS or about_a_question:
            return None
        return (
            f"the judge {self.name} was not heard {self._rounds} times in a row, the last time "
            f"because {trouble.problem}; {_GO_ON}"
        )

    def refused(self, problem: str, key: str) -> str | None:
        """The judge refused a question; return why asking on is pointless, None while it is not.

        Parameters
        ----------
        problem : str
            What it said.
        key : str
            The question's, the same for every sample of it.
        """
        self.in_vain = 0
        self._heard()
        if self._ever_answered or about_the_question(problem):
            return None
        self._refused.add(key)
        if len(self._refused) < _REFUSED_AT_FIRST:
            return None
        return (
            f"the judge {self.name} is up, but refused {len(self._refused)} different questions "
            f"and answered none; of the last one it says: {problem}; check that --judge names a "
            "chat model and what its server takes"
        )

    def failed(self, problem: str | None, call: int, trouble: TryAgainError) -> str | None:
        """Nothing came to a question; return why asking on is pointless, None while it is not.

        Parameters
        ----------
        problem : str or None
            Why nothing came.
        call : int
            Number of its last call.
        trouble : TryAgainError
            What its last try met.
        """
        if call <= self._answered_to:
            return None
        if trouble.kind != "rate":
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
