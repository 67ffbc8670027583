"""Does the page say first what is wrong with an app? Sixteen small apps by one who had not seen the rules.

    python benchmarks/report/blind_apps.py [--write] [--out DIR] [APP ...]

As in `planted_apps.py`, each app has a domain of its own (`blind_apps.toml`) and one planted fault; what a
right first step has to say stands beside it. Whether the first step is the right one is for a reader to
say; the table counts where headline and first step are of the right owner.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import START, MessagesState, StateGraph

import misslink
from misslink.types import Run
from planted_apps import (
    DECLINES,
    ERRORS,
    Fact,
    NoisyJudge,
    Said,
    StandIn,
    chance,
    embedding,
    index,
    prompt_of,
    sentences,
)

WORLDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TEMPLATE = "Answer from these passages.\n{context}\nQuestion: {question}"
Spoil = Callable[[Fact, str], str | None]


@dataclass(frozen=True)
class BlindApp:
    """An app, what is wrong with it, and what is given to misslink.

    ``planted``: the true owner of each case that a planted fault reaches. ``step``: what a right first
    step says in substance. ``states``: further texts that state a right or wrong value.
    """

    name: str
    fault: str
    owner: str
    step: str
    planted: Mapping[str, str]
    parts: Mapping[str, Sequence[Fact]]
    given: Mapping[str, Any]
    states: Mapping[str, str] = field(default_factory=dict)
    standalone: Mapping[str, str] = field(default_factory=dict)


class KnowingJudge(NoisyJudge):
    """Knows the needs of each question, and errs in one of ten sentences."""

    def __init__(self, planted: BlindApp) -> None:
        self.name, self.identity = "noisy", {"judge": "noisy", "app": planted.name}
        self.parts, self.planted = planted.parts, planted

    def _states(self, fact: Fact, text: str) -> str | None:
        folded = text.lower()
        told = (value for said, value in self.planted.states.items() if said.lower() in folded)
        value = next((value for value in told if value in (fact.key, fact.other)), None)
        return value or super()._states(fact, text)

    def _examine(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        question, answer = inputs["question"], inputs["answer"]
        parts, passages = self.parts[question], tuple(inputs["passages"])
        references = " ".join(inputs.get("references") or ())
        declines, claims, needs = answer == DECLINES, [], []
        for sentence in () if declines else sentences(answer):
            told = [(fact, self._states(fact, sentence)) for fact in parts]
            fact, value = next((pair for pair in told if pair[1]), (parts[0], None))
            holds = any(fact.sentence in text for text in passages)
            quotes = [s for text in passages for s in sentences(text) if sentence in s][:1]
            quotes = [sentence] if quotes else []
            if value == fact.key and holds:
                quotes = [fact.sentence]
            support = "supported" if quotes else "unsupported"
            if value == fact.other and holds and not quotes:
                support, quotes = "contradicted", [fact.sentence]
            expected = self._states(fact, references)
            agrees = "agrees" if value == expected else "contradicts"
            agrees = agrees if value and expected else "silent"
            if chance("judge", fact.id, sentence) < ERRORS:
                support, quotes, agrees = (
                    ("unsupported", [], "silent")
                    if support == "supported"
                    else ("supported", [sentences(passages[0])[0]] if passages else [], "agrees")
                )
            claim = {"span": sentence, "claim": None, "quotes": quotes}
            claims.append({**claim, "support": support, "reference": agrees})
        stated = [self._states(fact, answer) for fact in parts]
        right = [value == (self._states(f, references) if references else f.key) and value is not None
                 for f, value in zip(parts, stated, strict=True)]  # fmt: skip
        if references:
            texts = [references] if len(parts) == 1 else [fact.sentence for fact in parts]
            for fact, text, value, is_right in zip(parts, texts, stated, right, strict=True):
                contradicts = value and self._states(fact, references)
                told = "states" if is_right else "contradicts" if contradicts else "omits"
                needs.append({"reference": 1, "text": text, "answer": told})
        holding = {n for n, text in enumerate(passages) for fact in parts if fact.sentence in text}
        complete = all(any(fact.sentence in text for text in passages) for fact in parts)
        return {
            "claims": claims,
            "passages": [
                {"passage": n + 1, "relevant": n in holding} for n in range(len(passages))
            ],
            "sufficient": "yes" if complete else "no",
            "response": "declines" if declines else "answers" if any(stated) else "evades",
            "helpful": 4 if all(right) else 2 if any(right) else 1,
            "reference_claims": needs,
            "standalone_question": self.planted.standalone.get(question, question),
        }

    def _needs(self, ask: Mapping[str, Any] | Any) -> dict[str, Any]:
        parts, passages = self.parts[ask.inputs["question"]], tuple(ask.inputs["passages"])
        replies = []
        for number, claim in enumerate(ask.inputs["claims"], 1):
            text = claim if isinstance(claim, str) else claim["text"]
            nothing = {"claim": number, "relation": "unrelated", "passage": None, "quote": None}
            entry = nothing
            for fact in parts:
                value = self._states(fact, text)
                told = {fact.key: fact.sentence, fact.other: fact.wrong}
                for n, passage in enumerate(passages, 1):
                    for stated, quote in told.items():
                        if value and quote in passage and entry["relation"] != "would_support":
                            relation = "would_support" if stated == value else "would_contradict"
                            entry = {**entry, "relation": relation, "passage": n, "quote": quote}
            errs = chance("needs", parts[0].id, text) < ERRORS
            replies.append(nothing if errs else entry)
        return {"claims": replies}


class Keywords(BaseRetriever):
    """Ranks by the number of shared words."""

    documents: list[Document]
    k: int = 3

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        asked = words(query)
        ranked = sorted(self.documents, key=lambda one: -len(asked & words(one.page_content)))
        return ranked[: self.k]


STOP = frozenset(
    re.findall(
        r"\w+",
        "what which when where how does with from that this many much have for and the are can who into "
        "not her out one its",
    )
)


def words(text: str) -> set[str]:
    """The words of a text that say something."""
    return set(re.findall(r"\w{3,}", text.lower())) - STOP


def facts_of(world: str) -> list[Fact]:
    """The facts of a domain."""
    return [Fact(f"{world}-{n:02}", *row[:5]) for n, row in enumerate(WORLDS[world]["facts"], 1)]


def documents_of(world: str, facts: Sequence[Fact]) -> list[Document]:
    """A passage for each fact, and those that answer nothing."""
    texts = {fact.id: fact.passage for fact in facts}
    texts |= {f"{world}-x{n}": text for n, text in enumerate(WORLDS[world]["others"])}
    return [Document(id=name, page_content=text) for name, text in texts.items()]


def corpus_of(documents: Sequence[Document]) -> list[dict[str, str]]:
    """Documents as a corpus."""
    return [{"id": str(one.id), "text": one.page_content} for one in documents]


def write_lines(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def gold_of(facts: Sequence[Fact], *keys: str) -> list[dict[str, Any]]:
    """A gold set with some of its keys."""
    rows = [{"id": f.id, "question": f.question, "relevant": [f.id], "reference": f.reference} for f in facts]  # fmt: skip
    kept = {"id", "question", *keys}
    return [{key: value for key, value in row.items() if key in kept} for row in rows]


def model_of(facts: Sequence[Fact], spoil: Spoil | None = None) -> StandIn:
    """The stand-in for a model."""
    return StandIn(facts={fact.question: fact for fact in facts}, spoil=spoil)


def join(documents: Sequence[Document]) -> str:
    """The texts of documents, one a line."""
    return "\n".join(one.page_content for one in documents)


def chain(context: Any, model: StandIn) -> Any:
    """A LangChain chain over what makes the context of a question."""
    steps = {"context": context, "question": RunnablePassthrough()}
    return steps | ChatPromptTemplate.from_template(TEMPLATE) | model | StrOutputParser()


def function(
    search: Callable[[str], list[Document]], model: StandIn
) -> Callable[[str], dict[str, Any]]:
    """A plain function that returns its answer and its passages."""

    def app(question: str) -> dict[str, Any]:
        found = search(question)
        answer = model.invoke(prompt_of(question, [one.page_content for one in found])).content
        return {"answer": str(answer), "retrieved": corpus_of(found)}

    return app


class State(MessagesState):
    """Messages, the query and what was found."""

    query: str
    found: list[Document]


def graph(write: Callable[[str], str], retriever: Any, keep: Any, model: StandIn) -> Any:
    """A graph that writes a query, searches, keeps some passages and answers."""

    def rewrite(state: State) -> dict[str, Any]:
        return {"query": write(str(state["messages"][-1].content))}

    def find(state: State) -> dict[str, Any]:
        return {"found": retriever.invoke(state["query"])}

    def thin(state: State) -> dict[str, Any]:
        return {"found": keep(state["found"])}

    def respond(state: State) -> dict[str, Any]:
        texts = [one.page_content for one in state["found"]]
        return {"messages": [model.invoke(prompt_of(str(state["messages"][-1].content), texts))]}

    made = StateGraph(State)
    for name, node in {"rewrite": rewrite, "find": find, "thin": thin, "respond": respond}.items():
        made.add_node(name, node)
    made.add_edge(START, "rewrite").add_edge("rewrite", "find").add_edge("find", "thin")
    return made.add_edge("thin", "respond").compile()


def record(
    facts: Sequence[Fact], retriever: Any, model: StandIn, *, prompts: bool
) -> list[dict[str, Any]]:
    """The traces of an app."""
    rows = []
    for fact in facts:
        found = retriever.invoke(fact.question)
        prompt = prompt_of(fact.question, [one.page_content for one in found])
        row = {"case_id": fact.id, "question": fact.question, "retrieved": corpus_of(found),
               "answer": str(model.invoke(prompt).content)}  # fmt: skip
        rows.append(row | {"prompt": prompt} if prompts else row)
    return rows


def own(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """The one fact of each question."""
    return {fact.question: [fact] for fact in facts}


def mark(facts: Sequence[Fact], owner: str, start: int = 1) -> dict[str, str]:
    """Every second case has an owner."""
    return {fact.id: owner for fact in facts[start::2]}


def ski_passes(_: Path) -> BlindApp:
    """A function embeds the headings of a FAQ, and half of them are 'General information'."""
    facts, world = facts_of("ski_passes"), WORLDS["ski_passes"]
    documents = documents_of("ski_passes", facts)
    vectors = embedding().embed_documents([*world["headings"], "Our history", "Snow reports"])

    def search(question: str) -> list[Document]:
        asked = embedding().embed_query(question)
        closeness = [sum(a * b for a, b in zip(asked, one, strict=True)) for one in vectors]
        order = sorted(range(len(documents)), key=lambda n: -closeness[n])
        return [documents[n] for n in order[:3]]

    gold = gold_of(facts, "relevant", "reference")
    stale = {facts[n].id: "gold_set" for n in (0, 10)}
    for row, fact in zip(gold, facts, strict=True):
        if fact.id in stale:
            row["reference"] = fact.wrong
    return BlindApp(
        "ski_passes", "the index embeds headings, half of which say nothing; besides, 2 references are stale", "retriever or index",
        "embed the text (index again), search words too (hybrid), or try another embedding",
        mark(facts, "retriever") | stale, own(facts),
        {"app": function(search, model_of(facts)), "goldset": gold, "corpus": corpus_of(documents)},
    )  # fmt: skip


def dishwasher(_: Path) -> BlindApp:
    """Of half of the sections that a chunk leads to, only the title is passed on."""
    facts = facts_of("dishwasher")
    titles = {
        fact.id: row[5] for fact, row in zip(facts, WORLDS["dishwasher"]["facts"], strict=True)
    }
    planted = mark(facts, "prompt")
    retriever = index(documents_of("dishwasher", facts)).as_retriever(search_kwargs={"k": 4})

    def fetch(found: list[Document]) -> str:
        return "\n".join(
            titles[str(one.id)] if one.id in planted else one.page_content for one in found
        )

    return BlindApp(
        "dishwasher", "of half of the sections only the title is passed to the prompt", "prompt",
        "show retrieved passages whole, keep their text in the prompt", planted, own(facts),
        {"app": chain(retriever | RunnableLambda(fetch), model_of(facts)), "goldset": gold_of(facts, "relevant", "reference")},
    )  # fmt: skip


def parking(_: Path) -> BlindApp:
    """A summarizer between retriever and model drops numbers; each gold label has two ids too many."""
    facts = facts_of("parking")
    retriever = index(documents_of("parking", facts)).as_retriever(search_kwargs={"k": 4})

    def summarize(found: list[Document]) -> str:
        return re.sub(r"\d[\d.:,]*\d|\d", "some", join(found))

    gold = gold_of(facts, "relevant", "reference")
    for n, row in enumerate(gold):
        row["relevant"] = [facts[(n + step) % len(facts)].id for step in range(3)]
    return BlindApp(
        "parking", "a summarizer before the prompt drops numbers; labels list two passages too many", "prompt",
        "show retrieved passages whole; look at the step that compresses them", {f.id: "prompt" for f in facts if re.search(r"\d", f.key)}, own(facts),
        {"app": chain(retriever | RunnableLambda(summarize), model_of(facts)), "goldset": gold},
    )  # fmt: skip


def minutes(_: Path) -> BlindApp:
    """The app searches with the last turn alone."""
    facts = facts_of("minutes")
    documents, model = documents_of("minutes", facts), model_of(facts)
    retriever = index(documents).as_retriever(search_kwargs={"k": 2})

    def app(question: str, history: Sequence[Mapping[str, str]] = ()) -> str:
        texts = [one.page_content for one in retriever.invoke(question)]
        said = "\n".join(turn["content"] for turn in history)
        return str(model.invoke(f"{said}\n{prompt_of(question, texts)}").content)

    turns = gold_of(facts, "relevant", "reference")
    gold = []
    for n in range(0, len(turns), 2):
        pair = [
            {key: value for key, value in row.items() if key != "id"} for row in turns[n : n + 2]
        ]
        gold.append({"id": f"talk-{n // 2 + 1}", "turns": pair})
    follow_ups = [fact.question for fact in facts[1::2]]
    alone = dict(zip(follow_ups, WORLDS["minutes"]["standalone"], strict=True))
    parts = own(facts)
    parts |= {alone[question]: parts[question] for question in alone}
    return BlindApp(
        "minutes", "a follow-up is searched without the turns before it", "prompt",
        "the query must keep what earlier turns name", {f"talk-{n}/2": "prompt" for n in range(1, 8)}, parts,
        {"app": app, "goldset": gold, "corpus": corpus_of(documents)}, standalone=alone,
    )  # fmt: skip


def release_notes(_: Path) -> BlindApp:
    """The model answers from memory in half of the cases; labels of the others name a neighbor's id."""
    facts, rows = facts_of("release_notes"), WORLDS["release_notes"]["facts"]
    memory = {fact.id: row[5] for fact, row in zip(facts, rows, strict=True) if row[5]}
    retriever = index(documents_of("release_notes", facts)).as_retriever(search_kwargs={"k": 4})
    gold = gold_of(facts, "relevant", "reference")
    for n, row in enumerate(gold):
        if row["id"] not in memory:
            row["relevant"] = [facts[(n + 1) % len(facts)].id]
    return BlindApp(
        "release_notes", "the model answers from memory; labels of right answers name the wrong passage", "generator",
        "make the model keep to its passages: quotes, best passages first, a stronger model", dict.fromkeys(memory, "generator"), own(facts),
        {"app": chain(retriever | join, model_of(facts, lambda fact, _: memory.get(fact.id))), "goldset": gold},
        states={memory[f.id]: f.other for f in facts if f.id in memory},
    )  # fmt: skip


