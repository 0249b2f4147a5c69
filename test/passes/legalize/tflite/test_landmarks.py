"""MediaPipe's operators for landmarks give what their definitions say, as products of matrices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.legalize.walk import LegalizationError

Array = NDArray[Any]


def run(path: Path, op: str, options: str, **inputs: Array) -> Array:
    """The result of a custom operator."""
    types = {name: f"tensor<{'x'.join(map(str, x.shape))}xf32>" for name, x in inputs.items()}
    arguments = ", ".join(f'%{name} : {t} {{core.name = "{name}"}}' for name, t in types.items())
    path.write_text(f"""
func.func @main({arguments}) -> tensor<*xf32> {{
  %result = "tflite.CUSTOM"({", ".join(f"%{name}" for name in types)}) <{{
    custom_code = "{op}"{options}}}> : ({", ".join(types.values())}) -> tensor<*xf32>
  func.return %result : tensor<*xf32>
}}""")
    module, _ = import_and_lower(str(path), "legal", CompileOptions())
    (found,) = run_module(module, {k: x.astype(np.float32) for k, x in inputs.items()}).values()
    return np.asarray(found)


POINTS = np.array([[[3, 4, 1], [10, 6, 2], [2, 9, 0], [7, 1, 5]]])
TARGET, SIZE, SCALE = 0.25, (4, 2), (1.5, 2.0)


def options(subset: str = ": 0, 1, 2, 3, 2", left: int = 0) -> str:
    return f""", left_rotation_idx = {left} : i64, right_rotation_idx = 1 : i64,
    subset_idxs = array<i64{subset}>, target_rotation_radians = {TARGET} : f64,
    output_width = {SIZE[0]} : i64, output_height = {SIZE[1]} : i64,
    scale_x = {SCALE[0]} : f64, scale_y = {SCALE[1]} : f64"""


def turned(angle: float) -> Array:
    matrix = np.eye(4)
    matrix[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    return matrix


def shifted(x: float, y: float) -> Array:
    matrix = np.eye(4)
    matrix[:2, 3] = x, y
    return matrix


def test_matrix(tmp_path: Path) -> None:
    left, right = POINTS[0, 0], POINTS[0, 1]
    angle = TARGET - math.atan2(right[1] - left[1], right[0] - left[0])
    corners = turned(angle)[:2, :2] @ POINTS[0, :, :2].T
    last, first = corners.max(1), corners.min(1)
    sides = (last - first) * SCALE / SIZE
    x, y = turned(-angle)[:2, :2] @ ((last + first) / 2)
    scaled = np.diag([*sides, 1, 1])
    expected = shifted(x, y) @ turned(-angle) @ scaled @ shifted(-SIZE[0] / 2, -SIZE[1] / 2)
    found = run(tmp_path / "m.mlir", "Landmarks2TransformMatrix", options(), x=POINTS)
    np.testing.assert_allclose(found, expected[None], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("given", [options(": 0, 4"), options(left=-1), options("")])
def test_landmarks_that_are_not_there(tmp_path: Path, given: str) -> None:
    with pytest.raises(LegalizationError, match="some of the landmarks"):
        run(tmp_path / "m.mlir", "Landmarks2TransformMatrix", given, x=POINTS)


MATRIX = np.array([[[0.5, -0.25, 0, 1], [0.25, 1, 0, -0.5], [0, 0, 1, 0], [0, 0, 0, 1]]])


@pytest.mark.parametrize("numbers", [2, 3])
def test_moved_landmarks(tmp_path: Path, numbers: int) -> None:
    x = POINTS[:, :, :numbers]
    moved = np.array([MATRIX[0] @ [*point[:2], 0, 1] for point in x[0]])
    expected = np.concatenate([moved[:, :2], x[0, :, 2:]], 1)
    found = run(tmp_path / "m.mlir", "TransformLandmarks", "", x=x, m=MATRIX)
    np.testing.assert_allclose(found, expected[None], rtol=1e-6)


def test_pixels_between(tmp_path: Path) -> None:
    """Also where the place is beyond the image, on its last row, or no number."""
    image = np.arange(24.0).reshape(1, 3, 4, 2) ** 1.5
    size = ", output_height = 3 : i64, output_width = 3 : i64"
    for matrix in (MATRIX, np.eye(4)[None], MATRIX * np.nan):
        expected = np.zeros((1, 3, 3, 2))
        for row, column in np.ndindex(3, 3):
            x, y = (matrix[0] @ [column + 0.5, row + 0.5, 0, 1])[:2] - 0.5
            if 0 <= x <= 3 and 0 <= y <= 2:
                weights = [
                    np.maximum(0, 1 - abs(place - np.arange(count)))
                    for place, count in ((y, 3), (x, 4))
                ]
                expected[0, row, column] = np.einsum("y,x,yxc->c", *weights, image[0])
        inputs = {"x": image, "m": matrix}
        found = run(tmp_path / "m.mlir", "TransformTensorBilinear", size, **inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
