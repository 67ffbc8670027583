"""What tests of the Ray engine share: an app and a judge that can die, and how runs compare."""

import json
from pathlib import Path

CHAIN = """
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

TOWNS = 12
documents = [
    Document(id=f"sky-{n}", page_content=f"By day the sky over town {n} is blue. Clouds are white.")
    for n in range(TOWNS)
]
store = InMemoryVectorStore.from_documents(documents, DeterministicFakeEmbedding(size=32))
prompt = ChatPromptTemplate.from_template("Context: {context}\\nQuestion: {question}")
model = FakeListChatModel(responses=["The sky is blue. Grass is red."])
retriever = store.as_retriever(search_kwargs={"k": 3})
chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model
"""

# It has the same without LangChain, which each worker would import for longer than the rest takes.
PLAIN = """
def app(question):
    town = int(question.split("town ")[1].split()[0])
    found = [
        {"id": f"sky-{n}", "text": f"By day the sky over town {n} is blue. Clouds are white."}
        for n in range(town % 5, town % 5 + 3)
    ]
    return {"answer": "The sky is blue. Grass is red.", "retrieved": found}
"""

# Judges and apps whose process dies once, at the question about town 3, as if for want of memory.
DEADLY = """
import os, signal
from pathlib import Path
from misslink.judge.session import create_judge
from misslink.judge.config import JudgeConfig

def die_once(text, times=1):
    with Path("asked.txt").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    deaths = len(list(Path(".").glob("death-*")))
    if "town 3" in text and deaths < times:
        Path(f"death-{deaths}").touch()
        os.kill(os.getpid(), signal.SIGKILL)

class Deadly:
    name = "deadly"
    identity = {"judge": "deadly"}

    def __init__(self):
        self.inner = create_judge("heuristic", JudgeConfig())

    async def ask(self, ask):
        die_once(str(ask.inputs))
        return await self.inner.ask(ask)

    async def close(self):
        await self.inner.close()

def app(question):
    die_once(question)
    return {"answer": "The sky is blue.", "retrieved": [{"id": "sky", "text": question}]}

def always(question):
    die_once(question, times=99)
    return app(question)
"""

_TIMES = {"latency_s", "traceback"}  # a worker has frames of its own
_OF_A_RUN = {"created", "command", "engine", "commit", "duration_s"}


def write_towns(folder, count=12):
    """A gold set of questions about towns, and the apps."""
    rows = [
        {
            "id": f"case-{n}",
            "question": f"Is the sky over town {n} blue by day?",
            "relevant": [f"sky-{n}"],
            "reference": f"The sky over town {n} is blue.",
        }
        for n in range(count)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "gold.jsonl").write_text(text, encoding="utf-8")
    (folder / "chain.py").write_text(CHAIN, encoding="utf-8")
    (folder / "plain.py").write_text(PLAIN, encoding="utf-8")
    (folder / "deadly.py").write_text(DEADLY, encoding="utf-8")


def lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def said(folder, *, usage=True):
    """What a run folder says, without what is of the moment and of the engine."""
    folder = Path(folder)
    files = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".jsonl":
            rows = lines(path)
            files[path.name] = [{k: v for k, v in row.items() if k not in _TIMES} for row in rows]
        elif path.suffix == ".json":
            files[path.name] = json.loads(path.read_text(encoding="utf-8"))
    manifest, summary = files["manifest.json"], files["summary.json"]
    files["manifest.json"] = {k: v for k, v in manifest.items() if k not in _OF_A_RUN}
    summary.pop("run")
    if not usage:
        summary.pop("usage")
    return files
