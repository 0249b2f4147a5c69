"""Every core op: the interpreter and onnxruntime on the exported model agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core import constant, elementwise, linear, tensor
from lowerdeck.dialects.core import reduce as reductions
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp, YieldOp
from lowerdeck.dialects.core.enums import Predicate, ScatterReduction
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.quantize import DequantizeOp, RequantizeOp
from lowerdeck.dialects.core.types import element_of, f16, f32, f64, i1, i8, i32, i64, ui8
from lowerdeck.dialects.core.types import tensor as tensor_type
from lowerdeck.dialects.dims import Expr, ExprLike, maximum, minimum
from lowerdeck.dialects.interpret import run_module
from lowerdeck.exporters.errors import ExportError
from lowerdeck.exporters.onnx import export_onnx, to_model

ort = cast(Any, onnxruntime)
check_model = cast(Any, onnx.checker).check_model

Dims = Sequence[ExprLike]


Program = (
    Callable[[], Any]
    | Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any, Any], Any]
)
"""Builds ops on values; returns the values or the op that are the results."""

n, h = Expr.symbol("n"), Expr.symbol("h")
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> NDArray[Any]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def integers(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int64) -> NDArray[Any]:
    return RANDOM.integers(low, high, shape).astype(dtype)


def module_of(
    inputs: Mapping[str, NDArray[Any]], program: Program, dims: Mapping[str, Dims] | None = None
) -> ModuleOp:
    """`main` with the inputs as arguments (of symbolic dimensions where given)."""
    types: list[Attribute] = [
        tensor_type(element_of(array.dtype), (dims or {}).get(name, array.shape))
        for name, array in inputs.items()
    ]
    block = Block(arg_types=types)
    with_results = ops_of(block, program)
    names = named(inputs)
    results = [f"result:{k}" for k in range(len(with_results))]
    result_names = named(results)
    block.add_op(ReturnOp(*with_results))
    function = FuncOp(
        "main",
        (types, [value.type for value in with_results]),
        Region(block),
        arg_attrs=names,
        res_attrs=result_names,
    )
    module = ModuleOp([function])
    module.verify()
    return module


def ops_of(block: Block, program: Program) -> tuple[SSAValue, ...]:
    """Run `program` on the block's arguments; ops that it builds land in the block in order."""
    with ImplicitBuilder(block):
        results = cast(Any, program)(*block.args)
    if isinstance(results, SSAValue):
        return (cast(SSAValue, results),)
    if isinstance(results, list | tuple):
        return tuple(cast(Sequence[SSAValue], results))
    return tuple(results.results)


def region(arg_types: Sequence[Attribute], program: Program) -> Region:
    block = Block(arg_types=arg_types)
    values = ops_of(block, program)
    with ImplicitBuilder(block):
        YieldOp(values)
    return Region(block)


def check(
    inputs: Mapping[str, NDArray[Any]],
    program: Program,
    dims: Mapping[str, Dims] | None = None,
    tolerance: float = 1e-5,
) -> dict[str, Any]:
    module = module_of(inputs, program, dims)
    expected = run_module(module, inputs)
    model = to_model(module)
    check_model(model, full_check=True)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == list(inputs)
    found = dict(zip(expected, session.run(None, dict(inputs)), strict=True))
    for name, value in expected.items():
        assert isinstance(value, np.ndarray)
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found[name], value)
    return expected


@pytest.mark.parametrize("op", elementwise.FLOAT_UNARY, ids=lambda op: op.name)
def test_float_function(op: Any) -> None:
    x = floats(3, 4) if op is not elementwise.AcoshOp else floats(3, 4) ** 2 + 1
    if op in (elementwise.AsinOp, elementwise.AcosOp, elementwise.AtanhOp):
        x = np.tanh(x)
    check({"x": x}, op)


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.5, -2.5, 1e30], np.float32)


@pytest.mark.parametrize(
    "op",
    [
        elementwise.NegOp,
        elementwise.AbsOp,
        elementwise.SqrtOp,
        elementwise.ExpOp,
        elementwise.LogOp,
        elementwise.RoundOp,
        elementwise.FloorOp,
        elementwise.SigmoidOp,
        elementwise.TanhOp,
    ],
)
def test_special_values(op: Any) -> None:
    check({"x": SPECIAL}, op)


