"""Operators of StableHLO beside numpy: those that LiteRT has no kernels for, and control flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuzz.tflite_graphs import DTYPES, Graph, Value
from fuzz.tflite_writer import flatbuffer, operator_code
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends.tflite.import_ import import_model
from lowerdeck.passes.legalize.tflite.framework import TfliteWalk
from lowerdeck.passes.legalize.walk import LegalizationError

Array = NDArray[Any]

X = np.array([[1.5, -2.0, 0.25], [-7.0, 0.0, 64.0]], np.float32)
Y = np.array([[2.0, 3.0, -0.5], [2.0, 0.5, 0.25]], np.float32)
M = np.array([[7, -8, 5], [-1, 0, 3]], np.int32)
N = np.array([[2, 3, -2], [33, 31, 1]], np.int32)
B = np.array([[True, False, True], [False, False, True]])
IMAGE = np.arange(2 * 5 * 4 * 3, dtype=np.float32).reshape(2, 5, 4, 3) % 11 - 5
KERNEL = np.arange(3 * 2 * 3 * 4, dtype=np.float32).reshape(3, 2, 3, 4) % 7 - 3

NAMES = {np.dtype(kind): name for name, kind in DTYPES.items() if name != "INT4"}


def convolution() -> Array:
    """Of IMAGE, turned KERNEL: strides 2 and 1, rows padded by (1, -1), columns two apart."""
    wide = np.zeros((2, 5, 7, 3), np.float32)
    wide[:, :, ::2] = IMAGE
    wide = np.pad(wide, [(0, 0), (1, 0), (0, 0), (0, 0)])[:, :-1]
    kernel = KERNEL[::-1]
    result = np.zeros((2, 2, 6, 4), np.float32)
    for i in range(2):
        for j in range(6):
            part = wide[:, 2 * i : 2 * i + 3, j : j + 2]
            result[:, i, j] = np.tensordot(part, kernel, 3)
    return result


Case = tuple[str, Sequence[Any], Mapping[str, Any], Any]

CASES: Sequence[Case] = [
    ("LOGISTIC", [X], {}, 1 / (1 + np.exp(-X))),
    ("ABS", [X], {}, np.abs(X)),
    ("NEGATE", [M], {}, -M),
    ("CBRT", [X], {}, np.cbrt(X)),
    ("SUBTRACT", [X, Y], {}, X - Y),
    ("DIVIDE", [M, N], {}, np.array([[3, -2, -2], [0, 0, 3]], np.int32)),
    ("REMAINDER", [M, N], {}, np.array([[1, -2, 1], [-1, 0, 0]], np.int32)),
    ("POWER", [Y, X.round()], {}, Y ** X.round()),
    ("SHIFT_LEFT", [M, N], {}, np.array([[28, -64, 0], [0, 0, 6]], np.int32)),
    ("ADD", [B, ~B], {}, np.ones_like(B)),
    ("AND", [M, N], {}, M & N),
    ("OR", [B, B.copy()[::-1].copy()], {}, B | B[::-1]),
    ("CONVERT", [X], {"to": np.int32}, X.astype(np.int32)),
    ("SELECT", [B, X, Y], {}, np.where(B, X, Y)),
    ("CLAMP", [np.float32(-1), X, np.float32(2)], {}, X.clip(-1, 2)),
    ("RESHAPE", [X], {}, X.reshape(3, 2)),
    ("TRANSPOSE", [X], {"permutation": [1, 0]}, X.T),
    ("CONCATENATE", [X, Y], {"dimension": 1}, np.concatenate([X, Y], 1)),
    ("IOTA", [], {"iota_dimension": 1}, np.broadcast_to(np.arange(3, dtype=np.int32), (2, 3))),
    (
        "BROADCAST_IN_DIM",
        [X],
        {"broadcast_dimensions": [2, 0]},
        np.broadcast_to(X.T[:, None], (3, 4, 2)),
    ),
    (
        "SLICE",
        [X],
        {"start_indices": [0, 0], "limit_indices": [2, 3], "strides": [1, 2]},
        X[:, ::2],
    ),
    ("DYNAMIC_SLICE", [X, np.int32(5), np.int32(-3)], {"slice_sizes": [1, 2]}, X[1:, :2]),
    (
        "DYNAMIC_UPDATE_SLICE",
        [X, np.ones((1, 2), np.float32), np.int32(0), np.int32(2)],
        {},
        np.array([[1.5, 1, 1], [-7, 0, 64]], np.float32),
    ),
    ("REDUCE", [M, np.int32(10)], {"dimensions": [1], "body": "ADD"}, M.sum(1, np.int32) + 10),
    ("REDUCE", [X, np.float32(9)], {"dimensions": [0, 1], "body": "MAXIMUM"}, np.float32(64)),
    (
        "REDUCE_WINDOW",
        [np.arange(90, dtype=np.int32), np.int32(0)],
        {"window_dimensions": [90], "padding": [89, 0], "body": "ADD"},
        np.arange(90, dtype=np.int32).cumsum(dtype=np.int32),
    ),
    (
        "DOT_GENERAL",
        [IMAGE, KERNEL],
        {
            "lhs_batching_dimensions": [3],
            "rhs_batching_dimensions": [2],
            "lhs_contracting_dimensions": [2],
            "rhs_contracting_dimensions": [3],
        },
        np.einsum("abcd,efdc->dabef", IMAGE, KERNEL),
    ),
    (
        "CONVOLUTION",
        [IMAGE, KERNEL],
        {
            "window_strides": [2, 1],
            "padding": [1, -1, 0, 0],
            "lhs_dilation": [1, 2],
            "window_reversal": [True, False],
            "input_batch_dimension": 0,
            "input_feature_dimension": 3,
            "input_spatial_dimensions": [1, 2],
            "kernel_input_feature_dimension": 2,
            "kernel_output_feature_dimension": 3,
            "kernel_spatial_dimensions": [0, 1],
            "output_batch_dimension": 0,
            "output_feature_dimension": 3,
            "output_spatial_dimensions": [1, 2],
            "feature_group_count": 1,
            "batch_group_count": 1,
        },
        convolution(),
    ),
]
BODIES = {
    "REDUCE": "body_subgraph_index",
    "REDUCE_WINDOW": "body_subgraph_index",
    "SORT": "comparator_subgraph_index",
}


def kind_of(name: str) -> str:
    """The table of an operator's options."""
    return f"Stablehlo{''.join(part.capitalize() for part in name.split('_'))}Options"


