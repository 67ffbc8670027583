"""misslink as a judge of TREC AutoJudge: a score for each run, topic and measure.

Source: autojudge-base 1.0 (https://trec-auto-judge.github.io/auto-judge-base/).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.pipeline.evaluate import evaluate
from misslink.types import Case, Passage, Run, Trace

_MEASURES = {
    "FAITHFULNESS": "Share of the claims that the documents of the report support.",
    "CITATION_CORRECTNESS": "Share of the cited sentences that a cited document supports.",
    "ANSWER_RELEVANCE": "Whether the report answers the request.",
    "PASSED": "1 where no failure is found, else 0.",
}


class MisslinkJudge:
    """Name it as ``judge_class`` in a ``workflow.yml`` of ``auto-judge run``.

    Examples
    --------
    >>> import yaml
    >>> yaml.safe_load("judge_class: misslink.api.autojudge.MisslinkJudge")
    {'judge_class': 'misslink.api.autojudge.MisslinkJudge'}
    """

    def judge(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: Any,
        *,
        judge: str | Judge | None = None,
        qrels: Any = None,
        **_settings: Any,
    ) -> Any:
        """Judge the reports of all runs.

        Parameters
        ----------
        rag_responses : iterable of autojudge_base.Report
            Their documents are the passages, numbered as the report's sentences cite them.
        rag_topics : sequence of autojudge_base.Request
        llm_config : autojudge_base.LlmConfigBase
            Model, address and key of the judge, where `judge` names none.
        judge : str, Judge or None
            As of `misslink.evaluate`, such as ``heuristic``; a setting of the workflow.
        qrels : autojudge_base.Qrels or None
            Labels of relevant documents.

        Returns
        -------
        autojudge_base.Leaderboard
            A measure without a value has no row, and does not enter the mean of its run. A topic
            without a report counts 0 there.

        Raises
        ------
        InputError, JudgeUnreachableError
            As of `misslink.evaluate`.
        """
        relevant: dict[str, dict[str, int]] = defaultdict(dict)
        for row in qrels.rows if qrels else ():
            if row.grade > 0:
                relevant[row.topic_id][row.doc_id] = row.grade
        cases = {topic.request_id: _case(topic, relevant) for topic in rag_topics}
        runs: dict[str, dict[str, Any]] = defaultdict(dict)
        for report in rag_responses:
            if report.metadata.topic_id in cases:
                runs[report.metadata.run_id][report.metadata.topic_id] = report
        config = None
        if judge is None:
            judge = f"openai:{llm_config.model}"
            config = JudgeConfig(base_url=llm_config.base_url, api_key=llm_config.api_key)
        scores = {}
        for run_id, reports in runs.items():
            traces = [_trace(topic_id, report) for topic_id, report in reports.items()]
            run = evaluate(
                goldset=[cases[topic_id] for topic_id in reports],
                traces=traces,
                judge=judge,
                judge_config=config,
                k=max(1, *(len(trace.retrieved) for trace in traces)),
                cache=DEFAULT_CACHE,
                embedding="none",
            )
            scores[run_id] = _scores(run)
        return _leaderboard(scores, list(cases))


def _case(topic: Any, relevant: Mapping[str, dict[str, int]]) -> Case:
    asked = [topic.title, topic.problem_statement, topic.background]
    return Case(
        id=topic.request_id,
        question="\n\n".join(filter(None, asked)),
        relevant=dict(relevant.get(topic.request_id, {})),
    )


def _trace(topic_id: str, report: Any) -> Trace:
    sentences = report.get_sentences_with_citations()
    documents = report.documents or {}
    cited = [name for sentence in sentences for name in sentence.citations or ()]
    ids = list(dict.fromkeys([*(report.references or ()), *cited, *documents]))
    passages = (
        Passage(id=name, text=documents[name].get_text() if name in documents else "", rank=rank)
        for rank, name in enumerate(ids, start=1)
    )
    answer = " ".join(
        sentence.text + "".join(f" [{ids.index(name) + 1}]" for name in sentence.citations or ())
        for sentence in sentences
    )
    return Trace(case_id=topic_id, retrieved=tuple(passages), answer=answer)


def _scores(run: Run) -> dict[str, dict[str, float]]:
    """The values of each case by measure, without those that could not be decided."""
    found: dict[str, dict[str, float]] = {case.id: {} for case in run.cases}
    for name in _MEASURES:
        for verdict in run.verdicts_of(name.lower()):
            if verdict.value is not None:
                found[verdict.case_id][name] = verdict.value
    for link in run.links:
        if link.failed is not None:
            found[link.case_id]["PASSED"] = float(not link.failed)
    return found


def _leaderboard(scores: Mapping[str, Mapping[str, Mapping[str, float]]], topics: list[str]) -> Any:
    from autojudge_base import Leaderboard, LeaderboardSpec, MeasureSpec
    from autojudge_base.leaderboard.leaderboard import LeaderboardEntry

    spec = LeaderboardSpec(tuple(MeasureSpec(n, description=d) for n, d in _MEASURES.items()))
    entries = []
    for run_id, by_topic in scores.items():
        entries += [LeaderboardEntry(run_id, topic, dict(by_topic[topic])) for topic in by_topic]
        counted = [by_topic.get(topic, dict.fromkeys(_MEASURES, 0.0)) for topic in topics]
        columns = {name: [row[name] for row in counted if name in row] for name in _MEASURES}
        means = {name: fmean(column) for name, column in columns.items() if column}
        entries.append(LeaderboardEntry(run_id, spec.all_topic_id, means))
    return Leaderboard(spec.names, spec, tuple(entries))
