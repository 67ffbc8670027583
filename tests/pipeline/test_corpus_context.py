"""What misses are measured by is the app's own, and its failing costs no run."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

import misslink
from misslink.errors import InputError

TEXTS = {f"p{at}": f"The ferry number {at} sails to island {at} at noon." for at in range(12)}
GOLD = [
    {"id": "here", "question": "When does ferry number 3 sail?", "relevant": ["p3"]},
    {"id": "there", "question": "When does ferry number 9 sail?", "relevant": ["p9"]},
]


class Tiring(Embeddings):
    """Answers as many queries as it is given strength for, then refuses."""

    def __init__(self, strength: int) -> None:
        self.strength = strength
        self.inner = DeterministicFakeEmbedding(size=8)

    def embed_documents(self, texts):
        return self.inner.embed_documents(texts)

    def embed_query(self, text):
        self.strength -= 1
        if self.strength < 0:
            raise RuntimeError("quota exceeded")
        return self.inner.embed_query(text)


def app_over(store, k=2):
    store.add_texts(list(TEXTS.values()), ids=list(TEXTS))
    retriever = store.as_retriever(search_kwargs={"k": k})

    def answer(question):
        found = retriever.invoke(question)
        return f"At noon. {found[0].page_content}"

    return RunnableLambda(answer)


def evaluated(app, **options):
    return misslink.evaluate(app, GOLD, k=2, depth=4, concurrency=1, cache=None, **options)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("strength", range(3, 12))
def test_the_apps_own_embedding_may_fail_at_any_time_and_the_run_is_not_lost(strength, caplog):
    """The app and the deeper searches ask it 2 to 4 times; whatever is left is for measuring."""
    store = InMemoryVectorStore(Tiring(strength))
    run = evaluated(app_over(store))
    assert len(run.links) == len(GOLD)
    failed = "without the app's embedding" in caplog.text
    assert failed == (run.summary["diagnosis"]["embedding"] is None)
    assert ("the report has no map" in caplog.text or failed) == (run.map is None)


def test_an_embedding_that_was_named_must_not_fail():
    app = app_over(InMemoryVectorStore(DeterministicFakeEmbedding(size=8)))
    with pytest.raises(InputError, match="quota exceeded"):
        evaluated(app, embedding=Tiring(0))


def test_an_embedding_that_there_is_not_is_told_before_the_app_is_asked():
    asked = []
    with pytest.raises(InputError, match="names no embedding"):
        evaluated(RunnableLambda(asked.append), embedding="nope")
    assert not asked