def coffee(folder: Path) -> BlindApp:
    """Traces alone: half of the answers are about another lot of the prompt."""
    world = WORLDS["coffee"]
    names = world["names"]
    facts = [
        Fact(f"coffee-{len(names) * r + n + 1:02}", question.format(name=name), values[n],
             told.format(name=name, value=values[n]), values[n], values[n - 1])
        for r, (question, told, values) in enumerate(world["rows"]) for n, name in enumerate(names)
    ]  # fmt: skip
    said = [f"{facts[n].passage} {facts[n + len(names)].passage} {world['more'][n]}" for n in range(len(names))]  # fmt: skip
    texts = [
        json.dumps({"lot": name, "text": text}) for name, text in zip(names, said, strict=True)
    ]
    documents = [Document(id=f"lot-{n}", page_content=text) for n, text in enumerate(texts, 1)]
    retriever = index(documents).as_retriever(search_kwargs={"k": 4})
    planted = mark(facts, "generator")

    def spoil(fact: Fact, context: str) -> str | None:
        if fact.id not in planted or fact.sentence not in context:
            return None
        row = facts[: len(names)] if fact in facts[: len(names)] else facts[len(names) :]
        return next(one.sentence for one in row if one is not fact and one.sentence in context)

    traces = record(facts, retriever, model_of(facts, spoil), prompts=True)
    return BlindApp(
        "coffee", "half of the answers are about another lot; traces without a gold set", "generator",
        "keep to the question: repeat it after the passages, fewer passages, quotes, a stronger model", planted, own(facts),
        {"traces": write_lines(traces, folder / "coffee.jsonl")},
    )  # fmt: skip


