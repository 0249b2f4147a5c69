"""Systems and factors of matrices: exchanged rows, batches, transposes, both triangles."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    for dtype in (np.float32, np.float64):
        _systems(record, dtype)
        _triangles(record, dtype)
        _bands(record, dtype)


def _systems(record: Recorder, dtype: Any) -> None:
    random = np.random.default_rng(41)
    name = np.dtype(dtype).name
    # Sums of a diagonal and small numbers are far from singular; the rows are in disorder.
    single = (random.integers(-4, 5, (4, 4)) / 8 + 2 * np.eye(4))[[2, 0, 3, 1]]
    single[0, 0] = 0
    batch = (random.integers(-4, 5, (2, 3, 3, 3)) / 8 + 2 * np.eye(3))[:, :, [1, 2, 0]]
    for suffix, matrices in (("one", single), ("batch", batch)):
        x = record.input(matrices.astype(dtype))
        right = random.integers(-4, 5, (*matrices.shape[:-1], 2)) / 4
        y = record.input(right.astype(dtype))
        for adjoint in (False, True):
            own = f"{suffix}_{name}_{adjoint:d}"
            value = raw.MatrixSolve(matrix=x, rhs=y, adjoint=adjoint)
            record.case(f"MatrixSolve_{own}", value)
            record.case(f"MatrixInverse_{own}", raw.MatrixInverse(input=x, adjoint=adjoint))
        record.case(f"Determinant_{suffix}_{name}", raw.MatrixDeterminant(input=x))
        found = raw.LogMatrixDeterminant(input=x)
        record.case(f"LogDeterminant_{suffix}_{name}", found.log_abs_determinant)
        record.case(f"LogDeterminant_{suffix}_{name}_sign", found.sign)
    singular = record.input(np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], dtype))
    record.case(f"Determinant_singular_{name}", raw.MatrixDeterminant(input=singular))


def _triangles(record: Recorder, dtype: Any) -> None:
    random = np.random.default_rng(42)
    name = np.dtype(dtype).name
    for suffix, shape in (("one", (4, 4)), ("batch", (2, 3, 3))):
        factor = random.integers(-4, 5, shape) / 4 + 2 * np.eye(shape[-1])
        x = record.input((factor @ np.swapaxes(factor, -1, -2)).astype(dtype))
        record.case(f"Cholesky_{suffix}_{name}", raw.Cholesky(input=x))
        matrix = record.input(factor.astype(dtype))
        right = record.input((random.integers(-4, 5, (*shape[:-1], 2)) / 4).astype(dtype))
        for is_lower in (False, True):
            for adjoint in (False, True):
                own = {"lower": is_lower, "adjoint": adjoint}
                value = raw.MatrixTriangularSolve(matrix=matrix, rhs=right, **own)
                record.case(f"TriangularSolve_{suffix}_{name}_{is_lower:d}{adjoint:d}", value)
    shared = record.input((np.tri(3) + np.eye(3)).astype(dtype))
    right = record.input((random.integers(-4, 5, (2, 3, 2)) / 4).astype(dtype))
    value = raw.MatrixTriangularSolve(matrix=shared, rhs=right)
    record.case(f"TriangularSolve_shared_{name}", value)


def _bands(record: Recorder, dtype: Any) -> None:
    random = np.random.default_rng(43)

    def reals(*shape: int) -> Any:
        return record.input((random.integers(-4, 5, shape) / 4).astype(dtype))

    value = raw.TridiagonalMatMul(
        superdiag=reals(2, 1, 5),
        maindiag=reals(2, 1, 5),
        subdiag=reals(2, 1, 5),
        rhs=reals(2, 5, 3),
    )
    record.case(f"TridiagonalMatMul_{np.dtype(dtype).name}", value)
