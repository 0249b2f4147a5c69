"""Microcontrollers: Arm Cortex-M with its instructions for signal processing, and no vectors."""

from __future__ import annotations

from lowerdeck.lowering.targets.base import Target

CORTEX_M4 = Target(
    "cortex-m4",
    registers=16,
    l1_bytes=16 << 10,
    l2_bytes=64 << 10,
    flags=("-mcpu=cortex-m4", "-mthumb", "-funroll-loops"),
    architectures=("arm",),
    index_bits=32,
    has_scalar_sums=True,
)

CORTEX_M7 = Target(
    "cortex-m7",
    registers=16,
    l1_bytes=16 << 10,
    l2_bytes=64 << 10,
    flags=("-mcpu=cortex-m7", "-mthumb", "-funroll-loops"),
    architectures=("arm",),
    index_bits=32,
    has_scalar_sums=True,
)
