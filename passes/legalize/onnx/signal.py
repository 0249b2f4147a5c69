"""Fourier transforms of signals and of their frames, and mel filters."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, f64, i64, rank_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.fourier import transformed
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import size_of


@legalizes("DFT")
def legalize_dft(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The axis is an attribute before version 20; the last dimension holds real and imaginary."""
    x = lower.operand("input")
    if op.since_version < 20:
        axis = lower.attrs.int("axis")
    else:
        given = lower.input("axis")
        axis = -2 if given is None else lower.require_int(given, "an axis")
    axis = lower.axis(axis, rank_of(x))
    length = lower.input("dft_length")
    size = None if length is None else size_of(lower, length, "a signal length")
    inverse, onesided = lower.attrs.flag("inverse"), lower.attrs.flag("onesided")
    return [transformed(lower, x, axis, size, inverse, onesided)]


@legalizes("STFT")
def legalize_stft(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Transforms of overlapping frames of a signal [batch, length, parts], under a window."""
    x = lower.operand("signal")
    if rank_of(x) != 3:
        lower.refuse(f"a signal of rank {rank_of(x)}", "[batch, length, parts]")
    step = size_of(lower, lower.operand("frame_step"), "a frame step")
    window, length = lower.input("window"), lower.input("frame_length")
    size = dims_of(x)[1]
    if window is not None:
        size = dims_of(window)[0]
    elif length is not None:
        size = size_of(lower, length, "a frame length")
    frames = (dims_of(x)[1] - size) // step + 1
    starts = Quantity.iota(lower, frames).column(2, 0) * Quantity.dim(lower, step)
    index = starts + Quantity.iota(lower, size).column(2, 1)
    framed = Quantity(lower, lower.add(GatherOp(x, index.value, 1)))
    if window is not None:
        framed = framed * Quantity.of(lower, window).reshape([size, 1])
    onesided = lower.attrs.flag("onesided")
    return [transformed(lower, framed.value, 2, None, False, onesided)]


@legalizes("MelWeightMatrix")
def legalize_mel_weight_matrix(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Triangles between frequencies that are equally far apart on the mel scale."""
    bins, length, rate, low, high = (
        Quantity.of(lower, lower.reshape(lower.operand(k), [])) for k in range(5)
    )
    element = lower.element(lower.attrs.int("output_datatype"))
    count = size_of(lower, bins.cast(i64).value, "the number of mel bins")
    spectrum = size_of(lower, (length.cast(i64) // 2 + 1).value, "the length of the spectrum")
    first, last = (_mel(edge.cast(f64)) for edge in (low, high))
    step = (last - first) / Quantity.dim(lower, count + 2).cast(f64)
    mels = Quantity.iota(lower, count + 2).cast(f64) * step + first
    hertz = ((mels * (math.log(10) / 2595)).exp() - 1.0) * 700.0
    edges = ((length.cast(f64) + 1.0) * hertz / rate.cast(f64)).floor().cast(i64)
    left, center, right = (
        Quantity(lower, lower.slice(edges.value, [k], [count])).reshape([1, count])
        for k in range(3)
    )
    place = Quantity.iota(lower, spectrum).reshape([spectrum, 1])
    rising = _ramp(place - left, center - left)
    rising = (place.ge(left) & place.le(center)).where(rising, 0.0)
    rising = center.eq(left).where(place.eq(center).cast(f64), rising)
    falling = _ramp(right - place, right - center)
    result = (place.ge(center) & place.lt(right)).where(falling, rising)
    return [result.cast(element).value]


def _mel(hertz: Quantity) -> Quantity:
    return (hertz / 700.0 + 1.0).log() * (2595 / math.log(10))


def _ramp(part: Quantity, whole: Quantity) -> Quantity:
    """part / whole, where whole is at least one."""
    return part.cast(f64) / whole.maximum(1).cast(f64)
