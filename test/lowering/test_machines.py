"""
Other machines under qemu: powerpc64, whose numbers begin with their highest byte (Debian packages
`gcc-powerpc64-linux-gnu`, `libc6-dev-ppc64-cross` and `qemu-user`), and a Cortex-M4
(`gcc-arm-none-eabi`, `libnewlib-arm-none-eabi` and `qemu-system-arm`).
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import element_of
from lowerdeck.dialects.interpret import find_function
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import module_of, typed, write_artifact  # noqa: TID251  (tests, not sources)

CC, EMULATOR = "powerpc64-linux-gnu-gcc", "qemu-ppc64"

DTYPES = (
    *(np.float32, np.float64, np.float16, ml_dtypes.bfloat16),
    *(np.int64, np.int32, np.int16, np.uint16, np.int8, np.uint8),
)

MAIN = """\
#include <stdio.h>
#include <string.h>
#include "m.h"
static uint64_t room[1 << 12], file[1 << 12];
int main(int argc, char **argv) {
  double x[3] = {1, 2, 3}, y[3] = {0};
  m_args args;
  memset(&args, 0, sizeof args);
  args.workspace = room;
  args.workspace_size = sizeof room;
  args.x.data = x;
  args.x.dims[0] = 3;
  args.y.data = y;
  args.y.capacity = 3;
  args.y.dims[0] = 3;
  if (argc > 1) {
    FILE *const weights = fopen(argv[1], "rb");
    args.weights_size = fread(file, 1, sizeof file, weights);
    args.weights = file;
  }
  const int status = m_run(&args);
  printf("%d %g %g %g\\n", status, y[0], y[1], y[2]);
}
"""


def artifact(*, embed_weights: bool) -> CArtifact:
    """x plus three constants of each type, none of which reads the same from behind."""

    def body(x: Any) -> Any:
        total = x
        for number, dtype in enumerate(DTYPES):
            values = np.array([1, 3, 5], np.float64) * (number + 1)
            constant = ConstantOp.of(values.astype(dtype))
            wide = e.CastOp(constant.result, element_of(np.dtype(np.float64)))
            total = e.AddOp(total, wide.result).result
        return total

    module = module_of([typed(np.float64, 3)], body)
    function = find_function(module, "main")
    function.properties["arg_attrs"] = named(["x"])
    function.properties["res_attrs"] = named(["y"])
    for name in ("form-kernels", "bufferize", "lower-kernels", "expand-math", "plan-memory"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    return emit_c(module, "m", "c99", embed_weights=embed_weights)


SUMS = " ".join(f"{x + k * 55:g}" for x, k in zip((1, 2, 3), (1, 3, 5), strict=True))
"""What the program prints of its results."""


def test_big_endian(tmp_path: Path) -> None:
    """Embedded weights and those of its order are right; those of the other order are refused."""
    if not all(map(shutil.which, (CC, EMULATOR))):
        pytest.skip(f"needs {CC} and {EMULATOR}")
    file = artifact(embed_weights=False)
    for folder, made in (
        ("embedded", artifact(embed_weights=True)),
        ("big", replace(file, byte_order="big")),
        ("little", file),
    ):
        write_artifact(made, tmp_path / folder)
        (tmp_path / folder / "main.c").write_text(MAIN)
        (tmp_path / folder / "m_weights.c").write_text("".join(made.weights_text()))
    assert (tmp_path / "big/m.c").read_bytes() == (tmp_path / "little/m.c").read_bytes()

    def run(folder: str, *sources: str, weights: str = "") -> str:
        command = [CC, "-std=c99", "-static", "-Wall", "-Wextra", "-Werror", "-o", "program"]
        command += ["main.c", "m.c", *sources, "-lm"]
        subprocess.run(command, cwd=tmp_path / folder, check=True)
        arguments = [f"{tmp_path}/{weights}/m.weights"] if weights else []
        done = subprocess.run(
            [EMULATOR, "./program", *arguments],
            cwd=tmp_path / folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert run("embedded", "m_weights.c") == f"0 {SUMS}"
    assert run("big", weights="big") == f"0 {SUMS}"
    assert run("little", weights="little") == "8 0 0 0"


BOARD = """\
ENTRY(_start)
MEMORY { CODE (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.init) *(.fini) KEEP(*(.*_array*)) } > CODE
  .ARM.exidx : { __exidx_start = .; *(.ARM.exidx*) __exidx_end = .; } > CODE
  .data : { *(.data*) } > RAM
  .bss : { __bss_start__ = .; *(.bss*) *(COMMON) __bss_end__ = .; } > RAM
  end = .; __end__ = .;
}
"""
"""The memory of the board."""

VECTORS = """\
extern void _start(void);
__attribute__((section(".vectors"), used)) static void *const vectors[2] = {
    (void *)0x20400000, (void *)_start};
"""
"""Where the processor begins: the end of the stack, and the first instruction."""


def test_microcontroller(tmp_path: Path) -> None:
    compiler, emulator = "arm-none-eabi-gcc", "qemu-system-arm"
    if not all(map(shutil.which, (compiler, emulator))):
        pytest.skip(f"needs {compiler} and {emulator}")
    made = artifact(embed_weights=True)
    write_artifact(made, tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "m_weights.c").write_text("".join(made.weights_text()))
    (tmp_path / "board.ld").write_text(BOARD)
    (tmp_path / "vectors.c").write_text(VECTORS)
    machine = ["-mcpu=cortex-m4", "-mthumb", "--specs=rdimon.specs", "-Tboard.ld"]
    command = [compiler, *machine, "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", "program"]
    command += ["main.c", "m.c", "m_weights.c", "vectors.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    board = [emulator, "-M", "mps2-an386", "-nographic", "-semihosting-config"]
    done = subprocess.run(
        [*board, "enable=on,target=native", "-kernel", "program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"0 {SUMS}"
