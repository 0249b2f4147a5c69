"""Indices from data, and the places of the best elements: in vectors of every target."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from xdsl.ir import SSAValue

import lowerdeck
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import i8, i32, i64, static_shape

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Suite,
    symbol,
    typed,
)
from .targets import (  # noqa: TID251  (as above)
    OTHER_TARGETS,
    SOME_TARGETS,
    suite_for,
    suite_in_turn,
)
from .test_layouts import add, values  # noqa: TID251  (as above)

Array = NDArray[Any]


def on(suite: Suite, target: str, body: Any, *inputs: Array, types: Any = None) -> None:
    """One more program."""
    types = types or [typed(value.dtype, *value.shape) for value in inputs]
    add(suite, target, types, body, *inputs)


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_many_indices(tmp_path: Path, target: str) -> None:
    """Checked some hundreds at a time; those that count from the end, too."""
    suite, n = suite_in_turn(target, tmp_path, SOME_TARGETS), symbol("n")
    x, i = values(7), np.random.default_rng(3).integers(-7, 7, 531)
    y, wide = np.round(values(531) * 9), values(7, 7, 7)
    for dtype in (np.int64, np.int32, np.int8):
        on(suite, target, lambda x, i: [t.GatherOp(x, i, 0)], x, i.astype(dtype))
    on(suite, target, lambda x, i: [t.GatherOp(x, e.NegOp(i).result, 0)], x, -i)
    table = i.reshape(3, 177)
    on(suite, target, lambda x, i: [t.GatherElementsOp(x, i, 1)], values(3, 7), table)
    on(suite, target, lambda x, i: [t.GatherNdOp(x, i)], wide, i.reshape(177, 3))
    on(suite, target, lambda x, i, y: [t.ScatterElementsOp(x, i, y, 0, "add")], x, i, y)
    types = [typed(np.float32, 7), typed(np.int64, n)]
    for count in (0, 1, 19, 531):
        on(suite, target, lambda x, i: [t.GatherOp(x, i, 0)], x, i[:count], types=types)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_half_precision_is_rounded_at_each_update(tmp_path: Path, target: str) -> None:
    """Sums in bf16 end where an update is less than half a step; products and maxima do not."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    places = np.arange(3000) % 3
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        y = 0.3 + 0.1 * np.abs(values(3000)).clip(0, 1)
        for kind in ("add", "mul", "max"):
            given = y / 2 + 0.6 if kind == "mul" else y
            inputs = (np.ones(3, dtype), places, given.astype(dtype))

            def body(x: SSAValue, i: SSAValue, y: SSAValue, kind: str = kind) -> list[Any]:
                at = ConstantOp.of(places.reshape(-1, 1)).result
                return [t.ScatterElementsOp(x, i, y, 0, kind), t.ScatterNdOp(x, at, y, kind)]

            on(suite, target, body, *inputs)
    suite.check()


