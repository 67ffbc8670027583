"""Does the page say first what is wrong with an app? Small RAG apps with one planted fault each.

    python benchmarks/report/planted_apps.py [--write] [--out DIR] [APP ...]

Twelve real apps (LangChain over Chroma; MiniLM where its weights are installed, else words), each over a
small domain of its own (`planted_apps.toml`), with a stand-in for a language model that answers from its
prompt, and one fault. Whose fault it is follows from how the app is made. What the page says first is
read off the run: the owner and loss of the headline, and the first step. `--out` keeps the runs with
their pages.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import tempfile
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import chromadb
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

import misslink
from misslink.embedding.providers import MINILM_PACKAGES, MiniLM
from misslink.judge import Ask, Reply
from misslink.render.headline import describe_verdict, name_loss
from misslink.report.findings import find
from misslink.types import Run

TARGET = Path(__file__).with_suffix(".md")
WORLDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DECLINES = "I don't know."
ERRORS = 0.1  # of the noisy judge's words
INTRO = """\
# What the page says first of apps with a planted fault

Made by `python benchmarks/report/planted_apps.py --write`. {apps} small RAG apps (LangChain over Chroma, {embedding}), each over a
domain of its own, with a stand-in for a language model and one planted fault. Right: headline and first step both
name the fault. The noisy judge knows what each sentence states, and errs in one of ten.
"""


@dataclass(frozen=True)
class Fact:
    """A question, its reference, the passage with the answer, its key words, and wrong ones."""

    id: str
    question: str
    reference: str
    passage: str
    key: str
    other: str

    @property
    def sentence(self) -> str:
        """The sentence that answers."""
        return next(s for s in sentences(self.passage) if self.key.lower() in s.lower())

    def with_other(self, text: str) -> str:
        """A text with the wrong words in place of the right ones."""
        return re.sub(re.escape(self.key), lambda _: self.other, text, flags=re.IGNORECASE)

    @property
    def wrong(self) -> str:
        """The sentence with wrong words."""
        text = self.with_other(self.sentence)
        return text[:1].upper() + text[1:]


def sentences(text: str) -> list[str]:
    """The sentences of a text of plain prose."""
    return re.split(r"(?<=[.?!])\s+", text.strip())


def chance(*parts: object) -> float:
    """A number in [0, 1) that follows from texts alone."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 2**32


def facts_of(world: str) -> list[Fact]:
    """The facts of a domain."""
    rows = WORLDS[world]["facts"]
    return [Fact(f"{world}-{number:02}", *row) for number, row in enumerate(rows, 1)]


def documents_of(
    world: str, *, metadata: Callable[[int], dict[str, Any]] | None = None
) -> list[Document]:
    """A passage for each fact, and those that answer nothing."""
    texts = {fact.id: fact.passage for fact in facts_of(world)}
    texts |= {f"{world}-x{n}": text for n, text in enumerate(WORLDS[world]["others"])}
    return [
        Document(id=name, page_content=text, metadata=metadata(number) if metadata else {})
        for number, (name, text) in enumerate(texts.items())
    ]


class WordCounts(Embeddings):
    """Hashed counts of stems, where no weights are installed."""

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        vector = [0.001] * 512
        for word in re.findall(r"\w{3,}", text.lower()):
            vector[int(chance(word[:5]) * 512)] += 1.0
        length = sum(x * x for x in vector) ** 0.5
        return [x / length for x in vector]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of several texts."""
        return [self.embed_query(text) for text in texts]


class Sentences(Embeddings):
    """MiniLM as LangChain has embeddings."""

    def __init__(self) -> None:
        self.model = MiniLM()

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of several texts."""
        return [[float(x) for x in row] for row in self.model.embed_documents(texts)]


HAS_MINILM = all(map(find_spec, MINILM_PACKAGES))


@cache
def embedding() -> Embeddings:
    """MiniLM where its weights are installed."""
    return Sentences() if HAS_MINILM else WordCounts()


def index(documents: Sequence[Document]) -> Chroma:
    """An index of its own in memory."""
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    store = Chroma(
        collection_name=f"c{uuid.uuid4().hex}",
        embedding_function=embedding(),
        client=client,
        collection_metadata={"hnsw:space": "cosine"},
    )
    store.add_documents(list(documents))
    return store


