"""Layouts of images, and the windows over them that attributes describe."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.windows import Window, same
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

_LAST = ("NHWC", "NDHWC", "CHANNELS_LAST")
_FIRST = ("NCHW", "NCDHW", "CHANNELS_FIRST")


@record
class Layout:
    """Where the channels of an image are: in dimension 1 or in the last one."""

    builder: Tf1Legalizer
    is_first: bool

    @staticmethod
    def of(builder: Tf1Legalizer) -> Layout:
        """The layout of `data_format`, without which the channels are last."""
        if not builder.attrs.has("data_format"):
            return Layout(builder, False)
        return Layout(builder, builder.attrs.string("data_format", among=_LAST + _FIRST) in _FIRST)

    @property
    def _rank(self) -> int:
        """The number of dimensions of an image."""
        if self.builder.op_type == "Conv":
            return rank_of(self.builder.operand(0))
        return 5 if "3D" in self.builder.op_type or "Volume" in self.builder.op_type else 4

    def of_each(self, values: Sequence[int], least: int = 1) -> list[int]:
        """`values`; refused unless it is one number from `least` on for each dimension."""
        if len(values) != self._rank or min(values) < least:
            self.builder.refuse(f"{list(values)}", f"{self._rank} numbers from {least} on")
        return list(values)

    def axis(self, rank: int) -> int:
        """The dimension of the channels."""
        return 1 if self.is_first else rank - 1

    def spatial(self, values: Sequence[int], outer: int = 1) -> list[int]:
        """Of one number a dimension those of the spatial dimensions; the others must be `outer`."""
        values = self.of_each(values, outer)
        others = values[:2] if self.is_first else [values[0], values[-1]]
        if others != [outer, outer]:
            self.builder.refuse(
                f"{values} with {others} for batch and channels", f"{outer} for both"
            )
        return values[2:] if self.is_first else values[1:-1]

    def to_first(self, x: SSAValue) -> SSAValue:
        """[N, spatial..., C] or [N, C, spatial...] as the latter."""
        return x if self.is_first else self.builder.channels_first(x)

    def from_first(self, x: SSAValue) -> SSAValue:
        """[N, C, spatial...] in this layout."""
        return x if self.is_first else self.builder.channels_last(x)


def require_image(builder: Tf1Legalizer, x: SSAValue, rank: int) -> SSAValue:
    """`x`; refused unless it has `rank` dimensions."""
    if rank_of(x) != rank:
        builder.refuse(f"an operand of {rank_of(x)} dimensions", str(rank))
    return x


def window_of(
    builder: Tf1Legalizer,
    layout: Layout,
    dims: Sequence[Expr],
    kernel: Sequence[Expr],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Window:
    """The window over the spatial dimensions `dims`, padded as `padding` says."""
    zeros = [Expr.const(0)] * len(dims)
    begin, end = zeros, zeros
    padding = builder.attrs.string("padding", among=("SAME", "VALID", "EXPLICIT"))
    if padding == "EXPLICIT":
        begin, end = _explicit_pads(builder, layout)
    elif builder.attrs.has("explicit_paddings") and builder.attrs.ints("explicit_paddings"):
        builder.refuse(f"explicit_paddings with padding {padding}", "padding EXPLICIT")
    if not len(dims) == len(kernel) == len(strides) == len(dilations) == len(begin) == len(end):
        builder.refuse(f"a window of {len(kernel)} dimensions over {len(dims)}", "as many")
    window = Window(tuple(kernel), list(strides), list(dilations), begin, end, zeros)
    return same(window, dims, upper=True) if padding == "SAME" else window


def _explicit_pads(builder: Tf1Legalizer, layout: Layout) -> tuple[list[Expr], list[Expr]]:
    """The attribute has both amounts of the first dimension, then those of the next one."""
    pads = builder.attrs.ints("explicit_paddings")
    begin, end = (layout.spatial(pads[k::2], outer=0) for k in (0, 1))
    return [Expr.const(pad) for pad in begin], [Expr.const(pad) for pad in end]


def spatial_dims(x: SSAValue) -> tuple[Expr, ...]:
    """The dimensions of [N, C, spatial...] without the first two."""
    return dims_of(x)[2:]
