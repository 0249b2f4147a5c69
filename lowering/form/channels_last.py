"""Which values have their channels innermost, on targets whose sums of bytes go over words."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.byte_sums import channels_last, image_of_words, is_byte
from lowerdeck.lowering.strategies.facts import anchors_of


class ChannelsLast:
    """
    The layouts of the values of a function: bytes that convolutions read in words of channels, or
    make, and what maps and pools make of such bytes. They stay row-major where something else than
    a kernel reads them.
    """

    def __init__(self, kernels: Iterator[KernelOp], setting: Setting) -> None:
        self._images: dict[KernelOp, int] = {}
        self._last: set[SSAValue] = set()
        able = [kernel for kernel in kernels if _takes_any_layout(kernel)]
        for kernel in able:
            for op in anchors_of(kernel):
                if isinstance(op, ConvOp):
                    position = image_of_words(kernel, op, setting.target)
                    if position is not None:
                        self._images[kernel] = position
        read = {kernel.inputs[position] for kernel, position in self._images.items()}
        for kernel in able:
            (result,) = kernel.results
            users = [use.operation for use in result.uses]
            if not _has_channels(result) or not all(user in able for user in users):
                continue
            comes_last = any(value in self._last for value in kernel.inputs)
            if kernel in self._images or result in read or comes_last:
                self._last.add(result)

    def made(self, value: SSAValue) -> LayoutAttr:
        """The layout in which a value is produced."""
        rank = rank_of(value)
        return channels_last(rank) if value in self._last else LayoutAttr.row_major(rank)

    def wanted(self, kernel: KernelOp, position: int) -> LayoutAttr | None:
        """The layout that a kernel wants for an input; None for any."""
        value = kernel.inputs[position]
        if isinstance(value.owner, ConstantOp):
            return None
        return channels_last(rank_of(value)) if self._images.get(kernel) == position else None


def _takes_any_layout(kernel: KernelOp) -> bool:
    """True for one result of maps, of a pool or of a convolution."""
    anchors = anchors_of(kernel)
    is_plain = not anchors or isinstance(anchors[0], ConvOp | PoolOp)
    return is_plain and len(anchors) < 2 and len(kernel.results) == 1


def _has_channels(value: SSAValue) -> bool:
    """True for bytes with several channels, and dimensions behind them."""
    dims = dims_of(value)
    return is_byte(value) and len(dims) > 2 and dims[1] != 1
