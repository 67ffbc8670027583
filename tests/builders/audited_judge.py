"""The honest judge in this process, with whatever a test makes of its replies, and small cases."""

from __future__ import annotations

import asyncio
from collections import Counter

from fake_judge import answer_to
from honest_judge import fenced, honest
from misslink.judge.checks.audit import audit_document, compare_verdicts
from misslink.judge.checks.audit_variants import audit_cases
from misslink.judge.judged_metric import Subject
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

BLUE = "By day the sky over town {} is blue and clear."
INVENTED = "The moon over town is made of copper and cheese."
FILLERS = (
    "Clouds over the northern hills are white in winter.",
    "Grass along the river bank stays green all summer.",
    "Market stalls in the old square open before sunrise.",
)


class HonestJudge:
    """Says what `judge_server` says, changed by `script(said, texts, times)` in place.

    `texts` are the fenced ones by label, `times` how often the same was asked before. A script may
    return another reply.
    """

    name = "in-process"
    identity = {"judge": "in-process"}  # noqa: RUF012 (the protocol's attribute)

    def __init__(self, script=lambda *_: None):
        self.script = script
        self.asked = Counter()

    async def ask(self, ask):
        body = {"messages": list(ask.messages)}
        times, said = self.asked[ask.key], honest(body)
        self.asked[ask.key] += 1
        other = self.script(said, dict(fenced(body)), times)
        return other or Reply(answer_to(ask, **said), raw="{}")

    async def close(self):
        pass


def subject(n, *, faithful=None, more="", k=5, passages=None, references=()):
    """Case `n`; of odd ones a sentence of the answer is in no passage."""
    texts = passages or (f"{BLUE.format(n)} {FILLERS[0]}", FILLERS[1], FILLERS[2])
    good = n % 2 == 0 if faithful is None else faithful
    answer = BLUE.format(n) + ("" if good else f" {INVENTED}") + more
    case = Case(id=f"c{n}", question=f"What is the sky over town {n}?", references=references)
    retrieved = tuple(Passage(id=f"p{r}", text=t, rank=r) for r, t in enumerate(texts, 1))
    return Subject(case, Trace(case_id=case.id, retrieved=retrieved, answer=answer), k)


def heard_of(judge, subjects, *names, **options):
    metrics = [judged_metrics.get(name) for name in names or ("faithfulness",)]
    return asyncio.run(audit_cases(judge, subjects, metrics, **options))


def audited(script=lambda *_: None, count=24, metric="faithfulness", *, again=True, cases=subject):
    """The entries of one metric by change, with their findings."""
    heard = heard_of(HonestJudge(script), [cases(n) for n in range(count)], metric)
    return audit_document(compare_verdicts(heard, [metric], again=again))["metrics"][metric]
