"""Arithmetic on quantized tensors: that on the numbers they stand for, quantized again."""

from lowerdeck.frontends.onnx.contrib.definition import define

define(
    """
    QLinearAdd (A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Add (a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }
    """
)

define(
    """
    QLinearMul (A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Mul (a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }
    """
)

define(
    """
    QLinearSigmoid (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      y = Sigmoid (x)
      Y = QuantizeLinear (y, y_scale, y_zero)
    }
    """
)

define(
    """
    QLinearLeakyRelu <alpha: float = 0.01> (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      y = LeakyRelu <alpha: float = @alpha> (x)
      Y = QuantizeLinear (y, y_scale, y_zero)
    }
    """
)

# Before opset 13 softmax is over all dimensions from the axis on.
define(
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
    }
    """
)
