"""Complex numbers between RFFT2D and what makes them real: movement, casts, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.machinery.options import CompileOptions

SPECTRUM = """
func.func @main(%x : tensor<2x1x8xf32>) -> {types} {{
  %lengths = core.constant dense<[1, 8]> : tensor<2xi32>
  %z = "tflite.RFFT2D"(%x, %lengths) : (tensor<2x1x8xf32>, tensor<2xi32>)
    -> tensor<2x1x5xcomplex<f32>>
  %flat = "tflite.SQUEEZE"(%z) <{{squeeze_dims = array<i64: -2>}}> : (tensor<2x1x5xcomplex<f32>>)
    -> tensor<2x5xcomplex<f32>>
  %order = core.constant dense<[1, 0]> : tensor<2xi32>
  %turned = "tflite.TRANSPOSE"(%flat, %order) : (tensor<2x5xcomplex<f32>>, tensor<2xi32>)
    -> tensor<5x2xcomplex<f32>>
  %shape = core.constant dense<[-1]> : tensor<1xi32>
  %line = "tflite.RESHAPE"(%turned, %shape) : (tensor<5x2xcomplex<f32>>, tensor<1xi32>)
    -> tensor<10xcomplex<f32>>
  {rest}
}}
"""
PARTS = SPECTRUM.format(
    types="(tensor<10xf32>, tensor<10xf32>, tensor<10xf32>)",
    rest="""
  %real = "tflite.CAST"(%line) : (tensor<10xcomplex<f32>>) -> tensor<10xf32>
  %imaginary = "tflite.IMAG"(%line) : (tensor<10xcomplex<f32>>) -> tensor<10xf32>
  %size = "tflite.COMPLEX_ABS"(%line) : (tensor<10xcomplex<f32>>) -> tensor<10xf32>
  func.return %real, %imaginary, %size : tensor<10xf32>, tensor<10xf32>, tensor<10xf32>""",
)
SUM = SPECTRUM.format(
    types="tensor<10xcomplex<f32>>",
    rest="""
  %sum = "tflite.ADD"(%line, %line) : (tensor<10xcomplex<f32>>, tensor<10xcomplex<f32>>)
    -> tensor<10xcomplex<f32>>
  func.return %sum : tensor<10xcomplex<f32>>""",
)


@pytest.mark.parametrize("phase", ["imported", "legal"])
def test_parts_move_alike(tmp_path: Path, phase: str) -> None:
    path = tmp_path / "spectrum.mlir"
    path.write_text(PARTS)
    module, _ = import_and_lower(str(path), phase, CompileOptions(target="c99"))
    x = np.random.default_rng(3).standard_normal((2, 1, 8)).astype(np.float32)
    found = [np.asarray(value) for value in run_module(module, {"0": x}).values()]
    z = np.fft.rfft(x[:, 0]).T.ravel()
    for value, expected in zip(found, (z.real, z.imag, abs(z)), strict=True):
        np.testing.assert_allclose(value, np.asarray(expected), rtol=1e-5, atol=1e-5)


def test_arithmetic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sum.mlir"
    path.write_text(SUM)
    with pytest.raises(LowerdeckError, match="found complex numbers, expected real ones"):
        import_and_lower(str(path), "legal", CompileOptions(target="c99"))
