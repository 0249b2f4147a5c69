"""Patches: padding, strides, rates, types."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(23)
    for dtype in (np.float32, np.uint8, np.int64, np.float64):
        x = record.input(random.integers(0, 99, (2, 6, 7, 3)).astype(dtype))
        name = np.dtype(dtype).name
        for padding in ("SAME", "VALID"):
            for kernel, strides, rates in (
                ([2, 3], [1, 1], [1, 1]),
                ([3, 2], [2, 3], [1, 2]),
                ([1, 1], [3, 3], [1, 1]),
            ):
                window = {
                    "ksizes": [1, *kernel, 1],
                    "strides": [1, *strides, 1],
                    "rates": [1, *rates, 1],
                    "padding": padding,
                }
                own = f"Image_{name}_{padding}_{kernel[0]}{strides[0]}"
                record.case(own, raw.ExtractImagePatches(images=x, **window))
    volume = record.input(random.integers(0, 99, (2, 4, 5, 4, 2)).astype(np.float32))
    for padding in ("SAME", "VALID"):
        for kernel, strides in (([2, 3, 1], [1, 2, 1]), ([3, 2, 2], [2, 2, 3])):
            value = raw.ExtractVolumePatches(
                input=volume, ksizes=[1, *kernel, 1], strides=[1, *strides, 1], padding=padding
            )
            record.case(f"Volume_{padding}_{kernel[0]}", value)
