"""The relation between the channels (dimension 1) of a kernel's inputs and those of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp, IotaOp
from lowerdeck.dialects.core.control_flow import KernelBody, yielded
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.index_maps import HasIndexMaps, any_index
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherOp,
    PadOp,
    SliceOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import (
    bf16,
    bit_width,
    dims_of,
    element_type,
    f16,
    f32,
    i1,
    is_integer,
)
from lowerdeck.dialects.dims import Expr


class MixedChannelsError(Exception):
    """An element of the result depends on several channels of an input, or on the wrong one."""


@dataclass
class Links:
    """The facts about one kernel: values follow the channels of the result at an offset."""

    offsets: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Channel c of the result needs channel c + offset of a value."""
    constants: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values of lower rank that vary along the channels: only constants may."""

    def add(self, value: SSAValue, offset: int) -> None:
        """MixedChannelsError if the value is also needed at another offset."""
        if self.offsets.setdefault(value, offset) != offset:
            raise MixedChannelsError


Rule = Callable[[Links, Any, int], None]
R = TypeVar("R", bound=Rule)
_RULES: dict[type[Operation], Rule] = {}


def _link_rule(*ops: type[Operation]) -> Callable[[R], R]:
    def register(rule: R) -> R:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


def channel_offsets(kernel: KernelBody) -> dict[int, int] | None:
    """
    The inputs whose channels follow those of the only result, by position: channel c of the result
    needs channel c + offset. Not included are constants, inputs that do not vary along the
    channels, and inputs of convolutions other than depthwise ones. None if channels are mixed in
    any other way.
    """
    results = yielded(kernel.body)
    if len(results) != 1 or not _has_channels(results[0]) or not _is_blocked(results[0]):
        return None
    links = Links()
    links.add(results[0], 0)
    try:
        for op in reversed(list(kernel.body.block.ops)):
            for result in op.results:
                if result in links.constants:
                    raise MixedChannelsError
                if result in links.offsets:
                    _link(links, op, links.offsets[result])
    except MixedChannelsError:
        return None
    found: dict[int, int] = {}
    for position, argument in enumerate(kernel.body.block.args):
        if kernel.is_constant(position):
            continue
        if argument in links.constants:
            return None
        if argument not in links.offsets:
            continue
        if not _has_channels(argument) or element_type(argument) != f32:
            return None
        found[position] = links.offsets[argument]
    return found


def _has_channels(value: SSAValue) -> bool:
    """True for a constant number of channels, more than one, with dimensions after them."""
    dims = dims_of(value)
    return len(dims) > 2 and (dims[1].value or 0) > 1


def _link(links: Links, op: Operation, offset: int) -> None:
    rule = _RULES.get(type(op))
    if rule is None or not all(_is_simple(element_type(result)) for result in op.results):
        raise MixedChannelsError
    rule(links, op, offset)


def _is_blocked(value: SSAValue) -> bool:
    """True for the types of tensors in channel blocks."""
    return element_type(value) in (f32, i1)


def _is_simple(element: Attribute) -> bool:
    """True for what the lanes of a block of f32 may be in between: not wider than f32."""
    is_narrow = is_integer(element) and bit_width(element) <= i32.width.data
    return element in (f32, f16, bf16, i1) or is_narrow


@_link_rule(ConstantOp, IotaOp)
def _link_none(links: Links, op: ConstantOp | IotaOp, offset: int) -> None:
    if isinstance(op, IotaOp) and op.axis.data == 1:
        raise MixedChannelsError


@_link_rule(*ELEMENTWISE, BroadcastOp, SliceOp, PadOp, GatherOp, TransposeOp, ConcatOp)
def _link_map(links: Links, op: HasIndexMaps, offset: int) -> None:
    """Channel c of the result needs channel c + offset of an operand, by its index maps."""
    at = any_index(dims_of(op.results[0]))
    if isinstance(op, PadOp) and (op.begin.data[1] != 0 or op.end.data[1] != 0):
        raise MixedChannelsError
    for number, operand in enumerate(op.operands):
        index = op.operand_index(number, at)
        is_gathered = isinstance(op, GatherOp) and number == 0 and len(index) > 1
        if len(index) < len(at) and not is_gathered:
            if any(_varies(part, at[1]) for part in index):
                if at[1] not in index:
                    raise MixedChannelsError
                links.constants.add(operand)
            continue
        if index[1] == 0 != at[1]:
            continue  # it has one channel, for all of the result's
        distance = None if index[1] is None else (index[1] - at[1]).value
        if distance is None or index[0] is None or index[0].symbols - at[0].symbols:
            raise MixedChannelsError
        links.add(operand, offset + distance)


def _varies(index: Expr | None, along: Expr) -> bool:
    return index is None or bool(index.symbols & along.symbols)


@_link_rule(PoolOp)
def _link_pool(links: Links, op: PoolOp, offset: int) -> None:
    links.add(op.input, offset)


@_link_rule(ConvOp)
def _link_conv(links: Links, op: ConvOp, offset: int) -> None:
    outputs, depth = dims_of(op.weight)[:2]
    if depth == 1 and outputs == op.groups.data > 1:
        links.add(op.input, offset)


@_link_rule(ConvTransposeOp)
def _link_conv_transpose(links: Links, op: ConvTransposeOp, offset: int) -> None:
    if is_depthwise_transposed(op):
        links.add(op.input, offset)


def is_depthwise_transposed(op: ConvTransposeOp) -> bool:
    """True if every channel has a filter of its own: one output channel per input channel."""
    inputs, filters = dims_of(op.weight)[:2]
    return op.groups.data > 1 and filters == 1 and inputs == op.groups.data
