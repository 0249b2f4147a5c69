"""Reductions: over whole dimensions, over windows, and running ones."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, IntAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import (
    TYPES,
    CoreOp,
    Ints,
    SameTypeOp,
    int_array,
    ints,
    require,
    require_axis,
)
from lowerdeck.dialects.core.enums import (
    CumulativeKind,
    CumulativeKindAttr,
    ExtremumKind,
    ExtremumKindAttr,
    PoolKind,
    PoolKindAttr,
    ReduceKind,
    ReduceKindAttr,
)
from lowerdeck.dialects.core.index_maps import HasIndexMaps, Index
from lowerdeck.dialects.core.linear import WINDOWS, window_sizes
from lowerdeck.dialects.core.types import (
    DimsAttr,
    dims_of,
    element_type,
    f32,
    i64,
    is_float,
    tensor,
)
from lowerdeck.dialects.dims import Expr, ExprLike

_FALSE = BoolAttr.from_bool(False)


def _reduced(dims: Sequence[Expr], axes: Sequence[int], keep: bool) -> list[Expr]:
    if keep:
        return [Expr.const(1) if k in axes else dim for k, dim in enumerate(dims)]
    return [dim for k, dim in enumerate(dims) if k not in axes]


@irdl_op_definition
class ReduceOp(CoreOp):
    """
    Combine the elements along `axes` by `kind`.

    Of no elements: 0, 1, the lowest and the highest value (infinities for floats). Max and min give
    NaN if an element is NaN. i1 allows max (any) and min (all). Along no dimensions, the result is
    the input, bit for bit; along others, the sum of -0 alone is 0.

    Constraints:

    - (C1) `axes` are dimensions of the input, sorted and distinct.

    Example:

    ```mlir
    %r = core.reduce sum %x [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
    %s = core.reduce max %x [0, 2] {keep_dims = true} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
    ```
    """

    name = "core.reduce"
    input = operand_def()
    kind = prop_def(ReduceKindAttr)
    axes = prop_def(Ints)
    keep_dims = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$kind $input $axes {TYPES}"

    def __init__(
        self, kind: ReduceKind | str, input: SSAValue, axes: Sequence[int], keep_dims: bool = False
    ):
        super().__init__(
            [input],
            {
                "kind": ReduceKindAttr(ReduceKind(kind)),
                "axes": int_array(axes),
                "keep_dims": BoolAttr.from_bool(keep_dims),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        dims, axes = dims_of(self.input), ints(self.axes)
        require(axes == sorted(set(axes)), f"axes {axes} are not sorted and distinct", "C1")
        for axis in axes:
            require_axis(axis, len(dims), "C1")
        keep = bool(self.keep_dims.value.data)
        return [tensor(element_type(self.input), _reduced(dims, axes, keep))]


@irdl_op_definition
class ArgReduceOp(CoreOp):
    """
    The i64 index of the largest (`kind` max) or smallest (min) element along `axis`.

    Of equal elements the first is taken, or the last with `last_index`. An `axis` without elements
    is an error at run time, even if the result has no elements, either.

    Constraints:

    - (C1) `axis` is one of the dimensions.

    Example:

    ```mlir
    %i = core.arg_reduce max %x axis 1 {keep_dims = true} : (tensor<2x3xf32>) -> tensor<2x1xi64>
    ```
    """

    name = "core.arg_reduce"
    input = operand_def()
    kind = prop_def(ExtremumKindAttr)
    axis = prop_def(IntAttr)
    keep_dims = prop_def(BoolAttr, default_value=_FALSE)
    last_index = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$kind $input `axis` custom<Number>($axis) {TYPES}"

    def __init__(
        self,
        kind: ExtremumKind | str,
        input: SSAValue,
        axis: int,
        keep_dims: bool = False,
        last_index: bool = False,
    ):
        super().__init__(
            [input],
            {
                "kind": ExtremumKindAttr(ExtremumKind(kind)),
                "axis": IntAttr(axis),
                "keep_dims": BoolAttr.from_bool(keep_dims),
                "last_index": BoolAttr.from_bool(last_index),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        dims = dims_of(self.input)
        axis = require_axis(self.axis.data, len(dims), "C1")
        return [tensor(i64, _reduced(dims, [axis], bool(self.keep_dims.value.data)))]


@irdl_op_definition
class SoftmaxOp(SameTypeOp, HasIndexMaps):
    """
    exp(x - m) / sum(exp(x - m)) along `axis`, where m is the maximum along it; with `log` its
    logarithm, as x - m - log(sum(exp(x - m))).

    Each of the steps is rounded to the element type if that is half precision.

    Constraints:

    - (C1) the element type is a float.
    - (C2) `axis` is one of the dimensions.

    Example:

    ```mlir
    %y = core.softmax %x axis 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %z = core.softmax %x axis 1 {log = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.softmax"
    input = operand_def()
    axis = prop_def(IntAttr)
    log = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input `axis` custom<Number>($axis) {TYPES}"

    def __init__(self, input: SSAValue, axis: int, *, log: bool = False):
        super().__init__([input], {"axis": IntAttr(axis), "log": BoolAttr.from_bool(log)})

    @property
    def is_log(self) -> bool:
        """True for the logarithm."""
        return bool(self.log.value.data)

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr | None]:
        """All elements along the axis."""
        axis = self.axis.data
        return [*at[:axis], None, *at[axis + 1 :]]

    def infer(self) -> Sequence[Attribute]:
        require(is_float(element_type(self.input)), "expected a floating-point tensor", "C1")
        require_axis(self.axis.data, len(dims_of(self.input)), "C2")
        return super().infer()


@irdl_op_definition
class CumulativeOp(SameTypeOp):
    """
    Running `kind` along `axis`: up to and including the element, or before it with
    `exclusive`; from the end with `reverse`.

    Constraints:

    - (C1) `axis` is one of the dimensions.

    Example:

    ```mlir
    %y = core.cumulative sum %x axis 0 {reverse = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.cumulative"
    input = operand_def()
    kind = prop_def(CumulativeKindAttr)
    axis = prop_def(IntAttr)
    exclusive = prop_def(BoolAttr, default_value=_FALSE)
    reverse = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$kind $input `axis` custom<Number>($axis) {TYPES}"

    def __init__(
        self,
        kind: CumulativeKind | str,
        input: SSAValue,
        axis: int,
        exclusive: bool = False,
        reverse: bool = False,
    ):
        super().__init__(
            [input],
            {
                "kind": CumulativeKindAttr(CumulativeKind(kind)),
                "axis": IntAttr(axis),
                "exclusive": BoolAttr.from_bool(exclusive),
                "reverse": BoolAttr.from_bool(reverse),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        require_axis(self.axis.data, len(dims_of(self.input)), "C1")
        return super().infer()


@irdl_op_definition
class PoolOp(CoreOp):
    """
    Combine windows of the spatial dimensions of [N, C, spatial...] by `kind`.

    Padding never takes part in max or sum. The maximum passes over NaN, and is -infinity if there
    is nothing else, or with `from_lowest` never less than the lowest finite number; with
    `keeps_first` it is NaN if the first element of the window is, with `keeps_nan` if any is, which
    says nothing of integers. Of zeros of either sign it is any, with one of the first two
    attributes the first. An average divides by the number of elements in the window; with
    `count_pads` padding counts, except for the last `overhang` of `pads_end`, which only makes room
    for a last window that hangs over. Where nothing counts, the average is NaN, and 0 of integers.

    Constraints:

    - (C1) the input has at least three dimensions.
    - (C2) `overhang` has one entry a spatial dimension.
    - (C3) kernel, strides, dilations and pads have one entry a spatial dimension, strides and
      dilations are positive, and a window fits into the padded input, where that is known.
    - (C4) `keeps_first` is for the maximum of floats.
    - (C5) `from_lowest` is for the maximum of f32.
    - (C6) `keeps_nan` is for a maximum without the other two attributes.

    Example:

    ```mlir
    %y = core.pool max %x kernel [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1]
        overhang [0, 0] : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    ```
    """

    name = "core.pool"
    input = operand_def()
    kind = prop_def(PoolKindAttr)
    kernel = prop_def(DimsAttr)
    strides = prop_def(Ints)
    dilations = prop_def(Ints)
    pads_begin = prop_def(DimsAttr)
    pads_end = prop_def(DimsAttr)
    overhang = prop_def(DimsAttr)
    count_pads = prop_def(BoolAttr, default_value=_FALSE)
    keeps_first = prop_def(BoolAttr, default_value=_FALSE)
    from_lowest = prop_def(BoolAttr, default_value=_FALSE)
    keeps_nan = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        f"$kind $input `kernel` custom<Dims>($kernel) {WINDOWS} "
        f"`overhang` custom<Dims>($overhang) {TYPES}"
    )

    def __init__(
        self,
        kind: PoolKind | str,
        input: SSAValue,
        *,
        kernel: Sequence[ExprLike],
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[ExprLike],
        pads_end: Sequence[ExprLike],
        overhang: Sequence[ExprLike] | None = None,
        count_pads: bool = False,
        keeps_first: bool = False,
        from_lowest: bool = False,
        keeps_nan: bool = False,
    ):
        overhang = [0] * len(kernel) if overhang is None else overhang
        super().__init__(
            [input],
            {
                "kind": PoolKindAttr(PoolKind(kind)),
                "kernel": DimsAttr.of(kernel),
                "strides": int_array(strides),
                "dilations": int_array(dilations),
                "pads_begin": DimsAttr.of(pads_begin),
                "pads_end": DimsAttr.of(pads_end),
                "overhang": DimsAttr.of(overhang),
                "count_pads": BoolAttr.from_bool(count_pads),
                "keeps_first": BoolAttr.from_bool(keeps_first),
                "from_lowest": BoolAttr.from_bool(from_lowest),
                "keeps_nan": BoolAttr.from_bool(keeps_nan),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        dims, overhang = dims_of(self.input), self.overhang.data
        require(len(dims) >= 3, f"expected [N, C, spatial...], got rank {len(dims)}", "C1")
        require(len(overhang) == len(dims) - 2, "overhang needs one entry a dimension", "C2")
        is_max = self.kind.data == PoolKind.MAX and is_float(element_type(self.input))
        require(
            is_max or not self.keeps_first.value.data, "only a maximum of floats has a first", "C4"
        )
        is_f32 = is_max and element_type(self.input) == f32
        require(
            is_f32 or not self.from_lowest.value.data, "only a maximum of f32 has a lowest", "C5"
        )
        is_plain = self.kind.data == PoolKind.MAX and not self.finds_first
        require(
            is_plain or not self.keeps_nan.value.data, "only a plain maximum keeps all NaN", "C6"
        )
        sizes = window_sizes(
            dims[2:],
            self.kernel.data,
            ints(self.strides),
            ints(self.dilations),
            self.pads_begin.data,
            self.pads_end.data,
            "C3",
        )
        return [tensor(element_type(self.input), [*dims[:2], *sizes])]

    @property
    def finds_first(self) -> bool:
        """True if of equal elements, such as zeros of either sign, the result is the first."""
        return bool(self.keeps_first.value.data or self.from_lowest.value.data)


REDUCE: tuple[type[CoreOp], ...] = (ReduceOp, ArgReduceOp, SoftmaxOp, CumulativeOp, PoolOp)
