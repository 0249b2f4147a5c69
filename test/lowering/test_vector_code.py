"""
The machine code of kernels computes in vectors: gcc's assembly for targets with vectors, native or
not, whose innermost loops are read.

Sizes are multiples of all vectors, so that there are no loops over remainders.
"""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.types import bf16, f16, f32, i32, ui8
from lowerdeck.lowering import compile_to_c
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .assembly import loops_of, obstacle_to_assembly  # noqa: TID251  (these are tests)
from .programs import Body, module_of, typed, write_unit  # noqa: TID251  (these are tests)

TARGETS = ("x86-64-v3", "x86-64", "aarch64")

F4, F8, HALF, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16


def weight(*shape: int, dtype: Any = F4) -> SSAValue:
    return ConstantOp.of(np.random.default_rng(0).standard_normal(shape).astype(dtype)).result


def conv(
    x: SSAValue,
    w: SSAValue,
    *,
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    rank: int = 2,
) -> ConvOp:
    pads = [pad] * rank
    return ConvOp(
        x,
        w,
        strides=[stride] * rank,
        dilations=[1] * rank,
        pads_begin=pads,
        pads_end=pads,
        groups=groups,
    )


def transposed(x: SSAValue, w: SSAValue) -> ConvTransposeOp:
    two, none = [2, 2], [0, 0]
    return ConvTransposeOp(
        x, w, strides=two, dilations=[1, 1], pads_begin=none, pads_end=none, output_padding=none
    )


def pool(kind: str, x: SSAValue, size: int) -> PoolOp:
    sizes, none = [size, size], [0, 0]
    return PoolOp(
        kind, x, kernel=sizes, strides=sizes, dilations=[1, 1], pads_begin=none, pads_end=none
    )


def image(channels: int, size: int = 32, dtype: Any = F4) -> Any:
    return typed(dtype, 1, channels, size, size)


FORMS: Mapping[str, tuple[Sequence[Any], Body]] = {
    "conv": ([image(32)], lambda x: conv(x, weight(32, 32, 3, 3), pad=1)),
    "pointwise": ([image(32)], lambda x: conv(x, weight(64, 32, 1, 1))),
    "strided": ([image(32, 33)], lambda x: conv(x, weight(32, 32, 3, 3), stride=2)),
    "grouped": ([image(32)], lambda x: conv(x, weight(32, 8, 3, 3), groups=4)),
    "narrow_groups": ([image(32)], lambda x: conv(x, weight(32, 2, 3, 3), groups=16)),
    "depthwise": ([image(32)], lambda x: conv(x, weight(32, 1, 3, 3), groups=32, pad=1)),
    "line": ([typed(F4, 1, 32, 128)], lambda x: conv(x, weight(32, 32, 3), rank=1)),
    "computed_weights": ([image(32), typed(F4, 32, 32, 3, 3)], lambda x, w: conv(x, w)),
    "half": ([image(32, dtype=HALF)], lambda x: conv(x, weight(32, 32, 3, 3, dtype=HALF), pad=1)),
    "transposed": ([image(32)], lambda x: transposed(x, weight(32, 32, 2, 2))),
    "matmul": ([typed(F4, 48, 64)], lambda x: MatmulOp(x, weight(64, 64))),
    "matmul_row": ([typed(F4, 1, 256)], lambda x: MatmulOp(x, weight(256, 256))),
    "matmul_f64": ([typed(F8, 48, 64)], lambda x: MatmulOp(x, weight(64, 64, dtype=F8))),
    "matmul_batch": ([typed(F4, 4, 48, 64), typed(F4, 4, 64, 64)], lambda x, y: MatmulOp(x, y)),
    "matmul_bytes": (
        [typed(np.uint8, 48, 64), typed(np.int8, 64, 64)],
        lambda x, y: MatmulOp(x, y, accumulator=i32),
    ),
    "max_pool": ([image(32)], lambda x: pool("max", x, 2)),
    "average_pool": ([image(32)], lambda x: pool("average", x, 2)),
    "map": ([typed(F4, 64, 64)] * 2, lambda x, y: e.ExpOp(e.AddOp(x, y).result)),
    "map_f64": ([typed(F8, 64, 64)], lambda x: e.TanhOp(x)),
    "map_bytes": ([typed(np.uint8, 64, 64)] * 2, lambda x, y: e.MaxOp(x, y)),
    "widening": ([typed(HALF, 64, 64)], lambda x: e.CastOp(x, f32)),
    "narrowing": ([typed(F4, 64, 64)], lambda x: e.CastOp(x, f16)),
    "sum_of_rows": ([typed(F4, 64, 256)], lambda x: ReduceOp("sum", x, [1])),
    "sum_of_columns": ([typed(F4, 64, 256)], lambda x: ReduceOp("sum", x, [0])),
    "max_of_rows": ([typed(F4, 64, 256)], lambda x: ReduceOp("max", x, [1])),
    "argmax": ([typed(F4, 64, 256)], lambda x: ArgReduceOp("max", x, 1)),
    "running_sum": ([typed(F4, 64, 64)], lambda x: CumulativeOp("sum", x, 1)),
    "softmax": ([typed(F4, 64, 256)], lambda x: SoftmaxOp(x, 1)),
    "norm": ([typed(F4, 64, 256)], lambda x: LayerNormOp(x, weight(256), None, 1e-5, 1)),
    "transpose": ([typed(F4, 64, 64)], lambda x: t.TransposeOp(x, [1, 0])),
    "transpose_bytes": ([typed(np.uint8, 64, 64)], lambda x: t.TransposeOp(x, [1, 0])),
}
"""The types of the inputs, and the op."""


