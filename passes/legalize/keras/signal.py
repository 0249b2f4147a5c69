"""Spectra of signals: layers that make spectrograms, and transforms of `keras.ops`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, numpy_dtype
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.fourier import bell, transformed
from lowerdeck.passes.legalize.common.functions import FUNCTIONS
from lowerdeck.passes.legalize.common.linear import convolution
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.keras.convolution import first_kernel, window_of
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import as_float
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.pt2.applied import aten_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack
from lowerdeck.passes.legalize.tf1.applied import applied

_EPSILON = 1e-7
"""That of Keras, which is the least of what a logarithm is taken of."""


@legalizes("STFTSpectrogram")
def legalize_spectrogram(builder: KerasLegalizer) -> Results:
    """Each channel convolved with waves, which are variables; what of both parts the mode says."""
    builder.ignore("window", "periodic", "scaling", "fft_length")
    mode, length = builder.config("mode", "log"), builder.integer("frame_length")
    step = builder.config("frame_step") or length // 2
    is_first, expands = builder.is_first(), bool(builder.config("expand_dims", False))
    given = builder.input()
    builder.require_rank(given, 3, "the input")
    x = builder.to_first(given, is_first)
    batch, channels, time = dims_of(x)
    lines = builder.reshape(x, [batch * channels, 1, time])
    window = window_of(builder, [time], [length], [step], [1], str(builder.config("padding")))

    def part(name: str) -> TensorValue:
        """[batch, channels, frequencies, time]"""
        kernel = first_kernel(builder, builder.require_weight(f"{name}_kernel"))
        found = TensorValue(builder, convolution(builder, lines, kernel, None, window, 1))
        return found.reshape([batch, channels, *found.dims[1:]])

    match mode:
        case "real" | "imag":
            y = part(mode)
        case "angle":
            both = (part("imag").value, part("real").value)
            y = TensorValue(builder, applied(builder, "Atan2", *both)[0])
        case "stft":
            y = concat([part("real"), part("imag")], 2)
        case "log" | "magnitude" | "psd":
            y = _strength(part("real"), part("imag"), mode)
        case _:
            builder.refuse(f"the mode '{mode}'", "log, magnitude, psd, real, imag, angle or stft")
    if expands:
        return [y.transpose([0, 1, 3, 2] if is_first else [0, 3, 2, 1]).value]
    flat = y.reshape([batch, channels * y.dims[2], y.dims[3]])
    return [(flat if is_first else flat.transpose([0, 2, 1])).value]


def _strength(real: TensorValue, imag: TensorValue, mode: str) -> TensorValue:
    power = real * real + imag * imag
    if mode == "psd":
        # Frequencies but for the first and the last one stand for two.
        count = int(power.dims[2].value or 0)
        twice = np.ones([count, 1])
        twice[1:-1] = 2
        return power * TensorValue(power.builder, twice).cast(power.element)
    size = apply(core.SqrtOp, power.maximum(_EPSILON))
    return size.maximum(_EPSILON).log() if mode == "log" else size


@legalizes("MelSpectrogram")
def legalize_mel(builder: KerasLegalizer) -> Results:
    """Powers of spectra, by bins of the mel scale, in decibels if wanted: [..., bins, time]."""
    builder.ignore("top_db", "min_power", "ref_power")
    x = as_float(builder.x()).cast(f32)
    length = builder.integer("fft_length")
    frame = builder.config("sequence_length") or length
    step = builder.integer("sequence_stride")
    parts = _windowed(builder, x, (frame, step, length), builder.config("window"), center=True)
    real, imag = (parts.pick(len(parts.dims) - 1, k) for k in (0, 1))
    size = apply(core.SqrtOp, real * real + imag * imag)
    exponent = TensorValue.number(builder, builder.real("mag_exp"), size.element)
    size = TensorValue(builder, builder.add(core.PowOp(size.value, exponent.value)))
    bins = builder.tensor(_mel_matrix(builder, length // 2 + 1))
    count = len(size.dims)
    y = size.transpose([*range(count - 2), count - 1, count - 2])
    y = TensorValue(builder, builder.add(MatmulOp(y.value, bins)))
    if builder.config("power_to_db", True):
        y = _decibels(builder, y)
    y = y.transpose([*range(count - 2), count - 1, count - 2])
    return [y.cast(builder.element or f32).value]


def _decibels(builder: KerasLegalizer, y: TensorValue) -> TensorValue:
    least, top = builder.real("min_power"), builder.real("top_db")
    reference = 10 * math.log10(max(abs(builder.real("ref_power")), least))
    y = FUNCTIONS["log10"](y.maximum(least)) * 10.0 - reference
    return y.maximum(y.reduce("max", list(range(len(y.dims))), keep_dims=True) - top)


def _mel_matrix(builder: KerasLegalizer, count: int) -> np.ndarray:
    """[count, bins]: triangles between bands of equal width on the mel scale (HTK)."""
    bins, rate = builder.integer("num_mel_bins"), builder.real("sampling_rate")
    low, high = builder.real("min_freq"), builder.config("max_freq") or int(rate / 2)

    def mel(hertz: Any) -> Any:
        return np.float32(1127.0) * np.log(1 + np.float32(hertz) / np.float32(700.0))

    # The band of the constant part has no place in the scale.
    places = mel(np.linspace(0, rate / 2, count, dtype=np.float32)[1:])[:, None]
    edges = np.linspace(mel(low), mel(high), bins + 2, dtype=np.float32)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (places - lower) / (center - lower)
    falling = (upper - places) / (upper - center)
    weights = np.maximum(np.float32(0), np.minimum(rising, falling))
    return np.pad(weights, [[1, 0], [0, 0]]).astype(np.float32)


# Functions


def _windowed(
    builder: KerasLegalizer,
    x: TensorValue,
    sizes: tuple[int, int, int],
    window: Any,
    *,
    center: bool,
) -> TensorValue:
    """[..., frequencies, frames, 2] of signals [..., T]."""
    frame, step, length = sizes
    if max(sizes) > 1 << 24:
        builder.refuse(f"a window of {frame} in {length} elements", "at most 2^24")
    given: dict[str, Any] = {"n_fft": length, "hop_length": step, "win_length": frame}
    match window:
        case "hann" | "hamming":
            weights = bell(window, frame)
        case None:
            weights = np.ones(frame)
        case _:
            weights = np.array(window, np.float64)
    if weights.shape != (frame,):
        builder.refuse(f"a window of shape {list(weights.shape)}", f"[{frame}] numbers")
    given["window"] = builder.tensor(weights.astype(numpy_dtype(x.element)))
    outer = x.dims[:-1]
    rows = x.reshape([product(outer), x.dims[-1]])
    given |= {"center": center, "onesided": True, "return_complex": False}
    (found,) = aten_of(builder, "stft.center", x.element, rows.value, **given)
    parts = TensorValue(builder, found)
    return parts.reshape([*outer, *parts.dims[1:]])


@legalizes("STFT")
def legalize_stft(builder: KerasLegalizer) -> Results:
    """Both parts, [..., frames, frequencies]."""
    names = ("sequence_length", "sequence_stride", "fft_length")
    frame, step, length = (builder.integer(name) for name in names)
    center, window = bool(builder.config("center", True)), builder.config("window", "hann")
    x = as_float(builder.x())
    parts = _windowed(builder, x, (frame, step, length), window, center=center)
    rank = len(parts.dims)
    return _pair(parts.transpose([*range(rank - 3), rank - 2, rank - 3, rank - 1]))


def _pair(parts: TensorValue) -> Results:
    axis = len(parts.dims) - 1
    return [parts.pick(axis, k).value for k in range(2)]


@legalizes("RFFT")
def legalize_rfft(builder: KerasLegalizer) -> Results:
    """The transform of real signals along the last dimension: both parts of its first half."""
    x = as_float(builder.x())
    return _pair(_transformed(builder, x.reshape([*x.dims, 1]), real=True))


@legalizes("IRFFT")
def legalize_irfft(builder: KerasLegalizer) -> Results:
    """The real signal whose transform has a first half."""
    y = _transformed(builder, _complex(builder), real=True, inverse=True)
    return [y.reshape(y.dims[:-1]).value]


@legalizes("FFT", "FFT2", "IFFT2")
def legalize_fft(builder: KerasLegalizer) -> Results:
    """Transforms of complex numbers along the last dimension, or the last two."""
    y, inverse = _complex(builder), builder.op_type.startswith("I")
    y = _transformed(builder, y, inverse=inverse)
    if builder.op_type.endswith("2"):
        y = _transformed(builder, y, inverse=inverse, axis=-2)
    return _pair(y)


def _complex(builder: KerasLegalizer) -> TensorValue:
    """The pair of tensors that an operation gets, side by side."""
    values = [as_float(TensorValue(builder, value)) for value in builder.operands()]
    if len(values) != 2:
        builder.refuse(f"{len(values)} tensors", "a real and an imaginary part")
    return stack(values, len(values[0].dims))


def _transformed(
    builder: KerasLegalizer,
    x: TensorValue,
    *,
    real: bool = False,
    inverse: bool = False,
    axis: int = -1,
) -> TensorValue:
    size = builder.config("fft_length")
    length = None if size is None else Expr.const(int(size))
    place = len(x.dims) - 1 + axis
    return TensorValue(builder, transformed(builder, x.value, place, length, inverse, real))


@legalizes("ExtractSequences")
def legalize_sequences(builder: KerasLegalizer) -> Results:
    """Parts of a signal that overlap: [..., frames, length]."""
    length, step = builder.integer("sequence_length"), builder.integer("sequence_stride")
    x = builder.input()
    given: dict[str, Any] = {"dimension": len(dims_of(x)) - 1, "size": length, "step": step}
    return aten_of(builder, "unfold.default", element_type(x), x, **given)