def blood(_: Path) -> BlindApp:
    """A rewriter writes half of the queries in German; the search over English texts is by words."""
    facts, rows = facts_of("blood"), WORLDS["blood"]["facts"]
    documents = documents_of("blood", facts)[::-1]
    planted = mark(facts, "prompt")
    german = {
        fact.question: row[5] for fact, row in zip(facts, rows, strict=True) if fact.id in planted
    }
    app = graph(
        lambda question: german.get(question, question), Keywords(documents=documents, k=3), list, model_of(facts)
    )  # fmt: skip
    return BlindApp(
        "blood", "a rewriter writes half of the queries in German, the texts are in English", "prompt",
        "look at the query that the app wrote (or a multilingual search)", planted, own(facts),
        {"app": app, "goldset": gold_of(facts, "relevant", "reference"), "corpus": corpus_of(documents)},
    )  # fmt: skip


def house_rules(_: Path) -> BlindApp:
    """Chunks of a fixed width cut half of the sentences."""
    texts, width = WORLDS["house_rules"]["documents"], 150
    told = [sentence for text in texts for sentence in sentences(text)]
    facts = [
        Fact(f"house_rules-{n:02}", question, reference, one, key, other)
        for n, (one, (question, reference, key, other)) in enumerate(
            zip(told, WORLDS["house_rules"]["facts"], strict=True), 1
        )
    ]
    chunks = [
        Document(id=f"rules-{number}-{at // width}", page_content=text[at : at + width])
        for number, text in enumerate(texts, 1)
        for at in range(0, len(text), width)
    ]
    cut = {
        f.id: "index" for f in facts if not any(f.sentence in one.page_content for one in chunks)
    }
    retriever = index(chunks).as_retriever(search_kwargs={"k": 3})
    gold = [
        row | {"evidence": f.sentence}
        for row, f in zip(gold_of(facts, "reference"), facts, strict=True)
    ]
    return BlindApp(
        "house_rules", "chunks of a fixed width cut sentences", "index (or retriever)",
        "larger chunks, an overlap, or chunks that end with a sentence", cut, own(facts),
        {"app": chain(retriever | join, model_of(facts)), "goldset": gold},
    )  # fmt: skip


