"""Convolutions: layouts, padding, groups, and sizes that gradients are told."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(4)

    def quarters(*shape: int, dtype: Any = np.float32, known: bool = False) -> Any:
        """Their sums of products are exact, in any order; channels must be known."""
        shape_ = [None, *shape[1:]] if known else [*([None] * (len(shape) - 1)), shape[-1]]
        return record.input((random.integers(-8, 9, shape) / 4).astype(dtype), shape_)

    _forward(record, quarters)
    _grouped(record, quarters)
    _gradients(record, quarters)
    _volumes(record, quarters)
    _padded(record, quarters)


def _forward(record: Recorder, quarters: Any) -> None:
    x, w = quarters(2, 6, 7, 3), quarters(3, 2, 3, 4, known=True)
    for padding in ("SAME", "VALID"):
        for rows, columns in ((1, 1), (2, 3), (3, 2)):
            value = raw.Conv2D(input=x, filter=w, strides=[1, rows, columns, 1], padding=padding)
            record.case(f"Conv2D_{padding}_{rows}{columns}", value)
        value = raw.Conv2D(
            input=x, filter=w, strides=[1, 1, 1, 1], padding=padding, dilations=[1, 2, 3, 1]
        )
        record.case(f"Conv2D_{padding}_dilated", value)
    value = raw.Conv2D(
        input=x,
        filter=w,
        strides=[1, 2, 1, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 2, 0, 1, 3, 0, 0],
    )
    record.case("Conv2D_EXPLICIT", value)
    # An even image, an odd kernel and stride 2: nothing before, one after.
    even = quarters(1, 8, 8, 1)
    value = raw.Conv2D(
        input=even, filter=quarters(3, 3, 1, 2, known=True), strides=[1, 2, 2, 1], padding="SAME"
    )
    record.case("Conv2D_even", value)
    # A kernel smaller than its stride.
    dot = quarters(1, 1, 3, 2, known=True)
    record.case("Conv2D_dot", raw.Conv2D(input=x, filter=dot, strides=[1, 3, 3, 1], padding="SAME"))
    for dtype in (np.float64, np.float16):
        value = raw.Conv2D(
            input=quarters(1, 4, 4, 2, dtype=dtype),
            filter=quarters(2, 2, 2, 3, dtype=dtype, known=True),
            strides=[1, 1, 1, 1],
            padding="SAME",
        )
        record.case(f"Conv2D_{np.dtype(dtype).name}", value)
    layered = raw.Conv(input=x, filter=w, strides=[1, 2, 1, 1], padding="SAME")
    record.case("Conv", layered)


def _grouped(record: Recorder, quarters: Any) -> None:
    x = quarters(2, 5, 6, 6)
    groups = quarters(3, 3, 2, 9, known=True)
    value = raw.Conv2D(input=x, filter=groups, strides=[1, 1, 1, 1], padding="SAME")
    record.case("Conv2D_groups", value)
    for multiplier in (1, 2):
        w = quarters(3, 2, 6, multiplier, known=True)
        for padding in ("SAME", "VALID"):
            value = raw.DepthwiseConv2dNative(
                input=x, filter=w, strides=[1, 2, 2, 1], padding=padding
            )
            record.case(f"Depthwise_{multiplier}_{padding}", value)
        gradient = quarters(2, 3, 3, 6 * multiplier)
        value = raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=[2, 5, 6, 6],
            filter=w,
            out_backprop=gradient,
            strides=[1, 2, 2, 1],
            padding="SAME",
        )
        record.case(f"Depthwise_{multiplier}_gradient", value)


def _gradients(record: Recorder, quarters: Any) -> None:
    w = quarters(3, 3, 2, 4, known=True)
    x = quarters(2, 3, 4, 4)
    # The same windows fit into sizes of both parities, and VALID ones leave a rest.
    sizes = {"SAME": [(5, 7), (6, 8), (6, 7)], "VALID": [(7, 9), (8, 10)]}
    for padding, images in sizes.items():
        for height, width in images:
            value = raw.Conv2DBackpropInput(
                input_sizes=[2, height, width, 2],
                filter=w,
                out_backprop=x,
                strides=[1, 2, 2, 1],
                padding=padding,
            )
            record.case(f"Gradient_{padding}_{height}_{width}", value)
    value = raw.Conv2DBackpropInput(
        input_sizes=[3, 4], filter=w, out_backprop=x, strides=[1, 1, 1, 1], padding="SAME"
    )
    record.case("Gradient_image_sizes", value)
    value = raw.Conv2DBackpropInput(
        input_sizes=[2, 8, 8, 2],
        filter=w,
        out_backprop=x,
        strides=[1, 3, 2, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0],
    )
    record.case("Gradient_EXPLICIT", value)
    # Sizes that are computed from the input.
    shape = raw.Shape(input=x)
    doubled = raw.Pack(values=[shape[0], shape[1] * 2, shape[2] * 2, 2])
    value = raw.Conv2DBackpropInput(
        input_sizes=doubled, filter=w, out_backprop=x, strides=[1, 2, 2, 1], padding="SAME"
    )
    record.case("Gradient_doubled", value)


def _volumes(record: Recorder, quarters: Any) -> None:
    x, w = quarters(1, 4, 5, 6, 2), quarters(2, 3, 3, 2, 3, known=True)
    for padding in ("SAME", "VALID"):
        value = raw.Conv3D(input=x, filter=w, strides=[1, 1, 2, 2, 1], padding=padding)
        record.case(f"Conv3D_{padding}", value)
    value = raw.Conv3DBackpropInputV2(
        input_sizes=[1, 4, 5, 6, 2],
        filter=w,
        out_backprop=quarters(1, 4, 3, 3, 3),
        strides=[1, 1, 2, 2, 1],
        padding="SAME",
    )
    record.case("Conv3D_gradient", value)
    image = quarters(2, 6, 5, 3)
    shape = tf.constant(np.arange(18, dtype=np.float32).reshape(3, 2, 3) % 5)
    for padding in ("SAME", "VALID"):
        value = raw.Dilation2D(
            input=image, filter=shape, strides=[1, 1, 2, 1], rates=[1, 2, 1, 1], padding=padding
        )
        record.case(f"Dilation2D_{padding}", value)


def _padded(record: Recorder, quarters: Any) -> None:
    """
    Convolutions that graphs optimized for inference hold, of one image: TensorFlow reads all but
    the first from wrong places.
    """
    x, w = quarters(1, 5, 6, 3), quarters(3, 2, 3, 4, known=True)
    pads = [[0, 0], [2, 1], [0, 3], [0, 0]]
    for mode in ("REFLECT", "SYMMETRIC"):
        for padding in ("SAME", "VALID"):
            own = {"filter": w, "mode": mode, "strides": [1, 2, 1, 1], "padding": padding}
            suffix = f"{mode}_{padding}"
            value = raw.FusedPadConv2D(input=x, paddings=pads, **own)
            record.case(f"FusedPadConv2D_{suffix}", value)
            for corners, size in ((False, [10, 4]), (True, [9, 11])):
                value = raw.FusedResizeAndPadConv2D(
                    input=x, size=size, paddings=pads, resize_align_corners=corners, **own
                )
                record.case(f"FusedResizeAndPadConv2D_{suffix}_{corners:d}", value)
