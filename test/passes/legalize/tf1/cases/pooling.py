"""Pools: padding that does not count, places of the largest elements, groups of channels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

WINDOWS = {"even": ((2, 2), (2, 2)), "odd": ((3, 2), (2, 1)), "far": ((2, 1), (3, 3))}


def build(record: Recorder) -> None:
    random = np.random.default_rng(5)
    # Negative numbers show padding that counts as zero; equal ones, which place is taken.
    x = record.input(random.integers(-9, -1, (2, 5, 7, 4)).astype(np.float32))
    for padding in ("SAME", "VALID"):
        for name, (kernel, strides) in WINDOWS.items():
            window = {"ksize": [1, *kernel, 1], "strides": [1, *strides, 1], "padding": padding}
            record.case(f"MaxPool_{name}_{padding}", raw.MaxPool(input=x, **window))
            record.case(f"AvgPool_{name}_{padding}", raw.AvgPool(value=x, **window))
            record.case(f"MaxPoolV2_{name}_{padding}", raw.MaxPoolV2(input=x, **window))
            for in_batch in (False, True):
                found = raw.MaxPoolWithArgmax(input=x, include_batch_in_index=in_batch, **window)
                suffix = f"{name}_{padding}_{in_batch:d}"
                record.case(f"Argmax_values_{suffix}", found.output)
                record.case(f"Argmax_places_{suffix}", found.argmax)
        window = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": padding}
        volume = record.input(random.integers(-9, -1, (1, 3, 4, 5, 2)).astype(np.float32))
        record.case(f"MaxPool3D_{padding}", raw.MaxPool3D(input=volume, **window))
        record.case(f"AvgPool3D_{padding}", raw.AvgPool3D(input=volume, **window))
    window = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "EXPLICIT"}
    pads = [0, 0, 1, 2, 0, 1, 0, 0]
    record.case("MaxPool_EXPLICIT", raw.MaxPool(input=x, explicit_paddings=pads, **window))
    places = raw.MaxPoolWithArgmax(
        input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", Targmax="int32"
    )
    record.case("Argmax_int32", places.argmax)
    deep = record.input(random.integers(-9, 9, (2, 3, 3, 6)).astype(np.float32), [None, 3, 3, 6])
    window = {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "SAME"}
    record.case("MaxPool_channels", raw.MaxPool(input=deep, **window))
    half = record.input(random.integers(-9, 9, (1, 4, 4, 2)).astype(np.float16))
    window = {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    record.case("AvgPool_half", raw.AvgPool(value=half, **window))
    record.case("MaxPool_half", raw.MaxPool(input=half, **window))
