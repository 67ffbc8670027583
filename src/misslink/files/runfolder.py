"""Run folders: written aside and put in place whole, so that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from pydantic import ValidationError

from misslink.errors import InputError
from misslink.files.addresses import url_of
from misslink.files.jsonl import parse, read_objects, write_lines
from misslink.files.reading import DOCUMENTS, PARTS, read_json
from misslink.files.stored_run import StoredRun
from misslink.types import Run, Trace

__all__ = ["OURS", "Staging", "holds_run", "told", "write_json"]

OURS = frozenset(
    {
        *("manifest.json", "summary.json", "report.html", "report.md", "report.json", "report.csv"),
        "cases.parquet",
        *(f"{part}.jsonl" for part in PARTS),
        *(f"{name}.json" for name in DOCUMENTS),
    }
)
_CASE_BYTES = 16_000  # what a case takes of a run folder: 15 kB in examples/harbour, 17 in the demo
_TOLD_DIFFERENCES = 3


class Staging:
    """A run in the making, beside the folder it will become.

    Parameters
    ----------
    out : Path
        The run folder. A URL is one of a storage: the run is made in ``.misslink/runs``, and what
        is published there is copied to it.
    inputs : mapping
        What was evaluated, as `misslink.manifest.by_name` writes it; a folder with a run of the
        same inputs may be replaced.
    work : str
        Hash of what a trace depends on beside its case; traces of an interrupted run with the same
        one are used again, and those of a run in `out` whose judging was left unfinished.
    cases : int
        How many cases the run has, 0 or more: for so many there must be room on the disk.
    overwrite : bool
        Replace a run of other inputs, or write into a folder that holds something else; files
        that are not misslink's stay, under another name where it is needed.

    Raises
    ------
    InputError
        The folder cannot be written, has no room for the run, holds something else, or is being
        written by another process.
    """

    def __init__(
        self,
        out: Path,
        inputs: Mapping[str, str],
        work: str,
        *,
        cases: int = 0,
        overwrite: bool = False,
    ) -> None:
        url, anew = url_of(out), overwrite
        self._stored = None if url is None else StoredRun(url)
        if self._stored is not None:
            if not overwrite:
                _refuse_stored(self._stored, inputs)
            self._stored.try_writing()
            out, overwrite = self._stored.here, True  # what lies here is but a copy
        self.out = out.resolve()  # a link to a folder stays, and what it points to is replaced
        self.folder = self.out.parent / f".{self.out.name}.misslink-partial"
        self._retired = self.out.parent / f".{self.out.name}.misslink-old"
        if self.out == Path.cwd():
            raise InputError(
                "a run needs a folder of its own; name a new one, such as reports/today", path=out
            )
        with told(out):
            self._recover()
            if not overwrite:
                _refuse_other(out, self.out, inputs)
            if self.out.exists() and not os.access(self.out, os.W_OK | os.X_OK):
                # It could be moved away for the new run, but not emptied.
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder / "lock", out)
            try:
                if self._stored is not None:
                    kept = {f"{name}.json" for name in DOCUMENTS if name != "map"}  # drawn anew
                    self._stored.bring(self.folder / "brought", kept)
                _try_room(self.folder / "room", cases)
                self.kept = self._kept_by(work)
                if not self.kept and not anew:
                    self.kept = _unfinished(self.out, work)
            except BaseException:
                self.__exit__()
                raise

    def keep(self, trace: Trace) -> None:
        """Put a trace on disk at once, so that an interrupted run need not ask the app again."""
        with (self.folder / "kept.jsonl").open("a", encoding="utf-8") as file:
            file.write(trace.model_dump_json() + "\n")

    def __enter__(self) -> Self:
        """Begin; whatever happens, a run that kept nothing leaves nothing behind."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the folder free."""
        if self.folder.is_dir() and not (self.folder / "kept.jsonl").exists():
            shutil.rmtree(self.folder)
        self._lock.close()

    def publish(self, run: Run, write_report: Callable[[Path], object]) -> Path:
        """Write the whole run aside, then swap it in."""
        with told(self.out):
            fresh = self.folder / "run"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            for part in PARTS:
                write_lines(fresh / f"{part}.jsonl", getattr(run, part))
            write_json(fresh / "summary.json", run.summary)
            for name in DOCUMENTS:
                if (document := getattr(run, name)) is not None:
                    write_json(fresh / f"{name}.json", document)
            write_report(fresh / "report.html")
            write_json(fresh / "manifest.json", run.manifest)
            if self.out.exists():
                self.out.rename(self._retired)
            fresh.rename(self.out)
            self._recover()
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._stored is not None:
            self._stored.put(self.out, OURS)
        return self.out

    def _kept_by(self, work: str) -> dict[str, Trace]:
        """The traces of an interrupted run of the same work; those of another are dropped."""
        marker = self.folder / "work"
        if marker.exists() and marker.read_text(encoding="utf-8") == work:
            return _whole_lines(self.folder / "kept.jsonl")
        (self.folder / "kept.jsonl").unlink(missing_ok=True)
        marker.write_text(work, encoding="utf-8")
        return {}

    def _recover(self) -> None:
        """Finish a swap, also one that an earlier process was killed in."""
        if not self._retired.exists():
            return
        if not self.out.exists():
            self._retired.rename(self.out)
            return
        ours = OURS if holds_run(self._retired) else frozenset()
        for other in self._retired.iterdir():
            if other.name not in ours:
                taken = other.name in OURS or (self.out / other.name).exists()
                other.rename(self.out / (f"{other.name}.before" if taken else other.name))
        shutil.rmtree(self._retired)