@pytest.mark.parametrize("op", [elementwise.NegOp, elementwise.AbsOp, elementwise.SignOp])
def test_integer_unary(op: Any) -> None:
    check({"x": integers(20)}, op)


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.uint8])
def test_not(dtype: Any) -> None:
    check({"x": integers(8, low=0, high=2, dtype=dtype)}, elementwise.NotOp)


ARITHMETIC = [op for op in elementwise.BINARY if not issubclass(op, elementwise.BitwiseOp)]


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.name)
def test_float_binary(op: Any) -> None:
    lhs = floats(2, 1, 4) if op is not elementwise.PowOp else np.abs(floats(2, 1, 4))
    check({"x": lhs, "y": floats(3, 1)}, op)


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integer_binary(op: Any, dtype: Any) -> None:
    # Powers of negative exponent are ONNX's to define.
    low = 0 if op is elementwise.PowOp else -6
    x, y = integers(9, 1, dtype=dtype), integers(11, low=low, high=6, dtype=dtype)
    check({"x": x, "y": y}, op)


@pytest.mark.parametrize(
    "op", [elementwise.AddOp, elementwise.MulOp, elementwise.MaxOp, elementwise.MinOp]
)
def test_arithmetic_of_truth_values(op: Any) -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    check({"x": x, "y": y}, op)


@pytest.mark.parametrize("op", [elementwise.AndOp, elementwise.OrOp, elementwise.XorOp])
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.uint8])
def test_bitwise(op: Any, dtype: Any) -> None:
    high = 2 if dtype is np.bool_ else 100
    x, y = (integers(12, low=0, high=high, dtype=dtype) for _ in range(2))
    check({"x": x, "y": y}, op)


@pytest.mark.parametrize("op", [elementwise.ShlOp, elementwise.ShrOp])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.uint32, np.uint64])
def test_shift(op: Any, dtype: Any) -> None:
    x = integers(9, 1, low=0, high=120, dtype=dtype)
    check({"x": x, "y": np.array([0, 1, 5, 7, 8, 31, 32, 64, 70], dtype)}, op)


@pytest.mark.parametrize("predicate", list(Predicate))
def test_compare(predicate: str) -> None:
    x, y = SPECIAL.reshape(-1, 1), SPECIAL
    check({"x": x, "y": y}, lambda x, y: elementwise.CompareOp(predicate, x, y))
    b = np.array([False, True])
    check({"x": b[:, None], "y": b}, lambda x, y: elementwise.CompareOp(predicate, x, y))


def test_select() -> None:
    check(
        {"c": integers(3, 1, low=0, high=2, dtype=np.bool_), "x": floats(4), "y": floats(3, 4)},
        elementwise.SelectOp,
    )


def test_bounds() -> None:
    def program(x: SSAValue) -> Any:
        zero, six = constant.scalar(0.0, f32).result, constant.scalar(6.0, f32).result
        positive = elementwise.MaxOp(x, zero).result
        crossed = elementwise.MinOp(elementwise.MaxOp(x, six).result, zero).result
        return [positive, elementwise.MinOp(positive, six).result, crossed]

    check({"x": np.append(SPECIAL, np.float32(7))}, program)


@pytest.mark.parametrize("to", [f64, f16, i64, i8, ui8, i1])
def test_cast(to: Attribute) -> None:
    x = np.array([0, 1, 2.5, 3.99, 100.2, 0.3], np.float32)
    check({"x": x}, lambda x: elementwise.CastOp(x, to))
    check({"x": integers(9, low=-300, high=300)}, lambda x: elementwise.CastOp(x, to))


def test_constant_and_reuse() -> None:
    def program(x: SSAValue) -> Any:
        w = ConstantOp.of(floats(4)).result
        return [elementwise.AddOp(x, w).result, w, x, x]

    check({"x": floats(3, 4)}, program)


