"""Contractions and normalizations: the ops with weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, IntAttr
from xdsl.dialects.builtin import f64 as builtin_f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import (
    FORMAT,
    CoreOp,
    SameTypeOp,
    int_array,
    require,
    require_axis,
    require_same_element,
)
from lowerdeck.dialects.core.tensor import Ints, ints
from lowerdeck.dialects.core.types import (
    DimsAttr,
    broadcast,
    dims_of,
    element_type,
    is_float,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr, ExprLike


def window_sizes(
    dims: Sequence[Expr],
    kernel: Sequence[ExprLike],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[ExprLike],
    pads_end: Sequence[ExprLike],
) -> list[Expr]:
    """The number of window positions in each spatial dimension, rounded down."""
    lists = (dims, kernel, strides, dilations, pads_begin, pads_end)
    require(
        len({len(values) for values in lists}) == 1,
        f"kernel, strides, dilations and pads need {len(dims)} entries each",
    )
    require(all(stride > 0 for stride in strides), "a stride is not positive")
    require(all(dilation > 0 for dilation in dilations), "a dilation is not positive")
    sizes: list[Expr] = []
    for dim, k, stride, dilation, begin, end in zip(*lists, strict=True):
        extent = (Expr.of(k) - 1) * dilation + 1
        size = (dim + begin + end - extent) // stride + 1
        require(size.value is None or size.value >= 0, f"a window of {extent} exceeds {dim}")
        sizes.append(size)
    return sizes


@irdl_op_definition
class ConvOp(CoreOp):
    """
    Convolution (correlation) of [N, C, spatial...] with [M, C / groups, kernel...] and a bias [M],
    zero outside of the input: result [N, M, windows...].

    Constraints:

    - (C1) C and M are multiples of `groups`, and the weight has C / groups input channels.
    - (C2) bias has M elements.
    """

    name = "core.conv"
    input = operand_def()
    weight = operand_def()
    bias = opt_operand_def()
    strides = prop_def(Ints)
    dilations = prop_def(Ints)
    pads_begin = prop_def(DimsAttr)
    pads_end = prop_def(DimsAttr)
    groups = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        input: SSAValue,
        weight: SSAValue,
        bias: SSAValue | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[ExprLike],
        pads_end: Sequence[ExprLike],
        groups: int = 1,
    ):
        super().__init__(
            [input, weight, bias],
            {
                "strides": int_array(strides),
                "dilations": int_array(dilations),
                "pads_begin": DimsAttr.of(pads_begin),
                "pads_end": DimsAttr.of(pads_end),
                "groups": IntAttr(groups),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        element = require_same_element(self.operands)
        x, w, groups = dims_of(self.input), dims_of(self.weight), self.groups.data
        require(len(x) == len(w) >= 3, f"input of rank {len(x)} with a weight of rank {len(w)}")
        require(groups > 0, "groups is not positive")
        require(  # C1
            w[1].value is None or x[1].value is None or x[1] == w[1] * groups,
            f"input has {x[1]} channels, but the weight expects {w[1] * groups}",
        )
        require((w[0].value or 0) % groups == 0, f"{w[0]} channels in {groups} groups")  # C1
        _require_bias(self.bias, w[0])  # C2
        sizes = window_sizes(
            x[2:],
            w[2:],
            ints(self.strides),
            ints(self.dilations),
            self.pads_begin.data,
            self.pads_end.data,
        )
        return [tensor(element, [x[0], w[0], *sizes])]


@irdl_op_definition
class ConvTransposeOp(CoreOp):
    """
    The gradient of a convolution by its input: [N, C, spatial...] with [C, M / groups, kernel...]
    and a bias [M] gives [N, M, sizes...], where each input element adds its kernel at
    i * stride + k * dilation - pads_begin, and
    size = (dim - 1) * stride + (kernel - 1) * dilation + 1 + output_padding
           - pads_begin - pads_end.
    """

    name = "core.conv_transpose"
    input = operand_def()
    weight = operand_def()
    bias = opt_operand_def()
    strides = prop_def(Ints)
    dilations = prop_def(Ints)
    pads_begin = prop_def(DimsAttr)
    pads_end = prop_def(DimsAttr)
    output_padding = prop_def(Ints)
    groups = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        input: SSAValue,
        weight: SSAValue,
        bias: SSAValue | None = None,
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[ExprLike],
        pads_end: Sequence[ExprLike],
        output_padding: Sequence[int],
        groups: int = 1,
    ):
        super().__init__(
            [input, weight, bias],
            {
                "strides": int_array(strides),
                "dilations": int_array(dilations),
                "pads_begin": DimsAttr.of(pads_begin),
                "pads_end": DimsAttr.of(pads_end),
                "output_padding": int_array(output_padding),
                "groups": IntAttr(groups),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        element = require_same_element(self.operands)
        x, w, groups = dims_of(self.input), dims_of(self.weight), self.groups.data
        require(len(x) == len(w) >= 3, f"input of rank {len(x)} with a weight of rank {len(w)}")
        require(groups > 0 and (w[0].value or 0) % groups == 0, f"{groups} groups")
        require(
            w[0].value is None or x[1].value is None or x[1] == w[0],
            f"input has {x[1]} channels, but the weight expects {w[0]}",
        )
        _require_bias(self.bias, w[1] * groups)
        lists = (
            x[2:],
            w[2:],
            ints(self.strides),
            ints(self.dilations),
            self.pads_begin.data,
            self.pads_end.data,
            ints(self.output_padding),
        )
        require(len({len(values) for values in lists}) == 1, "window lists of different lengths")
        sizes = [
            (dim - 1) * stride + (k - 1) * dilation + 1 + extra - begin - end
            for dim, k, stride, dilation, begin, end, extra in zip(*lists, strict=True)
        ]
        return [tensor(element, [x[0], w[1] * groups, *sizes])]


def _require_bias(bias: SSAValue | None, channels: Expr) -> None:
    require(
        bias is None or dims_of(bias) == (channels,), f"the bias does not have {channels} elements"
    )


@irdl_op_definition
class MatmulOp(CoreOp):
    """
    Matrix product of [batch..., M, K] and [batch..., K, N]; batch dimensions broadcast.

    Integers wrap around; floats accumulate in at least their own precision.
    """

    name = "core.matmul"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__([lhs, rhs])

    def infer(self) -> Sequence[Attribute]:
        element = require_same_element(self.operands)
        lhs, rhs = dims_of(self.lhs), dims_of(self.rhs)
        require(min(len(lhs), len(rhs)) >= 2, "a matrix has at least two dimensions")
        require(
            None in (lhs[-1].value, rhs[-2].value) or lhs[-1] == rhs[-2],
            f"cannot multiply rows of {lhs[-1]} with columns of {rhs[-2]}",
        )
        return [tensor(element, [*broadcast([lhs[:-2], rhs[:-2]]), lhs[-2], rhs[-1]])]


@irdl_op_definition
class BatchNormOp(SameTypeOp):
    """
    (x - mean) / sqrt(variance + epsilon) * scale + bias, per channel of dimension `axis`.

    The four parameters have one element a channel.
    """

    name = "core.batch_norm"
    input = operand_def()
    scale = operand_def()
    bias = operand_def()
    mean = operand_def()
    variance = operand_def()
    epsilon = prop_def(FloatAttr)
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        input: SSAValue,
        scale: SSAValue,
        bias: SSAValue,
        mean: SSAValue,
        variance: SSAValue,
        epsilon: float,
        axis: int = 1,
    ):
        super().__init__(
            [input, scale, bias, mean, variance],
            {"epsilon": FloatAttr(epsilon, builtin_f64), "axis": IntAttr(axis)},
        )

    def infer(self) -> Sequence[Attribute]:
        require(is_float(element_type(self.input)), "expected a floating-point tensor")
        require_same_element(self.operands)
        dims = dims_of(self.input)
        channels = dims[require_axis(self.axis.data, len(dims))]
        for parameter in self.operands[1:]:
            require(rank_of(parameter) == 1, "a parameter is not a vector")
            size = dims_of(parameter)[0]
            require(
                None in (size.value, channels.value) or size == channels,
                f"a parameter has {size} elements for {channels} channels",
            )
        return super().infer()


@irdl_op_definition
class LayerNormOp(SameTypeOp):
    """
    (x - mean) / sqrt(variance + epsilon) * scale + bias, where mean and (biased) variance are taken
    over the dimensions from `axis` on; scale and bias broadcast to x.
    """

    name = "core.layer_norm"
    input = operand_def()
    scale = operand_def()
    bias = opt_operand_def()
    epsilon = prop_def(FloatAttr)
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        input: SSAValue,
        scale: SSAValue,
        bias: SSAValue | None,
        epsilon: float,
        axis: int,
    ):
        super().__init__(
            [input, scale, bias],
            {"epsilon": FloatAttr(epsilon, builtin_f64), "axis": IntAttr(axis)},
        )

    def infer(self) -> Sequence[Attribute]:
        require(is_float(element_type(self.input)), "expected a floating-point tensor")
        require_same_element(self.operands)
        dims = dims_of(self.input)
        require_axis(self.axis.data, len(dims))
        for parameter in self.operands[1:]:
            require(broadcast([dims, dims_of(parameter)]) == dims, "a parameter exceeds the input")
        return super().infer()


LINEAR: tuple[type[CoreOp], ...] = (ConvOp, ConvTransposeOp, MatmulOp, BatchNormOp, LayerNormOp)
