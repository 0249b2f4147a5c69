"""
Cases of MXNet: forms of single operators by topic, and nets of Gluon's model zoo with random
weights, with the answers of MXNet itself.

    python models/mxnet_cases.py FOLDER [REGEX]

It runs in an environment with MXNet 1.9.1 and numpy below 1.24, and needs nothing else of this
project. Each case is a folder below FOLDER/mxnet, as `models.corpus` reads it.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

mx: Any = import_module("mxnet")
Array = Any
Arrays = dict[str, Array]
Form = Callable[[Any, Any], Any]
"""What is made of the functions of `mx.sym` and of variables by name."""

_RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> Array:
    return _RANDOM.normal(size=shape).astype(np.float32)


def _ints(low: int, high: int, *shape: int) -> Array:
    return _RANDOM.integers(low, high, shape).astype(np.float32)


def _save(folder: Path, symbol: Any, inputs: Arrays, expected: list[Array], atol: float) -> None:
    """A case of a symbol without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(symbol.tojson())
    (folder / "model-symbol.json").write_text(json.dumps(data, separators=(",", ":")))
    _save_answers(folder, symbol.list_outputs(), inputs, expected, atol)


def _save_answers(
    folder: Path, names: list[str], inputs: Arrays, expected: list[Array], atol: float
) -> None:
    answers: Any = dict(zip(names, expected))
    given: Any = inputs
    np.savez_compressed(folder / "inputs.npz", **given)
    np.savez_compressed(folder / "expected.npz", **answers)
    case = {
        "name": folder.name,
        "framework": "mxnet",
        "model": "model-symbol.json",
        "input_shapes": {name: list(array.shape) for name, array in inputs.items()},
        "outputs": [{"name": n, "dtype": str(array.dtype)} for n, array in answers.items()],
        "samples": [{"inputs": "inputs.npz", "expected": "expected.npz"}],
        "tolerance": {"rtol": 1e-4, "atol": atol},
        "expected_from": f"mxnet {mx.__version__} on the CPU",
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1))


def pack(folder: Path) -> None:
    """The case of a folder as one small file beside it, which the tests read."""
    case = json.loads((folder / "case.json").read_text())
    expected, inputs = (np.load(folder / f"{name}.npz") for name in ("expected", "inputs"))
    outputs = [(n, str(expected[n].dtype), list(expected[n].shape)) for n in expected.files]
    arrays: dict[str, Any] = {f"input {name}": inputs[name] for name in inputs.files}
    for dtype in sorted({dtype for _, dtype, _ in outputs}):
        flat = [expected[name].reshape(-1) for name, own, _ in outputs if own == dtype]
        arrays[f"answers {dtype}"] = np.concatenate(flat)
    facts = {"outputs": outputs, "tolerance": case["tolerance"]}
    texts = {"symbol": (folder / "model-symbol.json").read_text(), "facts": json.dumps(facts)}
    arrays.update({k: np.frombuffer(text.encode(), np.uint8) for k, text in texts.items()})
    np.savez_compressed(folder.with_suffix(".npz"), **arrays)


def _answers(symbol: Any, arrays: Arrays) -> list[Array]:
    """What MXNet computes."""
    make = mx.np.array if mx.util.is_np_array() else mx.nd.array
    values = {name: make(array, dtype=array.dtype) for name, array in arrays.items()}
    states = {name: values[name] for name in symbol.list_auxiliary_states()}
    given = {name: values[name] for name in symbol.list_arguments()}
    executor = symbol.bind(mx.cpu(), given, grad_req="null", aux_states=states)
    return [each.asnumpy() for each in executor.forward(is_train=False)]


class _Variables:
    """Symbols of variables by name."""

    def __init__(self, arrays: Arrays) -> None:
        self.used: dict[str, Any] = {}
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        if name not in self.used:
            array = self._arrays[name]
            symbol = mx.sym.var(name, shape=array.shape, dtype=array.dtype)
            self.used[name] = symbol.as_np_ndarray() if mx.util.is_np_array() else symbol
        return self.used[name]


def _parts(made: Any) -> list[Any]:
    """The results of a form, each a symbol."""
    if isinstance(made, (list, tuple)):
        return [part for each in cast("list[Any]", made) for part in _parts(each)]
    return list(made.as_nd_ndarray())


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0])[:160]


def make_forms(folder: Path, arrays: Arrays, forms: Mapping[str, Form], tolerance: float) -> None:
    """One case of all forms; those that MXNet refuses are told and left out."""
    kept: list[Any] = []
    expected: list[Array] = []
    variables = _Variables(arrays)
    for name, form in forms.items():
        own = _Variables(arrays)
        try:
            with mx.name.Prefix(f"{name}_"):
                parts = _parts(form(mx.sym, own))
            used = {key: arrays[key] for key in own.used}
            answers = [a for part in parts for a in _answers(part, used)]
        except Exception as error:  # whatever MXNet refuses, the other forms are written
            print(f"{folder.name}: {name}: {_reason(error)}", file=sys.stderr)
            continue
        with mx.name.Prefix(f"{name}_"):
            kept += _parts(form(mx.sym, variables))
        expected += answers
    symbol = mx.sym.Group(kept)
    # A label is no input: only training reads it.
    used = {key: arrays[key] for key in variables.used if not key.startswith("label")}
    _save(folder, symbol, used, expected, tolerance)


# Forms


def _common() -> Arrays:
    return {
        "x": _normal(2, 3, 4),
        "y": _normal(2, 3, 4),
        "b": _normal(2, 1, 4),
        "p": np.abs(_normal(2, 3, 4)) + 0.1,
        "u": _RANDOM.uniform(-0.95, 0.95, (2, 3, 4)).astype(np.float32),
        "m": _normal(3, 4),
        "label": _normal(3, 4),
        "label3": _ints(0, 4, 3),
        "label23": _ints(0, 4, 2, 3),
        "label42": _ints(0, 4, 2, 42),
        "v": _normal(5),
        "one": _normal(1, 3, 1, 4),
        "i": _RANDOM.integers(-5, 6, (2, 3, 4)).astype(np.int32),
        "j": _RANDOM.integers(1, 5, (2, 3, 4)).astype(np.int32),
        "bytes": _RANDOM.integers(0, 200, (2, 3, 4)).astype(np.uint8),
        "h": _normal(2, 3, 4).astype(np.float16),
        "d": _RANDOM.normal(size=(2, 3, 4)),
        "half": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.2, -0.7], np.float32),
        "odd": np.array([0, -0.0, 1, -1, np.nan, np.inf, -np.inf], np.float32),
        "z": np.array([1, 0, -2, 0, 3, 0, 1], np.float32),
        "mask": (_normal(2, 3, 4) > 0).astype(np.float32),
        "row": np.array([1, 0], np.float32),
        "index": _ints(-1, 5, 2, 3),
        "k": _ints(0, 4, 2, 3),
        "k0": _ints(0, 3, 2, 4),
        "img": _normal(2, 4, 7, 6),
        "img2": _normal(2, 4, 7, 6),
        "big": _normal(2, 4, 9, 8),
        "last": _normal(2, 7, 6, 4),
        "seq": _normal(2, 4, 9),
        "vol": _normal(1, 4, 5, 6, 5),
        "w2": _normal(6, 4, 3, 2),
        "w2g": _normal(6, 2, 3, 3),
        "wd": _normal(4, 1, 3, 3),
        "w1": _normal(6, 4, 3),
        "w3": _normal(2, 4, 2, 3, 2),
        "t2": _normal(4, 3, 3, 2),
        "t2g": _normal(4, 3, 4, 4),
        "t1": _normal(4, 2, 3),
        "c4": _normal(4),
        "c4b": _normal(4),
        "c4m": _normal(4),
        "c4v": np.abs(_normal(4)) + 0.2,
        "c6": _normal(6),
        "c3": _normal(3),
        "c2": _normal(2),
        "fc": _normal(5, 12),
        "fc2": _normal(5, 4),
        "c5": _normal(5),
        "len2": np.array([2, 4], np.float32),
        "len3": np.array([3, 1, 2], np.float32),
        "time": _normal(4, 2, 3),
        "table": _normal(7, 3),
    }


_UNARY = """abs arccos arcsin arctan arcsinh arctanh cbrt ceil cos cosh degrees erf erfinv exp expm1
    fix floor gamma gammaln log log10 log1p log2 logical_not negative radians rcbrt reciprocal relu
    rint round rsqrt sigmoid sign sin sinh softsign sqrt square tan tanh trunc zeros_like ones_like
    hard_sigmoid BlockGrad identity""".split()
