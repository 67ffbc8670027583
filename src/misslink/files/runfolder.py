"""Run folders: written aside and put in place whole, so that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from pydantic import BaseModel, ValidationError

from misslink.errors import InputError
from misslink.files.jsonl import parse, read_objects, read_text, write_lines
from misslink.types import Case, Link, Run, Trace, Verdict

__all__ = ["Staging", "holds_run", "read_run"]

_PARTS: dict[str, type[BaseModel]] = {
    "cases": Case,
    "traces": Trace,
    "verdicts": Verdict,
    "links": Link,
}
_OURS = frozenset(
    {"manifest.json", "summary.json", "report.html", *(f"{part}.jsonl" for part in _PARTS)}
)


class Staging:
    """A run in the making, beside the folder it will become.

    Parameters
    ----------
    out : Path
        The run folder.
    inputs : str
        Hash of what was evaluated; a folder with a run of the same inputs may be replaced.
    work : str
        Hash of what a trace depends on beside its case; traces of an interrupted run with the same
        one are used again, and those of a run in `out` whose judging was left unfinished.
    overwrite : bool
        Replace a run of other inputs, or write into a folder that holds something else; files
        that are not misslink's stay, under another name where it is needed.

    Raises
    ------
    InputError
        The folder cannot be written, holds something else, or is being written by another process.
    """

    def __init__(self, out: Path, inputs: str, work: str, *, overwrite: bool = False) -> None:
        self.out = out.resolve()  # a link to a folder stays, and what it points to is replaced
        self.folder = self.out.parent / f".{self.out.name}.misslink-partial"
        self._retired = self.out.parent / f".{self.out.name}.misslink-old"
        if self.out == Path.cwd():
            raise InputError(
                "a run needs a folder of its own; name a new one, such as reports/today", path=out
            )
        with _told(out):
            self._recover()
            if not overwrite:
                _refuse_other(out, self.out, inputs)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder / "lock", out)
            marker = self.folder / "work"
            self.kept: dict[str, Trace] = {}
            if marker.exists() and marker.read_text(encoding="utf-8") == work:
                self.kept = _whole_lines(self.folder / "kept.jsonl")
            else:
                (self.folder / "kept.jsonl").unlink(missing_ok=True)
                marker.write_text(work, encoding="utf-8")
            if not self.kept and not overwrite:
                self.kept = _unfinished(self.out, work)

    def keep(self, trace: Trace) -> None:
        """Put a trace on disk at once, so that an interrupted run need not ask the app again."""
        with (self.folder / "kept.jsonl").open("a", encoding="utf-8") as file:
            file.write(trace.model_dump_json() + "\n")

    def __enter__(self) -> Self:
        """Begin; whatever happens, a run that kept nothing leaves nothing behind."""
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder.is_dir() and not (self.folder / "kept.jsonl").exists():
            shutil.rmtree(self.folder)
        self._lock.close()

    def publish(self, run: Run, write_report: Callable[[Path], object]) -> Path:
        """Write the whole run aside, then swap it in."""
        with _told(self.out):
            fresh = self.folder / "run"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            for part in _PARTS:
                write_lines(fresh / f"{part}.jsonl", getattr(run, part))
            _write_json(fresh / "summary.json", run.summary)
            write_report(fresh / "report.html")
            _write_json(fresh / "manifest.json", run.manifest)
            if self.out.exists():
                self.out.rename(self._retired)
            fresh.rename(self.out)
            self._recover()
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.out

    def _recover(self) -> None:
        """Finish a swap, also one that an earlier process was killed in."""
        if not self._retired.exists():
            return
        if not self.out.exists():
            self._retired.rename(self.out)
            return
        ours = _OURS if _run_inputs(self._retired) else frozenset()
        for other in self._retired.iterdir():
            if other.name not in ours:
                taken = (self.out / other.name).exists()
                other.rename(self.out / (f"{other.name}.before" if taken else other.name))
        shutil.rmtree(self._retired)


def read_run(folder: str | Path) -> Run:
    """Read a run folder.

    Raises
    ------
    InputError
        It is no run folder, or one of its files is damaged.
    """
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        raise InputError(
            "this is no run folder (it has no manifest.json); "
            "name one that  misslink evaluate --out  wrote",
            path=folder,
        )
    parts = {name: _read_part(folder / f"{name}.jsonl", model) for name, model in _PARTS.items()}
    manifest, summary = (_read_json(folder / f"{name}.json") for name in ("manifest", "summary"))
    try:
        return Run.model_validate({"manifest": manifest, "summary": summary, **parts})
    except ValidationError as invalid:
        error = invalid.errors()[0]
        place = ".".join(map(str, error["loc"]))
        raise InputError(f"{place}: {error['msg']}", path=folder) from None


def holds_run(folder: Path) -> bool:
    """Whether `folder` is a run folder."""
    return _run_inputs(folder) is not None


def _refuse_other(shown: Path, out: Path, inputs: str) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError("this is a file; name a folder", path=shown)
    names = {entry.name for entry in out.iterdir()}
    if not names:
        return
    held = _run_inputs(out)
    if held == inputs:
        return
    what = "holds a run of other inputs" if held else "holds something that is not a run"
    raise InputError(f"this folder {what}; choose another --out, or add --overwrite", path=shown)


def _run_inputs(folder: Path) -> str | None:
    """The hash of the inputs of the run that a folder holds; None where it holds none."""
    with contextlib.suppress(InputError):  # no manifest, or a broken one: not a run of ours
        held = _read_json(folder / "manifest.json")
        if "misslink" in held and isinstance(held.get("inputs"), str):
            return str(held["inputs"])
    return None


def _unfinished(out: Path, work: str) -> dict[str, Trace]:
    """The traces of the run in `out`, if its judging was left unfinished; failed ones are not."""
    if _run_inputs(out) is None:
        return {}
    held = _read_json(out / "manifest.json")
    if held.get("work") != work or not held.get("unfinished"):
        return {}
    lines = read_objects(out / "traces.jsonl")
    traces = [parse(Trace, data, out / "traces.jsonl", line) for line, data in lines]
    return {trace.case_id: trace for trace in traces if trace.error is None}


@contextlib.contextmanager
def _told(out: Path) -> Iterator[None]:
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


def _read_part(path: Path, model: type[BaseModel]) -> tuple[BaseModel, ...]:
    if path.exists() and path.stat().st_size == 0:
        return ()  # a run without a judge has no verdicts
    return tuple(parse(model, data, path, line) for line, data in read_objects(path))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_text(path))
    except ValueError as problem:
        raise InputError(f"this is not JSON ({problem})", path=path) from None
    if not isinstance(data, dict):
        raise InputError("this is not a JSON object", path=path)
    return data


def _write_json(path: Path, data: dict[str, Any]) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
