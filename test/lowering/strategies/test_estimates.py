"""
What strategies estimate: `estimates.txt` has a line for each strategy of each kernel below.

A wrong estimate gives right numbers, only later, so that no other test sees it. Where estimates are
to be others, `LOWERDECK_WRITE_ESTIMATES=1` lets this test write the file anew, and what has changed
is for review.
"""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ConcatOp, TransposeOp
from lowerdeck.dialects.core.types import element_type, numpy_dtype
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.form.choose_strategies import ChooseStrategiesPass
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies.base import Candidate, Setting
from lowerdeck.lowering.strategies.registry import candidates
from lowerdeck.passes.machinery.context import LowerdeckContext, options_of
from lowerdeck.passes.machinery.options import CompileOptions

from ..programs import module_of, symbol, typed  # noqa: TID251  (these are tests, not sources)

EXPECTED = Path(__file__).with_name("estimates.txt")
TARGETS = ("x86-64-zen4", "x86-64-v3", "aarch64", "x86-64-amx", "cortex-m7")

Body = Callable[..., Any]


def constant(*shape: int, dtype: Any = np.float32) -> SSAValue:
    """Small numbers that are not all the same."""
    count = int(np.prod(shape))
    array: NDArray[Any] = (np.arange(count) % 7 - 3).astype(dtype).reshape(shape)
    return ConstantOp.of(array).result


def has_bytes(value: SSAValue) -> bool:
    """True for a tensor of bytes."""
    return numpy_dtype(element_type(value)).itemsize == 1


def conv(
    x: SSAValue, *weight: int, stride: int = 1, dilation: int = 1, groups: int = 1, pad: int = 0
) -> SSAValue:
    """A convolution of an image, of bytes where it has bytes."""
    is_bytes = has_bytes(x)
    w = constant(*weight, dtype=np.int8 if is_bytes else np.float32)
    rank = len(weight) - 2
    return ConvOp(
        x,
        w,
        strides=[stride] * rank,
        dilations=[dilation] * rank,
        pads_begin=[pad] * rank,
        pads_end=[pad] * rank,
        groups=groups,
        accumulator=i32 if is_bytes else None,
    ).result


def pool(kind: str, x: SSAValue, size: int, stride: int, pad: int = 0) -> SSAValue:
    """A pool of squares of an image."""
    pads, steps, ones = [pad, pad], [stride, stride], [1, 1]
    windows: dict[str, Any] = {"kernel": [size, size], "strides": steps, "dilations": ones}
    return PoolOp(kind, x, **windows, pads_begin=pads, pads_end=pads).result


def transposed(x: SSAValue, *weight: int) -> SSAValue:
    """A transposed convolution that doubles an image."""
    return ConvTransposeOp(
        x,
        constant(*weight),
        strides=[2, 2],
        dilations=[1, 1],
        pads_begin=[0, 0],
        pads_end=[0, 0],
        output_padding=[0, 0],
    ).result


def product(x: SSAValue, *weight: int) -> Operation:
    """A product with a constant, of bytes where there are such."""
    if has_bytes(x):
        return MatmulOp(x, constant(*weight, dtype=np.int8), accumulator=i32)
    return MatmulOp(x, constant(*weight))


IMAGE, WIDE, DEEP = (
    typed(np.float32, 1, 32, 28, 28),
    (1, 3, 40, 2500),
    typed(np.float32, 1, 64, 7, 7),
)
ROWS, BYTES = typed(np.float32, 64, 300), typed(np.uint8, 1, 32, 28, 28)
N = symbol("n")