_POSITIVE = ("log", "log10", "log2", "rsqrt", "sqrt", "rcbrt", "gamma", "gammaln", "log1p")


def _elementwise() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for name in _UNARY:
        variable = "p" if name in _POSITIVE else "u"
        forms[name] = lambda F, v, n=name, s=variable: getattr(F, n)(getattr(v, s))
    for name in (
        "abs",
        "sign",
        "square",
        "exp",
        "sqrt",
        "negative",
        "floor",
        "rint",
        "relu",
        "log1p",
    ):
        forms[f"int_{name}"] = lambda F, v, n=name: getattr(F, n)(v.j)
    for name in ("rint", "round", "fix", "trunc", "floor", "ceil"):
        forms[f"half_{name}"] = lambda F, v, n=name: getattr(F, n)(v.half)
    for name in ("sign", "relu", "abs", "sigmoid", "exp", "rint", "gamma"):
        forms[f"odd_{name}"] = lambda F, v, n=name: getattr(F, n)(v.odd)
    for name in ("exp", "tanh", "sigmoid", "sqrt"):
        forms[f"d_{name}"] = lambda F, v, n=name: getattr(F, n)(F.abs(v.d))
    forms["arccosh"] = lambda F, v: F.arccosh(v.p + 1)
    forms["gamma_low"] = lambda F, v: F.gamma(v.half - 0.3)
    for name in (
        "add",
        "sub",
        "mul",
        "div",
        "mod",
        "power",
        "maximum",
        "minimum",
        "hypot",
        "equal",
    ):
        forms[f"broadcast_{name}"] = lambda F, v, n=name: getattr(F, f"broadcast_{n}")(v.p, v.b)
    for name in ("not_equal", "greater", "greater_equal", "lesser", "lesser_equal"):
        forms[f"broadcast_{name}"] = lambda F, v, n=name: getattr(F, f"broadcast_{n}")(v.x, v.b)
    for name in ("logical_and", "logical_or", "logical_xor"):
        forms[f"broadcast_{name}"] = lambda F, v, n=name: getattr(F, f"broadcast_{n}")(v.mask, v.b)
        forms[f"{name}_scalar"] = lambda F, v, n=name: getattr(F._internal, f"_{n}_scalar")(
            v.mask, scalar=1.0
        )
    for name in ("add", "sub", "mul", "div"):
        forms[f"elemwise_{name}"] = lambda F, v, n=name: getattr(F, f"elemwise_{n}")(v.x, v.y)
        forms[f"int_{name}"] = lambda F, v, n=name: getattr(F, f"broadcast_{n}")(v.i, v.j)
    forms["int_mod"] = lambda F, v: F.broadcast_mod(v.i, v.j)
    forms["int_power"] = lambda F, v: F.broadcast_power(v.j, v.j)
    forms["mod_zero"] = lambda F, v: F.broadcast_mod(v.odd, v.z)
    forms["max_odd"] = lambda F, v: F.broadcast_maximum(v.odd, v.z)
    for number in (2.5, -3.0, 0.0):
        suffix = str(number).replace("-", "m").replace(".", "_")
        for name in ("plus", "minus", "rminus", "mul", "div", "rdiv", "mod", "rmod", "power"):
            forms[f"{name}_{suffix}"] = lambda F, v, n=name, s=number: getattr(
                F._internal, f"_{n}_scalar"
            )(v.p, scalar=s)
        for name in ("maximum", "minimum", "hypot", "equal", "greater", "lesser_equal", "rpower"):
            forms[f"{name}_{suffix}"] = lambda F, v, n=name, s=number: getattr(
                F._internal, f"_{n}_scalar"
            )(v.p, scalar=abs(s))
        for name in ("plus", "mul", "minus", "maximum", "lesser", "not_equal"):
            forms[f"int_{name}_{suffix}"] = lambda F, v, n=name, s=number: getattr(
                F._internal, f"_{n}_scalar"
            )(v.i, scalar=s)
    forms["int_div_scalar"] = lambda F, v: F._internal._div_scalar(v.i, scalar=2)
    forms["int_mod_scalar"] = lambda F, v: F._internal._mod_scalar(v.i, scalar=3)
    forms["clip"] = lambda F, v: F.clip(v.x, -0.5, 0.7)
    forms["clip_odd"] = lambda F, v: F.clip(v.odd, -2, 2)
    forms["clip_int"] = lambda F, v: F.clip(v.i, -2, 3)
    forms["smooth_l1"] = lambda F, v: F.smooth_l1(v.x, scalar=2.0)
    forms["hard"] = lambda F, v: F.hard_sigmoid(v.x, alpha=0.5, beta=0.1)
    forms["quadratic"] = lambda F, v: F.contrib.quadratic(v.x, a=1, b=2, c=3)
    forms["div_sqrt_dim"] = lambda F, v: F.contrib.div_sqrt_dim(v.x)
    forms["add_n"] = lambda F, v: F.add_n(v.x, v.y, v.u)
    forms["where"] = lambda F, v: F.where(v.mask, v.x, v.y)
    forms["where_rows"] = lambda F, v: F.where(v.row, v.x, v.y)
    for dtype in ("float64", "float16", "int32", "int8", "uint8", "int64"):
        forms[f"cast_{dtype}"] = lambda F, v, d=dtype: F.Cast(v.half, dtype=d)
    forms["cast_int"] = lambda F, v: F.Cast(v.i, dtype="float32")
    forms["dropout"] = lambda F, v: F.Dropout(v.x, p=0.3)
    forms["halves"] = lambda F, v: F.broadcast_mul(v.h, v.h) + 1.5
    forms["cast_bytes"] = lambda F, v: F.Cast(v.bytes, dtype="float32") / 255
    forms["amp_cast"] = lambda F, v: F.amp_cast(v.x, dtype="float16")
    forms["amp_multicast"] = lambda F, v: F.amp_multicast(v.x, v.h, num_outputs=2)
    return forms


def _activation() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        forms[f"act_{kind}"] = lambda F, v, k=kind: F.Activation(v.x * 3, act_type=k)
    for kind in ("leaky", "elu", "selu", "gelu"):
        forms[kind] = lambda F, v, k=kind: F.LeakyReLU(v.x, act_type=k, slope=0.3)
    forms["prelu"] = lambda F, v: F.LeakyReLU(v.img, v.c4, act_type="prelu")
    forms["prelu_one"] = lambda F, v: F.LeakyReLU(
        v.x, F.slice(v.c4, begin=(0,), end=(1,)), act_type="prelu"
    )
    for axis in (0, 1, -1):
        forms[f"softmax_{axis % 3}"] = lambda F, v, a=axis: F.softmax(v.x, axis=a)
        forms[f"log_softmax_{axis % 3}"] = lambda F, v, a=axis: F.log_softmax(v.x, axis=a)
        forms[f"softmin_{axis % 3}"] = lambda F, v, a=axis: F.softmin(v.x, axis=a)
    forms["softmax_t"] = lambda F, v: F.softmax(v.x, temperature=2.5)
    forms["log_softmax_t"] = lambda F, v: F.log_softmax(v.x, axis=1, temperature=0.5)
    forms["softmax_d"] = lambda F, v: F.softmax(v.x, dtype="float64")
    forms["softmax_length"] = lambda F, v: F.softmax(
        v.x, F.Cast(v.k, dtype="int32"), use_length=True, axis=-1
    )
    forms["softmax_length1"] = lambda F, v: F.softmax(
        v.x, F.Cast(v.k0 + 1, dtype="int32"), use_length=True, axis=1
    )
    forms["activation_instance"] = lambda F, v: F.SoftmaxActivation(v.x)
    forms["activation_channel"] = lambda F, v: F.SoftmaxActivation(v.img, mode="channel")
    forms["output"] = lambda F, v: F.SoftmaxOutput(v.m, v.label3)
    forms["output3"] = lambda F, v: F.SoftmaxOutput(v.x, v.label23)
    forms["output_multi"] = lambda F, v: F.SoftmaxOutput(v.img, v.label42, multi_output=True)
    forms["output_kept"] = lambda F, v: F.SoftmaxOutput(v.x, v.label23, preserve_shape=True)
    forms["logistic"] = lambda F, v: F.LogisticRegressionOutput(v.m, v.label)
    forms["linear"] = lambda F, v: F.LinearRegressionOutput(v.m, v.label)
    forms["mae"] = lambda F, v: F.MAERegressionOutput(v.m, v.label)
    forms["svm"] = lambda F, v: F.SVMOutput(v.m, v.label3)
    forms["make"] = lambda F, v: F.MakeLoss(v.m)
    return forms


