"""List the differences in judge, prompts, k and version between two runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from misslink.compare.run_metrics import manifest_int
from misslink.documents import Manifest, manifest_of
from misslink.types import Run

_IDENTITY_PREFIX = "judge_identity."
_JUDGE_CHANGED = (
    "levels 2 and 3 and the failure modes differ by the judge as well as by the answers"
)
_JUDGE_SETTING_CHANGED = "levels 2 and 3 and the failure modes may differ by that alone"


@dataclass(frozen=True)
class ConfigDifference:
    """A setting that differs between two runs.

    Parameters
    ----------
    what : str
        Such as ``k`` or ``judge``.
    a, b : str
        Its value in each run; "" if unknown.
    sentence : str
        What it means for the comparison.
    """

    what: str
    a: str
    b: str
    sentence: str

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
    for (key, meaning, before), (_, _, after) in zip(_settings(a, b), _settings(b, a), strict=True):
        if before != after:
            values = f"{before or 'none'} in {names[0]}, {after or 'none'} in {names[1]}"
            sentence = f"{key}: {values}; {meaning}."
            if " " in key:
                sentence = sentence[:1].upper() + sentence[1:]
            differences.append(ConfigDifference(key, before, after, sentence))
    missing = [manifest_int(run, "unfinished", 0) for run in (a, b)]
    counts = [f"{n} in {name}" for n, name in zip(missing, names, strict=True) if n]
    if counts:
        sentence = f"Verdicts are missing ({', '.join(counts)}) and are not compared."
        differences.append(
            ConfigDifference("missing verdicts", str(missing[0]), str(missing[1]), sentence)
        )
    return differences


def _settings(run: Run, other: Run) -> Iterator[tuple[str, str, str]]:
    """Name, meaning and value of each setting of `run` that is comparable with `other`."""
    manifest, other_manifest = manifest_of(run), manifest_of(other)
    yield "misslink", "numbers may differ by the versions alone", manifest.misslink
    k = manifest_int(run, "k", 0)
    meaning = "rank metrics are compared at each k, and unseen prompts are cut at k"
    yield "k", meaning, str(k or "")
    yield "judge", _JUDGE_CHANGED, manifest.judge
    repeats = getattr(manifest.judging, "repeats", 1)
    yield "samples per verdict", _JUDGE_SETTING_CHANGED, str(repeats)
    if manifest.judge == other_manifest.judge:  # another judge differs in everything
        identity = _judge_identity(manifest)
        for part in sorted({*identity, *_judge_identity(other_manifest)}):
            yield f"the judge's {part}", _JUDGE_SETTING_CHANGED, identity.get(part, "")
    prompts = {p.name: f"version {p.version}, {p.sha256[:8]}" for p in manifest.prompts if p.name}
    for name in sorted(prompts.keys() & {prompt.name for prompt in other_manifest.prompts}):
        yield f"the prompt '{name}'", _JUDGE_SETTING_CHANGED, prompts[name]
    stored = run.manifest.get("calibration")
    value = ""
    if isinstance(stored, dict) and "metric" in stored:
        value = f"of {stored['metric']} at {stored.get('threshold')}"
    meaning = "verdicts in a calibrated judge's uncertain band give no failure mode"
    yield "calibration", meaning, value


def _judge_identity(manifest: Manifest) -> dict[str, str]:
    return {
        name.removeprefix(_IDENTITY_PREFIX): str(value)
        for name, value in manifest.inputs.items()
        if name.startswith(_IDENTITY_PREFIX)
    }
