"""Networks of half precision, whose numbers are f32 between kernels: the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp

from .programs import symbol, typed  # noqa: TID251  (these are tests, not the folder of sources)
from .targets import SOME_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)


def _conv(x: SSAValue, array: NDArray[Any], groups: int = 1) -> SSAValue:
    """Of 3 x 3 or 1 x 1 taps, the image as large as before."""
    pads: list[int] = [size // 2 for size in array.shape[2:]]
    ones = [1, 1]
    weight = ConstantOp.of(array).result
    return ConvOp(
        x,
        weight,
        strides=ones,
        dilations=ones,
        pads_begin=pads,
        pads_end=pads,
        groups=groups,
    ).result


def _images(dtype: Any) -> Any:
    """Channels scaled by their means, a sum with what was before, parts side by side, a pool."""

    def weight(*shape: int) -> NDArray[Any]:
        return (values(*shape) / 4).astype(dtype)

    def body(x: SSAValue) -> list[SSAValue]:
        zero = ConstantOp.of(np.array(0, dtype)).result
        first = e.MaxOp(_conv(x, weight(20, 3, 3, 3)), zero).result
        each = e.MaxOp(_conv(first, weight(20, 1, 3, 3), groups=20), zero).result
        scale = e.SigmoidOp(ReduceOp("max", each, [2, 3], keep_dims=True).result).result
        scaled = _conv(e.MulOp(each, scale).result, weight(20, 20, 1, 1))
        total = e.AddOp(scaled, first).result
        joined = ConcatOp([total, first], 1).result
        pool = PoolOp(
            "max",
            joined,
            kernel=[2, 2],
            strides=[2, 2],
            dilations=[1, 1],
            pads_begin=[0, 0],
            pads_end=[0, 0],
        )
        return [_conv(pool.result, weight(5, 40, 3, 3)), total]

    return body


def _rows(dtype: Any) -> Any:
    """Norms, products of halves of a row with each other, softmax, a sum with what was before."""

    def weight(*shape: int) -> SSAValue:
        return ConstantOp.of((values(*shape) / 4).astype(dtype)).result

    def body(x: SSAValue) -> list[SSAValue]:
        norm = LayerNormOp(x, weight(24), weight(24), 1e-5, 2).result
        y = MatmulOp(norm, weight(24, 32)).result
        low, high = (SliceOp(y, [0, 0, k], [2, 7, 16]).result for k in (0, 16))
        scores = MatmulOp(low, TransposeOp(high, [0, 2, 1]).result).result
        mixed = MatmulOp(SoftmaxOp(scores, 2).result, low).result
        padded = PadOp(mixed, [0, 0, 0], [0, 0, 8]).result
        total = e.AddOp(padded, x).result
        flat = ReshapeOp(total, [14, 24]).result
        return [total, e.TanhOp(MatmulOp(flat, weight(24, 9)).result).result]

    return body


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_networks(tmp_path: Path, target: str) -> None:
    """What is stored between kernels, moved, broadcast and chosen from."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for dtype in (np.float16, ml_dtypes.bfloat16)[: 2 if target == "x86-64-v4" else 1]:
        image, rows = values(1, 3, 8, 9).astype(dtype), values(2, 7, 24).astype(dtype)
        add(suite, target, [typed(dtype, *image.shape)], _images(dtype), image)
        add(suite, target, [typed(dtype, *rows.shape)], _rows(dtype), rows)
    suite.check()


def test_open_sizes(tmp_path: Path) -> None:
    """Of images, and of how many there are."""
    suite = suite_for("x86-64-v4", tmp_path)
    types = [typed(np.float16, symbol("n"), 3, symbol("h"), symbol("w"))]
    image = values(2, 3, 6, 7).astype(np.float16)
    image[0, 0, 0, :3] = np.nan, np.inf, -0.0
    add(suite, "x86-64-v4", types, _images(np.float16), image)
    suite.check()