class StandIn(SimpleChatModel):
    """Answers with the sentence of its prompt that holds the fact; `spoil` may change that.

    Where the prompt lacks it, the model declines, quotes the nearest sentence or makes something up.
    One answer in 16 has other words in place of the right ones.
    """

    facts: dict[str, Any]
    spoil: Any = None

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def _call(self, messages: list[BaseMessage], **_: Any) -> str:
        context, _, question = str(messages[-1].content).rpartition("Question: ")
        fact: Fact = self.facts[question.strip()]
        if self.spoil and (said := self.spoil(fact, context)) is not None:
            return str(said)
        if fact.sentence in context:
            slips = chance("slip", fact.id) < 1 / 16
            short = chance("short", fact.id) < 1 / 3
            return fact.wrong if slips else fact.reference if short else fact.sentence
        if fact.wrong in context:
            return fact.wrong
        drawn = chance("lacking", fact.id)
        if drawn < 1 / 3 or not context.strip():
            return DECLINES
        if drawn < 2 / 3:
            return fact.wrong
        asked = set(re.findall(r"\w{4,}", question.lower()))
        return max(
            (one for line in context.split("\n") for one in sentences(line)),
            key=lambda one: len(asked & set(re.findall(r"\w{4,}", one.lower()))),
        )


def prompt_of(question: str, texts: Sequence[str]) -> str:
    """Passages and question."""
    return "\n".join(["Answer from these passages.", *texts, f"Question: {question}"])


@dataclass(frozen=True)
class PlantedApp:
    """An app, what is wrong with it, and what the page has to say of it.

    ``losses``: codes of the headline's loss, any of which names the fault. ``fixes``: names of first
    steps that mend it.
    """

    name: str
    fault: str
    owner: str
    losses: frozenset[str]
    fixes: frozenset[str]
    app: Callable[[str], Any]
    gold: list[dict[str, Any]]
    facts: list[Fact]
    corpus: list[dict[str, str]] | None = None
    judge_facts: Mapping[str, Fact] = field(default_factory=dict)


def gold_of(world: str) -> list[dict[str, Any]]:
    """The gold set of a domain."""
    return [
        {"id": f.id, "question": f.question, "relevant": [f.id], "reference": f.reference}
        for f in facts_of(world)
    ]


def chain(
    world: str,
    search: Callable[[str], list[Document]],
    *,
    spoil: Callable[[Fact, str], str | None] | None = None,
    cut: Callable[[str], str] = lambda text: text,
) -> Callable[[str], str]:
    """An app: search, prompt, model."""
    facts = facts_of(world)
    model = StandIn(facts={fact.question: fact for fact in facts}, spoil=spoil)

    def app(question: str) -> str:
        texts = [cut(found.page_content) for found in search(question)]
        return str(model.invoke(prompt_of(question, texts)).content)

    return app


def plant(
    name: str, fault: str, owner: str, losses: str, fixes: str, world: str, app: Any, **more: Any
) -> PlantedApp:
    """An app with the gold set of its domain."""
    given = {"gold": gold_of(world), "facts": facts_of(world), **more}
    codes, steps = (frozenset(text.split()) for text in (losses, fixes))
    return PlantedApp(name, fault, owner, codes, steps, app, **given)


def hidden_by_filter() -> PlantedApp:
    """Half of the passages have another year than the filter of the search asks for."""
    documents = documents_of("library", metadata=lambda n: {"year": 2024 + n % 2})
    retriever = index(documents).as_retriever(search_kwargs={"k": 4, "filter": {"year": 2025}})
    return plant(
        "hidden_by_filter", "a metadata filter hides half of the passages", "retriever",
        "filter", "check_filter", "library", chain("library", retriever.invoke),
    )  # fmt: skip


def too_few_passages() -> PlantedApp:
    """Of a corpus whose passages are alike, one passage is retrieved."""
    retriever = index(documents_of("bikes")).as_retriever(search_kwargs={"k": 1})
    return plant(
        "too_few_passages", "only one passage is retrieved", "retriever",
        "rank retrieval_miss", "larger_k rerank hybrid_search", "bikes", chain("bikes", retriever.invoke),
    )  # fmt: skip


