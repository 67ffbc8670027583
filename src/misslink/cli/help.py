"""Layout of the help pages: commands by task, main options first, and examples."""

from __future__ import annotations

from typing import Any

import typer

COMMAND_PANELS = {
    "Evaluate": ("init", "evaluate", "retrieval", "report", "export", "mcp", "demo"),
    "Understand and improve": ("diagnose", "replay", "whatif", "promote"),
    "Compare and gate": ("compare", "gate", "rejudge"),
    "Judge": ("selftest", "judge", "annotate", "calibrate", "prompts", "cache"),
    "Gold sets": ("goldset",),
    "Production": ("canary", "live"),
}
MORE_OPTIONS = "More options"
SHOW_ALL = "--help-all"
_APP = "app.py:chain --goldset gold.jsonl"
_JUDGE = "--judge openai:gpt-4.1-mini"
# Main options of the commands that have many; the others are under "More options".
MAIN_OPTIONS = {
    "evaluate": "goldset traces corpus judge out k overwrite dry_run verbose as_json",
    "retrieval": "qrels runs metrics relevance_level by bounds per_query as_json",
    "replay": "app sample judge as_json",
    "whatif": "corpus app options k check as_json",
    "rejudge": "judge out sample overwrite dry_run as_json",
    "selftest": "goldset judge n out dry_run as_json",
    "calibrate": "labels verdicts metric threshold require verbose as_json",
    "canary run": "canaries name history k judge learn fail_on webhook markdown as_json",
    "goldset generate": "corpus judge n out categories dry_run as_json",
    "goldset check": "corpus documents logs run criteria markdown fix as_json",
    "goldset from-logs": "out n column traces mask_pattern mask_names as_json",
    "goldset import": "out name traces split as_json",
    "goldset pool": "goldset corpus out run retriever depth prelabel as_json",
    "judge audit": "judge sample metric dry_run as_json",
    "live report": "experiment control primary guardrail offline html markdown as_json",
}
EXAMPLES = {
    "init": ("misslink init",),
    "evaluate": (
        f"misslink evaluate {_APP} --out reports/today",
        "misslink evaluate --traces traces.jsonl --goldset gold.jsonl",
        f"misslink evaluate {_APP} {_JUDGE} --dry-run",
    ),
    "retrieval": (
        "misslink retrieval --qrels qrels.txt --run bm25.trec",
        "misslink retrieval --qrels qrels.txt --run a.trec --run b.trec --metrics ndcg@10",
    ),
    "report": (
        "misslink report reports/today",
        "misslink report reports/today --format markdown --out -",
    ),
    "export": (
        "misslink export reports/today --to langfuse",
        "misslink export reports/today --to otel --send http://localhost:4318",
        "misslink export reports/today --to mlflow --uri sqlite:///mlflow.db",
    ),
    "mcp": ("misslink mcp", "misslink mcp --allow-runs"),
    "demo": ("misslink demo",),
    "diagnose": (
        "misslink diagnose reports/today",
        "misslink diagnose reports/today --missing-labels review.jsonl",
    ),
    "promote": (
        "misslink promote reports/today --out suite.jsonl",
        "misslink promote reports/today --failure retrieval_miss --out misses.jsonl",
    ),
    "replay": ("misslink replay reports/today --app app.py:chain --sample 10",),
    "whatif": (
        "misslink whatif reports/today --app app.py:chain --options k,bm25,hybrid",
        "misslink whatif reports/today --corpus corpus.jsonl --options bm25",
    ),
    "compare": (
        "misslink compare reports/main reports/today",
        "misslink compare reports/main reports/today --metrics recall@5 --html compared.html",
    ),
    "gate": (
        "misslink gate reports/today --criteria ship-criteria.yaml",
        "misslink gate reports/today --criteria ship-criteria.yaml --baseline reports/main",
    ),
    "rejudge": (
        "misslink rejudge reports/main --judge openai:gpt-4.1-mini --out reports/main-again",
        "misslink rejudge reports/main --judge openai:gpt-4.1-mini --sample 50 --out reports/part",
    ),
    "selftest": (
        "misslink selftest reports/today --judge heuristic",
        "misslink selftest reports/today --judge openai:gpt-4.1-mini --n 20 --dry-run",
        f"misslink selftest {_APP} --judge heuristic --out reports/today",
    ),
    "calibrate": (
        "misslink calibrate reports/today --labels labels.csv",
        "misslink calibrate reports/today --require caution",
    ),
    "annotate": ("misslink annotate reports/today --annotator ada",),
    "judge ping": (f"misslink judge ping {_JUDGE}",),
    "judge redteam": (f"misslink judge redteam {_JUDGE}",),
    "judge audit": (f"misslink judge audit reports/today {_JUDGE} --dry-run",),
    "judge pairwise": (f"misslink judge pairwise reports/main reports/today {_JUDGE}",),
    "prompts show": ("misslink prompts show", "misslink prompts show examination --rendered"),
    "prompts diff": ("misslink prompts diff examination --prompts my-prompts",),
    "cache stats": ("misslink cache stats --price-in 0.4 --price-out 1.6",),
    "cache export": ("misslink cache export --out replies.jsonl",),
    "cache prune": (
        "misslink cache prune --older-than 30d",
        "misslink cache prune --older-than 30d --yes",
    ),
    "cache merge": ("misslink cache merge node-1.sqlite node-2.sqlite",),
    "goldset generate": (
        f"misslink goldset generate --corpus docs/ {_JUDGE} -n 50 --out gold.jsonl --dry-run",
    ),
    "goldset check": ("misslink goldset check gold.jsonl --corpus corpus.jsonl",),
    "goldset anchor": (
        "misslink goldset anchor gold.jsonl --corpus chunks.jsonl --documents docs --out spans.jsonl",
    ),
    "goldset split": ("misslink goldset split gold.jsonl --out parts",),
    "goldset merge": ("misslink goldset merge old.jsonl new.jsonl --out gold.jsonl",),
    "goldset diff": ("misslink goldset diff old.jsonl new.jsonl --markdown review.md",),
    "goldset from-logs": ("misslink goldset from-logs logs.jsonl -n 100 --out asked.jsonl",),
    "goldset from-run": ("misslink goldset from-run reports/today --out pool",),
    "goldset import": (
        "misslink goldset import ragas.jsonl --out gold.jsonl --traces-out traces.jsonl",
        "misslink goldset import begin_dev_wow.tsv --format begin --out begin",
    ),
    "goldset export": ("misslink goldset export gold.jsonl --format ragas --out ragas.jsonl",),
    "goldset pool": (
        "misslink goldset pool --goldset gold.jsonl --corpus docs/ --run bm25.trec --out pool",
    ),
    "goldset pool-apply": ("misslink goldset pool-apply pool --out graded.jsonl",),
    "canary run": ("misslink canary run app.py:chain --canaries canaries.jsonl",),
    "canary history": ("misslink canary history --html trend.html",),
    "canary watch": ("misslink canary watch app.py:chain --canaries canaries.jsonl --every 1h",),
    "live report": ("misslink live report live.sqlite --html live.html",),
}


