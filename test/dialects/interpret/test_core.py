"""Where the interpreter's numbers are fixed by a docstring rather than by ONNX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.core import Core, elementwise, linear, reduce, tensor
from lowerdeck.dialects.core.types import bf16, element_of, f16, rank_of
from lowerdeck.dialects.core.types import tensor as tensor_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret.core import evaluate, is_evaluable
from lowerdeck.dialects.interpret.core_linear import matrix_product
from lowerdeck.dialects.interpret.errors import InterpretError

S = Expr.symbol("s")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


Program = Callable[[Any], Operation] | Callable[..., Operation]


def run(build: Program, *arrays: NDArray[Any], **symbols: int) -> NDArray[Any]:
    """The first result of the op that `build` makes for values of the arrays' types."""
    block = Block(arg_types=[tensor_type(element_of(a.dtype), a.shape) for a in arrays])
    return evaluate(build(*block.args), arrays, symbols)[0]


def reduced(kind: str, x: SSAValue, *, axis: int = 0) -> Operation:
    return reduce.ReduceOp(kind, x, [axis])


def test_every_op_has_a_meaning() -> None:
    others = {"core.bind_symbols", "core.if", "core.loop", "core.kernel", "core.yield"}
    without = {op.name for op in Core.operations if not is_evaluable(op.__new__(op))}
    assert without == others


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division(dtype: Any) -> None:
    low = np.iinfo(dtype).min
    x = np.array([7, -7, 7, -7, 5, low, 0], dtype)
    y = np.array([2, 2, -2, -2, 0, -1, 0], dtype)
    np.testing.assert_array_equal(run(elementwise.DivOp, x, y), [3, -3, -3, 3, 0, low, 0])
    np.testing.assert_array_equal(run(elementwise.RemOp, x, y), [1, -1, 1, -1, 0, 0, 0])
    np.testing.assert_array_equal(run(elementwise.ModOp, x, y), [1, 1, -1, -1, 0, 0, 0])


def test_integers_wrap() -> None:
    x = np.array([127, -128, 100], np.int8)
    np.testing.assert_array_equal(run(elementwise.AddOp, x, x), [-2, 0, -56])
    np.testing.assert_array_equal(run(elementwise.MulOp, x, x), [1, 0, 16])
    np.testing.assert_array_equal(run(elementwise.NegOp, x), [-127, -128, -100])
    np.testing.assert_array_equal(run(elementwise.AbsOp, x), [127, -128, 100])
    scalar = np.array(2**63 - 1)
    assert run(elementwise.AddOp, scalar, np.array(1)) == -(2**63)


def test_integer_powers() -> None:
    x = np.array([2, -1, -1, 1, 3, 0, 0, -3], np.int32)
    y = np.array([-1, -3, -2, -5, 40, -1, 0, 3], np.int32)
    wrapped = int(np.array(3**40 % 2**32, np.uint32).view(np.int32))
    np.testing.assert_array_equal(run(elementwise.PowOp, x, y), [0, -1, 1, 1, wrapped, 0, 1, -27])


def test_shifts() -> None:
    x = np.array([-1, -1, 1, 1, -8], np.int8)
    y = np.array([1, 8, 7, 9, 1], np.int8)
    np.testing.assert_array_equal(run(elementwise.ShrOp, x, y), [127, 0, 0, 0, 124])
    np.testing.assert_array_equal(run(elementwise.ShlOp, x, y), [-2, 0, -128, 0, -16])


def test_nan_wins_in_max_and_min() -> None:
    x = np.array([np.nan, 1, -np.inf], np.float32)
    y = np.array([1, np.nan, 2], np.float32)
    for op in (elementwise.MaxOp, elementwise.MinOp):
        assert np.isnan(run(op, x, y)[:2]).all()
    for kind in ("max", "min"):
        assert np.isnan(run(partial(reduced, kind), x))


def test_float_remainders() -> None:
    x, y = np.array([5.5, -5.5, 5.5], np.float32), np.array([2, 2, -2], np.float32)
    np.testing.assert_array_equal(run(elementwise.RemOp, x, y), [1.5, -1.5, 1.5])
    np.testing.assert_array_equal(run(elementwise.ModOp, x, y), [1.5, 0.5, -0.5])


