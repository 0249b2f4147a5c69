"""
Models as C for an aarch64 that is emulated: for machines of another kind, with the packages
`gcc-aarch64-linux-gnu` and `qemu-user` of Debian, or the compiler that `CC` names.

    model = Emulated("model.tflite", CompileOptions(target="aarch64"))
    outputs = model({"x": x})
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowerdeck.compiler import CompileOptions, generate

Arrays = Mapping[str, NDArray[Any]]

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
_CAPACITY = 1 << 22
"""Elements of room for each result."""

_PRELUDE = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *allocate(void *c, size_t size) { (void)c; return malloc(size + 1); }
static void release(void *c, void *memory) { (void)c; free(memory); }
static const lowerdeck_allocator allocator = {allocate, release, NULL};
static void take(FILE *file, void *to, size_t size) {
  if (file == NULL || fread(to, 1, size, file) != size) exit(2);
}
static void *taken(FILE *file, size_t size) {
  void *const memory = malloc(size + 1);
  if (memory == NULL) exit(3);
  take(file, memory, size);
  return memory;
}
"""


def obstacle() -> str | None:
    """Why there is no emulation here; None if there is."""
    missing = [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]
    return f"{' and '.join(missing)} not found" if missing else None


class Emulated:
    """
    A model that is compiled for aarch64 and called in an emulator, a process a call.

    CalledProcessError if its C cannot be compiled, RuntimeError if a run gives a status.
    """

    def __init__(self, path: str, options: CompileOptions) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="lowerdeck-emulated-")
        self._folder = Path(self._temporary.name)
        generate(path, str(self._folder), options)
        (described,) = self._folder.glob("*.json")
        self._data: dict[str, Any] = json.loads(described.read_text())
        (self._folder / "main.c").write_text(_program(self._data))
        compiler = [os.environ.get("CC", COMPILER), "-static", *self._data["cflags"]]
        libraries = [f"-l{name}" for name in self._data["libraries"]]
        sources = ["main.c", *self._data["sources"]]
        self._run([*compiler, *sources, "-o", "program", *libraries, "-lpthread"])

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return [port["name"] for port in self._data["inputs"]]

    def reset(self) -> None:
        """Let the model forget."""
        (self._folder / "state.bin").unlink(missing_ok=True)

    def __call__(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """The outputs, and `state NAME` for each that the model remembers."""
        with (self._folder / "inputs.bin").open("wb") as file:
            for port in self._data["inputs"]:
                array = np.ascontiguousarray(inputs[port["name"]], _dtype(port))
                file.write(np.array(inputs[port["name"]].shape, np.int64).tobytes())
                file.write(array.tobytes())
        self._run([EMULATOR, "./program"])
        text = (self._folder / "outputs.bin").read_bytes()
        status, place = int(np.frombuffer(text, np.int64, 1)[0]), 8
        if status:
            raise RuntimeError(f"status {status}")
        found: dict[str, NDArray[Any]] = {}
        for port in self._data["outputs"]:
            rank, dtype = len(port["dims"]), _dtype(port)
            shape = np.frombuffer(text, np.int64, rank, place)
            place += shape.nbytes
            array = np.frombuffer(text, dtype, int(shape.prod()), place).reshape(shape)
            found[port["name"]] = array
            place += array.nbytes
        for item in self._data["states"]:
            shape = item["dims"]
            count, at = int(np.prod(shape, dtype=np.int64)), place + item["offset"]
            array = np.frombuffer(text, _dtype(item), count, at).reshape(shape)
            found[f"state {item['name']}"] = array
        return found

    def _run(self, command: Sequence[str]) -> None:
        subprocess.run(command, cwd=self._folder, check=True, capture_output=True)


def _dtype(port: Mapping[str, Any]) -> np.dtype[Any]:
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    return bfloat16 if port["dtype"] == "bfloat16" else np.dtype(port["dtype"])


def _program(data: Mapping[str, Any]) -> str:
    """
    A program that takes inputs, the weights and what was remembered from files, and writes status,
    outputs and what is remembered.
    """
    name = data["name"]
    lines = [f'#include "{name}.h"']
    lines += ['#include "lowerdeck_pool.h"'] * data["is_parallel"]
    lines += [_PRELUDE, "int main(void) {", f"  static {name}_args args;"]
    lines.append('  FILE *const in = fopen("inputs.bin", "rb");')
    lines.append("  args.allocator = &allocator;")
    for port in data["inputs"]:
        field, rank, size = f"args.{port['field']}", len(port["dims"]), _dtype(port).itemsize
        lines.append(f"  take(in, {field}.dims, {rank} * sizeof(int64_t));")
        lines.append(f"  {field}.data = taken(in, {_count(field, rank)} * {size});")
    for port in data["outputs"]:
        field = f"args.{port['field']}"
        lines.append(f"  {field}.data = malloc((size_t){_CAPACITY} * {_dtype(port).itemsize});")
        lines.append(f"  {field}.capacity = {_CAPACITY};")
    if data["states"]:
        lines += [
            f"  static {name}_state state;",
            "  args.state = &state;",
            '  FILE *const before = fopen("state.bin", "rb");',
            f"  if (before == NULL) {name}_reset(&state);",
            "  else take(before, &state, sizeof state);",
        ]
    lines += [
        f"  args.weights_size = {data['weights_size']};",
        "  if (args.weights_size != 0)",
        f'    args.weights = taken(fopen("{name}.weights", "rb"), args.weights_size);',
        *(["  args.pool = lowerdeck_pool_create(2);"] * data["is_parallel"]),
        f"  const int64_t size = {name}_workspace_size(&args);",
        "  args.workspace_size = size < 0 ? 0 : (size_t)size;",
        "  args.workspace = malloc(args.workspace_size + 1);",
        f"  const int64_t status = {name}_run(&args);",
        '  FILE *const out = fopen("outputs.bin", "wb");',
        "  fwrite(&status, sizeof status, 1, out);",
        "  if (status != 0) return fclose(out);",
    ]
    for port in data["outputs"]:
        field, rank = f"args.{port['field']}", len(port["dims"])
        lines.append(f"  fwrite({field}.dims, sizeof(int64_t), {rank}, out);")
        count = _count(field, rank)
        lines.append(f"  fwrite({field}.data, {_dtype(port).itemsize}, {count}, out);")
    if data["states"]:
        lines += [
            "  fwrite(&state, sizeof state, 1, out);",
            '  FILE *const after = fopen("state.bin", "wb");',
            "  fwrite(&state, sizeof state, 1, after);",
            "  fclose(after);",
        ]
    return "\n".join([*lines, "  return fclose(out);", "}", ""])


def _count(field: str, rank: int) -> str:
    return " * ".join(["(size_t)1", *(f"(size_t){field}.dims[{k}]" for k in range(rank))])
