"""Nets of bytes on microcontrollers: exact in an emulator, and no larger than they have to be."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from lowerdeck.compiler import generate, import_and_lower
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.machinery.options import CompileOptions

from .test_machines import BOARD, VECTORS  # noqa: TID251  (these are tests)

COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
BOARDS = {"cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500"}
RANDOM = np.random.default_rng(5)


def _constant(name: str, type_: str, *shape: int, low: int = -127, high: int = 127) -> str:
    values = RANDOM.integers(low, high, shape, endpoint=True).tolist()
    dims = "".join(f"{size}x" for size in shape)
    return f"%{name} = core.constant dense<{values}> : tensor<{dims}{type_}>"


def _scaled(result: str, sums: str, dims: str) -> str:
    """Sums made bytes, each channel by a factor of its own."""
    channels = int(dims.split("x")[1])
    factor = _constant(f"{result}_m", "i32", channels, 1, 1, low=1 << 30, high=(1 << 31) - 1)
    shift = _constant(f"{result}_s", "i32", channels, 1, 1, low=-9, high=-6)
    each = f"tensor<{channels}x1x1xi32>"
    return f"""{factor}
    {shift}
    %{result} = core.requantize double %{sums}, %{result}_m, %{result}_s zero -5 low -128 high 127
      to i8 : (tensor<{dims}xi32>, {each}, {each}) -> tensor<{dims}xi8>"""


NET = f"""
func.func @main(%x: tensor<1x3x9x7xi8> {{core.name = "x"}})
    -> (tensor<1x12xi8> {{core.name = "y"}}) {{
  %zero = core.constant dense<0> : tensor<i8>
  %minus = core.constant dense<-5> : tensor<i8>
  {_constant("w", "i8", 8, 3, 3, 3)}
  {_constant("b", "i32", 8, low=-3000, high=3000)}
  %first = core.conv %x, %w, %b, %minus, %zero strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1]
    groups 1 in i32 : (tensor<1x3x9x7xi8>, tensor<8x3x3x3xi8>, tensor<8xi32>, tensor<i8>,
    tensor<i8>) -> tensor<1x8x5x4xi32>
  {_scaled("one", "first", "1x8x5x4")}
  {_constant("dw", "i8", 8, 1, 3, 3)}
  %second = core.conv %one, %dw, %b, %minus, %zero strides [1, 1] dilations [1, 1] pads [1, 1]
    [1, 1] groups 8 in i32 : (tensor<1x8x5x4xi8>, tensor<8x1x3x3xi8>, tensor<8xi32>, tensor<i8>,
    tensor<i8>) -> tensor<1x8x5x4xi32>
  {_scaled("two", "second", "1x8x5x4")}
  {_constant("pw", "i8", 12, 8, 1, 1)}
  {_constant("c", "i32", 12, low=-3000, high=3000)}
  %third = core.conv %two, %pw, %c, %minus, %zero strides [1, 1] dilations [1, 1] pads [0, 0]
    [0, 0] groups 1 in i32 : (tensor<1x8x5x4xi8>, tensor<12x8x1x1xi8>, tensor<12xi32>, tensor<i8>,
    tensor<i8>) -> tensor<1x12x5x4xi32>
  {_scaled("three", "third", "1x12x5x4")}
  %wide = core.cast %three to i32 : (tensor<1x12x5x4xi8>) -> tensor<1x12x5x4xi32>
  %sums = core.pool sum %wide kernel [5, 4] strides [5, 4] dilations [1, 1] pads [0, 0] [0, 0]
    overhang [0, 0] : (tensor<1x12x5x4xi32>) -> tensor<1x12x1x1xi32>
  %twenty = core.constant dense<20> : tensor<i32>
  %mean = core.div %sums, %twenty : (tensor<1x12x1x1xi32>, tensor<i32>) -> tensor<1x12x1x1xi32>
  %bytes = core.cast %mean to i8 : (tensor<1x12x1x1xi32>) -> tensor<1x12x1x1xi8>
  %y = core.reshape %bytes [1, 12] : (tensor<1x12x1x1xi8>) -> tensor<1x12xi8>
  func.return %y : tensor<1x12xi8>
}}
"""

MAIN = """
#include <stdio.h>
#include "net.h"
static const int8_t x[] = {INPUT};
int main(void) {
  static int8_t y[12];
  net_args args = {.x = {x, {1, 3, 9, 7}}, .y = {.data = y, .capacity = 12}};
  const int status = net_run(&args);
  printf("%d:", status);
  for (int k = 0; k < 12; k++) printf(" %d", y[k]);
  return 0;
}
"""


@pytest.mark.parametrize("target", BOARDS)
def test_a_net_of_bytes(target: str, tmp_path: Path) -> None:
    if not all(map(shutil.which, (COMPILER, EMULATOR))):
        pytest.skip(f"needs {COMPILER} and {EMULATOR}")
    source = tmp_path / "net.mlir"
    source.write_text(NET)
    options = CompileOptions(target=target, embed_weights=True, static_workspace=True)
    generate(str(source), str(tmp_path), options)
    text = (tmp_path / "net.c").read_text()
    assert not re.search(r"int64_t i\b|double|float", text)
    # Two tensors of bytes at a time; no sums.
    size = re.search(r"WORKSPACE_SIZE (\d+)", (tmp_path / "net.h").read_text())
    assert size is not None
    assert int(size[1]) <= 64 * (3 + 4) + 64
    x = np.random.default_rng(6).integers(-128, 127, (1, 3, 9, 7), np.int8, endpoint=True)
    (tmp_path / "main.c").write_text(MAIN.replace("INPUT", ", ".join(map(str, x.ravel().tolist()))))
    (tmp_path / "board.ld").write_text(BOARD)
    (tmp_path / "vectors.c").write_text(VECTORS)
    command = [COMPILER, f"-mcpu={target}", "-mthumb", "--specs=rdimon.specs", "-Tboard.ld"]
    command += ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "program", "main.c"]
    command += ["net.c", "net_weights.c", "vectors.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    board = [EMULATOR, "-M", BOARDS[target], "-nographic", "-semihosting-config"]
    done = subprocess.run(
        [*board, "enable=on,target=native", "-kernel", "program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    module, _ = import_and_lower(str(source), "legal", options)
    expected = np.asarray(run_module(module, {"x": x})["y"]).ravel().tolist()
    assert len({*expected}) > 3
    assert done.stdout.strip() == f"0: {' '.join(map(str, expected))}"


def test_a_static_workspace_has_a_known_size(tmp_path: Path) -> None:
    source = tmp_path / "open.mlir"
    source.write_text(
        """
func.func @main(%x: tensor<?x4xf32, #core.tensor<dims = [n, 4]>>)
    -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>> {
  %y = core.softmax %x axis 0 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>)
    -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %z = core.softmax %y axis 1 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>)
    -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  func.return %z : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
}
"""
    )
    with pytest.raises(LowerdeckError, match="the size of a static workspace has to be known"):
        generate(str(source), str(tmp_path), CompileOptions(target="c99", static_workspace=True))
