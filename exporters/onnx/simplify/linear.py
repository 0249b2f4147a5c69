"""What stands around convolutions and products becomes part of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import element_type, i64, is_float, rank_of, static_shape
from lowerdeck.dialects.numbers import dense_ints
from lowerdeck.dialects.onnx.ops import NONE, InitializerOp, OnnxOp
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.exporters.onnx.simplify.identities import pads_of
from lowerdeck.exporters.onnx.simplify.known import Known, constant, made_by, only_user, scalar
from lowerdeck.passes.linear.affine import is_representable
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter

Array: TypeAlias = NDArray[Any]
_Weights: TypeAlias = tuple[Array, Array]
"""The weights and the bias of a convolution."""


class AbsorbAffine(Pattern[_Weights]):
    """
    affine(conv(x, w, b)) -> conv(x, w * scale, b * scale + shift)
    [affine: inference of BatchNormalization, or Mul, Add, Sub or Div with a constant a channel;
    conv: Conv or ConvTranspose with constant weights, which nothing else reads]

    Computed in f64 and rounded once; nothing may leave the range of the type.
    """

    name = "absorb-affine"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[_Weights] | None:
        if op.op_type not in _AFFINE or op.domain or any(r.type != NONE for r in op.results[1:]):
            return None
        for value in op.operands[:2]:
            conv = made_by(value, "Conv", "ConvTranspose")
            if conv is None or only_user(value) is not op:
                continue
            if (found := _absorbed(op, conv)) is not None:
                return Match((op, conv), "an affine map of each channel", found)
        return None

    def rewrite(self, match: Match[_Weights], rewriter: Rewriter) -> None:
        root, conv = match.consumed
        new = [
            rewriter.insert_before(conv, _initializer(array, name))
            for array, name in zip(match.data, ("weight", "bias"), strict=True)
        ]
        rewriter.set_operands(conv, [conv.operands[0], *(one.output for one in new)])
        rewriter.replace_value(root.results[0], conv.results[0])
        rewriter.erase(root)


def _absorbed(op: OnnxOp, conv: OnnxOp) -> _Weights | None:
    """The weights and the bias of a convolution that computes what `op` makes of its result."""
    weight, bias = constant(conv.operands[1]), constant(conv.input(2))
    element = element_type(conv.operands[1])
    if weight is None or (conv.input(2) is not None and bias is None) or not is_float(element):
        return None
    groups, axis = conv.get_int("group") or 1, _output_axis(conv)
    channels = weight.shape[axis] * (groups if axis else 1)
    with np.errstate(all="ignore"):
        if (found := _affine(op, conv.results[0], channels, weight.ndim)) is None:
            return None
        scale, shift = found
        new = _scaled(conv, weight, scale, groups)
        total = shift if bias is None else bias.astype(np.float64) * scale + shift
    others = [each for each in range(weight.ndim) if each != axis]
    if not (is_representable(new, element, others) and is_representable(total, element)):
        return None
    return new.astype(weight.dtype), total.astype(weight.dtype)


def _output_axis(conv: OnnxOp) -> int:
    """The axis of the weights that has the output channels, for ConvTranspose those of a group."""
    return 0 if conv.op_type == "Conv" else 1


def _scaled(conv: OnnxOp, weight: Array, scale: Array, groups: int) -> Array:
    """Weights times a factor for each output channel, in f64."""
    wide, spatial = weight.astype(np.float64), [1] * (weight.ndim - 2)
    if conv.op_type == "Conv":
        return wide * scale.reshape(-1, 1, *spatial)
    per_group = wide.reshape(groups, -1, *weight.shape[1:])
    return (per_group * scale.reshape(groups, 1, -1, *spatial)).reshape(weight.shape)


_AFFINE = ("BatchNormalization", "Mul", "Add", "Sub", "Div")


def _affine(op: OnnxOp, x: SSAValue, channels: int, rank: int) -> tuple[Array, Array] | None:
    """The factor and the summand for each channel, in f64."""
    one, zero = np.ones(channels), np.zeros(channels)
    if op.op_type == "BatchNormalization":
        parameters = [constant(value) for value in op.operands[1:5]]
        if not is_inference(op) or any(p is None or p.shape != (channels,) for p in parameters):
            return None
        gamma, beta, mean, variance = (p.astype(np.float64) for p in parameters if p is not None)
        scale = gamma / np.sqrt(variance + (op.get_float("epsilon") or 0.0))
        return scale, beta - mean * scale
    other = op.operands[1] if op.operands[0] is x else op.operands[0]
    array = constant(other)
    if array is None or other is x or op.since_version < 7 or array.ndim > rank:
        return None
    whole = array.reshape([1] * (rank - array.ndim) + list(array.shape))
    if whole.size != whole.shape[1] or whole.shape[1] not in (1, channels):
        return None
    value = np.broadcast_to(whole.reshape(-1).astype(np.float64), (channels,))
    is_first = op.operands[0] is x
    match op.op_type:
        case "Mul":
            return value, zero
        case "Div":
            return (1 / value, zero) if is_first and value.all() else None
        case "Add":
            return one, value
        case _:
            return (one, -value) if is_first else (-one, value)


def is_inference(op: OnnxOp) -> bool:
    """True for a BatchNormalization of given statistics, one a channel."""
    if op.since_version >= 14:
        return not op.get_int("training_mode")
    if op.since_version < 9 and op.get_int("spatial") == 0:
        return False
    return op.since_version >= 7 or op.get_int("is_test") == 1


def _initializer(array: Array, hint: str) -> InitializerOp:
    op = InitializerOp(TensorAttr.of(array))
    op.output.name_hint = hint
    return op


class AbsorbPad(Pattern[list[int]]):
    """
    f(pad(x, zeros)) -> f(x) with pads
    [f: Conv, which pads with zeros, too; only spatial dimensions are padded]
    """

    name = "absorb-pad"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[list[int]] | None:
        if op.op_type != "Conv" or op.domain or op.get_string("auto_pad") not in (None, "NOTSET"):
            return None
        pad = made_by(op.operands[0], "Pad")
        if pad is None or only_user(op.operands[0]) is not op or (amounts := pads_of(pad)) is None:
            return None
        rank = len(amounts) // 2
        begin, end = amounts[:rank], amounts[rank:]
        if pad.get_string("mode") not in (None, "constant") or not _pads_with_zero(pad):
            return None
        if any((*begin[:2], *end[:2])) or min(amounts) < 0:
            return None
        own = op.get_ints("pads") or (0,) * (2 * (rank - 2))
        together = [a + b for a, b in zip(own, (*begin[2:], *end[2:]), strict=True)]
        return Match((op, pad), "padding with zeros", together)

    def rewrite(self, match: Match[list[int]], rewriter: Rewriter) -> None:
        root, pad = match.consumed
        root.properties["pads"] = dense_ints(match.data)
        rewriter.set_operands(root, [pad.operands[0], *root.operands[1:]])


def _pads_with_zero(pad: OnnxOp) -> bool:
    if pad.since_version < 11:
        return not pad.get_float("value")
    value = pad.input("constant_value")
    return value is None or scalar(value) == 0


class FormGemm(Pattern[tuple[SSAValue, SSAValue, SSAValue]]):
    """add(matmul(a, b), c) -> gemm(a, b, c) [matrices of floats; c is one row]"""

    name = "form-gemm"
    roots = (OnnxOp,)

    def __init__(self, known: Known) -> None:
        self._known = known

    def match(self, op: OnnxOp) -> Match[tuple[SSAValue, SSAValue, SSAValue]] | None:
        if op.op_type != "Add" or op.domain or op.since_version < 7:
            return None
        for value, bias in (op.operands, tuple(op.operands)[::-1]):
            product = made_by(value, "MatMul")
            if product is None or only_user(value) is not op:
                continue
            a, b = product.operands
            if not (_is_matrix(a) and _is_matrix(b) and _is_row(bias, b)):
                continue
            if is_float(element_type(a)) and value.type == op.results[0].type:
                return Match((op, product), "a product and a row", (a, b, bias))
        return None

    def rewrite(
        self, match: Match[tuple[SSAValue, SSAValue, SSAValue]], rewriter: Rewriter
    ) -> None:
        types = match.root.result_types
        rewriter.replace(match.root, self._known.node("Gemm", match.data, types))


def _is_matrix(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and rank_of(value) == 2


def _is_row(value: SSAValue, weight: SSAValue) -> bool:
    shape = static_shape(value) if isinstance(value.type, TensorType) else None
    columns = static_shape(weight)
    if shape is None or columns is None:
        return False
    return shape in ((columns[1],), (1, columns[1]))


class TransposeInGemm(Pattern[int]):
    """gemm(transpose(a), b, c) -> gemm(a, b, c) with transA turned over; so for b"""

    name = "transpose-in-gemm"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[int] | None:
        if op.op_type != "Gemm" or op.domain:
            return None
        for position in (0, 1):
            transpose = made_by(op.operands[position], "Transpose")
            if transpose is not None and only_user(op.operands[position]) is op:
                return Match((op, transpose), "a transposed matrix", position)
        return None

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        root, transpose = match.consumed
        name = ("transA", "transB")[match.data]
        assert isinstance(root, OnnxOp)
        root.properties[name] = IntegerAttr(int(not root.get_int(name)), i64)
        operands = list(root.operands)
        operands[match.data] = transpose.operands[0]
        rewriter.set_operands(root, operands)


def patterns(known: Known) -> Sequence[Pattern[Any]]:
    """The patterns of this topic."""
    return [AbsorbAffine(), AbsorbPad(), FormGemm(known), TransposeInGemm()]
