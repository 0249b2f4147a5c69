"""Operators of networks that diffuse images: groups of channels, residuals and gates."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, define, defines

define("BiasAdd (X, bias, skip) => (Y) { x = Add (X, bias) \n Y = Add (x, skip) }")

# An odd number of columns has no halves, which the reshape refuses.
define(
    """
    BiasSplitGelu (X, bias) => (Y) {
      x = Add (X, bias)
      sizes = Constant <value_ints = [0, 0, 2, -1]> ()
      pairs = Reshape (x, sizes)
      left_part, right_part = Split <axis = 2, num_outputs = 2> (pairs)
      halves = Constant <value_ints = [2]> ()
      left = Squeeze (left_part, halves)
      right = Squeeze (right_part, halves)
      gate = Gelu (right)
      Y = Mul (left, gate)
    }
    """
)


def _normalized(call: Call, x: str) -> str:
    """Y of x, which has four dimensions: all of it is computed in f32."""
    is_last, activation = bool(call.int("channels_last")), call.int("activation")
    if activation not in (0, 1):
        raise ValueError(f"found activation {activation}, expected 0 (none) or 1 (SiLU)")
    before = "Transpose <perm = [0, 3, 1, 2]>" if is_last else "Identity"
    behind = "Transpose <perm = [0, 2, 3, 1]>" if is_last else "Identity"
    silu = "part = Sigmoid (y)\n z = Mul (y, part)" if activation else "z = Identity (y)"
    return f"""
      whole = Cast <to = 1> ({x})
      scale = Cast <to = 1> (gamma)
      shift = Cast <to = 1> (beta)
      image = {before} (whole)
      y = GroupNormalization <epsilon: float = @epsilon, num_groups: int = @groups> (
        image, scale, shift
      )
      {silu}
      in_order = {behind} (z)
      Y = CastLike (in_order, X)"""


@defines(
    """GroupNorm <activation, channels_last: int = 1, epsilon: float = 1.0e-05, groups> (
      X, gamma, beta
    ) => (Y)"""
)
def group_norm(call: Call) -> str:
    """The normalization of groups of channels, and an activation function of it."""
    return _normalized(call, "X")


@defines(
    """SkipGroupNorm <activation, channels_last: int = 1, epsilon: float = 1.0e-05, groups> (
      X, gamma, beta, skip, bias
    ) => (Y, S)"""
)
def skip_group_norm(call: Call) -> str:
    """GroupNorm of a sum; what skips a layer is an image, or a row of channels for each image."""
    if not call.int("channels_last"):
        raise ValueError("found channels_last = 0, expected 1: what is added has channels last")
    return f"""
      ones = Constant <value_ints = [1, 1]> ()
      images = Shape <start = 0, end = 1> (skip)
      inside = Shape <start = 1, end = -1> (skip)
      channels = Shape <start = -1> (skip)
      sides = Concat <axis = 0> (ones, inside)
      from = Constant <value_ints = [-2]> ()
      to = Constant <value_ints = [{(1 << 63) - 1}]> ()
      last_sides = Slice (sides, from, to)
      sizes = Concat <axis = 0> (images, last_sides, channels)
      row = Reshape (skip, sizes)
      with_row = Add (X, row)
      total = {"Add (with_row, bias)" if call.has("bias") else "Identity (with_row)"}
      {"S = Identity (total)" if call.wants("S") else ""}
      {_normalized(call, "total")}"""
