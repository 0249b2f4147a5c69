"""
Compiled models run on every target: here, or in an emulator.

`run_on(target, artifact, inputs, folder)` gives the outputs; `obstacle_to(target)` says why a
target cannot be run, for tests to be skipped with. On another machine, aarch64 needs the packages
`gcc-aarch64-linux-gnu` and `qemu-user`. `suite_for(target, folder)` is a suite of programs that run
as the target has it, and `suite_in_turn` one of those that are this target's to run.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.targets import TARGETS, compiler_flags, obstacle, target_named
from models import emulated
from models.together import main_of, results_of

from .forms import EVERY_FORM, is_lowered  # noqa: TID251  (as below)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLAGS,
    VECTOR_FLAGS,
    Outcome,
    Suite,
    write_unit,
)

Array = NDArray[Any]

_AS_OTHERS = {"cortex-m7"}
EVERY_TARGET = tuple(
    target.name for target in TARGETS if not target.isa.quads and target.name not in _AS_OTHERS
)
"""
Those that code can be made for, but for the ones whose loops differ in products of bytes alone, and
but for all but one of a family.
"""

SOME_TARGETS = EVERY_TARGET if EVERY_FORM else ("x86-64-v4", "aarch64", "c99")
OTHER_TARGETS = EVERY_TARGET if EVERY_FORM else ("x86-64-v3", "x86-64", "cortex-m4")
"""
Half of them each, with vectors of different widths and without: tests of forms that have little to
do with the target are on one half, their neighbors on the other; `make test-slow` has all.
"""

_WARNINGS = ("-Wall", "-Wextra", "-Werror")


def obstacle_to(target: str) -> str | None:
    """Why code for a target cannot be run on this machine; None if it can."""
    if target != "aarch64" or _is_native(target):
        return obstacle(target)
    return emulated.obstacle()


def run_on(
    target: str, artifact: CArtifact, inputs: Sequence[Array], folder: Path, capacity: int = 1 << 16
) -> list[Array]:
    """
    The outputs of a model for inputs in order, each of `capacity` elements at most; on two threads
    if the code is for several.

    The C must have been made for the target. AssertionError, with what was printed, if it cannot be
    compiled or fails.
    """
    flags = [*compiler_flags(target), *_WARNINGS]
    ((status, outputs),) = run_together(target, [(artifact, inputs)], folder, flags, capacity)
    assert status == 0, f"status {status}"
    return outputs


def run_together(
    target: str,
    models: Sequence[tuple[CArtifact, Sequence[Array]]],
    folder: Path,
    flags: Sequence[str],
    capacity: int = 1 << 16,
) -> list[Outcome]:
    """The status and the outputs of each run of models, which become one program."""
    artifacts = [artifact for artifact, _ in models]
    unit = write_unit(list({each.name: each for each in artifacts}.values()), folder)
    sources = ["main.c", *(path.name for path in unit)]
    (folder / "main.c").write_text(main_of(models, capacity))
    arrays = (np.ascontiguousarray(x).tobytes() for _, inputs in models for x in inputs)
    (folder / "inputs.bin").write_bytes(b"".join(arrays))
    cross = target == "aarch64" and not _is_native(target)
    compiler = [emulated.COMPILER, "-static"] if cross else ["gcc"]
    _run([*compiler, *flags, *sources, "-o", "program", "-lm", "-lpthread"], folder)
    _run([emulated.EMULATOR, "./program"] if cross else ["./program"], folder)
    return results_of(artifacts, (folder / "outputs.bin").read_bytes())


@dataclass(eq=False)
class EmulatedSuite(Suite):
    """A suite for the processor that is emulated here."""

    target: str = "aarch64"

    def outcomes(self) -> list[Outcome]:
        """As `Suite` has it."""
        models = [(artifact, program.inputs) for program, artifact, _ in self.lowered]
        sizes = (value.size for program in self.programs for value in program.expected)
        capacity = max(sizes, default=1 << 16)
        return run_together(self.target, models, self.folder, self.flags, capacity)


def suite_for(target: str, folder: Path, share: int = 1) -> Suite:
    """
    A suite that is compiled for a target, of whose modules one of each `share` is lowered. What the
    processor here does not have, gcc makes of what it has; the test is skipped if the target is
    another kind of processor, and there is no emulator.
    """
    suite = _suite_for(target, folder)
    if share > 1:
        suite.is_turn = lambda number, count: is_lowered(number, share)
    return suite


def _suite_for(target: str, folder: Path) -> Suite:
    if target == "aarch64" and not _is_native(target):
        if (reason := obstacle_to(target)) is not None:
            pytest.skip(reason)
        return EmulatedSuite(folder, flags=FLAGS)
    if obstacle(target) is not None:
        return Suite(folder, flags=VECTOR_FLAGS)
    return Suite(folder, flags=(*FLAGS, *target_named(target).flags))


_LARGEST_SHARE = 4


def suite_in_turn(target: str, folder: Path, among: Sequence[str] = EVERY_TARGET) -> Suite:
    """
    A suite whose programs are spread over targets, of which a test makes a suite each: of many
    modules, each is lowered for one, and half of them (or up to three quarters of very many) by
    `make test-slow` alone; of few, for more than one, so that none of the targets has nothing to
    do.

    So each form is tested, and each target, but not each form on each target. A module keeps all
    its inputs.
    """
    suite = suite_for(target, folder)
    suite.is_turn = partial(_is_turn, target, among)
    return suite


def _is_turn(target: str, turns: Sequence[str], number: int, count: int) -> bool:
    if count >= 2 * len(turns) and not EVERY_FORM:
        share = min(count // len(turns), _LARGEST_SHARE)
        return is_lowered(number, share) and target == turns[_mixed(number // share, len(turns))]
    if count > len(turns):
        return target == turns[_mixed(number, len(turns))]
    # Each time around, the modules begin with another one: it is not always the same that has all
    # the wide targets.
    return any(
        name == target and (turn + turn // count) % count == number
        for turn, name in enumerate(turns)
    )


def _mixed(number: int, count: int) -> int:
    """
    Each of `count` choices equally often. Forms are listed by loops in loops: the remainder of the
    number alone would go with one of them.
    """
    return (number // count - number) % count


def _is_native(target: str) -> bool:
    return target == "aarch64" and platform.machine() in ("aarch64", "arm64")


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"[:4000]
