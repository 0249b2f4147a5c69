"""Nets of bytes on microcontrollers: exact in an emulator, and no larger than they have to be."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
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
  %row = core.reshape %bytes [1, 12] : (tensor<1x12x1x1xi8>) -> tensor<1x12xi8>
  {_constant("f", "i8", 12, 12)}
  {_constant("d", "i32", 12, low=-3000, high=3000)}
  %products = core.matmul %row, %f, %minus, %zero in i32 : (tensor<1x12xi8>, tensor<12x12xi8>,
    tensor<i8>, tensor<i8>) -> tensor<1x12xi32>
  %fourth = core.add %products, %d : (tensor<1x12xi32>, tensor<12xi32>) -> tensor<1x12xi32>
  %factor = core.constant dense<0.0041152267716825> : tensor<f64>
  %y = core.requantize real %fourth, %factor zero -3 low -128 high 127 to i8
    : (tensor<1x12xi32>, tensor<f64>) -> tensor<1x12xi8>
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
    _require_emulator()
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
    printed = _run_on_board(target, tmp_path)
    module, _ = import_and_lower(str(source), "legal", options)
    expected = np.asarray(run_module(module, {"x": x})["y"]).ravel().tolist()
    assert len({*expected}) > 3
    assert printed == f"0: {' '.join(map(str, expected))}"
    assert not re.search(
        r"__aeabi_(?:[df]|\w+2[df])|floor|round", _called(target, tmp_path / "net.c")
    )


def _require_emulator() -> None:
    if not all(map(shutil.which, (COMPILER, EMULATOR))):
        pytest.skip(f"needs {COMPILER} and {EMULATOR}")


def _called(target: str, source: Path) -> str:
    """The functions that C compiled for size calls: those of the compiler for floats, too."""
    command = [COMPILER, f"-mcpu={target}", "-mthumb", "-std=c99", "-Os", "-c", source.name]
    subprocess.run(command, cwd=source.parent, check=True)
    names = ["arm-none-eabi-nm", "-u", source.with_suffix(".o").name]
    return subprocess.run(
        names, cwd=source.parent, capture_output=True, text=True, check=True
    ).stdout


def _run_on_board(target: str, folder: Path) -> str:
    """What a program of main.c and the C of a model prints."""
    (folder / "board.ld").write_text(BOARD)
    (folder / "vectors.c").write_text(VECTORS)
    command = [COMPILER, f"-mcpu={target}", "-mthumb", "--specs=rdimon.specs", "-Tboard.ld"]
    command += ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "program", "main.c"]
    command += ["net.c", "net_weights.c", "vectors.c"]
    subprocess.run(command, cwd=folder, check=True)
    board = [EMULATOR, "-M", BOARDS[target], "-nographic", "-semihosting-config"]
    done = subprocess.run(
        [*board, "enable=on,target=native", "-kernel", "program"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


# Forms of convolutions


@dataclass(frozen=True)
class Form:
    """A convolution of bytes, whose result is bytes, or sums if it is not `scaled`."""

    x: Sequence[int]
    w: Sequence[int]
    pads: tuple[Sequence[int], Sequence[int]]
    strides: Sequence[int] = (1, 1)
    dilations: Sequence[int] = (1, 1)
    groups: int = 1
    types: tuple[str, str] = ("i8", "i8")
    zeros: tuple[int, int] = (0, 0)
    bias: bool = True
    scaled: bool = True
    exponents: tuple[int, int] = (-9, -6)
    low: int = -127
    """Of the weights."""

    @property
    def result(self) -> list[int]:
        """The shape of the result."""
        space = [
            (size + begin + end - (taps - 1) * dilation - 1) // stride + 1
            for size, taps, begin, end, dilation, stride in zip(
                self.x[2:], self.w[2:], *self.pads, self.dilations, self.strides, strict=True
            )
        ]
        return [self.x[0], self.w[0], *space]


@dataclass(frozen=True)
class Product:
    """A matrix product of bytes, whose result is sums."""

    x: Sequence[int]
    w: Sequence[int]
    types: tuple[str, str] = ("i8", "i8")
    zeros: tuple[int, int] | None = (0, 0)
    scaled: bool = False

    @property
    def result(self) -> list[int]:
        """The shape of the result."""
        return [*self.x[:-1], self.w[-1]]


ZERO = ((0, 0), (0, 0))
SAME = ((1, 1), (1, 1))
FORMS: Mapping[str, Form | Product] = {
    "points": Form((1, 16, 3, 5), (6, 16, 1, 1), ZERO, zeros=(-128, 0)),
    "one_output": Form((1, 8, 3, 3), (1, 8, 1, 1), ZERO, zeros=(127, 0), scaled=False),
    "odd_channels": Form((2, 7, 4, 5), (5, 7, 3, 3), SAME, zeros=(-5, 0)),
    "strides": Form((1, 8, 9, 7), (4, 8, 3, 2), ((1, 0), (1, 1)), (2, 3), zeros=(3, 0)),
    "dilations": Form((1, 12, 9, 9), (8, 12, 3, 3), ((2, 2), (2, 2)), dilations=(2, 2)),
    "groups": Form((1, 12, 4, 4), (6, 4, 2, 2), ((0, 0), (1, 1)), groups=3, zeros=(-7, 0)),
    "multiplied": Form((1, 5, 5, 5), (10, 1, 3, 3), SAME, groups=5, zeros=(9, 0)),
    "depthwise": Form((1, 11, 6, 5), (11, 1, 3, 3), SAME, groups=11, zeros=(-128, 0)),
    "strided_depthwise": Form(
        (2, 8, 7, 6), (8, 1, 3, 3), ((0, 0), (1, 1)), (2, 2), groups=8, zeros=(5, 0)
    ),
    "unsigned": Form(
        (1, 8, 4, 4), (4, 8, 2, 2), SAME, types=("ui8", "ui8"), zeros=(255, 200), low=0
    ),
    "unsigned_depthwise": Form(
        (1, 4, 5, 5), (4, 1, 3, 3), SAME, groups=4, types=("ui8", "i8"), zeros=(128, 7)
    ),
    "image": Form((1, 1, 12, 6), (9, 1, 10, 4), ((4, 1), (5, 1)), (2, 2), zeros=(-128, 0)),
    "shifts_left": Form((1, 4, 3, 3), (4, 4, 1, 1), ZERO, bias=False, exponents=(-3, 2)),
    "sums": Form((1, 20, 2, 2), (7, 20, 1, 1), ZERO, zeros=(-128, -128), scaled=False),
    "signal": Form((1, 8, 10), (6, 8, 3), ((1,), (1,)), (1,), (1,), zeros=(4, 0)),
    "volume": Form(
        (1, 4, 3, 4, 3), (5, 4, 2, 2, 2), ((0, 1, 0), (1, 0, 0)), (1,) * 3, (1,) * 3, zeros=(1, 0)
    ),
    "row": Product((1, 64), (64, 12), zeros=(-128, 0)),
    "rows": Product((5, 16), (16, 3), zeros=None),
    "odd_terms": Product((3, 7), (7, 5), zeros=(-3, 9)),
    "few_terms": Product((2, 3), (3, 4)),
    "prime_columns": Product((2, 8), (8, 13), zeros=(127, -128)),
    "unsigned_row": Product((1, 12), (12, 4), ("ui8", "ui8"), (255, 131)),
    "mixed_rows": Product((3, 9), (9, 2), ("ui8", "i8"), (7, 0)),
    "batches": Product((2, 3, 10), (2, 10, 4), zeros=(5, 0)),
    "one_matrix": Product((2, 3, 8), (8, 6), zeros=(5, 0)),
}


def _dims(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _product(name: str, form: Product) -> str:
    """The ops of a product, as those of a convolution."""
    lines = [
        _constant(f"w_{name}", form.types[1], *form.w, low=0 if "u" in form.types[1] else -128)
    ]
    operands, types = [f"%x_{name}", f"%w_{name}"], list(form.types)
    shapes = [f"tensor<{_dims(form.x)}x{types[0]}>", f"tensor<{_dims(form.w)}x{types[1]}>"]
    for number, zero in enumerate(form.zeros or ()):
        lines.append(f"%z{number}_{name} = core.constant dense<{zero}> : tensor<{types[number]}>")
        operands.append(f"%z{number}_{name}")
        shapes.append(f"tensor<{types[number]}>")
    sums = f"tensor<{_dims(form.result)}xi32>"
    lines.append(
        f"%y_{name} = core.matmul {', '.join(operands)} in i32 : ({', '.join(shapes)}) -> {sums}"
    )
    return "\n".join(lines)


def _ops(name: str, form: Form | Product) -> str:
    return _product(name, form) if isinstance(form, Product) else _conv(name, form)


def _conv(name: str, form: Form) -> str:
    """The ops of a form, whose input is `%x_NAME` and whose result `%y_NAME`."""
    high = 255 if form.types[1] == "ui8" else 127
    sums = f"tensor<{_dims(form.result)}xi32>"
    operands, types = [f"%x_{name}", f"%w_{name}"], [form.types[0], form.types[1]]
    shapes = [f"tensor<{_dims(form.x)}x{types[0]}>", f"tensor<{_dims(form.w)}x{types[1]}>"]
    lines = [_constant(f"w_{name}", types[1], *form.w, low=form.low, high=high)]
    if form.bias:
        lines.append(_constant(f"b_{name}", "i32", form.w[0], low=-(1 << 31), high=(1 << 31) - 1))
        operands.append(f"%b_{name}")
        shapes.append(f"tensor<{form.w[0]}xi32>")
    for number, zero in enumerate(form.zeros):
        lines.append(f"%z{number}_{name} = core.constant dense<{zero}> : tensor<{types[number]}>")
        operands.append(f"%z{number}_{name}")
        shapes.append(f"tensor<{types[number]}>")
    begin, end = form.pads
    lines.append(
        f"%s_{name} = core.conv {', '.join(operands)} strides {list(form.strides)} dilations "
        f"{list(form.dilations)} pads {list(begin)} {list(end)} groups {form.groups} in i32 : "
        f"({', '.join(shapes)}) -> {sums}"
    )
    ones = (1,) * (len(form.x) - 2)
    each = f"tensor<{_dims((form.w[0], *ones))}xi32>"
    if form.scaled:
        least, most = form.exponents
        lines += [
            _constant(f"m_{name}", "i32", form.w[0], *ones, low=1 << 30, high=(1 << 31) - 1),
            _constant(f"e_{name}", "i32", form.w[0], *ones, low=least, high=most),
            f"%y_{name} = core.requantize double %s_{name}, %m_{name}, %e_{name} zero 3 low -128 "
            f"high 127 to i8 : ({sums}, {each}, {each}) -> {sums.replace('i32', 'i8')}",
        ]
    else:
        lines.append(f"%y_{name} = core.reshape %s_{name} {form.result} : ({sums}) -> {sums}")
    return "\n".join(lines)


def _module_of_forms() -> str:
    arguments = ", ".join(
        f'%x_{name}: tensor<{_dims(form.x)}x{form.types[0]}> {{core.name = "x_{name}"}}'
        for name, form in FORMS.items()
    )
    types = {
        name: f"tensor<{_dims(form.result)}x{'i8' if form.scaled else 'i32'}>"
        for name, form in FORMS.items()
    }
    results = ", ".join(f'{type_} {{core.name = "y_{name}"}}' for name, type_ in types.items())
    body = "\n".join(_ops(name, form) for name, form in FORMS.items())
    values = ", ".join(f"%y_{name}" for name in FORMS)
    return (
        f"func.func @main({arguments}) -> ({results}) {{\n{body}\n"
        f"func.return {values} : {', '.join(types.values())}\n}}\n"
    )


def _main_of_forms(inputs: Mapping[str, np.ndarray]) -> str:
    """A program that prints a line for each form."""
    names = {"i8": "int8_t", "ui8": "uint8_t"}
    before, arguments, after = list[str](), list[str](), list[str]()
    for name, form in FORMS.items():
        size, c_type = prod(form.result), "int8_t" if form.scaled else "int32_t"
        values = ", ".join(map(str, inputs[f"x_{name}"].ravel().tolist()))
        before.append(f"static const {names[form.types[0]]} x_{name}[] = {{{values}}};")
        before.append(f"static {c_type} y_{name}[{size}];")
        shape = ", ".join(map(str, form.x))
        arguments.append(f".x_{name} = {{x_{name}, {{{shape}}}}}")
        arguments.append(f".y_{name} = {{.data = y_{name}, .capacity = {size}}}")
        after.append(f'printf("{name}:");')
        after.append(f'for (int k = 0; k < {size}; k++) printf(" %d", (int)y_{name}[k]);')
        after.append('printf("\\n");')
    return "\n".join(
        [
            "#include <stdio.h>",
            '#include "net.h"',
            *before,
            "int main(void) {",
            f"net_args args = {{{', '.join(arguments)}}};",
            "if (net_run(&args) != 0) return 1;",
            *after,
            "return 0;",
            "}",
            "",
        ]
    )


def test_sums_of_words_are_exact(tmp_path: Path) -> None:
    """By the instructions of the processor, and by plain C on this machine."""
    _require_emulator()
    source = tmp_path / "net.mlir"
    source.write_text(_module_of_forms())
    options = CompileOptions(target="cortex-m4", embed_weights=True, static_workspace=True)
    generate(str(source), str(tmp_path), options)
    text = (tmp_path / "net.c").read_text()
    assert text.count("= lowerdeck_load_word") > 2 * len(FORMS)
    random = np.random.default_rng(7)
    inputs = {
        f"x_{name}": random.integers(0, 256, form.x).astype(
            np.uint8 if form.types[0] == "ui8" else np.int8
        )
        for name, form in FORMS.items()
    }
    (tmp_path / "main.c").write_text(_main_of_forms(inputs))
    module, _ = import_and_lower(str(source), "legal", options)
    expected = "\n".join(
        f"{name.removeprefix('y_')}: {' '.join(map(str, np.asarray(y).ravel().tolist()))}"
        for name, y in run_module(module, inputs).items()
    )
    assert _run_on_board("cortex-m4", tmp_path) == expected
    command = ["cc", "-std=c99", "-O0", "-fsanitize=undefined,address", "-Wall", "-Wextra"]
    command += ["-Werror", "-o", "here", "main.c", "net.c", "net_weights.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    here = subprocess.run([tmp_path / "here"], capture_output=True, text=True, check=True)
    assert here.stdout.strip() == expected
    assert not here.stderr


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
