"""
Indices from data that lie outside of their dimension, also of one without elements, end the run
with a status before anything is read or written through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from .sanitized import model_of, statuses_of_all

Array = NDArray[Any]
Case: TypeAlias = "tuple[onnx.ModelProto, list[dict[str, Array]], set[int]]"

node = onnx.helper.make_node
LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
HOSTILE = (LEAST, LEAST + 1, -4, -3, -1, 0, 2, 3, 1 << 31, 1 << 62, GREATEST)
"""Indices into a dimension of 3 or fewer."""
SIZES = (0, 1, 3)
OK, SHAPE_MISMATCH, OUT_OF_RANGE = 0, 13, 14


def x_of(*shape: int) -> Array:
    return np.arange(1, 1 + np.prod(shape, dtype=np.int64)).astype(np.float32).reshape(shape)


def indexed(
    nodes: Sequence[onnx.NodeProto],
    x_shape: Sequence[int | str],
    index_shape: Sequence[int],
    **others: Sequence[int | str],
) -> Case:
    """A model of x and i (and more inputs), run with all sizes `n` and all hostile indices."""
    inputs: dict[str, tuple[Any, Sequence[int | str]]] = {
        "x": (np.float32, x_shape),
        "i": (np.int64, ["k", *index_shape[1:]]),
        **{name: (np.float32, shape) for name, shape in others.items()},
    }
    runs: list[dict[str, Array]] = []
    for n in SIZES:
        for count in (0, index_shape[0]):
            for value in HOSTILE:
                sizes = {"n": n, "k": count}
                run = {
                    name: x_of(*(sizes[d] if isinstance(d, str) else d for d in shape))
                    for name, (dtype, shape) in inputs.items()
                    if dtype is np.float32
                }
                runs.append({**run, "i": np.full((count, *index_shape[1:]), value)})
    return model_of(nodes, inputs, ["y"]), runs, {OK, OUT_OF_RANGE}


def gathered_rows() -> Case:
    return indexed([node("Gather", ["x", "i"], ["y"])], ["n", 40], (2,))


def gathered_columns() -> Case:
    nodes = [
        node("Add", ["x", "x"], ["a"]),
        node("Gather", ["a", "i"], ["b"], axis=1),
        node("Relu", ["b"], ["y"]),
    ]
    return indexed(nodes, [5, "n"], (2,))


def gathered_sums() -> Case:
    nodes = [
        node("Gather", ["x", "i"], ["a"]),
        node("ReduceSum", ["a"], ["y"], keepdims=0),
    ]
    return indexed(nodes, ["n", 40], (2,))


def gathered_product() -> Case:
    nodes = [node("Gather", ["x", "i"], ["a"]), node("MatMul", ["a", "w"], ["y"])]
    return indexed(nodes, ["n", 40], (2,), w=[40, 17])


def gathered_elements() -> Case:
    return indexed([node("GatherElements", ["x", "i"], ["y"], axis=0)], ["n", 20], (2, 20))


def gathered_elements_along_the_last() -> Case:
    return indexed([node("GatherElements", ["x", "i"], ["y"], axis=1)], [4, "n"], (4, 20))


def gathered_nd() -> Case:
    return indexed([node("GatherND", ["x", "i"], ["y"])], ["n", "n", 9], (4, 2))


def gathered_nd_by_batch() -> Case:
    return indexed([node("GatherND", ["x", "i"], ["y"], batch_dims=1)], ["k", "n", 9], (4, 1))


def scattered_elements() -> Case:
    return indexed([node("ScatterElements", ["x", "i", "u"], ["y"])], ["n", 5], (2, 5), u=["k", 5])


def added_elements() -> Case:
    nodes = [node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add")]
    return indexed(nodes, ["n", 5], (2, 5), u=["k", 5])


def scattered_nd() -> Case:
    return indexed([node("ScatterND", ["x", "i", "u"], ["y"])], ["n", 9], (2, 1), u=["k", 9])


def maximum_nd() -> Case:
    nodes = [node("ScatterND", ["x", "i", "u"], ["y"], reduction="max")]
    return indexed(nodes, ["n", "n", 9], (2, 2), u=["k", 9])


def gathered_in_a_loop() -> Case:
    """One row for each iteration, as recurrent layers and TensorArrays take them."""
    helper = onnx.helper
    body = helper.make_graph(
        [
            node("Identity", ["c"], ["d"]),
            node("Gather", ["i", "t"], ["p"]),
            node("Gather", ["x", "p"], ["r"]),
            node("Add", ["s", "r"], ["o"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("t", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, [40]),
        ],
        [
            helper.make_tensor_value_info("d", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("o", onnx.TensorProto.FLOAT, [40]),
        ],
    )
    nodes = [
        node("Size", ["i"], ["count"]),
        node("Loop", ["count", "", "z"], ["y"], body=body),
    ]
    return indexed(nodes, ["n", 40], (2,), z=[40])


def compressed() -> Case:
    """The condition may be longer than the input has elements."""
    model = model_of(
        [node("Compress", ["x", "c"], ["y"])],
        {"x": (np.float32, ["n", 3]), "c": (bool, ["k"])},
        ["y"],
    )
    runs = [
        {"x": x_of(n, 3), "c": np.full(count, value)}
        for n in SIZES
        for count in (0, 1, 3, 9, 12)
        for value in (False, True)
    ]
    return model, runs, {OK, OUT_OF_RANGE}


def compressed_rows() -> Case:
    model = model_of(
        [node("Compress", ["x", "c"], ["y"], axis=0)],
        {"x": (np.float32, ["n", 3]), "c": (bool, ["k"])},
        ["y"],
    )
    runs = [{"x": x_of(n, 3), "c": np.ones(count, bool)} for n in SIZES for count in (0, 1, 3, 4)]
    return model, runs, {OK, OUT_OF_RANGE}


CASES = [
    gathered_rows,
    gathered_columns,
    gathered_sums,
    gathered_product,
    gathered_elements,
    gathered_elements_along_the_last,
    gathered_nd,
    gathered_nd_by_batch,
    scattered_elements,
    added_elements,
    scattered_nd,
    maximum_nd,
    gathered_in_a_loop,
    compressed,
    compressed_rows,
]


def expected_of(runs: Sequence[Mapping[str, Array]]) -> Iterator[int]:
    """Of a model that takes something for every index of `i` from every dimension `n` of `x`."""
    for run in runs:
        size = run["x"].shape[[*run["x"].shape].index(min(run["x"].shape))]
        index = run["i"]
        fits = bool(((index >= -size) & (index < size)).all())
        yield OK if fits else OUT_OF_RANGE


# The C of one thread is part of that of two, and both compilers have the same sanitizers.
WAYS = [
    ("gcc", "native", 1),
    ("gcc", "c99", 2),
    pytest.param("gcc", "c99", 1, marks=pytest.mark.slow),
    pytest.param("clang", "native", 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("c_compiler", "target", "threads"), WAYS, indirect=["c_compiler"])
def test_indices(tmp_path: Path, c_compiler: str, target: str, threads: int) -> None:
    """All cases are one program: most of the time for a small one goes into starting compilers."""
    cases = {case.__name__: case() for case in CASES}
    models = {name: (model, runs) for name, (model, runs, _) in cases.items()}
    found = statuses_of_all(tmp_path, models, c_compiler, target=target, threads=threads)
    for name, (_, runs, allowed) in cases.items():
        assert set(found[name]) == allowed, name
        if "i" in runs[0]:
            assert found[name] == list(expected_of(runs)), name
