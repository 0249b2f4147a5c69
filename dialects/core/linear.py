"""Contractions and normalizations: the ops with weights."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, IntAttr, IntegerType, UnitAttr
from xdsl.dialects.builtin import f64 as builtin_f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
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
    require_broadcast,
    require_same_element,
)
from lowerdeck.dialects.core.enums import Packing, PackingAttr
from lowerdeck.dialects.core.index_maps import HasIndexMaps, Index, MovesElements, unravel
from lowerdeck.dialects.core.types import (
    DimsAttr,
    bit_width,
    dims_of,
    element_type,
    f32,
    i32,
    is_float,
    is_integer,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr, ExprLike, product

COUNTED_ROWS = 8
"""Of a split factor, that a number of pairs of columns is that of: the most that a tile has."""

WINDOWS = (
    "`strides` $strides `dilations` $dilations "
    "`pads` custom<Dims>($pads_begin) custom<Dims>($pads_end)"
)
"""The format of what convolutions and pools say of their windows."""

ACCUMULATOR = "(`in` $accumulator^)?"
"""The format of the element type that products are added up in."""


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


class ContractionOp(CoreOp, ABC):
    """
    Sums of products of the elements of two operands, its factors.

    The sums are made in the element type of the result, which is `accumulator`, or that of the
    factors without one: integers wrap around; floats accumulate in at least their own precision
    and are rounded once. A zero point is subtracted from the elements of its factor, in the type of
    the result, before they are multiplied; it broadcasts to the factor.
    """

    accumulator = opt_prop_def()

    @property
    def factors(self) -> tuple[SSAValue, SSAValue]:
        """The two operands whose elements are multiplied."""
        return self.operands[0], self.operands[1]

    @property
    def zero_points(self) -> Sequence[SSAValue]:
        """Those of the factors: two, or none."""
        return ()

    @property
    def is_uniform(self) -> bool:
        """True if all operands have the element type of the result, and no zero points."""
        own = element_type(self.results[0])
        return not self.zero_points and all(element_type(value) == own for value in self.operands)

    def require_sum(self, label: str) -> Attribute:
        """The element type of the result; VerifyException if the factors do not fit it."""
        if self.accumulator is None:
            return require_same_element(self.factors, label)
        elements = [element_type(value) for value in self.factors]
        require(
            all(_holds(self.accumulator, element) for element in elements)
            and (is_integer(self.accumulator) or elements[0] == elements[1]),
            lambda: (
                f"products of {elements[0]} and {elements[1]} cannot be added up in "
                f"{self.accumulator}"
            ),
            label,
        )
        return self.accumulator

    def require_zero_points(self, label: str) -> None:
        """VerifyException unless there are none, or two that fit the factors."""
        zeros = self.zero_points
        require(len(zeros) in (0, 2), f"{len(zeros)} zero points for 2 factors", label)
        for factor, zero in zip(self.factors, zeros, strict=False):
            _require_zero_point(zero, factor, self.accumulator, label)


def _require_zero_point(
    zero: SSAValue, factor: SSAValue, accumulator: Attribute | None, label: str
) -> None:
    own, element = element_type(zero), element_type(factor)
    require(
        is_integer(own) and own in (element, accumulator),
        lambda: f"a zero point of type {own} for {element}",
        label,
    )
    dims, shape = dims_of(factor), dims_of(zero)
    require(
        len(shape) <= len(dims)
        and all(
            part == 1 or None in (part.value, whole.value) or part == whole
            for part, whole in zip(reversed(shape), reversed(dims), strict=False)
        ),
        lambda: (
            f"a zero point of shape [{', '.join(map(str, shape))}] does not broadcast to "
            f"[{', '.join(map(str, dims))}]"
        ),
        label,
    )


def _holds(accumulator: Attribute, element: Attribute) -> bool:
    """True if integers, or floats, of one type fit into another one, signs aside."""
    if is_float(accumulator) and is_float(element):
        return element == accumulator or element.bitwidth < accumulator.bitwidth
    both = is_integer(accumulator) and is_integer(element)
    return both and bit_width(element) <= bit_width(accumulator)


@irdl_op_definition
class ConvOp(ContractionOp):
    """
    Convolution (correlation) of [N, C, spatial...] with [M, C / groups, kernel...] and a bias [M],
    zero outside of the input: result [N, M, windows...].

    Sums are made in the element type of the result: `accumulator`, or that of the factors (input
    and weight) without one. Integers wrap around; floats accumulate in at least their own precision
    and are rounded once. Zero points of input and weight, which broadcast to them, are subtracted
    from their elements in the type of the result before these are multiplied: padding stands for
    the zero point. `parameters` are the bias, the two zero points, or all three.

    Constraints:

    - (C1) without accumulator, the factors have the same element type; with one, they are integers
      of at most its bits, or floats of one type that is the accumulator or narrower.
    - (C2) input and weight have the same rank, at least 3.
    - (C3) C and M are multiples of `groups`, and the weight has C / groups input channels.
    - (C4) the bias has M elements, of the type of the result.
    - (C5) strides, dilations and pads have one entry a spatial dimension, strides and dilations are
      positive, and a window fits into the padded input, where that is known.
    - (C6) there are no zero points or two, integers of the type of their factor or of the
      accumulator, which broadcast to the factor.

    Examples:

    ```mlir
    %y = core.conv %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1
        : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32>
    %z = core.conv %q, %v, %zero, %zeros strides [1] dilations [1] pads [1] [1] groups 1 in i32
        : (tensor<1x3x8xui8>, tensor<4x3x3xi8>, tensor<ui8>, tensor<4x1x1xi8>) -> tensor<1x4x8xi32>
    ```
    """

    name = "core.conv"
    input = operand_def()
    weight = operand_def()
    parameters = var_operand_def()
    strides = prop_def(Ints)
    dilations = prop_def(Ints)
    pads_begin = prop_def(DimsAttr)
    pads_end = prop_def(DimsAttr)
    groups = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands {WINDOWS} `groups` custom<Number>($groups) {ACCUMULATOR} {TYPES}"

    def __init__(
        self,
        input: SSAValue,
        weight: SSAValue,
        bias: SSAValue | None = None,
        zero_points: Sequence[SSAValue] = (),
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pads_begin: Sequence[ExprLike],
        pads_end: Sequence[ExprLike],
        groups: int = 1,
        accumulator: Attribute | None = None,
    ):
        super().__init__(
            [input, weight, [*([] if bias is None else [bias]), *zero_points]],
            {
                "strides": int_array(strides),
                "dilations": int_array(dilations),
                "pads_begin": DimsAttr.of(pads_begin),
                "pads_end": DimsAttr.of(pads_end),
                "groups": IntAttr(groups),
                "accumulator": accumulator,
            },
        )

    @property
    def bias(self) -> SSAValue | None:
        """What the sums of each output channel begin with, if it is not zero."""
        return self.parameters[0] if len(self.parameters) % 2 else None

    @property
    def zero_points(self) -> Sequence[SSAValue]:
        return self.parameters[len(self.parameters) % 2 :]

    def infer(self) -> Sequence[Attribute]:
        element = self.require_sum("C1")
        self.require_zero_points("C6")
        x, w, groups = dims_of(self.input), dims_of(self.weight), self.groups.data
        _require_ranks(x, w, "C2")
        require(groups > 0, "groups is not positive", "C3")
        require(
            w[1].value is None or x[1].value is None or x[1] == w[1] * groups,
            f"input has {x[1]} channels, but the weight expects {w[1] * groups}",
            "C3",
        )
        require((w[0].value or 0) % groups == 0, f"{w[0]} channels in {groups} groups", "C3")
        _require_bias(self.bias, w[0], element, "C4")
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
class ConvTransposeOp(ContractionOp):
    """
    The gradient of a convolution by its input: [N, C, spatial...] with [C, M / groups, kernel...]
    and a bias [M] gives [N, M, sizes...], where each input element adds its kernel at
    i * stride + k * dilation - pads_begin, and
    size = (dim - 1) * stride + (kernel - 1) * dilation + 1 + output_padding
           - pads_begin - pads_end.

    Sums are made in the element type of the result: `accumulator`, or that of the factors (input
    and weight) without one.

    Constraints:

    - (C1) without accumulator, the factors have the same element type; with one, they are integers
      of at most its bits, or floats of one type that is the accumulator or narrower.
    - (C2) input and weight have the same rank, at least 3.
    - (C3) C is a multiple of `groups`, and the weight has C input channels.
    - (C4) the bias has M elements, of the type of the result.
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
        f"`output_padding` $output_padding `groups` custom<Number>($groups) {ACCUMULATOR} {TYPES}"
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
        accumulator: Attribute | None = None,
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
                "accumulator": accumulator,
            },
        )

    def infer(self) -> Sequence[Attribute]:
        element = self.require_sum("C1")
        x, w, groups = dims_of(self.input), dims_of(self.weight), self.groups.data
        _require_ranks(x, w, "C2")
        require(groups > 0, "groups is not positive", "C3")
        require((w[0].value or 0) % groups == 0, f"{w[0]} channels in {groups} groups", "C3")
        require(
            w[0].value is None or x[1].value is None or x[1] == w[0],
            f"input has {x[1]} channels, but the weight expects {w[0]}",
            "C3",
        )
        _require_bias(self.bias, w[1] * groups, element, "C4")
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


