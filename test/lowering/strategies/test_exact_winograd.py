"""Convolutions of bytes by Winograd's algorithm: the same integers as by all products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import i32, ui8
from lowerdeck.dialects.core.winograd import exact_matrices, exact_taps
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies.exact_winograd import BLOCK, GROUP, ROW, SIZE
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..choosing import unchanged  # noqa: TID251  (these are tests)
from ..programs import module_of, typed  # noqa: TID251  (as above)
from ..targets import suite_for  # noqa: TID251  (as above)
from ..test_integer_products import Array, integers  # noqa: TID251  (as above)
from ..test_layouts import add  # noqa: TID251  (as above)

TARGET = "x86-64-zen4"


@dataclass(frozen=True)
class Form:
    """A convolution with 3 x 3 taps, and bytes that follow it."""

    shape: tuple[int, int, int, int]
    filters: int
    begin: tuple[int, int] = (1, 1)
    end: tuple[int, int] = (1, 1)
    dtype: Any = np.uint8
    zero: str = "known"
    """Or one that comes from outside, `given`, or none."""
    has_bias: bool = False
    has_one_factor: bool = False

    @property
    def inputs(self) -> list[Array]:
        """The image, and a zero point that is not known before."""
        found = [integers(self.dtype, *self.shape)]
        if self.zero == "given":
            found.append(np.array(201 if self.dtype == np.uint8 else -77, self.dtype))
        return found

    @property
    def types(self) -> list[Any]:
        """Those of the inputs."""
        return [typed(array.dtype, *array.shape) for array in self.inputs]

    @property
    def weight(self) -> Array:
        """All numbers occur."""
        found = integers(np.int8, self.filters, self.shape[1], 3, 3, seed=3)
        found.flat[:2] = -128, 127
        return found

    def body(self, x: SSAValue, *given: SSAValue) -> list[Any]:
        """The ops."""
        zeros = [*given]
        if self.zero == "known":
            number = 77 if self.dtype == np.uint8 else -100
            zeros = [ConstantOp.of(np.array(number, self.dtype)).result]
        if zeros:
            zeros.append(ConstantOp.of(np.array(0, np.int8)).result)
        bias = ConstantOp.of(integers(np.int32, self.filters, seed=4) >> 12).result
        sums = ConvOp(
            x,
            ConstantOp.of(self.weight).result,
            bias if self.has_bias else None,
            zeros,
            strides=[1, 1],
            dilations=[1, 1],
            pads_begin=self.begin,
            pads_end=self.end,
            groups=1,
            accumulator=i32,
        )
        count = 1 if self.has_one_factor else self.filters
        scales = np.linspace(0.0003, 0.0008, count, dtype=np.float32).reshape(-1, 1, 1)
        limits: dict[str, Any] = {"zero": 7, "low": 0, "high": 255, "to": ui8}
        return [RequantizeOp("even", sums.result, ConstantOp.of(scales).result, None, **limits)]


FORMS = [
    Form((1, 6, 8, 8), 5, has_bias=True),
    Form((2, 5, 13, 12), 4, zero="given"),
    Form((1, 4, 6, 22), 3, dtype=np.int8, begin=(0, 2), end=(2, 0), has_bias=True),
    Form((1, 3, 9, 8), 6, dtype=np.int8, zero="none", end=(0, 0), has_one_factor=True),
    Form((1, 1, 17, 11), 1, zero="none", begin=(1, 0), has_bias=True),
]
STRATEGY = ("exact_winograd",)


def strategies(form: Form, **options: Any) -> set[str]:
    """Of the kernels of a form."""
    module = module_of(form.types, form.body)
    context = LowerdeckContext(options=CompileOptions(target=TARGET, **options))
    run_to_phase(context, module, "kernels", after="optimized")
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    return {op.schedule.data.strategy for op in kernels if op.schedule is not None}


@pytest.mark.parametrize("form", [*FORMS[:4], Form((1, 64, 32, 32), 64)], ids=str)
def test_strategy(form: Form) -> None:
    """What follows the sums is computed beside them; the largest form is faster by it."""
    asked = () if form.filters > 6 else STRATEGY
    assert strategies(form, strategy=asked) == {*STRATEGY}


def in_small_groups(schedule: Schedule) -> Schedule:
    """A row of tiles at a time, and a tile of channels."""
    if schedule.strategy not in STRATEGY:
        return schedule
    sizes = {**dict(schedule.parameters), GROUP: 1, BLOCK: schedule.tile(ROW)}
    return replace(schedule, parameters=tuple(sizes.items()))


def with_few_rows(schedule: Schedule) -> Schedule:
    """Two filters at a time, of which the last may not be there, and groups as they are."""
    if schedule.strategy not in STRATEGY:
        return schedule
    sizes = {**dict(schedule.parameters), BLOCK: 2}
    return replace(schedule, tiles=((ROW, 2), (COLUMN, 1)), parameters=tuple(sizes.items()))


@pytest.mark.parametrize("target", [TARGET, "x86-64-vnni", "x86-64-v3", "c99"])
@pytest.mark.parametrize("threads", [1, 2])
def test_c(tmp_path: Path, target: str, threads: int) -> None:
    """All targets give the same, by that algorithm and without."""
    suite = suite_for(target, tmp_path, share=1 if target == TARGET else 3)
    forms = FORMS[:3] if threads == 1 else FORMS[2:]
    changes = [unchanged, in_small_groups, with_few_rows]
    for form, change in zip(forms, changes, strict=True):
        add(
            suite,
            target,
            form.types,
            form.body,
            *form.inputs,
            threads=threads,
            strategy=STRATEGY,
            change=change,
        )
    suite.check()


@pytest.mark.parametrize("number", [0, 4])
def test_shared_channels(tmp_path: Path, number: int) -> None:
    """Of an image that is one group of rows threads share the channels, which may be too few."""
    form = FORMS[number]
    height = form.shape[2] + form.begin[0] + form.end[0] - 2

    def in_one_group(schedule: Schedule) -> Schedule:
        if schedule.strategy not in STRATEGY:
            return schedule
        changed = with_few_rows(schedule)
        sizes = {**dict(changed.parameters), GROUP: -(-height // SIZE)}
        return replace(changed, parameters=tuple(sizes.items()))

    suite = suite_for(TARGET, tmp_path)
    for threads in (2, 4):
        add(
            suite,
            TARGET,
            form.types,
            form.body,
            *form.inputs,
            threads=threads,
            strategy=STRATEGY,
            change=in_one_group,
        )
    suite.check()


@pytest.mark.parametrize(
    "form",
    [Form((1, 4, 32, 32), 64), Form((1, 64, 32, 32), 4), Form((1, 512, 7, 7), 64)],
    ids=["few inputs", "few filters", "small"],
)
def test_others(form: Form) -> None:
    """Where transforms take longer than the products that they save."""
    assert "exact_winograd" not in strategies(form)


def test_options() -> None:
    """Without it, and where constants must not become larger, all products are computed."""
    form = FORMS[0]
    assert "exact_winograd" not in strategies(form, disable_strategy=("exact_winograd",))
    assert "exact_winograd" not in strategies(form, small_weights=True)


@pytest.mark.parametrize("channels", [2, 114, 116])
def test_largest_sums(tmp_path: Path, channels: int) -> None:
    """Nothing is lost, whatever the signs: where a sum may be too large, another way is taken."""
    suite = suite_for(TARGET, tmp_path)
    for number, zero, weight in ((255, 0, -128), (0, 255, 127), (255, 0, 127), (0, 255, -128)):
        x = np.full((1, channels, 6, 6), number, np.uint8)

        def body(x: SSAValue, zero: int = zero, weight: int = weight) -> list[Any]:
            w = np.full((2, channels, 3, 3), weight, np.int8)
            zeros = [np.array(zero, np.uint8), np.array(0, np.int8)]
            constants = [ConstantOp.of(array).result for array in (w, *zeros)]
            sums = ConvOp(
                x,
                constants[0],
                None,
                constants[1:],
                strides=[1, 1],
                dilations=[1, 1],
                pads_begin=[1, 1],
                pads_end=[1, 1],
                groups=1,
                accumulator=i32,
            )
            scales = ConstantOp.of(np.full((2, 1, 1), 2.0**-18, np.float32)).result
            limits: dict[str, Any] = {"zero": 128, "low": 0, "high": 255, "to": ui8}
            return [RequantizeOp("even", sums.result, scales, None, **limits)]

        add(suite, TARGET, [typed(np.uint8, *x.shape)], body, x, strategy=STRATEGY)
    suite.check()


@pytest.mark.parametrize("size", [2, 4])
def test_matrices(size: int) -> None:
    """Outputs are multiples of the sums."""
    exact, rng = exact_matrices(size, 3), np.random.default_rng(0)
    values = size + 2
    outputs, inputs = (
        np.array(matrix, np.int64) for matrix in (exact.matrices.outputs, exact.matrices.inputs)
    )
    image, taps = rng.integers(-255, 256, (values, values)), rng.integers(-128, 128, (1, 1, 3, 3))
    found = outputs @ (exact_taps(taps, size)[0, 0] * (inputs @ image @ inputs.T)) @ outputs.T
    sums = [
        [int((image[i : i + 3, j : j + 3] * taps).sum()) for j in range(size)] for i in range(size)
    ]
    np.testing.assert_array_equal(found, sums * np.outer(exact.multiples, exact.multiples))


def test_layout() -> None:
    """Weights come back from the bytes of their transforms."""
    weight = integers(np.int8, 6, 5, 3, 3, seed=1)
    pieces = [Piece(2), Piece(3), Piece(0), Piece(1, 2), Piece(1, 1, 2)]
    layout = LayoutAttr.of(pieces, winograd=4, exact=True)
    storage = layout.pack(weight)
    assert storage.dtype == np.int8
    assert storage.shape == (6, 6, 6, 3, 4)
    np.testing.assert_array_equal(layout.unpack(storage, weight.shape), weight)