def _reduction() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    axes: list[tuple[str, dict[str, Any]]] = [
        ("all", {}),
        ("one", {"axis": 1}),
        ("two", {"axis": (0, 2)}),
        ("kept", {"axis": -1, "keepdims": True}),
        ("others", {"axis": 1, "exclude": True}),
        ("every", {"axis": (0, 1, 2)}),
        ("all_kept", {"keepdims": True}),
        ("none", {"axis": ()}),
    ]
    for name in ("sum", "mean", "prod", "nansum", "nanprod", "max", "min"):
        for suffix, given in axes:
            forms[f"{name}_{suffix}"] = lambda F, v, n=name, g=given: getattr(F, n)(v.x, **g)
    forms["nansum_odd"] = lambda F, v: F.nansum(v.odd)
    forms["max_odd"] = lambda F, v: F.max(v.odd)
    forms["sum_int"] = lambda F, v: F.sum(v.i, axis=1)
    forms["mean_int"] = lambda F, v: F.mean(v.j, axis=1)
    forms["sum_half"] = lambda F, v: F.sum(v.h, axis=1)
    for name in ("argmax", "argmin"):
        for suffix, given in (
            ("", {}),
            ("_1", {"axis": 1}),
            ("_k", {"axis": -1, "keepdims": True}),
        ):
            forms[f"{name}{suffix}"] = lambda F, v, n=name, g=given: getattr(F, n)(v.x, **g)
    forms["argmax_v"] = lambda F, v: F.argmax(v.v, axis=0)
    forms["argmax_channel"] = lambda F, v: F.argmax_channel(v.m)
    for suffix, given in (
        ("", {}),
        ("1", {"ord": 1, "axis": 1}),
        ("2", {"axis": (1, 2), "keepdims": True}),
    ):
        forms[f"norm{suffix}"] = lambda F, v, g=given: F.norm(v.x, **g)
    forms["moments"] = lambda F, v: F.moments(v.x, axes=(0, 2))[0]
    forms["cumsum"] = lambda F, v: F.cumsum(v.x, axis=1)
    forms["cumsum_all"] = lambda F, v: F.cumsum(v.x)
    forms["square_sum"] = lambda F, v: F.multi_sum_sq(v.x, v.m, num_arrays=2)
    for kind in ("value", "indices", "both", "mask"):
        for up in (False, True):
            forms[f"topk_{kind}_{int(up)}"] = lambda F, v, k=kind, u=up: F.topk(
                v.x, k=2, ret_typ=k, is_ascend=u
            )
    forms["topk_axis"] = lambda F, v: F.topk(v.x, axis=1, k=2, dtype="int32")
    forms["topk_all"] = lambda F, v: F.topk(v.x, axis=None, k=5, ret_typ="both")
    forms["topk_zero"] = lambda F, v: F.topk(v.x, k=0, ret_typ="value")
    for up in (False, True):
        forms[f"sort_{int(up)}"] = lambda F, v, u=up: F.sort(v.x, axis=1, is_ascend=u)
        forms[f"argsort_{int(up)}"] = lambda F, v, u=up: F.argsort(v.x, is_ascend=u)
    forms["sort_all"] = lambda F, v: F.sort(v.x, axis=None)
    forms["argsort_int"] = lambda F, v: F.argsort(v.x, dtype="int32")
    return forms


_RESHAPES: list[tuple[tuple[int, ...], bool]] = [
    ((6, 4), False),
    ((0, -1), False),
    ((-1,), False),
    ((-2,), False),
    ((-3, 0), False),
    ((0, -3), False),
    ((-4, 1, 2, -2), False),
    ((0, 0, -4, 2, -1), False),
    ((2, -4, -1, 3, 4), False),
    ((-1, 0), True),
    ((0, -1), True),
    ((-3, 0), True),
    ((0, 1, -1, -4, 0), True),
    ((2, 0, 0), False),
    ((0, 3, -1), False),
    ((-1, 4), False),
    ((-2, 1), False),
    ((-1, 0, 0), True),
    ((2, 1, -4, 0, 0), True),
    ((-3, -1), True),
]


