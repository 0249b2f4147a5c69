"""
Products of narrow integers with zero points, added up in i32: the interpreter and the C of every
target against sums written out in numpy.
"""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.types import dims_of, f32, i8, i32, i64, ui8
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import some  # noqa: TID251  (these are tests)
from .programs import Suite, module_of, symbol, typed  # noqa: TID251  (these are tests)
from .targets import EVERY_TARGET, suite_for, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add  # noqa: TID251  (as above)

Array = NDArray[Any]
Shape = tuple[int, ...]


def integers(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """All numbers of a type."""
    info = np.iinfo(dtype)
    return np.asarray(
        np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)
    )


def wrapped(exact: Array) -> Array:
    """Exact numbers as i32, modulo 2^32."""
    return (exact % (1 << 32)).astype(np.uint32).view(np.int32)


@dataclass(frozen=True)
class Product:
    """A matrix product: which factors and zero points there are."""

    left: Shape
    right: Shape
    dtypes: tuple[Any, Any] = (np.uint8, np.int8)
    zeros: tuple[Shape, Shape] | None = ((), ())
    is_open: bool = False

    @property
    def inputs(self) -> list[Array]:
        """The factors, and their zero points."""
        shapes = [self.left, self.right, *(self.zeros or ())]
        return [integers(self.dtypes[k % 2], *shape, seed=k) for k, shape in enumerate(shapes)]

    def body(self, x: SSAValue, w: SSAValue, *zeros: SSAValue) -> MatmulOp:
        """The op."""
        return MatmulOp(x, w, zeros, accumulator=i32)

    def expected(self) -> Array:
        """Summed with Python's integers."""
        x, w, *zeros = (array.astype(object) for array in self.inputs)
        if zeros:
            x, w = x - zeros[0], w - zeros[1]
        return wrapped(np.matmul(x, w)) if x.shape[-1] else np.zeros(self.shape, np.int32)

    @property
    def shape(self) -> Shape:
        """Of the result."""
        batch = np.broadcast_shapes(self.left[:-2], self.right[:-2])
        return (*batch, self.left[-2], self.right[-1])


PRODUCTS = [
    Product((1, 1), (1, 1)),
    Product((5, 33), (33, 19), (np.int8, np.int8)),
    Product((17, 40), (40, 48), (np.uint8, np.uint8), ((), (48,))),
    Product((3, 9), (9, 70), (np.int8, np.uint8), ((3, 1), (1, 70))),
    Product((4, 7), (7, 35), zeros=None),
    Product((1, 21), (21, 43), zeros=None),
    Product((3, 8), (8, 70), (np.int8, np.int8), None),
    Product((1, 6), (6, 16), (np.int8, np.int8)),
    Product((2, 5, 9), (2, 9, 20), (np.int8, np.int8), ((5, 1), (1,))),
    Product((2, 1, 4, 6), (3, 6, 33), zeros=((2, 1, 1, 1), (3, 1, 33))),
    Product((2, 3, 9), (2, 9, 21), zeros=((2, 3, 1), (9, 1))),
    Product((3, 5), (5, 18), (np.int16, np.int16)),
    Product((3, 5), (5, 18), (np.uint16, np.int8), ((3, 5), ())),
    Product((3, 5), (5, 18), (np.int32, np.int8)),
    Product((0, 5), (5, 18)),
    Product((3, 0), (0, 18)),
    Product((6, 11), (11, 37), is_open=True, zeros=((6, 1), (37,))),
]