def arrange_help(command: Any, *, all_options: bool, name: str = "") -> None:
    """Put commands and options into panels, hide what is not a main option, and add examples."""
    panels = {child: panel for panel, names in COMMAND_PANELS.items() for child in names}
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    for child, subcommand in getattr(command, "commands", {}).items():
        if not name:
            subcommand.rich_help_panel = panels[child]
        arrange_help(subcommand, all_options=all_options, name=f"{name} {child}".strip())
    if not name or hasattr(command, "commands"):
        return
    main, more = MAIN_OPTIONS.get(name, "").split(), 0
    for parameter in command.params:
        _use_plain_errors(parameter)
        if parameter.param_type_name != "option":
            continue
        if main and parameter.rich_help_panel is None and parameter.name not in main:
            parameter.rich_help_panel = MORE_OPTIONS
        if parameter.rich_help_panel is not None:
            parameter.hidden = not all_options
            more += 1
    hint = [f"misslink {name} {SHOW_ALL} lists {more} more options."] if more else []
    examples = [f"  {line}" for line in EXAMPLES[name]]
    command.epilog = "\n\n".join([*([] if all_options else hint), "Examples:", *examples])


_PLAIN_TERMS = {
    "Input should be ": "This must be ",
    "valid integer": "whole number",
    "valid number": "number",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "above",
    "less than": "below",
}


def _use_plain_errors(parameter: Any) -> None:
    """Reword what pydantic writes of a wrong value."""
    process = parameter.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        try:
            return process(ctx, value)
        except typer.BadParameter as error:
            message = error.message.partition(", unable to parse")[0]
            for term, plain in _PLAIN_TERMS.items():
                message = message.replace(term, plain)
            error.message = message if message.endswith(".") else f"{message}."
            raise

    parameter.process_value = process_value
