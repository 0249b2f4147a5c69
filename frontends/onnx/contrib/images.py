"""Operators on images, with channels last or before what is spatial."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, defines

_WINDOWS = ("dilations", "kernel_shape", "pads", "strides")


def _attributes(call: Call, *more: str) -> str:
    """Those that windows have, and others that are integers, as references."""
    kinds = {"auto_pad": "string"} | dict.fromkeys(more, "int")
    kinds |= {name: "ints" for name in _WINDOWS if call.gives(name)}
    return ", ".join(f"{name}: {kind} = @{name}" for name, kind in kinds.items())


def _ordered(y: str, x: str, rank: int, *, is_last: bool, back: bool = False) -> str:
    """The node that makes y of x: with channels behind the batch, or `back` where they were."""
    if not is_last:
        return f"{y} = Identity ({x})"
    places = list(range(rank))
    order = [0, *places[2:], 1] if back else [0, rank - 1, *places[1 : rank - 1]]
    return f"{y} = Transpose <perm = {order}> ({x})"


@defines(
    """QLinearConv <
      auto_pad: string = "NOTSET", channels_last: int = 0, dilations: ints = [], group: int = 1,
      kernel_shape: ints = [], pads: ints = [], strides: ints = []
    > (X, x_scale, x_zero, W, w_scale, w_zero, y_scale, y_zero, B) => (Y)"""
)
def qlinear_conv(call: Call) -> str:
    """The filter has its channels before what is spatial in either case."""
    is_last = bool(call.int("channels_last"))
    rank = len(call.dims("W"))
    return f"""
      {_ordered("x", "X", rank, is_last=is_last)}
      y = QLinearConv <{_attributes(call, "group")}> (
        x, x_scale, x_zero, W, w_scale, w_zero, y_scale, y_zero, B
      )
      {_ordered("Y", "y", rank, is_last=is_last, back=True)}"""


@defines(
    """QLinearAveragePool <
      auto_pad: string = "NOTSET", ceil_mode: int = 0, channels_last: int = 0,
      count_include_pad: int = 0, kernel_shape, pads: ints = [], strides: ints = []
    > (X, x_scale, x_zero, y_scale, y_zero) => (Y)"""
)
def qlinear_average_pool(call: Call) -> str:
    """The mean of each window."""
    is_last, rank = bool(call.int("channels_last")), len(call.ints("kernel_shape")) + 2
    return f"""
      {_ordered("q", "X", rank, is_last=is_last)}
      x = DequantizeLinear (q, x_scale, x_zero)
      y = AveragePool <{_attributes(call, "ceil_mode", "count_include_pad")}> (x)
      r = QuantizeLinear (y, y_scale, y_zero)
      {_ordered("Y", "r", rank, is_last=is_last, back=True)}"""


@defines(
    "QLinearGlobalAveragePool <channels_last: int = 0> (X, x_scale, x_zero, y_scale, y_zero) => (Y)"
)
def qlinear_global_average_pool(call: Call) -> str:
    """The mean of each channel; images with channels last have four dimensions."""
    is_last = bool(call.int("channels_last"))
    return f"""
      {_ordered("q", "X", 4, is_last=is_last)}
      x = DequantizeLinear (q, x_scale, x_zero)
      y = GlobalAveragePool (x)
      r = QuantizeLinear (y, y_scale, y_zero)
      {_ordered("Y", "r", 4, is_last=is_last, back=True)}"""


@defines(
    """NhwcMaxPool <
      auto_pad: string = "NOTSET", ceil_mode: int = 0, dilations: ints = [], kernel_shape,
      pads: ints = [], strides: ints = []
    > (X) => (Y)"""
)
def nhwc_max_pool(call: Call) -> str:
    """The greatest of each window."""
    rank = len(call.ints("kernel_shape")) + 2
    return f"""
      {_ordered("x", "X", rank, is_last=True)}
      y = MaxPool <{_attributes(call, "ceil_mode")}> (x)
      {_ordered("Y", "y", rank, is_last=True, back=True)}"""
