"""Special functions where they are large, small, infinite, and next to their poles."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    reals = [0.25, 0.5, 1, 1.5, 2, 3.7, 10, 33.3, -0.3, -1.5, -7.2, np.inf, np.nan]
    parts = [0, -0.0, 0.1, -0.5, 0.9, -0.999, 1, -1, np.nan]
    for dtype in (np.float32, np.float64, np.float16):
        name = np.dtype(dtype).name
        x, y = record.input(np.array(reals, dtype)), record.input(np.array(parts, dtype))
        record.case(f"Lgamma_{name}", raw.Lgamma(x=x))
        record.case(f"Digamma_{name}", raw.Digamma(x=x))
        if dtype != np.float16:
            record.case(f"Erfinv_{name}", raw.Erfinv(x=y))
    x = record.input(np.array([0, 0.5, -1, 3.7, 3.8, -20, 80, np.nan], np.float32))
    record.case("BesselI0", raw.BesselI0(x=x))
    record.case("BesselI0e", raw.BesselI0e(x=x))
