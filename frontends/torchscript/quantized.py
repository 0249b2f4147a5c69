"""
Layers on quantized tensors, which `torch.ao.quantization` leaves in TorchScript.

A quantized tensor is the real numbers that its bytes stand for: the result of a node that makes
them of bytes. A layer computes with real numbers what PyTorch computes with integers, and rounds
to bytes again, as a program of PT2E says it, so that the same passes make integers of it. Results
are PyTorch's within one step, since real numbers close to the middle of two steps may fall to
either side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.pt2.ops import Pt2Op
from lowerdeck.frontends.pt2.aliases import VIEWS
from lowerdeck.frontends.torchscript.functions import FUNCTIONS, Caller
from lowerdeck.frontends.torchscript.operators import describe
from lowerdeck.frontends.torchscript.values import Instance, ScriptError, Tensor, leaves

_BYTES: Mapping[int, tuple[int, int, int]] = {12: (-128, 127, 1), 13: (0, 255, 0)}
"""Limits and element type of quantized elements, all types by PyTorch's numbers."""

_STEPS = "quantized_decomposed.dequantize_per_tensor.default"

_KEEPING = VIEWS | frozenset(
    "clone max_pool1d max_pool2d max_pool3d relu channel_shuffle pixel_shuffle pixel_unshuffle "
    "repeat flip roll index_select".split()
)
"""Operators whose results are elements of their first operand, or zeros."""

_ROUNDED = frozenset(
    "mean leaky_relu upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d "
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d"
    "".split()
)
"""Operators that PyTorch computes with bytes, and whose results have the steps of these."""

_OWN_STEPS = {
    "sigmoid": (1 / 256, 0),
    "hardsigmoid": (1 / 256, 0),
    "tanh": (2 / 256, 128),
    **dict.fromkeys("elu hardtanh clamp clamp_min clamp_max pad constant_pad_nd".split(), None),
}
"""Others: scale and zero point of unsigned bytes, if these are not those of the operand."""


@dataclass(frozen=True)
class Steps:
    """The real numbers that bytes stand for: scale * (byte - zero)."""

    scale: Any
    zero: Any
    code: int
    """PyTorch's number of the element type."""


def steps_of(caller: Caller, x: Any) -> Steps | None:
    """The steps of a quantized tensor; None for any other value."""
    if not isinstance(x, Tensor):
        return None
    op = caller.read(x).owner
    while isinstance(op, Pt2Op) and op.op_type.split(".")[1].rstrip("_") in _KEEPING:
        op = op.operands[0].owner
    if not isinstance(op, Pt2Op) or op.op_type != _STEPS:
        return None
    low = op.argument("quant_min")
    code = next(code for code, (least, _, _) in _BYTES.items() if least == low)
    return Steps(op.argument("scale"), op.argument("zero_point"), code)


def quantized(caller: Caller, x: Any, steps: Steps) -> Any:
    """A tensor rounded to steps."""
    return _of_bytes(caller, _bytes(caller, x, steps), steps)


def _bytes(caller: Caller, x: Any, steps: Steps) -> Any:
    args = [x, *_numbers(steps)]
    return caller.call("quantized_decomposed.quantize_per_tensor", args, {})


def _of_bytes(caller: Caller, x: Any, steps: Steps) -> Any:
    args = [x, *_numbers(steps)]
    return caller.call("quantized_decomposed.dequantize_per_tensor", args, {})


def _numbers(steps: Steps) -> list[Any]:
    if steps.code not in _BYTES:
        raise ScriptError(f"quantized elements of type number {steps.code}, expected bytes")
    return [steps.scale, steps.zero, *_BYTES[steps.code]]


