"""Pair the cases of several runs by their ids, and list what differs between the runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from misslink.documents import Manifest, manifest_of
from misslink.errors import InputError
from misslink.io.manifest import expected_answer, relevance_labels
from misslink.parts import by_case, case_ids
from misslink.render.format import as_sentence
from misslink.types import Case, Reason, Run

CaseSelection = Collection[str] | None
_MAX_LISTED = 3  # ids that a message names
_ID_LENGTH = 60
_JUDGE_SETTING = "judge_setting"
_COMPARED: dict[str, Callable[[Case], object]] = {
    "asks_something_else": lambda case: case.asked,
    "relevant": relevance_labels,
    "reference": expected_answer,
}


@dataclass(frozen=True)
class NamedRun:
    """A run, its folder, and a short name for people (default: the folder)."""

    name: str
    run: Run
    label: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.label or self.name


@dataclass(frozen=True)
class Pairing:
    """The cases that all runs are compared on.

    Parameters
    ----------
    ids : tuple of str
        In the order of the first run's gold set.
    left_out : tuple of dict of str to int
        For each further run, by reason, how many cases of it and of the first one are left out.
    notes : tuple of tuple of Reason
        For each further run, what its readers must know of the cases that are compared.
    """

    ids: tuple[str, ...]
    left_out: tuple[dict[str, int], ...]
    notes: tuple[tuple[Reason, ...], ...]


def pair_cases(runs: Sequence[NamedRun], selection: CaseSelection = None) -> Pairing:
    """Pair the cases that ask the same in all `runs`, or the requested ones of them."""
    first, *others = runs
    differences = [_differences(first.run, other.run) for other in others]
    ids = case_ids(first.run.cases)
    if selection is None:
        apart = {i for d in differences for i in (*d["only_in_a"], *d["asks_something_else"])}
        ids = [name for name in ids if name not in apart]
    else:
        requested = set(selection)
        for named in runs:
            _reject_absent(named, requested)
        for other, differing in zip(others, differences, strict=True):
            if asked := sorted(requested.intersection(differing["asks_something_else"])):
                raise InputError(
                    f"the case {_sample_ids(asked)} asks something else in {other.name} than in "
                    f"{first.name}; leave it out of --cases"
                )
        ids = [name for name in ids if name in requested]
    if not ids:
        names = " and ".join(named.name for named in runs)
        problem = "share no case with the same question; compare runs of one gold set"
        if all(is_scored_only(named.run) for named in runs):
            problem = "share no case; name equal cases alike in both"
        raise InputError(f"{names} {problem}")
    selected = set(ids)
    return Pairing(
        tuple(ids),
        tuple(_count_left_out(first.run, differing, selected) for differing in differences),
        tuple(tuple(_difference_notes(d, selected, runs[-1].title)) for d in differences),
    )


def _differences(first_run: Run, other_run: Run) -> dict[str, list[str]]:
    """The cases that differ between the gold sets of two runs, by how."""
    a, b = (by_case(run.cases) for run in (first_run, other_run))
    differing: dict[str, list[str]] = {
        "only_in_a": [name for name in a if name not in b],
        "only_in_b": [name for name in b if name not in a],
        **{how: [] for how in _COMPARED},
    }
    for name in filter(b.__contains__, a):
        first, other = a[name], b[name]
        for how, read in _COMPARED.items():
            if read(first) != read(other):
                differing[how].append(name)
    return differing


def _reject_absent(named: NamedRun, requested: AbstractSet[str]) -> None:
    if absent := sorted(requested - set(case_ids(named.run.cases))):
        raise InputError(
            f"{named.name} has no case {_sample_ids(absent)} of those to compare; take ids that "
            "are in every run"
        )


def _count_left_out(
    first: Run, differing: Mapping[str, list[str]], selected: AbstractSet[str]
) -> dict[str, int]:
    asks_else = len(set(differing["asks_something_else"]) - selected)
    shared = len(set(case_ids(first.cases)).difference(differing["only_in_a"], selected))
    counts = {
        "only_in_a": len(differing["only_in_a"]),
        "only_in_b": len(differing["only_in_b"]),
        "asks_something_else": asks_else,
        "not_selected": shared - asks_else,
    }
    return {reason: count for reason, count in counts.items() if count}


def _difference_notes(
    differing: Mapping[str, list[str]], selected: AbstractSet[str], last: str
) -> Iterator[Reason]:
    if count := len(selected & set(differing["relevant"])):
        yield Reason(code="other_labels", n=count, last=last)
    if count := len(selected & set(differing["reference"])):
        yield Reason(code="other_references", n=count)


def case_clusters(run: Run, ids: Sequence[str]) -> list[str] | None:
    """Return the ``group`` of each case, which vary together; None if no two cases have one."""
    cases = by_case(run.cases)
    groups = [cases[name].group for name in ids]
    shared = [group for group in groups if group is not None]
    if len(set(shared)) == len(shared):
        return None
    return [f"group {g}" if g else f"case {i}" for g, i in zip(groups, ids, strict=True)]


def is_scored_only(run: Run) -> bool:
    """Whether it is a score table: nothing is known of what the app did."""
    return bool(run.verdicts) and not run.traces and not run.links


def _sample_ids(ids: Sequence[str]) -> str:
    """The first few ids, on one line whatever is in them."""
    listed = ", ".join(repr(name[:_ID_LENGTH]) for name in ids[:_MAX_LISTED])
    return f"{listed} and {len(ids) - _MAX_LISTED} more" if len(ids) > _MAX_LISTED else listed


@dataclass(frozen=True)
class ConfigDifference:
    """A setting that differs between two runs.

    Parameters
    ----------
    what : str
        Such as ``k`` or ``judge``.
    a, b : str
        Its value in each run; "" if unknown.
    meaning : Reason
        What it means for the comparison.
    """

    what: str
    a: str
    b: str
    meaning: Reason

    @property
    def sentence(self) -> str:
        """The difference and its meaning."""
        return as_sentence(str(self.meaning))

    @property
    def changes_judge(self) -> bool:
        """Whether verdicts differ by it: another judge, another setting of it, another prompt."""
        return self.what.startswith(("judge", "the judge's ", "the prompt '"))


def config_differences(
    a: Run, b: Run, names: tuple[str, str] = ("A", "B")
) -> list[ConfigDifference]:
    """Return the settings that differ between two runs; `names` are those of the runs in sentences.

    Compared are version, k, judge, prompts and calibration, and whether judging was finished.
    """
    differences = []
    for (key, kind, before), (_, _, after) in zip(_settings(a, b), _settings(b, a), strict=True):
        if before != after:
            sides = tuple(zip(names, (before, after), strict=True))
            meaning = Reason(code="setting_differs", setting=key, kind=kind, values=sides)
            differences.append(ConfigDifference(key, before, after, meaning))
    missing = [manifest_of(run).unfinished for run in (a, b)]
    if any(missing):
        meaning = Reason(code="verdicts_missing", counts=tuple(zip(names, missing, strict=True)))
        differences.append(
            ConfigDifference("missing verdicts", str(missing[0]), str(missing[1]), meaning)
        )
    return differences


def _judge_parts(manifest: Manifest) -> dict[str, str]:
    """What a judge's verdicts depend on: what it says of itself, and the rules of misslink."""
    rules = manifest.judge_epoch.rules if manifest.judge_epoch else ""
    return manifest.judge_identity | ({"rules": rules} if rules else {})


def _settings(run: Run, other: Run) -> Iterator[tuple[str, str, str]]:
    """Name, kind and value of each setting of `run` that is comparable with `other`."""
    manifest, other_manifest = manifest_of(run), manifest_of(other)
    yield "misslink", "version", manifest.misslink
    yield "k", "cutoff", str(manifest.k or "")
    yield "judge", "judge", manifest.judge
    repeats = getattr(manifest.judging, "repeats", 1)
    yield "samples per verdict", _JUDGE_SETTING, str(repeats)
    if manifest.judge == other_manifest.judge:  # another judge differs in everything
        identity = _judge_parts(manifest)
        for part in sorted({*identity, *_judge_parts(other_manifest)}):
            yield f"the judge's {part}", _JUDGE_SETTING, identity.get(part, "")
    prompts = {p.name: f"version {p.version}, {p.sha256[:8]}" for p in manifest.prompts if p.name}
    for name in sorted(prompts.keys() & {prompt.name for prompt in other_manifest.prompts}):
        yield f"the prompt '{name}'", _JUDGE_SETTING, prompts[name]
    applied = manifest.calibration
    value = f"of {applied.metric} at {applied.threshold}" if applied and applied.metric else ""
    yield "calibration", "calibration", value
