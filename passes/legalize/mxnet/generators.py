"""Tensors made from numbers."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, i64, numpy_dtype
from lowerdeck.dialects.dims import Expr, exprs, product
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import LIMIT, TensorValue, stack


@legalizes("_zeros", "_ones", "_full", "_npi_zeros", "_npi_ones", "_zeros_without_dtype")
def legalize_filled(builder: MxnetLegalizer) -> Results:
    """
    One number for all elements.

    A size of zero of older operators is not known: what is combined with it tells. One element
    stands for all of them.
    """
    number = {"zeros": 0, "ones": 1}.get(builder.name.rpartition("_")[2])
    if builder.name == "_zeros_without_dtype":
        number = 0
    sizes = builder.sizes("shape")
    if not builder.is_numpy:
        sizes = [size or 1 for size in sizes]
    element = builder.dtype("dtype", f32) if builder.text("dtype") != "-1" else f32
    value = builder.number("value") if number is None else number
    return builder.broadcast(builder.scalar(value, element), exprs(sizes))


def _numbers(builder: MxnetLegalizer, array: np.ndarray, name: str = "dtype") -> SSAValue:
    """A constant in the type that an argument names."""
    if array.size > LIMIT:
        builder.refuse(f"{array.size} numbers", f"at most {LIMIT}")
    return builder.tensor(array.astype(numpy_dtype(builder.dtype(name, f32))))


@legalizes("_arange", "_npi_arange")
def legalize_range(builder: MxnetLegalizer) -> Results:
    """start, start + step, ... below stop, each several times."""
    start, step = builder.real("start"), builder.real("step")
    stop = builder.get("stop")
    if builder.flag("infer_range"):
        builder.refuse("'infer_range'", "'stop', or arange_like")
    first, last = (0.0, start) if stop is None else (start, float(stop))
    if not np.isfinite([first, last, step]).all() or not step or abs((last - first) / step) > LIMIT:
        builder.refuse(f"numbers from {first} to {last} by {step}", f"at most {LIMIT}")
    count, repeat = max(int(np.ceil((last - first) / step)), 0), builder.integer("repeat")
    _counted(builder, max(count, 1) * repeat)
    array = first + step * np.arange(count, dtype=np.float64)
    return _numbers(builder, np.repeat(array, repeat))


@legalizes("_contrib_arange_like")
def legalize_arange_like(builder: MxnetLegalizer) -> Results:
    """Numbers in the shape of a tensor, or as many as one of its dimensions has."""
    x = builder.input()
    dims = dims_of(x)
    is_flat = builder.get("axis") is None
    count = product(dims) if is_flat else dims[builder.along(x)]
    element = element_type(x)
    places = TensorValue.iota(builder, count)
    if (repeat := builder.integer("repeat")) != 1:
        if repeat < 1:
            builder.refuse(f"{repeat} repetitions", "one or more")
        places = places // repeat
    wide = places.cast(f64) * builder.number("step") + builder.number("start")
    found = wide.cast(element)
    return found.reshape(dims).value if is_flat else found.value


def _counted(builder: MxnetLegalizer, count: int) -> int:
    """A number of elements that a constant may have."""
    if not 0 <= count <= LIMIT:
        builder.refuse(f"{count} numbers", f"0 to {LIMIT}")
    return count


def _named_size(builder: MxnetLegalizer) -> int:
    """'M', which files have as a text; 0 if it is left out."""
    found = str(builder.get("M") or 0)
    if not found.lstrip("-").isdecimal():
        builder.refuse(f"'M' is {found}", "an integer")
    return int(found)


@legalizes("_linspace", "_npi_logspace")
def legalize_spaced(builder: MxnetLegalizer) -> Results:
    """Numbers at equal distances, or powers by them."""
    bounds = builder.real("start"), builder.real("stop")
    count = _counted(builder, builder.integer("num"))
    found = np.linspace(*bounds, count, builder.flag("endpoint"))
    if builder.has("base"):
        with np.errstate(all="ignore"):
            found = np.power(builder.real("base"), found)
    return _numbers(builder, found)


@legalizes("_eye", "_npi_eye", "_npi_identity")
def legalize_eye(builder: MxnetLegalizer) -> Results:
    """Ones on a diagonal."""
    if builder.name == "_npi_identity":
        rows = columns = next(iter(builder.sizes("shape")), 0)
        offset = 0
    else:
        rows, offset = builder.integer("N"), builder.integer("k")
        columns = _named_size(builder) or rows
    if not 0 <= rows * columns <= LIMIT or rows < 0:
        builder.refuse(f"{rows} by {columns} numbers", f"at most {LIMIT}")
    return _numbers(builder, np.eye(rows, columns, offset))


@legalizes("_npi_indices", "_contrib_index_array")
def legalize_indices(builder: MxnetLegalizer) -> Results:
    """The coordinates of all places, one after the other, or as a last dimension."""
    is_made = builder.name == "_npi_indices"
    dims = exprs(builder.sizes("dimensions")) if is_made else dims_of(builder.input())
    given = [] if is_made else builder.axes(builder.sizes("axes"), len(dims))
    parts = [
        TensorValue.iota(builder, dims[axis]).column(len(dims), axis).broadcast(dims)
        for axis in given or range(len(dims))
    ]
    if not parts:
        return builder.broadcast(builder.scalar(0, i64), [Expr.const(0)])
    found = stack(parts, 0 if is_made else len(dims))
    return found.cast(builder.dtype("dtype", i64)) if is_made else found


@legalizes("_npi_hanning", "_npi_hamming", "_npi_blackman")
def legalize_window(builder: MxnetLegalizer) -> Results:
    """A window function of a length."""
    count = _counted(builder, _named_size(builder))
    function = {"hanning": np.hanning, "hamming": np.hamming, "blackman": np.blackman}
    return _numbers(builder, function[builder.name.removeprefix("_npi_")](count))
