"""Functions of `keras.ops` that are no layers, and that act on tensors as numpy's do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.tensor import GatherOp, PadOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_of,
    element_type,
    f16,
    f32,
    f64,
    i32,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.passes.legalize.common.linear import einsum, matmul
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.movement import repeated
from lowerdeck.passes.legalize.keras.operands import both, common_type, pair
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.applied import applied

# Elementwise

_FLOATS: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "Exp": lambda x: x.exp(),
    "Log": lambda x: x.log(),
    "Sin": lambda x: x.sin(),
    "Cos": lambda x: x.cos(),
    "Sqrt": lambda x: apply(core.SqrtOp, x),
    "Rsqrt": lambda x: 1.0 / apply(core.SqrtOp, x),
    "Reciprocal": lambda x: 1.0 / x,
    "Tan": lambda x: x.sin() / x.cos(),
}

_PLAIN: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "Absolute": lambda x: x.abs(),
    "Negative": lambda x: -x,
    "Square": lambda x: x * x,
}

_WHOLE: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "Floor": lambda x: x.floor(),
    "Ceil": lambda x: x.ceil(),
    "Round": lambda x: x.round(),
}


def as_float(x: TensorValue) -> TensorValue:
    """Floats, which integers become."""
    return x if is_float(x.element) else x.cast(f32)


@legalizes(*_FLOATS)
def legalize_float_function(builder: KerasLegalizer) -> Results:
    """Of floats, which integers become."""
    return [_FLOATS[builder.op_type](as_float(builder.x())).value]


_OF_TENSORFLOW = {
    "Arccos": "Acos",
    "Arcsin": "Asin",
    "Arctan": "Atan",
    "Cosh": "Cosh",
    "Erf": "Erf",
    "Expm1": "Expm1",
    "Sign": "Sign",
    "Sinh": "Sinh",
}


@legalizes(*_OF_TENSORFLOW)
def legalize_function_of_tensorflow(builder: KerasLegalizer) -> Results:
    """Of floats; TensorFlow has the same."""
    return applied(builder, _OF_TENSORFLOW[builder.op_type], as_float(builder.x()).value)


@legalizes(*_PLAIN)
def legalize_plain_function(builder: KerasLegalizer) -> Results:
    """Of any numbers."""
    return [_PLAIN[builder.op_type](builder.x()).value]


@legalizes(*_WHOLE)
def legalize_rounding(builder: KerasLegalizer) -> Results:
    """To whole numbers, halves to even ones."""
    if builder.config("decimals", 0):
        builder.refuse("decimals", "whole numbers")
    return [_WHOLE[builder.op_type](as_float(builder.x())).value]


@legalizes("LogicalNot")
def legalize_not(builder: KerasLegalizer) -> Results:
    """Of truth values."""
    x = builder.x()
    return [(~(x if x.element == i1 else x.ne(0))).value]


@legalizes("ZerosLike", "OnesLike")
def legalize_filled(builder: KerasLegalizer) -> Results:
    """A tensor of the shape of another."""
    x = builder.x()
    dtype = builder.config("dtype", builder.keyword("dtype"))
    element = x.element if dtype is None else named_element(builder, dtype)
    number = np.array(float(builder.op_type == "OnesLike"))
    value = TensorValue(builder, number).cast(element)
    return [value.broadcast(x.dims).value]


_COMPARISONS = {
    "Equal": "eq",
    "NotEqual": "ne",
    "Greater": "gt",
    "GreaterEqual": "ge",
    "Less": "lt",
    "LessEqual": "le",
}


@legalizes(*_COMPARISONS)
def legalize_comparison(builder: KerasLegalizer) -> Results:
    """Truth values."""
    first, second = pair(builder)
    return [getattr(first, _COMPARISONS[builder.op_type])(second).value]


@legalizes("TrueDivide", "Divide")
def legalize_quotient(builder: KerasLegalizer) -> Results:
    """Of floats, which integers become."""
    first, second = pair(builder)
    return [(as_float(first) / as_float(second)).value]


@legalizes("Power")
def legalize_power(builder: KerasLegalizer) -> Results:
    """One to the power of the other."""
    first, second = pair(builder)
    return [builder.add(core.PowOp(first.value, second.value))]


_TENSORFLOW = {"FloorDivide": "FloorDiv", "Mod": "FloorMod"}


@legalizes(*_TENSORFLOW)
def legalize_division(builder: KerasLegalizer) -> Results:
    """Rounded toward minus infinity."""
    first, second = pair(builder)
    return applied(builder, _TENSORFLOW[builder.op_type], first.value, second.value)


@legalizes("Where")
def legalize_where(builder: KerasLegalizer) -> Results:
    """One value where a condition holds, else the other."""
    condition = builder.x()
    if condition.element != i1:
        condition = condition.ne(0)
    if not builder.has(1, "x1") or not builder.has(2, "x2"):
        builder.refuse("a condition alone", "two values")
    first, second = both(builder, builder.argument(1, "x1"), builder.argument(2, "x2"))
    return [condition.where(first, second).value]


@legalizes("Clip")
def legalize_clip(builder: KerasLegalizer) -> Results:
    """At least one number, at most another."""
    x = builder.x()
    low = builder.config("x_min", builder.argument(1, "x_min"))
    high = builder.config("x_max", builder.argument(2, "x_max"))
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        builder.refuse("limits that are computed", "numbers")
    return [x.clip(low, high).value]


def named_element(builder: KerasLegalizer, name: Any) -> Attribute:
    """An element type by its name."""
    if name == "bool":
        return i1
    special = {"bfloat16": bf16, "float16": f16, "float32": f32, "float64": f64}
    if name in special:
        return special[name]
    try:
        return element_of(np.dtype(name))
    except TypeError:
        builder.refuse(f"the type {name}", "one of numbers")


@legalizes("Cast")
def legalize_cast(builder: KerasLegalizer) -> Results:
    """Another type."""
    element = named_element(builder, builder.config("dtype", builder.argument(1, "dtype")))
    x = builder.x()
    if is_float(x.element) and element != i1 and not is_float(element):
        return applied(builder, "Cast", x.value, DstT=element, Truncate=False)
    return [x.cast(element).value]


# Reductions


def axes_of(builder: KerasLegalizer, rank: int) -> list[int]:
    """The axes of a reduction; all of them without any."""
    axis = builder.config("axis", builder.argument(1, "axis"))
    if axis is None:
        return list(range(rank))
    return builder.axes([axis] if isinstance(axis, int) else list(axis), rank)


_REDUCTIONS = {"Sum": "sum", "Max": "max", "Min": "min", "Prod": "prod", "Mean": "mean"}


@legalizes(*_REDUCTIONS)
def legalize_reduction(builder: KerasLegalizer) -> Results:
    """Along axes; the mean is one of floats."""
    x = builder.x()
    axes, keep = axes_of(builder, len(x.dims)), bool(builder.config("keepdims", False))
    kind = _REDUCTIONS[builder.op_type]
    if builder.config("initial") is not None or builder.config("dtype") is not None:
        builder.refuse("a reduction with a type or a beginning", "without")
    if kind == "mean":
        return [mean(builder, as_float(x).value, axes, keep)]
    if kind in ("sum", "prod") and not is_float(x.element) and x.element != i32:
        builder.refuse(f"the {kind} of {x.element}", "floats")
    return [builder.reduce(kind, x.value, axes, keep)]


@legalizes("Var", "Std")
def legalize_variance(builder: KerasLegalizer) -> Results:
    """The mean square of what differs from the mean, or its root."""
    x = as_float(builder.x())
    axes, keep = axes_of(builder, len(x.dims)), bool(builder.config("keepdims", False))
    rest = x - TensorValue(builder, mean(builder, x.value, axes, keep_dims=True))
    value = TensorValue(builder, mean(builder, (rest * rest).value, axes, keep))
    return [(value if builder.op_type == "Var" else apply(core.SqrtOp, value)).value]


@legalizes("Any", "All")
def legalize_truth(builder: KerasLegalizer) -> Results:
    """True if one element is, or all are."""
    x = builder.x()
    truth = x if x.element == i1 else x.ne(0)
    axes, keep = axes_of(builder, len(x.dims)), bool(builder.config("keepdims", False))
    kind = "max" if builder.op_type == "Any" else "min"
    return [builder.reduce(kind, truth.value, axes, keep)]


@legalizes("Argmax", "Argmin")
def legalize_arg_extremum(builder: KerasLegalizer) -> Results:
    """The first place of the extremum along an axis."""
    x = builder.input()
    axis = builder.config("axis")
    if axis is None:
        builder.refuse("an extremum of all elements", "along an axis")
    axis = builder.axis(int(axis), rank_of(x))
    name = "ArgMax" if builder.op_type == "Argmax" else "ArgMin"
    place = builder.tensor(np.array(axis, np.int32))
    (value,) = applied(builder, name, x, place, output_type=i32)
    return [builder.unsqueeze(value, [axis]) if builder.config("keepdims", False) else value]


# Products


@legalizes("Matmul")
def legalize_matmul(builder: KerasLegalizer) -> Results:
    """numpy.matmul"""
    first, second = common_type(builder, [builder.input(0), builder.input(1)])
    return [matmul(builder, first, second)]


@legalizes("Einsum")
def legalize_einsum(builder: KerasLegalizer) -> Results:
    """Sums of products by labels."""
    operands = [builder.input(k) for k in range(len(builder.positional()))]
    return [einsum(builder, str(builder.config("subscripts")), common_type(builder, operands))]


# Movement


@legalizes("Transpose")
def legalize_transpose(builder: KerasLegalizer) -> Results:
    """Dimensions in another order, reversed without one."""
    x = builder.input()
    axes = builder.config("axes")
    order = list(reversed(range(rank_of(x)))) if axes is None else builder.axes(axes, rank_of(x))
    return [builder.transpose(x, order)]


@legalizes("Swapaxes")
def legalize_swapped(builder: KerasLegalizer) -> Results:
    """Two dimensions in each other's place."""
    x = builder.input()
    order = list(range(rank_of(x)))
    first, second = (builder.axis(builder.integer(f"axis{k}"), len(order)) for k in (1, 2))
    order[first], order[second] = second, first
    return [builder.transpose(x, order)]