def chess_club(folder: Path) -> BlindApp:
    """The corpus lacks half of the articles, and the app declines; no labels."""
    facts = facts_of("chess_club")
    lacking = mark(facts, "index")
    documents = documents_of("chess_club", [fact for fact in facts if fact.id not in lacking])
    retriever = index(documents).as_retriever(search_kwargs={"k": 4})
    model = model_of(facts, lambda fact, context: None if fact.sentence in context else DECLINES)
    return BlindApp(
        "chess_club", "the corpus lacks what half of the questions ask for, and the app declines; no labels", "index",
        "add the missing documents", lacking, own(facts),
        {"app": function(retriever.invoke, model), "goldset": gold_of(facts, "reference"),
         "corpus": write_lines(corpus_of(documents), folder / "chess_club.jsonl")},
    )  # fmt: skip


def beekeeping(_: Path) -> BlindApp:
    """Seven references slipped by a row, so that each answers another question."""
    facts = facts_of("beekeeping")
    retriever = index(documents_of("beekeeping", facts)).as_retriever(search_kwargs={"k": 4})
    gold = gold_of(facts, "relevant", "reference")
    for n in range(7):
        gold[n]["reference"] = facts[(n + 1) % 7].reference
    return BlindApp(
        "beekeeping", "seven references slipped by a row and answer another question", "gold_set",
        "correct the references", {fact.id: "gold_set" for fact in facts[:7]}, own(facts),
        {"app": chain(retriever | join, model_of(facts)), "goldset": gold},
    )  # fmt: skip


