"""Read and write run folders, on this disk or in a storage.

In a storage the manifest is written last, so that a partial copy is never read as a run.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ValidationError

from misslink.errors import InputError
from misslink.io import atomic
from misslink.io.jsonl import (
    EMPTY_FILE,
    iter_objects,
    parse_sharing,
    read_objects,
    read_text,
    write_jsonl,
)
from misslink.io.storage import (
    as_url,
    list_remote_files,
    open_decompressed,
    redact_url,
    remote_file,
)
from misslink.parts import Model, Part, PartStore, PartWriter, case_ids
from misslink.registry import exporters
from misslink.types import RUN_FORMAT, Case, Link, Run, Trace, Verdict

MANIFEST = "manifest.json"  # written last: only it makes a folder a run
RUN_PARTS: dict[str, type[BaseModel]] = {
    "cases": Case,
    "traces": Trace,
    "verdicts": Verdict,
    "links": Link,
}
_FIXED_PARTS = ("cases", "traces", "verdicts")  # a replay changes links
RUN_DOCUMENTS = ("replay", "whatif", "map", "calibration", "audit", "selftest")  # optional
DATA_FILES = frozenset(
    {
        *(MANIFEST, "summary.json"),
        *(f"{part}.jsonl" for part in RUN_PARTS),
        *(f"{name}.json" for name in RUN_DOCUMENTS),
    }
)
_WRITER_COMMANDS = {
    "replay": "replay",
    "whatif": "whatif",
    "calibration": "calibrate",
    "audit": "judge audit",
    "selftest": "selftest",
}
ReadProgress = Callable[[str, int, int], object]  # stage, done, total
_PROGRESS_STEP = 256  # entries
_CASE_BYTES = 16_000  # of a run folder per case: 15 kB in examples/harbour, 17 in the demo
_MAX_LISTED_DIFFERENCES = 3
_HASH = re.compile("[0-9a-f]{16,64}")
_NO_RUN = "this is not a run folder (it has no manifest.json); name one that  misslink evaluate --out  wrote"
_LOCAL_RUNS = Path(".misslink/runs")  # copies of runs in a storage
_HASH_DIGITS = 8  # enough for the runs of one working folder
_WRITE_PROBE = ".misslink-trial"
_DATA_ENDINGS = (".json", ".jsonl")  # what is downloaded; reports are not


def read_run(
    folder: str | Path,
    *,
    anywhere: bool = False,
    progress: ReadProgress | None = None,
    known: Run | None = None,
) -> Run:
    """Read a run folder.

    Parameters
    ----------
    folder : str or Path
    anywhere : bool
        Accept a URL too, for callers that add nothing to the folder.
    progress : callable or None
        Called with 'reading', the number of entries that are read, and that of all.
    known : Run or None
        As the folder was read before: of the same run only the links are read again.

    Raises
    ------
    InputError
        It is no run folder, one of its files is missing or damaged, or it was written by a newer
        misslink than this.
    """
    url = as_url(folder)
    if url is not None:
        if not anywhere:
            raise InputError(
                "this run is in remote storage; copy it to this disk and name the copy",
                path=redact_url(folder),
            )
        with fetch_run(url) as copy:
            return read_run(copy, progress=progress)
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise InputError(_NO_RUN, path=folder)
    manifest = read_json_object(folder / MANIFEST)
    _check_run_format(manifest, folder)
    for name in (*(f"{part}.jsonl" for part in RUN_PARTS), "summary.json"):
        if not (folder / name).is_file():
            raise InputError(
                f"this run folder is not complete (it has no {name}); copy it again, or run  "
                "misslink evaluate  again",
                path=folder,
            )
    same = known is not None and known.manifest == manifest
    parts = {name: getattr(known, name) for name in _FIXED_PARTS} if same else {}
    paths = {name: folder / f"{name}.jsonl" for name in RUN_PARTS if name not in parts}
    parts |= _read_parts(paths, progress)
    names = ("summary", *(n for n in RUN_DOCUMENTS if (folder / f"{n}.json").exists()))
    documents = {name: read_json_object(folder / f"{name}.json") for name in names}
    try:
        return Run.model_validate({"manifest": manifest, **documents, **parts})
    except ValidationError as invalid:
        error = invalid.errors()[0]
        place = ".".join(map(str, error["loc"]))
        raise InputError(f"{place}: {error['msg']}", path=folder) from None


def _read_parts(paths: Mapping[str, Path], progress: ReadProgress | None) -> dict[str, Part[Any]]:
    done, lines = 0, dict[Path, int]()
    for path in paths.values():
        with path.open("rb") as file:
            lines[path] = sum(1 for _ in file)
    total = sum(lines.values())

    def count() -> None:
        nonlocal done
        done += 1
        if progress is not None and (done % _PROGRESS_STEP == 0 or done == total):
            progress("reading", done, total)

    return {n: _read_part(path, RUN_PARTS[n], lines[path], count) for n, path in paths.items()}


def _read_part(path: Path, model: type[Model], lines: int, tick: Callable[[], None]) -> Part[Model]:
    """The items of a file, each checked; of a file beyond the first megabytes none are held."""
    store, texts = PartStore(model, path.open("rb"), lines), dict[str, str]()
    repeated: dict[str, tuple[Any, Any]] = {}
    with open_decompressed(path) as content:
        start = 0
        for item in iter_objects(content, path):
            # Where no line has the item alone (an array, a packed file), it is held.
            end = content.tell() if content.seekable() else start
            if store.add(parse_sharing(item, model, texts, repeated), start, end):
                texts.clear()
            start = end
            tick()
    if not store.keys and path.stat().st_size:  # a run without a judge has no verdicts
        raise InputError(EMPTY_FILE, path=path)
    return Part(store)


def read_complete_run(
    folder: str | Path, *, anywhere: bool = False, progress: ReadProgress | None = None
) -> Run:
    """Read a run folder for a result that depends on all of its entries.

    Parameters
    ----------
    folder, anywhere, progress
        As of `read_run`.

    Raises
    ------
    InputError
        As of `read_run`; or the number of cases, traces, verdicts or links differs from the
        summary, as in a copy that was cut short; or a part is of other cases.
    """
    run = read_run(folder, anywhere=anywhere, progress=progress)
    known = set(case_ids(run.cases))  # a part of another run has other cases
    counts = {
        "cases.jsonl": (len(known), run.summary.get("cases")),
        "traces.jsonl": (len(known & set(case_ids(run.traces))), len(known)),
        "links.jsonl": (len(known & set(case_ids(run.links))), len(known)),
    }
    coverage = run.summary.get("coverage")
    judged = Counter(score.metric for score in run.scores if score.case_id in known)
    for metric, statuses in coverage.items() if isinstance(coverage, dict) else ():
        numbers = statuses.values() if isinstance(statuses, dict) else ()
        total = sum(n for n in numbers if isinstance(n, int))
        if judged[metric] != total:
            counts["verdicts.jsonl"] = (judged[metric], total)
    for name, (count, expected) in counts.items():
        if isinstance(expected, int) and count != expected:
            raise InputError(
                f"this run folder is not complete ({name} has {count} entries of its cases and "
                f"should have {expected}); copy it again, or run  misslink evaluate  again",
                path=redact_url(folder),
            )
    return run


def _check_run_format(manifest: Mapping[str, Any], folder: Path) -> None:
    """Refuse a run that another version of misslink wrote in another format."""
    run_format = manifest.get("format", RUN_FORMAT)
    if isinstance(run_format, bool) or not isinstance(run_format, int):
        raise InputError(
            f"{run_format!r} is not a whole number. Copy the run again.",
            path=folder / MANIFEST,
            field="format",
        )
    if run_format == RUN_FORMAT:
        return
    older, fix = ("an older", "Run misslink evaluate again")
    if run_format > RUN_FORMAT:
        older, fix = "a newer", "Upgrade misslink"
    writer = manifest.get("misslink", "unknown")
    raise InputError(
        f"this run was written by {older} misslink ({writer}) in format {run_format}, "
        f"and this version reads format {RUN_FORMAT}. {fix}.",
        path=folder,
    )


def read_json_object(path: Path) -> dict[str, object]:
    """Read a JSON document of a run folder, an object."""
    command = _WRITER_COMMANDS.get(path.stem, "evaluate")
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        reason = "nested too deeply to be read" if deep else f"not JSON ({error})"
        raise InputError(
            f"this is {reason}; delete it, and run  misslink {command}  again", path=path
        ) from None
    if not isinstance(data, dict):
        raise InputError("this is not a JSON object", path=path)
    return data


class RunStaging:
    """A run in progress, in a hidden folder beside the one that it replaces when complete.

    Parameters
    ----------
    out : Path
        The run folder. With the URL of a storage the run is written to ``.misslink/runs`` and then
        copied there.
    inputs : mapping
        What is evaluated, as `misslink.io.manifest.flatten_inputs` returns it; a folder with a run
        of the same inputs may be replaced.
    work : str
        Hash of what a trace depends on beside its case. Traces of an interrupted run with the same
        hash are reused, and those of a run in `out` whose judging was not finished.
    cases : int
        Number of cases of the run, 0 or more: the disk must have space for so many.
    overwrite : bool
        Replace a run of other inputs, or write into a folder that holds something else; files
        of others stay, renamed if their name is needed.

    Raises
    ------
    InputError
        The folder cannot be written, has no space for the run, holds something else, or is being
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
        url, local_overwrite = as_url(out), overwrite
        self._remote = None if url is None else RemoteRun(url)
        if self._remote is not None:
            manifest = self._remote.manifest()
            if not overwrite and manifest is not None:
                _reject_other_inputs(_manifest_inputs(manifest), inputs, self._remote.url)
            self._remote.probe_writing()
            out, local_overwrite = self._remote.local, True  # the folder here is only a copy
        self.out = out.resolve()  # a link to a folder stays, and its target is replaced
        self.folder = self.out.parent / f".{self.out.name}.misslink-partial"
        self._fresh = self.folder / "run"  # what becomes the run folder
        self._retired = self.out.parent / f".{self.out.name}.misslink-old"
        if self.out == Path.cwd():
            raise InputError(
                "a run needs its own folder. Name a new one, such as reports/today", path=out
            )
        with atomic.folder_errors(out):
            atomic.refuse_link(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            # First of all: another process may be between the two renames of its publication.
            self._lock = atomic.lock_file(
                self.folder / "lock",
                "another misslink is writing this run; wait for it, or choose another --out",
                shown_path=out,
            )
            try:
                self._finish_swap()
                if self.out.exists():
                    _check_replaceable(self.out, None if local_overwrite else inputs, out)
                if self._remote is not None:
                    documents = {f"{name}.json" for name in RUN_DOCUMENTS if name != "map"}
                    self._remote.download_newer(self.folder / "download", documents)
                atomic.check_disk_space(self.folder / "space", cases * _CASE_BYTES)
                self.traces = self._interrupted_traces(work)
                if not self.traces and not overwrite and is_run_folder(self.out):
                    # Those of a run whose judging was not finished.
                    manifest = read_json_object(self.out / MANIFEST)
                    if manifest.get("work") == work and manifest.get("unfinished"):
                        items = read_objects(self.out / "traces.jsonl")
                        traces = [item.parse(Trace) for item in items]
                        self.traces = {t.case_id: t for t in traces if t.error is None}
                self._remove_incomplete_files()
            except BaseException:
                self.__exit__()
                raise

    def save(self, trace: Trace) -> None:
        """Write a trace to disk at once, so that an interrupted run need not call the app again."""
        with (self.folder / "kept.jsonl").open("a", encoding="utf-8") as file:
            file.write(trace.model_dump_json() + "\n")

    def open_part(self, name: str) -> PartWriter[Any]:
        """Open the file of a part, whose items are written as they are made.

        Whole shards of it that an interrupted run wrote are taken over.
        """
        record = self.folder / f"{name}.shards"
        return PartWriter(RUN_PARTS[name], self._fresh / f"{name}.jsonl", record)

    def _remove_incomplete_files(self) -> None:
        """Remove what an interrupted run wrote beside the shards of its parts."""
        self._fresh.mkdir(exist_ok=True)
        parts = {f"{record.stem}.jsonl" for record in self.folder.glob("*.shards")}
        for file in self._fresh.iterdir():
            if file.name not in parts:
                file.unlink()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the folder, and remove it if it has no traces and no whole shards."""
        records = list(self.folder.glob("*.shards"))
        if not any(record.stat().st_size for record in records):
            shutil.rmtree(self._fresh, ignore_errors=True)
            if not (self.folder / "kept.jsonl").exists():
                shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()

    def publish(self, run: Run, write_report: Callable[[Path], object]) -> Path:
        """Write the run to the hidden folder, then swap it in."""
        with atomic.folder_errors(self.out):
            fresh = self._fresh
            for name in RUN_PARTS:
                path, items = fresh / f"{name}.jsonl", getattr(run, name)
                if not (isinstance(items, Part) and items.is_file(path)):
                    path.unlink(missing_ok=True)  # what reads the former one goes on
                    write_jsonl(path, items)
            write_json(fresh / "summary.json", run.summary)
            for name in RUN_DOCUMENTS:
                if (document := getattr(run, name)) is not None:
                    write_json(fresh / f"{name}.json", document)
            write_report(fresh / "report.html")
            write_json(fresh / MANIFEST, run.manifest)
            if self.out.exists():
                self.out.rename(self._retired)
            fresh.rename(self.out)
            self._finish_swap()
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._remote is not None:
            self._remote.upload(self.out, run_files())
        return self.out

    def _interrupted_traces(self, work: str) -> dict[str, Trace]:
        """Traces of an interrupted run of the same work; others are deleted."""
        marker, path = self.folder / "work", self.folder / "kept.jsonl"
        if not marker.exists() or marker.read_text(encoding="utf-8") != work:
            path.unlink(missing_ok=True)
            marker.write_text(work, encoding="utf-8")
        if not path.exists():
            return {}
        traces: dict[str, Trace] = {}
        complete = path.read_text(encoding="utf-8").rpartition("\n")[0]  # the last may be cut
        for line in filter(None, complete.split("\n")):  # not splitlines: it cuts at U+2028 too
            with contextlib.suppress(ValidationError):  # of another version: the app is asked again
                trace = Trace.model_validate_json(line)
                traces[trace.case_id] = trace
        write_jsonl(path, traces.values())
        return traces

    def _finish_swap(self) -> None:
        written = run_files()
        replaced = written if is_run_folder(self._retired) else frozenset()
        atomic.finish_folder_swap(self._retired, self.out, replaced, written)


def run_files() -> frozenset[str]:
    """Return the names of all files that misslink writes into a run folder, reports included."""
    return DATA_FILES.union(map(report_file, exporters.names()))


def report_file(form: str) -> str:
    """Return what a report of this format is called in a run folder."""
    return exporters.details(form).get("file", f"report.{form}")


def is_run_folder(folder: Path) -> bool:
    """Return whether `folder` is a run folder."""
    return _folder_inputs(folder) is not None


def _check_replaceable(folder: Path, inputs: Mapping[str, str] | None, shown_path: Path) -> None:
    """Raise if a run of these inputs may not replace what is there; None: it may replace any."""
    if inputs is not None and not folder.is_dir():
        raise InputError("this is a file; name a folder", path=shown_path)
    if inputs is not None and any(folder.iterdir()):
        _reject_other_inputs(_folder_inputs(folder), inputs, shown_path)
    # One that is not writable could be renamed for a new run, but not emptied.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _reject_other_inputs(
    old: Mapping[str, str] | None, new: Mapping[str, str], shown_path: object
) -> None:
    content = "something that is not a run"
    if old is not None:
        differences = [
            _describe_change(name, old.get(name), new.get(name))
            for name in dict.fromkeys([*new, *old])
            if old.get(name) != new.get(name)
        ]
        if not differences:
            return
        listed = "; ".join(differences[:_MAX_LISTED_DIFFERENCES])
        if more := len(differences[_MAX_LISTED_DIFFERENCES:]):
            listed += f"; and {more} more"
        content = f"a run of other inputs ({listed})"
    raise InputError(
        f"this folder has {content}; choose another --out, or add --overwrite", path=shown_path
    )


def _describe_change(name: str, old: str | None, new: str | None) -> str:
    if old and new and _HASH.fullmatch(new):  # of a file's content, which says nothing to a reader
        return f"{name} has changed"
    was, now = (_HASH.sub("given", value) if value else "not given" for value in (old, new))
    return f"{name} was {was}, is {now}"


def _folder_inputs(folder: Path) -> Mapping[str, str] | None:
    """The inputs of the run in a folder; None if it holds none."""
    with contextlib.suppress(InputError):  # no manifest, or a broken one
        return _manifest_inputs(read_json_object(folder / MANIFEST))
    return None


def _manifest_inputs(manifest: Mapping[str, Any]) -> Mapping[str, str] | None:
    if "misslink" not in manifest or "inputs" not in manifest:
        return None
    inputs = manifest["inputs"]
    return inputs if isinstance(inputs, dict) else {"inputs": str(inputs)}


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON document of a run folder."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def add_to_run(
    folder: str | Path,
    run: Run,
    name: Literal["replay", "whatif", "calibration", "audit", "selftest"],
    document: Mapping[str, Any],
    reports: Mapping[str, Callable[[Run, Path], object]],
) -> Run:
    """Add a document to a run folder, and update the run's links and the reports that show both.

    Parameters
    ----------
    folder : str or Path
    run : Run
        Its links are written too, since a replay changes their basis.
    name : {'replay', 'whatif', 'calibration', 'audit', 'selftest'}
    document : mapping
    reports : mapping of str to callable
        File name to its writer, called with the run and a path.

    Returns
    -------
    Run
        With the document.

    Raises
    ------
    InputError
        It is no run folder, or it cannot be written.
    """
    if as_url(folder) is not None:
        raise InputError(
            "this run is in remote storage, which is read-only here; copy it to this disk",
            path=redact_url(folder),
        )
    folder = Path(folder)
    if not is_run_folder(folder):
        raise InputError("this is not a run folder", path=folder)
    updated = run.model_copy(update={name: dict(document)})
    with atomic.folder_errors(folder), contextlib.ExitStack() as parts:
        # Write everything, which takes time, then replace all files at once.
        for file, write_report in reports.items():
            write_report(updated, parts.enter_context(atomic.atomic_path(folder / file)))
        write_json(parts.enter_context(atomic.atomic_path(folder / f"{name}.json")), document)
        write_jsonl(parts.enter_context(atomic.atomic_path(folder / "links.jsonl")), updated.links)
    return updated


class RemoteRun:
    """The folder of a storage that a run is to be written to.

    Raises
    ------
    InputError
        The storage is unknown, or its package is not installed.
    """

    def __init__(self, url: str) -> None:
        _require_folder_url(url)
        self._url = url.rstrip("/")
        self._manifest = remote_file(f"{self._url}/{MANIFEST}")
        self.url = redact_url(url).rstrip("/")
        name = self.url.rpartition("/")[2] or "run"
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:_HASH_DIGITS]
        self.local = _LOCAL_RUNS / f"{name}-{digest}"  # where it is written, and a copy stays

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the remote run; None without one.

        Raises
        ------
        InputError
            The storage cannot be read, or this is no manifest.
        """
        raw = self._manifest.read()
        if raw is None:
            return None
        manifest = _parse_object(raw)
        if manifest is None:
            raise InputError("this is not a manifest; name another --out", path=self._manifest)
        return manifest

    def download_newer(self, partial: Path, documents: Collection[str]) -> None:
        """Download the remote run if a new run may reuse parts of it and the local copy is older.

        So results of later commands, and the traces of a run whose judging was not finished, are
        available on a machine that did not create them, such as a nightly CI runner.

        Parameters
        ----------
        partial : Path
            A folder that does not exist, on the disk of `local`.
        documents : collection of str
            Names of the files that can be reused.

        Raises
        ------
        InputError
            The storage cannot be read.
        """
        manifest, local = self.manifest(), self.local / MANIFEST
        known = (_parse_object(local.read_bytes()) if local.is_file() else None) or {}
        if manifest is None or _created_time(manifest) <= _created_time(known):
            return
        files = {file.name: file for file in list_remote_files(f"{self._url}/")[0]}
        if not manifest.get("unfinished") and not set(files).intersection(documents):
            return
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, file in files.items():
            if name.endswith(_DATA_ENDINGS):
                file.fetch(partial / name)
        shutil.rmtree(self.local, ignore_errors=True)
        partial.rename(self.local)

    def probe_writing(self) -> None:
        """Write and remove a small file, so that a missing permission shows at once.

        Raises
        ------
        InputError
            Writing is not allowed or fails.
        """
        probe = self._manifest.sibling(_WRITE_PROBE)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _WRITE_PROBE
            path.write_bytes(b"misslink tests whether it can write here\n")
            probe.put(path)
        probe.remove()

    def upload(self, folder: Path, run_files: Collection[str]) -> None:
        """Copy a run folder; run files of a former run are removed.

        Raises
        ------
        InputError
            It cannot be written. Then it has no manifest there, and is complete in `folder`.
        """
        files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        manifest = files.pop(MANIFEST)
        try:
            self._manifest.remove()
            for name in sorted(set(run_files) - set(files) - {MANIFEST}):
                self._manifest.sibling(name).remove()
            for name, path in files.items():
                self._manifest.sibling(name).put(path)
            self._manifest.put(manifest)
        except InputError as error:
            raise InputError(
                f"{error.problem}; the run is complete in {folder}: copy it from there, "
                f"{MANIFEST} last",
                path=error.path,
            ) from None


def _parse_object(raw: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _created_time(manifest: Mapping[str, Any]) -> dt.datetime:
    """When a run was created; without a time it is the oldest."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        return dt.datetime.fromisoformat(manifest["created"]).astimezone()
    return dt.datetime.min.replace(tzinfo=dt.UTC)


def _require_folder_url(url: str) -> None:
    """Reject a bare scheme, and a signed URL: it names one file, and a run is a folder."""
    if not url.partition("://")[2].strip("/"):
        raise InputError("this address names no folder; add one", path=redact_url(url))
    if url.startswith("http") and "?" in url:
        raise InputError(
            "a run is a folder, and an address with a ? names one file; name the folder without it",
            path=redact_url(url),
        )


@contextlib.contextmanager
def fetch_run(url: str) -> Iterator[Path]:
    """Download the files of a run to a temporary folder.

    Raises
    ------
    InputError
        It is no run folder, or cannot be read; errors in a file name it by its URL.
    """
    _require_folder_url(url)
    files = list_remote_files(f"{url.rstrip('/')}/")[0]
    if MANIFEST not in {file.name for file in files}:
        raise InputError(_NO_RUN, path=redact_url(url))
    with tempfile.TemporaryDirectory(prefix="misslink-") as temporary:
        folder = Path(temporary)
        for file in files:
            if file.name.endswith(_DATA_ENDINGS):
                file.fetch(folder / file.name)
        try:
            yield folder
        except InputError as error:
            path = (error.path or "").replace(temporary, redact_url(url).rstrip("/"))
            raise InputError(
                error.problem, path=path or None, line=error.line, field=error.field
            ) from None
