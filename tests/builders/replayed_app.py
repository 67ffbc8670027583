"""Apps with faults that replay can tell apart, over a real Chroma, and runs of them.

Towns are of four kinds. *missed*: its passage lies behind two others and is not retrieved.
*echoed*: the same, but one of the two says the same although the gold set does not list it.
*found*: its passage comes second. *rumoured*: it comes second, behind one that is wrong.
"""

from __future__ import annotations

import asyncio
import re
import uuid
import zlib
from functools import cache

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import SimpleChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from misslink.capture import Watcher
from misslink.judge.config import DEFAULTS
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.session import open_judge
from misslink.linking.owners import link_case
from misslink.linking.replay import RerunSettings, replay_run
from misslink.registry import judged_metrics
from misslink.retrieval import match_unmet_needs
from misslink.types import Case, Run

K = 2
JUDGE = "openai:test-judge"
PROMPT = "Passages:\n{context}\n\nQuestion: {question}"
NIGHT = "At night over town {} it is black."
RUMOUR = "People say that the sky over town {} is red."


_STORES = []


def forget_stores():
    """Every store of a process lies in the same memory, where other tests look around."""
    while _STORES:
        _STORES.pop().delete_collection()


class WordCounts(Embeddings):
    """Counts of words, each in a slot of its own hash: shared words bring texts together."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = [0.0] * 4096
        for word in re.findall(r"\w+", text.lower()):
            # The number of a town tells more than the words that all share.
            vector[zlib.crc32(word.encode()) % 4096] += 3.0 if word.isdigit() else 1.0
        return vector


def question(town):
    return f"What colour is the sky over town {town}?"


def truth(town):
    return f"The sky over town {town} is blue."


def case(town):
    return Case(
        id=f"case-{town}", question=question(town), relevant=[f"gold-{town}"], reference=truth(town)
    )


def corpus(missed=(), echoed=(), found=(), rumoured=()):
    texts = {}
    for town in (*missed, *echoed, *found, *rumoured):
        texts[f"gold-{town}"] = f"{truth(town)} {NIGHT.format(town)}"
    for town in (*missed, *echoed, *found):
        texts[f"guide-{town}"] = f"{question(town)} Ask someone."
    for town in (*missed, *echoed):
        says = truth(town) if town in echoed else "Who knows."
        texts[f"other-{town}"] = f"{question(town)} {says}"
    for town in rumoured:
        texts[f"rumour-{town}"] = f"{question(town)} {RUMOUR.format(town)}"
    return texts


@cache
def _client():
    import chromadb

    return chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))


def retriever(texts):
    from langchain_chroma import Chroma

    store = Chroma(
        collection_name=f"c{uuid.uuid4().hex}",
        embedding_function=WordCounts(),
        client=_client(),
        collection_metadata={"hnsw:space": "cosine"},
    )
    _STORES.append(store)
    store.add_texts(list(texts.values()), ids=list(texts))
    return store.as_retriever(search_kwargs={"k": K})


class Reader(SimpleChatModel):
    """A model that does with its passages what it is built to do, and counts the questions.

    attentive
        Says what a passage says, else invents.
    stubborn
        Always invents.
    hasty
        Answers from the passage that holds the answer, but only where that comes first rightly.
    gullible
        Believes a rumour.
    wavering
        The first time it invents, later it is attentive.
    confused
        Invents once more than one passage says the same.
    """

    kind: str = "attentive"
    asked: dict[str, int] = {}  # noqa: RUF012 (a field, which pydantic copies)

    @property
    def _llm_type(self):
        return "reader"

    def _call(self, messages, stop=None, run_manager=None, **kwargs):
        context, _, asked = messages[-1].content.partition("\n\nQuestion: ")
        town = re.search(r"town (\w+)", asked).group(1)
        self.asked[town] = self.asked.get(town, 0) + 1
        read = context.removeprefix("Passages:\n")
        times = read.count(truth(town))
        if self.kind == "gullible" and RUMOUR.format(town) in read:
            return RUMOUR.format(town)
        if self.kind == "hasty" and times and not read.startswith(truth(town)):
            return NIGHT.format(town)
        wrong = {
            "stubborn": True,
            "wavering": self.asked[town] == 1,
            "confused": times > 1,
        }
        if wrong.get(self.kind) or not times:
            return f"The sky over town {town} is green."
        return truth(town)


def chain(finder, kind="attentive"):
    prompt = ChatPromptTemplate.from_template(PROMPT)
    shown = finder | (lambda found: "\n".join(one.page_content for one in found))
    parts = {"context": shown, "question": RunnablePassthrough()}
    return parts | prompt | Reader(kind=kind) | StrOutputParser()


async def evaluated(app, cases, server, *, name="app.py:app", id_key=None):
    """A run of the app, as the line of an evaluation makes it, judged by the server."""
    watcher = Watcher(app, id_key=id_key)
    judge = open_judge(JUDGE, cache=None, concurrency=4)
    metrics = [judged_metrics.get(metric) for metric in judged_metrics.names()]
    traces, verdicts, links = [], [], []
    for one in cases:
        trace = await watcher.watch(one)
        if wanted := match_unmet_needs(one, trace, K):
            trace = await watcher.deepen(one, trace, wanted)
        mine = await judge_case(Subject(one, trace, K), metrics, judge)
        by_metric = {verdict.metric: verdict for verdict in mine}
        traces.append(trace)
        verdicts += mine
        links.append(await link_case(one, trace, by_metric, K))
    await judge.close()
    manifest = {
        "misslink": "0", "created": "2026-11-22T00:00:00+00:00", "app": name, "judge": judge.name,
        "k": K, "id_key": id_key, "input_key": None, "traces": None, "judging": judge.about(None).document(),
        "inputs": {},
    }  # fmt: skip
    return Run(
        manifest=manifest,
        cases=tuple(cases),
        traces=tuple(traces),
        verdicts=tuple(verdicts),
        links=tuple(links),
        summary={"run": "run"},
    )


def run_of(app, cases, server, **options):
    return asyncio.run(evaluated(app, cases, server, **options))


def failures(run):
    return [link.failure for link in run.links]


TEN = (*"123456789", "ten")  # as many misses as a causal fraction needs


def replayed(run, app, *, judge=JUDGE, terms=DEFAULTS, cache=None, settings=None, **options):
    settings = RerunSettings(**(settings or {}))

    async def go():
        opened = open_judge(judge, cache=cache, concurrency=4, terms=terms)
        try:
            return await replay_run(run, app, judge=opened, settings=settings, **options)
        finally:
            await opened.close()

    return asyncio.run(go())


def towns(server, kind="attentive", **of_kind):
    """An app over towns of several kinds, and its run."""
    app = chain(retriever(corpus(**of_kind)), kind)
    names = [town for some in of_kind.values() for town in some]
    return app, run_of(app, [case(town) for town in names], server)


def line(found, town):
    return next(one for one in found.replay.document()["cases"] if one["case_id"] == f"case-{town}")
