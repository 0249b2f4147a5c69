"""Pools, and images of other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.onnx_graphs import Builder, Skip, recipe
from fuzz.onnx_nodes.conditions import has_nan, is_finite
from fuzz.onnx_nodes.products import spatial, window


@recipe("MaxPool", "AveragePool", "LpPool", weight=6)
def pool(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    rank = b.random.choice((1, 2, 2, 3))
    size = spatial(b, rank)
    kernel = [min(b.random.choice((1, 2, 3)), s) for s in size]
    attributes = window(b, rank, size, kernel, op)
    schema = b.schema(op)
    if "ceil_mode" in schema.attributes and "auto_pad" not in attributes:
        attributes["ceil_mode"] = b.random.choice((None, 0, 1))
    if op == "AveragePool":
        attributes["count_include_pad"] = b.random.choice((None, 0, 1))
    if op == "LpPool":
        attributes["p"] = b.random.choice((None, 1, 2, 3))
    outputs = 1
    if op == "MaxPool" and b.opset >= 8 and b.chance(0.3):
        outputs = 2
        attributes["storage_order"] = b.random.choice((None, 0, 1))
    x = b.pick(
        dtype,
        (b.random.choice((1, 2)), b.random.choice((1, 2, 3, 8, 17)), *size),
        sane=op != "MaxPool",
        test=b.mostly(lambda a: not has_nan(a)) if op == "MaxPool" else None,
    )
    b.node(op, [x], outputs, kernel_shape=kernel, **attributes)


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", weight=3)
def global_pool(b: Builder, op: str) -> None:
    test = b.mostly(lambda a: not has_nan(a)) if op == "GlobalMaxPool" else None
    x = b.pick(b.dtype(op), low=3, sane=op != "GlobalMaxPool", test=test)
    if not x.array.size:
        raise Skip
    p = b.random.choice((None, 1, 2, 3)) if op == "GlobalLpPool" else None
    b.node(op, [x], p=p)


@recipe("MaxRoiPool", weight=1)
def max_roi_pool(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), (1, 2, 6, 6))
    rois = np.array(
        [
            [
                0,
                *sorted((b.random.randint(0, 2), b.random.randint(0, 2))),
                *sorted((b.random.randint(3, 5), b.random.randint(3, 5))),
            ]
            for _ in "ab"
        ]
    )
    b.node(op, [x, b.leaf(rois.astype(x.array.dtype))], pooled_shape=[2, 2])


@recipe("RoiAlign", weight=2)
def roi_align(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    x = b.pick(dtype, (2, 2, 6, 5), sane=True)
    rois = np.array([[0.5, 0.75, 3.25, 4.5], [1, 0, 4, 3.5]]).astype(dtype)
    at = b.leaf(np.array([b.random.randint(0, 1) for _ in "ab"], np.int64))
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 3}
    attributes["mode"] = b.random.choice((None, "avg", "max"))
    attributes["sampling_ratio"] = b.random.choice((None, 1, 2))
    if b.opset >= 16:
        attributes["coordinate_transformation_mode"] = b.random.choice(
            (None, "half_pixel", "output_half_pixel")
        )
    b.node(op, [x, b.leaf(rois), at], **attributes)


@recipe("MaxUnpool", weight=2)
def max_unpool(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    shape = (1, 2, 2, 3)
    places = b.random.sample(range(4 * 6), 6) + b.random.sample(range(24, 48), 6)
    at = np.array(places, np.int64).reshape(shape)
    b.node(op, [b.pick(dtype, shape), b.leaf(at)], kernel_shape=[2, 2], strides=[2, 2])


@recipe("Resize", "Upsample", weight=5)
def resize(b: Builder, op: str) -> None:
    rank = b.random.choice((1, 2, 3, 4, 4))
    if op == "Upsample":
        if b.opset not in (7, 8, 9):
            raise Skip
        x = b.pick(
            b.dtype(op),
            low=rank,
            high=rank,
            sane=True,
            test=b.mostly(lambda a: bool(a.size) and is_finite(a)),
        )
        if not x.array.size:
            raise Skip
        scales = [b.random.choice((1.0, 2.0, 1.5, 3.0)) for _ in range(rank)]
        mode = "nearest"
        if rank == 4 and b.chance(0.5):
            mode, scales[:2] = "linear", [1.0, 1.0]
        if b.opset < 9:
            b.node(op, [x], scales=scales, mode=mode)
        else:
            b.node(op, [x, b.parameter(scales, np.float32)], mode=mode)
        return
    dtype = b.dtype(op, "T" if b.opset < 11 else "T1")
    modes = ("nearest", "linear", "cubic") if b.opset >= 11 else ("nearest", "linear")
    mode = b.random.choice(modes)
    test = None if mode == "nearest" else b.mostly(is_finite)
    x = b.pick(dtype, low=rank, high=rank, sane=True, test=test)
    if not x.array.size:
        raise Skip
    shape = x.array.shape
    changed = b.random.sample(
        range(rank), 1 if mode == "nearest" and b.chance(0.5) else min(rank, 2)
    )
    if mode != "nearest":
        changed = list(range(rank))[-2:]
    sizes = [
        b.random.choice((s, s * 2, s + 1, max(s - 1, 1), 2 * s + 1)) if k in changed else s
        for k, s in enumerate(shape)
    ]
    scales = [
        b.random.choice((2.0, 0.5, 1.5, 3.0, 0.75)) if k in changed else 1.0 for k in range(rank)
    ]
    if any(int(s * f) == 0 for s, f in zip(shape, scales, strict=True)):
        scales = [max(f, 1.0) for f in scales]
    if b.opset < 11:
        b.node(op, [x, b.parameter(scales, np.float32)], mode=mode)
        return
    attributes: dict[str, Any] = {"mode": mode}
    modes = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
    if b.opset < 13:
        modes.append("tf_half_pixel_for_nn")
    if b.opset >= 19:
        modes.append("half_pixel_symmetric")
    attributes["coordinate_transformation_mode"] = b.random.choice((None, *modes))
    if mode == "nearest":
        rounding = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        attributes["nearest_mode"] = b.random.choice((None, *rounding))
    if mode == "cubic":
        attributes["exclude_outside"] = b.random.choice((None, 0, 1))
        attributes["cubic_coeff_a"] = b.random.choice((None, -0.5))
    if b.opset >= 18 and mode != "nearest" and b.chance(0.3):
        attributes["antialias"] = 1
    if b.opset >= 18 and b.chance(0.2):
        axes = sorted(changed)
        attributes["axes"] = axes
        sizes, scales = [sizes[a] for a in axes], [scales[a] for a in axes]
    roi: Any = None if b.opset >= 13 else b.leaf(np.zeros(0, np.float32), 0)
    if b.chance(0.5):
        if b.opset < 13:
            b.node(
                op, [x, roi, b.leaf(np.zeros(0, np.float32), 0), b.parameter(sizes)], **attributes
            )
        else:
            b.node(op, [x, roi, None, b.parameter(sizes)], **attributes)
    else:
        b.node(op, [x, roi, b.parameter(scales, np.float32)], **attributes)


@recipe("GridSample", weight=3)
def grid_sample(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1", "fiu")
    other = b.dtype(op, "T2")
    rank = 2 if b.opset < 20 else b.random.choice((2, 2, 3))
    x = b.pick(
        dtype,
        (b.random.choice((1, 2)), 2, *([4, 5, 3][:rank])),
        sane=True,
        test=b.mostly(is_finite),
    )
    grid = b.array(other, (x.array.shape[0], *([3, 2, 2][:rank]), rank), True)
    modes = ("bilinear", "nearest", "bicubic") if b.opset < 20 else ("linear", "nearest", "cubic")
    if rank == 3:
        modes = modes[:2]
    b.node(
        op,
        [x, b.leaf(np.clip(np.nan_to_num(grid), -1.5, 1.5).astype(other))],
        mode=b.random.choice(modes),
        padding_mode=b.random.choice((None, "zeros", "border", "reflection")),
        align_corners=b.random.choice((None, 0, 1)),
    )


@recipe("AffineGrid", weight=2)
def affine_grid(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    rank = b.random.choice((2, 3))
    n = b.random.choice((1, 2))
    theta = b.pick(dtype, (n, rank, rank + 1), sane=True)
    b.node(
        op,
        [theta, b.parameter([n, 2, *([3, 4, 2][:rank])])],
        align_corners=b.random.choice((None, 0, 1)),
    )


@recipe("Col2Im", weight=2)
def col2im(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    image, block = [5, 4], [2, b.random.choice((1, 2))]
    columns = (5 - 2 + 1) * (4 - block[1] + 1)
    x = b.pick(dtype, (1, 2 * 2 * block[1], columns), sane=True)
    b.node(op, [x, b.parameter(image), b.parameter(block)])
