"""Multiply-adds of models of which they are known."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from bench.workload import Work, count_work
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.passes.machinery.context import LowerdeckContext

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"

TRANSPOSED = """
func.func @main(%x : tensor<1x4x5xf32>, %w : tensor<4x3x2xf32>) -> tensor<1x6x10xf32> {
  %y = core.conv_transpose %x, %w strides [2] dilations [1] pads [0] [0] output_padding [0] groups 2
      : (tensor<1x4x5xf32>, tensor<4x3x2xf32>) -> tensor<1x6x10xf32>
  func.return %y : tensor<1x6x10xf32>
}
"""

LOOP = """
func.func @main(%x : tensor<?x3x3xf32, #core.tensor<dims = [n, 3, 3]>>, %m : tensor<i64>)
    -> (tensor<3x3xf32>) {
  %a = core.constant dense<[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
  %n = core.from_dims [n * 2] shape [] : tensor<i64>
  %r = core.loop trip TRIPS : tensor<i64> carry %a : tensor<3x3xf32> -> tensor<3x3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3x3xf32>):
    %p = core.matmul %v, %v : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    core.yield %p : tensor<3x3xf32>
  }
  func.return %r : tensor<3x3xf32>
}
"""


def parse(text: str) -> ModuleOp:
    context = LowerdeckContext()
    register_dialects(context)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def test_convolutions_and_products_of_a_network() -> None:
    module, _ = import_and_lower(str(DIGITS), "legal", CompileOptions())
    convolutions = 64 * 16 * (1 * 9) + 64 * 32 * (16 * 9) + 16 * 48 * (32 * 9)
    products = 48 * 32 + 32 * 10
    assert count_work(module, {"image": (5, 1, 8, 8)}) == Work(5 * (convolutions + products), True)


def test_transposed_convolution_with_groups() -> None:
    # Each input element meets the 3 filters of its group, 2 taps each.
    shapes = {"0": (1, 4, 5), "1": (4, 3, 2)}
    assert count_work(parse(TRANSPOSED), shapes) == Work(4 * 5 * 3 * 2, True)


def test_loop_over_a_dimension() -> None:
    module = parse(LOOP.replace("TRIPS", "%n"))
    assert count_work(module, {"0": (7, 3, 3), "1": ()}) == Work(2 * 7 * 27, True)


def test_loop_whose_length_depends_on_data_counts_once() -> None:
    module = parse(LOOP.replace("TRIPS", "%m"))
    assert count_work(module, {"0": (7, 3, 3), "1": ()}) == Work(27, False)
