"""Forms of MXNet's operators: elements, activations, reductions, movement, indexing, matrices."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

mx: Any = import_module("mxnet")
Array = Any
Arrays = dict[str, Array]
Form = Callable[[Any, Any], Any]
"""What is made of the functions of `mx.sym` and of variables by name."""

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def ints(low: int, high: int, *shape: int) -> Array:
    return RANDOM.integers(low, high, shape).astype(np.float32)


def common() -> Arrays:
    return {
        "x": normal(2, 3, 4),
        "y": normal(2, 3, 4),
        "b": normal(2, 1, 4),
        "p": np.abs(normal(2, 3, 4)) + 0.1,
        "u": RANDOM.uniform(-0.95, 0.95, (2, 3, 4)).astype(np.float32),
        "m": normal(3, 4),
        "label": normal(3, 4),
        "label3": ints(0, 4, 3),
        "label23": ints(0, 4, 2, 3),
        "label42": ints(0, 4, 2, 42),
        "v": normal(5),
        "one": normal(1, 3, 1, 4),
        "i": RANDOM.integers(-5, 6, (2, 3, 4)).astype(np.int32),
        "j": RANDOM.integers(1, 5, (2, 3, 4)).astype(np.int32),
        "bytes": RANDOM.integers(0, 200, (2, 3, 4)).astype(np.uint8),
        "h": normal(2, 3, 4).astype(np.float16),
        "d": RANDOM.normal(size=(2, 3, 4)),
        "half": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.2, -0.7], np.float32),
        "odd": np.array([0, -0.0, 1, -1, np.nan, np.inf, -np.inf], np.float32),
        "z": np.array([1, 0, -2, 0, 3, 0, 1], np.float32),
        "mask": (normal(2, 3, 4) > 0).astype(np.float32),
        "row": np.array([1, 0], np.float32),
        "index": ints(-1, 5, 2, 3),
        "k": ints(0, 4, 2, 3),
        "k0": ints(0, 3, 2, 4),
        "img": normal(2, 4, 7, 6),
        "img2": normal(2, 4, 7, 6),
        "big": normal(2, 4, 9, 8),
        "last": normal(2, 7, 6, 4),
        "seq": normal(2, 4, 9),
        "vol": normal(1, 4, 5, 6, 5),
        "w2": normal(6, 4, 3, 2),
        "w2g": normal(6, 2, 3, 3),
        "wd": normal(4, 1, 3, 3),
        "w1": normal(6, 4, 3),
        "w3": normal(2, 4, 2, 3, 2),
        "t2": normal(4, 3, 3, 2),
        "t2g": normal(4, 3, 4, 4),
        "t1": normal(4, 2, 3),
        "c4": normal(4),
        "c4b": normal(4),
        "c4m": normal(4),
        "c4v": np.abs(normal(4)) + 0.2,
        "c6": normal(6),
        "c3": normal(3),
        "c2": normal(2),
        "fc": normal(5, 12),
        "fc2": normal(5, 4),
        "c5": normal(5),
        "len2": np.array([2, 4], np.float32),
        "len3": np.array([3, 1, 2], np.float32),
        "time": normal(4, 2, 3),
        "table": normal(7, 3),
    }


_UNARY = """abs arccos arcsin arctan arcsinh arctanh cbrt ceil cos cosh degrees erf erfinv exp expm1
    fix floor gamma gammaln log log10 log1p log2 logical_not negative radians rcbrt reciprocal relu
    rint round rsqrt sigmoid sign sin sinh softsign sqrt square tan tanh trunc zeros_like ones_like
    hard_sigmoid BlockGrad identity""".split()
_POSITIVE = ("log", "log10", "log2", "rsqrt", "sqrt", "rcbrt", "gamma", "gammaln", "log1p")


def elementwise() -> dict[str, Form]:
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
    for dtype in ("float64", "float16", "int32", "int8", "int64"):
        forms[f"cast_{dtype}"] = lambda F, v, d=dtype: F.Cast(v.half, dtype=d)
    # What a negative number is without a sign, C leaves open.
    forms["cast_uint8"] = lambda F, v: F.Cast(F.abs(v.half), dtype="uint8")
    forms["cast_int"] = lambda F, v: F.Cast(v.i, dtype="float32")
    forms["dropout"] = lambda F, v: F.Dropout(v.x, p=0.3)
    forms["halves"] = lambda F, v: F.broadcast_mul(v.h, v.h) + 1.5
    forms["cast_bytes"] = lambda F, v: F.Cast(v.bytes, dtype="float32") / 255
    forms["amp_cast"] = lambda F, v: F.amp_cast(v.x, dtype="float16")
    forms["amp_multicast"] = lambda F, v: F.amp_multicast(v.x, v.h, num_outputs=2)
    return forms


def activation() -> dict[str, Form]:
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


def reduction() -> dict[str, Form]:
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


def movement() -> dict[str, Form]:
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


def indexing() -> dict[str, Form]:
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


def linear() -> dict[str, Form]:
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


def normalization() -> dict[str, Form]:
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