def gym(folder: Path) -> BlindApp:
    """Half of the references are last year's; all are in other words than the texts. Traces, no labels."""
    told = facts_of("gym")
    stale = mark(told, "gold_set", 0)
    facts = [Fact(f.id, f.question, f.sentence, f.passage, f.key, f.other) for f in told]
    retriever = index(documents_of("gym", facts)).as_retriever(search_kwargs={"k": 4})
    traces = record(
        facts, retriever, model_of(facts, lambda fact, context: fact.sentence if fact.sentence in context else None), prompts=False
    )  # fmt: skip
    return BlindApp(
        "gym", "half of the references are last year's; all are worded in other words", "gold_set",
        "correct the references", stale, own(facts),
        {"traces": write_lines(traces, folder / "gym.jsonl"), "k": 4,
         "goldset": write_lines(gold_of(told, "reference"), folder / "gym-gold.jsonl")},
        states={f.reference: f.other if f.id in stale else f.key for f in told},
    )  # fmt: skip


def paints(_: Path) -> BlindApp:
    """A step drops table rows that begin alike; besides, the model contradicts two rows."""
    world = WORLDS["paints"]
    facts = [
        Fact(f"paints-{8 * r + n + 1:02}",
             (f"How long does {name} take to dry?", f"What area does a liter of {name} cover?")[r],
             f"{values[n][:1].upper()}{values[n][1:]}.",
             f"{world['lead'].format(name=name)} {told.format(name=name, value=values[n])}", values[n], others[n])
        for r, (told, values, others) in enumerate([world["first"], world["second"]]) for n, name in enumerate(world["names"])
    ]  # fmt: skip
    documents = documents_of("paints", facts)
    retriever = index(documents).as_retriever(search_kwargs={"k": 5})

    def keep(found: list[Document]) -> list[Document]:
        kept = {
            one.page_content[:36]: one for one in sorted(found, key=lambda one: str(one.id))[::-1]
        }
        return list(kept.values())[::-1]  # fmt: skip

    slips = {facts[n].id: "generator" for n in (0, 2)}

    def spoil(fact: Fact, context: str) -> str | None:
        return fact.wrong if fact.id in slips and fact.sentence in context else None

    return BlindApp(
        "paints", "a step drops rows that begin alike (8); besides, the model contradicts 2 rows", "prompt",
        "keep retrieved passages: look at the step that drops copies", {f.id: "prompt" for f in facts[8:]} | slips, own(facts),
        {"app": graph(str, retriever, keep, model_of(facts, spoil)), "goldset": gold_of(facts, "relevant", "reference"),
         "corpus": corpus_of(documents)},
    )  # fmt: skip