@legalizes("Tile")
def legalize_tile(builder: KerasLegalizer) -> Results:
    """Repeated along each dimension."""
    x, times = builder.input(), builder.config("repeats")
    listed = cast("list[Any]", times) if isinstance(times, list) else [times]
    if len(listed) != rank_of(x) or not all(isinstance(time, int) for time in listed):
        builder.refuse(f"{times} repetitions", "a number for each dimension")
    return applied(builder, "Tile", x, builder.tensor(np.array(listed, np.int32)))


@legalizes("ExpandDims")
def legalize_expand_dims(builder: KerasLegalizer) -> Results:
    """More dimensions of one element."""
    x = builder.input()
    axis = builder.config("axis")
    axes = [axis] if isinstance(axis, int) else list(axis)
    return [builder.unsqueeze(x, builder.axes(axes, rank_of(x) + len(axes)))]


@legalizes("Squeeze")
def legalize_squeeze(builder: KerasLegalizer) -> Results:
    """Without dimensions of one element."""
    x = builder.input()
    axis = builder.config("axis")
    if axis is None:
        axes = [k for k, dim in enumerate(dims_of(x)) if dim == 1]
    else:
        axes = builder.axes([axis] if isinstance(axis, int) else list(axis), rank_of(x))
    return [builder.squeeze(x, axes)]


