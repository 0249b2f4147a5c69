"""
Compiled models under ASan and UBSan: a program reads runs from files, gives each the memory that
it needs to the byte, and prints its status.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from lowerdeck.compiler import CompileOptions, generate

Array = NDArray[Any]

# Optimization takes most of the time, and hides findings.
FLAGS = (
    *("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-g1", "-O0"),
    *("-Wno-psabi", "-fsanitize=address,undefined", "-fno-sanitize-recover"),
)

CAPACITY = 1 << 16
"""Elements of an output, whose size may depend on data."""

_PRELUDE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(void *context, size_t size) {
  (void)context;
  return size < (size_t)1 << 30 ? malloc(size) : NULL;
}

static void release(void *context, void *memory) {
  (void)context;
  free(memory);
}

static int64_t number(FILE *file) {
  int64_t value = 0;
  if (fread(&value, sizeof value, 1, file) != 1) exit(3);
  return value;
}

static void *block(FILE *file, size_t size) {
  unsigned char *const data = malloc(size);
  if (data == NULL || fread(data, 1, size, file) != size) exit(4);
  return data;
}
"""

_RUNS = """
static int {name}_once(FILE *file, void *weights, void *pool) {{
  const lowerdeck_allocator allocator = {{allocate, release, NULL}};
  {name}_args args;
  memset(&args, 0, sizeof args);
  args.weights = weights;
  args.weights_size = {weights_size};
  args.allocator = &allocator;
  args.pool = pool;
{inputs}
  const int64_t size = {name}_workspace_size(&args);
  args.workspace = malloc(size < 0 ? 1 : (size_t)size);
  args.workspace_size = size < 0 ? 0 : (size_t)size;
  const int status = size < 0 ? -1 : {name}_run(&args);
  free(args.workspace);
{free}
  return status;
}}

static void {name}_runs(void) {{
  FILE *const file = fopen("{name}.runs", "rb");
  if (file == NULL) exit(2);
  void *const weights = block(file, {weights_size});
  void *pool = NULL;
{make_pool}
  for (int64_t runs = number(file); runs > 0; runs--) {{
    printf("{name} %d\\n", {name}_once(file, weights, pool));
  }}
{end_pool}
  free(weights);
  fclose(file);
}}
"""


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[Any, Sequence[int | str]]],
    outputs: Sequence[str],
    *,
    initializers: Mapping[str, Array] | None = None,
    opset: int = 22,
) -> onnx.ModelProto:
    """An ONNX model; inputs have a dtype and a shape."""
    helper = onnx.helper
    graph = helper.make_graph(
        list(nodes),
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape)
            )
            for name, (dtype, shape) in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(v, name) for name, v in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


Runs: TypeAlias = "Sequence[Mapping[str, Array]]"


def statuses(folder: Path, model: onnx.ModelProto, runs: Runs, compiler: str) -> list[int]:
    """The status of each run of a model; a finding of a sanitizer is an AssertionError."""
    return statuses_of_all(folder, {"model": (model, runs)}, compiler)["model"]


def statuses_of_all(
    folder: Path,
    cases: Mapping[str, tuple[onnx.ModelProto, Runs]],
    compiler: str,
    *,
    target: str = "c99",
    threads: int = 1,
) -> dict[str, list[int]]:
    """The same of several models by name, which become one program."""
    described: dict[str, dict[str, Any]] = {}
    for name, (model, runs) in cases.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        options = CompileOptions(target=target, threads=threads)
        generate(str(folder / f"{name}.onnx"), str(folder), options)
        described[name] = json.loads((folder / f"{name}.json").read_text())
        _write_runs(folder, described[name], runs)
    (folder / "main.c").write_text(_main(list(described.values())))
    (folder / "models.c").write_text(_unit(list(described)))
    flags = {flag: None for each in described.values() for flag in each["cflags"]}
    sources = ["main.c", "models.c", *(["lowerdeck_pool.c"] if threads > 1 else [])]
    libraries = ["-lm", "-lpthread", "-o", "program"]
    machine = [flag for flag in flags if flag.startswith("-m")]
    _checked([compiler, *FLAGS, *machine, *sources, *libraries], folder)
    found: dict[str, list[int]] = {name: [] for name in cases}
    for line in _checked(["./program"], folder).splitlines():
        name, status = line.split()
        found[name].append(int(status))
    assert {name: len(found[name]) for name in cases} == {n: len(r) for n, (_, r) in cases.items()}
    return found


def _checked(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    assert not done.stderr, done.stderr[:4000]
    return done.stdout


def _unit(names: Sequence[str]) -> str:
    """The C of all models as one file."""
    return "".join(f'#include "{name}.c"\n' for name in names)


def _main(models: Sequence[Mapping[str, Any]]) -> str:
    """A program of all models."""
    names = [model["name"] for model in models]
    lines = [f'#include "{name}.h"' for name in names]
    if any(model["is_parallel"] for model in models):
        lines.append('#include "lowerdeck_pool.h"')
    lines += [_PRELUDE, *map(_runs_of, models), "int main(void) {"]
    return "\n".join([*lines, *(f"  {name}_runs();" for name in names), "  return 0;", "}", ""])


def _runs_of(metadata: Mapping[str, Any]) -> str:
    inputs: list[str] = []
    free: list[str] = []
    for port in metadata["inputs"]:
        field = f"args.{port['field']}"
        inputs += [f"  {field}.dims[{axis}] = number(file);" for axis in range(len(port["dims"]))]
        inputs.append(f"  {field}.data = block(file, (size_t)number(file));")
        free.append(f"  free((void *){field}.data);")
    for port in metadata["outputs"]:
        field = f"args.{port['field']}"
        inputs.append(f"  {field}.data = malloc({CAPACITY} * sizeof *{field}.data);")
        inputs.append(f"  {field}.capacity = {CAPACITY};")
        free.append(f"  free({field}.data);")
    is_parallel = metadata["is_parallel"]
    return _RUNS.format(
        name=metadata["name"],
        weights_size=metadata["weights_size"],
        inputs="\n".join(inputs),
        free="\n".join(free),
        make_pool="  pool = lowerdeck_pool_create(2);" if is_parallel else "",
        end_pool="  lowerdeck_pool_destroy(pool);" if is_parallel else "",
    )


def _write_runs(
    folder: Path, metadata: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> None:
    name = metadata["name"]
    with (folder / f"{name}.runs").open("wb") as file:
        if metadata["weights_size"]:
            file.write((folder / f"{name}.weights").read_bytes())
        file.write(struct.pack("<q", len(runs)))
        for run in runs:
            for port in metadata["inputs"]:
                value: Array = run[port["name"]]
                assert value.dtype == port["dtype"]
                file.write(struct.pack(f"<{value.ndim + 1}q", *value.shape, value.nbytes))
                file.write(value.tobytes())
