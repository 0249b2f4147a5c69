"""Counts of numbers, and losses: weights, rows, what is out of range, unlikely classes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    _bins(record)
    _histograms(record)
    _losses(record)


def _bins(record: Recorder) -> None:
    numbers = np.array([3, 0, 9, 3, 1, 5, 3], np.int32)
    given = record.input(numbers)
    size = record.input(np.array(6, np.int32))
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        name = np.dtype(dtype).name
        weights = record.input((np.arange(7) / 2 - 1).astype(dtype))
        nothing = np.zeros(0, dtype)
        record.case(f"Bincount_{name}", raw.Bincount(arr=given, size=size, weights=nothing))
        record.case(f"Bincount_{name}_weights", raw.Bincount(arr=given, size=6, weights=weights))
        for binary in (False, True):
            rows = {"binary_output": binary}
            for index in (np.int32, np.int64):
                own = f"{name}_{binary:d}_{np.dtype(index).name}"
                x = record.input(numbers.astype(index))
                bins = {"size": index(5), **rows}
                value = raw.DenseBincount(input=x, weights=nothing, **bins)
                record.case(f"Dense_{own}", value)
                value = raw.DenseBincount(input=x, weights=weights, **bins)
                record.case(f"Dense_{own}_weights", value)
                table = record.input(numbers[:6].reshape(2, 3).astype(index))
                value = raw.DenseBincount(input=table, weights=nothing, **bins)
                record.case(f"Dense_{own}_rows", value)
                own_weights = tf.reshape(weights[:6], [2, 3])
                value = raw.DenseBincount(input=table, weights=own_weights, **bins)
                record.case(f"Dense_{own}_rows_weights", value)
    nothing = record.input(np.zeros(0, np.int32))
    value = raw.Bincount(arr=nothing, size=3, weights=np.zeros(0, np.float32))
    record.case("Bincount_nothing", value)


def _histograms(record: Recorder) -> None:
    values = np.array([[-1.0, 0.0, 1.5, 2.0], [4.999, 5.0, 15.0, 2.5]])
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        x = record.input(values.astype(dtype))
        bounds = record.input(np.array([0, 5], dtype))
        for out in (np.int32, np.int64):
            value = raw.HistogramFixedWidth(values=x, value_range=bounds, nbins=5, dtype=out)
            record.case(f"Histogram_{np.dtype(dtype).name}_{np.dtype(out).name}", value)


def _losses(record: Recorder) -> None:
    random = np.random.default_rng(24)
    for dtype in (np.float32, np.float64, np.float16):
        name = np.dtype(dtype).name
        x = random.standard_normal((4, 5)).astype(dtype)
        x[1] *= 40
        labels = random.random((4, 5))
        labels[2] = [0, 0, 1, 0, 0]
        features = record.input(x)
        found = raw.SoftmaxCrossEntropyWithLogits(
            features=features, labels=record.input((labels / 2).astype(dtype))
        )
        record.case(f"Dense_loss_{name}", found.loss)
        if dtype != np.float16:
            # It is a difference, which TensorFlow rounds twice.
            record.case(f"Dense_gradient_{name}", found.backprop)
        for index in (np.int32, np.int64):
            numbers = record.input(np.array([4, 0, 2, 1], index))
            found = raw.SparseSoftmaxCrossEntropyWithLogits(features=features, labels=numbers)
            own = f"{name}_{np.dtype(index).name}"
            record.case(f"Sparse_loss_{own}", found.loss)
            record.case(f"Sparse_gradient_{own}", found.backprop)
    x = record.input(np.array([[0.0, -np.inf, 1.0]], np.float32))
    found = raw.SoftmaxCrossEntropyWithLogits(
        features=x, labels=record.input(np.array([[0.5, 0.0, 0.5]], np.float32))
    )
    record.case("Impossible_loss", found.loss)
    numbers = record.input(np.array([2], np.int64))
    found = raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=numbers)
    record.case("Impossible_sparse_loss", found.loss)
