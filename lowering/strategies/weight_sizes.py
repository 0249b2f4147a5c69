"""What layouts make of the size of constants, for those who want them small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import constants, product
from lowerdeck.lowering.strategies.base import Setting, Wishes
from lowerdeck.lowering.strategies.facts import anchors_of
from lowerdeck.lowering.targets.base import FEWEST_LANES

_SHARE = 32
"""Constants of a kernel may grow by one part in so many,"""

_LINE = 64
"""or by so many bytes: each begins on a line of its own anyhow."""


def keeps_small(kernel: KernelOp, packed: Mapping[SSAValue, LayoutAttr]) -> bool:
    """True if these layouts leave the constants of a kernel about as large as they are."""
    whole, more = _sizes(kernel, packed)
    return more <= max(whole // _SHARE, _LINE)


def growth(kernel: KernelOp, packed: Mapping[SSAValue, LayoutAttr]) -> int:
    """How many bytes the constants of a kernel take more in these layouts."""
    return _sizes(kernel, packed)[1]


def _sizes(kernel: KernelOp, packed: Mapping[SSAValue, LayoutAttr]) -> tuple[int, int]:
    """The bytes of a kernel's constants in row-major order, and those that layouts add."""
    whole = more = 0
    for position, argument in enumerate(kernel.body.block.args):
        if not kernel.is_constant(position):
            continue
        layout, dims = packed.get(argument), dims_of(argument)
        item = numpy_dtype(element_type(argument)).itemsize
        plain = (product(dims).value or 0) * item
        whole += plain
        if layout is None or layout.is_row_major:
            continue
        more += ((product(layout.dims(dims)).value or 0) * item) - plain
        if _is_read_otherwise(kernel, position):
            more += plain  # it is kept in both orders
    return whole, more


def _is_read_otherwise(kernel: KernelOp, position: int) -> bool:
    """True if a kernel with another algorithm reads the same constant."""
    kind = list(map(type, anchors_of(kernel)))
    users = {use.operation for use in kernel.inputs[position].uses} - {kernel}
    return any(
        not isinstance(user, KernelOp) or list(map(type, anchors_of(user))) != kind
        for user in users
    )


def grows_in_blocks(kernel: KernelOp, asked: Wishes, setting: Setting) -> bool:
    """True if channels in blocks, which a convolution asks for, pad its constant weights."""
    if not asked.is_blocked:
        return False
    for op in anchors_of(kernel):
        if isinstance(op, ConvOp | ConvTransposeOp):
            sizes = constants(dims_of(op.weight)[:2])
            if sizes is not None and _padded(sizes, setting.target.lanes) * _SHARE > (
                sizes[0] * sizes[1] * (_SHARE + 1)
            ):
                return True
    return False


def _padded(channels: Sequence[int], lanes: int) -> int:
    """The product of numbers of channels, those filled up that no shorter block divides."""
    whole = 1
    for count in channels:
        block = gcd(count, lanes)
        if block < FEWEST_LANES < count:
            block = lanes
        whole *= -(-count // block) * block
    return whole
