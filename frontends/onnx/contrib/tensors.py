"""Operators on whole tensors, most of which are older forms of standard ones."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, define, defines

define("GatherND (data, indices) => (output) { output = GatherND (data, indices) }")
define("Trilu <upper: int = 1> (X, k) => (Y) { Y = Trilu <upper: int = @upper> (X, k) }")

define(
    """
    ExpandDims (X, axis) => (Y) {
      one = Constant <value_ints = [1]> ()
      axis_row = Reshape (axis, one)
      axes = Cast <to = 7> (axis_row)
      Y = Unsqueeze (X, axes)
    }
    """
)

define(
    """
    Pad <mode: string = "constant"> (data, pads, value) => (output) {
      flat = Constant <value_ints = [-1]> ()
      ends = Reshape (pads, flat)
      output = Pad <mode: string = @mode> (data, ends, value)
    }
    """
)


@defines("Range (start, limit, delta) => (Y)")
def range_(call: Call) -> str:
    """Numbers of equal distance, which is 1 by default; what is given may have one dimension."""
    names = ("start", "limit", "delta")
    parts = [f"{name}_ = Squeeze ({name})" for name in names if call.has(name)]
    if not call.has("delta"):
        parts.append("one = Constant <value_int = 1> ()\n delta_ = CastLike (one, start)")
    return "\n".join([*parts, "Y = Range (start_, limit_, delta_)"])


@defines('CDist <metric: string = "sqeuclidean"> (A, B) => (C)')
def c_dist(call: Call) -> str:
    """The distances, or their squares, of all rows of two matrices."""
    root = (
        "Sqrt" if call.string("metric", "euclidean", "sqeuclidean") == "euclidean" else "Identity"
    )
    return f"""
      first = Constant <value_ints = [0]> ()
      along = Constant <value_ints = [1]> ()
      last = Constant <value_ints = [2]> ()
      a = Unsqueeze (A, along)
      b = Unsqueeze (B, first)
      difference = Sub (a, b)
      squares = Mul (difference, difference)
      total = ReduceSum <keepdims = 0> (squares, last)
      C = {root} (total)"""
