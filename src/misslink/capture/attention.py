"""Attention of a local model on its context: the share per passage and per answer token."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


_AVERAGED, _WHOLE = 2, 4  # dimensions: [query, key], or [layer, head, query, key]
_TOLERANCE = 5e-3  # half-precision weights, added up, miss 1 by this much
_NOTHING = 1e-6  # what rounding leaves of a row whose whole weight is ignored


def context_attention(
    answer_tokens: Iterable[int],
    context_tokens: Iterable[int],
    attention: ArrayLike,
    *,
    ignore: Iterable[int] = (),
) -> float | None:
    """White-box context utilization: the share of attention that the answer puts on the context.

    For answer tokens A, context tokens C, ignored tokens I, L layers and H heads::

        a[t, j] = sum over l, h of attention[l, h, t, j] / (L H)
        U = mean over t in A of  (sum over j in C - I of a[t, j]) / (sum over j not in I of a[t, j])

    Parameters
    ----------
    answer_tokens : iterable of int
        Positions of the answer's tokens, from 0, on the query axis; each counts once.
    context_tokens : iterable of int
        Positions of the context's tokens, from 0, on the key axis; each counts once.
    attention : array of float, [layers, heads, query, key] or [query, key]
        Attention weights after the softmax, of all layers and heads or averaged over them: a row is
        a distribution over the keys that its query may see (under a causal mask those up to itself,
        the others 0). Only the answer's rows are read.
    ignore : iterable of int
        Keys to leave out, the rest of each row being scaled to 1. Models park attention that they
        have no use for on the first token ("attention sink"): ``ignore=[0]`` takes that out.

    Returns
    -------
    float or None
        In [0, 1]. None where there is nothing to measure: no answer token, no context token that is
        not ignored, or no answer token that looks at anything but ignored ones.

    Raises
    ------
    InputError
        The shape is another, a position lies outside it or is both answer and context, or a weight
        is negative or not finite, or a row does not sum to 1 within 0.005.

    Notes
    -----
    Attention is not attribution: a weight says what a head read from, not whether that changed the
    answer, and the mean over layers hides heads that work against each other. The value grows with
    the context's share of all tokens, so it compares answers over contexts of like length; beside
    it belongs `even_attention`, what a model that looks at everything alike would give.

    References
    ----------
    Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align and
    translate, for attention weights as what is looked at. Jain and Wallace (2019), Attention is not
    explanation, for the limits. Xiao et al. (2024), Efficient streaming language models with
    attention sinks, for the first token.

    Examples
    --------
    Token 0 is the context, token 1 the question, tokens 2 and 3 the answer.

    >>> weights = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.6, 0.2, 0.2, 0], [0.2, 0.2, 0.2, 0.4]]
    >>> round(context_attention([2, 3], [0], weights), 12)
    0.4
    """
    import numpy as np

    try:
        weights = np.asarray(attention)
    except (TypeError, ValueError):  # rows of different lengths, a tensor numpy cannot read
        weights = np.empty(0)
    if weights.ndim not in (_AVERAGED, _WHOLE) or 0 in weights.shape:
        raise InputError(
            f"attention weights of shape {list(weights.shape)} cannot be read; "
            "give [layers, heads, query, key], or [query, key] if they are averaged"
        )
    queries, keys = weights.shape[-2:]
    answer = _positions("answer", answer_tokens, queries)
    context = _positions("context", context_tokens, keys)
    ignored = _positions("ignored", ignore, keys)
    both = set(answer) & set(context)
    if both:
        raise InputError(f"token {min(both)} is both answer and context; give each to one of them")
    if not answer:
        return None
    rows = weights[..., answer, :].astype(np.float64)
    if not np.isfinite(rows).all():
        raise InputError("an attention weight is not a finite number; load the model in float32")
    if (rows < 0).any():
        raise InputError("an attention weight is negative; give the weights after the softmax")
    sums = rows.sum(axis=-1)
    if np.abs(sums - 1).max() > _TOLERANCE:
        wrong = float(sums.flat[np.abs(sums - 1).argmax()])
        raise InputError(
            f"the attention weights of an answer token sum to {wrong:.4g} and not to 1; "
            "give them after the softmax and without dropout, keys last"
        )
    rows = rows.reshape(-1, len(answer), keys).mean(axis=0)
    rows[:, ignored] = 0
    on_context = rows[:, context].sum(axis=1)
    on_all = on_context + np.delete(rows, context, axis=1).sum(axis=1)
    looking = on_all > _NOTHING
    if not set(context) - set(ignored) or not looking.any():
        return None
    return float(np.mean(on_context[looking] / on_all[looking]))


def even_attention(
    answer_tokens: Iterable[int], context_tokens: Iterable[int], *, ignore: Iterable[int] = ()
) -> float | None:
    """What `context_attention` gives for a causal model that looks at every token alike.

    Parameters
    ----------
    answer_tokens, context_tokens, ignore : iterable of int
        As there.

    Returns
    -------
    float or None
        In [0, 1]: the mean over answer tokens of the context's share of the tokens up to them.
        None where there is nothing to measure.

    Examples
    --------
    >>> even_attention([3], [0, 1])
    0.5
    """
    ignored = set(ignore)
    context = set(context_tokens) - ignored
    shares = []
    for token in set(answer_tokens):
        seen = set(range(token + 1)) - ignored
        if seen:
            shares.append(len(context & seen) / len(seen))
    return sum(shares) / len(shares) if shares and context else None


def _positions(role: str, tokens: Iterable[int], length: int) -> list[int]:
    places = sorted(set(tokens))
    for place in places:
        if not 0 <= place < length:
            raise InputError(
                f"the {role} token {place} lies outside the attention weights; "
                f"positions go from 0 to {length - 1}"
            )
    return places


_NEEDED = "torch", "transformers"
_NEEDED_FOR_GGUF = "gguf", "accelerate"
_AT_ONCE = 256  # query tokens of one step: memory grows with the length, not with its square
_BATCH_HEADS_QUERIES_KEYS = 4


@dataclass(frozen=True)
class AnswerAttention:
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


def load_local_model(path: str | Path) -> tuple[Any, Any]:
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


def measure_attention(
    model: Any, tokenizer: Any, context: str, question: str, answer: str
) -> AnswerAttention:
    """Let a model read a context, a question and an answer, and see where the answer looks.

    The text is ``Context:``, ``Question:`` and ``Answer:`` with theirs, whatever the model; no
    chat template, which would differ between models. For the app's own prompt, pass its
    weights to `context_attention`.

    Memory: the text goes through in steps of 256 tokens, and a layer's weights are averaged and
    let go before the next layer's are made. In float32, for T tokens, H heads and a vocabulary of
    V that is, beside the model and its key-value cache, about three times ``4 * 256 * H * T`` bytes
    for the weights, ``4 * 256 * V`` for what the model says, and ``4 * T * T`` for the result.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model loaded with ``attn_implementation="eager"``, as `load_local_model` does.
    tokenizer : transformers.PreTrainedTokenizerFast
        With character offsets.
    context, question, answer : str
        Words such as ``<|im_end|>`` in them are read as text, not as control tokens. An empty
        context or answer has no tokens, and its utilization is None.

    Returns
    -------
    AnswerAttention

    Raises
    ------
    InputError
        The tokenizer has no offsets, the text is longer than the model reads (nothing is cut), or
        the model does not make its attention known.
    """
    import numpy as np
    import torch

    before = f"Context:\n{context}"
    text = f"{before}\n\nQuestion: {question}\nAnswer: {answer}"
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
        with torch.inference_mode(), _attention_hooks(model, add):
            cache = None
            for start in range(0, length, _AT_ONCE):
                stop = min(start + _AT_ONCE, length)
                step = torch.tensor([ids[start:stop]], device=model.device)
                cache = model(input_ids=step, past_key_values=cache, use_cache=True).past_key_values
    finally:
        model.train(was_training)
    if not layers:
        raise InputError(
            "the model does not make its attention known; load it with misslink.capture.attention.load_local_model, "
            'or with attn_implementation="eager"'
        )
    total /= len(layers)

    def tokens_of(part: str, end: int) -> tuple[int, ...]:
        """The tokens with at least one character of a part of the text that ends at `end`."""
        return tuple(
            place
            for place, (first, last) in enumerate(offsets)
            if max(first, end - len(part)) < min(last, end)
        )

    return AnswerAttention(
        attention=total,
        context_tokens=tokens_of(context, len(before)),
        answer_tokens=tokens_of(answer, len(text)),
        layers=len(layers),
        heads=max(layers.values()),
    )


def _tokens(model: Any, tokenizer: Any, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"the tokenizer {type(tokenizer).__name__} does not report the characters of a token;"
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


@contextlib.contextmanager
def _attention_hooks(model: Any, add: Any) -> Iterator[None]:
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
