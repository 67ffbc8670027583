"""dspy.GEPA improves the instructions of a DSPy program; misslink says what each answer lacks.

pip install misslink 'dspy>=3.4'
python with_dspy.py
"""

from __future__ import annotations

import re
import sys
from typing import Any

import dspy
from dspy import lm15
from ferry_desk import PASSAGES, START, numbers, questions, reply, retrieve
from gepa.utils.stop_condition import ScoreThresholdStopper
from hold_out import confirm
from made_up_reader import MadeUpReader

import misslink

MOST_CALLS = 3_000


class FerryDesk(dspy.Module):
    """Two instructions to improve: how to search, and how to answer."""

    def __init__(self) -> None:
        super().__init__()
        plan = dspy.Signature("question -> count: int, length: int", START["search"])
        self.search = dspy.Predict(plan)
        self.answer = dspy.Predict(dspy.Signature("context, question -> answer", START["answer"]))

    def forward(self, question: str) -> dspy.Prediction:
        """Answer a question, and keep what misslink needs to know."""
        plan = self.search(question=question)
        retrieved, shown = retrieve(question, plan.count, plan.length)
        context = "\n\n".join(shown)
        answer = self.answer(context=context, question=question).answer
        return dspy.Prediction(answer=answer, retrieved=retrieved, prompt=context)


class MadeUpModel:
    """An engine of dspy.LM without a network; yours is dspy.LM("openai/MODEL")."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Follow the instruction of the request."""
        instruction = str(request.system).partition("your objective is:")[2]
        asked = "".join(part.text for part in request.messages[-1].parts)
        given = dict(
            re.findall(r"\[\[ ## (\w+) ## \]\]\n(.*?)\n\n(?=\[\[|Respond)", asked, re.DOTALL)
        )
        if "context" in given:
            replies = {"answer": reply(given["question"], given["context"], instruction)}
        else:
            replies = dict(zip(("count", "length"), numbers(instruction), strict=True))
        lines = [f"[[ ## {name} ## ]]\n{value}\n" for name, value in replies.items()]
        said = lm15.Message.assistant("\n".join([*lines, "[[ ## completed ## ]]"]))
        return lm15.Response(None, request.model, said, "stop", lm15.Usage())


def metric(
    gold: dspy.Example,
    pred: dspy.Prediction,
    trace: Any = None,
    pred_name: str | None = None,
    pred_trace: Any = None,
) -> dspy.Prediction:
    """Return the score of one answer, and what the proposing model reads."""
    found = misslink.feedback({**gold, **pred}, corpus=PASSAGES)
    return dspy.Prediction(score=found["score"] or 0.0, feedback=found["text"])


def optimize(examples: list[dict[str, Any]], metric: Any = metric, seed: int = 0) -> FerryDesk:
    """Return the program that GEPA found; with a language model, give no proposer."""
    asked = [dspy.Example(**example).with_inputs("question") for example in examples]
    optimizer = dspy.GEPA(
        metric,
        max_metric_calls=MOST_CALLS,
        instruction_proposer=MadeUpReader(seed),
        gepa_kwargs={"stop_callbacks": ScoreThresholdStopper(1.0)},
        track_stats=True,
        num_threads=1,
        seed=seed,
    )
    with dspy.context(lm=dspy.LM("made-up/model", engine=MadeUpModel(), cache=False)):
        return optimizer.compile(FerryDesk(), trainset=asked, valset=asked)


if __name__ == "__main__":
    asked = questions()
    program = optimize(asked[:13])
    found = program.detailed_results
    after = {name: part.signature.instructions for name, part in program.named_predictors()}
    print(f"After {found.discovery_eval_counts[found.best_idx]} calls: {after}")
    sys.exit(not confirm(START, after, asked[13:]))