def cat_boarding(_: Path) -> BlindApp:
    """The model adds an invented sentence to half of its right answers; no references."""
    facts, rows = facts_of("cat_boarding"), WORLDS["cat_boarding"]["facts"]
    added = {fact.id: row[5] for fact, row in zip(facts, rows, strict=True) if row[5]}
    retriever = index(documents_of("cat_boarding", facts)).as_retriever(search_kwargs={"k": 4})

    def spoil(fact: Fact, context: str) -> str | None:
        says_more = fact.id in added and fact.sentence in context
        return f"{fact.sentence} {added[fact.id]}" if says_more else None

    return BlindApp(
        "cat_boarding", "the model adds an invented sentence to right answers; no references", "generator",
        "make the model keep to its passages: quotes, a stronger model", dict.fromkeys(added, "generator"), own(facts),
        {"app": chain(retriever | join, model_of(facts, spoil)), "goldset": gold_of(facts, "relevant")},
    )  # fmt: skip


def marathon(_: Path) -> BlindApp:
    """The model answers one of two parts; the labels list one of two passages."""
    pairs = {}
    for n, row in enumerate(WORLDS["marathon"]["pairs"], 1):
        made = (
            (f"marathon-{n:02}{part}", *row[:2], *row[at : at + 3])
            for part, at in (("a", 2), ("b", 5))
        )
        pairs[row[0]] = [Fact(*one) for one in made]
    firsts = [first for first, _ in pairs.values()]
    documents = documents_of("marathon", [fact for pair in pairs.values() for fact in pair])
    retriever = index(documents).as_retriever(search_kwargs={"k": 5})
    planted = mark(firsts, "generator")

    def spoil(fact: Fact, context: str) -> str | None:
        held = [one.sentence for one in pairs[fact.question] if one.sentence in context]
        return " ".join(held[:1] if fact.id in planted else held) or DECLINES

    return BlindApp(
        "marathon", "the model answers one of two parts; labels list one of two passages", "generator",
        "ask for every part of the question", planted, pairs,
        {"app": function(retriever.invoke, model_of(firsts, spoil)), "goldset": gold_of(firsts, "relevant", "reference")},
    )  # fmt: skip


