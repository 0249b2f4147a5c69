"""64-bit Arm with NEON, which is always present."""

from __future__ import annotations

from lowerdeck.lowering.targets.base import Target, lanes_for
from lowerdeck.lowering.targets.machine import machine_named

AARCH64 = Target(
    "aarch64",
    machine_named("aarch64"),
    lanes_by_element=lanes_for(16),
    architectures=("aarch64", "arm64"),
)
