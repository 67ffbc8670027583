"""Copy an example into the working folder: ``python -m misslink.examples ferry``."""

from __future__ import annotations

import sys
from pathlib import Path

from misslink.examples import copy_example

if __name__ == "__main__":
    known = sorted(path.parent.name for path in Path(__file__).parent.glob("*/goldset.jsonl"))
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        sys.exit(f"Usage: python -m misslink.examples NAME. Examples: {', '.join(known)}.")
    for path in copy_example(sys.argv[1], sys.argv[1]):
        print(path)
