"""Attention weights of a causal language model on this machine, averaged as they are made."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, MissingExtraError
from misslink.whitebox.attention import context_attention, even_attention

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Attended", "attend", "load"]

_NEEDED = "torch", "transformers"
_NEEDED_FOR_GGUF = "gguf", "accelerate"
_AT_ONCE = 256  # query tokens of one step: memory grows with the length, not with its square
_BATCH_HEADS_QUERIES_KEYS = 4


@dataclass(frozen=True)
class Attended:
    """Where a model looked while it read a context, a question and an answer.

    Parameters
    ----------
    attention : array of float32, [query, key]
        Averaged over layers and heads.
    context_tokens, answer_tokens : tuple of int
        Positions of the tokens that hold at least one character of each.
    layers, heads : int
        How many the weights are averaged over.
    """

    attention: NDArray[np.float32]
    context_tokens: tuple[int, ...]
    answer_tokens: tuple[int, ...]
    layers: int
    heads: int

    def utilization(self, *, ignore: Iterable[int] = ()) -> float | None:
        """The share of attention that the answer puts on the context: `context_attention`."""
        return context_attention(
            self.answer_tokens, self.context_tokens, self.attention, ignore=ignore
        )

    def even(self, *, ignore: Iterable[int] = ()) -> float | None:
        """What `utilization` would be if the model looked at every token alike."""
        return even_attention(self.answer_tokens, self.context_tokens, ignore=ignore)


def load(path: str | Path) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer, without any network.

    Parameters
    ----------
    path : path
        A Hugging Face model folder, or a GGUF file, whose weights are turned into float32.

    Returns
    -------
    model, tokenizer
        The model with eager attention, the only kind that makes its weights known.

    Raises
    ------
    MissingExtraError
        The extra 'whitebox' is not installed.
    InputError
        There is no such model, or it cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise InputError("there is no model here; name a model folder or a GGUF file", path=path)
    gguf = path.is_file()
    for package in (*_NEEDED, *(_NEEDED_FOR_GGUF if gguf else ())):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(f"the package '{package}'", "whitebox")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = path.parent if gguf else path
    where: dict[str, Any] = {"local_files_only": True}
    if gguf:
        where["gguf_file"] = path.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **where)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation="eager", **where
        )
    except Exception as problem:  # each reader of a damaged file raises its own
        first = (str(problem).strip().splitlines() or [""])[0]
        raise InputError(
            f"no causal language model can be read here ({type(problem).__name__}: {first}); "
            "name a model folder or a GGUF file that transformers knows",
            path=path,
        ) from problem
    return model.eval(), tokenizer


def attend(model: Any, tokenizer: Any, context: str, question: str, answer: str) -> Attended:
    """Let a model read a context, a question and an answer, and see where the answer looks.

    The text is ``Context:``, ``Question:`` and ``Answer:`` with theirs, whatever the model; no
    chat template, which would differ between models. Whoever wants the app's own prompt takes its
    weights and gives them to `context_attention`.

    Memory: the text goes through in steps of 256 tokens, and a layer's weights are averaged and
    let go before the next layer's are made. In float32, for T tokens, H heads and a vocabulary of
    V that is, beside the model and its key-value cache, about three times ``4 * 256 * H * T`` bytes
    for the weights, ``4 * 256 * V`` for what the model says, and ``4 * T * T`` for the result.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model loaded with ``attn_implementation="eager"``, as `load` does.
    tokenizer : transformers.PreTrainedTokenizerFast
        With character offsets.
    context, question, answer : str
        Words such as ``<|im_end|>`` in them are read as text, not as control tokens. An empty
        context or answer has no tokens, and its utilization is None.

    Returns
    -------
    Attended

    Raises
    ------
    InputError
        The tokenizer has no offsets, the text is longer than the model reads (nothing is cut), or
        the model does not make its attention known.
    """
    import numpy as np
    import torch

    text, of_context, of_answer = _laid_out(context, question, answer)
    ids, offsets = _tokens(model, tokenizer, text)
    length = len(ids)
    total = np.zeros((length, length), dtype=np.float32)
    layers: dict[str, int] = {}
    start = stop = 0

    def add(layer: str, weights: Any) -> None:
        # A layer with a sliding window has the last keys only.
        last = slice(stop - weights.shape[-1], stop)
        total[start:stop, last] += weights[0].mean(dim=0, dtype=torch.float32).cpu().numpy()
        layers[layer] = weights.shape[1]

    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), _watched(model, add):
            cache = None
            for start in range(0, length, _AT_ONCE):
                stop = min(start + _AT_ONCE, length)
                step = torch.tensor([ids[start:stop]], device=model.device)
                cache = model(input_ids=step, past_key_values=cache, use_cache=True).past_key_values
    finally:
        model.train(was_training)
    if not layers:
        raise InputError(
            "the model does not make its attention known; load it with misslink.whitebox.load, "
            'or with attn_implementation="eager"'
        )
    total /= len(layers)
    return Attended(
        attention=total,
        context_tokens=_within(offsets, of_context),
        answer_tokens=_within(offsets, of_answer),
        layers=len(layers),
        heads=max(layers.values()),
    )


def _laid_out(
    context: str, question: str, answer: str
) -> tuple[str, tuple[int, int], tuple[int, int]]:
    """The text that is read, and where in it the context and the answer stand."""
    before = "Context:\n"
    between = f"\n\nQuestion: {question}\nAnswer: "
    text = f"{before}{context}{between}{answer}"
    since = len(before) + len(context) + len(between)
    return text, (len(before), len(before) + len(context)), (since, len(text))


def _tokens(model: Any, tokenizer: Any, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"the tokenizer {type(tokenizer).__name__} does not say which characters a token holds;"
            " load its fast version (use_fast=True)"
        )
    read = tokenizer(text, return_offsets_mapping=True, split_special_tokens=True, verbose=False)
    ids, offsets = list(read["input_ids"]), [tuple(pair) for pair in read["offset_mapping"]]
    most = getattr(model.config, "max_position_embeddings", None)
    if most is not None and len(ids) > most:
        raise InputError(
            f"context, question and answer are {len(ids)} tokens and the model reads {most}; "
            "give fewer passages, or a model with a longer context"
        )
    return ids, offsets


def _within(offsets: list[tuple[int, int]], span: tuple[int, int]) -> tuple[int, ...]:
    """The tokens of which at least one character lies within `span`."""
    return tuple(
        place
        for place, (start, end) in enumerate(offsets)
        if max(start, span[0]) < min(end, span[1])
    )


@contextlib.contextmanager
def _watched(model: Any, add: Any) -> Iterator[None]:
    """Hand every attention layer's weights to `add` while they exist."""

    def hook(name: str) -> Any:
        def after(_module: Any, _inputs: Any, output: Any) -> None:
            weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if getattr(weights, "ndim", 0) == _BATCH_HEADS_QUERIES_KEYS:
                add(name, weights)

        return after

    handles = [
        module.register_forward_hook(hook(name))
        for name, module in model.named_modules()
        if type(module).__name__.endswith("Attention")
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
