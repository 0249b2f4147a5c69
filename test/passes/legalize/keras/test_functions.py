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
from lowerdeck.passes.machinery.context import LowerdeckContext

Array = NDArray[Any]

X: Array = np.array([[1.5, -2.0, 0.25, 0.25], [-7.0, 0.0, 64.0, -0.5]], np.float32)
Y: Array = np.array([[2.0, 3.0, -0.5, 0.0], [2.0, -0.0, 0.25, 1.0]], np.float32)
ODD: Array = np.array([np.nan, np.inf, -np.inf, -0.0, 2.5], np.float32)
CUBE: Array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
INTS: Array = np.array([[7, -8, 5], [-1, 0, 3]], np.int32)


def called(
    name: str,
    arrays: Sequence[Array],
    config: Mapping[str, Any],
    weights: Mapping[str, Array] | None = None,
    results: int = 1,
) -> list[Array]:
    """What a call gives."""
    types = [tensor(element_of(np.asarray(a).dtype), np.shape(a)) for a in arrays]
    block = Block(arg_types=types)
    constants = {key: ConstantOp.of(value) for key, value in (weights or {}).items()}
    cls = op_class(name)
    assert cls is not None
    op = cls(
        ([Operand(k) for k in range(len(arrays))], {}),
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


Expected = Callable[[Any], Any] | Callable[[Any, Any], Any]

CASES: Sequence[tuple[str, Sequence[Array], Mapping[str, Any], Expected]] = [
    ("Arcsinh", [X], {}, np.arcsinh),
    ("Cbrt", [X], {}, np.cbrt),
    ("Exp2", [Y], {}, np.exp2),
    ("Sinc", [X], {}, np.sinc),
    ("Trunc", [X], {}, np.trunc),
    ("Isneginf", [ODD], {}, np.isneginf),
    ("Isfinite", [ODD], {}, np.isfinite),
    ("Signbit", [ODD[1:]], {}, np.signbit),
    ("NanToNum", [ODD], {"nan": 3.0}, lambda x: np.nan_to_num(x, nan=3.0)),
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
    ("Sort", [X], {"axis": 1}, lambda x: np.sort(x, 1)),
    ("Argsort", [X], {"axis": 1}, lambda x: np.argsort(x, 1, kind="stable")),
    ("Cumprod", [X], {"axis": 1}, lambda x: x.cumprod(1)),
    ("Cumsum", [X], {}, lambda x: np.cumsum(x)),
    ("Flip", [CUBE], {"axis": 1}, lambda x: np.flip(x, 1)),
    ("Roll", [CUBE], {"shift": 5}, lambda x: np.roll(x, 5)),
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
    ("Inner", [CUBE, X], {}, np.inner),
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
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=2e-6, atol=1e-6)


def test_several_results() -> None:
    mean, variance = called("Moments", [CUBE], {"axes": [0, 2]}, results=2)
    np.testing.assert_allclose(mean, CUBE.mean((0, 2)))
    np.testing.assert_allclose(variance, CUBE.var((0, 2)))
    values, places = called("TopK", [X], {"k": 2}, results=2)
    assert values.tolist() == [[1.5, 0.25], [64, 0]]
    assert places.tolist() == [[0, 2], [2, 1]]


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
