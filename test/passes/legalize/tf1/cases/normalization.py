"""Normalizations: given and own statistics, layouts, half precision, neighbors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(6)

    def reals(*shape: int, dtype: Any = np.float32) -> Any:
        return record.input(random.standard_normal(shape).astype(dtype))

    x = reals(2, 3, 4, 5)
    scale, offset, mean = reals(5), reals(5), reals(5)
    variance = record.input(random.random(5).astype(np.float32))
    given = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        found = getattr(raw, op)(x=x, epsilon=0.01, is_training=False, **given)
        record.case(f"{op}_given", found.y)
        record.case(f"{op}_given_mean", found.batch_mean)
        found = getattr(raw, op)(x=x, epsilon=0.01, is_training=True, **given)
        record.case(f"{op}_own", found.y)
        record.case(f"{op}_own_mean", found.batch_mean)
        record.case(f"{op}_own_variance", found.batch_variance)
    running = raw.FusedBatchNormV3(
        x=x, epsilon=0.01, is_training=True, exponential_avg_factor=0.25, **given
    )
    record.case("Running_mean", running.batch_mean)
    record.case("Running_variance", running.batch_variance)
    half = raw.FusedBatchNormV3(x=reals(2, 2, 3, 5, dtype=np.float16), is_training=False, **given)
    record.case("Half", half.y)
    # A single image by rows, which is how layers are normalized.
    rows = reals(1, 5, 6, 1)
    found = raw.FusedBatchNormV3(
        x=rows, epsilon=0.001, is_training=True, data_format="NCHW", **given
    )
    record.case("Rows", found.y)
    found = raw.FusedBatchNormV3(
        x=reals(2, 5, 2, 3), epsilon=0.001, is_training=False, data_format="NCHW", **given
    )
    record.case("Channels_first", found.y)
    for radius, bias, alpha, beta in ((5, 1.0, 1.0, 0.5), (1, 2.0, 0.3, 0.75), (0, 1.0, 1.0, 1.0)):
        value = raw.LRN(input=x, depth_radius=radius, bias=bias, alpha=alpha, beta=beta)
        record.case(f"LRN_{radius}", value)
