"""Arithmetic on levels: both signs of types and ranges, zeros off the center, padding, axes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

RANGES = ((-1.3, 2.1), (0.0, 6.0), (-3.0, 0.25))


def build(record: Recorder) -> None:
    random = np.random.default_rng(31)

    def levels(*shape: int, dtype: Any = np.uint8) -> Any:
        low, high = (0, 256) if dtype == np.uint8 else (-128, 128)
        x = record.input(random.integers(low, high, shape).astype(dtype))
        return tf.bitcast(x, f"q{np.dtype(dtype).name}")

    for number, (low, high) in enumerate(RANGES):
        _products(record, levels, number, low, high)
        _sums(record, levels, number, low, high)
        _kept(record, levels, number, low, high)
    _ranges(record)
    _concat(record, levels)
    _axes(record, random)


def _record(record: Recorder, name: str, result: Any) -> None:
    level, low, high = result
    plain = {"quint8": "uint8", "qint8": "int8", "qint32": "int32"}[level.dtype.name]
    record.case(name, tf.bitcast(level, plain))
    record.case(f"{name}_low", low)
    record.case(f"{name}_high", high)


def _products(record: Recorder, levels: Any, number: int, low: float, high: float) -> None:
    a, b = levels(3, 4), levels(4, 5)
    ends = {"min_a": low, "max_a": high, "min_b": -0.7, "max_b": 0.9, "Toutput": "qint32"}
    _record(record, f"MatMul_{number}", raw.QuantizedMatMul(a=a, b=b, **ends))
    both = {"transpose_a": True, "transpose_b": True}
    value = raw.QuantizedMatMul(a=levels(4, 3), b=levels(5, 4), **ends, **both)
    _record(record, f"MatMul_turned_{number}", value)
    x, w = levels(2, 5, 6, 3), levels(3, 2, 3, 4)
    ends = {"min_input": low, "max_input": high, "min_filter": -0.5, "max_filter": 1.25}
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            own = {"strides": [1, stride, stride, 1], "padding": padding}
            value = raw.QuantizedConv2D(input=x, filter=w, **ends, **own)
            _record(record, f"Conv_{padding}_{stride}_{number}", value)
    x, y = levels(3, 4), levels(4)
    ends = {"min_x": low, "max_x": high, "min_y": -0.5, "max_y": 1.25, "Toutput": "qint32"}
    _record(record, f"Mul_{number}", raw.QuantizedMul(x=x, y=y, **ends))


def _sums(record: Recorder, levels: Any, number: int, low: float, high: float) -> None:
    x, bias = levels(2, 3, 5), levels(5)
    ends = {"min_input": low, "max_input": high, "min_bias": -0.4, "max_bias": 0.1}
    value = raw.QuantizedBiasAdd(input=x, bias=bias, **ends, out_type="qint32")
    _record(record, f"BiasAdd_{number}", value)


def _kept(record: Recorder, levels: Any, number: int, low: float, high: float) -> None:
    x = levels(2, 3, 5)
    ends = {"min_features": low, "max_features": high, "out_type": "quint8"}
    _record(record, f"Relu_{number}", raw.QuantizedRelu(features=x, **ends))
    _record(record, f"Relu6_{number}", raw.QuantizedRelu6(features=x, **ends))
    image = levels(2, 5, 6, 3)
    for padding in ("SAME", "VALID"):
        window = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": padding}
        given = {"input": image, "min_input": low, "max_input": high}
        value = raw.QuantizedMaxPool(**given, **window)
        _record(record, f"MaxPool_{padding}_{number}", value)
        value = raw.QuantizedAvgPool(**given, **window)
        _record(record, f"AvgPool_{padding}_{number}", value)
    value = raw.QuantizedReshape(tensor=x, shape=[-1, 6], input_min=low, input_max=high)
    _record(record, f"Reshape_{number}", value)


def _ranges(record: Recorder) -> None:
    random = np.random.default_rng(32)
    for number, spread in enumerate((1 << 30, 1 << 18, 5000)):
        sums = random.integers(-spread, spread, (3, 7)).astype(np.int32)
        x = tf.bitcast(record.input(sums), "qint32")
        for low, high in ((-40000.0, 40000.0), (-3.5e5, 3.5e5)):
            suffix = f"{number}_{high:.0f}"
            given = {"input": x, "input_min": low, "input_max": high}
            value = raw.QuantizeDownAndShrinkRange(**given, out_type="quint8")
            _record(record, f"Shrink_{suffix}", value)
            found = raw.RequantizationRange(**given)
            record.case(f"Range_{suffix}_low", found.output_min)
            record.case(f"Range_{suffix}_high", found.output_max)
            for least, most in ((-1.0, 7.5), (0.0, 3.0)):
                ends = {"requested_output_min": least, "requested_output_max": most}
                value = raw.Requantize(**given, **ends, out_type="quint8")
                _record(record, f"Requantize_{suffix}_{most:.0f}", value)


def _concat(record: Recorder, levels: Any) -> None:
    parts = [levels(2, 3), levels(2, 1), levels(2, 4)]
    for name, ends in {
        "same": ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
        "different": ((-1.0, 1.0), (0.5, 3.0), (-0.25, 0.5)),
    }.items():
        value = raw.QuantizedConcat(
            concat_dim=1,
            values=parts,
            input_mins=[low for low, _ in ends],
            input_maxes=[high for _, high in ends],
        )
        _record(record, f"Concat_{name}", value)


def _axes(record: Recorder, random: Any) -> None:
    """Ranges for the parts of an axis, and modes of plain quantization."""
    x = record.input(random.standard_normal((2, 3, 4)).astype(np.float32) * 2)
    low, high = (record.input(np.array(v, np.float32)) for v in ([-1, -0.5, -2], [0.5, 2, 2.5]))
    for signed in (False, True):
        for given in (False, True):
            for narrow in (False, True):
                own = {"signed_input": signed, "range_given": given, "narrow_range": narrow}
                suffix = f"{signed:d}{given:d}{narrow:d}"
                bounds = {"input_min": low, "input_max": high, "axis": 1}
                value = raw.QuantizeAndDequantizeV3(input=x, num_bits=6, **own, **bounds)
                record.case(f"QuantizeAndDequantizeV3_axis_{suffix}", value)
                if given:  # which the others take for one range only
                    continue
                value = raw.QuantizeAndDequantizeV2(input=x, num_bits=5, **own, **bounds)
                record.case(f"QuantizeAndDequantizeV2_axis_{suffix}", value)
                value = raw.QuantizeAndDequantizeV4(input=x, num_bits=4, **own, **bounds)
                record.case(f"QuantizeAndDequantizeV4_axis_{suffix}", value)
    for dtype in ("quint8", "qint8"):
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            own = {"min_range": low, "max_range": high, "mode": mode, "axis": 1}
            name = f"{dtype}_{mode}"
            found = raw.QuantizeV2(input=x, min_range=-1.3, max_range=2.1, T=dtype, mode=mode)
            _record(record, f"QuantizeV2_{name}", found)
            if mode == "MIN_FIRST":
                continue
            found = raw.QuantizeV2(input=x, T=dtype, **own)
            _record(record, f"QuantizeV2_axis_{name}", found)
            value = raw.Dequantize(input=found.output, **own)
            record.case(f"Dequantize_axis_{name}", value)