def _movement() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for number, (shape, back) in enumerate(_RESHAPES):
        forms[f"reshape{number}"] = lambda F, v, s=shape, b=back: F.Reshape(v.x, shape=s, reverse=b)
    forms["reshape_old"] = lambda F, v: F.Reshape(v.x, target_shape=(2, 0))
    forms["reshape_like"] = lambda F, v: F.reshape_like(v.x, F.Reshape(v.y, shape=(4, 6)))
    forms["reshape_like2"] = lambda F, v: F.reshape_like(
        v.x, F.Reshape(v.y, shape=(6, 4)), lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=1
    )
    forms["flatten"] = lambda F, v: F.Flatten(v.x)
    forms["flatten1"] = lambda F, v: F.Flatten(v.v)
    for axis in (0, 2, -1):
        forms[f"expand{axis % 4}"] = lambda F, v, a=axis: F.expand_dims(v.x, axis=a)
    forms["squeeze"] = lambda F, v: F.squeeze(v.one)
    forms["squeeze0"] = lambda F, v: F.squeeze(v.one, axis=0)
    forms["squeeze02"] = lambda F, v: F.squeeze(v.one, axis=(0, -2))
    forms["transpose"] = lambda F, v: F.transpose(v.x)
    forms["transpose_axes"] = lambda F, v: F.transpose(v.x, axes=(1, 2, 0))
    forms["swap"] = lambda F, v: F.SwapAxis(v.x, dim1=0, dim2=2)
    forms["reverse"] = lambda F, v: F.reverse(v.x, axis=(0, 2))
    forms["flip"] = lambda F, v: F.flip(v.x, axis=1)
    forms["d2s"] = lambda F, v: F.depth_to_space(v.img, block_size=2)
    forms["s2d"] = lambda F, v: F.space_to_depth(
        F.slice_axis(v.img, axis=2, begin=0, end=6), block_size=2
    )
    slices: list[tuple[Any, Any, Any]] = [
        ((0, 1), (2, 3), ()),
        ((None, 1), (None, None), ()),
        ((0, -2, 1), (2, None, -1), ()),
        ((None, None, None), (None, None, None), (1, -1, 2)),
        ((0, 2), (2, 0), (1, -1)),
        ((1,), (2,), ()),
        ((None, None, 3), (None, None, 0), (None, None, -2)),
    ]
    for number, (begin, end, step) in enumerate(slices):
        forms[f"slice{number}"] = lambda F, v, b=begin, e=end, s=step: F.slice(
            v.x, begin=b, end=e, step=s
        )
    for axis, begin, end in ((1, 1, None), (-1, -3, -1), (0, 0, 1), (2, 1, 3)):
        forms[f"slice_axis{axis}{begin}".replace("-", "m")] = lambda F, v, a=axis, b=begin, e=end: (
            F.slice_axis(v.x, axis=a, begin=b, end=e)
        )
    forms["slice_like"] = lambda F, v: F.slice_like(v.big, v.img)
    forms["slice_like_axes"] = lambda F, v: F.slice_like(v.big, v.img, axes=(2, -1))
    forms["crop"] = lambda F, v: F.Crop(v.img, h_w=(3, 4), offset=(1, 2), num_args=1)
    forms["crop_like"] = lambda F, v: F.Crop(v.big, v.img, num_args=2)
    forms["crop_center"] = lambda F, v: F.Crop(v.big, v.img, center_crop=True, num_args=2)
    forms["channels"] = lambda F, v: F.SliceChannel(v.img, num_outputs=2)
    forms["channels_squeezed"] = lambda F, v: F.split(
        v.x, num_outputs=4, axis=-1, squeeze_axis=True
    )
    forms["split_v2"] = lambda F, v: F.split_v2(v.x, (1, 3), axis=2)
    forms["split_v2_sections"] = lambda F, v: F.split_v2(v.x, 3, axis=1, squeeze_axis=True)
    forms["slice_assign"] = lambda F, v: F._internal._slice_assign(
        v.x, F.slice(v.y, begin=(0, 1), end=(1, 3)), begin=(1, 0), end=(2, 2)
    )
    forms["slice_assign_scalar"] = lambda F, v: F._internal._slice_assign_scalar(
        v.x, scalar=7, begin=(None, 0), end=(None, 3), step=(None, 2)
    )
    for axis in (0, 1, -1):
        forms[f"concat{axis % 3}"] = lambda F, v, a=axis: F.Concat(v.x, v.y, dim=a)
        forms[f"stack{axis % 3}"] = lambda F, v, a=axis: F.stack(v.x, v.y, axis=a)
    for reps in ((2,), (1, 2, 3), (2, 1, 1, 2), ()):
        forms[f"tile{len(reps)}"] = lambda F, v, r=reps: F.tile(v.x, reps=r)
    forms["repeat"] = lambda F, v: F.repeat(v.x, repeats=2)
    forms["repeat1"] = lambda F, v: F.repeat(v.x, repeats=3, axis=1)
    forms["broadcast_to"] = lambda F, v: F.broadcast_to(v.b, shape=(0, 3, 0))
    forms["broadcast_axis"] = lambda F, v: F.broadcast_axis(v.one, axis=(0, 2), size=(2, 3))
    forms["broadcast_like"] = lambda F, v: F.broadcast_like(v.b, v.x)
    forms["broadcast_like_axes"] = lambda F, v: F.broadcast_like(
        v.b, v.img, lhs_axes=(1,), rhs_axes=(-1,)
    )
    for mode in ("constant", "edge", "reflect"):
        forms[f"pad_{mode}"] = lambda F, v, m=mode: F.Pad(
            v.img, mode=m, pad_width=(0, 0, 0, 0, 1, 2, 2, 1), constant_value=0.5
        )
    forms["pad_3d"] = lambda F, v: F.Pad(
        v.vol, mode="edge", pad_width=(0, 0, 0, 0, 1, 0, 0, 2, 1, 1)
    )
    forms["shape"] = lambda F, v: F.shape_array(v.x)
    forms["size"] = lambda F, v: F.size_array(v.x)
    forms["diag"] = lambda F, v: F.diag(v.m)
    forms["diag_k"] = lambda F, v: F.diag(v.m, k=-1)
    forms["diag_v"] = lambda F, v: F.diag(v.v, k=1)
    forms["diag_axes"] = lambda F, v: F.diag(v.x, axis1=0, axis2=2)
    forms["im2col"] = lambda F, v: F.im2col(v.img, kernel=(3, 2), stride=(2, 1), pad=(1, 0))
    forms["col2im"] = lambda F, v: F.col2im(
        F.im2col(v.img, kernel=(3, 2), pad=(1, 1)), output_size=(7, 6), kernel=(3, 2), pad=(1, 1)
    )
    forms["arange_like"] = lambda F, v: F.contrib.arange_like(v.x, start=1, step=2)
    forms["arange_like_axis"] = lambda F, v: F.contrib.arange_like(v.x, axis=-1)
    forms["arange_like_repeat"] = lambda F, v: F.contrib.arange_like(v.x, repeat=2)
    forms["to_tensor"] = lambda F, v: F.image.to_tensor(F.Cast(v.bytes, dtype="uint8"))
    forms["normalize"] = lambda F, v: F.image.normalize(
        F.transpose(v.time, axes=(2, 0, 1)), mean=(0.1, 0.2, 0.3), std=(1, 2, 3)
    )
    forms["flip_lr"] = lambda F, v: F.image.flip_left_right(v.x)
    forms["flip_tb"] = lambda F, v: F.image.flip_top_bottom(v.x)
    forms["image_crop"] = lambda F, v: F.image.crop(v.last, x=1, y=2, width=3, height=4)
    forms["zeros"] = lambda F, v: (
        F.zeros((2, 3)) + F.slice_axis(v.b, axis=2, begin=0, end=3).reshape((2, 3))
    )
    forms["ones"] = lambda F, v: F.ones((2, 3), dtype="int32")
    forms["full"] = lambda F, v: F.full((2, 3), 2.5)
    forms["arange"] = lambda F, v: F.arange(2, 9, 1.5)
    forms["arange_repeat"] = lambda F, v: F.arange(4, repeat=2)
    forms["eye"] = lambda F, v: F.eye(3, 4, 1)
    forms["linspace"] = lambda F, v: F.linspace(0, 1, 5)
    return forms


def _indexing() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    forms["embedding"] = lambda F, v: F.Embedding(v.index, v.table, input_dim=7, output_dim=3)
    for axis in (0, 1, -1):
        for mode in ("clip", "wrap"):
            forms[f"take_{axis % 3}_{mode}"] = lambda F, v, a=axis, m=mode: F.take(
                v.x, v.index, axis=a, mode=m
            )
    forms["batch_take"] = lambda F, v: F.batch_take(v.m, F.Cast(F.abs(v.c3), dtype="int32"))
    for mode in ("clip", "wrap"):
        forms[f"pick_{mode}"] = lambda F, v, m=mode: F.pick(v.x, v.index, mode=m)
        forms[f"pick1_{mode}"] = lambda F, v, m=mode: F.pick(
            v.x, v.k0, axis=1, keepdims=True, mode=m
        )
    forms["gather_nd"] = lambda F, v: F.gather_nd(
        v.x, F.Concat(v.row.reshape((1, 2)), v.row.reshape((1, 2)), dim=0)
    )
    forms["gather_nd1"] = lambda F, v: F.gather_nd(v.x, v.row.reshape((1, 2)))
    forms["scatter_nd"] = lambda F, v: F.scatter_nd(
        v.c2, F.Concat(v.row.reshape((1, 2)), v.len2.reshape((1, 2)), dim=0), shape=(3, 5)
    )
    forms["scatter_set_nd"] = lambda F, v: F._internal._scatter_set_nd(
        v.m, v.c2, F.Concat(v.row.reshape((1, 2)), v.row.reshape((1, 2)), dim=0), shape=(3, 4)
    )
    forms["one_hot"] = lambda F, v: F.one_hot(v.index, depth=4)
    forms["one_hot_values"] = lambda F, v: F.one_hot(
        v.k, depth=3, on_value=5, off_value=-1, dtype="int32"
    )
    forms["boolean_mask"] = lambda F, v: F.contrib.boolean_mask(v.x, v.row)
    forms["ravel"] = lambda F, v: F.ravel_multi_index(
        F.Concat(v.row.reshape((1, 2)), v.row.reshape((1, 2)), dim=0), shape=(3, 5)
    )
    forms["unravel"] = lambda F, v: F.unravel_index(v.len2, shape=(3, 5))
    forms["index_array"] = lambda F, v: F.contrib.index_array(v.m)
    forms["index_array1"] = lambda F, v: F.contrib.index_array(v.x, axes=(1, 0))
    forms["index_copy"] = lambda F, v: F.contrib.index_copy(v.x, v.row, v.y)
    forms["allclose"] = lambda F, v: F.contrib.allclose(v.x, v.x)
    for name in ("SequenceMask", "SequenceLast", "SequenceReverse"):
        forms[name] = lambda F, v, n=name: getattr(F, n)(v.time)
        forms[f"{name}_l"] = lambda F, v, n=name: getattr(F, n)(
            v.time, v.len2, use_sequence_length=True
        )
    forms["mask_value"] = lambda F, v: F.SequenceMask(
        v.time, v.len2, use_sequence_length=True, value=-1
    )
    forms["mask_axis"] = lambda F, v: F.SequenceMask(v.x, v.len2, use_sequence_length=True, axis=1)
    forms["last_axis"] = lambda F, v: F.SequenceLast(
        v.x, v.row + 1, use_sequence_length=True, axis=1
    )
    return forms


