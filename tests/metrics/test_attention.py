"""The share of attention on the context, by hand and with a real model that the test builds."""

import numpy as np
import pytest

from misslink.errors import InputError
from misslink.metrics.attention import attention_share

ONE = [[0.1, 0.6, 0.3], [0.0, 0.2, 0.8]]


@pytest.mark.parametrize(
    ("attention", "positions", "share"),
    [
        (ONE, [1], 0.4),
        (ONE, [1, 1, 2], 0.95),
        (ONE, [], 0.0),
        (ONE, range(3), 1.0),
        ([ONE, [[1, 0, 0], [1, 0, 0]]], [1], 0.2),  # two heads, averaged
        ([[ONE]], {1}, 0.4),  # a layer with one head
        ([[0, 0], [0, 0]], [0], None),  # no attention is no 0
        (np.zeros((2, 0, 3)), [0], None),  # no answer
        (np.zeros((0, 0, 2, 3)), [0], None),  # no layer
    ],
)
def test_the_share_is_that_of_all_attention(attention, positions, share):
    assert attention_share(attention, positions) == (
        share if share is None else pytest.approx(share)
    )


@pytest.mark.parametrize(
    ("attention", "positions", "said"),
    [
        ([0.1, 0.9], [0], "shape \\(2,\\)"),
        (ONE, [3], "position 3 is outside of the 3 tokens"),
        (ONE, [-1], "position -1 is outside"),
        ([[0.5, float("nan")]], [0], "no number"),
        ([[0.5, -0.5]], [0], "negative"),
    ],
)
def test_what_is_no_attention_is_refused(attention, positions, said):
    with pytest.raises(InputError, match=said):
        attention_share(attention, positions)


@pytest.mark.slow
def test_weights_of_a_torch_layer_are_measured():
    """As `transformers` returns them, for the answer's rows alone; each token sees those before it."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, num_heads=2, batch_first=True)
    context, answer, texts = range(2, 12), range(16, 20), torch.randn(1, 20, 16)
    later = torch.ones(20, 20, dtype=torch.bool).triu(1)

    def share(hidden):
        options = {"attn_mask": later | hidden, "average_attn_weights": False}
        with torch.no_grad():
            _, seen = layer(texts, texts, texts, **options)
        attention = torch.stack([seen, seen])[:, 0, :, list(answer), :]
        assert attention.shape == (2, 2, 4, 20)
        return attention_share(attention, context), seen[0, :, answer][..., context]

    measured, of_context = share(torch.zeros(20, dtype=torch.bool))
    assert 0.1 < measured < 0.9
    assert measured == pytest.approx(of_context.sum(-1).mean().item())
    blind, _ = share(torch.isin(torch.arange(20), torch.tensor(context)))
    assert blind == pytest.approx(0, abs=1e-6)


@pytest.mark.slow  # to import the library takes 5 s
def test_a_model_with_open_weights_is_measured():
    """Untrained, so that attention is nearly even over the tokens that each one may see."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    size = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 32, "vocab_size": 50}
    config = transformers.GPT2Config(**size, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).eval()
    context, answer = range(2, 12), range(16, 20)
    with torch.no_grad():
        seen = model(torch.arange(20)[None], output_attentions=True).attentions
    attention = torch.stack(seen)[:, 0, :, list(answer), :]
    assert attention.shape == (2, 2, 4, 20)
    even = np.mean([len(context) / (place + 1) for place in answer])
    assert attention_share(attention, context) == pytest.approx(even, abs=0.02)
    with torch.no_grad():  # a model that sees nothing of the context
        hidden = torch.ones(1, 20)
        hidden[0, list(context)] = 0
        masked = model(torch.arange(20)[None], attention_mask=hidden, output_attentions=True)
    blind = torch.stack(masked.attentions)[:, 0, :, list(answer), :]
    assert attention_share(blind, context) == pytest.approx(0, abs=1e-6)
