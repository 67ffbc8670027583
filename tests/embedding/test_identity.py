"""What a model is called, and what makes it another one."""

import pytest
from pydantic import SecretStr

from misslink.embedding import embedding_identity, embedding_name
from misslink.embedding.embedder import model_secrets
from misslink.io.secrets import redact_secrets


class Model:
    def __init__(self, **attributes):
        self.__dict__ |= attributes

    def embed_documents(self, texts):
        return [[1.0] for _ in texts]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({}, "Model"),
        ({"model": "small", "dimensions": 256}, "Model(model=small, dimensions=256)"),
        ({"model_name": "/home/somebody/models/tuned"}, "Model(model_name=tuned)"),
        ({"model": "http://me:sesame@host:80/v1?key=sesame"}, "Model(model=http://host:80/v1)"),
        ({"model": "", "model_name": None, "repo_id": object(), "dimensions": True}, "Model"),
        ({"model": "two\nlines"}, "Model(model=two lines)"),
        ({"deployment": "mine", "repo_id": "a/b"}, "Model(deployment=mine, repo_id=a/b)"),
    ],
)
def test_a_name_holds_the_class_and_what_is_plain(attributes, name):
    assert embedding_name(Model(**attributes)) == name


def test_a_deployment_nobody_set_is_left_out_of_the_name():
    openai = pytest.importorskip("langchain_openai")
    model = openai.OpenAIEmbeddings(model="new", api_key="sesame")
    assert embedding_name(model) == "OpenAIEmbeddings(model=new)"


def test_settings_make_another_model_and_keys_do_not():
    same = embedding_identity(Model(model="a", api_key="one", kwargs={"token": "x", "size": 1}))
    assert (
        embedding_identity(Model(model="a", api_key="two", kwargs={"token": "y", "size": 1}))
        == same
    )
    assert embedding_identity(Model(model="a", kwargs={"size": 2})) != same
    assert embedding_identity(Model(model="a", kwargs={"size": 1}, base_url="http://other")) != same
    assert embedding_identity(Model(model="a", kwargs={"size": 1}, lock=object())) == same


def test_a_wrapped_model_counts_even_where_it_refers_back():
    def wrapped(name):
        inner, outer = Model(model=name), Model()
        outer.inner, inner.outer = inner, outer
        return embedding_identity(outer)

    assert wrapped("a") == wrapped("a") != wrapped("b")


def test_a_model_trained_anew_in_its_folder_is_another(tmp_path):
    (tmp_path / "weights").write_bytes(b"1")
    before = embedding_identity(Model(model_name=str(tmp_path)))
    assert embedding_identity(Model(model_name=str(tmp_path))) == before
    (tmp_path / "weights").write_bytes(b"22")
    assert embedding_identity(Model(model_name=str(tmp_path))) != before


def test_a_class_of_other_code_is_another_model(tmp_path, monkeypatch, imports_forgotten):
    from misslink.user_code import import_target

    def written(body):
        (tmp_path / "own_model.py").write_text(f"class Own:\n    def embed_documents(self): {body}")
        return embedding_identity(import_target("own_model.py", tmp_path).Own())

    assert written("return 1") == written("return 1") != written("return 2")


def test_secrets_of_the_surroundings_and_of_the_model_are_not_shown(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "opensesame")
    monkeypatch.setenv("SHORT_TOKEN", "a")
    model = Model(password=SecretStr("hunter2hunter2"))
    assert (
        redact_secrets("a opensesame hunter2hunter2 word", model_secrets(model)) == "a *** *** word"
    )
