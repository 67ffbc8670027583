"""How it is found out what a server takes, in at most three calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, get_args

from misslink.judging.endings import about_the_question
from misslink.judging.models.dialect import FLAGS, LIMITS, Dialect, Structure
from misslink.judging.models.reading import Said
from misslink.judging.protocol import Ask, Reply

__all__ = ["Settling"]

_WORDINGS = 3  # of one question, until the server is known
_PATIENCE_S = 10.0  # a refusal comes at once; a first reply that takes longer is being written


class Settling:
    """What is known of a server's dialect, and how it is found out.

    Takes at most three refused calls for the first question that can be answered at all: the
    whole dialect, the dialect without what is complained of, the barest one. A server that was
    not heard yet and fails (5xx) on the same structured question again is asked once without a
    structure; it may be down instead, so that is no refusal.

    What a server refused is known, and kept for later runs. What is only inferred, because it
    failed or seemed to take no notice, holds for this run.

    Parameters
    ----------
    first : Dialect
        What is tried first.

    Attributes
    ----------
    dialect : Dialect
        What to try next.
    settled : bool
        Whether the server took it.
    """

    def __init__(self, first: Dialect) -> None:
        self.dialect = first
        self.settled = False
        self._first = first
        self._hearsay = False  # learnt from an earlier run, not yet seen in this one
        self._refused = 0
        self._broken: set[str] = set()  # questions that the server failed on
        self._bare: Dialect | None = None  # in which such a one was put again
        self._named: set[str] = set()  # what the server complained of
        self._ignored = False
        self._obeyed = False
        self._inferred_from: Structure | None = None
        self._finding_out = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One ask finds out what the server takes; the others wait for that, but not for long."""
        if self.settled:
            yield
            return
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._finding_out.acquire()
        except TimeoutError:
            yield
            return
        if self.settled:
            self._finding_out.release()
            yield
            return
        try:
            yield
        finally:
            self._finding_out.release()

    def learn(self, known: Mapping[str, Any]) -> None:
        """Believe what an earlier run found out; what is no dialect is ignored."""
        names = [field.name for field in fields(Dialect)]
        if not isinstance(known, Mapping) or any(name not in known for name in names):
            return
        given = {name: known[name] for name in names}
        if (
            all(isinstance(given[name], bool) for name in FLAGS)
            and given["structure"] in get_args(Structure)
            and given["limit"] in (None, *LIMITS)
        ):
            self.dialect = Dialect(**given)
            self.settled = self._hearsay = True

    def known(self) -> dict[str, Any]:
        """The dialect without what is inferred, as JSON values; empty before it is settled."""
        if not self.settled:
            return {}
        return asdict(
            replace(self.dialect, structure=self._inferred_from or self.dialect.structure)
        )

    def takes(self, what: str) -> bool | None:
        """Whether the server takes a parameter or a structure.

        Parameters
        ----------
        what : str
            A flag of `Dialect`, ``json_schema`` or ``json_object``.

        Returns
        -------
        bool or None
            None where that is not known: nothing came yet, or it was given up with all the rest,
            uncomplained of.
        """
        if not self.settled:
            return None
        if what in FLAGS:
            if getattr(self.dialect, what):
                return True
            return False if what in self._named or not getattr(self._first, what) else None
        if self.dialect.structure == what:
            return True
        return False if what in self._named or what == self._inferred_from else None

    @property
    def doubted(self) -> bool:
        """Whether a structured question, if it fails again, is put without a structure."""
        return bool(self._broken) and self._bare is None and not self.settled

    def accepted(self, dialect: Dialect) -> None:
        """A reply came to a request in `dialect`."""
        if not self.settled:
            self.dialect, self.settled = dialect, True
            if dialect.structure != "plain":
                self._inferred_from = None
        self._hearsay = False

    def refused(self, tried: Sequence[Dialect], complaint: str) -> Dialect | None:
        """Return the dialect in which to put the same question again, or None.

        Where it is None and `dialect` is not among those tried, the question may be put again.

        Parameters
        ----------
        tried : sequence of Dialect
            All in which the question was put, the refused one last.
        complaint : str
        """
        last = tried[-1]
        enough = len(tried) + bool(self._broken) >= _WORDINGS
        if self.dialect not in tried:  # another question found out in the meantime
            return None if enough else self.dialect
        if self.settled and not self._hearsay:  # one question that needs less, for itself
            return last.named(complaint) if len(tried) == 1 else None
        self._refused += 1
        other = last.without(complaint)
        if other is None and about_the_question(complaint):
            return None
        self._note(last, complaint)
        if other is None or self._refused > 1:
            other = last.barest(complaint)
        if self._hearsay:  # the server has changed since
            self.settled = self._hearsay = False
            self.dialect = other
        if other in tried:
            return None
        if enough:
            self.dialect = other  # what is put next begins here
            return None
        return other

    def broken(self, question: str, tried: Sequence[Dialect]) -> Dialect | None:
        """Return the dialect in which to put a structured question again that met a 5xx, or None.

        Parameters
        ----------
        question : str
            Its key. What it met before tells a server that cannot from one that stumbled.
        tried : sequence of Dialect
            All in which the question was put, the one that the server failed on last.
        """
        last = tried[-1]
        if last.structure == "plain" or len(tried) >= _WORDINGS:
            return None
        if self.dialect not in tried:
            return self.dialect
        if self.settled and not self._hearsay:
            return None
        again = question in self._broken
        self._broken.add(question)
        if not again or self._bare is not None:
            return None
        self.settled = self._hearsay = False
        self._inferred_from = last.structure
        self._bare = replace(last, structure="plain")
        return self._bare

    def read(self, said: Said, ask: Ask, dialect: Dialect) -> Reply:
        """Read what was said to `ask`, put in `dialect`, and learn from how it was said."""
        self.accepted(dialect)
        reply = said.reply(ask.schema, structured=ask.structured)
        if ask.structured:
            fits = reply.parsed is not None
            ignored = not fits and said.ignores(dialect.structure, ask.schema)
            self.heard(dialect, obeyed=fits, ignored=ignored)
        return reply

    def heard(self, dialect: Dialect, *, obeyed: bool, ignored: bool) -> None:
        """Write the schema into the prompt where the server silently ignores the format, once.

        That is an inference from one reply, and is not `known`.

        Parameters
        ----------
        dialect : Dialect
            In which was asked.
        obeyed, ignored : bool
            Whether the reply fitted the format, and whether it took no notice of it. A server
            that obeyed before is not taken to ignore it.
        """
        self._obeyed = self._obeyed or obeyed
        if ignored and not (self._obeyed or self._ignored) and dialect == self.dialect:
            self._ignored = True
            self._inferred_from = dialect.structure
            self.dialect = replace(dialect, structure="plain")

    def _note(self, refused: Dialect, complaint: str) -> None:
        """Remember what was complained of; a complaint that names nothing is of the structure."""
        named = refused.named(complaint)
        if named is None or named.structure != refused.structure:
            self._named.add(refused.structure)
            self._inferred_from = None
        if named is not None:
            self._named |= {
                name for name in FLAGS if getattr(named, name) != getattr(refused, name)
            }