PROGRAMS: Mapping[str, tuple[list[Any], Body]] = {
    "conv 3x3": ([IMAGE], lambda x: conv(x, 64, 32, 3, 3, pad=1)),
    "conv 3x3, steps of 2": ([IMAGE], lambda x: conv(x, 64, 32, 3, 3, stride=2)),
    "conv 1x1": ([IMAGE], lambda x: conv(x, 48, 32, 1, 1)),
    "conv 7x7, 3 channels": (
        [typed(np.float32, 1, 3, 64, 64)],
        lambda x: conv(x, 32, 3, 7, 7, stride=2, pad=3),
    ),
    "conv, depthwise": ([IMAGE], lambda x: conv(x, 32, 1, 3, 3, groups=32, pad=1)),
    "conv, groups": ([IMAGE], lambda x: conv(x, 32, 8, 3, 3, groups=4, pad=1)),
    "conv of 7 rows": ([DEEP], lambda x: conv(x, 128, 64, 3, 3, pad=1)),
    "conv, one filter": ([IMAGE], lambda x: conv(x, 1, 32, 3, 3)),
    "conv of a line": ([typed(np.float32, 1, 16, 400)], lambda x: conv(x, 24, 16, 5, pad=2)),
    "conv, open": ([typed(np.float32, N, 16, 20, 20)], lambda x: conv(x, 16, 16, 3, 3, pad=1)),
    "two convs": (
        [IMAGE],
        lambda x: conv(
            e.MaxOp(conv(x, 32, 32, 3, 3, pad=1), constant(1)).result, 32, 32, 3, 3, pad=1
        ),
    ),
    "conv of bytes": ([BYTES], lambda x: conv(x, 64, 32, 3, 3, pad=1)),
    "conv of bytes, depthwise": ([BYTES], lambda x: conv(x, 32, 1, 3, 3, groups=32, pad=1)),
    "conv of bytes, 1x1": ([BYTES], lambda x: conv(x, 32, 32, 1, 1)),
    "conv, far taps": ([DEEP], lambda x: conv(x, 64, 64, 3, 3, pad=6, dilation=6)),
    "conv, pool, conv": (
        [IMAGE],
        lambda x: conv(pool("max", conv(x, 64, 32, 3, 3, pad=1), 2, 2), 64, 64, 3, 3, pad=1),
    ),
    "convs side by side, conv": (
        [IMAGE],
        lambda x: conv(
            ConcatOp([conv(x, 32, 32, 3, 3, pad=1), conv(x, 64, 32, 3, 3, pad=1)], 1).result,
            64,
            96,
            3,
            3,
            pad=1,
        ),
    ),
    "transposed conv": ([IMAGE], lambda x: transposed(x, 32, 16, 2, 2)),
    "largest of 3x3": ([IMAGE], lambda x: pool("max", x, 3, 2, 1)),
    "largest of 5x5, wide": ([typed(np.float32, *WIDE)], lambda x: pool("max", x, 5, 1, 2)),
    "sum of 5x5, few rows": ([typed(np.float32, 1, 8, 9, 9)], lambda x: pool("sum", x, 5, 1, 2)),
    "average of 2x2": ([IMAGE], lambda x: pool("average", x, 2, 2)),
    "pool after conv": ([IMAGE], lambda x: pool("max", conv(x, 64, 32, 3, 3, pad=1), 3, 1, 1)),
    "product": ([ROWS], lambda x: product(x, 300, 128)),
    "product, one row": ([typed(np.float32, 1, 512)], lambda x: product(x, 512, 1000)),
    "product, 3 columns": ([ROWS], lambda x: product(x, 300, 3)),
    "product, one column": ([ROWS], lambda x: product(x, 300, 1)),
    "product, 3 columns, computed": ([ROWS, typed(np.float32, 300, 3)], MatmulOp),
    "product, 3 columns, twice": (
        [typed(np.float32, 300, 300), typed(np.float32, 300, 3)],
        lambda x, y: e.AddOp(MatmulOp(x, y).result, y),
    ),
    "product, computed": ([ROWS, typed(np.float32, 300, 96)], MatmulOp),
    "products": ([typed(np.float32, 6, 33, 64), typed(np.float32, 6, 64, 33)], MatmulOp),
    "product, open": ([typed(np.float32, N, 64)], lambda x: product(x, 64, 40)),
    "product, one row, computed": (
        [typed(np.float32, 1, 20000), typed(np.float32, 20000, 64)],
        MatmulOp,
    ),
    "product of bytes": ([typed(np.uint8, 64, 256)], lambda x: product(x, 256, 96)),
    "product of bytes, one row": ([typed(np.uint8, 1, 256)], lambda x: product(x, 256, 96)),
    "product, one long row, int8": (
        [typed(np.float32, 1, 512)],
        lambda x: product(x, 512, 8000),
    ),
    "product, few rows, bf16": ([typed(np.float32, 4, 512)], lambda x: product(x, 512, 3000)),
    "product of doubles": (
        [typed(np.float64, 20, 65)],
        lambda x: MatmulOp(x, constant(65, 30, dtype=np.float64)),
    ),
    "attention": ([typed(np.float32, 1, 64, 4, 32)] * 3, AttentionOp),
    "softmax": ([ROWS], lambda x: SoftmaxOp(x, 1)),
    "softmax of columns": ([ROWS], lambda x: SoftmaxOp(x, 0)),
    "sums of rows": ([ROWS], lambda x: ReduceOp("sum", x, [1])),
    "sums of columns": ([ROWS], lambda x: ReduceOp("sum", x, [0])),
    "sums of bytes": (
        [typed(np.uint8, 64, 300)],
        lambda x: ReduceOp("sum", e.CastOp(x, i32).result, [1]),
    ),
    "place of the largest": ([ROWS], lambda x: ArgReduceOp("max", x, 1)),
    "place of the largest of columns": ([ROWS], lambda x: ArgReduceOp("max", x, 0)),
    "normalization": ([ROWS], lambda x: LayerNormOp(x, constant(300), constant(300), 1e-5, 1)),
    "running sums": ([ROWS], lambda x: CumulativeOp("sum", x, 1)),
    "maps": ([ROWS], lambda x: e.TanhOp(e.AddOp(x, x).result)),
    "maps of bytes": ([typed(np.uint8, 64, 300)], lambda x: e.AddOp(x, x)),
    "transpose": ([IMAGE], lambda x: TransposeOp(x, [0, 2, 3, 1])),
    "transpose to three channels": (
        [typed(np.float32, 2, 3, 1300)],
        lambda x: TransposeOp(x, [0, 2, 1]),
    ),
    "transpose of a square": ([typed(np.float32, 256, 256)], lambda x: TransposeOp(x, [1, 0])),
    "channels side by side": (
        [IMAGE, IMAGE],
        lambda x, y: ConcatOp([conv(x, 16, 32, 1, 1), conv(y, 16, 32, 3, 3, pad=1)], 1),
    ),
    "elements side by side": (
        [typed(np.float32, 200, 3), typed(np.float32, 200, 1)],
        lambda x, y: ConcatOp([x, y], 1),
    ),
    "single elements side by side": (
        [typed(np.float32, 500, 1)] * 3,
        lambda x, y, z: ConcatOp([x, y, z], 1),
    ),
}


