"""Quantization: ranges of both signs, ranges of nothing, halves."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

RANGES = {"both": (-1.3, 2.1), "above": (0.0, 6.0), "below": (-3.0, 0.0), "shifted": (0.7, 2.0)}


def build(record: Recorder) -> None:
    x = record.input(np.linspace(-4, 7, 34, dtype=np.float32).reshape(2, 17))
    for name, (low, high) in RANGES.items():
        low_, high_ = tf.constant(low), tf.constant(high)
        for bits, narrow in ((8, False), (4, True)):
            own = {"num_bits": bits, "narrow_range": narrow}
            suffix = f"{name}_{bits}"
            value = raw.FakeQuantWithMinMaxArgs(inputs=x, min=low, max=high, **own)
            record.case(f"FakeQuantWithMinMaxArgs_{suffix}", value)
            value = raw.FakeQuantWithMinMaxVars(inputs=x, min=low_, max=high_, **own)
            record.case(f"FakeQuantWithMinMaxVars_{suffix}", value)
            bounds = {"input_min": low_, "input_max": high_}
            for signed, mode, given in itertools.product(
                (False, True), ("HALF_TO_EVEN", "HALF_UP"), (False, True)
            ):
                given_ = {"signed_input": signed, "range_given": given, "round_mode": mode}
                value = raw.QuantizeAndDequantizeV2(input=x, **own, **bounds, **given_)
                name_ = f"QuantizeAndDequantizeV2_{suffix}_{signed:d}{given:d}_{mode[5]}"
                record.case(name_, value)
        value = raw.QuantizeAndDequantizeV3(input=x, num_bits=5, **bounds)
        record.case(f"QuantizeAndDequantizeV3_{name}", value)
    value = raw.FakeQuantWithMinMaxVars(inputs=x, min=0.0, max=0.0)
    record.case("FakeQuantWithMinMaxVars_nothing", value)
    low_, high_ = (np.array(v, np.float32) for v in ([-1, 0, 0], [1, 6, 0]))
    value = raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x[:, :3], min=low_, max=high_)
    record.case("FakeQuantWithMinMaxVarsPerChannel", value)
    for dtype in ("quint8", "qint8"):
        for mode in ("MIN_COMBINED", "SCALED"):
            found = raw.QuantizeV2(input=x, min_range=-1.3, max_range=2.1, T=dtype, mode=mode)
            name = f"QuantizeV2_{dtype}_{mode}"
            record.case(name, tf.bitcast(found.output, dtype[1:]))
            record.case(f"{name}_low", found.output_min)
            record.case(f"{name}_high", found.output_max)
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            value = raw.Dequantize(input=found.output, min_range=-1.3, max_range=2.1, mode=mode)
            record.case(f"Dequantize_{dtype}_{mode}", value)