def holds_run(folder: Path) -> bool:
    """Whether `folder` is a run folder."""
    return _run_inputs(folder) is not None


def _try_room(path: Path, cases: int) -> None:
    """Take the room that a run will need and give it back, so that a full disk shows at once."""
    try:
        with path.open("wb") as file:
            file.write(b"\0")
            file.flush()
            if cases and hasattr(os, "posix_fallocate"):  # not on Windows
                os.posix_fallocate(file.fileno(), 0, cases * _CASE_BYTES)
    finally:
        path.unlink(missing_ok=True)


def _refuse_other(shown: Path, out: Path, inputs: Mapping[str, str]) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError("this is a file; name a folder", path=shown)
    names = {entry.name for entry in out.iterdir()}
    if not names:
        return
    _refuse_differing(_run_inputs(out), inputs, shown)


def _refuse_stored(place: StoredRun, inputs: Mapping[str, str]) -> None:
    """Refuse a run of other inputs in a storage; what is no run there is none of ours to judge."""
    held = place.manifest()
    if held is not None:
        _refuse_differing(_inputs_of(held), inputs, place.url)


def _refuse_differing(
    held: Mapping[str, str] | None, inputs: Mapping[str, str], shown: object
) -> None:
    what = "holds something that is not a run"
    if held is not None:
        different = _differences(held, inputs)
        if not different:
            return
        told = "; ".join(different[:_TOLD_DIFFERENCES])
        if more := len(different[_TOLD_DIFFERENCES:]):
            told += f"; and {more} more"
        what = f"holds a run of other inputs ({told})"
    raise InputError(f"this folder {what}; choose another --out, or add --overwrite", path=shown)


def _differences(held: Mapping[str, str], inputs: Mapping[str, str]) -> list[str]:
    """What differs between the inputs of two runs, each with its old and its new value."""
    return [
        f"{name} was {held.get(name, 'not given')}, is {inputs.get(name, 'not given')}"
        for name in dict.fromkeys([*inputs, *held])
        if held.get(name) != inputs.get(name)
    ]


def _run_inputs(folder: Path) -> Mapping[str, str] | None:
    """The inputs of the run that a folder holds; None where it holds none."""
    with contextlib.suppress(InputError):  # no manifest, or a broken one: not a run of ours
        return _inputs_of(read_json(folder / "manifest.json"))
    return None


def _inputs_of(manifest: Mapping[str, Any]) -> Mapping[str, str] | None:
    if "misslink" not in manifest or "inputs" not in manifest:
        return None
    inputs = manifest["inputs"]
    return inputs if isinstance(inputs, dict) else {"inputs": str(inputs)}


def _unfinished(out: Path, work: str) -> dict[str, Trace]:
    """The traces of the run in `out`, if its judging was left unfinished; failed ones are not."""
    if _run_inputs(out) is None:
        return {}
    held = read_json(out / "manifest.json")
    if held.get("work") != work or not held.get("unfinished"):
        return {}
    lines = read_objects(out / "traces.jsonl")
    traces = [parse(Trace, data, out / "traces.jsonl", line) for line, data in lines]
    return {trace.case_id: trace for trace in traces if trace.error is None}


@contextlib.contextmanager
def told(out: Path) -> Iterator[None]:
    """Tell a full disk or a lacking right as a sentence."""
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"this folder cannot be written ({problem.strerror or problem}); choose another --out",
            path=out,
        ) from None


def _locked(path: Path, out: Path) -> IO[str]:
    """Take the lock that ends with this process, however it ends."""
    lock = path.open("w", encoding="utf-8")
    try:
        import fcntl
    except ImportError:  # not on Windows: there, two runs into one folder are not told apart
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise InputError(
            "another misslink is writing this run; wait for it, or choose another --out", path=out
        ) from None
    return lock


def _whole_lines(path: Path) -> dict[str, Trace]:
    """Traces of an interrupted run; the last line may be cut and then does not count."""
    if not path.exists():
        return {}
    kept: dict[str, Trace] = {}
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    for line in filter(None, whole.split("\n")):  # not splitlines: it cuts at U+2028 too
        with contextlib.suppress(ValidationError):  # of another version: the app is asked again
            trace = Trace.model_validate_json(line)
            kept[trace.case_id] = trace
    path.write_text("".join(f"{t.model_dump_json()}\n" for t in kept.values()), encoding="utf-8")
    return kept


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON document as the run folder's files are written."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
