"""What a strategy is: one way to compute kernels of a kind, from layouts to loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.options import CompileOptions

Border = tuple[int, ...]
"""Elements of padding: at the beginning of all axes, then at their end."""


@dataclass(frozen=True)
class Setting:
    """What schedules are chosen for."""

    target: Target
    threads: int = 1
    """How many threads share the work."""
    strict: bool = False
    """True if what is faster must not add to rounding errors."""
    disabled: frozenset[str] = frozenset()
    """Names of strategies that nothing runs by."""
    asked: frozenset[str] = frozenset()
    """Names of strategies that everything runs by that can, whatever the estimates say."""

    @staticmethod
    def of(options: CompileOptions) -> Setting:
        """What the options of a run say."""
        return Setting(
            target_named(options.target),
            options.threads,
            options.strict_accuracy,
            frozenset(options.disable_strategy),
            frozenset(options.strategy),
        )


@dataclass(frozen=True)
class Candidate:
    """One way to run a kernel."""

    cycles: float
    """The estimate. Only those of one kernel are compared, so what is common to all is left out."""
    schedule: Schedule


@dataclass(frozen=True)
class Wishes:
    """What a strategy asks of the layouts of the values of a kernel with one result."""

    linked: Mapping[int, int] = field(default_factory=dict[int, int])
    """The inputs that have to be blocked if the result is, by position: channel c of the result
    needs channel c + offset of them."""
    is_blocked: bool = False
    """True if the result is blocked whatever the inputs are."""
    image: int | None = None
    """The input that a convolution slides over."""
    border: Border = ()
    """The zeros that it wants around that."""
    is_free: bool = False
    """True if inputs may lie in any way, however the result does."""
    prefers_blocks: bool = False
    """True if the kernel is much faster on blocks."""
    works_on_rows: bool = False
    """True for a convolution that takes and gives its values row-major, with a border."""


class Strategy(ABC):
    """
    An algorithm for kernels with certain anchors (the ops that are not maps), in one place: the
    layouts it asks for, what it costs, and the loops it builds.

    `choose-strategies` takes the candidate with the least estimate of all strategies of a kernel;
    of equal ones the first in the order of the registry. What it writes, a schedule, names the
    strategy, and `lower` gets it back.
    """

    name: ClassVar[str]
    """Also that of the file."""
    anchors: ClassVar[tuple[type[Operation], ...]]
    """Those of the kernels that it is for, in order."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """What its schedules may say beside tiles, order and lanes."""

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        """
        What it asks of `assign-layouts`, before any layout is known.

        None if it cannot compute the kernel, or wants what another strategy does.
        """
        return None

    @abstractmethod
    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        """Its ways to run a kernel whose layouts are known; none if it cannot."""

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        """How constants among the arguments of the kernel are to lie for a schedule of its own."""
        return {}

    @abstractmethod
    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """Build the loops of a kernel by a schedule of its own."""
