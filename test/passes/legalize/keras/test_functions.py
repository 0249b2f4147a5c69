"""Functions of `keras.ops` beside numpy, and layers with quantized variables beside their sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType, f32
from xdsl.ir import Block, Region

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import element_of, tensor
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.keras.ops import Operand, op_class
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.legalize.walk import LegalizationError
from lowerdeck.passes.machinery.context import LowerdeckContext

Array = NDArray[Any]

X: Array = np.array([[1.5, -2.0, 0.25, 0.25], [-7.0, 0.0, 64.0, -0.5]], np.float32)
Y: Array = np.array([[2.0, 3.0, -0.5, 0.0], [2.0, -0.0, 0.25, 1.0]], np.float32)
ODD: Array = np.array([np.nan, np.inf, -np.inf, -0.0, 2.5], np.float32)
CUBE: Array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
BYTES: Array = np.array([[100, -128], [127, 3], [-2, 90]], np.int8)
INTS: Array = np.array([[7, -8, 5], [-1, 0, 3]], np.int32)


def called(
    name: str,
    arrays: Sequence[Array],
    config: Mapping[str, Any],
    weights: Mapping[str, Array] | None = None,
    results: int = 1,
    plain: Sequence[Any] = (),
    *,
    listed: bool = False,
) -> list[Array]:
    """What a call gives, whose arguments are arrays, maybe in a list, and then plain ones."""
    types = [tensor(element_of(np.asarray(a).dtype), np.shape(a)) for a in arrays]
    block = Block(arg_types=types)
    constants = {key: ConstantOp.of(value) for key, value in (weights or {}).items()}
    cls = op_class(name)
    assert cls is not None
    operands: list[Any] = [Operand(k) for k in range(len(arrays))]
    op = cls(
        ([operands, *plain] if listed else [*operands, *plain], {}),
        list(block.args),
        {key: constant.result for key, constant in constants.items()},
        config,
        3,
        [UnrankedTensorType(f32)] * results,
    )
    block.add_ops([*constants.values(), op, func.ReturnOp(*op.results)])
    names = [f"x{k}" for k in range(len(arrays))]
    outputs = [f"y{k}" for k in range(results)]
    main = func.FuncOp(
        "main",
        (block.arg_types, [result.type for result in op.results]),
        Region(block),
        arg_attrs=named(names),
        res_attrs=named(outputs),
    )
    module, context = ModuleOp([main]), LowerdeckContext()
    register_dialects(context)
    run_to_phase(context, module, "legal")
    found = Calls(module)(dict(zip(names, arrays, strict=True)))
    return [np.asarray(found[output]) for output in outputs]


Expected = Callable[[], Any] | Callable[[Any], Any] | Callable[[Any, Any], Any]

CASES: Sequence[tuple[str, Sequence[Array], Mapping[str, Any], Expected]] = [
    ("Arcsinh", [X], {}, np.arcsinh),
    ("Cbrt", [X], {}, np.cbrt),
    ("Exp2", [Y], {}, np.exp2),
    ("Cbrt", [np.array([3.4e38, -1e-37, 0, np.inf], np.float32)], {}, np.cbrt),
    ("Exp2", [np.array([100.0, -100.5], np.float32)], {}, np.exp2),
    ("Softsign", [INTS], {}, lambda x: (x / (1 + np.abs(x))).astype(np.float32)),
    ("Sinc", [X], {}, np.sinc),
    ("Trunc", [X], {}, np.trunc),
    ("Isneginf", [ODD], {}, np.isneginf),
    ("Isfinite", [ODD], {}, np.isfinite),
    ("Signbit", [ODD[1:]], {}, np.signbit),
    ("NanToNum", [ODD], {"nan": 3.0}, lambda x: np.nan_to_num(x, nan=3.0)),
    ("NanToNum", [ODD.astype(np.float16)], {}, np.nan_to_num),
    ("NanToNum", [ODD.astype(np.float64)], {}, np.nan_to_num),
    ("LogicalOr", [X, Y], {}, np.logical_or),
    ("LogicalNot", [X], {}, np.logical_not),
    ("FloorDivide", [INTS, np.abs(INTS) + 2], {}, np.floor_divide),
    ("Hypot", [X, Y], {}, np.hypot),
    ("Logaddexp", [X, Y], {}, np.logaddexp),
    ("Fmax", [ODD, ODD[::-1].copy()], {}, np.fmax),
    ("Heaviside", [X, Y], {}, np.heaviside),
    ("Fmod", [X, Y + 5], {}, lambda x, y: np.fmod(x, y)),
    ("DivideNoNan", [X, Y], {}, lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y))),
    ("RightShift", [INTS, np.abs(INTS) % 3], {}, np.right_shift),
    ("BitwiseNot", [INTS], {}, np.bitwise_not),
    (
        "Celu",
        [X],
        {"alpha": 0.5},
        lambda x: np.maximum(x, 0) + 0.5 * np.expm1(np.minimum(x, 0) / 0.5),
    ),
    (
        "Threshold",
        [X],
        {"threshold": 0.1, "default_value": -3.0},
        lambda x: x * (x > 0.1) - 3 * (x <= 0.1),
    ),
    ("Ptp", [X], {"axis": 1}, lambda x: np.ptp(x, 1)),
    ("CountNonzero", [X], {"axis": 0}, lambda x: np.count_nonzero(x, 0)),
    ("Nanmean", [ODD[[0, 3, 4]]], {}, np.nanmean),
    (
        "Norm",
        [CUBE],
        {"axis": 2, "keepdims": True},
        lambda x: np.linalg.norm(x, axis=2, keepdims=True),
    ),
    ("Median", [X], {"axis": 1}, lambda x: np.median(x, 1)),
    ("Median", [ODD], {}, lambda x: np.float32(np.nan)),
    ("Nanmax", [ODD], {}, np.nanmax),
    ("Sort", [X], {"axis": 1}, lambda x: np.sort(x, 1)),
    ("Argsort", [X], {"axis": 1}, lambda x: np.argsort(x, 1, kind="stable")),
    ("Cumprod", [X], {"axis": 1}, lambda x: x.cumprod(1)),
    ("Cumsum", [X], {}, lambda x: np.cumsum(x)),
    ("Flip", [CUBE], {"axis": 1}, lambda x: np.flip(x, 1)),
    ("Roll", [CUBE], {"shift": 5}, lambda x: np.roll(x, 5)),
    ("Roll", [CUBE], {"shift": 3, "axis": [0, 1]}, lambda x: np.roll(x, 3, (0, 1))),
    ("Repeat", [CUBE], {"repeats": 3, "axis": 1}, lambda x: np.repeat(x, 3, 1)),
    ("Diff", [X > 0], {}, np.diff),
    ("Diff", [X], {"n": 2, "axis": 1}, lambda x: np.diff(x, 2)),
    ("Moveaxis", [CUBE], {"source": 0, "destination": -1}, lambda x: np.moveaxis(x, 0, -1)),
    ("Append", [X, Y], {}, np.append),
    ("Tril", [CUBE], {"k": 1}, lambda x: np.tril(x, 1)),
    (
        "Diagonal",
        [CUBE],
        {"offset": -1, "axis1": 1, "axis2": 2},
        lambda x: np.diagonal(x, -1, 1, 2),
    ),
    ("Trace", [CUBE], {"offset": 1, "axis1": 1, "axis2": 2}, lambda x: np.trace(x, 1, 1, 2)),
    (
        "Tensordot",
        [CUBE, CUBE],
        {"axes": [[0, 2], [0, 2]]},
        lambda x, y: np.tensordot(x, y, ((0, 2), (0, 2))),
    ),
    ("Matmul", [BYTES.T.copy(), BYTES], {}, lambda x, y: x.astype(np.int32) @ y.astype(np.int32)),
    (
        "Einsum",
        [BYTES, BYTES],
        {"subscripts": "ab,ab->b"},
        lambda x, y: (x.astype(np.int32) * y).sum(0, dtype=np.int32),
    ),
    ("Inner", [CUBE, X], {}, np.inner),
    ("Pad", [X], {"pad_width": 1}, lambda x: np.pad(x, 1)),
    ("Pad", [X], {"pad_width": [1, 2]}, lambda x: np.pad(x, [1, 2])),
    ("Pad", [CUBE], {"pad_width": [[1, 2]]}, lambda x: np.pad(x, [[1, 2]])),
    ("Pad", [X], {"pad_width": [[1], [2]]}, lambda x: np.pad(x, [[1, 1], [2, 2]])),
    (
        "Pad",
        [X],
        {"pad_width": [[0, 1], [2, 0]], "mode": "reflect"},
        lambda x: np.pad(x, [[0, 1], [2, 0]], "reflect"),
    ),
    ("Transpose", [CUBE], {}, np.transpose),
    ("Transpose", [CUBE], {"axes": [1, -1, 0]}, lambda x: np.transpose(x, [1, 2, 0])),
    ("ExpandDims", [X], {"axis": [0, -1]}, lambda x: np.expand_dims(x, (0, -1))),
    (
        "OneHot",
        [np.array([0, 2, -1, 5])],
        {"num_classes": 3},
        lambda x: np.eye(3)[[0, 2, 0, 0]] * [[1], [1], [0], [0]],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[name for name, *_ in CASES])
def test_functions(case: tuple[str, Sequence[Array], Mapping[str, Any], Expected]) -> None:
    name, arrays, config, expected = case
    (found,) = called(name, arrays, config)
    want = np.asarray(cast("Callable[..., Any]", expected)(*arrays))
    assert (found.shape, found.dtype.kind) == (want.shape, want.dtype.kind)
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=1e-6)


MALFORMED: Sequence[tuple[str, Sequence[Array], Mapping[str, Any], str]] = [
    ("Argmax", [CUBE], {"axis": [0, 2]}, "the axis"),
    ("BitwiseAnd", [X, Y], {}, "floats"),
    ("Flip", [CUBE], {"axis": "a"}, "axes a"),
    ("Mod", [X > 0, Y > 0], {}, "truth values"),
    ("Roll", [CUBE], {"shift": 1.5}, "shifts 1.5"),
    ("Sort", [CUBE], {"axis": None}, "the axis None"),
    ("Tril", [ODD], {}, "1 dimensions"),
    ("Kron", [], {}, "no tensors"),
    ("Stack", [], {"axis": 0}, "no arguments"),
    ("Dot", [X], {"axes": 1}, "no pair"),
    ("ZerosLike", [X], {"dtype": {"class_name": "DTypePolicy", "config": {}}}, "the type {"),
    ("Tile", [X], {"repeats": [1, None]}, "repetitions"),
    ("CenterCrop", [np.zeros([1, 4, 4, 1], np.float32)], {"height": 2}, "'width' is None"),
    ("Pad", [X], {"pad_width": None}, "'pad_width' of None"),
    ("Pad", [X], {"pad_width": [[1, 2], [1, 1], [0, 0]]}, "numbers or pairs, 2"),
    ("Pad", [X], {"pad_width": [[1, 2], []]}, "numbers or pairs, 2"),
    ("Tensordot", [X, Y], {"axes": [[0]]}, "those of two tensors"),
    ("Split", [X], {"indices_or_sections": None, "axis": 0}, "places None"),
    ("Norm", [X], {"ord": "nuc", "axis": 0}, "the norm nuc along 1 axes"),
    ("Norm", [X], {"ord": "inf"}, "the norm inf along 2 axes"),
]


@pytest.mark.parametrize("case", MALFORMED, ids=[name for name, *_ in MALFORMED])
def test_malformed(case: tuple[str, Sequence[Array], Mapping[str, Any], str]) -> None:
    name, arrays, config, message = case
    with pytest.raises(LegalizationError, match=message):
        called(name, arrays, config)


def test_slices_beyond_all_elements() -> None:
    """Bounds that no index has are the end of the dimension."""
    keys = [{"slice": [-(2**63), 2**63 - 1, None]}, {"slice": [None, 1, -(2**40)]}]
    (found,) = called("GetItem", [X], {}, plain=[keys])
    np.testing.assert_array_equal(found, X[-(2**63) : 2**63 - 1, None : 1 : -(2**40)])


def test_several_results() -> None:
    mean, variance = called("Moments", [CUBE], {"axes": [0, 2]}, results=2)
    np.testing.assert_allclose(mean, CUBE.mean((0, 2)))
    np.testing.assert_allclose(variance, CUBE.var((0, 2)))
    values, places = called("TopK", [X], {"k": 2}, results=2)
    assert values.tolist() == [[1.5, 0.25], [64, 0]]
    assert places.tolist() == [[0, 2], [2, 1]]


TENSORFLOW: Sequence[tuple[str, Sequence[Array], Sequence[Any], Expected]] = [
    ("math.reduce_sum", [CUBE], [[0, -1], True], lambda x: x.sum((0, 2), keepdims=True)),
    ("math.reduce_max", [CUBE], [], np.max),
    ("math.reduce_mean", [CUBE], [1], lambda x: x.mean(1)),
    ("concat", [], [1], lambda: np.concatenate([X, Y], 1)),
    ("stack", [], [-1], lambda: np.stack([X, Y], -1)),
    ("reshape", [CUBE], [[4, -1]], lambda x: x.reshape(4, -1)),
    ("transpose", [CUBE], [], np.transpose),
    ("transpose", [CUBE], [[1, 0, 2]], lambda x: x.transpose(1, 0, 2)),
    ("expand_dims", [X], [-1], lambda x: x[..., None]),
    ("squeeze", [CUBE[:1]], [0], lambda x: x[0]),
    ("tile", [X], [[2, 1]], lambda x: np.tile(x, (2, 1))),
    ("cast", [X], ["int32"], lambda x: x.astype(np.int32)),
    ("clip_by_value", [X], [-1, 0.5], lambda x: np.clip(x, -1, 0.5)),
    ("clip_by_value", [INTS], [-1, 2], lambda x: np.clip(x, -1, 2)),
    ("nn.leaky_relu", [X], [0.25], lambda x: cast("Array", np.where(x < 0, x * 0.25, x))),
    ("linalg.matmul", [X, Y.T.copy()], [], np.matmul),
    ("math.subtract", [X], [1.5], lambda x: x - 1.5),
    ("nn.silu", [X], [], lambda x: x / (1 + np.exp(-x))),
]


@pytest.mark.parametrize("case", TENSORFLOW, ids=[name for name, *_ in TENSORFLOW])
def test_functions_of_tensorflow(
    case: tuple[str, Sequence[Array], Sequence[Any], Expected],
) -> None:
    name, arrays, plain, expected = case
    if arrays:
        (found,) = called("TFOpLambda", arrays, {"function": name}, plain=plain)
    else:  # a list of tensors
        (found,) = called("TFOpLambda", [X, Y], {"function": name}, plain=plain, listed=True)
    want = np.asarray(cast("Callable[..., Any]", expected)(*arrays))
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=1e-6)


KERNEL: Array = np.array([[100, -127, 5], [3, 0, -128], [-7, 64, 9], [1, 2, 3]], np.int8)
SCALE: Array = np.array([150.0, 90.0, 210.0], np.float32)


def test_dense_of_bytes() -> None:
    """Rows become bytes by their largest elements; sums are integers."""
    config = {"units": 3, "activation": "linear", "dtype": "int8_from_float32"}
    (found,) = called("Dense", [X], config, {"kernel": KERNEL, "kernel_scale": SCALE})
    factor = np.float32(127) / (np.abs(X).max(1, keepdims=True) + np.float32(1e-7))
    steps = cast("Array", np.round(X * factor))
    total = cast("Array", steps.astype(np.int32) @ KERNEL.astype(np.int32))
    np.testing.assert_allclose(found, total / (SCALE * factor), rtol=1e-6)


def test_dense_of_four_bits_in_groups() -> None:
    policy = {
        "class_name": "Int4DTypePolicy",
        "config": {"mode": "int4/2", "source_name": "float32"},
    }
    numbers = np.array([[7, -8, 5], [3, 0, -1], [-7, 6, 2], [1, 2, 3]], np.int8)
    padded = np.pad(numbers, [(0, 0), (0, 1)])
    packed = ((padded[:, ::2] & 15) | (padded[:, 1::2] << 4)).astype(np.int8)
    scale = np.array([[0.5, 0.25, 2.0], [1.5, 3.0, 0.125]], np.float32)
    zero = np.array([[1, -2, 0], [0, 3, -4]], np.int8)
    weights = {
        "kernel": packed,
        "kernel_scale": scale,
        "kernel_zero": zero,
        "g_idx": np.array([0, 0, 1, 1], np.float32),
    }
    config = {"units": 3, "activation": "linear", "dtype": policy}
    (found,) = called("Dense", [X], config, weights)
    groups = [0, 0, 1, 1]
    np.testing.assert_allclose(found, X @ ((numbers - zero[groups]) * scale[groups]), rtol=1e-5)


def test_embedding_of_bytes() -> None:
    config = {"input_dim": 4, "output_dim": 3, "dtype": "int8_from_float32"}
    scale = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    weights = {"embeddings": KERNEL, "embeddings_scale": scale}
    (found,) = called("Embedding", [np.array([[3, 0]], np.int32)], config, weights)
    np.testing.assert_allclose(found, (KERNEL / scale[:, None])[[[3, 0]]])


@pytest.mark.parametrize("late", [False, True])
def test_softmax_of_what_a_mask_leaves_out(late: bool) -> None:
    config = {"axis": -1, "zero_masked": late}
    mask = np.array([[True, True, False, True], [False] * 4])
    (found,) = called("Softmax", [X * np.float32(0.1), mask], config)
    np.testing.assert_allclose(found[1], [0.0 if late else 0.25] * 4)
    assert found[0, 2] == 0