@dataclass(frozen=True)
class Convolution:
    """A convolution: which factors and zero points there are, and its windows."""

    input: Shape
    weight: Shape
    dtypes: tuple[Any, Any] = (np.uint8, np.int8)
    zeros: tuple[Shape, Shape] | None = ((), ())
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    groups: int = 1
    has_bias: bool = False
    is_open: bool = False

    @property
    def inputs(self) -> list[Array]:
        """Input, weight, the bias if there is one, and zero points."""
        shapes = [self.input, self.weight, *(self.zeros or ())]
        found = [integers(self.dtypes[k % 2], *shape, seed=k) for k, shape in enumerate(shapes)]
        if self.has_bias:
            found.insert(2, integers(np.int32, self.weight[0], seed=7))
        return found

    def body(self, x: SSAValue, w: SSAValue, *parameters: SSAValue) -> ConvOp:
        """The op."""
        rank = len(self.input) - 2
        bias, zeros = (parameters[0], parameters[1:]) if self.has_bias else (None, parameters)
        return ConvOp(
            x,
            w,
            bias,
            zeros,
            strides=[self.stride] * rank,
            dilations=[self.dilation] * rank,
            pads_begin=[self.pads[0]] * rank,
            pads_end=[self.pads[1]] * rank,
            groups=self.groups,
            accumulator=i32,
        )

    def expected(self) -> Array:
        """One tap after the other; what is beyond the image is zero once it is centered."""
        x, w, *parameters = (array.astype(np.int64) for array in self.inputs)
        bias = parameters.pop(0) if self.has_bias else np.zeros(w.shape[0], np.int64)
        if parameters:
            x, w = x - parameters[0], w - parameters[1]
        rank = x.ndim - 2
        x = np.pad(x, [(0, 0), (0, 0), *[self.pads] * rank])
        reach = [(k - 1) * self.dilation + 1 for k in w.shape[2:]]
        sizes = [(n - r) // self.stride + 1 for n, r in zip(x.shape[2:], reach, strict=True)]
        total = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
        depth, filters = w.shape[1], w.shape[0] // self.groups
        for tap in itertools.product(*map(range, w.shape[2:])):
            where = tuple(
                slice(k * self.dilation, k * self.dilation + (n - 1) * self.stride + 1, self.stride)
                for k, n in zip(tap, sizes, strict=True)
            )
            for m in range(w.shape[0]):
                first = m // filters * depth
                for c in range(depth):
                    total[:, m] += x[(slice(None), first + c, *where)] * w[(m, c, *tap)]
        return wrapped(total + bias.reshape(-1, *[1] * rank))


CONVOLUTIONS = [
    Convolution((2, 3, 7, 20), (4, 3, 3, 3), pads=(1, 1)),
    Convolution((1, 3, 7, 9), (4, 3, 3, 3), (np.int8, np.int8), pads=(1, 2), stride=2),
    Convolution(
        (1, 4, 6, 9),
        (6, 2, 3, 2),
        (np.uint8, np.uint8),
        ((), (6, 1, 1, 1)),
        groups=2,
        has_bias=True,
    ),
    Convolution((1, 5, 6, 18), (5, 1, 3, 3), zeros=((), (5, 1, 1, 1)), groups=5, pads=(1, 1)),
    Convolution((2, 3, 19), (4, 3, 3), pads=(2, 0), dilation=2),
    Convolution((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), (np.int8, np.uint8), pads=(1, 0), has_bias=True),
    Convolution((1, 3, 5, 17), (4, 3, 1, 1), zeros=None, has_bias=True),
    Convolution((1, 3, 5, 17), (4, 3, 3, 3), (np.int16, np.int8), pads=(1, 1)),
    Convolution((1, 3, 5, 6), (4, 3, 3, 3), zeros=((3, 1, 1), (4, 3, 1, 1)), pads=(1, 1)),
    Convolution((0, 3, 5, 6), (4, 3, 3, 3)),
    Convolution((3, 4, 5, 6), (6, 2, 3, 3), zeros=((3, 1, 1, 1), ()), groups=2, pads=(1, 2)),
    Convolution((2, 5, 9), (5, 1, 3), (np.int8, np.int8), ((2, 1, 1), (5, 1, 1)), groups=5),
    Convolution(
        (2, 6, 6, 19),
        (8, 3, 3, 2),
        zeros=((1, 1, 1), (8, 1, 1, 1)),
        groups=2,
        pads=(2, 1),
        has_bias=True,
    ),
    Convolution((2, 4, 9, 7), (5, 4, 1, 1), (np.int8, np.int8), stride=2, dilation=3),
    Convolution((1, 7, 7, 7), (6, 7, 3, 3), (np.int8, np.int8), None, pads=(1, 1), has_bias=True),
    Convolution((1, 9, 5, 5), (2, 9, 1, 1), has_bias=True),
    Convolution((1, 4, 7, 9), (6, 2, 3, 3), zeros=None, groups=2, pads=(1, 1), stride=2),
    Convolution((2, 4, 21), (8, 1, 5), (np.int8, np.uint8), groups=4, pads=(0, 2), has_bias=True),
    Convolution((1, 5, 4, 5, 6), (6, 5, 2, 1, 3), (np.uint8, np.uint8), pads=(1, 1)),
    Convolution((2, 3, 7, 20), (4, 3, 3, 3), pads=(1, 1), is_open=True),
]

FORMS: Sequence[Product | Convolution] = (*PRODUCTS, *CONVOLUTIONS)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_interpreter(form: Product | Convolution) -> None:
    inputs = form.inputs
    module = module_of([typed(x.dtype, *x.shape) for x in inputs], form.body)
    (found,) = (cast(Array, x) for x in Interpreter().call(find_function(module, "main"), inputs))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, form.expected())


