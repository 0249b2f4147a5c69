"""Images: the three ways to place elements, in both directions; crops; colors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

SIZES = {"up": (7, 10), "down": (3, 2), "mixed": (1, 9), "same": (4, 5), "double": (8, 10)}
MODES: dict[str, dict[str, Any]] = {
    "legacy": {},
    "corners": {"align_corners": True},
    "half": {"half_pixel_centers": True},
}


def build(record: Recorder) -> None:
    random = np.random.default_rng(7)
    # Numbers of one size: their weighted sums are not near zero.
    x = record.input((random.random((2, 4, 5, 3)) + 1).astype(np.float32))
    bytes_ = record.input(random.integers(0, 255, (1, 4, 5, 2)).astype(np.uint8))
    for size_name, size in SIZES.items():
        for mode, attributes in MODES.items():
            suffix = f"{size_name}_{mode}"
            for op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"):
                value = getattr(raw, op)(images=x, size=size, **attributes)
                record.case(f"{op}_{suffix}", value)
            if mode != "half":
                value = raw.ResizeArea(images=x, size=size, **attributes)
                record.case(f"ResizeArea_{suffix}", value)
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"):
        record.case(f"{op}_bytes", getattr(raw, op)(images=bytes_, size=(6, 3)))
    # Twice the size of what is given at run time.
    doubled = raw.Shape(input=x)[1:3] * 2
    record.case("ResizeBilinear_doubled", raw.ResizeBilinear(images=x, size=doubled))
    value = raw.ResizeNearestNeighbor(images=x, size=doubled, half_pixel_centers=True)
    record.case("ResizeNearestNeighbor_doubled", value)
    size = record.input(np.array([6, 3], np.int32), [2])
    record.case("ResizeBilinear_data", raw.ResizeBilinear(images=x, size=size))
    _crops(record, x)
    _colors(record, random)


def _crops(record: Recorder, x: Any) -> None:
    # Inside, flipped, over the borders, and a point.
    boxes = [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.8, 0.6, 0.2, 0.1], [-0.3, 0.5, 0.4, 1.4]]
    boxes = record.input(np.array([*boxes, [0.5, 0.5, 0.5, 0.5]], np.float32))
    owner = record.input(np.array([0, 1, 1, 0, 1], np.int32))
    for size in ((3, 4), (1, 2), (6, 1)):
        for method in ("bilinear", "nearest"):
            value = raw.CropAndResize(
                image=x,
                boxes=boxes,
                box_ind=owner,
                crop_size=size,
                method=method,
                extrapolation_value=-1.5,
            )
            record.case(f"CropAndResize_{size[0]}{size[1]}_{method}", value)


def _colors(record: Recorder, random: np.random.Generator) -> None:
    colors = random.random((2, 3, 4, 3)).astype(np.float32)
    colors[0, 0] = [[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.2], [0.2, 0.7, 0.7]]
    x = record.input(colors)
    record.case("RGBToHSV", raw.RGBToHSV(images=x))
    record.case("HSVToRGB", raw.HSVToRGB(images=x))
    record.case("AdjustHue", raw.AdjustHue(images=x, delta=0.3))
    record.case("AdjustHue_back", raw.AdjustHue(images=x, delta=-0.4))
    record.case("AdjustSaturation", raw.AdjustSaturation(images=x, scale=0.4))
    record.case("AdjustSaturation_more", raw.AdjustSaturation(images=x, scale=3.0))
    record.case("AdjustContrastv2", raw.AdjustContrastv2(images=x, contrast_factor=1.7))
