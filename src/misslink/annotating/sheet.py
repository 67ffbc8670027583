"""What one person said of what lies on the desk, kept up with every label as it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from misslink.annotating.keeping import Keeper
from misslink.annotating.tasks import Task, finished
from misslink.files.label_journal import Entry, Item, history

__all__ = ["Sheet"]

Hash = Callable[[Item], str | None]


class Sheet:
    """One person's labels of the cases on the desk, and how far they are.

    The file is read once; a label costs the same whether it is the first or the 30,000th.

    Parameters
    ----------
    keeper : Keeper
        The person's open file.
    tasks : sequence of Task
        What lies on the desk.
    hash_of : callable
        The hash of what an item shows now, None where there is no such item.
    """

    def __init__(self, keeper: Keeper, tasks: Sequence[Task], hash_of: Hash) -> None:
        self.keeper = keeper
        self._tasks = {task.case.id: (at, task) for at, task in enumerate(tasks)}
        self._hash = hash_of
        self._history = history(keeper.entries)
        self._by_item: dict[Item, list[Entry]] = {}
        for entry in self._history:
            self._by_item.setdefault(entry.item, []).append(entry)
        self._said: dict[str, dict[Item, Entry]] = {}
        self._done: set[int] = set()
        for item in self._by_item:
            self._settle(item)
        self._looked: set[tuple[str, str]] = set()
        self._revealed: set[str] = set()
        for entry in keeper.entries:
            self._look(entry)

    def keep(self, *entries: Entry) -> None:
        """Put entries on disk, all of them or none, and count them.

        Raises
        ------
        UnsavedError
            The disk is full or gone; nothing was kept.
        """
        self.keeper.keep(*entries)
        for entry in entries:
            if entry.event == "label":
                self._history.append(entry)
                self._by_item.setdefault(entry.item, []).append(entry)
                self._settle(entry.item)
            elif entry.event == "undone":
                self._take_back(entry.item)
            else:
                self._look(entry)

    def said(self, case_id: str) -> Mapping[Item, Entry]:
        """The labels of one case that hold, skipped ones among them."""
        return self._said.get(case_id, {})

    def last(self) -> Entry | None:
        """The label that was given last and not taken back, if there is one."""
        return next((one for one in reversed(self._history) if self._on_desk(one)), None)

    @property
    def done(self) -> int:
        """How many cases are finished."""
        return len(self._done)

    @property
    def open(self) -> int | None:
        """The place of the first case that is not finished; None: all are."""
        return next((at for at in range(len(self._tasks)) if at not in self._done), None)

    def looked(self, case_id: str, metric: str) -> bool:
        """Whether this person has seen the judge's opinion of it."""
        return (case_id, metric) in self._looked

    def revealed(self, case_id: str) -> bool:
        """Whether they asked to see it before the case was labelled."""
        return case_id in self._revealed

    def _take_back(self, item: Item) -> None:
        if not self._by_item.get(item):
            return
        taken = self._by_item[item].pop()
        for place in range(len(self._history) - 1, -1, -1):  # it is the last one, or nearly
            if self._history[place] is taken:
                del self._history[place]
                break
        self._settle(item)

    def _settle(self, item: Item) -> None:
        """Note what holds of an item now, and whether its case is finished by that."""
        held, said = self._by_item[item], self._said.setdefault(item[0], {})
        if held and self._on_desk(held[-1]):
            said[item] = held[-1]
        else:
            said.pop(item, None)
        at, task = self._tasks.get(item[0], (None, None))
        if at is None or task is None:
            return
        if finished(task, said):
            self._done.add(at)
        else:
            self._done.discard(at)

    def _look(self, entry: Entry) -> None:
        if entry.event in {"revealed", "shown"} and self._on_desk(entry):
            self._looked.add((entry.case_id, entry.metric))
            if entry.event == "revealed":
                self._revealed.add(entry.case_id)

    def _on_desk(self, entry: Entry) -> bool:
        """Whether an entry is about a case that lies here, as it lies here."""
        _, task = self._tasks.get(entry.case_id, (None, None))
        if task is None or entry.metric not in task.metrics:
            return False
        now = self._hash(entry.item)
        return now is not None and entry.of in {None, now}