@pytest.mark.parametrize("target", [*SOME_TARGETS, "x86-64-zen4"])
def test_indices_that_bytes_make(tmp_path: Path, target: str) -> None:
    """
    One table for all bytes, of elements of any type, and one that has not enough for each; between
    other maps of wider numbers, too.
    """
    suite = suite_for(target, tmp_path)
    n = symbol("n")
    numbers = np.arange(-128, 128)
    for dtype in (np.int8, np.uint8):
        x = np.resize(numbers if dtype is np.int8 else numbers + 128, 531).astype(dtype)
        for kind in "i1 u1 i2 i4 i8 f2 f4 f8 ?".split():
            table = (numbers[::-1] * (kind != "?") % 97 + (numbers > 5)).astype(kind)
            table = np.resize(table, 300)

            def body(x: SSAValue, table: Array = table) -> list[Any]:
                first = ConstantOp.of(np.array(-140)).result
                index = e.SubOp(e.CastOp(x, i64).result, first).result
                return [t.GatherOp(ConstantOp.of(table).result, index, 0)]

            x_ = x[x < 160]
            on(suite, target, body, x_)
            on(suite, target, body, x_[:300], types=[typed(dtype, n)])

            def between(x: SSAValue, body: Any = body) -> list[Any]:
                (entry,) = body(x)
                wide = e.CastOp(entry.result, i32).result
                sum_ = e.AddOp(wide, e.MulOp(wide, e.CastOp(x, i32).result).result)
                return [e.CastOp(sum_.result, i8)]

            if kind in ("i1", "u1"):
                on(suite, target, between, x_)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_top_k(tmp_path: Path, target: str) -> None:
    """In registers side by side, in a heap by blocks, and sorted: equal ones in their order."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for dtype in (np.float32, np.float64, np.float16, np.int64, np.int8, np.uint32):
        x = np.round(values(5, 230) * 20).astype(np.int64).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            x[3, ::7], x[3, 1::7], x[3, 2::7], x[3, 3::7] = np.nan, -0.0, 0.0, -np.inf
        for largest in (True, False):
            for k, axis in ((3, 0), (9, 1), (150, 1)):
                on(suite, target, lambda x, k=k, a=axis, w=largest: t.TopKOp(x, k, a, w).results, x)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_all_of_an_open_number_in_order(tmp_path: Path, target: str) -> None:
    """Few in a heap, many by their digits, and too many of several slices in a heap again."""
    suite, n = suite_in_turn(target, tmp_path, OTHER_TARGETS), symbol("n")
    for dtype in (np.float32, np.int64, np.uint8):
        types = [typed(dtype, n)], [typed(dtype, 2, n)]
        # The last one is more than the stack holds of a slice.
        for count in (0, 1, 2, 15, 41, 700, *((11_000,) if dtype == np.int64 else ())):
            x = np.round(values(2, count) * 40).astype(np.int64).astype(dtype)
            if dtype == np.float32:
                x[:, ::7], x[:, 1::7], x[:, 2::7] = np.nan, -0.0, 0.0
            up = count % 2 == 0
            on(suite, target, lambda x, up=up: t.TopKOp(x, n, 0, up).results, x[0], types=types[0])
            on(suite, target, lambda x, up=up: t.TopKOp(x, n, 1, up).results, x, types=types[1])
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_largest_of_rows_side_by_side(tmp_path: Path, target: str) -> None:
    """Vectors of several rows at a time, each of which reads its element by its own place."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for columns in (2, 5):
        x = values(30, columns)
        on(suite, target, lambda x: t.TopKOp(x, 1, 1).results[:1], x)
        on(suite, target, lambda x: t.TopKOp(x, 2, 1, False).results, x)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_repeated_elements(tmp_path: Path, target: str) -> None:
    """Of rows of every length, twice and four times, and of columns along with them."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)

    def spread(x: SSAValue, times: int) -> list[Any]:
        shape = static_shape(x)
        assert shape is not None
        rows, columns = (ConstantOp.of(np.arange(size).repeat(times)).result for size in shape)
        tall = t.GatherOp(x, rows, 0).result
        return [t.GatherOp(tall, columns, 1), t.GatherOp(x, columns, 1)]

    for dtype in (np.float32, np.int8, np.float64, np.float16, np.bool_):
        for size, times in ((1, 2), (5, 2), (19, 2), (33, 4), (8, 3)):
            x = (values(3, size) * 50).astype(dtype)
            on(suite, target, lambda v, n=times: spread(v, n), x)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_elements_some_way_apart(tmp_path: Path, target: str) -> None:
    """Of pixels, channel by channel, and of blocks of two times two."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)

    def moved(x: SSAValue) -> list[Any]:
        blocks = t.ReshapeOp(x, [3, 19, 2, 2]).result
        return [t.TransposeOp(x, [0, 2, 1]), t.TransposeOp(blocks, [3, 2, 0, 1])]

    for dtype in (np.float32, np.uint8, np.float64, np.float16, np.bool_):
        for shape in ((3, 38, 2), (1, 57, 4), (2, 38, 3)):
            on(suite, target, moved, (values(*shape) * 50).astype(dtype))
    suite.check()


def test_as_many_as_data_decide_in_order(tmp_path: Path) -> None:
    """A number that is known in the middle of a run is no size of memory that is there before."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Reshape", ["places", "flat"], ["row"]),
        helper.make_node("Gather", ["x", "row"], ["some"]),
        helper.make_node("Unique", ["some"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("flat", TensorProto.INT64, [1], [-1])],
    )
    path = tmp_path / "m.onnx"
    opsets = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    model = lowerdeck.compile(path, cache=False, target="c99")
    for count in (0, 5, 300):
        x = np.round(values(count) * 4) / 4
        np.testing.assert_array_equal(model({"x": x})["y"], np.unique(x[x != 0]))
