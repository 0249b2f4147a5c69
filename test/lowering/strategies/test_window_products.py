"""Convolutions of bytes whose windows are copied a band of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import WindowsOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import f32, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.form import pack_products
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies import window_products
from lowerdeck.lowering.strategies.window_products import WindowProducts
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..programs import module_of, typed  # noqa: TID251  (these are tests)
from ..targets import suite_for  # noqa: TID251  (as above)
from ..test_integer_products import Array, Convolution, integers  # noqa: TID251  (as above)
from ..test_layouts import add  # noqa: TID251  (as above)

TARGETS = ["x86-64-amx", "x86-64-vnni", "x86-64-v4", "x86-64-v3", "aarch64"]

FORMS = [
    Convolution((2, 7, 7, 21), (37, 7, 3, 3), pads=(1, 1), has_bias=True),
    Convolution((1, 9, 7, 16), (5, 9, 2, 3), (np.int8, np.int8), pads=(1, 2), stride=2),
    Convolution((1, 8, 11, 24), (8, 4, 3, 3), (np.uint8, np.int8), groups=2, dilation=2),
    Convolution((1, 5, 7, 6, 9), (6, 5, 2, 1, 3), pads=(1, 1)),
]


@pytest.fixture
def _in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images take bands of three rows."""

    def is_known(taps: Any, rows: Any, counts: Any, _: Any) -> bool:
        return len(taps) > 1 and all(size.value for size in (rows, *counts))

    def bands(counts: Any, *_: Any) -> Iterator[int]:
        yield min(3, counts[0])

    monkeypatch.setattr(pack_products, "can_be_in_bands", is_known)
    monkeypatch.setattr(window_products, "_bands", bands)


