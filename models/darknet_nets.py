"""
Nets of DarkNet with random weights: a writer of weights files, and cfgs.

    python -m models.darknet_nets FOLDER [NAME ...]

writes each net as NAME.cfg and NAME.weights. Weights are random numbers of a scale that keeps what
goes through the net near one.
"""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.darknet.import_ import weight_shapes


def write_net(
    folder: Path,
    name: str,
    text: str,
    *,
    seed: int = 0,
    version: tuple[int, int, int] = (0, 2, 5),
    gain: float = 1.0,
) -> Path:
    """
    Write a cfg and its weights; the path of the cfg. `gain` times are the scales of batch
    normalizations, so that numbers stay small in deep nets with sums.
    """
    path = folder / f"{name}.cfg"
    path.write_text(text)
    random = np.random.default_rng(seed)
    lists = [_numbers(random, part, shape, gain) for _, part, shape in weight_shapes(path)]
    has_long = version[0] * 10 + version[1] >= 2
    header = struct.pack("<3i" + ("q" if has_long else "i"), *version, 32)
    path.with_suffix(".weights").write_bytes(header + b"".join(one.tobytes() for one in lists))
    return path


def _numbers(
    random: np.random.Generator, part: str, shape: tuple[int, ...], gain: float
) -> NDArray[np.float32]:
    numbers: NDArray[Any] = random.normal(size=shape)
    match part.rpartition(".")[2]:
        case "variance":
            numbers = 0.5 + random.random(shape)
        case "scales":
            numbers = gain * (1 + 0.2 * numbers)
        case "biases" | "mean":
            numbers *= 0.2
        case _:
            fan = prod(shape[-3:]) if len(shape) > 3 else shape[-1] if len(shape) > 1 else 4
            numbers *= (1.5 / fan) ** 0.5
    return numbers.astype(np.float32)


def net(*layers: str, **sizes: int) -> str:
    """
    A cfg of layers in short: `convolutional filters=4 size=3` is a section and its keys.

    `sizes` are those of [net]: by default an image [3, 8, 8].
    """
    sizes = sizes or {"channels": 3, "height": 8, "width": 8}
    keys = " ".join(f"{name}={size}" for name, size in sizes.items())
    lines: list[str] = []
    for layer in (f"net {keys}", *layers):
        section, *rest = layer.split()
        lines += [f"[{section}]", *rest, ""]
    return "\n".join(lines)


def conv(
    filters: int, size: int = 1, stride: int = 1, activation: str = "leaky", more: str = ""
) -> str:
    """A convolution with batch normalization, padded by half of its size."""
    return (
        f"convolutional batch_normalize=1 filters={filters} size={size} stride={stride} pad=1 "
        f"activation={activation} {more}"
    )


def route(*layers: int, more: str = "") -> str:
    """Results of other layers joined."""
    return f"route layers={','.join(map(str, layers))} {more}"


def head(mask: str, classes: int = 80, more: str = "", anchors: str = "") -> list[str]:
    """The last convolution and the yolo layer of three boxes a cell."""
    count = mask.count(",") + 1
    anchors = anchors or "10,14, 23,27, 37,58, 81,82, 135,169, 344,319, 30,40, 50,60, 70,80"
    anchors = anchors.replace(" ", "")
    return [
        f"convolutional size=1 stride=1 pad=1 filters={count * (5 + classes)} activation=linear",
        f"yolo mask={mask} anchors={anchors} classes={classes} num=9 {more}",
    ]