@legalizes("Stack")
def legalize_stack(builder: KerasLegalizer) -> Results:
    """Tensors of one shape along a new axis."""
    values = common_type(builder, builder.operands())
    axis = builder.axis(builder.integer("axis", 0), rank_of(values[0]) + 1)
    return [stack([TensorValue.of(builder, value) for value in values], axis).value]


@legalizes("Repeat")
def legalize_repeat(builder: KerasLegalizer) -> Results:
    """Each element several times along an axis."""
    x, times, axis = builder.x(), builder.config("repeats"), builder.config("axis")
    if not isinstance(times, int) or axis is None:
        builder.refuse(f"{times} repetitions along {axis}", "one number, and an axis")
    return [repeated(x, builder.axis(int(axis), len(x.dims)), times).value]


@legalizes("Pad")
def legalize_pad(builder: KerasLegalizer) -> Results:
    """One number, or mirrored elements, around a tensor."""
    x = builder.input()
    widths: list[Any] = builder.config("pad_width")
    if isinstance(widths, int):
        widths = [[widths, widths]] * rank_of(x)
    mode = builder.config("mode", "constant")
    constant = builder.argument(1, "constant_values", 0)
    if mode == "constant" and isinstance(constant, int | float):
        begin: list[ExprLike] = [int(side[0]) for side in widths]
        end: list[ExprLike] = [int(side[1]) for side in widths]
        return [builder.add(PadOp(x, begin, end, builder.scalar(constant, x)))]
    if mode not in ("reflect", "symmetric"):
        builder.refuse(f"the mode '{mode}'", "constant, reflect or symmetric")
    sides = builder.tensor(np.array(widths, np.int32))
    return applied(builder, "MirrorPad", x, sides, mode=mode.upper())


