"""A target in one file: vectors of four elements and few registers. The test registers it."""

from lowerdeck.lowering.targets.base import Target
from lowerdeck.lowering.targets.machine import machine_named

TOY = Target(
    "toy",
    machine_named("c99").but(
        "set: a toy",
        registers=6,
        l1_bytes=1 << 10,
        l2_bytes=4 << 10,
        multiply_adds_per_cycle=1.0,
        latency_cycles=8.0,
    ),
    lanes_by_element={"f32": 4},
)
