"""Depthwise convolutions of bytes that load words which have bytes in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.types import dims_of, i32, ui8
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..programs import module_of, symbol, typed  # noqa: TID251  (these are tests)
from ..targets import suite_for  # noqa: TID251  (as above)
from ..test_integer_products import Array, integers  # noqa: TID251  (as above)
from ..test_layouts import add  # noqa: TID251  (as above)

TARGET = "x86-64-zen4"
TARGETS = (TARGET, "x86-64-amx")
"""Those that load words which have bytes in common."""


@dataclass(frozen=True)
class Form:
    """A convolution with one filter a channel, and what follows it."""

    shape: tuple[int, int, int, int]
    taps: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    down: int = 1
    """The dilation along columns."""
    begin: tuple[int, int] = (1, 1)
    end: tuple[int, int] = (1, 1)
    dtype: Any = np.uint8
    zeros: str = "known"
    """Or one that comes from outside for each image, `given`, or none."""
    has_bias: bool = False
    follows: str = "channels"
    """Factors of channels; or something at each place before them, `places`, or nothing."""
    is_open: bool = False

    @property
    def inputs(self) -> list[Array]:
        """The image, and a zero point that is not known before."""
        found = [integers(self.dtype, *self.shape)]
        if self.zeros == "given":
            found.append(integers(self.dtype, self.shape[0], 1, 1, 1, seed=9))
        return found

    @property
    def types(self) -> list[Any]:
        """Those of the inputs; the number of images may not be known."""
        types = [typed(array.dtype, *array.shape) for array in self.inputs]
        if self.is_open:
            types[0] = typed(self.dtype, symbol("n"), *self.shape[1:])
        return types

    def body(self, x: SSAValue, *given: SSAValue) -> list[Any]:
        """The ops."""
        channels = self.shape[1]
        weight = integers(np.int8, channels, 1, *self.taps, seed=3)
        weight.flat[:2] = -128, 127
        zeros = [*given]
        if self.zeros == "known":
            number = 77 if self.dtype == np.uint8 else -100
            zeros = [ConstantOp.of(np.array(number, self.dtype)).result]
        if zeros:
            zeros.append(ConstantOp.of(np.array(0, np.int8)).result)
        bias = ConstantOp.of(integers(np.int32, channels, seed=4) >> 12).result
        sums = ConvOp(
            x,
            ConstantOp.of(weight).result,
            bias if self.has_bias else None,
            zeros,
            strides=self.strides,
            dilations=[self.down, 1],
            pads_begin=self.begin,
            pads_end=self.end,
            groups=channels,
            accumulator=i32,
        )
        made: list[Any] = [sums]
        if self.follows == "places":
            sizes = [dim.value or 0 for dim in dims_of(sums.result)[2:]]
            places = integers(np.int32, *sizes, seed=5) >> 20
            made.append(AddOp(sums.result, ConstantOp.of(places).result))
        if self.follows != "nothing":
            scales = np.linspace(0.001, 0.004, channels, dtype=np.float32).reshape(-1, 1, 1)
            limits: dict[str, Any] = {"zero": 7, "low": 0, "high": 255, "to": ui8}
            factors = ConstantOp.of(scales).result
            made.append(RequantizeOp("even", made[-1].result, factors, None, **limits))
        return made[-1:]


FORMS = [
    Form((1, 19, 7, 14)),
    Form((2, 16, 5, 7), has_bias=True),
    Form((1, 5, 9, 40), dtype=np.int8, has_bias=True),
    Form((1, 17, 9, 29), strides=(2, 2), end=(0, 0)),
    Form((1, 16, 11, 11), (5, 5), begin=(2, 2), end=(2, 2), follows="places"),
    Form((2, 3, 6, 33), (1, 4), begin=(0, 3), end=(0, 0), dtype=np.int8, zeros="given"),
    Form((1, 4, 12, 18), (2, 2), (1, 2), down=3, begin=(3, 0), end=(0, 5), zeros="none"),
    Form((1, 33, 6, 16), begin=(0, 0), end=(0, 0), follows="nothing"),
    Form((1, 18, 7, 7), follows="nothing", has_bias=True),
    Form((3, 6, 4, 9), (5, 3), begin=(2, 1), end=(2, 1), is_open=True, has_bias=True),
    Form((1, 4, 9, 70), (3, 9), (3, 1), begin=(1, 4), end=(0, 4), zeros="given"),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_strategy(form: Form, target: str) -> None:
    """What follows the sums is computed beside them."""
    module = module_of(form.types, form.body)
    context = LowerdeckContext(options=CompileOptions(target=target))
    run_to_phase(context, module, "kernels", after="optimized")
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert kernel.schedule is not None
    assert kernel.schedule.data.strategy == "depthwise_words"


@pytest.mark.parametrize(("follows", "lanes"), [("channels", 8), ("nothing", 8), ("places", 4)])
def test_vectors_of_short_rows(follows: str, lanes: int) -> None:
    """They reach beyond rows of 7 where what follows is alike at all places, whatever its type."""
    form = Form((1, 18, 7, 7), follows=follows)
    module = module_of(form.types, form.body)
    context = LowerdeckContext(options=CompileOptions(target=TARGET))
    run_to_phase(context, module, "kernels", after="optimized")
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert kernel.schedule is not None
    assert kernel.schedule.data.get("vector") == lanes


@pytest.mark.parametrize("target", [*TARGETS, "x86-64-vnni", "x86-64-v3", "c99"])
def test_c(tmp_path: Path, target: str) -> None:
    """All targets give the same, with those words and without; all numbers occur."""
    suite = suite_for(target, tmp_path, share=1 if target in TARGETS else 3)
    for form in FORMS:
        add(suite, target, form.types, form.body, *form.inputs)
    suite.check()


@pytest.mark.parametrize(
    "form",
    [
        Form((1, 19, 7, 3)),
        Form((1, 19, 7, 20), strides=(1, 3)),
        Form((1, 2, 600, 700)),
    ],
    ids=["narrow", "far", "large"],
)
def test_others(form: Form) -> None:
    """Of rows that are too short, steps that have no words, and large images: floats."""
    module = module_of(form.types, form.body)
    context = LowerdeckContext(options=CompileOptions(target=TARGET))
    run_to_phase(context, module, "kernels", after="optimized")
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    strategies = {op.schedule.data.strategy for op in kernels if op.schedule is not None}
    assert "depthwise_words" not in strategies


@pytest.mark.parametrize("threads", [1, 2])
def test_largest_sums(tmp_path: Path, threads: int) -> None:
    """Nothing saturates, wherever zero points are; threads share channels."""
    suite = suite_for(TARGET, tmp_path)
    for dtype, number, zero, weight in (
        (np.uint8, 255, 0, -128),
        (np.uint8, 0, 255, 127),
        (np.int8, -128, 127, 127),
        (np.int8, 127, -128, -128),
    ):
        x = np.full((2, 18, 8, 20), number, dtype)
        w = np.full((18, 1, 5, 5), weight, np.int8)
        constants = [w, np.array(zero, dtype), np.array(0, np.int8)]

        def body(x: SSAValue, constants: list[Array] = constants) -> ConvOp:
            w, *zeros = (ConstantOp.of(array).result for array in constants)
            return ConvOp(
                x,
                w,
                None,
                zeros,
                strides=[1, 1],
                dilations=[1, 1],
                pads_begin=[2, 2],
                pads_end=[2, 2],
                groups=18,
                accumulator=i32,
            )

        add(suite, TARGET, [typed(dtype, *x.shape)], body, x, threads=threads)
    suite.check()
