"""Optimizers with misslink.feedback as their metric, over the made-up app of examples/optimizers."""

import importlib
import re
from pathlib import Path

import pytest

import misslink

ROOT = Path(__file__).parents[2]
FOLDER, PAGE = ROOT / "examples" / "optimizers", ROOT / "docs" / "how-to" / "optimize-prompts.md"

pytestmark = [pytest.mark.source, pytest.mark.usefixtures("imports_forgotten")]


@pytest.fixture
def example(monkeypatch, tmp_path):
    """Imports a file of the example; replies are cached in an empty folder."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.chdir(tmp_path)
    return importlib.import_module


@pytest.fixture
def best(example):
    """The best instructions of the made-up app."""
    desk = example("ferry_desk")
    search = desk.SEARCH.format(desk.PASSAGE_COUNTS[-1], desk.LENGTHS[-1])
    return {"search": search, "answer": " ".join([desk.ANSWER, *desk.RULES[:3]])}


def read(desk, instructions, number):
    case = desk.run_case(desk.questions()[number], instructions)
    return misslink.feedback(case, corpus=desk.PASSAGES, cache=None)


def test_what_each_instruction_lacks_is_named(example, best):
    desk = example("ferry_desk")
    assert desk.is_best(best)
    assert not desk.is_best(desk.START)
    assert all(read(desk, best, number)["score"] == 1 for number in (1, 3))
    without = {
        "Owner: retriever. ": (best | {"search": desk.SEARCH.format(1, 260)}, 1),
        "Owner: prompt. ": (best | {"search": desk.SEARCH.format(8, 60)}, 1),
    }
    named = {
        "Owner: generator. Fabricated.": (desk.ONLY_PASSAGES, 1),
        "Owner: generator. Incomplete.": (desk.EVERY_PART, 1),
        "Owner: generator. Should have abstained.": (desk.SAY_SO, 3),
    }
    for start, (rule, number) in named.items():
        without[start] = best | {"answer": best["answer"].replace(rule, "")}, number
    for start, (instructions, number) in without.items():
        found = read(desk, instructions, number)
        assert found["score"] <= 1 / 2
        assert found["text"].startswith(start)


def test_the_hold_out_confirms_a_gain_and_no_other(example, best):
    desk, held_out = example("ferry_desk"), example("ferry_desk").questions()[20:]
    confirm = example("hold_out").confirm
    assert confirm(desk.START, best, held_out)
    assert not confirm(desk.START, desk.START, held_out)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["gepa", "dspy"])
def test_the_text_halves_the_calls(example, optimizer):
    pytest.importorskip(optimizer, reason=f"{optimizer} is not installed")
    desk, script = example("ferry_desk"), example(f"with_{optimizer}")
    asked = desk.questions()

    def scores_alone(*given):
        found = script.metric(*given)
        return found[0] if isinstance(found, tuple) else found["score"]

    def dspy_scores_alone(gold, pred, trace=None, name=None, part=None):
        return scores_alone(gold, pred)

    def run(metric):
        found = script.optimize(asked[:13], metric)
        if optimizer == "gepa":
            return found.best_candidate, found.discovery_eval_counts[found.best_idx]
        after = {name: part.signature.instructions for name, part in found.named_predictors()}
        results = found.detailed_results
        return after, results.discovery_eval_counts[results.best_idx]

    after, calls = run(script.metric)
    assert desk.is_best(after)
    alone, more = run(scores_alone if optimizer == "gepa" else dspy_scores_alone)
    assert desk.is_best(alone)
    assert calls <= more / 2
    assert example("hold_out").confirm(desk.START, after, asked[13:])


@pytest.mark.parametrize(("optimizer", "metric"), [("dspy", "metric"), ("gepa", "evaluator")])
def test_the_metrics_of_the_page_run(example, best, optimizer, metric, monkeypatch):
    package = pytest.importorskip(optimizer, reason=f"{optimizer} is not installed")
    desk = example("ferry_desk")
    case = desk.run_case(desk.questions()[1], desk.START)
    name = f"{optimizer}_metric.py"
    (block,) = re.findall(rf"`{name}`:\n\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    block = block.partition("\n\n\noptimizer")[0].replace("openai:MODEL", "heuristic")
    shown = {"my_app": lambda question: {**case, "question": question}}
    exec(compile(block.replace('"corpus.jsonl"', "None"), name, "exec"), shown)  # noqa: S102
    if optimizer == "gepa":
        score, found = shown[metric]({}, case)
        text = found["Feedback"]
    else:
        gold = package.Example(question=case["question"], reference=case["reference"])
        found = shown[metric](gold.with_inputs("question"), package.Prediction(**case))
        score, text = found.score, found.feedback
    assert score < 1
    assert text.startswith("Owner: ")
