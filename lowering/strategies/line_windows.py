"""What convolutions of row-major images read along each axis, and how copied rows of it lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record

MOST_UNROLLED = 400
"""Multiply-adds of a tile that is written out."""

FEW_PLACES = 16
"""Vectors of a line: lines that are a multiple of these apart have few places in the L1 cache."""


@record
class Window:
    """What a convolution reads along an axis."""

    taps: int
    stride: int
    dilation: int
    begin: Expr
    """Padding before the image."""
    end: Expr

    @property
    def reach(self) -> int:
        """How far the last tap is from the first one."""
        return (self.taps - 1) * self.dilation

    @property
    def is_padded(self) -> bool:
        return self.begin != 0 or self.end != 0

    @property
    def step(self) -> int:
        """From one input that is kept to the next one: of single taps, others are left out."""
        return self.stride if self.taps == 1 else 1

    def kept(self, results: int) -> int:
        """The inputs under some adjacent results that are kept."""
        return ((results - 1) * self.stride + self.reach) // self.step + 1

    @property
    def period(self) -> int:
        """So many taps further, one lies at the same place along a row, modulo the stride."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def phases(self) -> list[int]:
        """Where along a row taps lie, modulo the stride: that of each tap of a period."""
        taps = range(min(self.taps, self.period))
        return [tap * self.dilation % self.stride for tap in taps]


def windows_of(op: ConvOp) -> list[Window] | None:
    """By axis; None if the number of taps is not known."""
    taps = constants(dims_of(op.weight)[2:])
    if taps is None:
        return None
    entries = zip(
        taps,
        ints(op.strides),
        ints(op.dilations),
        op.pads_begin.data,
        op.pads_end.data,
        strict=True,
    )
    return [Window(*entry) for entry in entries]


def is_unrolled(weight: Sequence[int], groups: int) -> bool:
    """
    True for single filters of few taps on one channel: a tile is written out, without a loop over
    them.
    """
    return weight[0] == groups and weight[1] == 1 and prod(weight[2:]) <= MOST_UNROLLED


def has_to_be_copied(windows: Sequence[Window]) -> bool:
    """True if the inputs under a band do not lie as taps read them."""
    return windows[-1].stride > 1 or any(window.is_padded for window in windows[-2:])


def line_of(windows: Sequence[Window], *, apart: bool) -> tuple[Window, int]:
    """
    How a copied row is read: the window along it, and how far apart results begin. With `apart`,
    lines hold every `stride`-th input.
    """
    window = windows[-1]
    return (window, 1) if apart else (replace(window, stride=1), window.stride)


def pitch_of(line: tuple[Window, int], columns: int, lanes: int) -> int:
    """Elements of a line of one phase, under whole vectors of results."""
    window, scale = line
    results = -(-columns // lanes) * lanes
    used = shift_of(window, lanes) + results * scale + window.reach // window.stride
    vectors = -(-used // lanes)
    return (vectors + (vectors % FEW_PLACES == 0)) * lanes


def shift_of(window: Window, lanes: int) -> int:
    """Where a line begins, so that vectors of what lies on the image are aligned."""
    return -(window.begin.value or 0) % lanes if window.stride == 1 else 0
