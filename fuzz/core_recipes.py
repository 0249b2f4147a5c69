"""
What random programs of `core` are made of: every op of the dialect.

Which operands and properties an op has is read off its definition, and what is drawn for them is
decided by their names. Only ops whose properties depend on one another, or that fail at run time
for most draws, have a recipe of their own. Those keep indices inside, and casts within what fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SSAValue

from fuzz.core_programs import Builder, Recipe, Unfit, recipe, sizes_of
from lowerdeck.dialects.core import Core
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.base import CoreOp, int_array
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, IotaOp
from lowerdeck.dialects.core.enums import PadMode, Rounding, ScatterReduction
from lowerdeck.dialects.core.quantize import DequantizeOp, PairHalvesOp, RequantizeOp
from lowerdeck.dialects.core.reduce import CumulativeOp, ReduceOp
from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ChannelShuffleOp,
    ConcatOp,
    CountNonzeroOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    NonzeroOp,
    PadOp,
    ReshapeOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceOp,
    SplitOp,
    TopKOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
    tensor,
    ui8,
)
from lowerdeck.dialects.dims import Expr, ExprLike, constants, product

# Ops that are made from their definitions

_OPERANDS: Mapping[str, Callable[[Builder, SSAValue], SSAValue]] = {
    "input": lambda b, x: x,
    "lhs": lambda b, x: x,
    "on_true": lambda b, x: x,
    "rhs": Builder.partner,
    "on_false": Builder.partner,
    "condition": lambda b, x: b.partner(x, i1),
}
"""By name, what an operand is beside the value that it is about."""


def _permutation(builder: Builder, value: SSAValue) -> Attribute:
    axes = list(range(rank_of(value)))
    builder.random.shuffle(axes)
    return int_array(axes)


_PROPERTIES: Mapping[str, Callable[[Builder, SSAValue], Attribute]] = {
    "axis": lambda b, x: IntAttr(b.axis(x)),
    "axes": lambda b, x: int_array([axis for axis in range(rank_of(x)) if b.chance(5)]),
    "permutation": _permutation,
}

_ARITHMETIC = tuple(
    cls for cls in (*e.UNARY, *e.BINARY) if not issubclass(cls, e.BitwiseOp | e.NotOp)
)
"""Ops of numbers, which truth values are not."""


def _choices(rule: Any) -> list[Attribute]:
    """The values of a property that has few: an enumeration, or a truth value."""
    truths = [BoolAttr.from_bool(value) for value in (False, True)]
    if rule.default_value in truths:
        return list(truths)
    attribute = getattr(rule.constr, "attr", None)
    if isinstance(attribute, type) and issubclass(attribute, EnumAttribute):
        made = cast("Any", attribute)
        return [made(value) for value in made.enum_type]
    return []


def is_general(cls: type[Operation]) -> bool:
    """True if the parts of an op can be drawn one by one."""
    if not issubclass(cls, CoreOp) or cls is PadOp:
        return False
    definition = cls.get_irdl_definition()
    return (
        bool(definition.operands and definition.results)
        and all(name in _OPERANDS for name, _ in definition.operands)
        and all(name in _PROPERTIES or _choices(r) for name, r in definition.properties.items())
    )


def _is_meaningless(op: CoreOp) -> bool:
    """True for arithmetic of truth values, bits of floats, and signed shifts to the right."""
    element = element_type(op.operands[-1])
    if isinstance(op, ReduceOp | CumulativeOp):
        return element == i1 and op.kind.data in ("sum", "prod")
    return (
        (isinstance(op, _ARITHMETIC) and element == i1)
        or (isinstance(op, e.NotOp) and is_float(element))
        or (isinstance(op, e.ShrOp) and element != ui8)
    )


def _general(cls: type[CoreOp]) -> Recipe:
    definition = cls.get_irdl_definition()

    def make(builder: Builder) -> object:
        value = builder.pick()
        operands = [_OPERANDS[name](builder, value) for name, _ in definition.operands]
        properties: dict[str, Attribute] = {}
        for name, rule in definition.properties.items():
            choices = _choices(rule)
            properties[name] = (
                builder.random.choice(choices) if choices else _PROPERTIES[name](builder, value)
            )
        types = [tensor(i1, [])] * len(definition.results)
        op = cls.create(operands=operands, properties=properties, result_types=types)
        op.refine()
        if _is_meaningless(op):
            raise Unfit
        return builder.add(op)

    return make


_OFTEN = (e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.MaxOp, e.MinOp, TransposeOp, ReduceOp)

for _cls in Core.operations:
    if is_general(_cls) and issubclass(_cls, CoreOp):
        # Functions of one element have one form; other ops have many.
        _weight = 12 if _cls in _OFTEN else 2 if issubclass(_cls, e.UnaryOp) else 4
        recipe(_cls, weight=_weight)(_general(_cls))


@recipe(e.CastOp, weight=6)
def _cast(b: Builder) -> None:
    """What does not fit from a float into an integer is unspecified, and left out."""
    x = b.pick()
    to = b.random.choice((*b.style.elements, i1, i8, i32, i64, f32, f64))
    if is_float(element_type(x)) and to != i1 and not is_float(to):
        hundred = b.of(100, element_type(x))
        fits = b.add(e.CompareOp("lt", b.add(e.AbsOp(x)).result, hundred)).result
        x = b.add(e.SelectOp(fits, x, b.of(0, element_type(x)))).result
    b.add(e.CastOp(x, to))


@recipe(e.BitcastOp)
def _bitcast(b: Builder) -> None:
    """Of integers: the last bits of a float that was computed are not certain, nor is its NaN."""
    x = b.pick(i8, ui8, i32, i64)
    kinds = (i8, ui8), (i32, f32), (i64, f64)
    b.add(e.BitcastOp(x, b.random.choice(next(kind for kind in kinds if element_type(x) in kind))))


@recipe(RequantizeOp)
def _requantize(b: Builder) -> None:
    """Factors of all channels or of each; exponents for which shifts stay within the width."""
    rounding = b.random.choice(list(Rounding))
    is_narrow = rounding in (Rounding.DOUBLE, Rounding.EVEN)
    x, wide = b.pick(i8, i32), i32 if is_narrow or b.chance(5) else i64
    x = x if element_type(x) == wide else b.add(e.CastOp(x, wide)).result
    dims = [dim.value for dim in dims_of(x)]
    channels = [size for size in dims[-1:] if size is not None and b.chance(5)]
    exponent = None
    if rounding in (Rounding.REAL, Rounding.EVEN):
        factors = [b.random.uniform(-2, 2) for _ in range(math.prod(channels))]
        multiplier = b.of(np.reshape(factors, channels), f64 if rounding is Rounding.REAL else f32)
    else:
        factors = [b.random.randint(1 << 30, (1 << 31) - 1) for _ in range(math.prod(channels))]
        multiplier = b.of(np.reshape(factors, channels), i32)
        exponent = b.of(b.random.randint(-8, 3), i32)
    low, high = b.random.choice([(-128, 127), (0, 255), (-(1 << 15), (1 << 15) - 1), (-7, 9)])
    to = b.random.choice([each for each in (i8, ui8, i32) if _holds(each, low, high)])
    zero = b.random.randint(low, high)
    b.add(RequantizeOp(rounding, x, multiplier, exponent, zero=zero, low=low, high=high, to=to))


@recipe(PairHalvesOp)
def _pair_halves(b: Builder) -> None:
    """Of equal shapes, and of one that is repeated."""
    x = b.pick(f32)
    y = b.pick(f32, rank=(0,)) if b.chance(3) else x
    b.add(PairHalvesOp(x, y))


@recipe(DequantizeOp)
def _dequantize(b: Builder) -> None:
    """Halves of bytes that are constants, as those of weights are, or computed, as rows are."""
    codes = b.pick(ui8, rank=(1, 2, 3))
    if b.chance(5):
        codes = b.constant(ui8, [b.random.randint(1, 9) for _ in range(b.random.randint(1, 2))])
    dims = list(dims_of(codes))
    axis = b.random.randrange(len(dims))
    if (pairs := dims[axis].value) is None or pairs == 0:
        return
    size, block = 2 * pairs - b.random.randint(0, 1), b.random.choice((1, 2, 3, 8))
    dims[axis] = Expr.const(-(-size // block))
    if (shape := constants(dims)) is None:
        return
    scale, zero = b.constant(b.random.choice((f32, bf16, f16)), shape), None
    if b.chance(5):
        zero = b.constant(ui8, shape)
    b.add(DequantizeOp(codes, scale, zero, axis=axis, size=size, block=block))


def _holds(element: Attribute, low: int, high: int) -> bool:
    limits = np.iinfo(numpy_dtype(element))
    return bool(limits.min <= low and high <= limits.max)


@recipe("repetition", weight=8)
def _repeat(b: Builder) -> None:
    """An op that is there already, or with its operands in the other order."""
    pure = [op for op in b.block.ops if isinstance(op, CoreOp) and op.results]
    if not pure:
        raise Unfit
    op = b.random.choice(pure[-8:])
    if isinstance(op, e.BinaryOp) and b.chance(5):
        b.add(type(op)(op.rhs, op.lhs))
    else:
        b.add(op.clone())


@recipe(BindSymbolsOp, weight=4)
def _symbol(b: Builder) -> None:
    """A size that is data, or that folding may find."""
    if b.chance(5):
        number = b.add(FromDimsOp([b.dim()], [])).result
    else:
        x = b.pick(i64, i32)
        number = b.add(ReduceOp("max", x, list(range(rank_of(x))))).result
    size = b.add(e.ModOp(number, b.of(4, element_type(number)))).result
    if 0 in [d.value for d in dims_of(number)]:
        raise Unfit
    b.add(BindSymbolsOp(size, [name := b.fresh("u")]))
    iota = b.add(IotaOp([Expr.symbol(name), b.dim()], b.below(2))).result
    b.add(e.AddOp(iota, b.of(b.random.randint(0, 2))))


@recipe(NonzeroOp)
def _nonzero(b: Builder) -> None:
    x = b.pick()
    b.add(BindSymbolsOp(b.add(CountNonzeroOp(x)).result, [name := b.fresh("u")]))
    b.add(NonzeroOp(x, Expr.symbol(name)))


@recipe(FromDimsOp)
def _from_dims(b: Builder) -> None:
    dims = dims_of(b.pick())
    if dims and b.chance(3):
        b.add(FromDimsOp([dims[b.below(len(dims))]], []))
    else:
        b.add(FromDimsOp(dims))


@recipe(IotaOp)
def _iota(b: Builder) -> None:
    dims = dims_of(b.pick()) if b.chance(5) else b.shape()
    b.add(IotaOp(dims, b.below(len(dims))))


# Movement


@recipe(ReshapeOp, weight=12)
def _reshape(b: Builder) -> None:
    x = b.pick()
    dims: list[ExprLike] = list(dims_of(x))
    for _ in range(b.random.randint(1, 3)):
        at = b.random.randint(0, len(dims))
        match b.random.choice(("merge", "insert", "drop", "divide")):
            case "insert":
                dims.insert(at, 1)
            case "merge" if at + 1 < len(dims):
                dims[at : at + 2] = [Expr.of(dims[at]) * dims[at + 1]]
            case "drop" if at < len(dims) and dims[at] == 1:
                del dims[at]
            case "divide" if at < len(dims) and not (Expr.of(dims[at]).value or 1) % 2:
                dims[at : at + 1] = [2, Expr.of(dims[at]) // 2]
            case _:
                pass
    b.add(ReshapeOp(x, dims))


@recipe(BroadcastOp)
def _broadcast(b: Builder) -> None:
    x = b.pick()
    dims: list[ExprLike] = [b.dim() if dim == 1 else dim for dim in dims_of(x)]
    b.add(BroadcastOp(x, [*([b.dim()] if b.chance(4) else []), *dims]))


@recipe(SliceOp, weight=12)
def _slice(b: Builder) -> None:
    x = b.pick()
    starts: list[ExprLike] = []
    sizes: list[ExprLike] = []
    steps: list[int] = []
    for dim in dims_of(x):
        step = b.random.choice((1, 1, 1, 2, -1, -2))
        if (count := dim.value) is None or b.chance(3):
            step = 1 if step > 0 else -1
            start, size = (0, dim) if step > 0 else (dim - 1, dim)
        else:
            start = b.random.randint(0, count)
            most = -(-(count - start) // step) if step > 0 else start // -step + 1
            size = b.random.randint(0, most if start < count else 0)
        starts.append(start)
        sizes.append(size)
        steps.append(step)
    b.add(SliceOp(x, starts, sizes, steps))


@recipe(PadOp, weight=6)
def _pad(b: Builder) -> None:
    x = b.pick()
    mode = b.random.choice((PadMode.CONSTANT, *PadMode))
    amounts: list[list[int]] = []
    for dim in dims_of(x):
        # Reflections need one more element than they add.
        most = 2 if mode is PadMode.CONSTANT else min(dim.value or 0, 3) - 1
        amounts.append([b.random.randint(0, max(most, 0)) for _ in range(2)])
    value = (
        b.partner(b.of(0, element_type(x))) if mode is PadMode.CONSTANT and b.chance(5) else None
    )
    b.add(PadOp(x, [a for a, _ in amounts], [a for _, a in amounts], value, mode))


@recipe(ConcatOp, weight=8)
def _concat(b: Builder) -> None:
    x = b.pick()
    axis, inputs = b.axis(x), [x]
    for _ in range(b.random.randint(0, 2)):
        dims = dims_of(x)
        if b.chance(3) and None not in [d.value for k, d in enumerate(dims) if k != axis]:
            shape = [b.dim() if k == axis else d.value or 0 for k, d in enumerate(dims)]
            inputs.append(b.constant(element_type(x), shape))
        else:
            inputs.append(b.pick(element_type(x), rank=[len(dims)]))
    b.random.shuffle(inputs)
    b.add(ConcatOp(inputs, axis))


@recipe(SplitOp, weight=6)
def _split(b: Builder) -> None:
    x = b.pick()
    axis = b.axis(x)
    if (size := dims_of(x)[axis].value) is None:
        raise Unfit
    cuts = sorted(b.random.randint(0, size) for _ in range(b.random.randint(0, 3)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
    parts = list(b.add(SplitOp(x, axis, sizes)).parts)
    if b.chance(3):
        b.add(ConcatOp(parts if b.chance(5) else parts[::-1], axis))


@recipe(ChannelShuffleOp)
def _channel_shuffle(b: Builder) -> None:
    x = b.pick(rank=[2, 3, 4])
    b.add(ChannelShuffleOp(x, b.divisor(dims_of(x)[1].value)))


# Indices


def _indices(b: Builder, size: int | None, shape: list[int]) -> SSAValue:
    """Indices that are inside of a dimension, constant or computed."""
    if not size:
        raise Unfit
    element = b.random.choice((i64, i32))
    if b.chance(3):
        return b.add(e.ModOp(b.pick(element), b.of(size, element))).result
    rng = np.random.default_rng(b.random.getrandbits(16))
    return b.of(rng.integers(-size, size, shape), element)


@recipe(GatherOp, weight=8)
def _gather(b: Builder) -> None:
    x = b.pick()
    axis = b.axis(x)
    shape = [b.dim() for _ in range(b.random.choice((0, 1, 1, 2)))]
    b.add(GatherOp(x, _indices(b, dims_of(x)[axis].value, shape), axis))


@recipe(GatherElementsOp)
def _gather_elements(b: Builder) -> None:
    x = b.pick()
    axis, sizes = b.axis(x), sizes_of(x)
    shape = [b.random.randint(0, n) for n in sizes]
    b.add(GatherElementsOp(x, _indices(b, sizes[axis], shape), axis))


def _addresses(b: Builder, x: SSAValue) -> SSAValue:
    """Indices of slices along the first dimensions."""
    sizes = sizes_of(x)
    depth = b.random.randint(0, len(sizes))
    if 0 in sizes[:depth]:
        raise Unfit
    rng = np.random.default_rng(b.random.getrandbits(16))
    shape = [b.dim() for _ in range(b.random.choice((0, 1, 1, 2)))]
    columns = [rng.integers(0, size, shape) for size in sizes[:depth]]
    return b.of(np.stack(columns, -1) if columns else np.zeros((*shape, 0)))


@recipe(GatherNdOp)
def _gather_nd(b: Builder) -> None:
    x = b.pick()
    b.add(GatherNdOp(x, _addresses(b, x)))


@recipe(ScatterElementsOp)
def _scatter_elements(b: Builder) -> None:
    x = _number(b)
    axis, sizes = b.axis(x), sizes_of(x)
    shape = [b.random.randint(0, n) for n in sizes]
    indices = _indices(b, sizes[axis], shape)
    updates = b.constant(element_type(x), sizes_of(indices))
    b.add(ScatterElementsOp(x, indices, updates, axis, b.random.choice(list(ScatterReduction))))


@recipe(ScatterNdOp)
def _scatter_nd(b: Builder) -> None:
    x = _number(b)
    indices = _addresses(b, x)
    *places, depth = sizes_of(indices)
    updates = b.constant(element_type(x), [*places, *sizes_of(x)[depth:]])
    b.add(ScatterNdOp(x, indices, updates, b.random.choice(list(ScatterReduction))))


def _number(b: Builder) -> SSAValue:
    if element_type(x := b.pick()) == i1:
        raise Unfit
    return x


@recipe(SuppressOp)
def _suppress(b: Builder) -> None:
    x = b.pick()
    element, count = element_type(x), product(dims_of(x)).value or 0
    if not is_float(element) or count < 4:
        raise Unfit
    size = count // 4
    row = b.add(SliceOp(b.add(ReshapeOp(x, [count])).result, [0], [size * 4])).result
    boxes = b.add(ReshapeOp(row, [1, size, 4])).result
    sides = [b.add(SliceOp(boxes, [0, 0, k], [1, size, 1])).result for k in (0, 2)]
    is_proper = b.add(e.CompareOp("le", sides[0], sides[1])).result
    alive = b.add(ReshapeOp(is_proper, [1, size])).result
    limit = np.array(b.random.random()).astype(numpy_dtype(element))
    most = b.random.randint(0, size) if b.chance(5) else None
    strict = b.chance(5)
    b.add(SuppressOp(alive, boxes, b.add(ConstantOp.of(limit)).result, most=most, strict=strict))


@recipe(TopKOp)
def _top_k(b: Builder) -> None:
    x = b.pick()
    axis = b.axis(x)
    k = b.random.randint(0, dims_of(x)[axis].value or 0)
    b.add(TopKOp(x, k, axis, b.chance(5)))