@pytest.mark.parametrize("target", [*EVERY_TARGET, "x86-64-vnni", "x86-64-amx"])
def test_c(tmp_path: Path, target: str) -> None:
    """With everything from outside, and with weights and zero points known before."""
    make = suite_in_turn if target in EVERY_TARGET else suite_for
    suite = make(target, tmp_path)
    for form in FORMS if target in EVERY_TARGET else some(FORMS, 3):
        inputs = form.inputs
        add(suite, target, _types(form, inputs), form.body, *inputs)
        if not form.is_open:
            add(suite, target, _types(form, inputs[:1]), _constant_body(form), inputs[0])
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-amx", "x86-64-vnni", "x86-64-v3", "c99"])
def test_largest_sums(tmp_path: Path, target: str) -> None:
    """Nothing saturates: all factors are at the ends of their types, and zero points at others."""
    suite = suite_for(target, tmp_path, share=2)
    cases = [
        (np.uint8, 255, 0, -128, 0),
        (np.uint8, 0, 255, 127, -128),
        (np.int8, -128, 127, 127, 0),
        (np.int8, 127, -128, -128, 127),
    ]
    for dtype, number, zero, weight, other in cases:
        w = np.full((70, 18), weight, np.int8)
        constants = [w, np.array(zero, dtype), np.array(other, np.int8)]

        def body(x: SSAValue, constants: list[Array] = constants) -> MatmulOp:
            w, *zeros = (ConstantOp.of(array).result for array in constants)
            return MatmulOp(x, w, zeros, accumulator=i32)

        for rows in (1, 4):
            x = np.full((rows, 70), number, dtype)
            add(suite, target, [typed(dtype, rows, 70)], body, x)
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-amx", "x86-64-vnni", "x86-64-v3", "c99"])
def test_quantized_again(tmp_path: Path, target: str) -> None:
    """What is behind a product ends in bytes, also where it is one of few filters, or no vector."""
    suite = suite_for(target, tmp_path, share=2)
    forms = [
        Product((5, 9), (9, 23)),
        Product((2, 1, 30), (30, 16)),
        Convolution((2, 3, 5, 7), (6, 3, 3, 3), pads=(1, 1), has_bias=True),
        Convolution((1, 4, 6, 9), (4, 1, 3, 3), groups=4, pads=(1, 1), has_bias=True),
        Convolution((1, 4, 7, 9), (4, 1, 3, 3), groups=4, pads=(1, 0), stride=2),
        Convolution((1, 6, 9, 5), (6, 1, 3, 3), groups=6, pads=(1, 1)),
        Convolution((1, 7, 9, 5), (7, 1, 3, 3), groups=7, pads=(1, 1)),
        Convolution((2, 5, 5, 14), (5, 1, 3, 3), groups=5, pads=(1, 1)),
    ]
    places = np.arange(9 * 5).reshape(9, 5).astype(np.float32)
    for form in forms:
        # What is added may be another number at each place, and bytes then depend on it.
        added = places if form.inputs[0].shape[1:] == (6, 9, 5) else np.float32(101)

        def body(x: SSAValue, form: Any = form, added: Any = added) -> list[Any]:
            sums = _constant_body(form)(x)
            rank = len(dims_of(sums.result)) - 2
            size = dims_of(sums.result)[1 if isinstance(form, Convolution) else -1].value or 0
            shape = (size, *[1] * rank) if isinstance(form, Convolution) else (size,)
            scales = np.linspace(0.001, 0.003, size, dtype=np.float32).reshape(shape)
            numbers = [added, np.float32(255), np.float32(0)]
            scale, *limits = (ConstantOp.of(np.asarray(x)) for x in (scales, *numbers))
            made = [sums, e.CastOp(sums.result, f32)]
            made.append(e.MulOp(made[-1].result, scale.result))
            made.append(e.RoundOp(made[-1].result))
            for op, limit in zip((e.AddOp, e.MinOp, e.MaxOp), limits, strict=True):
                made.append(op(made[-1].result, limit.result))
            return [e.CastOp(made[-1].result, ui8)]

        x = form.inputs[0]
        add(suite, target, [typed(x.dtype, *x.shape)], body, x)
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-amx", "x86-64-vnni", "x86-64-v3", "c99"])
def test_residuals(tmp_path: Path, target: str) -> None:
    """
    Bytes of two convolutions of one input, and of other images, are added and quantized behind the
    first one: with columns left over, in bands of rows, for several images and in groups.
    """
    suite = suite_for(target, tmp_path, share=2)
    forms = [
        Convolution((1, 8, 7, 7), (37, 8, 1, 1), has_bias=True),
        Convolution((1, 64, 7, 7), (256, 64, 1, 1)),
        Convolution((2, 6, 5, 8), (4, 6, 3, 3), pads=(1, 1)),
        Convolution((2, 4, 9, 5), (8, 2, 3, 3), groups=2, pads=(1, 1), stride=2),
    ]
    for form in forms:

        def body(x: SSAValue, y: SSAValue, form: Any = form) -> list[Any]:
            made: list[Any] = []
            total = ConstantOp.of(np.asarray(5, np.int32)).result
            for number, source in enumerate((x, x, y)):
                value = source
                if number < 2:
                    sums = _constant_body(form)(x)
                    scale = ConstantOp.of(np.asarray(0.003 - 0.001 * number, np.float32))
                    limits: dict[str, Any] = {"zero": 99, "low": 0, "high": 255, "to": ui8}
                    again = RequantizeOp("even", sums.result, scale.result, None, **limits)
                    made += [sums, again]
                    value = again.result
                factor = ConstantOp.of(np.asarray(1000 + 7 * number, np.int32))
                made.append(e.CastOp(value, i32))
                made.append(e.MulOp(made[-1].result, factor.result))
                total = e.AddOp(total, made[-1].result).result
            scale = ConstantOp.of(np.asarray(4e-4, np.float32))
            limits = {"zero": -3, "low": -128, "high": 127, "to": i8}
            return [RequantizeOp("even", total, scale.result, None, **limits)]

        x = form.inputs[0]
        y = integers(np.uint8, *form.expected().shape, seed=5)
        types = [typed(x.dtype, *x.shape), typed(y.dtype, *y.shape)]
        # Two threads share what is large enough.
        add(suite, target, types, body, x, y, threads=2 if form.weight[0] > 99 else 1)
    suite.check()


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_extremes_in_another_scale(tmp_path: Path, target: str) -> None:
    """
    The largest integers and halves of either sign, in as many lanes as there are; exponents of one
    sign, where no loop shifts the other way, and of both, constant and not.
    """
    around = [sign * (1 << n) + d for n in range(32) for d in (-1, 0, 1) for sign in (1, -1)]
    limits = np.iinfo(np.int32)
    x = np.array([n for n in around if limits.min <= n <= limits.max], np.int32).reshape(-1, 1)
    multipliers = [1 << 30, limits.max, 1 << 30, 0, 1234567891, 3 << 29, limits.max, 1 << 30]
    suite = suite_for(target, tmp_path)
    for exponents in ([0, -1, -2, -5, -31, -7, -30, -3], [0, 1, 2, 5, 30, 0, 1, 3], [-1, 3] * 4):
        factors = [np.array(part, np.int32) for part in (multipliers, exponents)]

        def body(x: SSAValue, *rest: SSAValue, factors: list[Array] = factors) -> list[Any]:
            known = [ConstantOp.of(array).result for array in factors]
            given = [known, rest] if rest else [known]
            kinds = [
                (i32, 3, limits.min, limits.max - 9),
                (i8, -7, -128, 127),
                (ui8, 255, 9, 255),
            ]
            return [
                RequantizeOp("double", x, factor, exponent, zero=zero, low=low, high=high, to=to)
                for factor, exponent in given
                for to, zero, low, high in kinds
            ]

        inputs = [x, *factors] if exponents[1] == 3 else [x]
        add(suite, target, [typed(np.int32, *array.shape) for array in inputs], body, *inputs)
    reals = np.array([0.5, 1.5, 2.0**-31, 0.00390625, 1e-3, -0.5, 3.0, 1.0], np.float32)

    def even(x: SSAValue) -> list[Any]:
        factor = ConstantOp.of(reals).result
        kinds = [(i32, 77, -(1 << 15), 1 << 15), (i8, -7, -128, 127), (ui8, 255, 9, 255)]
        return [
            RequantizeOp("even", x, factor, None, zero=zero, low=low, high=high, to=to)
            for to, zero, low, high in kinds
        ]

    add(suite, target, [typed(np.int32, *x.shape)], even, x)
    below = np.nextafter(0.5, 0)  # which is no half, also not after an addition
    finer = np.array([0.5, 1.5, 2.0**-31, below, -0.5, 3.0, 1e300, np.nan])

    def real(x: SSAValue) -> list[Any]:
        factor = ConstantOp.of(finer).result
        kinds = [(i32, 77, limits.min, limits.max), (i8, -7, -128, 127), (ui8, 255, 9, 255)]
        return [
            RequantizeOp("real", number, factor, None, zero=zero, low=low, high=high, to=to)
            for number in (x, e.CastOp(x, i64).result)
            for to, zero, low, high in kinds
        ]

    add(suite, target, [typed(np.int32, *x.shape)], real, x)
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v4", "c99"])
def test_bytes_between_floats(tmp_path: Path, target: str) -> None:
    """Floats that are rounded to bytes and back behind a convolution leave it in channel blocks."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((18, 16, 3, 3)).astype(np.float32)
    x = rng.standard_normal((1, 16, 6, 9)).astype(np.float32)

    def body(x: SSAValue) -> list[Any]:
        ones = [1, 1]
        window: dict[str, Any] = {"pads_begin": ones, "pads_end": ones, "strides": ones}
        made: list[Any] = [ConvOp(x, ConstantOp.of(weight).result, dilations=[2, 1], **window)]
        for op, number in ((e.MaxOp, -99), (e.MinOp, 99)):
            made.append(op(made[-1].result, ConstantOp.of(np.array(number, np.float32)).result))
        made.append(e.RoundOp(made[-1].result))
        for to in (i32, f32):
            made.append(e.CastOp(made[-1].result, to))
        return [made[-1]]

    module = module_of([typed(np.float32, *x.shape)], body)
    context = LowerdeckContext(options=CompileOptions(target=target))
    run_to_phase(context, module, "kernels", after="optimized")
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    assert (target == "c99") or all(op.schedule is not None for op in kernels)
    suite = suite_for(target, tmp_path)
    add(suite, target, [typed(np.float32, *x.shape)], body, x)
    suite.check()


def _constant_body(form: Product | Convolution) -> Any:
    """All but the first input as constants."""
    return lambda x: form.body(x, *(ConstantOp.of(array).result for array in form.inputs[1:]))


def _types(form: Product | Convolution, inputs: Sequence[Array]) -> list[Any]:
    """Static types; in open ones the rows or images, and what the factors have in common."""
    types = [typed(x.dtype, *x.shape) for x in inputs]
    if form.is_open and isinstance(form, Product):
        m, k = symbol("m"), symbol("k")
        types[:2] = [typed(x.dtype, *dims) for x, dims in zip(inputs, ((m, k), (k, 37)))]
        types[2] = typed(inputs[2].dtype, symbol("rows"), 1)
    elif form.is_open:
        types[0] = typed(inputs[0].dtype, symbol("n"), 3, symbol("h"), symbol("w"))
    return types


@pytest.mark.parametrize("narrow", [ml_dtypes.bfloat16, np.float16])
def test_floats_added_up_in_f32(tmp_path: Path, narrow: Any) -> None:
    """The products of half precision are exact in f32, and so are these sums."""
    rng = np.random.default_rng(0)
    x = rng.integers(-8, 9, (1, 4, 5, 18)).astype(narrow) / narrow(16)
    w = rng.integers(-8, 9, (3, 4, 2, 2)).astype(narrow) / narrow(16)
    window: dict[str, Any] = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "accumulator": f32,
    }
    suite = Suite(tmp_path)
    suite.on(lambda x, w: ConvOp(x, w, **window), x, w, ulps=0)
    turned = np.ascontiguousarray(w.transpose(1, 0, 2, 3))
    extra: dict[str, Any] = {**window, "output_padding": [0, 0]}
    suite.on(lambda x, w: ConvTransposeOp(x, w, **extra), x, turned, ulps=0)
    rows, columns = x.reshape(20, 18), np.resize(w, (18, 4))
    suite.on(lambda x, w: MatmulOp(x, w, accumulator=f32), rows, columns, ulps=0)
    suite.check()
    found = suite.programs[0].expected[0]
    taps = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (2, 2), (2, 3))
    exact = np.einsum("nchwij,mcij->nmhw", taps, w.astype(np.float64))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, exact.astype(np.float32))
