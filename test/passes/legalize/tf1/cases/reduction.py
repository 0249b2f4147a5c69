"""Reductions: axes from both ends, integer means, ties, running sums."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

REDUCTIONS = "Sum Mean Max Min Prod"
AXES = {"all": [0, 1, 2], "last": -1, "outer": [2, 0], "none": [], "middle": [1]}


def build(record: Recorder) -> None:
    _axes(record)
    _types(record)
    _places(record)
    _without_numbers(record)
    _running(record)
    _ranks(record)


def _axes(record: Recorder) -> None:
    random = np.random.default_rng(1)
    x = record.input(random.standard_normal((2, 3, 5)).astype(np.float32))
    flags = record.input(random.standard_normal((2, 3, 5)) > 0.3)
    for name, axis in AXES.items():
        for op in f"{REDUCTIONS} EuclideanNorm".split():
            keep = name in ("last", "outer")
            value = getattr(raw, op)(input=x, axis=tf.constant(axis, tf.int32), keep_dims=keep)
            record.case(f"{op}_{name}", value)
        for op in ("All", "Any"):
            record.case(
                f"{op}_{name}", getattr(raw, op)(input=flags, axis=tf.constant(axis, tf.int32))
            )
    # Axes that only data tells.
    axes = record.input(np.array([-1, 0], np.int64))
    record.case("Sum_data_axes", raw.Sum(input=x, axis=tf.reshape(axes, [2]), keep_dims=True))
    record.case("Mean_data_axes", raw.Mean(input=x, axis=tf.reshape(axes, [2])))
    # All dimensions, by the rank.
    record.case("Sum_range", raw.Sum(input=x, axis=tf.range(tf.rank(x))))
    empty = record.input(np.zeros((0, 3), np.float32))
    for op in REDUCTIONS.split():
        record.case(f"{op}_of_nothing", getattr(raw, op)(input=empty, axis=[0]))
    record.case("L2Loss", raw.L2Loss(t=x))
    record.case("L2Loss_scalar", raw.L2Loss(t=x[0, 0, 0]))


def _types(record: Recorder) -> None:
    rows = {
        np.uint8: [[200, 200, 250], [1, 2, 2]],
        np.int8: [[-100, -100, -55], [1, -2, 100]],
        np.int32: [[2**31 - 1, 5, 2**30], [-7, 2, 1]],
        np.int64: [[2**62, 2**40, 5], [-8, 3, 1]],
        np.float64: [[1e300, 1.0, 0.1], [0.1, 0.2, 0.3]],
        np.float16: [[2000.0, 30000.0, 1.0], [0.1, 0.2, 0.3]],
    }
    for dtype, values in rows.items():
        x = record.input(np.array(values, dtype))
        for op in "Sum Mean Max Min".split():
            name = f"{op}_{np.dtype(dtype).name}"
            record.case(name, getattr(raw, op)(input=x, axis=[1]))
    record.case(
        "Prod_int32", raw.Prod(input=record.input(np.array([70000, 70000, 3], np.int32)), axis=0)
    )


def _places(record: Recorder) -> None:
    x = record.input(np.array([[3, 1, 3, 0], [0, 0, -1, -1]], np.float32))
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            value = getattr(raw, op)(input=x, dimension=axis)
            record.case(f"{op}_{axis}".replace("-", "m"), value)
        value = getattr(raw, op)(input=tf.cast(x, "int32"), dimension=1, output_type="int32")
        record.case(f"{op}_int32", value)
    record.case("ArgMax_uint16", raw.ArgMax(input=x, dimension=0, output_type="uint16"))


def _without_numbers(record: Recorder) -> None:
    rows = [[1, np.nan, 3, 2], [np.nan, 1, 0, 5], [np.nan, -np.inf, np.inf, 0], [np.nan] * 4]
    x = record.input(np.array(rows, np.float32))
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, -1):
            record.case(f"{op}_nan_{axis % 2}", getattr(raw, op)(input=x, dimension=axis))


def _running(record: Recorder) -> None:
    x = record.input(np.array([[1, 2, 3, 4], [0.5, -1, 2, -3]], np.float32))
    whole = record.input(np.array([[100, 100, 100], [1, 2, 3]], np.int8))
    for exclusive in (False, True):
        for reverse in (False, True):
            suffix = f"{exclusive:d}{reverse:d}"
            for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
                for axis in (0, -1):
                    value = getattr(raw, op)(x=x, axis=axis, exclusive=exclusive, reverse=reverse)
                    record.case(f"{op}_{suffix}_{abs(axis)}", value)
            value = raw.Cumsum(x=whole, axis=1, exclusive=exclusive, reverse=reverse)
            record.case(f"Cumsum_int8_{suffix}", value)
    far = record.input(np.array([-200, -100, 0, 100], np.float32))
    record.case("CumulativeLogsumexp_far", raw.CumulativeLogsumexp(x=far, axis=0))


def _ranks(record: Recorder) -> None:
    rows = [[0.1, 0.5, 0.5, 0.2], [0.9, 0.3, np.inf, 0.1], [3, 2, 1, 0], [1, 2, 3, 4]]
    x = record.input(np.array(rows, np.float32))
    targets = record.input(np.array([2, 0, 2, 7], np.int32))
    for k in (1, 2, 3):
        record.case(f"InTopK_{k}", raw.InTopK(predictions=x, targets=targets, k=k))
        record.case(f"InTopKV2_{k}", raw.InTopKV2(predictions=x, targets=targets, k=k))
