"""
Operators of ONNX Runtime's own domain, which have no schema in onnx: each is a function of standard
operators, as if the model brought it along.

Arithmetic on quantized tensors is that on the numbers they stand for, quantized again.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from onnx import FunctionProto, parser

DOMAIN = "com.microsoft"

_HEADER = '<domain: "com.microsoft", opset_import: ["" : 21]>\n'

_FUNCTIONS = (
    """
    QLinearAdd (A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Add (a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }""",
    """
    QLinearMul (A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Mul (a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }""",
    """
    QLinearSigmoid (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      y = Sigmoid (x)
      Y = QuantizeLinear (y, y_scale, y_zero)
    }""",
    """
    QLinearLeakyRelu <alpha: float = 0.01> (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      y = LeakyRelu <alpha: float = @alpha> (x)
      Y = QuantizeLinear (y, y_scale, y_zero)
    }""",
    # Before opset 13 softmax is over all dimensions from the axis on.
    """
    QLinearSoftmax <axis: int = -1, opset> (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      version = Constant <value_int: int = @opset> ()
      limit = Constant <value_int = 13> ()
      is_old = Less (version, limit)
      y = If (is_old) <
        then_branch = flat () => (rows) {
          matrix = Flatten <axis: int = @axis> (x)
          parts = Softmax <axis = 1> (matrix)
          shape = Shape (x)
          rows = Reshape (parts, shape)
        },
        else_branch = along () => (same) {
          same = Softmax <axis: int = @axis> (x)
        }
      >
      Y = QuantizeLinear (y, y_scale, y_zero)
    }""",
)


@cache
def contrib_functions() -> tuple[FunctionProto, ...]:
    """The functions."""
    parse: Any = cast(Any, parser).parse_function
    return tuple(parse(_HEADER + text) for text in _FUNCTIONS)
