"""A target in one file: vectors of four elements and few registers. The test registers it."""

from lowerdeck.lowering.targets.base import Costs, Target

TOY = Target(
    "toy",
    registers=6,
    l2_bytes=4 << 10,
    lanes_by_element={"f32": 4},
    l1_bytes=1 << 10,
    costs=Costs(multiply_adds_per_cycle=1.0, latency_cycles=8.0),
)
