"""
Compiled models under ASan and UBSan: a program reads runs from a file, gives each the memory that
it needs to the byte, and prints its status.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from lowerdeck.compiler import CompileOptions, generate

Array = NDArray[Any]

FLAGS = (
    *("-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-g", "-O1"),
    *("-Wno-psabi", "-fsanitize=address,undefined", "-fno-sanitize-recover"),
)

CAPACITY = 1 << 16
"""Elements of an output, whose size may depend on data."""

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "{name}.h"
{pool_include}
static void *allocate(void *context, size_t size) {{
  (void)context;
  return size < (size_t)1 << 30 ? malloc(size) : NULL;
}}

static void release(void *context, void *memory) {{
  (void)context;
  free(memory);
}}

static int64_t number(FILE *file) {{
  int64_t value = 0;
  if (fread(&value, sizeof value, 1, file) != 1) exit(3);
  return value;
}}

static void *block(FILE *file, size_t size) {{
  unsigned char *const data = malloc(size);
  if (data == NULL || fread(data, 1, size, file) != size) exit(4);
  return data;
}}

static int run(FILE *file, void *weights, void *pool) {{
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

int main(int argc, char **argv) {{
  FILE *const file = fopen(argv[argc - 1], "rb");
  if (file == NULL) return 2;
  void *const weights = block(file, {weights_size});
  void *pool = NULL;
{make_pool}
  for (int64_t runs = number(file); runs > 0; runs--) printf("%d\\n", run(file, weights, pool));
{end_pool}
  free(weights);
  fclose(file);
  return 0;
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


def statuses(
    folder: Path,
    model: onnx.ModelProto,
    runs: Sequence[Mapping[str, Array]],
    compiler: str,
    *,
    target: str = "c99",
    threads: int = 1,
) -> list[int]:
    """The status of each run of a model; a finding of a sanitizer is an AssertionError."""
    generate(model, str(folder), CompileOptions(target=target, threads=threads))
    metadata: dict[str, Any] = json.loads((folder / "model.json").read_text())
    (folder / "main.c").write_text(_main(metadata))
    _write_runs(folder, metadata, runs)
    machine = [flag for flag in metadata["cflags"] if flag.startswith("-m")]
    sources = [*metadata["sources"], "main.c", "-lm", "-lpthread", "-o", "program"]
    _checked([compiler, *FLAGS, *machine, *sources], folder)
    return [int(line) for line in _checked(["./program", "runs"], folder).split()]


def _checked(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    assert not done.stderr, done.stderr[:4000]
    return done.stdout


def _main(metadata: Mapping[str, Any]) -> str:
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
    return _MAIN.format(
        name=metadata["name"],
        weights_size=metadata["weights_size"],
        inputs="\n".join(inputs),
        free="\n".join(free),
        pool_include='#include "lowerdeck_pool.h"\n' if is_parallel else "",
        make_pool="  pool = lowerdeck_pool_create(2);" if is_parallel else "",
        end_pool="  lowerdeck_pool_destroy(pool);" if is_parallel else "",
    )


def _write_runs(
    folder: Path, metadata: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> None:
    with (folder / "runs").open("wb") as file:
        if metadata["weights_size"]:
            file.write((folder / "model.weights").read_bytes())
        file.write(struct.pack("<q", len(runs)))
        for run in runs:
            for port in metadata["inputs"]:
                value: Array = run[port["name"]]
                assert value.dtype == port["dtype"]
                file.write(struct.pack(f"<{value.ndim + 1}q", *value.shape, value.nbytes))
                file.write(value.tobytes())
