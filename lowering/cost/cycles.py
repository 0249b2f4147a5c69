"""
The cycles of a kernel on a machine: computed from the loops that its strategy built, its schedule
and the numbers of the machine, without applying the schedule.

They are absolute: those of one core, of a run whose data lie where the last run left them. The time
is that of the slowest of units and caches, which work at once, and of the starts of loops besides.
"""

from __future__ import annotations

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.records import record
from lowerdeck.lowering.cost.traffic import lines_from_beyond
from lowerdeck.lowering.cost.units import busy_cycles
from lowerdeck.lowering.targets.base import Target


@record
class Cost:
    """Cycles of one core, by what takes them."""

    units: float
    """Of arithmetic, loads and stores, or of sums that wait for each other."""
    l2: float
    """Of lines that come from the L2 cache."""
    shared: float
    """Of lines that come from the cache shared by the cores."""
    memory: float
    """Of lines that come from memory."""
    jumps: float
    """What else lines take that lie on other pages than the ones before them."""
    starts: float
    """Of loops that begin and end."""

    @property
    def total(self) -> float:
        """The time of the slowest, and the starts."""
        lines = self.l2 + self.shared + self.memory + self.jumps
        return max(self.units, lines) + self.starts

    def terms(self) -> dict[str, float]:
        """The cycles by name, for people."""
        return {
            "units": self.units,
            "L2": self.l2,
            "shared": self.shared,
            "memory": self.memory,
            "jumps": self.jumps,
            "starts": self.starts,
        }


def cycles(function: FuncOp, target: Target) -> Cost:
    """The cost of a finished kernel; sizes that are not known are assumed."""
    machine = target.machine
    work = busy_cycles(function, target)
    line = machine.line_bytes
    caches = (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes or machine.l2_bytes)
    near, far, farthest = lines_from_beyond(function, machine, caches)
    # Pages are looked up while lines are on their way.
    late = max(machine.jump_line_cycles - line / machine.memory_bytes_per_cycle, 0.0)
    jumps = max(farthest.apart * late, far.walks * machine.walk_cycles)
    near, far = near.without(far), far.without(farthest)
    copied = 2 * line / machine.l2_copy_bytes_per_cycle
    return Cost(
        units=work.cycles,
        l2=near.read * machine.l2_line_cycles
        + near.written * max(copied - machine.l2_line_cycles, machine.l2_line_cycles),
        shared=far.read * line / machine.shared_bytes_per_cycle
        + far.written * line / machine.l2_return_bytes_per_cycle,
        # What is written comes first, and goes afterwards.
        memory=(farthest.read + 2 * farthest.written) * line / machine.memory_bytes_per_cycle,
        jumps=jumps,
        starts=work.starts * machine.loop_cycles,
    )
