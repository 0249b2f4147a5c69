"""`lowerdeck bench --profile`: where the time of a run goes, kernel by kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.text_table import table_lines

if TYPE_CHECKING:
    from lowerdeck.compiler import KernelTimes, Profile

_TRUSTED = 1.05
"""Shares of the peak up to which a kernel may be a little faster than what was measured."""

_FEWER_PRODUCTS = "winograd"
"""The strategy that makes fewer products than it is credited with."""

_WIDTH = 60
"""Of columns of text."""

_HEAD = (
    "kernel",
    "calls",
    "us",
    "median",
    "share",
    "GFLOP/s",
    "peak",
    "MB",
    "GB/s",
    "lanes",
    "schedule",
    "shapes",
)
_LEFT = (0, 10, 11)
"""Columns that begin at the left; the last one, the nodes, does too."""


def _makes_fewer(entry: KernelTimes) -> bool:
    """True if an algorithm has fewer products than those that count."""
    return entry.schedule.startswith(_FEWER_PRODUCTS)


@dataclass(frozen=True)
class Report:
    """A profile beside what the machine can do."""

    model: str
    threads: int
    profile: Profile
    peak_flops: float
    """Of so many threads."""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        kernels = [{**asdict(entry), **self._rates(entry)} for entry in self.profile.kernels]
        return {
            "model": self.model,
            "threads": self.threads,
            "peak_flops": self.peak_flops,
            "seconds": self.profile.seconds,
            "median": self.profile.median,
            "runs": self.profile.runs,
            "kernels": kernels,
        }

    def _rates(self, entry: KernelTimes) -> dict[str, float | None]:
        flops = rate(2 * (entry.multiply_adds or 0), entry.seconds)
        # What counts is not what such a kernel computes, so that it has no share.
        has_share = flops is not None and not _makes_fewer(entry)
        return {
            "share": entry.seconds / self._sum,
            "flops_per_second": flops,
            "share_of_peak": flops / self.peak_flops if has_share and flops else None,
            "bytes_per_second": rate(entry.bytes or 0, entry.seconds),
        }

    @property
    def _sum(self) -> float:
        return sum(entry.seconds for entry in self.profile.kernels) or 1.0

    def text(self, by: str = "time", *, wide: bool = False) -> str:
        """
        As a table for a person: the slowest first, or by "source": in the program's order. Texts
        are cut short unless it is `wide`.
        """
        entries = list(self.profile.kernels)
        if by == "time":
            entries.sort(key=lambda entry: -entry.seconds)
        rows = [self._row(entry, None if wide else _WIDTH) for entry in entries]
        total = sum(entry.multiply_adds or 0 for entry in entries)
        flops = 2 * total / self.profile.seconds
        lines = [
            f"{self.model}, {self.threads} thread{'s' if self.threads > 1 else ''}: "
            f"{self.profile.seconds * 1e3:.3f} ms best, {self.profile.median * 1e3:.3f} ms median "
            f"of {self.profile.runs} runs; the kernels' best sum to {self._sum * 1e3:.3f} ms",
            f"{total / 1e9:.3f} G multiply-adds: {flops / 1e9:.1f} GFLOP/s, "
            f"{flops / self.peak_flops:.1%} of the {self.peak_flops / 1e9:.0f} GFLOP/s that this "
            "machine makes in registers",
            "",
            *table_lines((*_HEAD, "nodes"), rows, left=(*_LEFT, len(_HEAD))),
        ]
        if scalars := self.profile.scalar_kernels():
            names = ", ".join(entry.kernel for entry in scalars)
            lines += ["", f"without vectors, though above 2 % of a run: {names}"]
        return "\n".join([*lines, *self._doubts()])

    def _doubts(self) -> list[str]:
        """What is to be said of kernels that have no share of the peak, or a larger one."""
        fewer = [entry.kernel for entry in self.profile.kernels if _makes_fewer(entry)]
        others = [
            entry.kernel
            for entry in self.profile.kernels
            if (self._rates(entry)["share_of_peak"] or 0.0) > _TRUSTED
        ]
        lines: list[str] = []
        if fewer:
            lines.append(
                f"no share of the peak: {', '.join(fewer)}, of which the products of the "
                f"convolution count; {_FEWER_PRODUCTS} makes fewer"
            )
        if others:
            lines.append(
                f"above the peak: {', '.join(others)}; the machine was slower when its peak was "
                "measured: measure again while nothing else runs"
            )
        return ["", *lines] if lines else []

    def _row(self, entry: KernelTimes, width: int | None) -> list[str]:
        rates = self._rates(entry)
        return [
            entry.kernel,
            str(entry.calls),
            f"{entry.seconds * 1e6:.1f}",
            f"{entry.median * 1e6:.1f}",
            f"{entry.seconds / self._sum:.1%}",
            _number(rates["flops_per_second"], 1e9),
            _number(rates["share_of_peak"], 0.01, "%") if entry.multiply_adds else "-",
            "?" if entry.bytes is None else f"{entry.bytes / 1e6:.2f}",
            _number(rates["bytes_per_second"], 1e9),
            str(entry.lanes or "-"),
            *(
                _shortened(text, width)
                for text in (entry.schedule or "-", entry.shapes, ", ".join(entry.nodes))
            ),
        ]


def rate(amount: int, seconds: float) -> float | None:
    """So much a second; None for nothing, or in no time."""
    return amount / seconds if amount and seconds > 0 else None


def _number(value: float | None, unit: float, suffix: str = "") -> str:
    return "-" if value is None else f"{value / unit:.1f}{suffix}"


def _shortened(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."
