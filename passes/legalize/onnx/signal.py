"""Fourier transforms of signals and of their frames, and mel filters."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.types import dims_of, f64, i64, rank_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.fourier import spectra_of_frames, transformed
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("DFT")
def legalize_dft(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The axis is an attribute before version 20; the last dimension holds real and imaginary."""
    x = builder.operand("input")
    if op.since_version < 20:
        axis = builder.attrs.int("axis")
    else:
        given = builder.input("axis")
        axis = -2 if given is None else builder.require_int(given, "an axis")
    axis = builder.axis(axis, rank_of(x))
    length = builder.input("dft_length")
    size = None if length is None else size_of(builder, length, "a signal length")
    inverse, onesided = builder.attrs.flag("inverse"), builder.attrs.flag("onesided")
    return [transformed(builder, x, axis, size, inverse, onesided)]


@legalizes("STFT")
def legalize_stft(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Transforms of overlapping frames of a signal [batch, length, parts], under a window."""
    x = builder.operand("signal")
    if rank_of(x) != 3:
        builder.refuse(f"a signal of rank {rank_of(x)}", "[batch, length, parts]")
    step = size_of(builder, builder.operand("frame_step"), "a frame step")
    window, length = builder.input("window"), builder.input("frame_length")
    size = dims_of(x)[1]
    if window is not None:
        size = dims_of(window)[0]
    elif length is not None:
        size = size_of(builder, length, "a frame length")
    onesided = builder.attrs.flag("onesided")
    return [spectra_of_frames(builder, x, window, size, step, onesided)]


@legalizes("MelWeightMatrix")
def legalize_mel_weight_matrix(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Triangles between frequencies that are equally far apart on the mel scale."""
    bins, length, rate, low, high = (
        TensorValue.of(builder, builder.reshape(builder.operand(k), [])) for k in range(5)
    )
    element = builder.element(builder.attrs.int("output_datatype"))
    count = size_of(builder, bins.cast(i64).value, "the number of mel bins")
    spectrum = size_of(builder, (length.cast(i64) // 2 + 1).value, "the length of the spectrum")
    first, last = (_mel(edge.cast(f64)) for edge in (low, high))
    step = (last - first) / TensorValue.dim(builder, count + 2).cast(f64)
    mels = TensorValue.iota(builder, count + 2).cast(f64) * step + first
    hertz = ((mels * (math.log(10) / 2595)).exp() - 1.0) * 700.0
    edges = ((length.cast(f64) + 1.0) * hertz / rate.cast(f64)).floor().cast(i64)
    left, center, right = (
        TensorValue(builder, builder.slice(edges.value, [k], [count])).reshape([1, count])
        for k in range(3)
    )
    place = TensorValue.iota(builder, spectrum).reshape([spectrum, 1])
    rising = _ramp(place - left, center - left)
    rising = (place.ge(left) & place.le(center)).where(rising, 0.0)
    rising = center.eq(left).where(place.eq(center).cast(f64), rising)
    falling = _ramp(right - place, right - center)
    result = (place.ge(center) & place.lt(right)).where(falling, rising)
    return [result.cast(element).value]


def _mel(hertz: TensorValue) -> TensorValue:
    return (hertz / 700.0 + 1.0).log() * (2595 / math.log(10))


def _ramp(part: TensorValue, whole: TensorValue) -> TensorValue:
    """part / whole, where whole is at least one."""
    return part.cast(f64) / whole.maximum(1).cast(f64)