def added(g: Graph, name: str, values: Sequence[Value], given: Mapping[str, Any], y: Any) -> None:
    """One operator, whose result is as the expected one."""
    options = {key: value for key, value in given.items() if key not in ("to", "body")}
    if "body" in given:
        options[BODIES[name]] = g.body(f"STABLEHLO_{given['body']}", values[0].type)
    found = (kind_of(name), options) if options else None
    g.op(f"STABLEHLO_{name}", values, (y.shape, NAMES[y.dtype], None), options=found)


def results(data: bytes, feed: Mapping[str, Array], path: Path) -> Mapping[str, Any]:
    """What the legalized model gives."""
    path.write_bytes(data)
    module = import_model(path)
    TfliteWalk(find_function(module, "main")).run()
    return Calls(module)(feed)


def test_operators(tmp_path: Path) -> None:
    g = Graph(Random(0), np.random.default_rng(0))
    feed: dict[str, Array] = {}
    for name, arrays, options, y in CASES:
        values: list[Value] = []
        for array in arrays:
            value = g.input(np.shape(array), NAMES[np.asarray(array).dtype])
            feed[f"t{value.index}"] = np.asarray(array)
            values.append(value)
        added(g, name, values, options, y)
    found = results(g.program().wide().data, feed, tmp_path / "model.tflite")
    for (name, *_, y), got in zip(CASES, found.values(), strict=True):
        assert (np.asarray(got).dtype, np.shape(got)) == (y.dtype, y.shape), name
        np.testing.assert_allclose(np.asarray(got), y, rtol=1e-6, err_msg=name)


MANY = np.zeros((3, 4), np.float32)

TOO_LARGE: Sequence[Case] = [
    ("DYNAMIC_SLICE", [X, np.int32(0), np.int32(0)], {"slice_sizes": [3, 4]}, MANY),
    ("DYNAMIC_UPDATE_SLICE", [X, MANY, np.int32(0), np.int32(0)], {}, X),
    (
        "GATHER",
        [X, np.zeros((5, 1), np.int32)],
        {
            "offset_dims": [1, 2],
            "start_index_map": [0],
            "index_vector_dim": 1,
            "slice_sizes": [3, 4],
        },
        np.zeros((5, 3, 4), np.float32),
    ),
]


