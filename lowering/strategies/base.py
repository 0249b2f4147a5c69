"""What a strategy is: an algorithm for a kind of kernel, from layouts to loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import FEW_PARTS, Target
from lowerdeck.passes.machinery.options import CompileOptions

FEWEST_TO_SHARE = FEW_PARTS
"""Iterations of a loop that threads share: fewer are not dealt out evenly."""

Border = tuple[int, ...]
"""Elements of padding: at the beginning of all axes, then at their end."""


@record
class Setting:
    """The target and options that schedules are chosen for."""

    target: Target
    threads: int = 1
    """The number of threads that share the work."""
    strict: bool = False
    """True if faster algorithms must not increase rounding errors."""
    small: bool = False
    """True if constants must not become larger by their layouts."""
    disabled: frozenset[str] = frozenset()
    """Names of strategies that are disabled."""
    asked: frozenset[str] = frozenset()
    """Names of strategies to use wherever they apply, whatever the estimates say."""

    @staticmethod
    def of(options: CompileOptions) -> Setting:
        """The setting from the options of a run."""
        return Setting(
            target_named(options.target),
            options.threads,
            options.strict_accuracy,
            options.small_weights,
            frozenset(options.disable_strategy),
            frozenset(options.strategy),
        )


@record
class Candidate:
    """One way to run a kernel."""

    cycles: float
    """The estimate. Only candidates of one kernel are compared, so common costs are left out."""
    schedule: Schedule


@record
class Wishes:
    """What a strategy asks of the layouts of the values of a kernel with one result."""

    linked: Mapping[int, int] = field(default_factory=dict[int, int])
    """The inputs that have to be blocked if the result is, by position: channel c of the result
    needs their channel c + offset."""
    is_blocked: bool = False
    """True if the result is blocked whatever the inputs are."""
    image: int | None = None
    """The input that a convolution slides over."""
    border: Border = ()
    """The border of zeros that it wants around that input."""
    is_free: bool = False
    """True if inputs may have any layout, whatever that of the result is."""
    saved: float = 0.0
    """What blocks save the kernel, in copies of its result."""
    works_on_rows: bool = False
    """True for a convolution with row-major input and output, with a border."""


class Strategy(ABC):
    """
    An algorithm for kernels with certain root ops (the ops that are not maps), in one place: the
    layouts it asks for, its cost, and the loops it builds.

    `choose-strategies` takes the candidate with the lowest estimate among all strategies of a
    kernel; of equal ones the first in the order of the registry. The schedule of the candidate
    names the strategy, and is passed back to its `lower`.
    """

    name: ClassVar[str]
    """Also the name of its file."""
    anchors: ClassVar[tuple[type[Operation], ...]]
    """The root ops of the kernels that it applies to, in order."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters of its schedules, besides tiles, order and lanes."""
    looks_around: ClassVar[bool] = True
    """False if its candidates depend on a kernel alone, and on which of its inputs are constants or
    made by maps for it alone: then equal kernels are looked at once."""

    is_computed: ClassVar[bool] = False
    """True if its candidates come without estimates: the cycles of their loops are computed, and
    plain loops that take less are preferred."""

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        """
        Its requests to `assign-layouts`, before any layout is known.

        None if it cannot compute the kernel, or wants the same as another strategy.
        """
        return None

    @abstractmethod
    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        """Its ways to run a kernel whose layouts are known; none if it cannot."""

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        """The layouts of constant arguments of the kernel for one of its own schedules."""
        return {}

    def joined(self, kernel: KernelOp, schedule: Schedule) -> int:
        """How many of the last dimensions of the result become one for one of its own schedules."""
        return 1

    @abstractmethod
    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """Build the loops of a kernel by one of its own schedules."""
