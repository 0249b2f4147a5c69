"""Sizes, bounds and numbers from data that make no sense end the run with a status, or clean."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from .sanitized import model_of, statuses, statuses_of_all

Array = NDArray[Any]
Numbers = Sequence[int]

node = onnx.helper.make_node
LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
HOSTILE = (LEAST, LEAST + 1, -(1 << 62), -7, -1, 0, 1, 2, 7, 1 << 40, 1 << 62, GREATEST)
FEWER = (LEAST, -3, 0, 2, GREATEST)
STATUSES = {0, 3, 12, 13, 14}
"""OK, capacity, memory, shapes, indices."""

Inputs = Mapping[str, tuple[Any, Sequence[int | str]]]

X: Inputs = {"x": (np.float32, ["n", 3])}


def numbers(**shapes: Sequence[int]) -> Inputs:
    return {name: (np.int64, shape) for name, shape in shapes.items()}


MODELS: dict[str, tuple[list[onnx.NodeProto], Inputs]] = {
    "range": ([node("Range", ["s", "l", "d"], ["y"])], numbers(s=[], l=[], d=[])),
    "range_to": (
        [node("Neg", ["l"], ["z"]), node("Range", ["a", "z", "b"], ["y"])],
        numbers(l=[], a=[], b=[]),
    ),
    "slice": (
        [node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
        {**X, **numbers(s=[1], e=[1], a=[1], t=[1])},
    ),
    "pad": ([node("Pad", ["x", "p"], ["y"])], {**X, **numbers(p=[4])}),
    "pad_edge": ([node("Pad", ["x", "p"], ["y"], mode="edge")], {**X, **numbers(p=[4])}),
    "pad_reflect": ([node("Pad", ["x", "p"], ["y"], mode="reflect")], {**X, **numbers(p=[4])}),
    "tile": ([node("Tile", ["x", "r"], ["y"])], {**X, **numbers(r=[2])}),
    "expand": ([node("Expand", ["x", "r"], ["y"])], {**X, **numbers(r=[2])}),
    "filled": ([node("ConstantOfShape", ["r"], ["y"])], numbers(r=[3])),
    "reshape": ([node("Reshape", ["x", "r"], ["y"])], {**X, **numbers(r=[2])}),
    "top_k": ([node("TopK", ["x", "k"], ["y", "i"], axis=0)], {**X, **numbers(k=[1])}),
    "one_hot": (
        [node("OneHot", ["i", "k", "v"], ["y"])],
        {**numbers(i=[4], k=[1]), "v": (np.float32, [2])},
    ),
    "split": ([node("Split", ["x", "p"], ["y", "z"])], {**X, **numbers(p=[2])}),
    "trilu": ([node("Trilu", ["x", "k"], ["y"])], {**X, **numbers(k=[])}),
    "cumulative": ([node("CumSum", ["x", "k"], ["y"])], {**X, **numbers(k=[])}),
    "unsqueezed": (
        [
            node("Mul", ["k", "l"], ["m"]),
            node("Sub", ["m", "k"], ["d"]),
            node("Div", ["d", "l"], ["q"]),
            node("Max", ["q", "k"], ["s"]),
            node("ConstantOfShape", ["s"], ["y"]),
        ],
        numbers(k=[1], l=[1]),
    ),
    "arithmetic": (
        [
            *(node(op, ["a", "b"], [op]) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max")),
            *(node(op, ["a"], [f"{op}_a"]) for op in ("Neg", "Abs", "Sign")),
            node("Concat", ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Neg_a", "Abs_a", "Sign_a"],
                 ["y"], axis=0),
        ],
        numbers(a=[1], b=[1]),
    ),
}  # fmt: skip


def values_of(inputs: Inputs) -> list[dict[str, Array]]:
    """Runs with all sizes of `n` and all hostile numbers, the same for all elements of a vector."""
    integers = [name for name, (dtype, _) in inputs.items() if dtype is np.int64]
    found: list[dict[str, Array]] = []
    choices = HOSTILE if len(integers) < 3 else FEWER
    for n in (0, 1, 4) if "x" in inputs else (1,):
        for chosen in itertools.product(choices, repeat=len(integers)):
            run: dict[str, Array] = {}
            for name, (dtype, shape) in inputs.items():
                dims = [n if isinstance(dim, str) else dim for dim in shape]
                if dtype is np.float32:
                    run[name] = np.ones(dims, np.float32)
                else:
                    value = np.full(dims, chosen[integers.index(name)])
                    if value.ndim and value.shape[0] > 1:
                        # One of them is harmless, so that the others are looked at.
                        value[0] = 1
                    run[name] = value
            found.append(run)
    return found


@pytest.mark.parametrize(
    ("c_compiler", "target"), [("gcc", "c99"), ("clang", "native")], indirect=["c_compiler"]
)
def test_sizes(tmp_path: Path, c_compiler: str, target: str) -> None:
    models = {
        f"hostile_{name}": (model_of(nodes, inputs, ["y"]), values_of(inputs))
        for name, (nodes, inputs) in MODELS.items()
    }
    found = statuses_of_all(tmp_path, models, c_compiler, target=target)
    assert {name for name, each in found.items() if not set(each) <= STATUSES} == set()


def test_workspace_beyond_all_integers(tmp_path: Path) -> None:
    """A product of two open dimensions, of arrays without elements."""
    nodes = [
        node("MatMul", ["a", "b"], ["c"]),
        node("Softmax", ["c"], ["s"], axis=-1),
        node("ReduceSum", ["s"], ["y"], keepdims=0),
    ]
    inputs: Inputs = {"a": (np.float32, ["n", "k"]), "b": (np.float32, ["k", "m"])}
    runs = [
        {"a": np.zeros((n, k), np.float32), "b": np.zeros((k, m), np.float32)}
        for n, k, m in ((1, 1, 1), (0, 3, 2), (1 << 32, 0, 1 << 32), (1 << 40, 0, 1 << 40))
    ]
    found = statuses(tmp_path, model_of(nodes, inputs, ["y"]), runs, "gcc")
    assert found[:2] == [0, 0]
    assert all(status != 0 for status in found[2:])