def called(
    caller: Caller, target: str, name: str, args: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What an operator of `aten` gives, rounded to steps if its operand is quantized."""
    plain = name.rstrip("_")
    is_rounded = plain in _ROUNDED or plain in _OWN_STEPS
    steps = steps_of(caller, args[0]) if is_rounded and args else None
    if steps is None:
        return caller.call(target, args, keywords)
    target = target.rstrip("_")
    if plain in _ROUNDED:  # of whole numbers, where halves are exact
        whole = replace(steps, scale=1.0)
        x = _of_bytes(caller, _bytes(caller, args[0], steps), whole)
        y = caller.call(target, [x, *args[1:]], keywords)
        found = _of_bytes(caller, _bytes(caller, y, whole), steps)
    else:
        if (own := _OWN_STEPS[plain]) is not None:
            scale, zero = own
            steps = Steps(scale, zero + _BYTES[steps.code][0], steps.code)
        found = quantized(caller, caller.call(target, args, keywords), steps)
    if plain == name:
        return found
    caller.write(args[0], caller.value_of(found))
    return args[0]


def weight(caller: Caller, x: Tensor, kind: str, rest: Sequence[Any]) -> Any:
    """The real numbers of a stored tensor of bytes, by one scale or by one of each row."""
    code = 0 if str(caller.element(x)) == "ui8" else 1
    limits = next(limits for limits in _BYTES.values() if limits[2] == code)
    if kind == "per_tensor_affine":
        scale, zero = rest
        args = [x, scale, zero, *limits]
        return caller.call("quantized_decomposed.dequantize_per_tensor", args, {})
    if kind != "per_channel_affine":
        raise ScriptError(f"quantized elements of the scheme {kind}")
    scales, zeros, axis = rest
    args = [x, scales, zeros, axis, *limits]
    return caller.call("quantized_decomposed.dequantize_per_channel", args, {})


# Layers


def packed(caller: Caller, kind: str, state: Any) -> Instance:
    """What an object of PyTorch's own class `kind` holds, such as weights and a bias."""
    match kind, state:
        case "LinearPackedParamsBase", [weight, bias]:
            return _packed(weight, bias)
        case "Conv2dPackedParamsBase" | "Conv3dPackedParamsBase", ["2", [form, weight], [bias]]:
            op = caller.read(form).owner
            numbers = [int(n) for n in op.array] if isinstance(op, ConstantOp) else []
            return _packed(weight, bias, **_window(numbers))
        case "CellParamsBase", ["quantized_dynamic", _, _, [reduces_range], [before, behind]]:
            return _cell([before, behind], 127 if reduces_range else 255)
        case "CellParamsBase", ["quantized_fp16", _, _, _, [before, behind]]:
            return _cell([before, behind], None)
        case _:
            return Instance(kind, {})  # what takes it is refused


def _window(numbers: Sequence[int]) -> dict[str, Any]:
    """The rank, four lists of that length, the groups, and whether a convolution is transposed."""
    rank, *rest, groups, is_transposed = numbers
    names = ("stride", "padding", "dilation", "output_padding")
    found: dict[str, Any] = {key: rest[k * rank : (k + 1) * rank] for k, key in enumerate(names)}
    if not is_transposed:
        del found["output_padding"]
    return found | {"groups": groups}


def _packed(weight: Any, bias: Any = None, **window: Any) -> Instance:
    return Instance("packed weights", {"weight": weight, "bias": bias, "window": window})


def _weights(layer: Any) -> tuple[Any, Any, dict[str, Any]]:
    if not isinstance(layer, Instance) or "weight" not in layer.attributes:
        raise ScriptError(f"weights in {layer.type if isinstance(layer, Instance) else layer}")
    held = layer.attributes
    return held["weight"], held["bias"], held["window"]


def _pack(_: Caller, weight: Any, bias: Any = None, *window: Any) -> Instance:
    names = ("stride", "padding", "dilation", "groups")
    return _packed(weight, bias, **dict(zip(names, window, strict=False)))


def _pack_transposed(_: Caller, weight: Any, bias: Any = None, *window: Any) -> Instance:
    names = ("stride", "padding", "output_padding", "dilation", "groups")
    return _packed(weight, bias, **dict(zip(names, window, strict=True)))


def _pack_half(caller: Caller, weight: Any, bias: Any = None) -> Instance:
    """Weights of half precision."""
    half = caller.call("aten.to", [weight, 5], {})
    return _packed(caller.call("aten.to", [half, 6], {}), bias)


def _layer(name: str, *, relu: bool = False) -> Callable[..., Any]:
    """A convolution or product, then quantized: x, the packed weights, ..., scale, zero point."""

    def call(caller: Caller, x: Any, layer: Any, *rest: Any) -> Any:
        caller.located(name)
        weight, bias, window = _weights(layer)
        y = caller.call(f"aten.{name}", [x, weight, bias], window)
        return _finished(caller, y, x, rest[-2:], relu=relu)

    return call


def _finished(caller: Caller, y: Any, x: Any, steps: Sequence[Any], *, relu: bool = False) -> Any:
    """A result in bytes of the type of an operand."""
    before = steps_of(caller, x)
    if before is None:
        raise ScriptError(f"{describe(x)} that is not quantized")
    y = caller.call("aten.relu", [y], {}) if relu else y
    scale, zero = steps if steps[0] is not None else (before.scale, before.zero)
    return quantized(caller, y, Steps(scale, zero, before.code))


def _dynamic(name: str, *, relu: bool = False) -> Callable[..., Any]:
    """A layer whose input is quantized by its own extrema."""

    def call(caller: Caller, x: Any, layer: Any, reduce_range: bool = False) -> Any:
        caller.located(name)
        weight, bias, window = _weights(layer)
        limits = (0, 127 if reduce_range else 255)
        choice = [x, *limits, 1e-30, 0]
        steps = caller.call("quantized_decomposed.choose_qparams", choice, {})
        rest = [*(caller.item(one) for one in steps), *limits, 0]
        y = caller.call("quantized_decomposed.quantize_per_tensor", [x, *rest], {})
        y = caller.call("quantized_decomposed.dequantize_per_tensor", [y, *rest], {})
        y = caller.call(f"aten.{name}", [y, weight, bias], window)
        return caller.call("aten.relu", [y], {}) if relu else y

    return call


def _cell(layers: Sequence[Any], most: int | None) -> Instance:
    """
    Layers that the input and the state go through, and the largest of the bytes that both become.
    """
    return Instance("packed weights of a cell", {"layers": layers, "most": most})


def _make_cell(
    _: Caller, before: Any, behind: Any, bias: Any, other: Any, reduces_range: bool = False
) -> Instance:
    """The biases are those of the layers."""
    del bias, other
    return _cell([before, behind], 127 if reduces_range else 255)


def _make_half_cell(_: Caller, before: Any, behind: Any) -> Instance:
    return _cell([before, behind], None)


def _recurrent(name: str) -> Callable[..., Any]:
    """A layer that remembers, whose inputs and states are quantized by their own extrema."""

    def call(caller: Caller, *args: Any, **_: Any) -> Any:
        caller.located(f"quantized_{name}")
        form = "data" if isinstance(args[3], list) else "input"
        place = 3 if form == "data" else 2
        weights, limits = list[Any](), set[int | None]()
        for cell in args[place]:
            limits.add(cell.attributes["most"])
            found = [_weights(layer)[:2] for layer in cell.attributes["layers"]]
            weights += [weight for weight, _ in found]
            weights += [bias for _, bias in found if bias is not None]
        if len(limits) != 1:
            raise ScriptError("layers whose steps are chosen in several ways")
        (most,) = limits
        target = f"aten.{name}"
        if most is not None:
            target = f"aten.quantized_{name}"
            weights.append(caller.call("aten.scalar_tensor", [most], {"dtype": 4}))
        return caller.call(target, [*args[:place], weights, *args[place + 1 :]], {})

    return call


def _step(name: str) -> Callable[..., Any]:
    """One step of such a layer: x, the states, the layers of both, and their biases."""

    def call(caller: Caller, x: Any, states: Any, before: Any, behind: Any, *biases: Any) -> Any:
        several = isinstance(states, list)
        given = cast("list[Any]", states) if several else [states]
        x, *rows = (caller.call("aten.unsqueeze", [one, 0], {}) for one in (x, *given))
        cell = _make_cell(caller, before, behind, *biases, reduces_range=True)
        rest = [[cell], True, 1, 0.0, False, False, False]
        _, *after = _recurrent(name)(caller, x, rows if several else rows[0], *rest)
        found = [caller.call("aten.squeeze", [one, 0], {}) for one in after]
        return tuple(found) if several else found[0]

    return call


def _plain_step(name: str) -> Callable[..., Any]:
    """One step of a layer without gates."""

    def call(caller: Caller, x: Any, state: Any, before: Any, behind: Any, *_: Any) -> Any:
        caller.located(name)
        parts = [_dynamic("linear")(caller, *pair, True) for pair in ((x, before), (state, behind))]
        return caller.call(f"aten.{name}", [caller.call("aten.add", parts, {})], {})

    return call


def _half(caller: Caller, x: Any, layer: Any) -> Any:
    caller.located("linear")
    weight, bias, _ = _weights(layer)
    return caller.call("aten.linear", [x, weight, bias], {})


def _of(name: str, places: Sequence[int], *, relu: bool = False) -> Callable[..., Any]:
    """An operator of `aten` on some of the arguments, whose last ones are scale and zero point."""

    def call(caller: Caller, *args: Any) -> Any:
        caller.located(name)
        first: Any = next(leaves(args[0]), None)
        y = caller.call(f"aten.{name}", [args[k] for k in places], {})
        return _finished(caller, y, first, args[-2:], relu=relu)

    return call


def _relu6(caller: Caller, x: Any, inplace: bool = False) -> Any:
    caller.located("relu6")
    name = "hardtanh_" if inplace else "hardtanh"
    return called(caller, "aten.hardtanh", name, [x, 0, 6], {})


def _exponential(caller: Caller, x: Any, scale: Any, zero: Any, *numbers: Any) -> Any:
    caller.located("elu")
    name = "aten.elu" if len(numbers) == 3 else "aten.celu"
    return _finished(caller, caller.call(name, [x, *numbers], {}), x, (scale, zero))


def _normalized(caller: Caller, *args: Any, relu: bool = False) -> Any:
    """Batch normalization: x, weight, bias, mean, variance, epsilon, scale, zero point."""
    x, weight, bias, center, spread, epsilon, *steps = args
    caller.located("batch_norm")
    rest = [weight, bias, center, spread, False, 0.0, epsilon, False]
    y = caller.call("aten.batch_norm", [x, *rest], {})
    return _finished(caller, y, x, steps, relu=relu)


def _normalized_relu(caller: Caller, *args: Any) -> Any:
    return _normalized(caller, *args, relu=True)


def _instance_norm(
    caller: Caller, x: Any, weight: Any, bias: Any, epsilon: Any, *steps: Any
) -> Any:
    caller.located("instance_norm")
    rest = [weight, bias, None, None, True, 0.0, epsilon, False]
    return _finished(caller, caller.call("aten.instance_norm", [x, *rest], {}), x, steps)


def _softmax(caller: Caller, x: Any, dim: Any, *steps: Any) -> Any:
    caller.located("softmax")
    return _finished(caller, caller.call("aten.softmax", [x, dim, None], {}), x, steps)


# Functions of `torch`


def _quantize(caller: Caller, x: Any, scale: Any, zero: Any, code: Any) -> Any:
    caller.located("quantize_per_tensor")
    scale, zero = (caller.item(one) if isinstance(one, Tensor) else one for one in (scale, zero))
    return quantized(caller, x, Steps(scale, zero, code))


def _dequantize(caller: Caller, x: Any) -> Any:
    caller.located("dequantize")
    return caller.call("aten.clone", [x], {})


def _is_quantized(caller: Caller, x: Any) -> bool:
    return steps_of(caller, x) is not None


def _scale(caller: Caller, x: Any) -> Any:
    steps = steps_of(caller, x)
    return 1.0 if steps is None else steps.scale


def _zero_point(caller: Caller, x: Any) -> Any:
    steps = steps_of(caller, x)
    return 0 if steps is None else steps.zero


def _registered() -> Mapping[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "linear_prepack": _pack,
        "linear_prepack_fp16": _pack_half,
        "linear_dynamic_fp16": _half,
        "add": _of("add", (0, 1)),
        "add_relu": _of("add", (0, 1), relu=True),
        "mul": _of("mul", (0, 1)),
        "mul_relu": _of("mul", (0, 1), relu=True),
        "matmul": _of("matmul", (0, 1)),
        "cat": _of("cat", (0, 1)),
        "cat_relu": _of("cat", (0, 1), relu=True),
        "hardswish": _of("hardswish", (0,)),
        "sigmoid": _of("sigmoid", (0,)),
        "leaky_relu": _of("leaky_relu", (0, 1)),
        "prelu": _of("prelu", (0, 1)),
        "layer_norm": _of("layer_norm", (0, 1, 2, 3, 4)),
        "group_norm": _of("group_norm", (0, 1, 2, 3, 4)),
        "relu6": _relu6,
        "elu": _exponential,
        "celu": _exponential,
        "instance_norm": _instance_norm,
        "softmax": _softmax,
        "batch_norm": _normalized,
        "batch_norm_relu": _normalized_relu,
    }
    for k in (1, 2, 3):
        found |= {
            f"conv{k}d_prepack": _pack,
            f"conv_transpose{k}d_prepack": _pack_transposed,
            f"conv{k}d": _layer(f"conv{k}d"),
            f"conv{k}d_relu": _layer(f"conv{k}d", relu=True),
            f"conv{k}d_dynamic": _dynamic(f"conv{k}d"),
            f"conv_transpose{k}d": _layer(f"conv_transpose{k}d"),
            f"batch_norm{k}d": _normalized,
            f"batch_norm{k}d_relu": _normalized_relu,
        }
    found |= {
        "linear": _layer("linear"),
        "linear_relu": _layer("linear", relu=True),
        "linear_dynamic": _dynamic("linear"),
        "linear_relu_dynamic": _dynamic("linear", relu=True),
        "make_quantized_cell_params_dynamic": _make_cell,
        "make_quantized_cell_params_fp16": _make_half_cell,
        "quantized_lstm_cell_dynamic": _step("lstm"),
        "quantized_gru_cell_dynamic": _step("gru"),
        "quantized_rnn_tanh_cell_dynamic": _plain_step("tanh"),
        "quantized_rnn_relu_cell_dynamic": _plain_step("relu"),
    }
    return {f"quantized.{name}": call for name, call in found.items()}


FUNCTIONS.update(_registered())
FUNCTIONS.update(
    {
        "quantize_per_tensor": _quantize,
        "dequantize": _dequantize,
        "is_quantized": _is_quantized,
        "q_scale": _scale,
        "q_zero_point": _zero_point,
        "quantized_lstm": _recurrent("lstm"),
        "quantized_gru": _recurrent("gru"),
    }
)
