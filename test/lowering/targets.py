"""
Compiled models run on every target: here, or in an emulator.

`run_on(target, artifact, inputs, folder)` gives the outputs; `obstacle_to(target)` says why a
target cannot be run, for tests to be skipped with. On another machine, aarch64 needs the packages
`gcc-aarch64-linux-gnu` and `qemu-user`.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.targets import TARGETS, compiler_flags, obstacle

from .programs import write_artifact  # noqa: TID251  (these are tests, not the folder of sources)

Array = NDArray[Any]

EVERY_TARGET = tuple(TARGETS)
"""All that code can be made for."""

_CROSS_COMPILER, _EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def obstacle_to(target: str) -> str | None:
    """Why code for a target cannot be run on this machine; None if it can."""
    if target != "aarch64" or _is_native(target):
        return obstacle(target)
    missing = [name for name in (_CROSS_COMPILER, _EMULATOR) if shutil.which(name) is None]
    return f"{' and '.join(missing)} not found" if missing else None


def run_on(
    target: str, artifact: CArtifact, inputs: Sequence[Array], folder: Path, capacity: int = 1 << 16
) -> list[Array]:
    """
    The outputs of a model for inputs in order, each of `capacity` elements at most; on two threads
    if the code is for several.

    The C must have been made for the target. AssertionError, with what was printed, if it cannot be
    compiled or fails.
    """
    write_artifact(artifact, folder)
    (folder / "main.c").write_text(_main(artifact, inputs, capacity))
    (folder / "inputs.bin").write_bytes(b"".join(np.ascontiguousarray(x).tobytes() for x in inputs))
    cross = target == "aarch64" and not _is_native(target)
    compiler = [_CROSS_COMPILER, "-static"] if cross else ["gcc"]
    sources = ["main.c", *cast("list[str]", artifact.metadata["sources"])]
    flags = [*compiler_flags(target), "-Wall", "-Wextra", "-Werror"]
    _run([*compiler, *flags, *sources, "-o", "program", "-lm", "-lpthread"], folder)
    _run([_EMULATOR, "./program"] if cross else ["./program"], folder)
    return _outputs(artifact, (folder / "outputs.bin").read_bytes())


def _is_native(target: str) -> bool:
    return target == "aarch64" and platform.machine() in ("aarch64", "arm64")


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"[:4000]


def _main(artifact: CArtifact, inputs: Sequence[Array], capacity: int) -> str:
    """A program that reads inputs and weights, and writes the outputs' dimensions and elements."""
    name, data = artifact.name, artifact.metadata
    lines = [
        f'#include "{name}.h"',
        *(['#include "lowerdeck_pool.h"'] if data["is_parallel"] else []),
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "static void *allocate(void *c, size_t size) { (void)c; return malloc(size + 1); }",
        "static void release(void *c, void *memory) { (void)c; free(memory); }",
        "int main(void) {",
        f"  static {name}_args args;",
        "  const lowerdeck_allocator allocator = {allocate, release, NULL};",
        "  args.allocator = &allocator;",
        '  FILE *file = fopen("inputs.bin", "rb");',
        "  if (file == NULL) return 2;",
    ]
    for port, value in zip(_ports(data, "inputs"), inputs, strict=True):
        field = port["field"]
        lines += [
            f"  void *const in_{field} = malloc({value.nbytes} + 1);",
            f"  if (fread(in_{field}, 1, {value.nbytes}, file) != {value.nbytes}) return 3;",
            f"  args.{field}.data = in_{field};",
        ]
        lines += [f"  args.{field}.dims[{k}] = {dim};" for k, dim in enumerate(value.shape)]
    lines.append("  fclose(file);")
    for port in _ports(data, "outputs"):
        size = capacity * _dtype(port).itemsize
        lines.append(f"  args.{port['field']}.data = malloc({size});")
        lines.append(f"  args.{port['field']}.capacity = {capacity};")
    lines += [
        f"  const size_t weights_size = {data['weights_size']};",
        "  void *const weights = malloc(weights_size + 1);",
        "  if (weights_size != 0) {",
        f'    file = fopen("{name}.weights", "rb");',
        "    if (file == NULL || fread(weights, 1, weights_size, file) != weights_size) return 4;",
        "    fclose(file);",
        "  }",
        "  args.weights = weights;",
        "  args.weights_size = weights_size;",
        *(["  args.pool = lowerdeck_pool_create(2);"] if data["is_parallel"] else []),
        f"  const int64_t size = {name}_workspace_size(&args);",
        "  if (size < 0) return 5;",
        "  args.workspace = malloc((size_t)size + 1);",
        "  args.workspace_size = (size_t)size;",
        f"  const int status = {name}_run(&args);",
        *(["  lowerdeck_pool_destroy(args.pool);"] if data["is_parallel"] else []),
        '  if (status != 0) fprintf(stderr, "%s\\n", lowerdeck_status_text(status));',
        "  if (status != 0) return 6;",
        '  file = fopen("outputs.bin", "wb");',
        "  if (file == NULL) return 7;",
        "  size_t count;",
    ]
    for port in _ports(data, "outputs"):
        field, rank = port["field"], len(port["dims"])
        lines.append("  count = 1;")
        lines += [f"  count *= (size_t)args.{field}.dims[{k}];" for k in range(rank)]
        lines += [
            f"  fwrite(args.{field}.dims, sizeof(int64_t), {rank}, file);",
            f"  fwrite(args.{field}.data, {_dtype(port).itemsize}, count, file);",
        ]
    return "\n".join([*lines, "  return fclose(file);", "}", ""])


def _ports(data: Mapping[str, object], kind: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", data[kind])


def _dtype(port: Mapping[str, Any]) -> np.dtype[Any]:
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    return bfloat16 if port["dtype"] == "bfloat16" else np.dtype(port["dtype"])


def _outputs(artifact: CArtifact, text: bytes) -> list[Array]:
    results: list[Array] = []
    position = 0
    for port in _ports(artifact.metadata, "outputs"):
        rank, dtype = len(port["dims"]), _dtype(port)
        shape = np.frombuffer(text, np.int64, rank, position)
        position += rank * 8
        count = int(np.prod(shape, dtype=np.int64))
        results.append(np.frombuffer(text, dtype, count, position).reshape(shape))
        position += count * dtype.itemsize
    return results
