"""The target cortex-a72: that of aarch64, with what is known of one processor."""

from dataclasses import replace

from lowerdeck.lowering.targets.aarch64 import AARCH64

CORTEX_A72 = replace(
    AARCH64,
    name="cortex-a72",
    machine=AARCH64.machine.but(
        "manual: Cortex-A72 Software Optimization Guide",
        l2_bytes=1 << 20,
        multiply_adds_per_cycle=1.0,
        loads_per_cycle=1.0,
        latency_cycles=7.0,
    ),
    flags=("-mcpu=cortex-a72",),
)