def _linear() -> dict[str, Form]:
    forms: dict[str, Form] = {
        "conv": lambda F, v: F.Convolution(v.img, v.w2, v.c6, kernel=(3, 2), num_filter=6),
        "conv_s": lambda F, v: F.Convolution(
            v.img, v.w2, kernel=(3, 2), num_filter=6, stride=(2, 1), pad=(1, 2), no_bias=True
        ),
        "conv_d": lambda F, v: F.Convolution(
            v.img, v.w2, v.c6, kernel=(3, 2), num_filter=6, dilate=(2, 3), pad=(2, 2)
        ),
        "conv_g": lambda F, v: F.Convolution(
            v.img, v.w2g, v.c6, kernel=(3, 3), num_filter=6, num_group=2, pad=(1, 1)
        ),
        "conv_dw": lambda F, v: F.Convolution(
            v.img, v.wd, v.c4, kernel=(3, 3), num_filter=4, num_group=4
        ),
        "conv1": lambda F, v: F.Convolution(
            v.seq, v.w1, v.c6, kernel=(3,), num_filter=6, stride=(2,), pad=(1,)
        ),
        "conv3": lambda F, v: F.Convolution(v.vol, v.w3, v.c2, kernel=(2, 3, 2), num_filter=2),
        "conv_v1": lambda F, v: F.Convolution_v1(v.img, v.w2, v.c6, kernel=(3, 2), num_filter=6),
        "deconv": lambda F, v: F.Deconvolution(v.img, v.t2, kernel=(3, 2), num_filter=3),
        "deconv_s": lambda F, v: F.Deconvolution(
            v.img,
            v.t2,
            v.c3,
            kernel=(3, 2),
            num_filter=3,
            stride=(2, 3),
            pad=(1, 0),
            adj=(1, 2),
            no_bias=False,
        ),
        "deconv_t": lambda F, v: F.Deconvolution(
            v.img, v.t2, kernel=(3, 2), num_filter=3, stride=(2, 2), target_shape=(14, 12)
        ),
        "deconv_g": lambda F, v: F.Deconvolution(
            v.img, v.t2g, kernel=(4, 4), num_filter=6, num_group=2, stride=(2, 2), pad=(1, 1)
        ),
        "deconv_d": lambda F, v: F.Deconvolution(
            v.img, v.t2, kernel=(3, 2), num_filter=3, dilate=(2, 2)
        ),
        "deconv1": lambda F, v: F.Deconvolution(
            v.seq, v.t1, kernel=(3,), num_filter=2, stride=(2,)
        ),
        "fc": lambda F, v: F.FullyConnected(v.x, v.fc, v.c5, num_hidden=5),
        "fc_rows": lambda F, v: F.FullyConnected(v.x, v.fc2, v.c5, num_hidden=5, flatten=False),
        "fc_bare": lambda F, v: F.FullyConnected(v.x, v.fc, num_hidden=5, no_bias=True),
        "dot": lambda F, v: F.dot(v.m, v.m, transpose_b=True),
        "dot_t": lambda F, v: F.dot(v.m, v.m, transpose_a=True),
        "dot3": lambda F, v: F.dot(v.x, F.transpose(v.x)),
        "dot_v": lambda F, v: F.dot(v.v, v.v),
        "dot_mv": lambda F, v: F.dot(v.m, v.c4),
        "batch_dot": lambda F, v: F.batch_dot(v.x, v.y, transpose_b=True),
        "batch_dot_t": lambda F, v: F.batch_dot(v.x, v.y, transpose_a=True),
        "gemm": lambda F, v: F.linalg_gemm(
            v.x, v.y, F.batch_dot(v.x, v.y, transpose_b=True), transpose_b=True, alpha=2.0, beta=0.5
        ),
        "gemm2": lambda F, v: F.linalg_gemm2(v.x, v.y, transpose_a=True, alpha=0.5),
        "gemm2_axis": lambda F, v: F.linalg_gemm2(
            F.transpose(v.x, axes=(1, 0, 2)),
            F.transpose(v.y, axes=(1, 0, 2)),
            transpose_b=True,
            axis=0,
        ),
        "syrk": lambda F, v: F.linalg_syrk(v.x, alpha=2.0),
        "syrk_t": lambda F, v: F.linalg_syrk(v.x, transpose=True),
        "trmm": lambda F, v: F.linalg_trmm(F.batch_dot(v.x, v.y, transpose_b=True), v.x, alpha=1.5),
        "trmm_r": lambda F, v: F.linalg_trmm(
            F.batch_dot(v.x, v.y, transpose_a=True), v.x, rightside=True, transpose=True
        ),
        "extractdiag": lambda F, v: F.linalg_extractdiag(F.batch_dot(v.x, v.y, transpose_b=True)),
        "makediag": lambda F, v: F.linalg_makediag(v.m, offset=1),
        "sumlogdiag": lambda F, v: F.linalg_sumlogdiag(F.batch_dot(v.p, v.p, transpose_b=True)),
        "khatri_rao": lambda F, v: F.khatri_rao(v.m, v.m * 2, num_args=2),
        "self_qk": lambda F, v: F.contrib.interleaved_matmul_selfatt_qk(
            F.tile(v.x, reps=(2, 1, 3)), heads=2
        ),
        "self_v": lambda F, v: F.contrib.interleaved_matmul_selfatt_valatt(
            F.tile(v.x, reps=(2, 1, 3)),
            F.softmax(
                F.contrib.interleaved_matmul_selfatt_qk(F.tile(v.x, reps=(2, 1, 3)), heads=2)
            ),
            heads=2,
        ),
        "other_qk": lambda F, v: F.contrib.interleaved_matmul_encdec_qk(
            F.tile(v.x, reps=(2, 1, 1)), F.tile(v.y, reps=(3, 1, 2)), heads=2
        ),
        "other_v": lambda F, v: F.contrib.interleaved_matmul_encdec_valatt(
            F.tile(v.y, reps=(3, 1, 2)),
            F.softmax(
                F.contrib.interleaved_matmul_encdec_qk(
                    F.tile(v.x, reps=(2, 1, 1)), F.tile(v.y, reps=(3, 1, 2)), heads=2
                )
            ),
            heads=2,
        ),
    }
    return forms


def _normalization() -> dict[str, Form]:
    def norm(F: Any, v: Any, **given: Any) -> Any:
        return F.BatchNorm(given.pop("x", v.img), v.c4, v.c4b, v.c4m, v.c4v, **given)

    forms: dict[str, Form] = {
        "batch": lambda F, v: norm(F, v),
        "batch_gamma": lambda F, v: norm(F, v, fix_gamma=False, eps=1e-5),
        "batch_axis": lambda F, v: norm(F, v, x=v.last, fix_gamma=False, axis=-1),
        "batch_global": lambda F, v: norm(F, v, fix_gamma=False, use_global_stats=True),
        "batch_seq": lambda F, v: norm(F, v, x=v.seq, fix_gamma=False),
        "layer": lambda F, v: F.LayerNorm(v.x, v.c4, v.c4b),
        "layer_axis": lambda F, v: F.LayerNorm(v.img, v.c4, v.c4b, axis=1, eps=1e-3),
        "layer_stats": lambda F, v: F.LayerNorm(v.x, v.c4, v.c4b, output_mean_var=True)[0],
        "instance": lambda F, v: F.InstanceNorm(v.img, v.c4, v.c4b),
        "instance_seq": lambda F, v: F.InstanceNorm(v.seq, v.c4, v.c4b, eps=0.1),
        "group_4": lambda F, v: F.GroupNorm(v.img, v.c4, v.c4b, num_groups=4),
        "group_2": lambda F, v: F.GroupNorm(v.img, v.c2, v.c2, num_groups=2),
        "lrn": lambda F, v: F.LRN(v.img, nsize=3, alpha=0.1, beta=0.6, knorm=1.5),
        "lrn5": lambda F, v: F.LRN(v.img, nsize=5),
    }
    for mode in ("instance", "channel", "spatial"):
        forms[f"l2_{mode}"] = lambda F, v, m=mode: F.L2Normalization(v.img, mode=m)
    return forms