@pytest.mark.parametrize("case", TOO_LARGE, ids=[name for name, *_ in TOO_LARGE])
def test_parts_larger_than_the_whole_are_refused(case: Case, tmp_path: Path) -> None:
    name, arrays, options, y = case
    g = Graph(Random(0), np.random.default_rng(0))
    values = [g.input(np.shape(array), NAMES[np.asarray(array).dtype]) for array in arrays]
    added(g, name, values, options, y)
    path = tmp_path / "model.tflite"
    path.write_bytes(g.program().wide().data)
    with pytest.raises(LegalizationError, match="elements of"):
        TfliteWalk(find_function(import_model(path), "main")).run()


def test_pairs_are_sorted_by_the_first_ones(tmp_path: Path) -> None:
    keys, others = np.array([3, 1, 2, 1], np.int32), np.array([0, 1, 2, 3], np.int32)
    g = Graph(Random(0), np.random.default_rng(0))
    x, y = g.input((4,), "INT32"), g.input((4,), "INT32")
    body = g.body("LESS", "INT32")
    options = ("StablehloSortOptions", {"dimension": 0, "comparator_subgraph_index": body})
    g.op("STABLEHLO_SORT", [x, y], ((4,), "INT32", None), ((4,), "INT32", None), options=options)
    found = results(g.program().data, {"t0": keys, "t1": others}, tmp_path / "model.tflite")
    assert [np.asarray(value).tolist() for value in found.values()] == [[1, 1, 2, 3], [1, 3, 2, 0]]


def nested(
    kind: str,
    options: tuple[str, Mapping[str, Any]],
    graphs: Sequence[Mapping[str, Any]],
    outputs: Sequence[int] = (2,),
) -> bytes:
    """A model of one operator that calls the others of its subgraphs."""
    codes = [f"STABLEHLO_{kind}", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "LESS"]
    return flatbuffer(
        "Model",
        {
            "version": 3,
            "operator_codes": [operator_code(name) for name in codes],
            "buffers": [{}, {"data": np.array(100, np.int32).tobytes()}],
            "subgraphs": [
                graph([0, 1], outputs, {"opcode_index": 0, "builtin_options_2": options}),
                *graphs,
            ],
        },
    )


def graph(inputs: Sequence[int], outputs: Sequence[int], node: Mapping[str, Any]) -> Any:
    """A subgraph of one operator, of scalars; number 3 is 100."""
    tensors = [
        {"name": f"t{k}", "shape": (), "type": "INT32", "buffer": int(k == 3), "has_rank": True}
        for k in range(4)
    ]
    nodes = [{"inputs": inputs, "outputs": outputs, **node}]
    return {"tensors": tensors, "inputs": [0, 1], "outputs": outputs, "operators": nodes}


@pytest.mark.parametrize(("index", "expected"), [(0, 14), (1, 49), (2, 107), (-1, 107), (7, 107)])
def test_cases(index: int, expected: int, tmp_path: Path) -> None:
    branches = [
        {**graph([0, 0], [2], {"opcode_index": 1}), "inputs": [0]},
        {**graph([0, 0], [2], {"opcode_index": 2}), "inputs": [0]},
        {**graph([0, 3], [2], {"opcode_index": 1}), "inputs": [0]},
    ]
    options = ("StablehloCaseOptions", {"branch_subgraph_indices": [1, 2, 3]})
    feed = {"t0": np.array(index, np.int32), "t1": np.array(7, np.int32)}
    found = results(nested("CASE", options, branches), feed, tmp_path / "model.tflite")
    assert np.asarray(found["t2"]) == expected


def test_composites_are_what_they_are_composed_of(tmp_path: Path) -> None:
    body = graph([0, 1], [2], {"opcode_index": 2})
    options = ("StableHLOCompositeOptions", {"name": "own.f", "decomposition_subgraph_index": 1})
    feed = {"t0": np.array(6, np.int32), "t1": np.array(7, np.int32)}
    found = results(nested("COMPOSITE", options, [body]), feed, tmp_path / "model.tflite")
    assert np.asarray(found["t2"]) == 42


def test_loops(tmp_path: Path) -> None:
    less = graph([0, 3], [2], {"opcode_index": 3})
    less["tensors"][2] = {**less["tensors"][2], "type": "BOOL"}
    body = {**graph([0, 1], [2], {"opcode_index": 1}), "outputs": [2, 1]}
    options = ("StablehloWhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    feed = {"t0": np.array(6, np.int32), "t1": np.array(7, np.int32)}
    data = nested("WHILE", options, [less, body], outputs=[2, 3])
    found = results(data, feed, tmp_path / "model.tflite")
    assert [int(np.asarray(value)) for value in found.values()] == [104, 7]
