"""Operators on images, with channels last or before what is spatial."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.activation import activated
from lowerdeck.frontends.onnx.contrib.definition import Call, defines, number

NHWC = "com.ms.internal.nhwc"
"""The domain of standard operators with channels last."""

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


# Convolutions of floats, whose filters are in order


def _conv(call: Call) -> str:
    """y: the convolution, with channels last."""
    rank = len(call.ints("kernel_shape")) + 2 if call.gives("kernel_shape") else len(call.dims("W"))
    return f"""
      {_ordered("x", "X", rank, is_last=True)}
      image = Conv <{_attributes(call, "group")}> (x, W, B)
      {_ordered("y", "image", rank, is_last=True, back=True)}"""


_CONV = """auto_pad: string = "NOTSET", dilations: ints = [], group: int = 1,
  kernel_shape: ints = [], pads: ints = [], strides: ints = []"""
_ACTIVATION = 'activation: string = "", activation_params: floats = []'


@defines(f"NhwcConv <{_CONV}> (X, W, B) => (Y)")
def nhwc_conv(call: Call) -> str:
    """The convolution of an image with channels last."""
    return f"{_conv(call)}\n Y = Identity (y)"


@defines(f"NhwcFusedConv <{_ACTIVATION}, {_CONV}> (X, W, B, Z) => (Y)")
def nhwc_fused_conv(call: Call) -> str:
    """An activation function of the result, to which Z has been added."""
    total = "Add (y, Z)" if call.has("Z") else "Identity (y)"
    return f"{_conv(call)}\n total = {total}\n {activated(call, 'Y', 'total')}"


@defines(f"Conv <{_ACTIVATION}, {_CONV}> (X, W, B) => (Y)", domain=NHWC)
def conv(call: Call) -> str:
    """NhwcConv with an activation function."""
    return f"{_conv(call)}\n {activated(call, 'Y', 'y')}"


def _pool(call: Call, name: str, *more: str) -> str:
    rank = len(call.ints("kernel_shape")) + 2
    return f"""
      {_ordered("x", "X", rank, is_last=True)}
      image = {name} <{_attributes(call, "ceil_mode", *more)}> (x)
      {_ordered("y", "image", rank, is_last=True, back=True)}
      {activated(call, "Y", "y")}"""


_POOL = f"""{_ACTIVATION}, auto_pad: string = "NOTSET", ceil_mode: int = 0,
  dilations: ints = [], kernel_shape, pads: ints = [], strides: ints = []"""


@defines(f"MaxPool <{_POOL}, storage_order: int = 0> (X) => (Y)", domain=NHWC)
def max_pool(call: Call) -> str:
    """The order of places does not matter, which are no output."""
    return _pool(call, "MaxPool")


@defines(f"AveragePool <{_POOL}, count_include_pad: int = 0> (X) => (Y)", domain=NHWC)
def average_pool(call: Call) -> str:
    """The mean of each window."""
    return _pool(call, "AveragePool", "count_include_pad")


# Samples


@defines(
    """GridSample <
      align_corners: int = 0, mode: string = "bilinear", padding_mode: string = "zeros"
    > (X, Grid) => (Y)"""
)
def grid_sample(call: Call) -> str:
    """The standard operator, whose modes have other names."""
    modes = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    mode = modes[call.string("mode", *modes)]
    return f"""Y = GridSample <
      align_corners: int = @align_corners, mode = "{mode}", padding_mode: string = @padding_mode
    > (X, Grid)"""


def _places(name: str, k: int) -> str:
    """
    {name}_place [regions, count]: where along side k of the image the numbers of a crop are read,
    and {name}_inside, whether this is in the image.
    """
    return f"""
      {name}_first = Constant <value_ints = [{k}]> ()
      {name}_second = Constant <value_ints = [{k + 2}]> ()
      {name}_from = Gather <axis = 1> (rois, {name}_first)
      {name}_to = Gather <axis = 1> (rois, {name}_second)
      {name}_side = Shape <start = {k + 2}, end = {k + 3}> (X)
      {name}_last_i64 = Sub ({name}_side, one_i64)
      {name}_last = CastLike ({name}_last_i64, rois)
      {name}_index = Constant <value_int = {k}> ()
      {name}_count_i32 = Gather (crop_size, {name}_index)
      {name}_count = Cast <to = 7> ({name}_count_i32)
      {name}_steps_i64 = Range (none_i64, {name}_count, one_i64)
      {name}_steps = CastLike ({name}_steps_i64, rois)
      {name}_end = Sub ({name}_count, one_i64)
      {name}_parts_i64 = Max ({name}_end, one_i64)
      {name}_parts = CastLike ({name}_parts_i64, rois)
      {name}_low = Mul ({name}_from, {name}_last)
      {name}_high = Mul ({name}_to, {name}_last)
      {name}_length = Sub ({name}_to, {name}_from)
      {name}_scaled = Mul ({name}_length, {name}_last)
      {name}_step = Div ({name}_scaled, {name}_parts)
      {name}_far = Mul ({name}_steps, {name}_step)
      {name}_inner = Add ({name}_low, {name}_far)
      {name}_is_end = Equal ({name}_steps_i64, {name}_end)
      {name}_spread = Where ({name}_is_end, {name}_high, {name}_inner)
      {name}_both = Add ({name}_from, {name}_to)
      {name}_mean = Mul ({name}_both, half)
      {name}_middle = Mul ({name}_mean, {name}_last)
      {name}_is_one = Equal ({name}_count, one_i64)
      {name}_any = Where ({name}_is_one, {name}_middle, {name}_spread)
      {name}_is_above = GreaterOrEqual ({name}_any, none)
      {name}_is_below = LessOrEqual ({name}_any, {name}_last)
      {name}_inside = And ({name}_is_above, {name}_is_below)
      {name}_place = Where ({name}_inside, {name}_any, none)
      {name}_lower = Floor ({name}_place)
      {name}_part = Sub ({name}_place, {name}_lower)"""


def _nearest(name: str) -> str:
    """Halves go up."""
    return f"""
      {name}_is_upper = GreaterOrEqual ({name}_part, half)
      {name}_above = CastLike ({name}_is_upper, rois)
      {name}_near = Add ({name}_lower, {name}_above)"""


def _read(y: str, rows: str, columns: str) -> str:
    """y [regions, height, width, channels]: the numbers in some rows and columns of the images."""
    return f"""
      {y}_rows_i64 = Cast <to = 7> ({rows})
      {y}_columns_i64 = Cast <to = 7> ({columns})
      {y}_rows = Unsqueeze ({y}_rows_i64, y_axis)
      {y}_columns = Unsqueeze ({y}_columns_i64, x_axis)
      {y}_row = Add (image_row, {y}_rows)
      {y}_start = Mul ({y}_row, x_side)
      {y}_pixel = Add ({y}_start, {y}_columns)
      {y} = Gather <axis = 0> (pixels, {y}_pixel)"""


def _between(y: str, low: str, high: str, part: str) -> str:
    return f"""
      {y}_length = Sub ({high}, {low})
      {y}_more = Mul ({y}_length, {part})
      {y} = Add ({low}, {y}_more)"""


@defines(
    """CropAndResize <extrapolation_value: float = 0.0, mode: string = "bilinear"> (
      X, rois, batch_indices, crop_size
    ) => (Y)"""
)
def crop_and_resize(call: Call) -> str:
    """Regions [y1, x1, y2, x2] of images, in parts of their sides, as images of one size."""
    parts = [
        f"""
        none_i64 = Constant <value_int = 0> ()
        one_i64 = Constant <value_int = 1> ()
        none_32 = Constant <value_float = 0.0> ()
        half_32 = Constant <value_float = 0.5> ()
        outside_32 = Constant <value_float = {number(call.float("extrapolation_value"))}> ()
        none = CastLike (none_32, rois)
        half = CastLike (half_32, rois)
        outside = CastLike (outside_32, X)
        {_places("y", 0)}
        {_places("x", 1)}
        y_axis = Constant <value_ints = [2]> ()
        x_axis = Constant <value_ints = [1]> ()
        pixel_axes = Constant <value_ints = [1, 2]> ()
        channel_axis = Constant <value_ints = [3]> ()
        images_i64 = Cast <to = 7> (batch_indices)
        images = Unsqueeze (images_i64, pixel_axes)
        image_row = Mul (images, y_side)
        channels_last = Transpose <perm = [0, 2, 3, 1]> (X)
        any_size = Constant <value_ints = [-1]> ()
        channels = Shape <start = 1, end = 2> (X)
        pixel_sizes = Concat <axis = 0> (any_size, channels)
        pixels = Reshape (channels_last, pixel_sizes)"""
    ]
    if call.string("mode", "bilinear", "nearest") == "nearest":
        parts += [_nearest("y"), _nearest("x"), _read("value", "y_near", "x_near")]
    else:
        parts.append(
            """
            y_upper = Ceil (y_place)
            x_upper = Ceil (x_place)
            y_axes = Constant <value_ints = [2, 3]> ()
            x_axes = Constant <value_ints = [1, 3]> ()
            y_parts_of = Unsqueeze (y_part, y_axes)
            x_parts_of = Unsqueeze (x_part, x_axes)"""
        )
        for row in ("lower", "upper"):
            for column in ("lower", "upper"):
                parts.append(_read(f"{row}_{column}", f"y_{row}", f"x_{column}"))
            parts.append(_between(f"{row}_row", f"{row}_lower", f"{row}_upper", "x_parts_of"))
        parts.append(_between("value", "lower_row", "upper_row", "y_parts_of"))
    parts.append(
        """
        y_known = Unsqueeze (y_inside, y_axis)
        x_known = Unsqueeze (x_inside, x_axis)
        is_inside = And (y_known, x_known)
        is_known = Unsqueeze (is_inside, channel_axis)
        found = Where (is_known, value, outside)
        Y = Transpose <perm = [0, 3, 1, 2]> (found)"""
    )
    return "\n".join(parts)
