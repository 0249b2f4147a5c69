"""Counts of operations, FLOPs, parameters and bytes, against counts by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.statistics import Statistics, statistics_of, symbol_sizes

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


def parse(text: str) -> ModuleOp:
    context = LowerdeckContext()
    register_dialects(context)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def counts_of(
    arguments: str, op: str, result: str, sizes: dict[str, int] | None = None
) -> Statistics:
    """The counts of a function of one op."""
    text = f"func.func @main({arguments}) -> ({result}) {{ %r = {op} -> {result}"
    return statistics_of(parse(f"{text} func.return %r : {result} }}"), sizes)


# One op each: its arguments, it, its result; FLOPs, bytes moved.
OPS = {
    "conv with bias: 2 * 64 outputs * 27 taps, and 64 sums": (
        "%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>",
        "core.conv %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1"
        " : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>)",
        "tensor<1x4x4x4xf32>",
        2 * 64 * 27 + 64,
        4 * (192 + 108 + 4 + 64),
    ),
    "depthwise conv: each output has the 9 taps of its channel": (
        "%x: tensor<1x4x8x8xf32>, %w: tensor<4x1x3x3xf32>",
        "core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 4"
        " : (tensor<1x4x8x8xf32>, tensor<4x1x3x3xf32>)",
        "tensor<1x4x8x8xf32>",
        2 * 256 * 9,
        4 * (256 + 36 + 256),
    ),
    "transposed conv: 20 inputs * 3 filters of their group * 2 taps": (
        "%x: tensor<1x4x5xf32>, %w: tensor<4x3x2xf32>",
        "core.conv_transpose %x, %w strides [2] dilations [1] pads [0] [0] output_padding [0]"
        " groups 2 : (tensor<1x4x5xf32>, tensor<4x3x2xf32>)",
        "tensor<1x6x10xf32>",
        2 * 20 * 3 * 2,
        4 * (20 + 24 + 60),
    ),
    "matmul that broadcasts, of half precision": (
        "%x: tensor<5x2x3xf16>, %y: tensor<3x4xf16>",
        "core.matmul %x, %y : (tensor<5x2x3xf16>, tensor<3x4xf16>)",
        "tensor<5x2x4xf16>",
        2 * 40 * 3,
        2 * (30 + 12 + 40),
    ),
    "attention: scores, scale, softmax, values": (
        "%q: tensor<1x8x2x64xf32>, %k: tensor<1x9x2x64xf32>, %v: tensor<1x9x2x32xf32>",
        "core.attention %q, %k, %v {scale = 0.125 : f64}"
        " : (tensor<1x8x2x64xf32>, tensor<1x9x2x64xf32>, tensor<1x9x2x32xf32>)",
        "tensor<1x8x2x32xf32>",
        2 * 144 * 64 + 2 * 512 * 9 + 144 * (1 + 5),
        4 * (1024 + 1152 + 576 + 512),
    ),
    "sum that broadcasts": (
        "%x: tensor<2x3xf32>, %y: tensor<3xf32>",
        "core.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>)",
        "tensor<2x3xf32>",
        6,
        4 * (6 + 3 + 6),
    ),
    "square: the operand is read once": (
        "%x: tensor<2x3xf32>",
        "core.mul %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>)",
        "tensor<2x3xf32>",
        6,
        4 * (6 + 6),
    ),
    "comparison: i1 is a byte": (
        "%x: tensor<6xf64>, %y: tensor<f64>",
        "core.compare lt %x, %y : (tensor<6xf64>, tensor<f64>)",
        "tensor<6xi1>",
        6,
        8 * (6 + 1) + 6,
    ),
    "cast": (
        "%x: tensor<6xf32>",
        "core.cast %x to i32 : (tensor<6xf32>)",
        "tensor<6xi32>",
        0,
        4 * (6 + 6),
    ),
    "transpose": (
        "%x: tensor<2x3xf32>",
        "core.transpose %x [1, 0] : (tensor<2x3xf32>)",
        "tensor<3x2xf32>",
        0,
        4 * (6 + 6),
    ),
    "reshape moves nothing": (
        "%x: tensor<2x3xf32>",
        "core.reshape %x [6] : (tensor<2x3xf32>)",
        "tensor<6xf32>",
        0,
        0,
    ),
    "reduction": (
        "%x: tensor<2x3x4xf32>",
        "core.reduce sum %x [0, 2] : (tensor<2x3x4xf32>)",
        "tensor<3xf32>",
        24,
        4 * (24 + 3),
    ),
    "average of windows: 9 sums and a quotient for each": (
        "%x: tensor<1x4x8x8xf32>",
        "core.pool average %x kernel [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1]"
        " overhang [0, 0] : (tensor<1x4x8x8xf32>)",
        "tensor<1x4x4x4xf32>",
        64 * (9 + 1),
        4 * (256 + 64),
    ),
    "softmax": (
        "%x: tensor<2x3xf32>",
        "core.softmax %x axis 1 : (tensor<2x3xf32>)",
        "tensor<2x3xf32>",
        5 * 6,
        4 * 12,
    ),
    "its logarithm: one for each of the 2 rows": (
        "%x: tensor<2x3xf32>",
        "core.softmax %x axis 1 {log = true} : (tensor<2x3xf32>)",
        "tensor<2x3xf32>",
        5 * 6 + 2,
        4 * 12,
    ),
    "batch normalization: 4 steps an element, 2 a channel": (
        "%x: tensor<2x3x4xf32>, %p: tensor<3xf32>",
        "core.batch_norm %x, %p, %p, %p, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3x4xf32>,"
        " tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)",
        "tensor<2x3x4xf32>",
        24 * 4 + 3 * 2,
        4 * (24 + 3 + 24),
    ),
    "layer normalization: 7 steps an element, 4 a row": (
        "%x: tensor<2x3xf32>, %p: tensor<3xf32>",
        "core.layer_norm %x, %p, %p axis 1 {epsilon = 1.0e-05 : f64}"
        " : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)",
        "tensor<2x3xf32>",
        6 * 7 + 2 * 4,
        4 * (6 + 3 + 6),
    ),
    "scatter that adds": (
        "%x: tensor<2x9xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>",
        "core.scatter_elements add %x, %i, %u axis 1"
        " : (tensor<2x9xf32>, tensor<2x3xi64>, tensor<2x3xf32>)",
        "tensor<2x9xf32>",
        6,
        4 * 18 + 8 * 6 + 4 * 6 + 4 * 18,
    ),
}


@pytest.mark.parametrize("name", OPS)
def test_one_op(name: str) -> None:
    arguments, op, result, flops, moved = OPS[name]
    found = counts_of(arguments, op, result)
    assert (found.operations, found.flops, found.bytes_moved) == (1, flops, moved)
    assert not found.inexact


SYMBOLIC = "tensor<?x3xf32, #core.tensor<dims = [n, 3]>>"


def test_sizes_of_inputs() -> None:
    found = counts_of(f"%x: {SYMBOLIC}", f"core.exp %x : ({SYMBOLIC})", SYMBOLIC, {"n": 7})
    assert (found.flops, found.bytes_moved, found.inexact) == (21, 2 * 84, frozenset())


def test_an_unknown_size_is_one() -> None:
    found = counts_of(f"%x: {SYMBOLIC}", f"core.exp %x : ({SYMBOLIC})", SYMBOLIC)
    assert (found.flops, found.bytes_moved) == (3, 2 * 12)
    assert found.inexact == {"flops", "bytes_moved"}


BRANCHES = """
func.func @main(%c : tensor<i1>, %x : tensor<4xf32>) -> tensor<4xf32> {
  %k = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %r = core.if %c : tensor<i1> -> tensor<4xf32> {
    %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %a : tensor<4xf32>
  } else {
    %b = core.add %x, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = core.mul %b, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    core.yield %d : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""


def test_of_branches_the_larger_counts() -> None:
    found = statistics_of(parse(BRANCHES))
    # The branch and the three ops in it; the constant is no operation.
    assert (found.operations, found.flops) == (4, 8)
    # Each of the two ops has three tensors of 16 bytes.
    assert found.bytes_moved == 2 * 3 * 16
    assert (found.parameters, found.parameter_bytes) == (4, 16)


LOOP = """
func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
  %n = core.constant dense<5> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4xf32>):
    %w = core.exp %v : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %w : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""


def test_a_loop_counts_as_often_as_it_runs() -> None:
    found = statistics_of(parse(LOOP))
    assert (found.flops, found.bytes_moved, found.inexact) == (5 * 4, 5 * 32, frozenset())


def test_a_loop_without_a_known_end_counts_once() -> None:
    text = LOOP.replace("%x : tensor<4xf32>)", "%x : tensor<4xf32>, %n : tensor<i64>)")
    found = statistics_of(parse(text.replace("  %n = core.constant dense<5> : tensor<i64>\n", "")))
    assert (found.flops, found.inexact) == (4, {"flops", "bytes_moved"})


KERNEL = """
func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
  %r = core.kernel @k (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a : tensor<4xf32>):
    %b = core.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %c = core.neg %b : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %c : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
"""


def test_inside_of_a_kernel_nothing_moves() -> None:
    found = statistics_of(parse(KERNEL))
    assert (found.operations, found.kernels) == (2, 1)
    assert (found.flops, found.bytes_moved) == (8, 2 * 16)


def test_a_network() -> None:
    module, _ = import_and_lower(str(DIGITS), "optimized", CompileOptions())
    found = statistics_of(module, symbol_sizes(module, {"image": (5, 1, 8, 8)}))
    convolutions = 64 * 16 * (1 * 9) + 64 * 32 * (16 * 9) + 16 * 48 * (32 * 9)
    products = 48 * 32 + 32 * 10
    assert found.multiply_adds == 5 * (convolutions + products)
    biases = 64 * 16 + 64 * 32 + 16 * 48 + 32 + 10
    activations = 64 * 16 + 64 * 32 + 16 * 48 + 32
    # The maxima of 2 x 2 windows, and the sums of the global average, the quotients of which are
    # in the weights of the next product.
    pools = 16 * 32 * 4 + 16 * 48
    others = biases + activations + pools
    assert found.flops == 5 * (2 * (convolutions + products) + others)
    assert not found.inexact


def test_parameters_are_those_of_the_file_before_passes() -> None:
    module, _ = import_and_lower(str(DIGITS), "imported", CompileOptions())
    found = statistics_of(module)
    weights = 16 * 9 + 32 * 16 * 9 + 48 * 32 * 9 + 32 * 48 + 10 * 32 + 32 + 10
    assert found.parameters == weights + 4 * (16 + 32 + 48)
    assert found.flops is None
