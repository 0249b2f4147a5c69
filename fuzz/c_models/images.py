"""Pools, and images of other sizes."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import IMAGE, onnx_model

onnx_model(
    "pools",
    "float[n, 4, h, w] x, double[1, 2, t] s",
    "y, i, a, l, m, g",
    """
    y, i = MaxPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1],
        dilations = [1, 2]>(x)
    a = AveragePool<kernel_shape = [2, 3], strides = [2, 2], auto_pad = "SAME_UPPER">(x)
    l = LpPool<kernel_shape = [2, 2], p = 3>(x)
    m = GlobalMaxPool(x)
    g = MaxPool<kernel_shape = [3], strides = [3]>(s)
    """,
    sizes={**IMAGE, "t": (3, 8)},
)
onnx_model(
    "pool_of_bytes",
    "int8[n, 3, h, w] x, uint8[1, 3, 8, 8] u",
    "y, v",
    """
    y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
    v = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(u)
    """,
    sizes=IMAGE,
)
onnx_model(
    "unpool",
    "float[1, 1, h, w] x, int64[1, 1, h, w] i",
    "y",
    """
    y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i)
    """,
    values={},
    sizes={"h": (1, 2, 4), "w": (1, 3)},
)
onnx_model(
    "resize",
    "float[n, 2, h, w] x, float[4] scales",
    "a, c",
    """
    a = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , by)
    c = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric",
        nearest_mode = "floor">(x, , scales)
    """,
    {"by": np.array([1, 1, 2, 1.5], np.float32)},
    sizes={"n": (1,), "h": (1, 4, 6), "w": (1, 3, 8)},
    values={"scales": (1, 3)},
)
onnx_model(
    "resize_to",
    "float[n, 2, h, w] x, int64[4] size",
    "b, d",
    """
    b = Resize<mode = "cubic", coordinate_transformation_mode = "align_corners">(x, , , to)
    d = Resize<mode = "linear">(x, , , size)
    """,
    {"to": np.array([1, 2, 7, 5])},
    sizes={"n": (1,), "h": (1, 4, 6), "w": (1, 3, 8)},
    values={"size": (0, 9)},
)
onnx_model(
    "grid_sample",
    "float[n, 3, h, w] x, float[n, p, q, 2] grid",
    "y, z",
    """
    y = GridSample<mode = "linear", padding_mode = "reflection">(x, grid)
    z = GridSample<mode = "nearest", padding_mode = "border", align_corners = 1>(x, grid)
    """,
    opset=20,
    sizes={"n": (1, 2), "h": (2, 5), "w": (3, 4), "p": (1, 3), "q": (2, 5)},
)
onnx_model(
    "roi_align",
    "float[n, 3, h, w] x, float[r, 4] rois, int64[r] batch",
    "a",
    """
    a = RoiAlign<output_height = 2, output_width = 2, mode = "max",
        sampling_ratio = 1>(x, rois, batch)
    """,
    sizes={"n": (1, 2), "h": (2, 5), "w": (3, 4), "r": (0, 1, 3)},
)
onnx_model(
    "roi_adaptive",
    "float[1, 2, 6, 7] x, float[r, 4] rois, int64[r] batch",
    "y",
    """
    y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 0>(x, rois, batch)
    """,
    values={"rois": (-2, 9)},
    sizes={"r": (0, 1, 3)},
)
onnx_model(
    "suppression",
    "float[n, b, 4] boxes, float[n, c, b] scores, int64[1] most, float[1] iou, float[1] least",
    "y",
    """
    y = NonMaxSuppression(boxes, scores, most, iou, least)
    """,
    sizes={"n": (1, 2), "b": (1, 4, 9), "c": (1, 3)},
)