def _require_bias(bias: SSAValue | None, channels: Expr, element: Attribute, label: str) -> None:
    if bias is None:
        return
    require(dims_of(bias) == (channels,), f"the bias does not have {channels} elements", label)
    own = element_type(bias)
    require(own == element, lambda: f"a bias of type {own} for a result of type {element}", label)


@irdl_op_definition
class WindowsOp(CoreOp, MovesElements):
    """
    What windows see, as columns of matrices: of [..., C, spatial...] the result is
    [..., taps x C, windows]. Row t * C + c of a column is the element of channel c at tap t of its
    window; taps and windows are in C order. All windows lie inside of the input. With `apart`, each
    of these is a dimension of its own: [..., taps..., C, windows...].

    Constraints:

    - (C1) taps, strides and dilations have one entry a spatial dimension, strides and dilations are
      positive, and a window fits into the input.
    - (C2) the input has a dimension before the spatial ones, C.

    Examples:

    ```mlir
    %y = core.windows %x taps [3, 2] strides [2, 1] dilations [1, 1]
        : (tensor<1x4x5x6xi32>) -> tensor<1x24x10xi32>
    %z = core.windows %x taps [3, 2] strides [2, 1] dilations [1, 1] apart
        : (tensor<1x4x5x6xi32>) -> tensor<1x3x2x4x2x5xi32>
    ```
    """

    name = "core.windows"
    input = operand_def()
    taps = prop_def(DimsAttr)
    strides = prop_def(Ints)
    dilations = prop_def(Ints)
    is_apart = opt_prop_def(UnitAttr, prop_name="apart")
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$input `taps` custom<Dims>($taps) `strides` $strides `dilations` $dilations "
        f"(`apart` $apart^)? {TYPES}"
    )

    def __init__(
        self,
        input: SSAValue,
        taps: Sequence[ExprLike],
        strides: Sequence[int],
        dilations: Sequence[int],
        *,
        apart: bool = False,
    ):
        super().__init__(
            [input],
            {
                "taps": DimsAttr.of(taps),
                "strides": int_array(strides),
                "dilations": int_array(dilations),
                "apart": UnitAttr() if apart else None,
            },
        )

    @property
    def channels(self) -> Expr:
        """C."""
        return dims_of(self.input)[-len(self.taps.data) - 1]

    @property
    def counts(self) -> list[Expr]:
        """The number of windows along each spatial dimension."""
        taps = self.taps.data
        lists = (taps, ints(self.strides), ints(self.dilations))
        none = [0] * len(taps)
        return window_sizes(dims_of(self.input)[-len(taps) :], *lists, none, none, "C1")

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        rank = len(self.taps.data)
        if self.is_apart is not None:
            cut = len(at) - 2 * rank - 1
            outer, taps, channel, columns = at[:cut], at[cut:][:rank], at[-rank - 1], at[-rank:]
        else:
            *outer, row, column = at
            channel, columns = row % self.channels, unravel(column, self.counts)
            taps = unravel(row // self.channels, self.taps.data)
        places = zip(columns, taps, strict=True)
        steps = zip(ints(self.strides), ints(self.dilations), strict=True)
        inside = [
            place * stride + tap * dilation
            for (place, tap), (stride, dilation) in zip(places, steps, strict=True)
        ]
        return [*outer, channel, *inside]

    def infer(self) -> Sequence[Attribute]:
        dims, size = dims_of(self.input), len(self.taps.data)
        require(len(dims) > size > 0, f"windows over {size} of {len(dims)} dimensions", "C2")
        outer, taps, counts = dims[: -size - 1], self.taps.data, self.counts
        found = [product([*taps, self.channels]), product(counts)]
        if self.is_apart is not None:
            found = [*taps, self.channels, *counts]
        return [tensor(element_type(self.input), [*outer, *found])]


@irdl_op_definition
class MatmulOp(ContractionOp):
    """
    Matrix product of [batch..., M, K] and [batch..., K, N]; batch dimensions broadcast.

    Sums are made in the element type of the result: `accumulator`, or that of the factors (lhs and
    rhs) without one. Integers wrap around; floats accumulate in at least their own precision and
    are rounded once. Zero points of lhs and rhs, which broadcast to them, are subtracted from their
    elements in the type of the result before these are multiplied. Elements that are `packed` hold
    several terms each: `pairs` two signed numbers of half their bits, `unsigned_left` and
    `unsigned_right` four bytes, which have signs in the other factor. Each is multiplied by the one
    in its place. `split_left` is `unsigned_right` for processors that add up two products of bytes
    in 16 bits: in the first K columns of lhs the first two bytes of each element have a sum of
    -128 .. 128, and the last two. Pairs of columns at the end hold a row of rhs and four bytes by
    which it is multiplied, too. In the column before them stands how many of them come before those
    whose bytes are all zero, in this row and in the 7 below it.

    Constraints:

    - (C1) without accumulator, the factors have the same element type; with one, they are integers
      of at most its bits, or floats of one type that is the accumulator or narrower.
    - (C2) each factor has at least two dimensions.
    - (C3) both factors agree in K, where both sizes are known; of `split_left` both are, and a
      column and pairs of columns may follow in lhs.
    - (C4) the batch dimensions broadcast.
    - (C5) there are no zero points or two, integers of the type of their factor or of the
      accumulator, which broadcast to the factor.
    - (C6) packed elements are i32, without zero points; of pairs, those of rhs may be i16, with an
      accumulator of i32.

    Examples:

    ```mlir
    %z = core.matmul %x, %y : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>
    %v = core.matmul %q, %r, %zeros, %zero in i32
        : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<2x1xui8>, tensor<i8>) -> tensor<2x4xi32>
    %s = core.matmul %t, %u packed pairs : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
    ```
    """

    name = "core.matmul"
    lhs = operand_def()
    rhs = operand_def()
    zeros = var_operand_def()
    packing = opt_prop_def(PackingAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands (`packed` $packing^)? {ACCUMULATOR} {TYPES}"

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        zero_points: Sequence[SSAValue] = (),
        *,
        accumulator: Attribute | None = None,
        packing: Packing | None = None,
    ):
        super().__init__(
            [lhs, rhs, zero_points],
            {
                "accumulator": accumulator,
                "packing": None if packing is None else PackingAttr(packing),
            },
        )

    @property
    def zero_points(self) -> Sequence[SSAValue]:
        return self.zeros

    def infer(self) -> Sequence[Attribute]:
        is_of_halves = self.packing is not None and self.packing.data is Packing.HALVES
        element = f32 if is_of_halves else self.require_sum("C1")
        self.require_zero_points("C5")
        require(
            self.packing is None
            or (element in (f32, i32) and not self.zeros and self._packed_elements_are_known),
            lambda: f"packed elements of {element_type(self.lhs)} and {element_type(self.rhs)}",
            "C6",
        )
        lhs, rhs = dims_of(self.lhs), dims_of(self.rhs)
        require(min(len(lhs), len(rhs)) >= 2, "a matrix has at least two dimensions", "C2")
        require(
            self.rests is not None
            if self.is_split
            else None in (lhs[-1].value, rhs[-2].value) or lhs[-1] == rhs[-2],
            f"cannot multiply rows of {lhs[-1]} with columns of {rhs[-2]}",
            "C3",
        )
        batch = require_broadcast([lhs[:-2], rhs[:-2]], "C4")
        return [tensor(element, [*batch, lhs[-2], rhs[-1]])]

    @property
    def is_split(self) -> bool:
        """True if lhs has more columns than rhs has rows."""
        return self.packing is not None and self.packing.data is Packing.SPLIT_LEFT

    @property
    def depth(self) -> Expr:
        """K, the columns of lhs that meet the rows of rhs one after the other."""
        return dims_of(self.rhs)[-2] if self.is_split else dims_of(self.lhs)[-1]

    @property
    def rests(self) -> int | None:
        """How many rows of rhs each row of a split lhs names; None if the sizes are no such."""
        columns, depth = dims_of(self.lhs)[-1].value, self.depth.value
        if columns is None or depth is None or columns == depth:
            return None if columns is None or depth is None else 0
        return (columns - depth) // 2 if columns > depth and (columns - depth) % 2 else None

    @property
    def _packed_elements_are_known(self) -> bool:
        assert self.packing is not None
        elements = tuple(map(element_type, self.factors))
        if self.packing.data is Packing.HALVES:
            return elements == (i32, i32) and self.accumulator == f32
        if elements == (i32, i32):
            return self.accumulator is None
        return elements == (i32, IntegerType(16)) and self.packing.data is Packing.PAIRS


@irdl_op_definition
class SparseProductOp(CoreOp):
    """
    Products of the vectors along an axis with a matrix [K, N] of which only blocks of a row are
    there; all else of it is zero and meets nothing, neither infinities nor NaN.

    A panel is `width` adjacent columns: panel p has the columns from p * width on. Block b holds
    the elements of row `rows[b]` in the columns of its panel, which is p for the blocks from
    `starts[p, 0]` up to before `starts[p, -1]`. Between these are the starts of parts, which are
    added up apart. A sum begins with the bias. All rows are less than K, and the starts of a panel
    ascend from 0 to the number of blocks at most; the compiler alone makes this op, of constants.

    Constraints:

    - (C1) the input, the blocks and the bias are f32, rows and starts i32.
    - (C2) the axis is one of the input, which has at least two dimensions.
    - (C3) blocks are [B, width], rows [B], starts [N / width, parts + 1] with at least one part,
      and the bias is [N], all of them of known sizes.

    Example:

    ```mlir
    %y = core.sparse_product %x, %blocks, %rows, %starts axis 1
        : (tensor<1x64x7x7xf32>, tensor<40x16xf32>, tensor<40xi32>, tensor<2x2xi32>)
        -> tensor<1x32x7x7xf32>
    ```
    """

    name = "core.sparse_product"
    input = operand_def()
    blocks = operand_def()
    rows = operand_def()
    starts = operand_def()
    bias = opt_operand_def()
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands `axis` custom<Number>($axis) {TYPES}"

    def __init__(
        self,
        input: SSAValue,
        blocks: SSAValue,
        rows: SSAValue,
        starts: SSAValue,
        bias: SSAValue | None = None,
        *,
        axis: int,
    ):
        super().__init__([input, blocks, rows, starts, bias], {"axis": IntAttr(axis)})

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The number of panels, their width, and the number of parts."""
        (panels, ends), (_, width) = dims_of(self.starts), dims_of(self.blocks)
        return panels.value or 0, width.value or 0, (ends.value or 0) - 1

    def infer(self) -> Sequence[Attribute]:
        floats = [self.input, self.blocks, *([] if self.bias is None else [self.bias])]
        elements = {*map(element_type, floats)}, {*map(element_type, (self.rows, self.starts))}
        require(elements == ({f32}, {i32}), "expected f32, and indices of i32", "C1")
        dims = list(dims_of(self.input))
        require(len(dims) > 1, "a vector alone", "C2")
        axis = require_axis(self.axis.data, len(dims), "C2")
        found = [
            [dim.value for dim in dims_of(value)] for value in (self.blocks, self.rows, self.starts)
        ]
        (*count, width), rows, (*panels, ends) = found
        require(
            len(count) == len(panels) == 1
            and count == rows
            and not any(None in each for each in found)
            and (ends or 0) > 1,
            lambda: f"blocks, rows and starts of {found}",
            "C3",
        )
        columns = (panels[0] or 0) * (width or 0)
        require(
            self.bias is None or [dim.value for dim in dims_of(self.bias)] == [columns],
            lambda: f"a bias that has not {columns} elements",
            "C3",
        )
        return [tensor(f32, [*dims[:axis], Expr.const(columns), *dims[axis + 1 :]])]


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

    With `uncentered` 0 takes the place of the mean: what x is divided by is its root mean square
    (https://arxiv.org/abs/1910.07467). With `late_epsilon` that is sqrt(variance) + epsilon.

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
    uncentered = opt_prop_def(UnitAttr)
    late_epsilon = opt_prop_def(UnitAttr)
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
        *,
        uncentered: bool = False,
        late_epsilon: bool = False,
    ):
        properties: dict[str, Attribute] = {
            "epsilon": FloatAttr(epsilon, builtin_f64),
            "axis": IntAttr(axis),
        }
        flags = {"uncentered": uncentered, "late_epsilon": late_epsilon}
        properties.update((name, UnitAttr()) for name, is_set in flags.items() if is_set)
        super().__init__([input, scale, bias], properties)

    def infer(self) -> Sequence[Attribute]:
        require(is_float(element_type(self.input)), "expected a floating-point tensor", "C1")
        require_same_element(self.operands, "C2")
        dims = dims_of(self.input)
        require_axis(self.axis.data, len(dims), "C3")
        for parameter in self.operands[1:]:
            whole = require_broadcast([dims, dims_of(parameter)], "C4")
            require(whole == dims, "a parameter exceeds the input", "C4")
        return super().infer()


LINEAR: tuple[type[CoreOp], ...] = (
    ConvOp,
    ConvTransposeOp,
    WindowsOp,
    MatmulOp,
    SparseProductOp,
    BatchNormOp,
    LayerNormOp,
)
