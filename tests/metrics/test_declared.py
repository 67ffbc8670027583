"""What a metric's class says about it: when it is skipped, how it is labelled and audited."""

import pytest

from misslink.annotation.tasks import case_metrics, question_for
from misslink.judge.backends.decision_questions import DecisionTask
from misslink.judge.checks.audit import audited_metrics
from misslink.judge.examination import DecisionQuestion, Examination
from misslink.judge.judged_metric import Finding, JudgedMetric, Padding, Subject
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

CASE = Case(id="c", question="When?")
TRACE = Trace(case_id="c", answer="In 1904.", retrieved=(Passage(id="p", text="1904.", rank=1),))


class Agreement(JudgedMetric):
    name = "agreement"
    needs_reference = True
    label_question = ("Do both say the same?", "same", "different")
    padding = Padding("answer", may_lower=True)

    def read(self, _subject, _reply):
        return Finding("scored", 1.0, label=True)


@pytest.fixture
def metric(monkeypatch):
    judged_metrics.names()  # loads the built-in ones
    monkeypatch.setitem(judged_metrics._entries, "agreement", Agreement())
    return judged_metrics.get("agreement")


def test_annotators_and_audits_take_a_metric_s_own_words(metric):
    question = question_for("agreement")
    assert (question.ask, question.good, question.bad) == metric.label_question
    assert audited_metrics()["agreement"].padding == metric.padding
    assert case_metrics(CASE, TRACE, ["agreement", "helpfulness"]) == ("helpfulness",)


def test_a_metric_that_needs_a_reference_is_skipped_without_one(metric):
    assert metric.ask(Subject(CASE, TRACE, 5)) == "the case has no reference answer"
    case = CASE.model_copy(update={"references": ("In 1904.",)})
    assert metric.ask(Subject(case, TRACE, 5)).name == "examination"


def test_a_decision_model_is_asked_every_field_that_has_a_question():
    asked = DecisionTask(Subject(CASE, TRACE, 5).examination, 255).questions
    texts = {place: question.instructions for place, question in asked.items()}
    declared = {
        name: item.text
        for name, field in Examination.model_fields.items()
        for item in field.metadata
        if isinstance(item, DecisionQuestion)
    }
    assert {"sufficient", "response", "helpful"} <= set(declared)
    assert declared.items() <= texts.items()
    assert list(asked["helpful"].values.values()) == [1, 2, 3, 4, 5]  # lowest first
