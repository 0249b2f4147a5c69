"""The targets that C is generated for, one file per family, and queries about them."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from lowerdeck.dialects.files import cache_folder
from lowerdeck.lowering.targets.aarch64 import AARCH64
from lowerdeck.lowering.targets.base import Target
from lowerdeck.lowering.targets.c99 import C99
from lowerdeck.lowering.targets.cortex import CORTEX_M4, CORTEX_M7
from lowerdeck.lowering.targets.machine import SOURCES, Machine, MachineError, read_machine
from lowerdeck.lowering.targets.x86 import (
    X86_64,
    X86_64_AMX,
    X86_64_V3,
    X86_64_V4,
    X86_64_VNNI,
    X86_64_ZEN4,
)

TARGETS: list[Target] = [
    X86_64_AMX,
    X86_64_ZEN4,
    X86_64_VNNI,
    X86_64_V4,
    X86_64_V3,
    X86_64,
    AARCH64,
    CORTEX_M4,
    CORTEX_M7,
    C99,
]
"""All targets; `native` is the first one that runs on this machine."""

NATIVE = "native"
"""The name of the machine that runs the compiler."""

_NATIVE_FLAGS = ("-march=native", "-mtune=generic", "-mprefer-vector-width=512")
"""
When tuned for some processors (AMD's), gcc splits the multiply-adds of some sums: those of a single
sum in a loop, but not those of eight adjacent sums, so columns of equal weights would have unequal
sums.
"""

FLAGS = (
    "-O2",
    "-std=c99",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
)
"""The flags for the generated C on every target; any C99 compiler and flags will do."""

GCC_FLAGS = ("-fno-predictive-commoning", "-fno-tree-loop-distribute-patterns")
"""
Those that are for gcc, which others may refuse.

Predictive commoning keeps values that a loop loads for its next iterations, which takes registers
from the accumulators. Of loops that copy, gcc 12 makes calls of `memcpy`; a vector that is loaded
from the copy it then loads from the original instead, as if that were aligned, and the load faults.
"""


def target_names() -> list[str]:
    """The names of the targets."""
    return [NATIVE, *(target.name for target in TARGETS)]


def target_named(name: str) -> Target:
    """
    A target; for `native` the best one that runs here, with the flags for this very machine.

    ValueError names the known targets.
    """
    if name == NATIVE:
        return replace(
            _nearest(),
            name=NATIVE,
            machine=_own_machine() or _nearest().machine,
            flags=_NATIVE_FLAGS,
            architectures=(),
            features=frozenset(),
        )
    found = next((target for target in TARGETS if target.name == name), None)
    if found is None:
        raise ValueError(f"target '{name}' is not one of {', '.join(target_names())}")
    return found


def _nearest() -> Target:
    """The best target that runs here."""
    return next(t for t in TARGETS if _obstacle(t) is None and _is_for_this_processor(t))


def own_file() -> Path | None:
    """Where `lowerdeck calibrate` keeps what it measured; None if there is no cache folder."""
    folder = cache_folder()
    return None if folder is None else Path(folder, ".machines", f"{_processor_key()}.toml")


def _own_machine() -> Machine | None:
    """The numbers of this machine, if they were measured; MachineError if they cannot be used."""
    path = own_file()
    if path is None or not path.is_file():
        return None
    return _read_once(path, path.stat().st_mtime_ns)


@cache
def _read_once(path: Path, _changed: int) -> Machine:
    try:
        # What was measured before there was a number lacks it.
        return read_machine(path, _nearest().machine)
    except MachineError as error:
        raise MachineError(f"{error}\nnext: lowerdeck calibrate, or remove the file") from error


def machine_fault(name: str) -> str | None:
    """What is wrong with the numbers of a target's machine; None if nothing is."""
    try:
        target_named(name)
    except MachineError as error:
        return str(error)
    return None


def machine_origin(name: str) -> str:
    """Where the numbers of a target's machine are from."""
    path = own_file()
    if name == NATIVE and path is not None and path.is_file():
        return f"numbers of this machine, {path}"
    if name == NATIVE:
        return f"numbers of {_nearest().name}; `lowerdeck calibrate` measures those of this machine"
    kinds = Counter(
        fact.source.partition(":")[0] for fact in target_named(name).machine.facts.values()
    )
    return "numbers: " + ", ".join(f"{kinds[kind]} {kind}" for kind in SOURCES if kinds[kind])


def obstacle(name: str) -> str | None:
    """The reason why code for a target cannot run on this machine; None if it can."""
    return None if name == NATIVE else _obstacle(target_named(name))


def _obstacle(target: Target) -> str | None:
    machine = platform.machine()
    if target.architectures and machine not in target.architectures:
        return f"target {target.name} does not run on {machine}"
    if missing := target.features - _cpu_features():
        features = ", ".join(sorted(missing))
        return f"target {target.name} needs {features}, which this CPU does not have"
    return None


def _is_for_this_processor(target: Target) -> bool:
    """Whether a target is described for all processors, or for this one."""
    families = _cpu_values("cpu family")
    found = {(vendor, int(f)) for vendor in _cpu_values("vendor_id") for f in families}
    return not target.processors or bool(found & target.processors)


def _cpu_features() -> set[str]:
    return {word for value in _cpu_values("flags", "Features") for word in value.split()}


def _cpu_values(*names: str) -> list[str]:
    """What the system says of its CPUs under these names."""
    parts = (line.partition(":") for line in _cpu_lines())
    return [value.strip() for name, _, value in parts if name.strip() in names]


_CPU_FACTS = ("flags", "Features", "vendor_id", "cpu family", "model\t")


@cache
def _cpu_lines() -> Sequence[str]:
    """What the system reports about CPUs and their features; empty if nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ()
    return tuple(sorted({line for line in lines if line.startswith(_CPU_FACTS)}))


def compiler_flags(name: str) -> list[str]:
    """The flags to compile for a target by gcc; ValueError names the known ones."""
    return [*FLAGS, *GCC_FLAGS, *(_NATIVE_FLAGS if name == NATIVE else target_named(name).flags)]


def machine_key(name: str) -> str:
    """
    The identity of the machines that code for a target is made for: for `native` the architecture,
    the family and the features of this CPU, and what was measured of it; else the target itself.
    """
    if name != NATIVE:
        return name
    path = own_file()
    if path is None or not path.is_file():
        return _processor_key()
    return f"{_processor_key()}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def _processor_key() -> str:
    features = _cpu_lines() or [platform.processor()]
    digest = hashlib.sha256("\n".join(features).encode()).hexdigest()[:16]
    return f"{platform.machine()}-{digest}"


def processor_name() -> str:
    """What the system calls this processor."""
    vendor, family, model = (
        " ".join(sorted(set(_cpu_values(name)))) for name in ("vendor_id", "cpu family", "model")
    )
    return f"{vendor} family {family} model {model}" if vendor else platform.machine()
