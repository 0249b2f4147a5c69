"""Images scaled and moved by all kernels, and projected in all modes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

KERNELS = (
    "lanczos1",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "box",
    "triangle",
    "keyscubic",
    "mitchellcubic",
)


def build(record: Recorder) -> None:
    random = np.random.default_rng(5)
    x = record.input((random.random((2, 6, 5, 2)) + 1).astype(np.float32))
    moved = record.input(np.array([1.5, -0.75], np.float32))
    for kernel in KERNELS:
        for name, size, scale in (("up", (9, 8), (1.5, 1.6)), ("down", (3, 2), (0.5, 0.4))):
            for antialias in (False, True):
                value = raw.ScaleAndTranslate(
                    images=x,
                    size=size,
                    scale=np.array(scale, np.float32),
                    translation=np.zeros(2, np.float32) if antialias else moved,
                    kernel_type=kernel,
                    antialias=antialias,
                )
                record.case(f"scale_{kernel}_{name}_{antialias}", value)
    bytes_ = record.input(random.integers(0, 255, (2, 6, 5, 1)).astype(np.uint8))
    turned = np.array([[0.8, -0.6, 1.3, 0.6, 0.8, -0.7, 0, 0]], np.float32)
    tilted = np.array(
        [[1, 0.1, -9, 0.2, 1, -7, 0.01, 0.02], [2, 0, 3, 0, 1.5, 4, 0, 0]], np.float32
    )
    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for kind in ("NEAREST", "BILINEAR"):
            for name, image, transforms in (
                ("turned", x, turned),
                ("tilted", x, tilted),
                ("bytes", bytes_, tilted),
            ):
                value = raw.ImageProjectiveTransformV3(
                    images=image,
                    transforms=record.input(transforms, [None, 8]),
                    output_shape=(7, 12),
                    fill_value=np.float32(3),
                    interpolation=kind,
                    fill_mode=mode,
                )
                record.case(f"project_{mode}_{kind}_{name}", value)
    value = raw.ImageProjectiveTransformV2(
        images=x, transforms=turned, output_shape=(4, 4), interpolation="BILINEAR"
    )
    record.case("project_v2", value)
