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
    TYPES,
    CoreOp,
    SameTypeOp,
    int_array,
    require,
    require_axis,
    require_broadcast,
    require_same_element,
)
from lowerdeck.dialects.core.index_maps import HasIndexMaps, Index
from lowerdeck.dialects.core.tensor import Ints, ints
from lowerdeck.dialects.core.types import (
    DimsAttr,
    dims_of,
    element_type,
    is_float,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr, ExprLike

WINDOWS = (
    "`strides` $strides `dilations` $dilations "
    "`pads` custom<Dims>($pads_begin) custom<Dims>($pads_end)"
)
"""The format of what convolutions and pools say of their windows."""


def window_sizes(
    dims: Sequence[Expr],
    kernel: Sequence[ExprLike],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[ExprLike],
    pads_end: Sequence[ExprLike],
    label: str = "",
) -> list[Expr]:
    """
    The number of window positions in each spatial dimension, rounded down; VerifyException, with
    the label of the constraint, if there are no such windows.
    """
    lists = (dims, kernel, strides, dilations, pads_begin, pads_end)
    require(
        len({len(values) for values in lists}) == 1,
        f"kernel, strides, dilations and pads need {len(dims)} entries each",
        label,
    )
    require(all(stride > 0 for stride in strides), "a stride is not positive", label)
    require(all(dilation > 0 for dilation in dilations), "a dilation is not positive", label)
    sizes: list[Expr] = []
    for dim, k, stride, dilation, begin, end in zip(*lists, strict=True):
        extent = (Expr.of(k) - 1) * dilation + 1
        size = (dim + begin + end - extent) // stride + 1
        require(size.value is None or size.value >= 0, f"a window of {extent} exceeds {dim}", label)
        sizes.append(size)
    return sizes


@irdl_op_definition
class ConvOp(CoreOp):
    """
    Convolution (correlation) of [N, C, spatial...] with [M, C / groups, kernel...] and a bias [M],
    zero outside of the input: result [N, M, windows...].

    Constraints:

    - (C1) all operands have the same element type.
    - (C2) input and weight have the same rank, at least 3.
    - (C3) C and M are multiples of `groups`, and the weight has C / groups input channels.
    - (C4) the bias has M elements.
    - (C5) strides, dilations and pads have one entry a spatial dimension, strides and dilations are
      positive, and a window fits into the padded input, where that is known.

    Example:

    ```mlir
    %y = core.conv %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1
        : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
    ```
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
    assembly_format = f"operands {WINDOWS} `groups` custom<Number>($groups) {TYPES}"

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
        element = require_same_element(self.operands, "C1")
        x, w, groups = dims_of(self.input), dims_of(self.weight), self.groups.data
        _require_ranks(x, w, "C2")
        require(groups > 0, "groups is not positive", "C3")
        require(
            w[1].value is None or x[1].value is None or x[1] == w[1] * groups,
            f"input has {x[1]} channels, but the weight expects {w[1] * groups}",
            "C3",
        )
        require((w[0].value or 0) % groups == 0, f"{w[0]} channels in {groups} groups", "C3")
        _require_bias(self.bias, w[0], "C4")
        sizes = window_sizes(
            x[2:],
            w[2:],
            ints(self.strides),
            ints(self.dilations),
            self.pads_begin.data,
            self.pads_end.data,
            "C5",
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

    Constraints:

    - (C1) all operands have the same element type.
    - (C2) input and weight have the same rank, at least 3.
    - (C3) C is a multiple of `groups`, and the weight has C input channels.
    - (C4) the bias has M elements.
    - (C5) strides, dilations, pads and output padding have one entry a spatial dimension.

    Example:

    ```mlir
    %y = core.conv_transpose %x, %w strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0]
        output_padding [1, 1] groups 1
        : (tensor<1x4x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<1x3x12x12xf32>
    ```
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
    assembly_format = (
        f"operands {WINDOWS} "
        f"`output_padding` $output_padding `groups` custom<Number>($groups) {TYPES}"
    )

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
        element = require_same_element(self.operands, "C1")
        x, w, groups = dims_of(self.input), dims_of(self.weight), self.groups.data
        _require_ranks(x, w, "C2")
        require(groups > 0, "groups is not positive", "C3")
        require((w[0].value or 0) % groups == 0, f"{w[0]} channels in {groups} groups", "C3")
        require(
            w[0].value is None or x[1].value is None or x[1] == w[0],
            f"input has {x[1]} channels, but the weight expects {w[0]}",
            "C3",
        )
        _require_bias(self.bias, w[1] * groups, "C4")
        lists = (
            x[2:],
            w[2:],
            ints(self.strides),
            ints(self.dilations),
            self.pads_begin.data,
            self.pads_end.data,
            ints(self.output_padding),
        )
        require(
            len({len(values) for values in lists}) == 1, "window lists of different lengths", "C5"
        )
        sizes = [
            (dim - 1) * stride + (k - 1) * dilation + 1 + extra - begin - end
            for dim, k, stride, dilation, begin, end, extra in zip(*lists, strict=True)
        ]
        return [tensor(element, [x[0], w[1] * groups, *sizes])]


def _require_ranks(input: Sequence[Expr], weight: Sequence[Expr], label: str) -> None:
    require(
        len(input) == len(weight) >= 3,
        f"input of rank {len(input)} with a weight of rank {len(weight)}",
        label,
    )


def _require_bias(bias: SSAValue | None, channels: Expr, label: str) -> None:
    require(
        bias is None or dims_of(bias) == (channels,),
        f"the bias does not have {channels} elements",
        label,
    )


@irdl_op_definition
class MatmulOp(CoreOp):
    """
    Matrix product of [batch..., M, K] and [batch..., K, N]; batch dimensions broadcast.

    Integers wrap around; floats accumulate in at least their own precision.

    Constraints:

    - (C1) both operands have the same element type.
    - (C2) each operand has at least two dimensions.
    - (C3) both operands agree in K, where both sizes are known.
    - (C4) the batch dimensions broadcast.

    Example:

    ```mlir
    %z = core.matmul %x, %y : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>
    ```
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
        element = require_same_element(self.operands, "C1")
        lhs, rhs = dims_of(self.lhs), dims_of(self.rhs)
        require(min(len(lhs), len(rhs)) >= 2, "a matrix has at least two dimensions", "C2")
        require(
            None in (lhs[-1].value, rhs[-2].value) or lhs[-1] == rhs[-2],
            f"cannot multiply rows of {lhs[-1]} with columns of {rhs[-2]}",
            "C3",
        )
        batch = require_broadcast([lhs[:-2], rhs[:-2]], "C4")
        return [tensor(element, [*batch, lhs[-2], rhs[-1]])]


@irdl_op_definition
class BatchNormOp(SameTypeOp, HasIndexMaps):
    """
    (x - mean) / sqrt(variance + epsilon) * scale + bias, per channel of dimension `axis`.

    Constraints:

    - (C1) the input is a tensor of floats.
    - (C2) all operands have the same element type.
    - (C3) `axis` is one of the dimensions.
    - (C4) scale, bias, mean and variance are vectors with one element a channel.

    Example:

    ```mlir
    %y = core.batch_norm %x, %scale, %bias, %mean, %variance axis 1 {epsilon = 1.0e-05 : f64}
        : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> tensor<2x3x4xf32>
    ```
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
    assembly_format = f"operands `axis` custom<Number>($axis) {TYPES}"

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

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        """The parameters are those of the channel."""
        return [*at] if operand == 0 else [at[self.axis.data]]

    def infer(self) -> Sequence[Attribute]:
        require(is_float(element_type(self.input)), "expected a floating-point tensor", "C1")
        require_same_element(self.operands, "C2")
        dims = dims_of(self.input)
        channels = dims[require_axis(self.axis.data, len(dims), "C3")]
        for parameter in self.operands[1:]:
            require(rank_of(parameter) == 1, "a parameter is not a vector", "C4")
            size = dims_of(parameter)[0]
            require(
                None in (size.value, channels.value) or size == channels,
                f"a parameter has {size} elements for {channels} channels",
                "C4",
            )
        return super().infer()


@irdl_op_definition
class LayerNormOp(SameTypeOp):
    """
    (x - mean) / sqrt(variance + epsilon) * scale + bias, where mean and (biased) variance are taken
    over the dimensions from `axis` on; scale and bias broadcast to x.

    Constraints:

    - (C1) the input is a tensor of floats.
    - (C2) all operands have the same element type.
    - (C3) `axis` is one of the dimensions.
    - (C4) scale and bias broadcast to the input's dimensions and do not exceed them.

    Example:

    ```mlir
    %y = core.layer_norm %x, %scale, %bias axis 1 {epsilon = 1.0e-05 : f64}
        : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.layer_norm"
    input = operand_def()
    scale = operand_def()
    bias = opt_operand_def()
    epsilon = prop_def(FloatAttr)
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands `axis` custom<Number>($axis) {TYPES}"

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
        require(is_float(element_type(self.input)), "expected a floating-point tensor", "C1")
        require_same_element(self.operands, "C2")
        dims = dims_of(self.input)
        require_axis(self.axis.data, len(dims), "C3")
        for parameter in self.operands[1:]:
            whole = require_broadcast([dims, dims_of(parameter)], "C4")
            require(whole == dims, "a parameter exceeds the input", "C4")
        return super().infer()


LINEAR: tuple[type[CoreOp], ...] = (ConvOp, ConvTransposeOp, MatmulOp, BatchNormOp, LayerNormOp)
