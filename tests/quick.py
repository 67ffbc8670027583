"""Run the tests of what was changed since the last commit, or since REV: python tests/quick.py [REV].

A package's tests are in the folder of the same name; a change of a top-level module or of a shared builder
runs the tests at the top level of tests/.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
# Packages whose behavior is mostly seen through another one's tests.
ALSO = {
    "types.py": ["pipeline"],
    "failure_modes.py": ["linking", "report", "test_readme.py"],
    "metrics": ["judge"],
    "render": ["report", "cli"],
    "text": ["linking", "judge"],
    "pipeline": ["cli"],
}


def changed_files(revision):
    """Return tracked files that differ from `revision`, and new ones."""
    diff = ["git", "diff", "--name-only", revision]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    return [
        Path(line)
        for command in (diff, new)
        for line in subprocess.run(
            command, cwd=TESTS.parent, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]


def tests_of(files):
    """Return the test folders and files to run."""
    chosen = {"test_layout.py"}
    for file in files:
        parts = file.parts
        if parts[0] == "tests":
            if len(parts) > 2 and parts[1] != "builders":
                chosen.add(parts[1])
            elif parts[-1].startswith("test_"):
                chosen.add(parts[-1])
        elif parts[:2] == ("src", "misslink"):
            chosen.update([parts[2], "cli/test_messages.py", *ALSO.get(parts[2], [])])
        elif parts[0] == "prompts":
            chosen.add("judge")
        elif file.suffix == ".md":
            chosen.update(["test_readme.py", "test_contributing.py"])
    return sorted(
        str(TESTS / name) for name in chosen if (TESTS / name).exists() and name != "quick.py"
    )


if __name__ == "__main__":
    places = tests_of(changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
    sys.stderr.write("Running " + " ".join(Path(place).name for place in places) + "\n")
    sys.exit(
        subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *places],
            check=False,
        ).returncode
    )
