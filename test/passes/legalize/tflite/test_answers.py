"""Operators whose integers are easily wrong, with what LiteRT's reference kernels give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuzz.tflite_graphs import Graph, Scale, Value
from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.passes.legalize.walk import LegalizationError
from lowerdeck.passes.machinery.options import CompileOptions


@dataclass(frozen=True)
class Answer:
    """A function of x, and what it gives."""

    name: str
    text: str
    x: NDArray[Any]
    y: NDArray[Any]


def _transposed(padding: int, strides: tuple[int, int], y: list[float]) -> Answer:
    return Answer(
        f"transposed_convolution_of_mediapipe_{padding}",
        f"""
func.func @main(%x : tensor<1x2x1x1xf32> {{core.name = "x"}}) -> tensor<*xf32> {{
  %w = core.constant dense<[[[[1.0]], [[10.0]], [[100.0]]]]> : tensor<1x3x1x1xf32>
  %b = core.constant dense<[1000.0]> : tensor<1xf32>
  %y = "tflite.CUSTOM"(%x, %w, %b) <{{custom_code = "Convolution2DTransposeBias",
    padding = {padding} : i64, stride_h = {strides[0]} : i64, stride_w = {strides[1]} : i64}}>
    : (tensor<1x2x1x1xf32>, tensor<1x3x1x1xf32>, tensor<1xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}}""",
        np.array([[[[1]], [[2]]]], np.float32),
        np.array(y, np.float32).reshape(1, len(y), -1, 1),
    )


ANSWERS = [
    _transposed(1, (2, 1), [1001, 1010, 1102, 1020]),
    _transposed(2, (2, 1), [1001, 1010, 1102, 1020, 1200]),
    Answer(
        "what_is_no_number_is_no_extremum",
        """
func.func @main(%x : tensor<3x2xf32> {core.name = "x"}) -> tensor<*xf32> {
  %a = core.constant dense<[1]> : tensor<1xi32>
  %y = "tflite.REDUCE_MIN"(%x, %a) <{keep_dims = false}>
    : (tensor<3x2xf32>, tensor<1xi32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}""",
        np.array([[np.nan, 2], [3, np.nan], [-1, 4]], np.float32),
        np.array([2, 3, -1], np.float32),
    ),
    *(
        Answer(
            f"what_is_reduced_whole_begins_with_its_first_element_{x[0]}",
            """
func.func @main(%x : tensor<3xf32> {core.name = "x"}) -> tensor<*xf32> {
  %a = core.constant dense<[0, -1]> : tensor<2xi32>
  %y = "tflite.REDUCE_MAX"(%x, %a) <{keep_dims = false}>
    : (tensor<3xf32>, tensor<2xi32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}""",
            np.array(x, np.float32),
            np.array(y, np.float32),
        )
        for x, y in (([np.nan, 2, 3], np.nan), ([2, np.nan, 3], 3))
    ),
    Answer(
        # Both parts have the second place: the later one in the order of the updates stays.
        "updates_of_one_place",
        """
func.func @main(%x : tensor<3xi64> {core.name = "x"}) -> tensor<*xi64> {
  %i = core.constant dense<[[0], [1]]> : tensor<2x1xi64>
  %u = core.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>
  %y = "tflite.STABLEHLO_SCATTER"(%x, %i, %u) <{update_window_dims = array<i64: 0>,
    inserted_window_dims = array<i64>, scatter_dims_to_operand_dims = array<i64: 0>,
    index_vector_dim = 1 : i64, body = ""}>
    : (tensor<3xi64>, tensor<2x1xi64>, tensor<2x2xi64>) -> tensor<*xi64>
  func.return %y : tensor<*xi64>
}""",
        np.array([9, 9, 9], np.int64),
        np.array([1, 3, 4], np.int64),
    ),
    Answer(
        # 52.49979, which two roundings would make 53.
        "fully_connected_of_unsigned_bytes",
        """
func.func @main(%x : tensor<1x1xui8> {core.name = "x"}) -> tensor<*xui8> {
  %w = core.constant dense<[[178]]> : tensor<1x1xui8>
  %b = core.constant dense<[7052]> : tensor<1xi32>
  %y = "tflite.FULLY_CONNECTED"(%x, %w, %b) <{quantization = [
    #tflite.q<0.17089961 : 0>, #tflite.q<0.036177304 : 178>, #tflite.q<0.0061826874 : 0>,
    #tflite.q<0.8304854 : 143>]}>
    : (tensor<1x1xui8>, tensor<1x1xui8>, tensor<1xi32>) -> tensor<*xui8>
  func.return %y : tensor<*xui8>
}""",
        np.array([[9]], np.uint8),
        np.array([[195]], np.uint8),
    ),
    Answer(
        "what_space_to_batch_adds_stands_for_zero",
        """
func.func @main(%x : tensor<1x3x1xi8> {core.name = "x"}) -> tensor<*xi8> {
  %block = core.constant dense<[2]> : tensor<1xi32>
  %pads = core.constant dense<[[1, 0]]> : tensor<1x2xi32>
  %y = "tflite.SPACE_TO_BATCH_ND"(%x, %block, %pads) <{quantization = [
    #tflite.q<0.5 : -7>, unit, unit, #tflite.q<0.5 : -7>]}>
    : (tensor<1x3x1xi8>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}""",
        np.array([[[1], [2], [3]]], np.int8),
        np.array([[[-7], [2]], [[1], [3]]], np.int8),
    ),
    Answer(
        # 1.3e11 in units of the result.
        "a_function_beyond_32_bits",
        """
func.func @main(%x : tensor<2xi8> {core.name = "x"}) -> tensor<*xi8> {
  %y = "tflite.EXP"(%x) <{quantization = [
    #tflite.q<0.114907324 : -97>, #tflite.q<0.11859882 : -127>]}> : (tensor<2xi8>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}""",
        np.array([106, -97], np.int8),
        np.array([127, -119], np.int8),
    ),
    *(
        Answer(
            f"casts_stay_in_the_range_of_{to}",
            f"""
func.func @main(%x : tensor<6xf32> {{core.name = "x"}}) -> tensor<*x{to}> {{
  %y = "tflite.CAST"(%x) : (tensor<6xf32>) -> tensor<*x{to}>
  func.return %y : tensor<*x{to}>
}}""",
            np.array([np.nan, np.inf, -1e30, -2.9, 300.7, -0.0], np.float32),
            np.array(y, dtype),
        )
        for to, dtype, y in (
            ("i8", np.int8, [127, 127, -128, -2, 127, 0]),
            ("ui16", np.uint16, [65535, 65535, 0, 0, 300, 0]),
            ("i64", np.int64, [2**63 - 1, 2**63 - 1, -(2**63), -2, 300, 0]),
            ("i1", np.bool_, [True, True, True, True, True, False]),
        )
    ),
    *(
        Answer(
            f"the_larger_of_what_is_no_number_{kind}",
            f"""
func.func @main(%x : tensor<4xf32> {{core.name = "x"}}) -> tensor<*xf32> {{
  %a = core.constant dense<[0]> : tensor<1xi32>
  %z = "tflite.REVERSE_V2"(%x, %a) : (tensor<4xf32>, tensor<1xi32>) -> tensor<*xf32>
  %y = "tflite.{kind}"(%x, %z) : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}}""",
            np.array([np.nan, 2, 7, 3], np.float32),
            np.array(y, np.float32),
        )
        for kind, y in (
            ("MAXIMUM", [3, 7, 7, np.nan]),
            ("MINIMUM", [3, 2, 2, np.nan]),
            ("STABLEHLO_MAXIMUM", [np.nan, 7, 7, 3]),
            ("STABLEHLO_MINIMUM", [np.nan, 2, 2, 3]),
        )
    ),
    Answer(
        # A table in f64 gives 19009 and -2498.
        "gelu_by_steps_of_f32",
        """
func.func @main(%x : tensor<2xi16> {core.name = "x"}) -> tensor<*xi16> {
  %y = "tflite.GELU"(%x) <{approximate = true, quantization = [
    #tflite.q<5.4588218e-05 : 0>, #tflite.q<5.947348e-05 : 0>]}> : (tensor<2xi16>) -> tensor<*xi16>
  func.return %y : tensor<*xi16>
}""",
        np.array([23108, -8437], np.int16),
        np.array([19008, -2497], np.int16),
    ),
    Answer(
        "what_is_no_number_is_the_least_integer",
        """
func.func @main(%x : tensor<4xf32> {core.name = "x"}) -> tensor<*xi8> {
  %y = "tflite.QUANTIZE"(%x) <{quantization = [unit, #tflite.q<0.5 : 56>]}>
    : (tensor<4xf32>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}""",
        np.array([np.nan, 1.25, -1e9, 1e4], np.float32),
        np.array([-128, 59, -128, 127], np.int8),
    ),
    Answer(
        "a_product_of_many_bytes",
        """
func.func @main(%x : tensor<2x300xi8> {core.name = "x"}) -> tensor<*xi8> {
  %a = core.constant dense<[1]> : tensor<1xi32>
  %y = "tflite.REDUCE_PROD"(%x, %a) <{keep_dims = false, quantization = [
    #tflite.q<1.0 : 1>, unit, #tflite.q<1.0 : -3>]}>
    : (tensor<2x300xi8>, tensor<1xi32>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}""",
        np.array([[3, *[2] * 298, 8], [-4, *[2, 0] * 149, 2]], np.int8),
        np.array([2 * 7 - 3, 5 - 3], np.int8),
    ),
    Answer(
        # The scales are divided in f32: f64 gives 5381 and 13483.
        "magnitudes_in_another_scale",
        """
func.func @main(%x : tensor<3xi16> {core.name = "x"}) -> tensor<*xi16> {
  %y = "tflite.ABS"(%x) <{quantization = [
    #tflite.q<0.00012212587 : 0>, #tflite.q<0.00011137843 : 0>]}> : (tensor<3xi16>) -> tensor<*xi16>
  func.return %y : tensor<*xi16>
}""",
        np.array([4907, -12296, 5], np.int16),
        np.array([5380, 13482, 5], np.int16),
    ),
    Answer(
        "quotients_of_signed_bytes",
        """
func.func @main(%x : tensor<3xi8> {core.name = "x"}) -> tensor<*xi8> {
  %d = core.constant dense<[3, -5, -128]> : tensor<3xi8>
  %y = "tflite.DIV"(%x, %d) <{quantization = [
    #tflite.q<0.5 : -28>, #tflite.q<0.25 : 2>, #tflite.q<1.0 : 1>]}>
    : (tensor<3xi8>, tensor<3xi8>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}""",
        np.array([-8, 127, 102], np.int8),
        np.array([41, -43, -1], np.int8),
    ),
    Answer(
        # The kernels look at no scales here: what is added is the zero point of the result.
        "bytes_that_move_keep_their_values",
        """
func.func @main(%x : tensor<2xi8> {core.name = "x"}) -> tensor<*xi8> {
  %axis = core.constant dense<[0]> : tensor<1xi32>
  %pads = core.constant dense<[[1, 0]]> : tensor<1x2xi32>
  %least = core.constant dense<[9]> : tensor<1xi8>
  %a = "tflite.REVERSE_V2"(%x, %axis) <{quantization = [
    #tflite.q<0.5 : -7>, unit, #tflite.q<0.25 : -7>]}>
    : (tensor<2xi8>, tensor<1xi32>) -> tensor<*xi8>
  %b = "tflite.PAD"(%a, %pads) <{quantization = [
    #tflite.q<0.25 : -7>, unit, #tflite.q<0.25 : 12>]}>
    : (tensor<*xi8>, tensor<1x2xi32>) -> tensor<*xi8>
  %c = "tflite.MAXIMUM"(%b, %least) <{quantization = [
    #tflite.q<0.25 : 12>, #tflite.q<2.0 : 0>, #tflite.q<0.5 : 3>]}>
    : (tensor<*xi8>, tensor<1xi8>) -> tensor<*xi8>
  func.return %c : tensor<*xi8>
}""",
        np.array([1, 20], np.int8),
        np.array([12, 20, 9], np.int8),
    ),
    *(
        Answer(
            # Channels of one scale are no channels with scales of their own: no byte for zero.
            name,
            f"""
func.func @main(%x : tensor<1x1x1x2xf32> {{core.name = "x"}}) -> tensor<*xf32> {{
  %w = core.constant dense<{weights}> : tensor<{len(y)}x1x1x2xi8>
  %b = core.constant dense<0.0> : tensor<{len(y)}xf32>
  %y = "tflite.CONV_2D"(%x, %w, %b) <{{stride_h = 1 : i64, stride_w = 1 : i64, quantization = [
    unit, {scales}, unit, unit]}}>
    : (tensor<1x1x1x2xf32>, tensor<{len(y)}x1x1x2xi8>, tensor<{len(y)}xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}}""",
            np.array([[[[1, 0.26]]]], np.float32),
            np.array(y, np.float32).reshape(1, len(y), 1, 1).transpose(0, 2, 3, 1),
        )
        for name, weights, scales, y in (
            (
                "hybrid_convolution_of_one_channel",
                [[[[100, 57]]]],
                "#tflite.q<0.01 : 0>",
                [(127 * 100 + 33 * 57) / 12700],
            ),
            (
                "hybrid_convolution_of_equal_channels",
                [[[[100, 57]]], [[[0, 100]]]],
                "#tflite.q<[0.01 : 0, 0.01 : 0] along 0>",
                [(127 * 100 + 33 * 57) / 12700, 33 / 127],
            ),
            (
                "hybrid_convolution_of_unequal_channels",
                [[[[100, 57]]], [[[0, 50]]]],
                "#tflite.q<[0.01 : 0, 0.02 : 0] along 0>",
                [(255 * 100 + 66 * 57) / 25500, 66 / 255],
            ),
        )
    ),
    Answer(
        # Ties of zero points and of bytes: the range is subtracted in f32, and the bytes are
        # rounded before the zero point is added.
        "rows_whose_bytes_lie_at_ties",
        """
func.func @main(%x : tensor<2x4xf32> {core.name = "x"}) -> tensor<*xf32> {
  %w = core.constant dense<[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]>
    : tensor<4x4xi8>
  %y = "tflite.FULLY_CONNECTED"(%x, %w) <{
    asymmetric_quantize_inputs = true, quantization = [unit, #tflite.q<1.0 : 0>, unit]}>
    : (tensor<2x4xf32>, tensor<4x4xi8>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}""",
        np.array([[-59, 43, 1, 7], [-59, -11, 1, 7]], np.float32) * np.float32(0.1),
        np.array([[-147, 107, 2, 17], [-228, -43, 4, 27]], np.float32)
        * np.array([[10.2 / 255], [6.6 / 255]], np.float32),
    ),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_answers_of_the_reference_kernels(answer: Answer, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(answer.text)
    module, _ = import_and_lower(str(path), "legal", CompileOptions())
    (found,) = run_module(module, {"x": answer.x}).values()
    assert np.asarray(found).dtype == answer.y.dtype
    if answer.y.dtype.kind == "f":
        np.testing.assert_allclose(np.asarray(found), answer.y, rtol=1e-6)
    else:
        assert np.asarray(found).tolist() == answer.y.tolist()


def test_a_hidden_state_whose_zero_point_has_no_negative(tmp_path: Path) -> None:
    """LSTM of bytes with a projection of hidden values that begin at -128."""
    g = Graph(Random(0), np.random.default_rng(0))

    def q(scale: float, zero: int = 0) -> Scale:
        return Scale((float(np.float32(scale)),), (zero,))

    def byte(value: int, scale: float = 0.005) -> Value:
        return g.constant(np.array([[value]], np.int8), "INT8", q(scale))

    x, out = g.input([1, 1, 1], "INT8", q(0.03, 3)), q(0.002, 5)
    given, recurrent = ([byte(v) for v in row] for row in ((90, -70, 50), (20, 30, -40)))
    biases = [g.integers([value]) for value in (100, -200, 3000)]
    states = [g.state([1, 1], "INT8", out), g.state([1, 1], "INT16", q(2.0**-11))]
    inner = [g.inner("INT16", q(2.0**-12)) for _ in range(4)]
    g.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [x, None, *given, None, *recurrent, *([None] * 4), *biases, byte(55, 0.01), None, *states],
        ([1, 1, 1], "INT8", out),
        intermediates=[*inner, g.inner("INT8", q(0.004, -128))],
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(g.program().data)
    module, _ = import_and_lower(str(path), "legal", CompileOptions())
    calls = Calls(module)
    found = [next(iter(calls({"t0": np.full((1, 1, 1), v, np.int8)}).values())) for v in (100, -60)]
    assert [np.asarray(value).item() for value in found] == [-29, 4]


def test_a_state_that_is_no_matrix(tmp_path: Path) -> None:
    g = Graph(Random(0), np.random.default_rng(0))
    q = Scale((0.25,), (0,))
    byte = g.constant(np.array([[1]], np.int8), "INT8", q)
    bias = g.integers([0])
    states = [g.state([1, 1], "INT8", q), g.state([1], "INT16", Scale((2.0**-11,), (0,)))]
    inner = [g.inner("INT16", Scale((2.0**-12,), (0,))) for _ in range(4)]
    empty: list[Value | None] = [None] * 3
    given = [g.input([1, 1, 1], "INT8", q), *([byte] * 8), *empty, *([bias] * 4), None, None]
    g.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [*given, *states],
        ([1, 1, 1], "INT8", q),
        intermediates=[*inner, g.inner("INT8", q)],
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(g.program().data)
    with pytest.raises(LegalizationError, match="'matrix' of type"):
        import_and_lower(str(path), "legal", CompileOptions())


def test_features_of_bytes_that_have_a_zero_point(tmp_path: Path) -> None:
    """SVDF of TensorFlow Lite Micro: the zero point wraps behind the clamp."""
    g = Graph(Random(0), np.random.default_rng(0))

    def q(scale: float, zero: int = 0) -> Scale:
        return Scale((scale,), (zero,))

    def byte(*values: list[int]) -> Value:
        return g.constant(np.array(values, np.int8), "INT8", q(2.0**-7))

    inner = q(2.0**-5, 100)
    x, state = g.input([1, 2], "INT8", q(2.0**-4, -9)), g.state([1, 4], "INT8", inner)
    bias = g.constant(np.array([300], np.int32), "INT32", q(2.0**-12))
    g.op(
        "SVDF",
        [x, byte([90, -20], [-60, 110]), byte([50, -70], [30, 90]), bias, state],
        ([1, 1], "INT8", q(2.0**-4, 7)),
        options=("SVDFOptions", {"rank": 2, "fused_activation_function": "RELU"}),
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(g.program().data)
    module, _ = import_and_lower(str(path), "legal", CompileOptions())
    calls = Calls(module)
    feeds = [np.array([pair], np.int8) for pair in ((20, 3), (120, -100), (5, 60))]
    found = [next(iter(calls({"t0": feed}).values())) for feed in feeds]
    assert [np.asarray(value).item() for value in found] == [66, -45, -85]