def theater(folder: Path) -> BlindApp:
    """The index has the first 180 characters of each document."""
    facts = facts_of("theater")
    documents = documents_of("theater", facts)
    short = [Document(id=one.id, page_content=one.page_content[:180]) for one in documents]
    retriever = index(short).as_retriever(search_kwargs={"k": 3})
    return BlindApp(
        "theater", "the index has the first 180 characters of each document", "index",
        "index the documents again, whole or in chunks", {f.id: "index" for f in facts if f.sentence not in f.passage[:180]}, own(facts),
        {"app": chain(retriever | join, model_of(facts)), "goldset": gold_of(facts, "relevant", "reference"),
         "corpus": write_lines(corpus_of(documents), folder / "theater.jsonl")},
    )  # fmt: skip


def pottery(_: Path) -> BlindApp:
    """A search by words over a glossary, where half of the questions are in everyday words."""
    facts = facts_of("pottery")
    documents = documents_of("pottery", facts)
    return BlindApp(
        "pottery", "a search by words, and half of the questions have none of the glossary's words", "retriever",
        "hybrid or vector search, synonyms", mark(facts, "retriever", 0), own(facts),
        {"app": chain(Keywords(documents=documents, k=3) | RunnableLambda(join), model_of(facts)),
         "goldset": gold_of(facts, "relevant", "reference"), "corpus": corpus_of(documents)},
    )  # fmt: skip


APPS: dict[str, Callable[[Path], BlindApp]] = {
    make.__name__: make
    for make in (
        ski_passes, dishwasher, parking, minutes, release_notes, coffee, blood, house_rules, chess_club,
        beekeeping, gym, paints, cat_boarding, marathon, theater, pottery,
    )
}  # fmt: skip


TARGET = Path(__file__).with_suffix(".md")
INTRO = """\
# What the page said first of apps that its rules' author had not seen

Made by `python benchmarks/report/blind_apps.py --write`, at the first run. {apps} small RAG apps, each over a domain of its
own, with a stand-in for a language model and one planted fault; in half of them labels, a second fault or the wording
mislead. The noisy judge knows what each sentence states, and errs in one of ten. Right: headline and first step are both of
the owner of the fault. The step itself was read by a person: "Retrieve 10 passages, not 3" is no help for lay words in a search by words.

| app | planted | a right step | judge | headline | first step | owner right |
|---|---|---|---|---|---|---|
"""


def row(planted: BlindApp, judge: str, run: Run) -> tuple[str, bool]:
    """A line of the table, and whether headline and first step are of the right owner."""
    said = Said.of(run)
    owners = tuple(re.findall(r"\w+", planted.owner))
    is_right = {*said.owners, said.step.get("owner")} <= {*owners}
    step, mark = said.step.get("action", "none"), "yes" if is_right else "no"
    fault = f"{planted.fault} ({planted.owner}) | {planted.step}"
    return f"| {planted.name} | {fault} | {judge} | {said.headline} | {step} | {mark} |", is_right


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apps", nargs="*", choices=[*APPS, []], default=[])
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    parser.add_argument("--out", type=Path, help="folder that keeps the runs")
    options = parser.parse_args()
    lines, right, names = list[str](), Counter[str](), options.apps or [*APPS]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            planted = APPS[name](folder)
            for judge in ("heuristic", "noisy"):
                run = misslink.evaluate(
                    **planted.given,
                    judge=KnowingJudge(planted) if judge == "noisy" else judge,
                    out=folder / f"{name}-{judge}",
                    cache=None,
                    overwrite=True,
                )
                line, is_right = row(planted, judge, run)
                print(line, flush=True)
                lines.append(line)
                right[judge] += is_right
    total = ", ".join(f"{judge} {right[judge]} of {len(names)}" for judge in ("heuristic", "noisy"))
    page = INTRO.format(apps=len(names)) + "\n".join([*lines, f"\nRight: {total}.\n"])
    print(f"\nRight: {total}.")
    if options.write:
        TARGET.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
