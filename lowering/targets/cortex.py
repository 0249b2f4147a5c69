"""Microcontrollers: Arm Cortex-M with its instructions for signal processing, and no vectors."""

from __future__ import annotations

from lowerdeck.lowering.targets.base import Target
from lowerdeck.lowering.targets.isa_arm import DSP
from lowerdeck.lowering.targets.machine import machine_named

CORTEX_M4 = Target(
    "cortex-m4",
    machine_named("cortex-m"),
    flags=("-mcpu=cortex-m4", "-mthumb"),
    architectures=("arm",),
    index_bits=32,
    has_scalar_sums=True,
    isa=DSP,
)

CORTEX_M7 = Target(
    "cortex-m7",
    machine_named("cortex-m"),
    flags=("-mcpu=cortex-m7", "-mthumb"),
    architectures=("arm",),
    index_bits=32,
    has_scalar_sums=True,
    isa=DSP,
)