def half_shown() -> PlantedApp:
    """The prompt has the first half of each passage."""
    retriever = index(documents_of("brewery")).as_retriever(search_kwargs={"k": 4})
    return plant(
        "half_shown", "the prompt has the first half of each passage", "prompt",
        "passage_cut", "keep_in_prompt", "brewery",
        chain("brewery", retriever.invoke, cut=lambda text: text[: len(text) // 2]),
    )  # fmt: skip


def stale_index() -> PlantedApp:
    """The index was built before two in three documents changed; the corpus file has today's."""
    today = documents_of("museum")
    facts = {fact.id: fact for fact in facts_of("museum")}
    old = [
        Document(id=one.id, page_content=facts[one.id].with_other(one.page_content))
        if one.id in facts and number % 3
        else one
        for number, one in enumerate(today)
    ]
    retriever = index(old).as_retriever(search_kwargs={"k": 4})
    return plant(
        "stale_index", "the index holds an older text of two in three documents", "index",
        "stale_passage", "conflicting_sources", "museum", chain("museum", retriever.invoke),
        corpus=[{"id": str(one.id), "text": one.page_content} for one in today],
    )  # fmt: skip


def never_indexed() -> PlantedApp:
    """Eight documents of the corpus are not in the index."""
    documents = [
        one for one in documents_of("garden") if int(str(one.id)[-1], 16) % 2 or "x" in str(one.id)
    ]
    retriever = index(documents).as_retriever(search_kwargs={"k": 4})
    return plant(
        "never_indexed", "half of the documents were never indexed", "index",
        "not_indexed", "not_indexed index_documents", "garden", chain("garden", retriever.invoke),
    )  # fmt: skip


def invents_numbers() -> PlantedApp:
    """The model changes the answer in half of the cases."""
    retriever = index(documents_of("bank")).as_retriever(search_kwargs={"k": 4})

    def spoil(fact: Fact, context: str) -> str | None:
        is_chosen = fact.sentence in context and int(fact.id[-2:]) % 2
        return fact.wrong if is_chosen else None

    return plant(
        "invents_numbers", "the model states another number than its prompt", "generator",
        "contradicts_context fabricated unfaithful", "contradicts_context fabricated", "bank",
        chain("bank", retriever.invoke, spoil=spoil),
    )  # fmt: skip


def refuses() -> PlantedApp:
    """The model declines in two of three cases although the passage is in its prompt."""
    retriever = index(documents_of("clinic")).as_retriever(search_kwargs={"k": 4})

    def spoil(fact: Fact, _: str) -> str | None:
        return "I'm sorry, I cannot help with that." if int(fact.id[-2:]) % 3 else None

    return plant(
        "refuses", "the model declines although the passage is in its prompt", "generator",
        "over_refused", "over_refused", "clinic", chain("clinic", retriever.invoke, spoil=spoil),
    )  # fmt: skip


def reranker_drops() -> PlantedApp:
    """A reranker that likes long passages keeps two of six."""
    retriever = index(documents_of("rail")).as_retriever(search_kwargs={"k": 6})

    def search(question: str) -> list[Document]:
        found = retriever.invoke(question)
        return sorted(found, key=lambda one: -len(one.page_content))[:2]

    return plant(
        "reranker_drops", "a reranker keeps the longest passages", "prompt",
        "dropped_from_prompt", "dropped_from_prompt keep_in_prompt", "rail", chain("rail", search),
    )  # fmt: skip


def two_versions() -> PlantedApp:
    """Last year's edition of each rule is in the index, too, and the model follows it in most cases."""
    facts = facts_of("staff")
    old = [
        Document(
            id=f"{fact.id}-2023", page_content=f"Edition of 2023: {fact.with_other(fact.passage)}"
        )
        for fact in facts
    ]
    retriever = index([*documents_of("staff"), *old]).as_retriever(search_kwargs={"k": 4})

    def spoil(fact: Fact, context: str) -> str | None:
        return (
            fact.wrong
            if fact.with_other(fact.passage) in context and int(fact.id[-2:]) % 3
            else None
        )

    return plant(
        "two_versions", "two editions of each rule contradict each other", "index",
        "conflicting_sources", "conflicting_sources", "staff", chain("staff", retriever.invoke, spoil=spoil),
    )  # fmt: skip


def wrong_references() -> PlantedApp:
    """The references of half of the questions are wrong."""
    retriever = index(documents_of("school")).as_retriever(search_kwargs={"k": 4})
    facts = facts_of("school")
    gold = [
        {**row, "reference": fact.wrong} if number % 2 else row
        for number, (row, fact) in enumerate(zip(gold_of("school"), facts, strict=True))
    ]
    return plant(
        "wrong_references", "the references of half of the questions are wrong", "gold_set",
        "gold_suspect", "gold_suspect", "school", chain("school", retriever.invoke), gold=gold,
    )  # fmt: skip


def skips_the_search() -> PlantedApp:
    """An agent that answers from memory in two of three cases, mostly wrongly."""
    retriever = index(documents_of("hotel")).as_retriever(search_kwargs={"k": 4})

    def search(question: str) -> list[Document]:
        return retriever.invoke(question) if chance("agent", question) < 1 / 3 else []

    def spoil(fact: Fact, context: str) -> str | None:
        return None if fact.sentence in context else fact.wrong

    return plant(
        "skips_the_search", "an agent does not search in two of three cases", "prompt",
        "not_searched", "not_searched", "hotel", chain("hotel", search, spoil=spoil),
    )  # fmt: skip


def loses_the_subject() -> PlantedApp:
    """A rewriter of queries takes the name out of the question."""
    retriever = index(documents_of("scooters")).as_retriever(search_kwargs={"k": 2})

    def search(question: str) -> list[Document]:
        return retriever.invoke(re.sub(r" (?:of )?the (?:Nimbus|Heron|Pika|Otter)", "", question))

    return plant(
        "loses_the_subject", "the query lacks the name that the question has", "prompt",
        "lost_context", "lost_context", "scooters", chain("scooters", search),
    )  # fmt: skip


APPS: dict[str, Callable[[], PlantedApp]] = {
    make.__name__: make
    for make in (
        hidden_by_filter, too_few_passages, half_shown, stale_index, never_indexed, invents_numbers,
        refuses, reranker_drops, two_versions, wrong_references, skips_the_search, loses_the_subject,
    )
}  # fmt: skip


class NoisyJudge:
    """Knows what each sentence states, and errs about one in ten."""

    def __init__(self, planted: PlantedApp) -> None:
        self.name, self.identity = "noisy", {"judge": "noisy", "app": planted.name}
        self.facts = {fact.question: fact for fact in planted.facts}

    async def ask(self, ask: Ask) -> Reply:
        """Examine an answer, or say what passages hold of claims."""
        reply = self._needs(ask) if ask.name == "claim_needs" else self._examine(ask.inputs)
        if ask.name not in {"examination", "examination_rest", "claim_needs"}:
            return Reply.nothing(f"not asked of this judge: {ask.name}")
        known = ask.schema.model_fields
        chosen = {key: value for key, value in reply.items() if key in known}
        return Reply(ask.schema.model_validate(chosen), str(chosen))

    async def close(self) -> None:
        """Nothing is open."""

    def _states(self, fact: Fact, text: str) -> str | None:
        """The value that a text states of a fact."""
        folded = text.lower()
        if fact.reference.lower() in folded or fact.sentence.lower() in folded:
            return fact.key
        return fact.other if fact.wrong.lower() in folded else None

    def _examine(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        fact, passages = self.facts[inputs["question"]], tuple(inputs["passages"])
        holding = [n for n, text in enumerate(passages) if fact.sentence in text]
        denying = [n for n, text in enumerate(passages) if fact.wrong in text]
        answer, references = inputs["answer"], inputs.get("references") or ()
        stated, expected = self._states(fact, answer), self._states(fact, " ".join(references))
        declines = answer == DECLINES or answer.startswith("I'm sorry")
        right = stated is not None and stated == expected
        claims = []
        for sentence in () if declines else sentences(answer):
            value = self._states(fact, sentence)
            quotes = [s for text in passages for s in sentences(text) if s == sentence]
            if value == fact.key and holding:
                quotes = [fact.sentence]
            support = (
                "supported" if quotes else "contradicted" if holding and value else "unsupported"
            )
            if support == "contradicted":
                quotes = [fact.sentence]
            elif value and not quotes and denying:
                support, quotes = "contradicted", [fact.wrong]
            agrees = (
                "silent" if value is None or not expected else "agrees" if right else "contradicts"
            )
            if chance("judge", fact.id, sentence) < ERRORS:
                support, quotes, agrees = (
                    ("unsupported", [], "silent")
                    if support == "supported"
                    else ("supported", [sentences(passages[0])[0]] if passages else [], "agrees")
                )
            claims.append(
                {
                    "span": sentence,
                    "claim": None,
                    "quotes": quotes,
                    "support": support,
                    "reference": agrees,
                }
            )
        return {
            "claims": claims,
            "passages": [
                {"passage": n + 1, "relevant": n in holding} for n in range(len(passages))
            ],
            "sufficient": "yes" if holding else "no",
            "response": "declines" if declines else "answers" if stated else "evades",
            "helpful": 4 if right else 1,
            "reference_claims": [
                {
                    "reference": 1,
                    "text": text,
                    "answer": "states" if right else "contradicts" if stated else "omits",
                }
                for text in references
            ],
            "standalone_question": fact.question,
        }

    def _needs(self, ask: Ask) -> dict[str, Any]:
        fact, passages = self.facts[ask.inputs["question"]], tuple(ask.inputs["passages"])
        replies = []
        for number, claim in enumerate(ask.inputs["claims"], 1):
            text = claim if isinstance(claim, str) else claim["text"]
            value = self._states(fact, text)
            told = {fact.key: fact.sentence, fact.other: fact.wrong}
            entry: dict[str, Any] = {
                "claim": number,
                "relation": "unrelated",
                "passage": None,
                "quote": None,
            }
            for n, passage in enumerate(passages, 1):
                for stated, quote in told.items():
                    if value and quote in passage and entry["relation"] != "would_support":
                        relation = "would_support" if stated == value else "would_contradict"
                        entry |= {"relation": relation, "passage": n, "quote": quote}
            if chance("needs", fact.id, text) < ERRORS:
                entry |= {"relation": "unrelated", "passage": None, "quote": None}
            replies.append(entry)
        return {"claims": replies}


@dataclass(frozen=True)
class Said:
    """What a run says first."""

    headline: str
    owners: tuple[str, ...]
    loss: str
    step: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run) -> Said:
        """Read off a run."""
        findings = find(run)
        loss, _ = name_loss(findings, findings.blamed[0]) if findings.blamed else ("", 0)
        return cls(
            describe_verdict(findings), findings.blamed, loss, run.summary["first_step"] or {}
        )

    def names(self, planted: PlantedApp) -> tuple[bool, bool]:
        """Whether headline and first step name the fault."""
        headline = self.owners == (planted.owner,) and self.loss in planted.losses
        step = self.step.get("owner") == planted.owner and self.step.get("fix") in planted.fixes
        return headline, step


def evaluate(planted: PlantedApp, judge: str, out: Path) -> Run:
    """Evaluate an app with a judge."""
    return misslink.evaluate(
        planted.app,
        planted.gold,
        judge=NoisyJudge(planted) if judge == "noisy" else "heuristic",
        corpus=planted.corpus,
        out=out / f"{planted.name}-{judge}",
        cache=None,
        overwrite=True,
    )


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apps", nargs="*", choices=[*APPS, []], default=[])
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    parser.add_argument("--out", type=Path, help="folder that keeps the runs")
    options = parser.parse_args()
    names, judges = options.apps or [*APPS], ("heuristic", "noisy")
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        page = "\n".join(rows(names, judges, options.out or Path(folder)))
    print(f"{page}\n\n{time.process_time() - began:.0f} s of CPU")
    if options.write:
        model = "MiniLM" if HAS_MINILM else "counts of words"
        TARGET.write_text(
            f"{INTRO.format(apps=len(names), embedding=model)}\n{page}\n", encoding="utf-8"
        )


def rows(names: Sequence[str], judges: Sequence[str], out: Path) -> Iterator[str]:
    """The table of what was planted and what was said."""
    yield "| app | planted | judge | headline | first step | right |"
    yield "|---|---|---|---|---|---|"
    right = dict.fromkeys(judges, 0)
    for name in names:
        planted = APPS[name]()
        for judge in judges:
            said = Said.of(evaluate(planted, judge, out))
            named = said.names(planted)
            right[judge] += all(named)
            verdict = {
                (True, True): "yes",
                (True, False): "headline only",
                (False, True): "step only",
            }
            step = said.step.get("action", "none")
            yield f"| {name} | {planted.fault} ({planted.owner}) | {judge} | {said.headline} | {step} | {verdict.get(named, 'no')} |"
    total = ", ".join(f"{judge} {count} of {len(names)}" for judge, count in right.items())
    yield f"\nRight: {total}."


if __name__ == "__main__":
    main()
