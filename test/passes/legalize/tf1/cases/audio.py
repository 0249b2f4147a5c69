"""Spectra and cepstra: windows of other sizes than transforms, channels, limits of frequencies."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(61)
    x = record.input(random.standard_normal((50, 2)).astype(np.float32))
    for size, stride in ((16, 8), (12, 5), (50, 1)):
        for squared in (False, True):
            own = {"window_size": size, "stride": stride, "magnitude_squared": squared}
            value = raw.AudioSpectrogram(input=x, **own)
            record.case(f"AudioSpectrogram_{size}_{squared:d}", value)
    power = record.input((random.random((1, 3, 33)) * 9).astype(np.float32), [None, None, 33])
    for rate, channels, lowest, highest, count in (
        (16000, 10, 20.0, 4000.0, 6),
        (8000, 6, 300.0, 3900.0, 6),
    ):
        value = raw.Mfcc(
            spectrogram=power,
            sample_rate=rate,
            upper_frequency_limit=highest,
            lower_frequency_limit=lowest,
            filterbank_channel_count=channels,
            dct_coefficient_count=count,
        )
        record.case(f"Mfcc_{rate}", value)
