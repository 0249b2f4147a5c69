"""
Operators on tensors whose channels are in blocks, which ONNX Runtime writes into saved models.

Such a tensor [batch, channels / block, height, width, block] is one [batch, channels, height,
width] here, with as many channels; those that fill the last block are zeros or do not count. What
else the model does with it, sums of tensors or concatenations of whole blocks, stays the same.
"""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.activation import activated
from lowerdeck.frontends.onnx.contrib.definition import Call, define, defines
from lowerdeck.frontends.onnx.contrib.weights import NCHWC, is_in_blocks


@defines("ReorderInput <channels_last: int = 0> (X) => (Y)", domain=NCHWC)
def reorder_input(call: Call) -> str:
    """Zeros fill the last block."""
    first = "Transpose <perm = [0, 3, 1, 2]>" if call.int("channels_last") else "Identity"
    return f"""
      x = {first} (X)
      block = Constant <value_ints = [{call.weights.channel_block}]> ()
      channels = Shape <start = 1, end = 2> (x)
      above = Neg (channels)
      missing = Mod (above, block)
      axes = Constant <value_ints = [1]> ()
      front = Constant <value_ints = [0]> ()
      pads = Concat <axis = 0> (front, missing)
      Y = Pad (x, pads, , axes)"""


@defines("ReorderOutput <channels: int = 0, channels_last: int = 0> (X) => (Y)", domain=NCHWC)
def reorder_output(call: Call) -> str:
    """Without what fills the last block."""
    if (channels := call.int("channels")) < 1:
        raise ValueError(f"found {channels} channels, expected 1 at least")
    last = "Transpose <perm = [0, 2, 3, 1]>" if call.int("channels_last") else "Identity"
    return f"""
      first = Constant <value_ints = [0]> ()
      count = Constant <value_ints = [{channels}]> ()
      axes = Constant <value_ints = [1]> ()
      y = Slice (X, first, count, axes)
      Y = {last} (y)"""


@defines(
    """Conv <
      activation: string = "", activation_params: floats = [], auto_pad: string = "NOTSET",
      dilations: ints = [], group: int = 1, kernel_shape: ints = [], pads: ints = [],
      strides: ints = []
    > (X, W, B, Sum) => (Y)""",
    domain=NCHWC,
)
def conv(call: Call) -> str:
    """
    The filter is [outputs / block, inputs / block, height, width, block of inputs, block of
    outputs], or without blocks of inputs.
    """
    size, groups = call.weights.channel_block, call.int("group")
    dims = call.dims("W")
    if len(dims) != 4:
        raise ValueError(f"found a filter of {len(dims)} dimensions, expected 4")
    outputs, inputs, height, width = dims
    if is_in_blocks(inputs, groups, size):
        blocks = [outputs // size, inputs // size, height, width, size, size]
        order = "[0, 5, 1, 4, 2, 3]"
    else:
        blocks = [outputs // size, inputs, height, width, size]
        order = "[0, 4, 1, 2, 3]"
        groups = outputs if groups > 1 else 1  # those that fill the last block are groups, too
    names = ("dilations", "kernel_shape", "pads", "strides")
    kinds = {"auto_pad": "string"} | {name: "ints" for name in names if call.gives(name)}
    attributes = ", ".join(f"{name}: {kind} = @{name}" for name, kind in kinds.items())
    return f"""
      blocks = Constant <value_ints = [{", ".join(map(str, blocks))}]> ()
      in_blocks = Reshape (W, blocks)
      in_order = Transpose <perm = {order}> (in_blocks)
      sizes = Constant <value_ints = [{outputs}, {inputs}, {height}, {width}]> ()
      filter = Reshape (in_order, sizes)
      x = Conv <{attributes}, group = {groups}> (X, filter, B)
      y = {"Add (x, Sum)" if call.has("Sum") else "Identity (x)"}
      {activated(call, "Y", "y")}"""


for _name in ("GlobalAveragePool", "GlobalMaxPool"):
    define(f"{_name} (X) => (Y) {{ Y = {_name} (X) }}", domain=NCHWC)

_WINDOWS = """auto_pad: string = "NOTSET", ceil_mode: int = 0, dilations: ints = [], kernel_shape,
  pads: ints = [], strides: ints = []"""


def _pool(call: Call, name: str, *more: str) -> str:
    names = ("dilations", "kernel_shape", "pads", "strides")
    kinds = {"auto_pad": "string", "ceil_mode": "int"} | dict.fromkeys(more, "int")
    kinds |= {one: "ints" for one in names if call.gives(one)}
    attributes = ", ".join(f"{one}: {kind} = @{one}" for one, kind in kinds.items())
    return f"Y = {name} <{attributes}> (X)"


@defines(f"MaxPool <{_WINDOWS}, storage_order: int = 0> (X) => (Y)", domain=NCHWC)
def max_pool(call: Call) -> str:
    """The order of places does not matter, which are no output."""
    return _pool(call, "MaxPool")


@defines(f"AveragePool <{_WINDOWS}, count_include_pad: int = 0> (X) => (Y)", domain=NCHWC)
def average_pool(call: Call) -> str:
    """The mean of each window."""
    return _pool(call, "AveragePool", "count_include_pad")


@defines(
    """Upsample <
      coordinate_transformation_mode: string = "asymmetric", mode: string = "nearest", scales
    > (X) => (Y)""",
    domain=NCHWC,
)
def upsample(call: Call) -> str:
    """An image whose sides are multiples of those of another."""
    scales, mode = call.ints("scales"), call.string("mode", "nearest", "linear")
    if len(scales) != 4 or scales[:2] != [1, 1]:
        raise ValueError(f"found the scales {scales}, expected 1, 1 and those of the sides")
    return f"""
      scales = Constant <value_floats = [{", ".join(f"{scale}.0" for scale in scales)}]> ()
      Y = Resize <
        coordinate_transformation_mode: string = @coordinate_transformation_mode,
        mode = "{mode}", nearest_mode = "floor"
      > (X, , scales)"""
