"""An app that writes down what it is asked, its gold set, and what a run folder says of it.

Everything lies in the working folder: a test gives itself one of its own.
"""

import json
from pathlib import Path

JUDGE = "openai:test-judge"
COMMAND = (
    "evaluate", "app.py:app", "--goldset", "gold.jsonl", "--judge", JUDGE, "--out", "run",
)  # fmt: skip
PRICES = ("--judge-option", "price-in=1", "--judge-option", "price-out=4")
APP = """
import json
from pathlib import Path

TRACES = json.loads(Path("told.json").read_text(encoding="utf-8"))

def app(question):
    with Path("asked.txt").open("a", encoding="utf-8") as file:
        file.write(question + "\\n")
    return TRACES[question]
"""


def write_inputs(count, passages, answer):
    """A gold set of so many questions, and an app that writes down what it is asked."""
    told, gold = {}, []
    for n in range(count):
        question = f"Is the sky over town {n} blue by day?"
        retrieved = [{"id": f"p{n}-{i}", "text": text} for i, text in enumerate(passages(n), 1)]
        gold.append({"id": f"case-{n}", "question": question, "relevant": [f"p{n}-1"]})
        told[question] = {"answer": answer(n), "retrieved": retrieved}
    lines = "".join(json.dumps(case) + "\n" for case in gold)
    Path("gold.jsonl").write_text(lines, encoding="utf-8")
    Path("told.json").write_text(json.dumps(told), encoding="utf-8")
    Path("app.py").write_text(APP, encoding="utf-8")


def short_cases(count):
    """Two short passages; one of the answer's two claims is supported."""
    write_inputs(
        count,
        lambda n: [f"By day the sky over town {n} is blue. Clouds are white.", "Grass is green."],
        lambda n: f"The sky over town {n} is blue. Grass is red.",
    )


def app_was_asked():
    path = Path("asked.txt")
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def lines(name):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def manifest():
    return json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))


def faithfulness():
    return [v for v in lines("run/verdicts.jsonl") if v["metric"] == "faithfulness"]


def statuses():
    return [verdict["status"] for verdict in faithfulness()]