def _pooling() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    settings: list[tuple[str, dict[str, Any]]] = [
        ("", {"kernel": (2, 3)}),
        ("s", {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1)}),
        ("full", {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"}),
        (
            "full_pad",
            {"kernel": (3, 2), "stride": (3, 2), "pad": (1, 1), "pooling_convention": "full"},
        ),
        ("global", {"kernel": (1, 1), "global_pool": True}),
        (
            "excluded",
            {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "count_include_pad": False},
        ),
        (
            "excluded_full",
            {
                "kernel": (3, 3),
                "stride": (2, 2),
                "pad": (1, 1),
                "count_include_pad": False,
                "pooling_convention": "full",
            },
        ),
    ]
    for kind in ("max", "avg", "sum", "lp"):
        for suffix, given in settings:
            more = {"p_value": 2} if kind == "lp" else {}
            forms[f"{kind}_{suffix}"] = lambda F, v, k=kind, g={**given, **more}: F.Pooling(
                v.img, pool_type=k, **g
            )
        if kind != "lp":
            for suffix, given in settings[:5]:
                forms[f"v1_{kind}_{suffix}"] = lambda F, v, k=kind, g=given: F.Pooling_v1(
                    v.img, pool_type=k, **g
                )
    forms["lp3"] = lambda F, v: F.Pooling(F.abs(v.img), kernel=(2, 2), pool_type="lp", p_value=3)
    forms["lp1"] = lambda F, v: F.Pooling(v.img, kernel=(2, 2), pool_type="lp", p_value=1)
    for kind in ("max", "avg"):
        forms[f"{kind}_1d"] = lambda F, v, k=kind: F.Pooling(
            v.seq, kernel=(3,), stride=(2,), pad=(1,), pool_type=k
        )
        forms[f"{kind}_3d"] = lambda F, v, k=kind: F.Pooling(
            v.vol, kernel=(2, 3, 2), stride=(2, 2, 1), pool_type=k, pooling_convention="full"
        )
    for size in (1, (2, 3), (7, 2)):
        forms[f"adaptive_{size}".replace(" ", "").strip(")").replace("(", "").replace(",", "x")] = (
            lambda F, v, s=size: F.contrib.AdaptiveAvgPooling2D(v.img, output_size=s)
        )
    forms["adaptive_default"] = lambda F, v: F.contrib.AdaptiveAvgPooling2D(v.img)
    forms["up"] = lambda F, v: F.UpSampling(v.img, scale=2, sample_type="nearest")
    forms["up_concat"] = lambda F, v: F.UpSampling(
        v.img,
        F.UpSampling(v.img2, scale=2, sample_type="nearest"),
        scale=4,
        sample_type="nearest",
        num_args=2,
    )
    forms["up_sum"] = lambda F, v: F.UpSampling(
        v.img, v.img2, scale=3, sample_type="nearest", num_args=2, multi_input_mode="sum"
    )
    forms["up_bilinear"] = lambda F, v: F.UpSampling(
        v.img,
        F.tile(F.slice(v.wd, begin=(0, 0, 0, 0), end=(4, 1, 2, 2)), reps=(1, 1, 2, 2)),
        scale=2,
        sample_type="bilinear",
        num_filter=4,
        num_args=2,
    )
    resizes: list[dict[str, Any]] = [
        {"height": 10, "width": 9},
        {"height": 3, "width": 4},
        {"height": 10, "width": 9, "align_corners": False},
        {"scale_height": 2.0, "scale_width": 1.5},
        {"scale_height": 2.0, "scale_width": 2.0, "mode": "odd_scale"},
        {"mode": "to_even_down"},
        {"mode": "to_odd_up"},
        {"mode": "to_even_up"},
        {"mode": "to_odd_down"},
    ]
    for number, given in enumerate(resizes):
        forms[f"resize{number}"] = lambda F, v, g=given: F.contrib.BilinearResize2D(v.img, **g)
    forms["resize_like"] = lambda F, v: F.contrib.BilinearResize2D(v.img, v.big, mode="like")
    forms["grid_affine"] = lambda F, v: F.GridGenerator(
        v.c6.reshape((1, 6)), transform_type="affine", target_shape=(4, 5)
    )
    forms["grid_warp"] = lambda F, v: F.GridGenerator(
        F.slice_axis(v.img, axis=1, begin=0, end=2), transform_type="warp"
    )
    forms["sampler"] = lambda F, v: F.BilinearSampler(
        v.img, F.slice_axis(v.img2, axis=1, begin=0, end=2)
    )
    forms["transformer"] = lambda F, v: F.SpatialTransformer(
        F.slice_axis(v.img, axis=0, begin=0, end=1),
        v.c6.reshape((1, 6)) * 0.5,
        target_shape=(5, 4),
        transform_type="affine",
        sampler_type="bilinear",
    )
    for given in (
        {"max_displacement": 2},
        {"max_displacement": 2, "stride2": 2, "pad_size": 2, "is_multiply": False},
        {"kernel_size": 3, "max_displacement": 1, "pad_size": 2, "stride1": 2},
    ):
        forms[f"correlation{len(given)}"] = lambda F, v, g=given: F.Correlation(v.img, v.img2, **g)
    return forms


def _boxes() -> Arrays:
    corners = _RANDOM.uniform(0, 0.6, (2, 12, 2)).astype(np.float32)
    sizes = _RANDOM.uniform(0.1, 0.5, (2, 12, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + sizes], -1)
    scores = _RANDOM.uniform(0, 1, (2, 12, 1)).astype(np.float32)
    labels = _ints(0, 3, 2, 12, 1)
    classes = _RANDOM.uniform(0, 1, (2, 4, 12)).astype(np.float32)
    rois = np.array(
        [[0, 1, 2, 9, 7], [1, 0, 0, 5, 11], [1, 4, 4, 6, 9], [0, 2, 3, 30, 30]], np.float32
    )
    return {
        "image": _normal(2, 8, 6, 5),
        "rows": np.concatenate([labels, scores, boxes], -1),
        "boxes": boxes,
        "others": boxes[::-1, ::2].copy(),
        "classes": classes / classes.sum(1, keepdims=True),
        "deltas": _normal(2, 48) * 0.5,
        "moves": _normal(2, 12, 4) * 0.3,
        "anchors": boxes[:1],
        "rois": rois,
        "cls": _RANDOM.uniform(0, 1, (2, 12, 4, 5)).astype(np.float32),
        "cls1": _RANDOM.uniform(0, 1, (1, 12, 4, 5)).astype(np.float32),
        "reg": _normal(2, 24, 4, 5) * 0.3,
        "reg1": _normal(1, 24, 4, 5) * 0.3,
        "info": np.array([[60, 75, 1.0], [64, 80, 1.5]], np.float32),
        "info1": np.array([[60, 75, 1.0]], np.float32),
    }


def _detection() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    priors: list[dict[str, Any]] = [
        {},
        {"sizes": (0.3, 0.5), "ratios": (1, 2, 0.5)},
        {"sizes": (0.5,), "ratios": (2, 1), "clip": True},
        {"steps": (0.1, 0.2), "offsets": (0.3, 0.6)},
    ]
    for number, given in enumerate(priors):
        forms[f"prior{number}"] = lambda F, v, g=given: F.contrib.MultiBoxPrior(v.image, **g)
    detections: list[dict[str, Any]] = [
        {},
        {"threshold": 0.3},
        {"nms_threshold": 0.2, "force_suppress": True},
        {"nms_topk": 5},
        {"clip": False, "variances": (0.2, 0.2, 0.3, 0.3)},
        {"nms_threshold": 0.0},
    ]
    for number, given in enumerate(detections):
        forms[f"detection{number}"] = lambda F, v, g=given: F.contrib.MultiBoxDetection(
            v.classes, v.deltas, v.anchors, **g
        )
    suppressions: list[dict[str, Any]] = [
        {},
        {"overlap_thresh": 0.2, "id_index": 0},
        {"topk": 4, "valid_thresh": 0.3},
        {"id_index": 0, "force_suppress": True, "overlap_thresh": 0.1},
        {"id_index": 0, "background_id": 0},
        {"in_format": "center", "out_format": "corner"},
        {"out_format": "center", "overlap_thresh": 0.3},
        {"topk": 0},
        {"valid_thresh": 2.0},
    ]
    for number, given in enumerate(suppressions):
        forms[f"nms{number}"] = lambda F, v, g=given: F.contrib.box_nms(v.rows, **g)
    for kind in ("corner", "center"):
        forms[f"iou_{kind}"] = lambda F, v, k=kind: F.contrib.box_iou(v.boxes, v.others, format=k)
        forms[f"decode_{kind}"] = lambda F, v, k=kind: F.contrib.box_decode(
            v.moves, v.anchors, 0.1, 0.2, 0.3, 0.4, format=k
        )
    forms["decode_clip"] = lambda F, v: F.contrib.box_decode(v.moves, v.anchors, clip=0.2)
    for number, (scale, size) in enumerate(((1.0, (3, 2)), (0.4, (2, 2)))):
        forms[f"roi_pool{number}"] = lambda F, v, s=scale, n=size: F.ROIPooling(
            v.image, v.rois, spatial_scale=s, pooled_size=n
        )
        for ratio in (-1, 2):
            for aligned in (False, True):
                forms[f"roi_align{number}{ratio + 1}{int(aligned)}"] = (
                    lambda F, v, s=scale, n=size, r=ratio, a=aligned: F.contrib.ROIAlign(
                        v.image, v.rois, spatial_scale=s, pooled_size=n, sample_ratio=r, aligned=a
                    )
                )
    forms["psroi"] = lambda F, v: F.contrib.PSROIPooling(
        v.image, v.rois, spatial_scale=0.5, output_dim=2, pooled_size=2, group_size=2
    )
    proposals: list[dict[str, Any]] = [
        {"rpn_post_nms_top_n": 10, "rpn_min_size": 4},
        {"rpn_pre_nms_top_n": 20, "rpn_post_nms_top_n": 30, "threshold": 0.5},
        {"rpn_post_nms_top_n": 6, "rpn_min_size": 30},
    ]
    for number, given in enumerate(proposals):
        given = {"scales": (2, 4), "feature_stride": 16, **given}
        forms[f"proposal{number}"] = lambda F, v, g=given: F.contrib.Proposal(
            v.cls1, v.reg1, v.info1, **g
        )
        forms[f"multi{number}"] = lambda F, v, g=given: F.contrib.MultiProposal(
            v.cls, v.reg, v.info, **g
        )
    return forms


def _sequence() -> Arrays:
    found: Arrays = {"data": _normal(4, 2, 3), "lengths": np.array([2, 4], np.float32)}
    for name, gates in (("lstm", 4), ("gru", 3), ("rnn", 1)):
        for layers, directions in ((1, 1), (2, 2)):
            size = 0
            for layer in range(layers):
                width = 3 if layer == 0 else 5 * directions
                size += directions * gates * 5 * (width + 5 + 2)
            found[f"{name}{layers}"] = _normal(size) * 0.5
    for layers in (1, 4):
        found[f"h{layers}"], found[f"c{layers}"] = _normal(layers, 2, 5), _normal(layers, 2, 5)
    found["w"] = _normal(5, 3)
    found["r"] = _normal(5, 5) * 0.3
    found["start"] = _normal(2, 5)
    found["x"] = _normal(2, 3)
    found["one"] = np.array([1], np.float32)
    return found


def _recurrent() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        for layers, both in ((1, False), (2, True)):
            for states in (False, True):
                given = {"mode": mode, "num_layers": layers, "bidirectional": both, "state_size": 5}

                def form(F: Any, v: Any, g: Any = given, s: bool = states) -> Any:
                    count = 4 if g["bidirectional"] else 1
                    name = g["mode"].partition("_")[0]
                    inputs = [
                        v.data,
                        getattr(v, f"{name}{g['num_layers']}"),
                        getattr(v, f"h{count}"),
                    ]
                    inputs += [getattr(v, f"c{count}")] if name == "lstm" else []
                    return F.RNN(*inputs, state_outputs=s, **g)

                forms[f"{mode}{layers}{int(states)}"] = form
    forms["zero_state"] = lambda F, v: F.RNN(
        v.data,
        v.lstm1,
        F.zeros((1, 0, 5)),
        F.zeros((1, 0, 5)),
        mode="lstm",
        num_layers=1,
        state_size=5,
    )

    def each(F: Any, v: Any) -> Any:
        def step(x: Any, states: Any) -> Any:
            h = F.Activation(
                F.FullyConnected(x, v.w, num_hidden=5, no_bias=True)
                + F.FullyConnected(states[0], v.r, num_hidden=5, no_bias=True),
                act_type="tanh",
            )
            return [h, h * 2], [h]

        outputs, states = F.contrib.foreach(step, v.data, [v.start])
        return mx.sym.Group([*outputs, *states])

    def loop(F: Any, v: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return [x + i.reshape((1, 1)).broadcast_to((2, 3))], [i + 1, x * 2]

        def goes_on(i: Any, x: Any) -> Any:
            del x
            return F.broadcast_lesser(i, v.one * 3)

        outputs, states = F.contrib.while_loop(goes_on, step, [v.one, v.x], max_iterations=5)
        rows = F.slice_axis(outputs[0], axis=0, begin=0, end=2)
        return mx.sym.Group([rows, *states])

    def branch(F: Any, v: Any, flip: bool) -> Any:
        number = v.one * (-1 if flip else 1)
        return F.contrib.cond(number > 0, lambda: v.x * 2, lambda: v.x - 1)

    forms["foreach"] = each
    forms["while"] = loop
    forms["cond"] = lambda F, v: branch(F, v, False)
    forms["cond_else"] = lambda F, v: branch(F, v, True)
    return forms


def _numpy() -> dict[str, Form]:
    forms: dict[str, Form] = {}
    for name in (
        "absolute arccos arcsin arctan arcsinh arctanh cbrt ceil cos cosh degrees exp expm1 fix "
        "floor log1p negative radians reciprocal rint sign sin sinh square tan tanh trunc "
        "logical_not"
    ).split():
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.u)
        if name not in ("arctanh", "arccos", "arcsin"):
            forms[f"int_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j)
    for name in ("log", "log10", "log2", "sqrt"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.p)
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "nan_to_num"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.odd)
    for name in ("around", "round"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.half)
    forms["around2"] = lambda F, v: F.np.around(v.x, 2)
    binary = (
        "add subtract multiply true_divide mod power maximum minimum hypot arctan2 copysign ldexp "
        "equal not_equal greater greater_equal less less_equal"
    ).split()
    for name in binary:
        forms[f"b_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.p, v.b)
        if name not in ("copysign", "hypot", "arctan2", "ldexp"):
            forms[f"mixed_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j, v.p)
        forms[f"s_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.p, 2.5)
        forms[f"r_{name}"] = lambda F, v, n=name: getattr(F.np, n)(2.5, v.p)
        if name not in ("copysign", "hypot", "arctan2", "ldexp", "power"):
            forms[f"i_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j, 2)
            forms[f"f_{name}"] = lambda F, v, n=name: getattr(F.np, n)(v.j, 1.5)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.i, v.j)
    forms["bitwise_not"] = lambda F, v: F.np.bitwise_not(v.i)
    for suffix, given in (("", {}), ("1", {"axis": 1}), ("k", {"axis": (0, 2), "keepdims": True})):
        for name in ("sum", "mean", "prod", "max", "min", "std", "var"):
            forms[f"{name}{suffix}"] = lambda F, v, n=name, g=given: getattr(F.np, n)(v.x, **g)
        for name in ("sum", "mean", "max"):
            forms[f"int_{name}{suffix}"] = lambda F, v, n=name, g=given: getattr(F.np, n)(v.j, **g)
    forms["var_ddof"] = lambda F, v: F.np.var(v.x, axis=1, ddof=1)
    forms["average"] = lambda F, v: F.np.average(v.x, axis=2, weights=v.c4)
    forms["any"] = lambda F, v: F.np.any(v.mask, axis=1)
    forms["all"] = lambda F, v: F.np.all(v.mask)
    for name in ("argmax", "argmin"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.x)
        forms[f"{name}1"] = lambda F, v, n=name: getattr(F.np, n)(v.x, axis=1)
    forms["cumsum"] = lambda F, v: F.np.cumsum(v.x, axis=1)
    forms["cumsum_int"] = lambda F, v: F.np.cumsum(v.j)
    forms["sort"] = lambda F, v: F.np.sort(v.x, axis=1)
    forms["argsort"] = lambda F, v: F.np.argsort(v.x)
    forms["reshape"] = lambda F, v: F.np.reshape(v.x, (4, -1))
    for number, shape in enumerate(
        ((-2, -1), (-5, 4), (-2, -6, 3, 1, -4), (-4,), (6, -2), (-1, 2))
    ):
        forms[f"npx_reshape{number}"] = lambda F, v, s=shape: F.npx.reshape(v.x, s)
    forms["npx_reshape_drop"] = lambda F, v: F.npx.reshape(v.one, (-3, -2, -3, -2))
    forms["npx_reshape_back"] = lambda F, v: F.npx.reshape(v.x, (-1, -2), reverse=True)
    forms["squeeze"] = lambda F, v: F.np.squeeze(v.one)
    forms["transpose"] = lambda F, v: F.np.transpose(v.x, (1, 2, 0))
    forms["moveaxis"] = lambda F, v: F.np.moveaxis(v.x, 0, 2)
    forms["swapaxes"] = lambda F, v: F.np.swapaxes(v.x, 0, 1)
    forms["rot90"] = lambda F, v: F.np.rot90(v.x)
    forms["rot90_3"] = lambda F, v: F.np.rot90(v.x, k=3, axes=(1, 2))
    forms["flip"] = lambda F, v: F.np.flip(v.x, axis=1)
    forms["roll"] = lambda F, v: F.np.roll(v.x, 2, axis=2)
    forms["roll_all"] = lambda F, v: F.np.roll(v.x, 3)
    forms["expand"] = lambda F, v: F.np.expand_dims(v.x, 1)
    forms["concatenate"] = lambda F, v: F.np.concatenate([v.x, v.y], axis=1)
    forms["stack"] = lambda F, v: F.np.stack([v.x, v.y], axis=1)
    for name in ("vstack", "hstack", "dstack"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)([v.x, v.y])
    forms["column_stack"] = lambda F, v: F.np.column_stack([v.v, v.v])
    forms["split"] = lambda F, v: mx.sym.Group(F.np.split(v.x, [1, 3], axis=2))
    forms["hsplit"] = lambda F, v: mx.sym.Group(F.np.hsplit(v.x, 3))
    forms["tile"] = lambda F, v: F.np.tile(v.x, (2, 1, 1))
    forms["repeat"] = lambda F, v: F.np.repeat(v.x, 2, axis=1)
    forms["broadcast_to"] = lambda F, v: F.np.broadcast_to(v.b, (2, 3, 4))
    for mode in ("constant", "edge", "reflect"):
        forms[f"pad_{mode}"] = lambda F, v, m=mode: F.np.pad(v.x, ((0, 0), (1, 2), (2, 1)), mode=m)
    for name in ("diag", "trace"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(v.m)
    forms["diagonal"] = lambda F, v: F.np.diagonal(v.x, 1, 1, 2)
    forms["diagflat"] = lambda F, v: F.np.diagflat(v.v)
    forms["tril"] = lambda F, v: F.np.tril(v.x, 1)
    forms["dot"] = lambda F, v: F.np.dot(v.m, F.np.transpose(v.m))
    forms["dot3"] = lambda F, v: F.np.dot(v.m, F.np.transpose(v.x, (0, 2, 1)))
    forms["dot_v"] = lambda F, v: F.np.dot(v.v, v.v)
    forms["matmul"] = lambda F, v: F.np.matmul(v.x, F.np.transpose(v.y, (0, 2, 1)))
    forms["einsum"] = lambda F, v: F.np.einsum("bij,bkj->bik", v.x, v.y)
    forms["tensordot"] = lambda F, v: F.np.tensordot(v.x, v.y, axes=([1, 2], [1, 2]))
    forms["tensordot_n"] = lambda F, v: F.np.tensordot(v.x, F.np.transpose(v.m), axes=1)
    forms["where"] = lambda F, v: F.np.where(v.mask, v.x, v.b)
    forms["where_s"] = lambda F, v: F.np.where(v.mask, v.x, 2.0)
    forms["clip"] = lambda F, v: F.np.clip(v.x, -0.5, 0.5)
    forms["take"] = lambda F, v: F.np.take(v.x, v.i, axis=2, mode="wrap")
    forms["arange"] = lambda F, v: F.np.arange(2, 8, 1.5)
    forms["linspace"] = lambda F, v: F.np.linspace(0, 1, 5)
    forms["linspace_open"] = lambda F, v: F.np.linspace(0, 1, 5, endpoint=False)
    forms["logspace"] = lambda F, v: F.np.logspace(0, 1, 4)
    forms["eye"] = lambda F, v: F.np.eye(3, 4, 1)
    forms["identity"] = lambda F, v: F.np.identity(3)
    forms["zeros"] = lambda F, v: F.np.zeros((2, 3))
    forms["ones"] = lambda F, v: F.np.ones((2, 3), dtype="int32")
    forms["full"] = lambda F, v: F.np.full((2, 3), 1.5)
    forms["full_like"] = lambda F, v: F.np.full_like(v.x, 3)
    forms["indices"] = lambda F, v: F.np.indices((2, 3))
    for name in ("hanning", "hamming", "blackman"):
        forms[name] = lambda F, v, n=name: getattr(F.np, n)(6)
    forms["norm"] = lambda F, v: F.np.linalg.norm(v.x)
    forms["norm1"] = lambda F, v: F.np.linalg.norm(v.x, axis=1, ord=1)
    forms["norm2"] = lambda F, v: F.np.linalg.norm(v.x, axis=2, keepdims=True)
    forms["relu"] = lambda F, v: F.npx.relu(v.x)
    forms["sigmoid"] = lambda F, v: F.npx.sigmoid(v.x)
    forms["softmax"] = lambda F, v: F.npx.softmax(v.x, axis=1)
    forms["pick"] = lambda F, v: F.npx.pick(v.x, v.k)
    forms["topk"] = lambda F, v: F.npx.topk(v.x, k=2)
    forms["one_hot"] = lambda F, v: F.npx.one_hot(v.k, 4)
    forms["layer_norm"] = lambda F, v: F.npx.layer_norm(v.x, v.c4, v.c4b)
    forms["fc"] = lambda F, v: F.npx.fully_connected(v.x, v.fc2, v.c5, num_hidden=5, flatten=False)
    return forms


TOPICS: dict[str, tuple[Callable[[], dict[str, Form]], float]] = {
    "activation": (_activation, 1e-5),
    "detection": (_detection, 2e-5),
    "elementwise": (_elementwise, 1e-5),
    "indexing": (_indexing, 1e-6),
    "linear": (_linear, 2e-5),
    "movement": (_movement, 1e-6),
    "normalization": (_normalization, 1e-5),
    "pooling": (_pooling, 1e-5),
    "numpy": (_numpy, 1e-5),
    "recurrent": (_recurrent, 1e-5),
    "reduction": (_reduction, 1e-5),
}


# Nets

ZOO: dict[str, int] = {
    "alexnet": 224,
    "densenet121": 224,
    "densenet161": 224,
    "densenet169": 224,
    "densenet201": 224,
    "inceptionv3": 299,
    "mobilenet0.25": 64,
    "mobilenet0.5": 64,
    "mobilenet0.75": 64,
    "mobilenet1.0": 64,
    "mobilenetv2_0.25": 64,
    "mobilenetv2_0.5": 64,
    "mobilenetv2_0.75": 64,
    "mobilenetv2_1.0": 64,
    "resnet18_v1": 64,
    "resnet18_v2": 64,
    "resnet34_v1": 64,
    "resnet34_v2": 64,
    "resnet50_v1": 64,
    "resnet50_v2": 64,
    "resnet101_v2": 64,
    "squeezenet1.0": 224,
    "squeezenet1.1": 224,
    "vgg11": 64,
    "vgg13_bn": 64,
    "vgg16": 64,
}
"""Nets of Gluon's model zoo, and the height and width of their images here."""


def make_net(folder: Path, name: str, size: int) -> None:
    """A net with random weights, as `export` writes it."""
    mx.random.seed(1)
    mx.random.seed(1, ctx=mx.cpu())
    net = mx.gluon.model_zoo.vision.get_model(name)
    net.initialize(mx.init.Xavier(magnitude=2.5))
    net.hybridize()
    data = np.random.default_rng(2).normal(size=(1, 3, size, size)).astype(np.float32)
    expected = net(mx.nd.array(data)).asnumpy()
    folder.mkdir(parents=True, exist_ok=True)
    net.export(str(folder / "model"))
    symbol = mx.sym.load(str(folder / "model-symbol.json"))
    largest = float(np.abs(expected).max())
    _save_answers(folder, symbol.list_outputs(), {"data": data}, [expected], 1e-4 * largest)


def main() -> None:
    """Write the cases whose names match."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]) / "mxnet"
    wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    for name, (forms, tolerance) in TOPICS.items():
        if wanted.search(f"forms_{name}"):
            if name == "numpy":
                mx.npx.set_np()
            arrays = {"detection": _boxes, "recurrent": _sequence}.get(name, _common)()
            make_forms(folder / f"forms_{name}", arrays, forms(), tolerance)
            pack(folder / f"forms_{name}")
            mx.npx.reset_np()
    for name, size in ZOO.items():
        if wanted.search(f"net_{name}"):
            make_net(folder / f"net_{name.replace('.', '_')}", name, size)


if __name__ == "__main__":
    main()
