"""A replay is counted together with its run only where both were judged alike."""

from __future__ import annotations

import pytest

from misslink.io.manifest import flatten_inputs
from misslink.judge.prompts import BUILT_IN
from misslink.linking.replay.rerun import judge_identity_of_run, judging_difference
from misslink.types import Run


class Stub:
    def __init__(self, name="openai:m", **identity):
        self.name = name
        self.identity = {"judge": "openai", "model": "m", "temperature": 0, **identity}


def run_by(judge, **manifest):
    told = {
        "judge": judge.name,
        "judging": {"repeats": 1},
        "inputs": flatten_inputs({"k": 5, "judge_identity": judge.identity}),
        "prompts": [BUILT_IN.load("examination").ref.model_dump()],
    }
    return Run(manifest=told | manifest, cases=(), traces=(), verdicts=(), links=(), summary={})


def test_the_same_judge_on_the_same_terms_judges_alike():
    assert judging_difference(run_by(Stub()), Stub(), BUILT_IN) is None


@pytest.mark.parametrize(
    ("judge", "manifest", "said"),
    [
        (Stub("openai:n"), {}, "was judged by openai:m, the replay by openai:n"),
        (Stub(temperature=0.7), {}, "had temperature 0, the replay's has 0.7"),
        (Stub(seed=3), {}, "had seed not given, the replay's has 3"),
        (Stub(), {"judging": {"repeats": 3}}, "put each question 3 times, the replay 1 times"),
        (Stub(), {"prompts": [{"name": "examination", "sha256": "0"}]}, "prompt 'examination'"),
        (Stub(), {"prompts": [{"name": "gone", "sha256": "0"}]}, "prompt 'gone'"),
    ],
)
def test_what_differs_is_said(judge, manifest, said):
    assert said in judging_difference(run_by(Stub(), **manifest), judge, BUILT_IN)


@pytest.mark.parametrize("inputs", [{}, None, "text"])
def test_of_a_run_that_does_not_say_more_the_name_decides(inputs):
    run = run_by(Stub(), inputs=inputs, prompts=None, judging=None)
    assert judge_identity_of_run(run) == {}
    assert judging_difference(run, Stub(temperature=1), BUILT_IN) is None
