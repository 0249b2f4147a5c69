"""Spectra of sound, and what speech recognition makes of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, f32, f64
from lowerdeck.dialects.dims import Expr, maximum, product
from lowerdeck.passes.legalize.common.fourier import transformed
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

_FLOOR = 1e-12
"""What is less has this logarithm."""


_MOST_NUMBERS = 1 << 22
"""In a table for sound."""


@legalizes("AudioSpectrogram")
def legalize_spectrogram(builder: Tf1Legalizer) -> Results:
    """
    The transforms of overlapping frames of sound [samples, channels] under a Hann window, as sizes
    or squares [channels, frames, frequencies].
    """
    x = TensorValue(builder, number(builder, "input")).transpose([1, 0])
    size, stride = builder.attrs.int("window_size"), builder.attrs.int("stride")
    if not 2 <= size <= _MOST_NUMBERS or stride < 1:
        expected = f"2 to {_MOST_NUMBERS} and at least 1"
        builder.refuse(f"a window of {size} with stride {stride}", expected)
    channels, samples = x.dims
    frames = maximum((samples - size) // stride + 1, 0)
    index = TensorValue.iota(builder, frames).column(2, 0) * stride
    index = index + TensorValue(builder, np.arange(size)).column(2, 1)
    framed = TensorValue(builder, builder.add(GatherOp(x.value, index.value, 1))).cast(f64)
    window = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(size) / size)
    framed = framed * TensorValue(builder, window.reshape(1, 1, size))
    length = 1 << (size - 1).bit_length()
    parts = framed.reshape([channels, frames, size, 1]).value
    spectrum = TensorValue(builder, transformed(builder, parts, 2, Expr.const(length), False, True))
    power = (spectrum * spectrum).reduce("sum", [3])
    found = power if builder.attrs.flag("magnitude_squared") else apply(SqrtOp, power)
    return [found.cast(f32).value]


@legalizes("Mfcc")
def legalize_cepstrum(builder: Tf1Legalizer) -> Results:
    """The cosine transforms of logarithms of a spectrum of squares, gathered on the mel scale."""
    x = TensorValue(builder, number(builder, "spectrogram"))
    rate = builder.require_int(builder.operand("sample_rate"), "the sample rate")
    bins = x.dims[2].value
    if bins is None or bins < 2:
        builder.refuse(f"a spectrum of {x.dims[2]} frequencies", "a number that is known")
    count = builder.attrs.int("filterbank_channel_count")
    limits = [builder.attrs.float(f"{end}_frequency_limit") for end in ("lower", "upper")]
    coefficients = builder.attrs.int("dct_coefficient_count")
    if not 0 < coefficients <= count or count * max(bins, count) > _MOST_NUMBERS:
        builder.refuse(
            f"{coefficients} coefficients of {count} channels", "as many channels or more"
        )
    if not 0 <= limits[0] < limits[1] < math.inf or rate <= 0:
        found = f"frequencies from {limits[0]} to {limits[1]} at a rate of {rate}"
        builder.refuse(found, "positive ones that ascend")
    filters = _mel_filters(bins, count, rate, limits[0], limits[1])
    rows = apply(SqrtOp, x.cast(f64)).reshape([product(x.dims[:2]), bins])
    gathered = TensorValue(builder, builder.add(MatmulOp(rows.value, builder.tensor(filters))))
    logarithms = gathered.maximum(_FLOOR).log()
    cosines = builder.tensor(_cosines(count, coefficients))
    result = TensorValue(builder, builder.add(MatmulOp(logarithms.value, cosines))).cast(f32)
    return [result.reshape([*dims_of(x.value)[:2], coefficients]).value]


def _mel(hertz: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def _mel_filters(
    bins: int, count: int, rate: int, lowest: float, highest: float
) -> NDArray[np.float64]:
    """
    How much of each frequency belongs to each channel, [bins, count].

    Channels are triangles with centers at equal distances; a frequency lies between two of them.
    """
    low, high = float(_mel(lowest)), float(_mel(highest))
    centers = low + (high - low) / (count + 1) * np.arange(1, count + 2)
    hertz = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + lowest / hertz), int(highest / hertz)
    filters = np.zeros((bins, count))
    for index in range(first, min(last, bins - 1) + 1):
        mel = float(_mel(index * hertz))
        channel = int(np.searchsorted(centers[:count], mel)) - 1
        start = centers[channel] if channel >= 0 else low
        weight = (centers[channel + 1] - mel) / (centers[channel + 1] - start)
        if channel >= 0:
            filters[index, channel] += weight
        if channel + 1 < count:
            filters[index, channel + 1] += 1 - weight
    return filters


def _cosines(count: int, coefficients: int) -> NDArray[np.float64]:
    """The cosine transform of `count` numbers, [count, coefficients]."""
    places = (np.arange(count) + 0.5)[:, None]
    angles = places * np.arange(coefficients)[None] * (math.pi / count)
    return math.sqrt(2.0 / count) * np.cos(angles)