WEIGHTS: Mapping[str, str] = {
    "product, one long row, int8": "int8",
    "product, few rows, bf16": "bf16",
}
"""The formats of constant weights, of programs that store them in fewer bits."""


@dataclass(frozen=True)
class Listing(ModulePass):
    """As `choose-strategies`; what it chooses among is written down before."""

    lines: list[str] = field(default_factory=list[str])
    name = "choose-strategies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        setting = Setting.of(options_of(ctx))
        for kernel in all_ops(op):
            if isinstance(kernel, KernelOp):
                self.lines.extend(_lines(list(candidates(kernel, setting))))
        ChooseStrategiesPass().apply(ctx, op)


def _lines(found: list[Candidate]) -> Iterator[str]:
    """Of each strategy the number of candidates, the sum of estimates and the best of them."""
    for name in dict.fromkeys(one.schedule.strategy for one in found):
        own = [one for one in found if one.schedule.strategy == name]
        best = min(own, key=lambda one: one.cycles)
        total = sum(one.cycles for one in own)
        yield f"{len(own)} of {total:.6g}, the best {best.cycles:.6g}: {best.schedule}"


def estimates() -> str:
    """The text of the file."""
    found: list[str] = []
    for target in TARGETS:
        for name, (types, body) in PROGRAMS.items():
            options = CompileOptions(target=target, weight_format=WEIGHTS.get(name))
            listing, context = Listing(), LowerdeckContext(options=options)
            others: dict[str, ModulePass | None] = {"choose-strategies": listing}
            run_to_phase(context, module_of(types, body), "kernels", after="legal", instead=others)
            found += [f"{target}: {name}", *(f"    {line}" for line in listing.lines)]
    return "\n".join([*found, ""])


def test_estimates() -> None:
    """They are those of the file."""
    found = estimates()
    if os.environ.get("LOWERDECK_WRITE_ESTIMATES"):
        EXPECTED.write_text(found, encoding="utf-8")
    expected = EXPECTED.read_text(encoding="utf-8")
    different = unified_diff(expected.splitlines(), found.splitlines(), "expected", "found", n=3)
    assert found == expected, "\n".join(different)
