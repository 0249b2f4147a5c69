"""
Many models as one C program: its main function, and what it writes. So they run where a library
cannot be loaded: in an emulator, or in a process that may end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowerdeck.lowering.emit_c.module import CArtifact

Array = NDArray[Any]
Result = tuple[int, list[Array]]
"""The status of a run and its outputs, none if it failed."""

_PRELUDE = """\
#include <stdio.h>
#include <stdlib.h>
static void *allocate(void *c, size_t size) { (void)c; return malloc(size + 1); }
static void release(void *c, void *memory) { (void)c; free(memory); }
static const lowerdeck_allocator allocator = {allocate, release, NULL};
static void *read_bytes(FILE *file, size_t size) {
  void *const memory = malloc(size + 1);
  if (memory == NULL || file == NULL || fread(memory, 1, size, file) != size) exit(2);
  return memory;
}
"""


def main_of(models: Sequence[tuple[CArtifact, Sequence[Array]]], capacity: int) -> str:
    """A program that reads inputs and weights, and writes status, dimensions and elements."""
    lines = [f'#include "{name}.h"' for name in dict.fromkeys(each.name for each, _ in models)]
    if any(artifact.metadata["is_parallel"] for artifact, _ in models):
        lines.append('#include "lowerdeck_pool.h"')
    lines.append(_PRELUDE)
    for number, (artifact, inputs) in enumerate(models):
        lines += _function(f"run_{number}", artifact, inputs, capacity)
    lines += [
        "int main(void) {",
        '  FILE *const in = fopen("inputs.bin", "rb"), *const out = fopen("outputs.bin", "wb");',
        "  if (in == NULL || out == NULL) return 1;",
        *(f"  run_{number}(in, out);" for number in range(len(models))),
        "  return fclose(out);",
        "}",
    ]
    return "\n".join([*lines, ""])


def _function(
    function: str, artifact: CArtifact, inputs: Sequence[Array], capacity: int
) -> list[str]:
    """A function that runs one model once."""
    name, data = artifact.name, artifact.metadata
    lines = [
        f"static void {function}(FILE *in, FILE *out) {{",
        f"  static {name}_args args;",
        "  args.allocator = &allocator;",
    ]
    for port, value in zip(_ports(data, "inputs"), inputs, strict=True):
        field = port["field"]
        lines.append(f"  args.{field}.data = read_bytes(in, {value.nbytes});")
        lines += [f"  args.{field}.dims[{k}] = {dim};" for k, dim in enumerate(value.shape)]
    for port in _ports(data, "outputs"):
        size = capacity * _dtype(port).itemsize
        lines.append(f"  args.{port['field']}.data = malloc({size} + 1);")
        lines.append(f"  args.{port['field']}.capacity = {capacity};")
    lines += [
        f"  args.weights_size = {data['weights_size']};",
        f'  FILE *const weights = fopen("{name}.weights", "rb");',
        "  args.weights = read_bytes(weights, args.weights_size);",
        "  fclose(weights);",
        *(["  args.pool = lowerdeck_pool_create(2);"] if data["is_parallel"] else []),
        f"  const int64_t size = {name}_workspace_size(&args);",
        "  args.workspace_size = size < 0 ? 0 : (size_t)size;",
        "  args.workspace = malloc(args.workspace_size + 1);",
        f"  const int64_t status = {name}_run(&args);",
        *(["  lowerdeck_pool_destroy(args.pool);"] if data["is_parallel"] else []),
        "  fwrite(&status, sizeof status, 1, out);",
        "  if (status != 0) return;",
    ]
    for port in _ports(data, "outputs"):
        field, rank = port["field"], len(port["dims"])
        count = " * ".join(["(size_t)1", *(f"(size_t)args.{field}.dims[{k}]" for k in range(rank))])
        lines += [
            f"  fwrite(args.{field}.dims, sizeof(int64_t), {rank}, out);",
            f"  fwrite(args.{field}.data, {_dtype(port).itemsize}, {count}, out);",
        ]
    return [*lines, "}"]


def _ports(data: Mapping[str, object], kind: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", data[kind])


def _dtype(port: Mapping[str, Any]) -> np.dtype[Any]:
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    return bfloat16 if port["dtype"] == "bfloat16" else np.dtype(port["dtype"])


def results_of(artifacts: Sequence[CArtifact], text: bytes) -> list[Result]:
    """What the program has written."""
    found: list[Result] = []
    position = 0

    def take(dtype: np.dtype[Any], count: int) -> Array:
        nonlocal position
        taken = np.frombuffer(text, dtype, count, position)
        position += taken.nbytes
        return taken

    for artifact in artifacts:
        status = int(take(np.dtype(np.int64), 1)[0])
        outputs: list[Array] = []
        for port in _ports(artifact.metadata, "outputs") if status == 0 else []:
            shape = take(np.dtype(np.int64), len(port["dims"]))
            outputs.append(take(_dtype(port), int(np.prod(shape, dtype=np.int64))).reshape(shape))
        found.append((status, outputs))
    return found