def forms_on(target: str) -> list[str]:
    """Every form on the first target, and on one of those with vectors of the same width."""
    narrow = TARGETS[1:]
    return [
        name
        for number, name in enumerate(FORMS)
        if target == TARGETS[0] or target == narrow[number % len(narrow)]
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_innermost_loops_are_vectors(target: str, tmp_path: Path) -> None:
    if (reason := obstacle_to_assembly(target)) is not None:
        pytest.skip(reason)
    artifacts: list[CArtifact] = []
    for name in forms_on(target):
        types, body = FORMS[name]
        context = LowerdeckContext(options=CompileOptions(target=target))
        artifacts.append(compile_to_c(context, module_of(types, body), f"{name}_form"))
    source, *_ = write_unit(artifacts, tmp_path)
    found = loops_of(target, source).items()
    for form in forms_on(target):
        own = [loop for name, loops in found if name.startswith(f"{form}_form_") for loop in loops]
        assert any(loop.vectors for loop in own), form
        assert [loop.instructions for loop in own if loop.is_scalar] == [], form


def integers(*shape: int) -> SSAValue:
    """Small weights with signs."""
    numbers = np.random.default_rng(0).integers(-60, 61, shape)
    return ConstantOp.of(numbers.astype(np.int8)).result


def quantized(op: MatmulOp | ConvOp) -> RequantizeOp:
    """Sums of bytes that become bytes."""
    factor = ConstantOp.of(np.asarray(1e-3, np.float32)).result
    return RequantizeOp("even", op.result, factor, None, zero=3, low=0, high=255, to=ui8)


def conv_of_bytes(
    x: SSAValue, *shape: int, groups: int = 1, strides: Sequence[int] = (1, 1)
) -> RequantizeOp:
    pads = [shape[-1] // 2] * 2
    window: dict[str, Any] = {"pads_begin": pads, "pads_end": pads, "groups": groups}
    conv = ConvOp(x, integers(*shape), strides=strides, dilations=[1, 1], accumulator=i32, **window)
    return quantized(conv)


def halves(x: SSAValue) -> MatmulOp:
    """A product of numbers of bf16."""
    return MatmulOp(e.CastOp(x, bf16).result, weight(256, 128, dtype=BF16), accumulator=f32)


BYTES = np.uint8
NARROW: Mapping[str, tuple[Sequence[Any], Body]] = {
    "product": (
        [typed(BYTES, 64, 256)],
        lambda x: quantized(MatmulOp(x, integers(256, 128), accumulator=i32)),
    ),
    "row": ([typed(BYTES, 1, 768)], lambda x: MatmulOp(x, integers(768, 1024), accumulator=i32)),
    "computed": (
        [typed(BYTES, 64, 256), typed(np.int8, 256, 128)],
        lambda x, w: MatmulOp(x, w, accumulator=i32),
    ),
    "conv": ([image(32, 16, BYTES)], lambda x: conv_of_bytes(x, 64, 32, 3, 3)),
    "pointwise": ([image(64, 28, BYTES)], lambda x: conv_of_bytes(x, 64, 64, 1, 1)),
    "windows": ([image(32, 64, BYTES)], lambda x: conv_of_bytes(x, 64, 32, 3, 3)),
    "first": ([image(3, 112, BYTES)], lambda x: conv_of_bytes(x, 64, 3, 7, 7)),
    "depthwise": (
        [image(32, 28, BYTES)],
        lambda x: conv_of_bytes(x, 32, 1, 3, 3, groups=32),
    ),
    "depthwise_far": (
        [image(32, 28, BYTES)],
        lambda x: conv_of_bytes(x, 32, 1, 3, 3, groups=32, strides=[2, 2]),
    ),
    "tiles": ([image(64, 32, BYTES)], lambda x: conv_of_bytes(x, 64, 64, 3, 3)),
    "halves": ([typed(F4, 64, 256)], halves),
}
"""Products of integers and of bf16, by kernel."""

_PRODUCTS = re.compile(r"madd|vpdp|dpbf16|mulps")
_PAIRS = re.compile(r"madd|vpdpw")
"""Instructions that multiply; of Winograd's algorithm, those between transforms."""

WORDS = dict.fromkeys(("x86-64-zen4", "x86-64-amx"), re.compile(r"vpermb"))
"""Instructions that put the bytes of depthwise convolutions in order, where there are such."""


@pytest.mark.parametrize(
    "target", ["x86-64-amx", "x86-64-zen4", "x86-64-v4", "x86-64-v3", "x86-64"]
)
def test_sums_of_narrow_numbers_stay_in_registers(target: str, tmp_path: Path) -> None:
    """
    No innermost loop that multiplies has a vector on the stack. Large images take windows, those of
    several channels tiles where pairs are multiplied as fast as four bytes. Bytes in groups of few
    filters are floats, with weights in registers or not, unless they lie in words.
    """
    if (reason := obstacle_to_assembly(target)) is not None:
        pytest.skip(reason)
    forms = dict(NARROW)
    if target not in WORDS:
        forms = {name: form for name, form in forms.items() if "depthwise" not in name}
    if target != "x86-64-zen4":
        del forms["tiles"]
    artifacts: list[CArtifact] = []
    for name, (types, body) in forms.items():
        disabled = () if name == "tiles" else ("exact_winograd",)
        options = CompileOptions(target=target, disable_strategy=disabled)
        context = LowerdeckContext(options=options)
        module = module_of(types, body)
        run_to_phase(context, module, "kernels", after="optimized")
        if name in ("windows", "first"):
            assert "window_products" in str(module), name
        assert ("exact_winograd" in str(module)) == (name == "tiles")
        artifacts.append(compile_to_c(context, module_of(types, body), f"{name}_form"))
    source, *_ = write_unit(artifacts, tmp_path)
    found = loops_of(target, source).items()
    for form in forms:
        own = [loop for name, loops in found if name.startswith(f"{form}_form_") for loop in loops]
        products = _PAIRS if form == "tiles" else _PRODUCTS
        sums = [loop for loop in own if any(map(products.search, loop.instructions))]
        assert sums or target == "x86-64-amx", form
        assert [loop.spilled for loop in sums if loop.spilled] == [], form
        if form.startswith("depthwise") and target in WORDS:
            assert any(map(WORDS[target].search, sums[0].instructions)), form


def residual(channels: int, size: int) -> tuple[Sequence[Any], Body]:
    """A pointwise convolution whose epilogue adds an image, with a slope for what is negative."""

    def body(x: SSAValue) -> ConvOp:
        bias, slope = (weight(1, channels, 1, 1) for _ in range(2))
        spread = conv(x, weight(channels, 1, 5, 5), groups=channels, pad=2)
        product = conv(spread.result, weight(channels, channels, 1, 1))
        both = e.AddOp(e.AddOp(product.result, bias).result, x).result
        is_positive = e.CompareOp("ge", both, ConstantOp.of(np.asarray(0, F4)).result)
        chosen = e.SelectOp(is_positive.result, both, e.MulOp(both, slope).result)
        return conv(chosen.result, weight(channels, 1, 5, 5), groups=channels, pad=2)

    return [image(channels, size)], body


def test_sums_under_epilogues_stay_in_registers(tmp_path: Path) -> None:
    """What an epilogue needs in each tile takes no register from the sums of the tile."""
    target = "x86-64-zen4"
    if (reason := obstacle_to_assembly(target)) is not None:
        pytest.skip(reason)
    artifacts: list[CArtifact] = []
    for channels, size in ((128, 24), (256, 12), (32, 48)):
        context = LowerdeckContext(options=CompileOptions(target=target))
        types, body = residual(channels, size)
        artifacts.append(compile_to_c(context, module_of(types, body), f"residual_{channels}"))
    source, *_ = write_unit(artifacts, tmp_path)
    loops = [loop for each in loops_of(target, source).values() for loop in each]
    sums = [loop for loop in loops if sum("vfmadd" in text for text in loop.instructions) >= 8]
    assert len(sums) >= 3
    assert [loop.spilled for loop in sums if loop.spilled] == []


def test_scalar_code_is_recognized(tmp_path: Path) -> None:
    if (reason := obstacle_to_assembly("x86-64")) is not None:
        pytest.skip(reason)
    context = LowerdeckContext(options=CompileOptions(target="c99"))
    types, body = FORMS["conv"]
    source, *_ = write_unit([compile_to_c(context, module_of(types, body), "scalar")], tmp_path)
    loops = loops_of("x86-64", source)["scalar_conv_0"]
    assert any(loop.is_scalar for loop in loops)