def test_bfloat16_is_rounded_once() -> None:
    def to_bf16(x: SSAValue) -> Operation:
        return elementwise.CastOp(x, bf16)

    # Just above halfway between 1 and the next bfloat16; float32 rounds it to halfway.
    above = 1 + 2**-8
    values = np.array([above + 2**-40, above - 2**-40, above, -above - 2**-40])
    expected = [1 + 2**-7, 1, 1, -1 - 2**-7]
    np.testing.assert_array_equal(run(to_bf16, values).astype(np.float64), expected)
    large = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, 2**62 + 2**54 - 1, -(2**62) - 2**54 - 1])
    expected = [2.0**62 + 2**55, 2.0**62, 2.0**62, -(2.0**62) - 2**55]
    np.testing.assert_array_equal(run(to_bf16, large).astype(np.float64), expected)
    unsigned = np.array([2**63 + 2**55 + 1, 2**63], np.uint64)
    expected = [2.0**63 + 2**56, 2.0**63]
    np.testing.assert_array_equal(run(to_bf16, unsigned).astype(np.float64), expected)


def test_casts() -> None:
    def cast(dtype: Any) -> Callable[[SSAValue], Operation]:
        return lambda x: elementwise.CastOp(x, element_of(np.dtype(dtype)))

    x = np.array([0.0, -0.0, 0.5, np.nan, -2.7, 3.9], np.float32)
    np.testing.assert_array_equal(run(cast(np.bool_), x), [0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(run(cast(np.int32), x[[0, 1, 2, 4, 5]]), [0, 0, 0, -2, 3])
    np.testing.assert_array_equal(run(cast(np.uint8), np.array([256, -1, 300])), [0, 255, 44])
    assert run(cast(np.float16), np.array([65504, 65520, 1e9], np.float32)).tolist() == [
        65504,
        np.inf,
        np.inf,
    ]


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16])
def test_narrow_floats(dtype: np.dtype[Any]) -> None:
    """Every op that takes f32 takes them, and its result is that of float32, rounded."""
    x = np.linspace(0.1, 0.9, 12).reshape(1, 3, 4).astype(dtype)
    element = f16 if dtype == np.float16 else bf16
    programs: list[Callable[[Any], Operation]] = [
        *elementwise.FLOAT_UNARY,
        lambda x: elementwise.MulOp(x, x),
        lambda x: elementwise.PowOp(x, x),
        lambda x: linear.MatmulOp(x, tensor.TransposeOp(x, [0, 2, 1]).result),
        lambda x: reduce.ReduceOp("sum", x, [1]),
        lambda x: reduce.ReduceOp("max", x, [1]),
        lambda x: reduce.SoftmaxOp(x, 2),
        lambda x: reduce.CumulativeOp("prod", x, 2),
        lambda x: tensor.PadOp(x, [0, 1, 1], [0, 1, 1], mode="reflect"),
    ]
    for program in programs:
        block = Block(arg_types=[tensor_type(element, x.shape)])
        op = program(block.args[0])
        wide = Block(arg_types=[tensor_type(element_of(np.dtype(np.float32)), x.shape)])
        wide_op = program(wide.args[0])
        arguments = [x if v is block.args[0] else x.transpose(0, 2, 1) for v in op.operands]
        (found,) = evaluate(op, arguments, {})
        (exact,) = evaluate(wide_op, [a.astype(np.float32) for a in arguments], {})
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found.astype(np.float32), exact, rtol=float(cast(Any, ml_dtypes).finfo(dtype).eps)
        )


def test_empty_reductions() -> None:
    empty = np.zeros((2, 0), np.float32)
    for kind, value in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)):
        found = run(partial(reduced, kind, axis=1), empty)
        np.testing.assert_array_equal(found, [value, value])
    lowest = run(partial(reduced, "max"), np.zeros(0, np.int16))
    assert lowest == -(2**15)


def test_top_k_orders_ties_and_nan() -> None:
    x = np.array([1, np.nan, 2, 2, 1], np.float32)
    block = Block(arg_types=[tensor_type(element_of(x.dtype), x.shape)])
    _, largest = evaluate(tensor.TopKOp(block.args[0], 5, 0), [x], {})
    _, smallest = evaluate(tensor.TopKOp(block.args[0], 5, 0, False), [x], {})
    assert largest.tolist() == [1, 2, 3, 0, 4]
    assert smallest.tolist() == [0, 4, 2, 3, 1]


def test_scatter_in_order_of_updates() -> None:
    x, index = np.zeros(3, np.float32), np.array([1, 1, -1])
    updates = np.array([5, 6, 7], np.float32)
    found = run(partial(tensor.ScatterElementsOp, axis=0), x, index, updates)
    assert found.tolist() == [0, 6, 7]


