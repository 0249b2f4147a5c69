"""Operators whose integers are easily wrong, with what LiteRT's reference kernels give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.machinery.options import CompileOptions


@dataclass(frozen=True)
class Answer:
    """A function of x, and what it gives."""

    name: str
    text: str
    x: NDArray[Any]
    y: NDArray[Any]


ANSWERS = [
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
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_answers_of_the_reference_kernels(answer: Answer, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(answer.text)
    module, _ = import_and_lower(str(path), "legal", CompileOptions())
    (found,) = run_module(module, {"x": answer.x}).values()
    assert np.asarray(found).dtype == answer.y.dtype
    assert np.asarray(found).tolist() == answer.y.tolist()