def body_of(form: Convolution, *, small: bool) -> Any:
    """A convolution with constant weights, which ends in bytes; small weights fit split sums."""
    _, weight, *others = form.inputs
    if small:
        # But for one of a row, which is not.
        weight = np.asarray(weight // 4, weight.dtype)
        weight[:, 0, 0, 0], weight[:, -1, -1, -1] = 127, -128

    def body(x: SSAValue) -> list[Any]:
        sums = form.body(x, *(ConstantOp.of(array).result for array in (weight, *others)))
        shape = (-1, *[1] * (len(form.input) - 2))
        scales = np.linspace(1e-4, 3e-3, form.weight[0], dtype=np.float32).reshape(shape)
        numbers = [ConstantOp.of(np.asarray(x, np.float32)).result for x in (101, 255, 0)]
        made: list[Any] = [sums, e.CastOp(sums.result, f32)]
        made.append(e.MulOp(made[-1].result, ConstantOp.of(scales).result))
        made.append(e.RoundOp(made[-1].result))
        for op, limit in zip((e.AddOp, e.MinOp, e.MaxOp), numbers, strict=True):
            made.append(op(made[-1].result, limit))
        return [e.CastOp(made[-1].result, ui8)]

    return body


@pytest.mark.usefixtures("_in_bands")
@pytest.mark.parametrize("target", TARGETS)
def test_convolutions(tmp_path: Path, target: str) -> None:
    """Strides, dilations, groups, images and volumes, rows and columns that are left over."""
    suite = suite_for(target, tmp_path)
    for number in range(TARGETS.index(target) % 2, len(FORMS), 2):
        form = FORMS[number]
        x = form.inputs[0]
        types = [typed(x.dtype, *x.shape)]
        body = body_of(form, small=number > 0)
        assert _strategies(target, types, body) == {WindowProducts.name}
        add(suite, target, types, body, x, threads=1 + number // 2, runs_scheduled=number == 1)
    suite.check()


IN_PLACE_FORMS = [
    Convolution((2, 7, 7, 32), (37, 7, 3, 3), pads=(1, 1), has_bias=True),
    Convolution((1, 8, 9, 20), (8, 4, 3, 3), (np.int8, np.int8), groups=2, dilation=2),
    Convolution((1, 5, 6, 5, 16), (6, 5, 2, 1, 3), pads=(1, 1)),
]


@pytest.mark.usefixtures("_in_bands")
@pytest.mark.parametrize("target", ["x86-64-vnni", "x86-64-v4", "x86-64-v3"])
def test_columns_in_place(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that fill the rows of windows are read from the image, whose rows threads share."""

    def no_bands(*_: Any) -> Iterator[int]:
        yield from ()

    monkeypatch.setattr(window_products, "_bands", no_bands)
    suite = suite_for(target, tmp_path)
    for number, form in enumerate(IN_PLACE_FORMS):
        x = form.inputs[0]
        types, body = [typed(x.dtype, *x.shape)], body_of(form, small=False)
        schedules = _schedules(target, types, body)
        assert [schedule.get("in_place") for schedule in schedules] == [1] * len(schedules)
        add(suite, target, types, body, x, threads=1 + number % 2, runs_scheduled=number == 2)
    suite.check()


TILED_FORMS = [
    Convolution((2, 28, 7, 14), (37, 28, 3, 3), pads=(1, 1), has_bias=True),
    Convolution((1, 64, 6, 48), (32, 64, 3, 3), pads=(1, 1)),
    Convolution((1, 80, 9, 9), (16, 40, 3, 2), (np.int8, np.int8), groups=2, dilation=2),
    Convolution((1, 5, 6, 5, 28), (70, 5, 2, 1, 3), pads=(1, 1)),
    Convolution((1, 128, 8, 7), (40, 128, 3, 3), pads=(1, 1)),
]
"""Rows of one tile in pairs and one left over, of three tiles, of nine columns, of short tiles."""


@pytest.mark.usefixtures("_in_bands")
def test_tiles_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of each tap are loaded from the image, whose windows are nowhere else."""

    def none(*_: Any, **__: Any) -> Iterator[Any]:
        yield from ()

    monkeypatch.setattr(window_products, "_bands", none)
    monkeypatch.setattr(window_products, "product_tiles", none)
    target = "x86-64-amx"
    suite = suite_for(target, tmp_path)
    for number, form in enumerate(TILED_FORMS):
        x = form.inputs[0]
        types, body = [typed(x.dtype, *x.shape)], body_of(form, small=False)
        for schedule in _schedules(target, types, body):
            assert (schedule.get("in_place"), schedule.get("tiles")) == (1, 1)
        add(suite, target, types, body, x, threads=1 + number % 2, runs_scheduled=number != 1)
    suite.check()


@pytest.mark.usefixtures("_in_bands")
@pytest.mark.parametrize(
    "form",
    [
        Convolution((1, 64, 9, 40), (32, 64, 3, 3), stride=2),
        Convolution((1, 68, 5, 16), (8, 68, 3, 3), pads=(1, 1)),
        Convolution((1, 64, 5, 17), (8, 64, 3, 3), pads=(1, 1)),
    ],
    ids=["apart", "words", "columns"],
)
def test_tiles_not_in_place(form: Convolution) -> None:
    """Of windows that lie apart, and of channels or rows that do not fill equal tiles."""
    x = form.inputs[0]
    schedules = _schedules("x86-64-amx", [typed(x.dtype, *x.shape)], body_of(form, small=False))
    assert schedules
    assert not any(each.get("in_place") and each.get("tiles") for each in schedules)


def _strategies(target: str, types: Any, body: Any) -> set[str]:
    """Those of the products."""
    return {schedule.strategy for schedule in _schedules(target, types, body)}


def _schedules(target: str, types: Any, body: Any) -> list[Schedule]:
    """Those of the products."""
    module, context = (
        module_of(types, body),
        LowerdeckContext(options=CompileOptions(target=target)),
    )
    run_to_phase(context, module, "kernels", after="optimized")
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    return [
        kernel.schedule.data
        for kernel in kernels
        if kernel.schedule is not None and kernel.sym_name.data.startswith("matmul")
    ]


def test_interpreter() -> None:
    """Element by element, by the map of indices."""
    x = integers(np.int32, 2, 3, 5, 7)

    def body(x: SSAValue) -> WindowsOp:
        return WindowsOp(x, [2, 3], [2, 1], [1, 2])

    module = module_of([typed(x.dtype, *x.shape)], body)
    found = cast(Array, Interpreter().call(find_function(module, "main"), [x])[0])
    (op,) = (op for op in module.walk() if isinstance(op, WindowsOp))
    assert found.shape == (2, 18, 6)
    for at in np.ndindex(2, 18, 6):
        place = [index.value for index in op.operand_index(0, [*map(Expr.const, at)])]
        assert found[at] == x[tuple(place)]
