"""
The roofline of a profile: how fast each kernel could be, by what the processor computes and by what
the memory delivers, and how fast it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.text_table import table_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.compiler import KernelTimes, Model

_WIDTH, _HEIGHT, _MARGIN = 760, 380, 46
"""Of the picture, in pixels."""


@dataclass(frozen=True)
class Point:
    """A kernel of the profile."""

    times: KernelTimes

    @property
    def flops(self) -> int:
        """Two for each product of a convolution or matrix product, in one run."""
        return 2 * (self.times.multiply_adds or 0)

    @property
    def intensity(self) -> float | None:
        """Operations for each byte of its buffers; None if there are none of either."""
        return self.flops / self.times.bytes if self.flops and self.times.bytes else None

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.flops / self.times.seconds if self.times.seconds else 0.0


@dataclass(frozen=True)
class Roofline:
    """The kernels of a model beside what a machine can do."""

    points: Sequence[Point]
    peak_flops: float
    """Operations a second in registers, of as many threads as the model has."""
    bandwidth: float
    """Bytes a second that as many threads read from memory."""

    def roof(self, intensity: float) -> float:
        """The most operations a second of a kernel whose data come from memory."""
        return min(self.peak_flops, intensity * self.bandwidth)

    @property
    def ridge(self) -> float:
        """Operations for each byte from which on the processor, not the memory, is the limit."""
        return self.peak_flops / self.bandwidth

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "peak_flops": self.peak_flops,
            "bytes_per_second": self.bandwidth,
            "kernels": [self._of(point) for point in self.points],
        }

    def _of(self, point: Point) -> dict[str, Any]:
        intensity = point.intensity
        # Without products, what counts is what is moved.
        moved = (point.times.bytes or 0) / point.times.seconds if point.times.seconds else 0.0
        roof = None if intensity is None else self.roof(intensity)
        return {
            "kernel": point.times.kernel,
            "nodes": list(point.times.nodes),
            "seconds": point.times.seconds,
            "flops": point.flops,
            "bytes": point.times.bytes,
            "flops_per_byte": intensity,
            "flops_per_second": point.rate,
            "roof": roof,
            "share_of_roof": point.rate / roof if roof else moved / self.bandwidth,
            "limit": "memory" if intensity is None or intensity < self.ridge else "processor",
        }

    def lines(self, width: int | None) -> list[str]:
        """As a table, the slowest kernel first; names are cut at a width."""
        total = sum(point.times.seconds for point in self.points) or 1.0
        ordered = sorted(self.data()["kernels"], key=lambda one: -one["seconds"])
        rows = [
            [
                one["kernel"],
                f"{one['seconds'] * 1e6:.1f}",
                f"{one['seconds'] / total:.1%}",
                "-" if one["flops_per_byte"] is None else f"{one['flops_per_byte']:.2f}",
                f"{one['flops_per_second'] / 1e9:.1f}" if one["flops"] else "-",
                "-" if one["roof"] is None else f"{one['roof'] / 1e9:.1f}",
                f"{one['share_of_roof']:.1%}",
                one["limit"],
                _cut(", ".join(one["nodes"]), width),
            ]
            for one in ordered
        ]
        head = ("kernel", "us", "share", "FLOPs/byte", "GFLOP/s", "roof", "of it", "limit", "nodes")
        return [*self.summary(), "", *table_lines(head, rows, left=(0, 7, 8))]

    def summary(self) -> list[str]:
        """What the machine can do, and how to read the shares."""
        return [
            f"{self.peak_flops / 1e9:.1f} GFLOP/s in registers, {self.bandwidth / 1e9:.1f} GB/s "
            f"from memory: below {self.ridge:.1f} FLOPs a byte, memory is the limit",
            "FLOPs are those of convolutions and matrix products; kernels without any are compared "
            "with the memory; above 100% data comes from caches",
        ]

    def picture(self) -> str:
        """As SVG: operations for each byte to the right, operations a second upward, in powers."""
        shown = [point for point in self.points if point.intensity is not None and point.rate]
        intensities = [self.ridge, *(point.intensity or 0.0 for point in shown)]
        left, right = _powers(min(intensities) / 2, max(intensities) * 2)
        rates = [self.peak_flops, *(point.rate for point in shown)]
        low, high = _powers(min([*rates, self.roof(10.0**left)]), max(rates))

        def x(intensity: float) -> float:
            share = (math.log10(intensity) - left) / (right - left)
            return _MARGIN + share * (_WIDTH - 2 * _MARGIN)

        def y(rate: float) -> float:
            return (
                _HEIGHT
                - _MARGIN
                - (math.log10(rate) - low) / (high - low) * (_HEIGHT - 2 * _MARGIN)
            )

        roof = " ".join(
            f"{x(at):.1f},{y(self.roof(at)):.1f}" for at in (10.0**left, self.ridge, 10.0**right)
        )
        largest = max((point.times.seconds for point in shown), default=1.0)
        dots = "".join(
            f'<circle cx="{x(point.intensity or 1.0):.1f}" cy="{y(point.rate):.1f}" '
            f'r="{3 + 9 * math.sqrt(point.times.seconds / largest):.1f}"><title>'
            f"{escape(point.times.kernel)}: {point.rate / 1e9:.1f} GFLOP/s, "
            f"{point.intensity:.2f} FLOPs a byte, {point.times.seconds * 1e6:.1f} us; "
            f"{escape(', '.join(point.times.nodes))}</title></circle>"
            for point in shown
        )
        across = "".join(
            f'<line x1="{x(10.0**k):.1f}" y1="{_MARGIN}" x2="{x(10.0**k):.1f}" '
            f'y2="{_HEIGHT - _MARGIN}"/><text x="{x(10.0**k):.1f}" '
            f'y="{_HEIGHT - _MARGIN + 14}">{10.0**k:g}</text>'
            for k in range(left, right + 1)
        )
        upward = "".join(
            f'<line x1="{_MARGIN}" y1="{y(10.0**k):.1f}" x2="{_WIDTH - _MARGIN}" '
            f'y2="{y(10.0**k):.1f}"/><text x="4" y="{y(10.0**k):.1f}">{10.0 ** (k - 9):g}</text>'
            for k in range(low, high + 1)
        )
        return (
            f'<svg class="roofline" width="{_WIDTH}" height="{_HEIGHT}">{across}{upward}'
            f'<polyline points="{roof}"/>{dots}<text x="4" y="14">GFLOP/s</text>'
            f'<text x="{_WIDTH - 110}" y="{_HEIGHT - 8}">FLOPs a byte</text></svg>'
        )


def _powers(low: float, high: float) -> tuple[int, int]:
    """The powers of ten around, at least two of them."""
    first = math.floor(math.log10(low))
    return first, max(math.ceil(math.log10(high)), first + 1)


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


def measured(model: Model, inputs: Mapping[str, NDArray[Any]], threads: int) -> Roofline:
    """The roofline of a model compiled to be profiled, on this machine."""
    from lowerdeck.tools.peak import LASTING, MultiplyAdds

    machine = MultiplyAdds()
    # Before and after, because other programs may run meanwhile.
    before = machine.peak_flops(threads), machine.bandwidth(threads)
    profile = model.profile(inputs, seconds=2 * LASTING)
    after = machine.peak_flops(threads), machine.bandwidth(threads)
    peak, bandwidth = (max(pair) for pair in zip(before, after, strict=True))
    return Roofline([Point(times) for times in profile.kernels], peak, bandwidth)
