"""What generated C is compiled for."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

FLAGS = ("-O3", "-std=c99", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
"""What the generated C is compiled with for every target; any C99 compiler and flags will do."""

TARGETS: dict[str, tuple[str, ...]] = {
    "native": ("-march=native",),
    "x86-64-v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    "x86-64-v3": ("-march=x86-64-v3",),
    "x86-64": ("-march=x86-64",),
    "aarch64": (),
    "c99": (),
}
"""The compiler flags of each target; `native` is the machine that compiles."""


def compiler_flags(target: str) -> list[str]:
    """The flags to compile for a target; ValueError names the known ones."""
    if target not in TARGETS:
        raise ValueError(f"target '{target}' is not one of {', '.join(TARGETS)}")
    return [*FLAGS, *TARGETS[target]]


def machine_key(target: str) -> str:
    """
    What identifies the machines that code for a target runs on: for `native` the architecture and
    the features of this CPU, else the target itself.
    """
    if target != "native":
        return target
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    features = sorted({line for line in lines if line.startswith(("flags", "Features"))} or lines)
    digest = hashlib.sha256("\n".join(features).encode()).hexdigest()[:16]
    return f"{platform.machine()}-{digest}"
