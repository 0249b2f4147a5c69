"""Complex numbers: transforms of all ranks, parts, arithmetic, movement."""

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
        _transforms(record, dtype)
        _parts(record, dtype)
    _moves(record)


def _both(record: Recorder, name: str, value: Any, offset: int = 0) -> None:
    """Both parts; an offset makes the errors of sums that nearly cancel small."""
    part = tf.float32 if value.dtype == tf.complex64 else tf.float64
    more = tf.constant(offset, part)
    record.case(f"{name}_real", raw.Real(input=value, Tout=part) + more)
    record.case(f"{name}_imaginary", raw.Imag(input=value, Tout=part) + more)


def _complex(record: Recorder, dtype: Any, *shape: int) -> Any:
    random = np.random.default_rng(len(shape) + 50)
    parts = (random.integers(-8, 9, (2, *shape)) / 4).astype(dtype)
    real, imaginary = record.input(parts[0], shape), record.input(parts[1], shape)
    return raw.Complex(real=real, imag=imaginary, Tout=_name(dtype))


def _name(dtype: Any) -> str:
    return "complex64" if dtype == np.float32 else "complex128"


def _transforms(record: Recorder, dtype: Any) -> None:
    name = np.dtype(dtype).name
    random = np.random.default_rng(51)
    real, imaginary = (
        record.input(random.standard_normal((2, 3, 4, 5)).astype(dtype), (2, 3, 4, 5))
        for _ in range(2)
    )
    x = raw.Complex(real=real, imag=imaginary, Tout=_name(dtype))
    signal = random.standard_normal((2, 3, 4, 6)).astype(dtype) + dtype(3)
    signal = record.input(signal, (2, 3, 4, 6))
    for suffix, lengths in (("", [6]), ("2D", [4, 6]), ("3D", [3, 4, 6])):
        _both(record, f"FFT{suffix}_{name}", getattr(raw, f"FFT{suffix}")(input=x), 32)
        _both(record, f"IFFT{suffix}_{name}", getattr(raw, f"IFFT{suffix}")(input=x), 32)
        half = getattr(raw, f"RFFT{suffix}")
        value = half(input=signal, fft_length=lengths, Tcomplex=_name(dtype))
        _both(record, f"RFFT{suffix}_{name}", value, 32)
        back = getattr(raw, f"IRFFT{suffix}")
        found = back(input=value, fft_length=lengths, Treal=tf.as_dtype(dtype))
        record.case(f"IRFFT{suffix}_{name}", found)
    for length in (5, 4):
        value = raw.RFFT(input=signal, fft_length=[length], Tcomplex=_name(dtype))
        record.case(f"RFFT_{length}_{name}", raw.ComplexAbs(x=value, Tout=tf.as_dtype(dtype)))
        found = raw.IRFFT(input=x, fft_length=[length], Treal=tf.as_dtype(dtype))
        record.case(f"IRFFT_{length}_{name}", found)


def _parts(record: Recorder, dtype: Any) -> None:
    name = np.dtype(dtype).name
    own = {"Tout": tf.as_dtype(dtype)}
    values = [[3, 4], [-3, 0], [0, -0.0], [0, 2], [-1, -1], [np.inf, -2], [-np.inf, np.inf]]
    parts = np.array(values, dtype)
    real, imaginary = (record.input(parts[:, k]) for k in (0, 1))
    x = raw.Complex(real=real, imag=imaginary, Tout=_name(dtype))
    record.case(f"ComplexAbs_{name}", raw.ComplexAbs(x=x, **own))
    record.case(f"Angle_{name}", raw.Angle(input=x, **own))
    _both(record, f"Conj_{name}", raw.Conj(input=x))
    _both(record, f"Cast_{name}", raw.Cast(x=real, DstT=_name(dtype)))
    record.case(f"Cast_back_{name}", raw.Cast(x=x, DstT=tf.as_dtype(dtype)))
    y, z = _complex(record, dtype, 4, 3), tf.constant([1 + 2j, -0.5j, 3], _name(dtype))
    for op in ("Mul", "AddV2", "Sub", "RealDiv", "Div"):
        _both(record, f"{op}_{name}", getattr(raw, op)(x=y, y=z))
    for op in ("Neg", "Square", "Exp"):
        _both(record, f"{op}_{name}", getattr(raw, op)(x=y))
    _both(record, f"Reciprocal_{name}", raw.Reciprocal(x=y + z))
    wide = _complex(record, dtype, 3, 4)
    _both(record, f"MatMul_{name}", raw.MatMul(a=y, b=wide))
    _both(record, f"MatMul_transposed_{name}", raw.MatMul(a=y, b=y, transpose_b=True))
    many = _complex(record, dtype, 2, 3, 4)
    _both(record, f"BatchMatMul_{name}", raw.BatchMatMulV2(x=many, y=wide, adj_x=True))


def _moves(record: Recorder) -> None:
    x = _complex(record, np.float32, 2, 3, 4)
    for name, value in {
        "Reshape": raw.Reshape(tensor=x, shape=[6, -1]),
        "Transpose": raw.Transpose(x=x, perm=[2, 0, 1]),
        "ExpandDims": raw.ExpandDims(input=x, axis=-1),
        "Squeeze": raw.Squeeze(input=raw.ExpandDims(input=x, axis=1)),
        "StridedSlice": x[..., ::2, 1],
        "ConcatV2": raw.ConcatV2(values=[x, x], axis=-1),
        "Pack": raw.Pack(values=[x, x], axis=1),
        "Unpack": raw.Unpack(value=x, num=3, axis=1)[2],
        "Split": raw.Split(axis=2, value=x, num_split=2)[1],
        "GatherV2": raw.GatherV2(params=x, indices=[2, 0], axis=1),
        "Pad": raw.Pad(input=x, paddings=[[0, 1], [1, 0], [2, 0]]),
        "Sum": raw.Sum(input=x, axis=[0, -1]),
        "ReverseV2": raw.ReverseV2(tensor=x, axis=[-1]),
        "Tile": raw.Tile(input=x, multiples=[1, 2, 1]),
        "Identity": raw.Identity(input=x),
        "AddN": raw.AddN(inputs=[x, x, x]),
        "Cumsum": raw.Cumsum(x=x, axis=1, reverse=True),
        "SelectV2": raw.SelectV2(condition=[[True], [False], [True]], t=x, e=x + x),
        "ZerosLike": raw.ZerosLike(x=x),
    }.items():
        _both(record, name, value)
    record.case("Shape", raw.Shape(input=x))
    record.case("Size", raw.Size(input=x))
