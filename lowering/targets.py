"""What generated C is compiled for."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """What schedules are chosen by."""

    lanes: int
    """f32 values in a vector register; 1 if there are no vectors."""
    registers: int
    """Vector registers."""
    l1: int = 32 << 10
    """Bytes of the first data cache."""
    l2: int = 1 << 20
    """Bytes of the second cache, of one core."""


_MACHINES: dict[str, Target] = {
    "x86-64-v4": Target(16, 32),
    "x86-64-v3": Target(8, 16, l2=512 << 10),
    "x86-64": Target(4, 16, l2=256 << 10),
    "aarch64": Target(4, 32, l2=512 << 10),
    "c99": Target(1, 16, l2=256 << 10),
}


def target_named(target: str) -> Target:
    """
    The description of a target; for `native` that of the best target that runs here.

    ValueError names the known targets.
    """
    if target in _MACHINES:
        return _MACHINES[target]
    if target != "native":
        raise ValueError(f"target '{target}' is not one of {', '.join(TARGETS)}")
    return next(_MACHINES[name] for name in _MACHINES if name == "c99" or obstacle(name) is None)


FLAGS = (
    "-O2",
    "-std=c99",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-predictive-commoning",
    "-Wno-ignored-optimization-argument",
)
"""
What the generated C is compiled with for every target; any C99 compiler and flags will do.

Predictive commoning (of gcc) keeps what a loop loads for its next turns, which takes the registers
that sums are in. Clang knows nothing of it, and is not to say so.
"""

TARGETS: dict[str, tuple[str, ...]] = {
    "native": ("-march=native", "-mtune=generic", "-mprefer-vector-width=512"),
    "x86-64-v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    "x86-64-v3": ("-march=x86-64-v3",),
    "x86-64": ("-march=x86-64",),
    "aarch64": (),
    "c99": (),
}
"""
The compiler flags of each target; `native` is the machine that compiles.

Tuned for some processors (AMD's), gcc takes some sums' multiply-adds apart, those of one sum in a
loop and not those of eight side by side: columns of equal weights would have unequal sums.
"""


_AVX2 = frozenset("avx avx2 bmi1 bmi2 f16c fma abm movbe".split())
_AVX512 = frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())
_X86 = ("x86_64", "AMD64")

NEEDS: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "x86-64-v4": (_X86, _AVX2 | _AVX512),
    "x86-64-v3": (_X86, _AVX2),
    "x86-64": (_X86, frozenset()),
    "aarch64": (("aarch64", "arm64"), frozenset()),
}
"""The architectures that a target's code runs on, and the CPU features it uses."""


def obstacle(target: str) -> str | None:
    """Why code for a target cannot run on this machine; None if it can."""
    machines, features = NEEDS.get(target, ((), frozenset[str]()))
    machine = platform.machine()
    if machines and machine not in machines:
        return f"target {target} does not run on {machine}"
    if missing := features - _cpu_features():
        return f"target {target} needs {', '.join(sorted(missing))}, which this CPU does not have"
    return None


def _cpu_features() -> set[str]:
    return {word for line in _cpu_lines() for word in line.split(":", 1)[-1].split()}


def _cpu_lines() -> list[str]:
    """What the system says of its CPUs' features; empty if it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    return sorted({line for line in lines if line.startswith(("flags", "Features"))})


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
    features = _cpu_lines() or [platform.processor()]
    digest = hashlib.sha256("\n".join(features).encode()).hexdigest()[:16]
    return f"{platform.machine()}-{digest}"