@pytest.mark.parametrize(
    ("build", "arrays"),
    [
        (partial(tensor.GatherOp, axis=0), (np.zeros(3), np.array([3]))),
        (partial(tensor.GatherOp, axis=0), (np.zeros(3), np.array([-4]))),
        (partial(tensor.SliceOp, starts=[S], sizes=[2]), (np.zeros(3),)),
        (partial(tensor.ReshapeOp, dims=[S]), (np.zeros(3),)),
        (partial(tensor.SplitOp, axis=0, sizes=[S]), (np.zeros(3),)),
        (partial(tensor.SplitOp, axis=0, sizes=[S - 3, 4]), (np.zeros(3),)),
        (partial(tensor.PadOp, begin=[S - 3], end=[0]), (np.zeros(3),)),
    ],
)
def test_what_does_not_fit_is_an_error(build: Any, arrays: tuple[NDArray[Any], ...]) -> None:
    with pytest.raises(InterpretError, match="'core"):
        run(build, *arrays, s=2)


@pytest.mark.parametrize("shape", [(2, 0), (0, 0)])
def test_there_is_no_best_of_nothing(shape: tuple[int, ...]) -> None:
    expected = "'core.arg_reduce': the max of dimension 1, which has no elements"
    with pytest.raises(InterpretError, match=expected):
        run(partial(reduce.ArgReduceOp, "max", axis=1), np.zeros(shape))


def test_averages_of_nothing() -> None:
    window: dict[str, Any] = {
        "kernel": [1],
        "strides": [2],
        "dilations": [1],
        "pads_begin": [0],
        "pads_end": [3],
    }
    x = np.array([[[6, 1, 2]]])
    for count_pads, overhang, last in ((False, 0, np.nan), (True, 0, 0.0), (True, 3, np.nan)):
        options = {**window, "count_pads": count_pads, "overhang": [overhang]}
        build = partial(reduce.PoolOp, "average", **options)
        assert run(build, x).tolist() == [[[6, 2, 0]]]
        np.testing.assert_array_equal(run(build, x.astype(np.float32)), [[[6, 2, last]]])


def test_windows_far_larger_than_their_image() -> None:
    window: dict[str, Any] = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0]}
    build = partial(reduce.PoolOp, "sum", **window, kernel=[5000, 5000], pads_end=[4998, 4998])
    with pytest.raises(InterpretError, match=r"windows of \[5000, 5000\] over an image of \[2, 2"):
        run(build, np.ones((1, 1, 2, 2)))
    build = partial(reduce.PoolOp, "sum", **window, kernel=[400, 600], pads_end=[398, 598])
    assert run(build, np.ones((1, 1, 2, 2))).tolist() == [[[[4]]]]
    window["strides"] = [1 << 20, 1]
    build = partial(reduce.PoolOp, "max", **window, kernel=[1 << 17, 2], pads_end=[0, 0])
    assert run(build, np.ones((1, 1, 2, 2))).shape == (1, 1, 0, 1)


def test_missing_symbol_is_named() -> None:
    with pytest.raises(InterpretError, match="the symbol 's' has no value"):
        run(partial(tensor.ReshapeOp, dims=[S]), np.zeros(3))


def test_matrix_products_are_sums_in_order() -> None:
    """The same for every shape: a large product contains the small one bit by bit."""
    random = np.random.default_rng(0)
    a, b = random.standard_normal((70, 300)), random.standard_normal((300, 90))
    whole = matrix_product(a, b)
    np.testing.assert_array_equal(matrix_product(a[:3], b[:, :5]), whole[:3, :5])
    np.testing.assert_array_equal(matrix_product(a[None], b)[0], whole)
    total = 0.0
    for left, right in zip(a[7], b[:, 11], strict=True):
        total += left * right
    assert whole[7, 11] == total


def test_sums_do_not_depend_on_where_elements_lie() -> None:
    """Of broadcast and transposed values they are those of the same numbers in order."""
    rng = np.random.default_rng(0)
    row, matrix = rng.standard_normal((1, 3, 37)), rng.standard_normal((37, 29)).T
    spread = np.broadcast_to(row, (5, 3, 37)).transpose(1, 0, 2)

    def total(x: SSAValue) -> Operation:
        return reduce.ReduceOp("sum", x, list(range(rank_of(x))))

    def softmax(x: SSAValue) -> Operation:
        return reduce.SoftmaxOp(x, rank_of(x) - 1)

    def layer_norm(x: SSAValue, scale: SSAValue) -> Operation:
        return linear.LayerNormOp(x, scale, None, epsilon=1e-3, axis=0)

    programs: list[tuple[Program, int]] = [(total, 1), (softmax, 1), (layer_norm, 2)]
    for x in (spread, matrix):
        for program, count in programs:
            in_order = [np.ascontiguousarray(x)] * count
            assert run(program, *[x] * count).tobytes() == run(program, *in_order).tobytes()
