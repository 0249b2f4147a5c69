"""Queries of strategies about a kernel: its root ops, shapes, layouts and constants."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.control_flow import KernelBody, KernelOp, yielded
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ContractionOp
from lowerdeck.dialects.core.quantize import DequantizeOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, numpy_dtype, static_shape
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.loops.estimate import ASSUMED_SIZE
from lowerdeck.lowering.nests.lower import ANCHORS

Op = TypeVar("Op", bound=Operation)

_IMAGE_SIZE = 256
"""What an open dimension may be at the inputs: those that strides have divided are smaller."""

_WINDOW_SIZE = 2
"""What a dimension may be that is taken from another one."""

_LONGER = [_IMAGE_SIZE << 2 * k for k in range(1, 8)]
_FRAMES = 16
"""Lengths of signals of which the first is assumed that has so many frames."""


def anchors_of(kernel: KernelBody) -> list[Operation]:
    """The ops of a kernel that are not maps."""
    return [op for op in kernel.body.block.ops if type(op) in ANCHORS]


def the(kind: type[Op], kernel: KernelBody) -> Op:
    """The last op of a kind in a kernel that is known to have one."""
    return [op for op in kernel.body.block.ops if isinstance(op, kind)][-1]


def position_of(kernel: KernelOp, value: SSAValue) -> int | None:
    """
    The position of the kernel input that a value is, or of the constant that is widened to it;
    None if it is computed in the kernel.
    """
    source = stored(value)
    position = next((k for k, a in enumerate(kernel.body.block.args) if a is source), None)
    is_read = source is value or (position is not None and kernel.is_constant(position))
    return position if is_read else None


def stored(value: SSAValue) -> SSAValue:
    """What lies in memory of a value that is widened where it is read."""
    op = value.owner
    return stored(op.operands[0]) if isinstance(op, CastOp | DequantizeOp) else value


def in_blocks(value: SSAValue) -> DequantizeOp | None:
    """What widens numbers of four bits to a value."""
    return value.owner if isinstance(value.owner, DequantizeOp) else None


def is_constant(kernel: KernelOp, value: SSAValue) -> bool:
    """True for an argument of a kernel that is a constant."""
    position = position_of(kernel, value)
    return position is not None and kernel.is_constant(position)


def can_be_packed(kernel: KernelOp, value: SSAValue) -> bool:
    """
    True for an argument of a kernel that may lie as the kernel asks for: a constant, or a value
    that the kernel reads in one place only, of which it gets a copy.
    """
    if position_of(kernel, value) is None or static_shape(value) is None:
        return False
    return is_constant(kernel, value) or value.has_one_use()


def layout_in(kernel: KernelOp, value: SSAValue) -> LayoutAttr:
    """The layout of a value in a kernel: row-major unless it is an argument or a result."""
    if value in kernel.body.block.args or value in yielded(kernel.body):
        return kernel.layout(value)
    return LayoutAttr.row_major(len(dims_of(value)))


def layout_out(kernel: KernelOp) -> LayoutAttr:
    """The layout of the first result of a kernel."""
    return kernel.layout_at(len(kernel.inputs))


def is_of(op: ContractionOp, *elements: Attribute) -> bool:
    """True for sums of products of one of the element types, with factors of the same type."""
    return op.is_uniform and element_type(op.results[0]) in elements


def has_channels(value: SSAValue) -> bool:
    """
    True for f32 with a known number of channels (dimension 1) and dimensions after them: a tensor
    that can be stored in channel blocks."""
    dims = dims_of(value)
    return len(dims) > 2 and (dims[1].value or 0) > 0 and element_type(value) == f32


def item_bytes(value: SSAValue) -> int:
    """Bytes of an element of a tensor."""
    return numpy_dtype(element_type(value)).itemsize


def assumed_shape(value: SSAValue) -> list[int]:
    """A shape for estimates."""
    return [assumed_size(dim) for dim in dims_of(value)]


def assumed_size(dim: Expr) -> int:
    """
    The size of a dimension, for estimates: that of a map in the depth of a network is small, if its
    image is open, too. Where there would be nothing, as of a signal of a few hundred samples that
    is cut into frames of as many, it is that of a longer one. What others are taken from is larger
    than these: images than windows.
    """
    if dim.value is not None:
        return dim.value
    sizes = dict.fromkeys(dim.symbols, _IMAGE_SIZE)
    size = dim.evaluate(sizes)
    if len(sizes) > 1:
        more = 2 * _IMAGE_SIZE
        taken = [name for name in sizes if dim.evaluate({**sizes, name: more}) < size]
        size = dim.evaluate({**sizes, **dict.fromkeys(taken, _WINDOW_SIZE)})
    for image in _LONGER if size < 1 else ():
        if (size := dim.evaluate(dict.fromkeys(dim.symbols, image))) >= _FRAMES:
            break
    return min(max(size, 1), ASSUMED_SIZE)


def blocked_constants(kernel: KernelOp, lanes: int) -> dict[SSAValue, LayoutAttr]:
    """
    Constants along the channels of a blocked result, in blocks as it is, and a computed bias that
    ends within a block.
    """
    (result,) = kernel.results
    layouts: dict[SSAValue, LayoutAttr] = {}
    rank = len(dims_of(result))
    if rank < 2:
        return layouts
    channels = dims_of(result)[1]
    for argument in kernel.body.block.args:
        dims = dims_of(argument)
        if not is_constant(kernel, argument):
            is_bias = dims == (channels,) and can_be_packed(kernel, argument)
            if not is_bias or channels % lanes == 0:
                continue
        axis = len(dims) - rank + 1
        if len(dims) == 1:
            # The bias of a convolution, or a parameter along the last dimension.
            axis = 0
        if 0 <= axis < len(dims) and dims[axis] == channels and channels != 1:
            layouts[argument] = LayoutAttr.blocked(len(dims), axis, lanes)
    return layouts
