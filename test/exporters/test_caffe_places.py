"""Places of maxima, and elements at places: whole numbers, which a net of Caffe holds as floats."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import reduce as reductions
from lowerdeck.dialects.core import tensor
from lowerdeck.dialects.core.types import f32, i8
from lowerdeck.exporters.caffe.convert import ConvertToCaffePass
from lowerdeck.exporters.errors import ExportError

from .caffe_programs import (
    Array,
    check,
    constant,
    floats,
    module_of,
)

pytestmark = pytest.mark.filterwarnings("ignore:the net has f32")

INF, NAN = np.inf, np.nan


# The largest one


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 7), 1), ((4, 7), 0), ((2, 5, 3), 1), ((2, 100, 1), 1), ((2, 70, 3), 1)]
)
def test_place_among_equal_ones(
    tmp_path: Path, shape: tuple[int, ...], axis: int, keep: bool, kind: str, last: bool
) -> None:
    """ArgMax takes the last one, Pooling the first."""
    x = np.random.default_rng(1).integers(0, 4, shape).astype(np.float32)

    def program(x: SSAValue) -> Any:
        return reductions.ArgReduceOp(kind, x, axis, keep, last)

    types = check(tmp_path, {"x": x}, program)
    assert ("ArgMax" in types) == (last or axis == 0 or shape == (2, 5, 3))


def test_place_as_a_float(tmp_path: Path) -> None:
    def program(x: SSAValue) -> Any:
        return e.CastOp(reductions.ArgReduceOp("max", x, 1, True, True).result, f32)

    assert check(tmp_path, {"x": floats(2, 3)}, program) == ["ArgMax"]


@pytest.mark.parametrize("last", [False, True])
def test_place_among_infinities(tmp_path: Path, last: bool) -> None:
    """Pooling finds nothing where all are -infinity: its place is -1."""
    x = np.array([[-INF, 1, 1], [-INF, -INF, -INF], [INF, 1, INF], [-0.0, 0, -0.0]], np.float32)
    check(tmp_path, {"x": x}, lambda x: reductions.ArgReduceOp("max", x, 1, False, last))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_place_of_a_number_among_nan(tmp_path: Path, kind: str) -> None:
    """NaN never wins, and where nothing does it is the first place."""
    x = np.array([[NAN, 1, 2], [2, NAN, 2], [NAN, NAN, NAN], [1, NAN, -INF]], np.float32)
    never = -INF if kind == "max" else INF

    def program(x: SSAValue) -> Any:
        is_number = e.CompareOp("eq", x, x).result
        chosen = e.SelectOp(is_number, x, constant(np.array(never, np.float32))).result
        return reductions.ArgReduceOp(kind, chosen, 1)

    types = check(tmp_path, {"x": x if kind == "max" else -x}, program)
    assert types[-4:] == ["Pooling", "Silence", "ReLU", "Reshape"]


def test_place_along_a_long_axis_that_is_not_last(tmp_path: Path) -> None:
    def program(x: SSAValue) -> Any:
        return reductions.ArgReduceOp("max", x, 1)

    with pytest.raises(ExportError, match="--dialect=ssd"):
        check(tmp_path, {"x": floats(1, 65, 66)}, program)
    types = check(tmp_path, {"x": floats(1, 65, 66)}, program, "ssd")
    assert types[:1] == ["Permute"]


# The largest ones


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_several_places_among_equal_ones(tmp_path: Path, count: int, backward: bool) -> None:
    """In core the first one is the best, and the last one if the blob is read from its end."""
    x = np.array([[[1, 3, 3, 0, 3]], [[2, 2, 2, 2, 2]]], np.float32)

    def program(x: SSAValue) -> Any:
        if backward:
            x = tensor.SliceOp(x, [0, 0, 4], [2, 1, 5], [1, 1, -1]).result
        values, places = tensor.TopKOp(x, count, 2).results
        if backward:
            places = e.SubOp(constant(np.array(4)), places).result
        return [values, e.CastOp(places, f32).result]

    check(tmp_path, {"x": x}, program)


def test_smallest_elements_have_no_layer(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no layer of Caffe computes"):
        check(tmp_path, {"x": floats(2, 3)}, lambda x: tensor.TopKOp(x, 1, 1, False).values)


def test_places_of_the_largest_alone(tmp_path: Path) -> None:
    """The elements have no layer, which would take the first tops."""
    types = check(tmp_path, {"x": floats(2, 3)}, lambda x: [tensor.TopKOp(x, 2, 1).indices])
    assert types == ["Slice", "Concat", "ArgMax", "Power"]


# Elements at places

IDS = np.array([[0, 4, -1], [-5, 2, 1]], np.int32)
FOLDED = ["Threshold", "Eltwise", "Power"]


@pytest.mark.parametrize("shape", [(5, 3), (5, 2, 3), (5,)])
def test_rows_of_a_table(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """A negative place counts from the end."""
    table = floats(*shape)
    types = check(tmp_path, {"i": IDS}, lambda i: tensor.GatherOp(constant(table), i, 0))
    assert types[:4] == [*FOLDED, "Embed"]


def test_rows_at_places_that_are_not_negative(tmp_path: Path) -> None:
    """By their type, by where they come from, or by what is known of them."""
    ids = np.array([[0, 4], [2, 1]])

    def program(i: SSAValue, x: SSAValue) -> Any:
        table, place = constant(floats(5, 3)), reductions.ArgReduceOp("max", x, 1).result
        return [
            tensor.GatherOp(table, i, 0).result,
            tensor.GatherOp(table, place, 0).result,
        ]

    types = check(tmp_path, {"i": ids.astype(np.uint8), "x": floats(2, 5)}, program)
    assert types.count("Embed") == 2
    assert "Threshold" not in types
    table = floats(5, 3)
    inside = {"i": ids}
    types = check(tmp_path, inside, lambda i: tensor.GatherOp(constant(table), i, 0, inside=True))
    assert types == ["Embed"]


def test_rows_of_data(tmp_path: Path) -> None:
    inputs = {"x": floats(5, 2, 3), "i": IDS[0].astype(np.int64)}
    types = check(tmp_path, inputs, lambda x, i: tensor.GatherOp(x, i, 0))
    assert types == [*FOLDED, "BatchReindex"]


def test_places_elsewhere_are_refused(tmp_path: Path) -> None:
    table = floats(3, 5)
    with pytest.raises(ExportError, match="places along dimension 1 that depend on data"):
        check(tmp_path, {"i": IDS}, lambda i: tensor.GatherOp(constant(table), i, 1))
    x = floats(5, 3)
    with pytest.raises(ExportError, match="in one dimension if the rows depend on data"):
        check(tmp_path, {"x": x, "i": IDS}, lambda x, i: tensor.GatherOp(x, i, 0))


# Inputs and outputs


@pytest.mark.parametrize(
    "x",
    [
        np.array([[0, 255], [7, 9]], np.uint8),
        np.array([2**24 + 1, -5, 2**31 - 1], np.int32),
        np.array([True, False]),
        np.array([1.5, -2, 6e-5], np.float16),
    ],
)
def test_input_that_is_only_cast_to_floats(tmp_path: Path, x: Array) -> None:
    """Also after it is moved; whoever fills the blob rounds as the cast does."""

    def program(value: SSAValue) -> Any:
        moved = tensor.ReshapeOp(value, [1, *x.shape]).result
        return e.MulOp(e.CastOp(moved, f32).result, constant(np.array(0.5, np.float32)))

    assert check(tmp_path, {"x": x}, program) == ["Reshape", "Power"]


def test_input_that_is_cast_to_fewer_bits_is_refused(tmp_path: Path) -> None:
    def program(x: SSAValue) -> Any:
        return e.CastOp(e.CastOp(x, i8).result, f32)

    with pytest.raises(ExportError, match="input 'x': found elements of i32"):
        check(tmp_path, {"x": IDS}, program)


def test_place_that_is_cast(tmp_path: Path) -> None:
    """To a type that has all places; to one that has not, it changes them."""

    def program(x: SSAValue) -> Any:
        return e.CastOp(reductions.ArgReduceOp("max", x, 1).result, i8)

    check(tmp_path, {"x": floats(1, 128)}, program)
    with pytest.raises(ExportError, match="no layer of Caffe computes"):
        check(tmp_path, {"x": floats(1, 129)}, program)


def test_constants_of_whole_numbers(tmp_path: Path) -> None:
    whole = np.array([3, -4])
    types = check(tmp_path, {"x": floats(2)}, lambda x: [e.TanhOp(x).result, constant(whole)])
    assert types == ["TanH", "Parameter"]
    with pytest.raises(ExportError, match="output 'y0': found elements of i64"):
        check(tmp_path, {"x": floats(2)}, lambda x: [constant(np.array([2**24 + 1, 1])), x])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("number", [0.5, -1.5, 0.1, INF, -INF, NAN])
def test_constants_of_other_floats_that_are_not_whole(
    tmp_path: Path, number: float, dtype: type[np.floating[Any]]
) -> None:
    """A cast to integers changes them, and f32 has not all of them."""
    array = np.array([3, number], dtype)

    def as_it_is(x: SSAValue) -> Any:
        return [constant(array), x]

    def cast(x: SSAValue) -> Any:
        return [e.CastOp(constant(array), i8).result, x]

    def whole(x: SSAValue) -> Any:
        return [e.TanhOp(x).result, constant(np.array([3, -4], dtype))]

    for program in (as_it_is, cast):
        with pytest.raises(ExportError, match=r"f32, which is all|no layer of Caffe computes"):
            check(tmp_path, {"x": floats(2)}, program)
    check(tmp_path, {"x": floats(2)}, whole)


def test_a_warning_lists_what_has_other_elements() -> None:
    def program(x: SSAValue, i: SSAValue) -> Any:
        place = reductions.ArgReduceOp("max", x, 1).result
        return [place, tensor.GatherOp(x, i, 0).result]

    module = module_of({"x": floats(2, 3), "ids": np.array([1], np.int32)}, program)
    said = r"the net has f32, .* for input 'ids' \(i32\), output 'y0' \(i64\)$"
    with pytest.warns(UserWarning, match=said):
        ConvertToCaffePass().apply(Context(), module)
    module.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConvertToCaffePass().apply(Context(), module_of({"x": floats(2)}, e.TanhOp))
