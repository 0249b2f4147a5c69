"""Attention of ONNX Runtime's own domain, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    agree,
    factor,
    found_of,
    model_of,
    normal,
    quantized,
    scale,
)


def masks(batch: int, queries: int, keys: int) -> dict[str, Array]:
    """Ends of sequences, ends and starts, bits of keys, bits of queries and keys."""
    ends = np.arange(1, batch + 1, dtype=np.int32) + keys - batch
    starts = np.arange(batch, dtype=np.int32)
    bits = np.random.default_rng(7).integers(0, 2, (batch, queries, keys), np.int32)
    bits[..., 0] = 1
    return {"ends": ends, "both": np.concatenate([ends, starts]), "keys": bits[:, 0], "all": bits}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("kind", [None, "ends", "both", "keys", "all"])
def test_attention(kind: str | None, causal: int) -> None:
    batch, steps, size, heads, past = 2, 4, 6, 2, 3
    inputs: dict[str, Array | None] = {
        "x": normal(0, batch, steps, size),
        "w": normal(1, size, 24),
        "b": normal(2, 24),
        "mask": None if kind is None else masks(batch, steps, steps)[kind],
    }
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": causal}
    agree("Attention", inputs, ("y", "p"), **attributes)
    mask = None if kind is None else masks(batch, steps, steps + past)[kind]
    before = {"mask": mask, "past": normal(3, 2, batch, heads, past, 4)}
    agree("Attention", {**inputs, **before}, ("y", "p"), **attributes)


def test_attention_of_other_sizes() -> None:
    inputs = {"x": normal(0, 2, 3, 6), "w": normal(1, 6, 20), "b": normal(2, 20)}
    agree("Attention", inputs, num_heads=2, qkv_hidden_sizes=[8, 8, 4], scale=0.3)
    more = {**inputs, "m": None, "past": None, "add": normal(3, 1, 2, 3, 3)}
    agree("Attention", more, num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    with pytest.raises(FrontendError, match="do_rotary = 1"):
        import_model(model_of("Attention", inputs, num_heads=2, do_rotary=1))
    with pytest.raises(FrontendError, match="required attribute 'num_heads'"):
        import_model(model_of("Attention", inputs))


@pytest.mark.parametrize("by_column", [False, True])
def test_quantized_attention(by_column: bool) -> None:
    shape = (24,) if by_column else ()
    inputs: dict[str, Array | None] = {
        "x": quantized(np.uint8, 0, 2, 4, 6),
        "w": factor(np.int8, 1, 6, 24),
        "b": normal(2, 24),
        "xs": scale(0.01),
        "ws": np.asarray(np.abs(normal(3, *shape)) / 99 + 0.01, np.float32),
        "mask": masks(2, 4, 4)["ends"],
        "xz": np.array(120, np.uint8),
        "wz": np.zeros(shape, np.int8),
    }
    agree("QAttention", inputs, num_heads=2)
    with_past = {**inputs, "mask": None, "past": normal(4, 2, 2, 2, 3, 4)}
    agree("QAttention", with_past, ("y", "p"), num_heads=2, unidirectional=1)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("kind", [None, "ends", "keys", "all"])
def test_multi_head_attention(kind: str | None, causal: int) -> None:
    """With more keys than queries ONNX Runtime lets the last query see those after it."""
    batch, steps, keys, past = 2, 4, 4 if causal else 5, 3
    inputs: dict[str, Array | None] = {
        "q": normal(0, batch, steps, 8),
        "k": normal(1, batch, keys, 8),
        "v": normal(2, batch, keys, 6),
        "b": normal(3, 22),
        "mask": None if kind is None else masks(batch, steps, keys)[kind],
    }
    attributes: dict[str, Any] = {"num_heads": 2, "unidirectional": causal}
    agree("MultiHeadAttention", inputs, **attributes)
    apart = {"k": normal(1, batch, 2, keys, 4), "v": normal(2, batch, 2, keys, 4), "b": None}
    agree("MultiHeadAttention", {**inputs, **apart}, **attributes)
    before: dict[str, Array | None] = {
        "mask": None if kind is None else masks(batch, steps, keys + past)[kind],
        "v": normal(2, batch, keys, 8),
        "b": None,
        "add": normal(4, 1, 2, steps, keys + past),
        "pk": normal(5, batch, 2, past, 4),
        "pv": normal(6, batch, 2, past, 4),
    }
    agree("MultiHeadAttention", {**inputs, **before}, ("y", "nk", "nv"), **attributes)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    angles = normal(1, 9, 4)
    caches = {"cos": np.cos(angles), "sin": np.sin(angles)}
    rows, heads = normal(0, 2, 3, 16), normal(2, 2, 5, 3, 8)
    ids = np.array([[4, 0, 8], [1, 2, 3]], np.int64)
    for x in (rows, heads):
        for positions in (ids, np.array([5], np.int64)):
            inputs = {"x": x, "ids": positions, **caches}
            agree("RotaryEmbedding", inputs, interleaved=interleaved)
    half = {"cos": np.cos(angles[:, :2]), "sin": np.sin(angles[:, :2])}
    attributes: dict[str, Any] = {"num_heads": 2, "rotary_embedding_dim": 4}
    agree("RotaryEmbedding", {"x": rows, "ids": ids, **half}, interleaved=interleaved, **attributes)
    agree("RotaryEmbedding", {"x": rows, "ids": ids, **caches}, is_packed_batching=1)
    with pytest.raises(FrontendError, match="found a scale"):
        import_model(model_of("RotaryEmbedding", {"x": rows, "ids": ids, **caches}, scale=2.0))


def test_gated_positions() -> None:
    """For which there is no kernel: the formula that its schema has."""
    inputs = {
        "query": normal(0, 2, 5, 12),
        "query_bias": normal(1, 12),
        "positions": normal(2, 1, 3, 5, 5),
        "weight": normal(3, 4, 8),
        "bias": normal(4, 8),
        "a": normal(5, 1, 3, 1, 1),
    }
    query = (inputs["query"] + inputs["query_bias"]).reshape(2, 5, 3, 4).transpose(0, 2, 1, 3)
    layer = query @ inputs["weight"] + inputs["bias"]
    u, r = np.split(1 / (1 + np.exp(-layer.reshape(2, 3, 5, 2, 4).sum(axis=-1))), 2, axis=-1)
    want = (u * (r * inputs["a"] - 1) + 2) * inputs["positions"]
    found = found_of("GatedRelativePositionBias", inputs, num_heads=3)["y"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    offsets = {**inputs, "offsets": np.zeros((2, 5), np.int32)}
    with pytest.raises(FrontendError, match="tokens without padding"):
        import_model(model_of("GatedRelativePositionBias", offsets, num_heads=3))
