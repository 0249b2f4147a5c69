"""Pools, resizing, and rearrangements of images."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.tflite_graphs import Graph
from fuzz.tflite_nodes.products import ACTIVATIONS, windowed


def pool(g: Graph) -> object:
    """Pools; padding does not count."""
    kind = g.rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"])
    types = ("FLOAT32",) if kind == "L2_POOL_2D" else ("FLOAT32", "INT8", "UINT8", "INT16")
    x = g.pick(*types, rank=4)
    kernel = [g.rng.choice([1, 2, 3, 5]) for _ in range(2)]
    strides = [g.rng.choice([1, 2, 3]) for _ in range(2)]
    padding = g.rng.choice(["SAME", "VALID"])
    sizes = [
        windowed(s, k, stride, 1, padding)
        for s, k, stride in zip(x.shape[1:3], kernel, strides, strict=True)
    ]
    if min(sizes) < 1:
        return None
    options = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "filter_height": kernel[0],
        "filter_width": kernel[1],
        "fused_activation_function": g.rng.choice(ACTIVATIONS),
    }
    exact = x.exact and kind == "MAX_POOL_2D"
    shape = (x.shape[0], *sizes, x.shape[3])
    return g.op(kind, [x], (shape, x.type, x.q), options=("Pool2DOptions", options), exact=exact)


def resize(g: Graph) -> object:
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR by all three rules of coordinates."""
    kind = g.rng.choice(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
    x = g.pick("FLOAT32", "INT8", "UINT8", "INT16", rank=4)
    sizes = g.shape(2, 9)
    rule = g.rng.choice(["", "align_corners", "half_pixel_centers"])
    name = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    return g.op(
        kind,
        [x, g.integers(sizes)],
        ((x.shape[0], *sizes, x.shape[3]), x.type, x.q),
        options=(name, {rule: True} if rule else {}),
        exact=x.exact and kind != "RESIZE_BILINEAR",
    )


def depth_and_space(g: Graph) -> object:
    """SPACE_TO_DEPTH and DEPTH_TO_SPACE."""
    block = g.rng.choice([1, 2, 3])
    n, h, w, c = g.shape(4, 3)
    type_ = g.rng.choice(["FLOAT32", "INT8", "UINT8", "INT32"])
    small, large = (n, h, w, c * block * block), (n, h * block, w * block, c)
    kind = g.rng.choice(["SPACE_TO_DEPTH", "DEPTH_TO_SPACE"])
    given, made = (large, small) if kind == "SPACE_TO_DEPTH" else (small, large)
    x = g.pick(type_, rank=4, where=lambda value: value.shape == given)
    if x.shape != given:
        x = g.new(type_, given)
    name = "SpaceToDepthOptions" if kind == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    return g.op(kind, [x], (made, x.type, x.q), options=(name, {"block_size": block}))


def batch_and_space(g: Graph) -> object:
    """SPACE_TO_BATCH_ND with padding, and BATCH_TO_SPACE_ND with crops."""
    blocks = [g.rng.choice([1, 2, 3]) for _ in range(g.rng.choice([1, 2]))]
    type_ = g.rng.choice(["FLOAT32", "INT8", "UINT8"])
    inner, batch, depth = g.shape(len(blocks), 4), g.size(2), g.size(4)
    factor = 1
    for block in blocks:
        factor *= block
    pads = [[g.rng.randint(0, 2), 0] for _ in blocks]
    if g.chance(0.5):
        for pad, size, block in zip(pads, inner, blocks, strict=True):
            pad[1] = -(size + pad[0]) % block
        sizes = [(s + sum(p)) // b for s, p, b in zip(inner, pads, blocks, strict=True)]
        x = g.new(type_, (batch, *inner, depth))
        made = (batch * factor, *sizes, depth)
        kind = "SPACE_TO_BATCH_ND"
    else:
        sizes = [s * b for s, b in zip(inner, blocks, strict=True)]
        pads = [[g.rng.randint(0, (s - 1) // 2), g.rng.randint(0, (s - 1) // 2)] for s in sizes]
        x = g.new(type_, (batch * factor, *inner, depth))
        made = (batch, *(s - sum(p) for s, p in zip(sizes, pads, strict=True)), depth)
        kind = "BATCH_TO_SPACE_ND"
    name = "SpaceToBatchNDOptions" if kind == "SPACE_TO_BATCH_ND" else "BatchToSpaceNDOptions"
    inputs = [x, g.integers(blocks), g.integers(pads)]
    return g.op(kind, inputs, (made, x.type, x.q), options=(name, {}))


RECIPES: tuple[Callable[[Graph], object], ...] = (
    pool, pool, resize, resize, depth_and_space, batch_and_space,
)  # fmt: skip