def test_symbols_from_shapes() -> None:
    def program(x: SSAValue, y: SSAValue) -> Any:
        values = [n * 2 + h, (h - n) // 2, (n - h) % 3, minimum(n, h), maximum(n, 3), n * h, 7]
        return [
            constant.FromDimsOp(values).result,
            constant.FromDimsOp([n], []).result,
            constant.IotaOp([n, h, 2], 1).result,
            tensor.ReshapeOp(x, [h, n * 2]).result,
            tensor.BroadcastOp(y, [n, h, 5]).result,
        ]

    dims = {"x": [n, h, 2], "y": [h, 1]}
    for size in (3, 4, 6):
        check({"x": floats(size, 5, 2), "y": floats(5, 1)}, program, dims)


def test_bind_symbols() -> None:
    def program(x: SSAValue, sizes: SSAValue) -> Any:
        constant.BindSymbolsOp(sizes, ["a", "b"])
        a, b = Expr.symbol("a"), Expr.symbol("b")
        return [
            tensor.SliceOp(x, [a, 0], [b, 4]).result,
            tensor.SliceOp(x, [a + b - 1, 0], [b, 4], [-1, 1]).result,
            tensor.SliceOp(x, [b - 1, 0], [b, 4], [-1, 1]).result,
        ]

    for sizes in ([0, 6], [2, 3], [6, 0]):
        check({"x": floats(6, 4), "s": np.array(sizes, np.int32)}, program)


def test_transpose() -> None:
    check({"x": floats(2, 3, 4)}, lambda x: tensor.TransposeOp(x, [2, 0, 1]))


@pytest.mark.parametrize(
    ("starts", "sizes", "steps"),
    [
        ([1, 0], [2, 4], [1, 1]),
        ([4, 3], [5, 2], [-1, -2]),
        ([4, 0], [0, 4], [-2, 1]),
        ([0, 1], [3, 2], [2, 2]),
    ],
)
def test_slice(starts: list[int], sizes: list[int], steps: list[int]) -> None:
    check({"x": floats(5, 4)}, lambda x: tensor.SliceOp(x, starts, sizes, steps))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    x = floats(4, 5)
    check({"x": x}, lambda x: tensor.PadOp(x, [1, 3], [2, 0], mode=mode))
    check({"x": x}, lambda x: tensor.PadOp(x, [n - 3, 0], [0, n - 4], mode=mode), {"x": [n, 5]})


def test_pad_value() -> None:
    def program(x: SSAValue) -> Any:
        return tensor.PadOp(x, [1, 0], [0, 2], constant.scalar(-np.inf, f32).result)

    check({"x": floats(2, 3)}, program)


def test_concat() -> None:
    check({"x": floats(2, 3), "y": floats(2, 1)}, lambda x, y: tensor.ConcatOp([x, y, x], 1))


def test_split() -> None:
    x = floats(2, 7)
    check({"x": x}, lambda x: tensor.SplitOp(x, 1, [2, 0, 5]).results)
    check({"x": x}, lambda x: tensor.SplitOp(x, 0, [2]).results)
    check({"x": x}, lambda x: tensor.SplitOp(x, 1, [3, n - 3]).results, {"x": [2, n]})
    check({"x": x}, lambda x: tensor.SplitOp(x, 1, [1, 6]).results[1])


INDEX = np.array([[0, -1, 2], [3, 1, -4]])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_gather(dtype: Any) -> None:
    inputs = {"x": floats(3, 4, 2), "i": INDEX.astype(dtype)}
    check(inputs, lambda x, i: tensor.GatherOp(x, i, 1))


def test_gather_elements() -> None:
    check({"x": floats(2, 4), "i": INDEX}, lambda x, i: tensor.GatherElementsOp(x, i, 1))
    check({"x": floats(4, 5), "i": INDEX}, lambda x, i: tensor.GatherElementsOp(x, i, 0))


def test_gather_nd() -> None:
    x = floats(2, 3, 4)
    check({"x": x, "i": integers(5, 2, low=-2, high=2)}, tensor.GatherNdOp)
    check({"x": x, "i": integers(2, 5, 1, low=-2, high=2)}, lambda x, i: tensor.GatherNdOp(x, i, 1))
    check({"x": x, "i": integers(2, 3, 1, low=-2, high=2)}, lambda x, i: tensor.GatherNdOp(x, i, 2))


@pytest.mark.parametrize("reduction", list(ScatterReduction))
def test_scatter(reduction: str) -> None:
    x = floats(4, 5)
    index = np.array([[0, 1, 3], [2, 0, -2]])
    check(
        {"x": x, "i": index, "u": floats(2, 3)},
        lambda x, i, u: tensor.ScatterElementsOp(x, i, u, 0, reduction),
    )
    rows = np.array([[0], [2]]) if reduction == "none" else np.array([[1], [1]])
    check(
        {"x": x, "i": rows, "u": floats(2, 5)},
        lambda x, i, u: tensor.ScatterNdOp(x, i, u, reduction),
    )
    points = np.array([[0, 1], [2, -1]])
    check(
        {"x": x, "i": points, "u": floats(2)},
        lambda x, i, u: tensor.ScatterNdOp(x, i, u, reduction),
    )


@pytest.mark.parametrize("largest", [True, False])
def test_top_k(largest: bool) -> None:
    x = integers(3, 7, low=0, high=4).astype(np.float32)
    check({"x": x}, lambda x: tensor.TopKOp(x, 4, 1, largest))
    check({"x": x}, lambda x: tensor.TopKOp(x, n - 1, 0, largest), {"x": [n, 7]})


def test_nonzero() -> None:
    def program(x: SSAValue) -> Any:
        count = tensor.CountNonzeroOp(x).result
        constant.BindSymbolsOp(count, ["count"])
        return [tensor.NonzeroOp(x, Expr.symbol("count")).result, count]

    check({"x": integers(3, 4, low=0, high=2).astype(np.float32)}, program)
    check({"x": np.zeros((2, 3), np.int32)}, program)


CONVS = [
    {"x": (2, 4, 9, 8), "w": (6, 4, 3, 3), "pads": ([1, 0], [1, 2])},
    {"x": (1, 4, 9, 8), "w": (6, 2, 3, 2), "groups": 2, "strides": [2, 1], "dilations": [1, 2]},
    {"x": (2, 6, 9), "w": (6, 1, 4), "groups": 6, "pads": ([3], [0])},
    {"x": (1, 2, 4, 5, 6), "w": (3, 2, 2, 3, 1), "pads": ([0, 1, 0], [1, 1, 0])},
]


@pytest.mark.parametrize("case", CONVS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_conv(case: dict[str, Any], symbolic: bool) -> None:
    spatial = len(case["x"]) - 2
    begin, end = case.get("pads", ([0] * spatial, [0] * spatial))
    size, batch = Expr.symbol("s"), case["x"][2]

    def program(x: SSAValue, w: SSAValue, b: SSAValue) -> Any:
        # The same padding, known only at run time.
        shift = size - batch if symbolic else 0
        return linear.ConvOp(
            x,
            w,
            b,
            strides=case.get("strides", [1] * spatial),
            dilations=case.get("dilations", [1] * spatial),
            pads_begin=[shift + p for p in begin],
            pads_end=end,
            groups=case.get("groups", 1),
        )

    inputs = {"x": floats(*case["x"]), "w": floats(*case["w"]), "b": floats(case["w"][0])}
    dims = {"x": [*case["x"][:2], size, *case["x"][3:]]} if symbolic else None
    check(inputs, program, dims, 1e-4)


@pytest.mark.parametrize(
    "case",
    [
        {"x": (1, 4, 5, 6), "w": (4, 3, 3, 2), "pads": ([1, 0], [0, 1])},
        {"x": (2, 4, 5, 6), "w": (4, 1, 3, 3), "groups": 2, "strides": [2, 3], "extra": [1, 0]},
        {"x": (1, 2, 5), "w": (2, 3, 3), "dilations": [2], "strides": [2]},
    ],
)
def test_conv_transpose(case: dict[str, Any]) -> None:
    spatial = len(case["x"]) - 2
    begin, end = case.get("pads", ([0] * spatial, [0] * spatial))
    groups = case.get("groups", 1)

    def program(x: SSAValue, w: SSAValue, b: SSAValue) -> Any:
        return linear.ConvTransposeOp(
            x,
            w,
            b,
            strides=case.get("strides", [1] * spatial),
            dilations=case.get("dilations", [1] * spatial),
            pads_begin=begin,
            pads_end=end,
            output_padding=case.get("extra", [0] * spatial),
            groups=groups,
        )

    bias = floats(case["w"][1] * groups)
    check({"x": floats(*case["x"]), "w": floats(*case["w"]), "b": bias}, program, None, 1e-4)


def test_conv_transpose_larger_than_natural() -> None:
    """Negative padding adds zeros."""

    def program(x: SSAValue, w: SSAValue) -> Any:
        return linear.ConvTransposeOp(
            x, w, strides=[2], dilations=[1], pads_begin=[-1], pads_end=[-2], output_padding=[0]
        )

    check({"x": floats(1, 2, 4), "w": floats(2, 3, 3)}, program)


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [((3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((60, 40), (40, 50)), ((2, 40, 7), (2, 7, 60))],
)
def test_matmul(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    check({"x": floats(*lhs), "y": floats(*rhs)}, linear.MatmulOp, None, 1e-4)
    check({"x": integers(*lhs), "y": integers(*rhs)}, linear.MatmulOp)


@pytest.mark.parametrize("axis", [1, 2])
def test_batch_norm(axis: int) -> None:
    x = floats(2, 3, 4)
    c = x.shape[axis]
    inputs = {"x": x, "s": floats(c), "b": floats(c), "m": floats(c), "v": floats(c) ** 2}
    check(inputs, lambda x, s, b, m, v: linear.BatchNormOp(x, s, b, m, v, 1e-3, axis), None, 1e-4)


def test_layer_norm() -> None:
    x = floats(2, 3, 4)
    check(
        {"x": x, "s": floats(3, 4), "b": floats(3, 4)},
        lambda x, s, b: linear.LayerNormOp(x, s, b, 1e-5, 1),
    )
    check(
        {"x": x, "s": floats(3, 1), "b": floats(4)},
        lambda x, s, b: linear.LayerNormOp(x, s, b, 1e-5, 1),
    )
    check({"x": x, "s": floats(4)}, lambda x, s: linear.LayerNormOp(x, s, None, 1e-5, 2))
    for is_late in (False, True):
        check(
            {"x": x, "s": floats(4)},
            lambda x, s, is_late=is_late: linear.LayerNormOp(
                x, s, None, 1e-1, 2, uncentered=True, late_epsilon=is_late
            ),
        )


def test_channel_shuffle() -> None:
    check({"x": floats(2, 6, 3)}, lambda x: tensor.ChannelShuffleOp(x, 2))
    n = Expr.symbol("n")
    check({"x": floats(2, 6, 3)}, lambda x: tensor.ChannelShuffleOp(x, 3), {"x": [n, 6, 3]})


def test_attention() -> None:
    q, k, v = floats(2, 4, 3, 5), floats(2, 6, 3, 5), floats(2, 6, 3, 2)
    check({"q": q, "k": k, "v": v}, lambda q, k, v: AttentionOp(q, k, v, scale=0.5))
    check(
        {"q": q, "k": k, "v": v, "m": floats(3, 1, 6)},
        lambda q, k, v, m: AttentionOp(q, k, v, m, scale=2.0),
    )
    check(
        {"q": q, "k": k, "v": v, "m": floats(3, 1, 6), "b": floats(4, 6) > -0.5},
        lambda q, k, v, m, b: AttentionOp(q, k, v, m, keep=b, fill=-1e9, scale=2.0),
    )
    check(
        {"q": q, "k": k, "v": v, "m": floats(3, 1, 6), "f": floats(4, 6)},
        lambda q, k, v, m, f: AttentionOp(q, k, v, m, factor=f, scale=2.0),
    )
    kept = floats(4, 6) > -0.5
    kept[1] = False
    check(
        {"q": q, "k": k, "v": v, "b": kept},
        lambda q, k, v, b: AttentionOp(q, k, v, keep=b, fill=-np.inf, zero_nan=True),
    )
    check(
        {"q": q, "k": k, "v": v, "b": kept},
        lambda q, k, v, b: AttentionOp(q, k, v, keep=b, fill=-1e9, zero_hidden=True),
    )
    check(
        {"q": q[0], "k": floats(4, 3, 5)},
        lambda q, k: AttentionOp(q, k, k),
        {"q": [Expr.symbol("t"), 3, 5], "k": [Expr.symbol("t"), 3, 5]},
    )


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [[], [1], [0, 2]])
@pytest.mark.parametrize("keep", [True, False])
def test_reduce(kind: str, axes: list[int], keep: bool) -> None:
    def program(x: SSAValue) -> Any:
        return reductions.ReduceOp(kind, x, axes, keep)

    check({"x": floats(2, 3, 4)}, program)
    check({"x": integers(2, 3, 4)}, program)
    if kind in ("max", "min"):
        check({"x": integers(2, 3, 4, low=0, high=2, dtype=np.bool_)}, program)


@pytest.mark.parametrize(("kind", "count"), [("sum", 30), ("prod", 5)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_reduce_wraps(kind: str, count: int, dtype: Any) -> None:
    x = integers(count, 3, low=1, high=100, dtype=dtype)
    check({"x": x}, lambda x: reductions.ReduceOp(kind, x, [0]))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("last", [True, False])
def test_arg_reduce(kind: str, last: bool) -> None:
    x = integers(4, 9, low=0, high=4).astype(np.float32)
    check({"x": x}, lambda x: reductions.ArgReduceOp(kind, x, 1, last, last))


def test_softmax() -> None:
    check({"x": floats(2, 5, 3) * 30}, lambda x: reductions.SoftmaxOp(x, 1))
    check({"x": floats(2, 5, 3) * 30}, lambda x: reductions.SoftmaxOp(x, 1, log=True))


@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_cumulative(kind: str, exclusive: bool, reverse: bool) -> None:
    for axis in range(3):
        check(
            {"x": floats(2, 5, 3)},
            lambda x, k=axis: reductions.CumulativeOp(kind, x, k, exclusive, reverse),
        )


POOLS: list[dict[str, Any]] = [
    {},
    {"pads_begin": [1, 0], "pads_end": [1, 1]},
    {"pads_begin": [1, 1], "pads_end": [2, 2], "overhang": [1, 2]},
    {"kernel": [2, 3], "strides": [2, 3], "dilations": [2, 1]},
    {"kernel": [7, 6]},
    {"kernel": [n, 6]},
    {"pads_begin": [n - 6, 0]},
]


@pytest.mark.parametrize("kind", ["max", "sum", "average"])
@pytest.mark.parametrize("count_pads", [True, False])
@pytest.mark.parametrize("case", POOLS)
def test_pool(kind: str, count_pads: bool, case: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {
        "kernel": [3, 3],
        "strides": [1, 2],
        "dilations": [1, 1],
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "count_pads": count_pads,
    }
    arguments.update(case)
    check(
        {"x": floats(2, 3, 7, 6)},
        lambda x: reductions.PoolOp(kind, x, **arguments),
        {"x": [2, 3, n, 6]},
    )


def test_averages_are_single_nodes() -> None:
    for count_pads in (True, False):

        def program(x: SSAValue, counted: bool = count_pads) -> Any:
            arguments: dict[str, Any] = {
                "kernel": [3, 3],
                "strides": [1, 2],
                "dilations": [1, 1],
                "pads_begin": [1, 0],
                "pads_end": [1, 1],
            }
            return reductions.PoolOp("average", x, count_pads=counted, **arguments)

        inputs = {"x": floats(2, 3, 7, 6)}
        check(inputs, program)
        nodes = to_model(module_of(inputs, program)).graph.node
        assert [node.op_type for node in nodes] == ["AveragePool"]


def test_if_captures_and_yields_outer_values() -> None:
    def program(c: SSAValue, x: SSAValue) -> Any:
        double = elementwise.AddOp(x, x).result
        then = region([], lambda: [elementwise.MulOp(double, x).result, x])
        other = region([], lambda: [double, double])
        return IfOp(c, then, other)

    for flag in (True, False):
        check({"c": np.array(flag), "x": floats(3)}, program)


def test_loop_with_condition_carried_values_and_scans() -> None:
    element = tensor_type(f32, [3])

    def program(trips: SSAValue, x: SSAValue) -> Any:
        limit = constant.scalar(4.0, f32).result
        yes = ConstantOp.of(np.array(True)).result

        def body(i: SSAValue, value: SSAValue, other: SSAValue) -> Any:
            step = elementwise.CastOp(i, f32).result
            following = elementwise.AddOp(value, step).result
            largest = reductions.ReduceOp("max", following, [0]).result
            again = elementwise.CompareOp("lt", largest, limit).result
            # The two carried values swap: a parallel assignment.
            return [again, other, following, following, x]

        loop = LoopOp(
            trips, yes, [x, x], region([tensor_type(i64, []), element, element], body), count="t"
        )
        shape = constant.FromDimsOp([Expr.symbol("t")]).result
        return [*loop.results, shape]

    for trips in (0, 1, 3, 100):
        check({"trips": np.array(trips), "x": np.array([0, -1, 0.5], np.float32)}, program)


def test_loop_iteration_symbol_without_scans() -> None:
    def program(trips: SSAValue, x: SSAValue) -> Any:
        element = tensor_type(f32, [1])
        i = Expr.symbol("i")

        def body(_: SSAValue, total: SSAValue) -> Any:
            part = tensor.SliceOp(x, [i], [1]).result
            return [elementwise.AddOp(total, part).result]

        zero = ConstantOp.of(np.zeros(1, np.float32)).result
        loop = LoopOp(
            trips,
            None,
            [zero],
            region([tensor_type(i64, []), element], body),
            iteration="i",
            count="made",
        )
        return [*loop.results, constant.FromDimsOp([Expr.symbol("made")]).result]

    check({"trips": np.array(4), "x": floats(6)}, program)


def test_if_of_different_sizes() -> None:
    def program(c: SSAValue, x: SSAValue, y: SSAValue) -> Any:
        both = tensor.ConcatOp([x, y], 0).result
        then = region([], lambda: [both, y])
        other = region([], lambda: [x, elementwise.NegOp(y).result])
        results = IfOp(c, then, other, result_symbols=["r"]).results
        size = constant.FromDimsOp([Expr.symbol("r") * 2]).result
        return [*results, size, tensor.ConcatOp([results[0], results[0]], 0).result]

    for flag in (True, False):
        inputs = {"c": np.array(flag), "x": floats(3, 2), "y": floats(1, 2)}
        check(inputs, program)
        check(inputs, program, {"x": [n, 2]})


def test_loop_with_changing_sizes() -> None:
    """One value grows by another, whose place it takes; a third is cut until nothing is left."""
    s, u, v = (Expr.symbol(name) for name in "suv")

    def program(trips: SSAValue, x: SSAValue, y: SSAValue) -> Any:
        def body(_: SSAValue, a: SSAValue, b: SSAValue, c: SSAValue) -> Any:
            return [b, tensor.ConcatOp([a, b], 0).result, tensor.SliceOp(c, [0], [v // 2]).result]

        args = [tensor_type(i64, []), *(tensor_type(f32, [size]) for size in (s, u, v))]
        names: dict[str, Any] = {
            "carried_symbols": ["s", "u", "v"],
            "result_symbols": ["p", "q", "r"],
        }
        loop = LoopOp(trips, None, [x, y, x], region(args, body), **names)
        sizes = constant.FromDimsOp([Expr.symbol(name) for name in "pqr"]).result
        return [*loop.results, sizes, elementwise.AddOp(loop.results[0], y).result]

    for trips in (0, 1, 4):
        inputs = {"trips": np.array(trips), "x": floats(5), "y": floats(1)}
        check(inputs, program)
        check(inputs, program, {"x": [n]})


def test_kernel_is_inlined() -> None:
    def program(x: SSAValue) -> Any:
        body = region([x.type], lambda a: [elementwise.ExpOp(a).result])
        return KernelOp("k", [x], body)

    check({"x": floats(3)}, program)


def test_every_op_at_fault_is_listed() -> None:
    def program(x: SSAValue, w: SSAValue) -> Any:
        conv = linear.ConvOp(x, w, strides=[1], dilations=[1], pads_begin=[0], pads_end=[0]).result
        return linear.ConvOp(conv, w, strides=[1], dilations=[1], pads_begin=[0], pads_end=[0])

    module = module_of({"x": integers(1, 1, 9), "w": integers(1, 1, 3)}, program)
    with pytest.raises(ExportError) as caught:
        to_model(module)
    assert str(caught.value).count("core.conv") == 2


def test_file_appears_whole(tmp_path: Path) -> None:
    module = module_of({"x": floats(3)}, elementwise.ExpOp)
    export_onnx(module, tmp_path / "out.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]
    check_model(str(tmp_path / "out.onnx"))


def test_large_weights_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowerdeck.exporters.onnx._INLINE_LIMIT", 100)
    weight = floats(64)

    def program(x: SSAValue) -> Any:
        return elementwise.AddOp(x, ConstantOp.of(weight).result)

    x = floats(64)
    export_onnx(module_of({"x": x}, program), tmp_path / "out.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.onnx", "out.onnx.data"]
    session = ort.InferenceSession(str(tmp_path / "out.onnx"))
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x + weight)


DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def test_trained_network_gives_its_recorded_outputs(tmp_path: Path) -> None:
    module, _ = import_and_lower(str(DIGITS / "digits.onnx"), "optimized", CompileOptions())
    export_onnx(module, tmp_path / "digits.onnx")
    images, recorded = np.load(DIGITS / "held_back.npz")["images"], np.load(DIGITS / "digits.npz")
    session = ort.InferenceSession(str(tmp_path / "digits.onnx"))
    assert [port.name for port in session.get_inputs()] == ["image"]
    found = session.run(["logits"], {"image": images})[0]
    np.testing.assert_allclose(found, recorded["logits"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rounding", ["double", "single", "real", "even"])
def test_requantize(rounding: str) -> None:
    """Halves, extremes, and every shift that a factor has."""
    x = np.concatenate([integers(4, 40, low=-(2**20), high=2**20), integers(4, 20)], 1)
    x[0, :6] = [2**31 - 1, -(2**31), 0, -1, 1, 2**30]
    x = x.astype(np.int32)
    real = rounding in ("real", "even")
    multiplier = np.array([2**30, 2**31 - 1, 1518500250, 2**30 + 1]).reshape(4, 1)
    exponent = np.array([-1, -9, 0, -20 if rounding == "single" else 3], np.int32).reshape(4, 1)
    factor = multiplier * 2.0**-40 if real else multiplier.astype(np.int32)
    if rounding == "even":
        # Halves: the first row by a power of two.
        factor = factor.astype(np.float32)
        x[0, 6:20] = np.arange(-7, 7) * 512
    inputs = {"x": x, "m": factor} if real else {"x": x, "m": factor, "e": exponent}

    def program(x: SSAValue, m: SSAValue, e: SSAValue | None = None) -> Operation:
        return RequantizeOp(rounding, x, m, e, zero=-3, low=-128, high=127, to=i8)

    found = check(inputs, program)
    assert len({*found["result:0"].ravel().tolist()}) > 10


@pytest.mark.parametrize("computed", [False, True])
def test_halves_of_bytes(computed: bool) -> None:
    """Of constants they are numbers of four bits of ONNX; with an odd size and a short block."""
    codes = integers(3, 4, low=0, high=256, dtype=np.uint8)
    scale = RANDOM.standard_normal((3, 3)).astype(ml_dtypes.bfloat16)
    zero = integers(3, 3, low=0, high=16, dtype=np.uint8)

    def program(x: SSAValue, q: SSAValue | None = None) -> tuple[SSAValue, SSAValue]:
        q = ConstantOp.of(codes).result if q is None else q
        s, z = ConstantOp.of(scale).result, ConstantOp.of(zero).result
        values = [DequantizeOp(q, s, each, axis=1, size=7, block=3).result for each in (None, z)]
        return elementwise.MulOp(values[0], x).result, values[1]

    inputs: dict[str, NDArray[Any]] = {"x": RANDOM.standard_normal((3, 7)).astype(np.float32)}
    check({**inputs, "q": codes} if computed else inputs, program)


def test_pools_of_bytes() -> None:
    """Sums that are widened before, and maxima, also of padding alone."""

    def program(x: SSAValue) -> tuple[SSAValue, SSAValue]:
        wide = elementwise.CastOp(x, i32).result
        sums, most = (
            reductions.PoolOp(
                kind,
                value,
                kernel=[3, 2],
                strides=[2, 1],
                dilations=[1, 1],
                pads_begin=[begin, 0],
                pads_end=[1, 1],
            ).result
            for kind, value, begin in (("sum", wide, 1), ("max", x, 2))
        )
        return sums, most

    check({"x": integers(1, 3, 9, 6, low=-128, high=127, dtype=np.int8)}, program)
