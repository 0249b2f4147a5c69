"""64-bit Arm with NEON, which is always present."""

from __future__ import annotations

from lowerdeck.lowering.targets.base import Target, lanes_for

AARCH64 = Target(
    "aarch64",
    registers=32,
    l2_bytes=512 << 10,
    lanes_by_element=lanes_for(16),
    architectures=("aarch64", "arm64"),
)