@legalizes("GetItem")
def legalize_get_item(builder: KerasLegalizer) -> Results:
    """Python's `x[key]`."""
    key = builder.argument(1, "key")
    keys = cast("list[Any]", key) if isinstance(key, list) else [key]
    return [item(builder, builder.input(), keys)]


def item(builder: KerasLegalizer, x: SSAValue, keys: list[Any]) -> SSAValue:
    """What numpy gives for numbers, slices, `...` and None between brackets."""
    rank = rank_of(x)
    taken = sum(1 for key in keys if key is not None and key != "...")
    if "..." in keys:
        at = keys.index("...")
        keys = [*keys[:at], *[_ALL] * (rank - taken), *keys[at + 1 :]]
    else:
        keys = [*keys, *[_ALL] * (rank - taken)]
    begin: list[int] = []
    end: list[int] = []
    stride: list[int] = []
    masks = {"begin_mask": 0, "end_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for place, key in enumerate(keys):
        start, stop, step = 0, 0, 1
        if key is None:
            masks["new_axis_mask"] |= 1 << place
        elif isinstance(key, dict) and "slice" in key:
            first, last, by = cast("dict[str, Any]", key)["slice"]
            if not all(isinstance(value, int | None) for value in (first, last, by)):
                builder.refuse("a slice that is computed", "numbers")
            masks["begin_mask"] |= (first is None) << place
            masks["end_mask"] |= (last is None) << place
            start, stop, step = first or 0, last or 0, 1 if by is None else by
        elif isinstance(key, int) and not isinstance(key, bool):
            masks["shrink_axis_mask"] |= 1 << place
            start, stop = key, key + 1
        else:
            builder.refuse("an index that is computed", "numbers and slices")
        begin.append(start)
        end.append(stop)
        stride.append(step)
    rows = [builder.tensor(np.array(values, np.int32)) for values in (begin, end, stride)]
    return applied(builder, "StridedSlice", x, *rows, ellipsis_mask=0, **masks)[0]


_ALL = {"slice": [None, None, None]}


@legalizes("Split")
def legalize_split(builder: KerasLegalizer) -> Results:
    """Equal parts, or parts up to places along an axis."""
    x = builder.input()
    sections, axis = builder.config("indices_or_sections"), builder.integer("axis", 0)
    axis = builder.axis(axis, rank_of(x))
    size = dims_of(x)[axis]
    if isinstance(sections, int):
        return builder.split(x, axis, [size // sections] * sections)
    if size.value is None:
        builder.refuse("parts of a size that is not known", "a number")
    places = [0, *(min(int(place), size.value) for place in sections), size.value]
    sizes = [b - a for a, b in pairwise(places)]
    return builder.split(x, axis, [Expr.const(s) for s in sizes])


@legalizes("Take")
def legalize_take(builder: KerasLegalizer) -> Results:
    """Parts along an axis at indices; those below zero count from the end."""
    x = builder.input()
    axis = builder.config("axis")
    if axis is None:
        builder.refuse("elements of a flat tensor", "an axis")
    axis = builder.axis(int(axis), rank_of(x))
    given = builder.number_like(builder.argument(1, "indices"), None)
    indices = TensorValue.of(builder, given)
    if is_float(element_type(given)):
        builder.refuse("indices that are floats", "integers")
    size = TensorValue.dim(builder, dims_of(x)[axis]).cast(indices.element)
    indices = indices.lt(0).where(indices + size, indices)
    return [builder.add(GatherOp(x, indices.value, axis))]
