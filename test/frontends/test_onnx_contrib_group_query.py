"""Attention whose heads share keys and values, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    agree,
    by_onnxruntime,
    model_of,
    normal,
)

GQA = "GroupQueryAttention"
OUTPUTS = ("y", "present_key", "present_value")
HEADS, SHARED, SIZE = 4, 2, 32


def step(
    batch: int,
    queries: int,
    past: int = 0,
    *,
    room: int | None = None,
    lengths: Sequence[int] | None = None,
    is_packed: bool = False,
    half: int = 0,
    **more: Array,
) -> dict[str, Array | None]:
    """
    Queries after `past` keys in a buffer with `room`, by default just these; `lengths` are those of
    the sequences with what is new. With `half` pairs are turned by as many angles.
    """
    room = (past or None) if room is None else room
    q, k, v = (
        normal(seed, batch, queries, heads * SIZE)
        for seed, heads in enumerate((HEADS, SHARED, SHARED))
    )
    lengths = [past + queries] * batch if lengths is None else lengths
    buffer = () if room is None else (batch, SHARED, room, SIZE)
    angles = normal(5, 32, half)
    inputs: dict[str, Array | None] = {
        "q": np.concatenate([q, k, v], axis=-1) if is_packed else q,
        "k": None if is_packed else k,
        "v": None if is_packed else v,
        "past_key": normal(3, *buffer) if buffer else None,
        "past_value": normal(4, *buffer) if buffer else None,
        "seqlens": np.array(lengths, np.int32) - 1,
        "total": np.array(max(lengths), np.int32),
    }
    names = ("cos", "sin", "position_ids", "bias", "sink")
    inputs |= {"cos": np.cos(angles), "sin": np.sin(angles)} if half else dict.fromkeys(names[:2])
    return inputs | {name: more.get(name) for name in names[2:]}


def same(inputs: dict[str, Array | None], **attributes: Any) -> None:
    agree(GQA, inputs, OUTPUTS, num_heads=HEADS, kv_num_heads=SHARED, **attributes)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("half", [0, 16])
def test_first_step(is_packed: bool, half: int) -> None:
    """Without a past, with an empty buffer, and with one for more, of sequences that end early."""
    same(step(2, 5, half=half, is_packed=is_packed), do_rotary=int(half > 0))
    same(step(2, 5, room=0, half=half, is_packed=is_packed), do_rotary=int(half > 0))
    early = step(2, 5, room=9, lengths=[5, 3], half=half, is_packed=is_packed)
    same(early, do_rotary=int(half > 0))


@pytest.mark.parametrize("half", [0, 16])
@pytest.mark.parametrize("room", [6, 12])
def test_steps_after_a_past(room: int, half: int) -> None:
    """Sequences of one length or of several; the buffer is full, or has room."""
    same(step(2, 1, 6, room=room, half=half), do_rotary=int(half > 0))
    same(step(2, 1, 6, room=room, lengths=[7, 4], half=half), do_rotary=int(half > 0))
    same(step(1, 3, 6, room=room, half=half, is_packed=True), do_rotary=int(half > 0))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_turned_features(interleaved: int) -> None:
    """Of a part of the features; by given positions, of which the first step reads one."""
    attributes: dict[str, Any] = {"do_rotary": 1, "rotary_interleaved": interleaved}
    same(step(2, 5, half=8), **attributes)
    some = np.random.default_rng(7).integers(0, 20, (2, 5))
    same(step(2, 5, half=16, position_ids=some), **attributes)
    same(step(2, 1, 6, half=16, position_ids=some[:, :1].copy()), **attributes)
    same(step(1, 3, 6, half=16, position_ids=some[:1, :3].copy()), **attributes)


def test_windows() -> None:
    for window in (1, 3, 20):
        same(step(2, 5), local_window_size=window)
        same(step(2, 1, 6, room=12, lengths=[7, 4]), local_window_size=window)
        same(step(1, 3, 6, room=12), local_window_size=window)


@pytest.mark.parametrize("sequence", [step(2, 5), step(1, 3, 6, room=12)])
def test_scores(sequence: dict[str, Array | None]) -> None:
    """In this order: a scale, a limit, a number to add, and a sink."""
    queries, keys = (3, 9) if sequence["past_key"] is not None else (5, 5)
    same(sequence, scale=0.3)
    same(sequence, softcap=1.5)
    same(sequence, smooth_softmax=1, local_window_size=2)
    same({**sequence, "sink": normal(6, HEADS)})
    same({**sequence, "bias": normal(7, 1, HEADS, queries, keys)})
    everything = {"bias": normal(8, 1, 1, queries, keys), "sink": normal(9, HEADS)}
    same({**sequence, **everything}, softcap=2.0, scale=0.7)


def test_keys_that_come_later() -> None:
    """Without `causal` each query sees all keys of its sequence."""
    same(step(2, 5, lengths=[5, 3]), causal=0)
    same(step(1, 3, 6, room=12), causal=0)


def test_normalized_heads() -> None:
    """ONNX Runtime has this on graphics cards only; it is given what is normalized already."""
    inputs, weights = step(2, 5), {"q": normal(1, SIZE), "k": normal(2, SIZE)}
    given = {name: array for name, array in inputs.items() if array is not None}
    nodes = [
        helper.make_node(
            GQA,
            [*(name if name in given else "" for name in inputs), "", "", "q_norm", "k_norm"],
            ["y"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=SHARED,
            qk_norm_epsilon=0.01,
        )
    ]
    model = model_of(GQA, {**given, "q_norm": weights["q"], "k_norm": weights["k"]})
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    feeds = {**given, "q_norm": weights["q"], "k_norm": weights["k"]}
    found = lowerdeck.compile(model, cache=False)(feeds)["y"]
    for name, weight in weights.items():
        heads = given[name].reshape(2, 5, -1, SIZE)
        root = np.sqrt(np.mean(heads**2, axis=-1, keepdims=True) + np.float32(0.01))
        given[name] = (heads / root * weight).reshape(given[name].shape)
    plain = model_of(GQA, given, num_heads=HEADS, kv_num_heads=SHARED)
    del plain.graph.node[0].input[:]
    plain.graph.node[0].input.extend(name if name in given else "" for name in inputs)
    (expected,) = by_onnxruntime(plain, given)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def decoder() -> onnx.ModelProto:
    """
    As exporters of language models write it: one input for queries, keys and values, how many keys
    there are is counted in a mask, and all but the heads is open.
    """
    angles = normal(0, 64, SIZE // 2)
    constants = {"cos": np.cos(angles), "sin": np.sin(angles), "along": np.array([1])}
    qkv = ["qkv", "", "", "past_key", "past_value", "seqlens", "total", "cos", "sin"]
    nodes = [
        helper.make_node("ReduceSum", ["mask", "along"], ["lengths"], keepdims=1),
        helper.make_node("Sub", ["lengths", "along"], ["last"]),
        helper.make_node("Cast", ["last"], ["seqlens"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["mask_sizes"]),
        helper.make_node("Gather", ["mask_sizes", "along"], ["keys"], axis=0),
        helper.make_node("Cast", ["keys"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            GQA,
            qkv,
            list(OUTPUTS),
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=SHARED,
            do_rotary=1,
            local_window_size=4,
        ),
    ]
    width, past = (HEADS + 2 * SHARED) * SIZE, ["batch", SHARED, "past", SIZE]
    inputs = [
        helper.make_tensor_value_info("qkv", TensorProto.FLOAT, ["batch", "steps", width]),
        helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "keys"]),
        helper.make_tensor_value_info("past_key", TensorProto.FLOAT, past),
        helper.make_tensor_value_info("past_value", TensorProto.FLOAT, past),
    ]
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * (3 if name == "y" else 4))
        for name in OUTPUTS
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, results, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_open_sizes_in_c() -> None:
    """One model for the first step and those after it, with a full buffer and one with room."""
    model = decoder()
    compiled = lowerdeck.compile(model, cache=False)
    for batch, queries, room, keys in ((2, 5, 0, 5), (2, 1, 5, 6), (1, 3, 6, 9), (1, 1, 12, 7)):
        feeds = {
            "qkv": normal(1, batch, queries, (HEADS + 2 * SHARED) * SIZE),
            "mask": np.ones((batch, keys), np.int64),
            "past_key": normal(2, batch, SHARED, room, SIZE),
            "past_value": normal(3, batch, SHARED, room, SIZE),
        }
        found = compiled(feeds)
        for name, want in zip(OUTPUTS, by_onnxruntime(model, feeds), strict=True):
            np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("absent", "attributes", "message"),
    [
        ((), {"kv_num_heads": 3}, "found 4 heads that share 3"),
        ((), {"sliding_window_cache": 1}, "sliding_window_cache = 1: past keys of a window"),
        ((), {"qk_output": 2}, "qk_output = 2: scores as an output"),
        (
            (),
            {"k_quant_type": "PER_TENSOR"},
            "'k_quant_type' is 'PER_TENSOR', expected one of NONE",
        ),
        (("k",), {}, "found a key or a value"),
        (("past_value",), {}, "found past keys or past values"),
        (("cos",), {"do_rotary": 1}, "without cos_cache and sin_cache"),
        ((), {"causal": 0, "local_window_size": 2}, "found a window of keys, expected causal = 1"),
    ],
)
def test_refused(absent: Sequence[str], attributes: dict[str, Any], message: str) -> None:
    inputs = {**step(2, 1, 6, half=16), **dict.fromkeys(absent)}
    feeds = {name: array for name, array in inputs.items() if array is not None}
    model = model_of(GQA, feeds, **{"num_heads": HEADS, "kv_num_heads": SHARED, **attributes})
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend(name if name in feeds else "" for name in inputs)
    with pytest.raises(FrontendError, match=message):
        import_model(model)
