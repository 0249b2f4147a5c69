"""
Three networks as PyTorch's exporter writes them, for `export_sizes.py`: a recurrent one, an encoder
and a detection head. What is dynamic there is dynamic here; weights are random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.parser
from numpy.typing import NDArray
from onnx import numpy_helper

Array: TypeAlias = NDArray[Any]


def networks() -> dict[str, tuple[onnx.ModelProto, dict[str, Array]]]:
    """The models by name, each with inputs."""
    rng = np.random.default_rng(0)
    mask = np.ones((2, 9), bool)
    mask[1, 6:] = False
    return {
        "gru": (_gru(rng), {"x": _normal(rng, 2, 9, 16)}),
        "encoder": (_encoder(rng), {"x": _normal(rng, 2, 9, 32), "keep": mask}),
        "detection_head": (_detection_head(rng), {"image": _normal(rng, 1, 3, 48, 64)}),
    }


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _model(
    opset: int, signature: str, lines: Sequence[str], weights: Mapping[str, Array]
) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\n{signature} {{\n'
    model = onnx.parser.parse_model(text + "\n".join(lines) + "\n}")
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for index, node in enumerate(model.graph.node):
        node.name = f"/{node.op_type}_{index}"
    return model


def _gru(rng: np.random.Generator) -> onnx.ModelProto:
    """Two bidirectional layers, batch first, whose initial states are zeros of computed size."""
    hidden, weights, lines = 24, dict[str, Array](), ["t0 = Transpose <perm = [1, 0, 2]> (x)"]
    lines += [
        "shape = Shape (x)",
        "zero = Constant <value = int64 {0}> ()",
        "batch = Gather <axis = 0> (shape, zero)",
        "axis0 = Constant <value = int64[1] {0}> ()",
        "batch1 = Unsqueeze (batch, axis0)",
        "layers = Constant <value = int64[1] {4}> ()",
        f"width = Constant <value = int64[1] {{{hidden}}}> ()",
        "sizes = Concat <axis = 0> (layers, batch1, width)",
        "states = ConstantOfShape <value = float[1] {0.0}> (sizes)",
        "merged = Constant <value = int64[3] {0, 0, -1}> ()",
    ]
    for layer, size in enumerate((16, 2 * hidden)):
        start, end = 2 * layer, 2 * layer + 2
        weights |= {
            f"W{layer}": 0.2 * _normal(rng, 2, 3 * hidden, size),
            f"R{layer}": 0.2 * _normal(rng, 2, 3 * hidden, hidden),
            f"B{layer}": 0.2 * _normal(rng, 2, 6 * hidden),
        }
        lines += [
            f"from{layer} = Constant <value = int64[1] {{{start}}}> ()",
            f"to{layer} = Constant <value = int64[1] {{{end}}}> ()",
            f"h{layer} = Slice (states, from{layer}, to{layer}, axis0)",
            f'y{layer}, last{layer} = GRU <direction = "bidirectional", hidden_size = {hidden}, '
            f"linear_before_reset = 1> (t{layer}, W{layer}, R{layer}, B{layer}, , h{layer})",
            f"m{layer} = Transpose <perm = [0, 2, 1, 3]> (y{layer})",
            f"t{layer + 1} = Reshape (m{layer}, merged)",
        ]
    lines += ["y = Transpose <perm = [1, 0, 2]> (t2)", "h = Concat <axis = 0> (last0, last1)"]
    signature = "gru (float[b, t, 16] x) => (float[b, t, 48] y, float[4, b, 24] h)"
    return _model(17, signature, lines, weights)


def _encoder(rng: np.random.Generator) -> onnx.ModelProto:
    """Two layers of attention with a padding mask; opset 14, which has no LayerNormalization."""
    width, heads, lines = 32, 4, list[str]()
    weights: dict[str, Array] = {}

    def linear(name: str, x: str, out: str, rows: int, columns: int) -> None:
        weights[f"{name}_weight"] = 0.2 * _normal(rng, columns, rows)
        weights[f"{name}_bias"] = 0.2 * _normal(rng, columns)
        lines.append(f"{out}_w = Transpose <perm = [1, 0]> ({name}_weight)")
        lines.append(f"{out}_m = MatMul ({x}, {out}_w)")
        lines.append(f"{out} = Add ({name}_bias, {out}_m)")

    def norm(name: str, x: str, out: str) -> None:
        weights[f"{name}_weight"] = 1 + 0.1 * _normal(rng, width)
        weights[f"{name}_bias"] = 0.1 * _normal(rng, width)
        lines.extend(
            (
                f"{out}_mean = ReduceMean <axes = [-1]> ({x})",
                f"{out}_c = Sub ({x}, {out}_mean)",
                f"{out}_two = Constant <value = float {{2.0}}> ()",
                f"{out}_sq = Pow ({out}_c, {out}_two)",
                f"{out}_var = ReduceMean <axes = [-1]> ({out}_sq)",
                f"{out}_eps = Constant <value = float {{0.00001}}> ()",
                f"{out}_e = Add ({out}_var, {out}_eps)",
                f"{out}_sd = Sqrt ({out}_e)",
                f"{out}_n = Div ({out}_c, {out}_sd)",
                f"{out}_s = Mul ({out}_n, {name}_weight)",
                f"{out} = Add ({out}_s, {name}_bias)",
            )
        )

    lines += [
        "lost = Not (keep)",
        "ax = Constant <value = int64[2] {1, 2}> ()",
        "lost4 = Unsqueeze (lost, ax)",
        "low = Constant <value = float {-3.4e38}> ()",
        "none = Constant <value = float {0.0}> ()",
        "mask = Where (lost4, low, none)",
        "shape = Shape (x)",
        "i0 = Constant <value = int64 {0}> ()",
        "i1 = Constant <value = int64 {1}> ()",
        "a0 = Constant <value = int64[1] {0}> ()",
        "dim0 = Gather <axis = 0> (shape, i0)",
        "dim1 = Gather <axis = 0> (shape, i1)",
        "b1 = Unsqueeze (dim0, a0)",
        "l1 = Unsqueeze (dim1, a0)",
        f"hh = Constant <value = int64[1] {{{heads}}}> ()",
        f"dd = Constant <value = int64[1] {{{width // heads}}}> ()",
        f"ww = Constant <value = int64[1] {{{width}}}> ()",
        "parts = Concat <axis = 0> (b1, l1, hh, dd)",
        "whole = Concat <axis = 0> (b1, l1, ww)",
        f"root = Constant <value = float {{{np.sqrt(width / heads):.9g}}}> ()",
        "sqrt2 = Constant <value = float {1.4142135381698608}> ()",
        "one = Constant <value = float {1.0}> ()",
        "half = Constant <value = float {0.5}> ()",
    ]
    x = "x"
    for layer in range(2):
        p = f"l{layer}_"
        for each in "qkv":
            linear(f"{p}{each}", x, f"{p}{each}_y", width, width)
            lines.append(f"{p}{each}_r = Reshape ({p}{each}_y, parts)")
            order = "0, 2, 3, 1" if each == "k" else "0, 2, 1, 3"
            lines.append(f"{p}{each}_t = Transpose <perm = [{order}]> ({p}{each}_r)")
        lines += [
            f"{p}scores = MatMul ({p}q_t, {p}k_t)",
            f"{p}small = Div ({p}scores, root)",
            f"{p}masked = Add ({p}small, mask)",
            f"{p}soft = Softmax <axis = -1> ({p}masked)",
            f"{p}mixed = MatMul ({p}soft, {p}v_t)",
            f"{p}back = Transpose <perm = [0, 2, 1, 3]> ({p}mixed)",
            f"{p}flat = Reshape ({p}back, whole)",
        ]
        linear(f"{p}out", f"{p}flat", f"{p}out_y", width, width)
        lines.append(f"{p}r1 = Add ({x}, {p}out_y)")
        norm(f"{p}n1", f"{p}r1", f"{p}x1")
        linear(f"{p}up", f"{p}x1", f"{p}up_y", width, 2 * width)
        lines += [
            f"{p}g1 = Div ({p}up_y, sqrt2)",
            f"{p}g2 = Erf ({p}g1)",
            f"{p}g3 = Add ({p}g2, one)",
            f"{p}g4 = Mul ({p}up_y, {p}g3)",
            f"{p}g5 = Mul ({p}g4, half)",
        ]
        linear(f"{p}down", f"{p}g5", f"{p}down_y", 2 * width, width)
        lines.append(f"{p}r2 = Add ({p}x1, {p}down_y)")
        x = "y" if layer == 1 else f"{p}x2"
        norm(f"{p}n2", f"{p}r2", x)
    signature = "encoder (float[b, t, 32] x, bool[b, t] keep) => (float[b, t, 32] y)"
    return _model(14, signature, lines, weights)


def _detection_head(rng: np.random.Generator) -> onnx.ModelProto:
    """Scores above a threshold, their boxes, and NonMaxSuppression; for images of any size."""
    weights = {
        "stem": 0.3 * _normal(rng, 16, 3, 3, 3),
        "gamma": 1 + 0.1 * _normal(rng, 16),
        "beta": 0.1 * _normal(rng, 16),
        "average": 0.1 * _normal(rng, 16),
        "variance": 1 + 0.1 * np.abs(_normal(rng, 16)),
        "head": 0.3 * _normal(rng, 5, 16, 1, 1),
        "head_bias": 0.1 * _normal(rng, 5),
    }
    lines = [
        "c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [4, 4]> (image, stem)",
        "n = BatchNormalization <epsilon = 0.00001> (c, gamma, beta, average, variance)",
        "r = Relu (n)",
        "h = Conv <kernel_shape = [1, 1]> (r, head, head_bias)",
        "rows = Transpose <perm = [0, 2, 3, 1]> (h)",
        "flat5 = Constant <value = int64[2] {-1, 5}> ()",
        "all = Reshape (rows, flat5)",
        "s0 = Constant <value = int64[1] {0}> ()",
        "s4 = Constant <value = int64[1] {4}> ()",
        "s5 = Constant <value = int64[1] {5}> ()",
        "a1 = Constant <value = int64[1] {1}> ()",
        "step = Constant <value = int64[1] {1}> ()",
        "raw = Slice (all, s0, s4, a1, step)",
        "logit = Slice (all, s4, s5, a1, step)",
        "squeezed = Squeeze (logit, a1)",
        "score = Sigmoid (squeezed)",
        "least = Constant <value = float {0.4}> ()",
        "good = Greater (score, least)",
        "where = NonZero (good)",
        "where_t = Transpose <perm = [1, 0]> (where)",
        "index = Squeeze (where_t, a1)",
        "boxes_raw = Gather <axis = 0> (raw, index)",
        "kept = Gather <axis = 0> (score, index)",
        "two = Constant <value = int64[1] {2}> ()",
        "at = Slice (boxes_raw, s0, two, a1, step)",
        "size_raw = Slice (boxes_raw, two, s4, a1, step)",
        "size = Exp (size_raw)",
        "half = Constant <value = float {0.5}> ()",
        "halved = Mul (size, half)",
        "low = Sub (at, halved)",
        "high = Add (at, halved)",
        "boxes = Concat <axis = 1> (low, high)",
        "boxes3 = Unsqueeze (boxes, s0)",
        "kept2 = Unsqueeze (kept, s0)",
        "kept3 = Unsqueeze (kept2, s0)",
        "most = Constant <value = int64 {9223372036854775807}> ()",
        "most1 = Unsqueeze (most, s0)",
        "overlap = Constant <value = float[1] {0.5}> ()",
        "chosen = NonMaxSuppression (boxes3, kept3, most1, overlap)",
        "third = Constant <value = int64[1] {2}> ()",
        "chosen2 = Gather <axis = 1> (chosen, third)",
        "picked = Squeeze (chosen2, a1)",
        "final = Gather <axis = 0> (boxes, picked)",
        "final_score = Gather <axis = 0> (kept, picked)",
    ]
    signature = "head (float[1, 3, H, W] image) => (float[k, 4] final, float[k] final_score)"
    return _model(17, signature, lines, weights)
