"""Data movement: ops that only choose where elements come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntAttr, UnitAttr
from xdsl.dialects.builtin import i64 as builtin_i64
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
    var_result_def,
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
from lowerdeck.dialects.core.enums import (
    PadMode,
    PadModeAttr,
    ScatterReduction,
    ScatterReductionAttr,
)
from lowerdeck.dialects.core.index_maps import (
    HasIndexMaps,
    Index,
    MovesElements,
    broadcast_index,
    clamped,
    linear_index,
    reflected,
    unravel,
    wrapped,
)
from lowerdeck.dialects.core.types import (
    DimsAttr,
    dims_of,
    element_type,
    i64,
    is_integer,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr, ExprLike, product

Ints = DenseArrayBase.constr(builtin_i64)


def ints(attribute: DenseArrayBase[Any]) -> list[int]:
    """The numbers of an `array<i64: ...>`."""
    return [int(value) for value in attribute.get_values()]


@irdl_op_definition
class ReshapeOp(CoreOp, MovesElements):
    """
    The same elements in C order, with the dimensions `dims`.

    Constraints:

    - (C1) the number of elements stays, where both numbers are known.

    Example:

    ```mlir
    %y = core.reshape %x [2, 12] : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
    ```
    """

    name = "core.reshape"
    input = operand_def()
    dims = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input custom<Dims>($dims) {TYPES}"

    def __init__(self, input: SSAValue, dims: Sequence[ExprLike]):
        super().__init__([input], {"dims": DimsAttr.of(dims)})

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        """The same position in C order."""
        return unravel(linear_index(at, self.dims.data), dims_of(self.input))

    def infer(self) -> Sequence[Attribute]:
        before, after = product(dims_of(self.input)).value, product(self.dims.data).value
        require(
            None in (before, after) or before == after,
            f"cannot reshape {before} elements to [{', '.join(map(str, self.dims.data))}]",
            "C1",
        )
        return [tensor(element_type(self.input), self.dims.data)]


@irdl_op_definition
class TransposeOp(CoreOp, MovesElements):
    """
    Permute dimensions: dimension `k` of the result is dimension `permutation[k]` of the input.

    Constraints:

    - (C1) `permutation` is a permutation of `0 .. rank(input) - 1`.

    Example:

    ```mlir
    %y = core.transpose %x [0, 3, 1, 2] : (tensor<1x8x6x3xf32>) -> tensor<1x3x8x6xf32>
    ```
    """

    name = "core.transpose"
    input = operand_def()
    permutation = prop_def(Ints)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input $permutation {TYPES}"

    def __init__(self, input: SSAValue, permutation: Sequence[int]):
        super().__init__([input], {"permutation": int_array(permutation)})

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        """Dimension permutation[k] of the input has the index of dimension k of the result."""
        permutation = ints(self.permutation)
        return [at[permutation.index(axis)] for axis in range(len(at))]

    def infer(self) -> Sequence[Attribute]:
        dims = dims_of(self.input)
        permutation = ints(self.permutation)
        require(
            sorted(permutation) == list(range(len(dims))),
            f"permutation {permutation} is not a permutation of the {len(dims)} dimensions",
            "C1",
        )
        return [tensor(element_type(self.input), [dims[axis] for axis in permutation])]


@irdl_op_definition
class ChannelShuffleOp(SameTypeOp, MovesElements):
    """
    Channels (dimension 1) dealt out: result channel c is input channel
    (c mod groups) * (C / groups) + c floordiv groups.

    Constraints:

    - (C1) there is a dimension 1, and its size C is a multiple of `groups`.

    Example:

    ```mlir
    %y = core.channel_shuffle %x groups 2 : (tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32>
    ```
    """

    name = "core.channel_shuffle"
    input = operand_def()
    groups = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input `groups` custom<Number>($groups) {TYPES}"

    def __init__(self, input: SSAValue, groups: int):
        super().__init__([input], {"groups": IntAttr(groups)})

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        """Channel c of the result is number c // groups of group c % groups."""
        groups = self.groups.data
        members = dims_of(self.input)[1] // groups
        return [at[0], at[1] % groups * members + at[1] // groups, *at[2:]]

    def infer(self) -> Sequence[Attribute]:
        dims, groups = dims_of(self.input), self.groups.data
        channels = dims[require_axis(1, len(dims), "C1")]
        divided = groups > 0 and channels % groups == 0
        require(divided, f"{channels} channels in {groups} groups", "C1")
        return super().infer()


@irdl_op_definition
class BroadcastOp(CoreOp, MovesElements):
    """
    Repeat the input along missing dimensions and dimensions of one, as numpy, up to `dims`.

    Constraints:

    - (C1) the input has at most as many dimensions as the result.
    - (C2) the input's dimensions broadcast with `dims`.

    Example:

    ```mlir
    %y = core.broadcast %x [5, 2, 3] : (tensor<2x1xf32>) -> tensor<5x2x3xf32>
    ```
    """

    name = "core.broadcast"
    input = operand_def()
    dims = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input custom<Dims>($dims) {TYPES}"

    def __init__(self, input: SSAValue, dims: Sequence[ExprLike]):
        super().__init__([input], {"dims": DimsAttr.of(dims)})

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        return broadcast_index(at, dims_of(self.input), self.dims.data)

    def infer(self) -> Sequence[Attribute]:
        dims = self.dims.data
        fits = len(dims) >= rank_of(self.input)
        require(fits, "the result has fewer dimensions than the input", "C1")
        require_broadcast([dims_of(self.input), dims], "C2")
        return [tensor(element_type(self.input), dims)]


@irdl_op_definition
class SliceOp(CoreOp, MovesElements):
    """
    Element i of the result is element `starts + i * steps` of the input, in each dimension. The
    text has starts, sizes and steps in this order.

    `starts` and `sizes` are resolved: no negative start counts from the end, nothing is clamped.
    A step may be negative, never zero.

    Constraints:

    - (C1) starts, sizes and steps have one entry a dimension.
    - (C2) no step is zero, and no size is negative.
    - (C3) the first and the last element lie in the input, where all of this is known.

    Example:

    ```mlir
    %y = core.slice %x [0, 7] [1, 4] [1, -2] : (tensor<2x8xf32>) -> tensor<1x4xf32>
    ```
    """

    name = "core.slice"
    input = operand_def()
    starts = prop_def(DimsAttr)
    sizes = prop_def(DimsAttr)
    steps = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        f"$input custom<Dims>($starts) custom<Dims>($sizes) custom<Dims>($steps) {TYPES}"
    )

    def __init__(
        self,
        input: SSAValue,
        starts: Sequence[ExprLike],
        sizes: Sequence[ExprLike],
        steps: Sequence[ExprLike] | None = None,
    ):
        steps = [1] * len(starts) if steps is None else steps
        super().__init__(
            [input],
            {
                "starts": DimsAttr.of(starts),
                "sizes": DimsAttr.of(sizes),
                "steps": DimsAttr.of(steps),
            },
        )

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        lists = zip(at, self.starts.data, self.steps.data, strict=True)
        return [start + index * step for index, start, step in lists]

    def infer(self) -> Sequence[Attribute]:
        dims = dims_of(self.input)
        lists = (self.starts.data, self.sizes.data, self.steps.data)
        require(
            all(len(values) == len(dims) for values in lists),
            f"starts, sizes and steps need {len(dims)} entries each",
            "C1",
        )
        for dim, start, size, step in zip(dims, *lists, strict=True):
            _require_within(dim, start, size, step)
        return [tensor(element_type(self.input), self.sizes.data)]


def _require_within(dim: Expr, start: Expr, size: Expr, step: Expr) -> None:
    require(step.value != 0, "a step is zero", "C2")
    require((size.value or 0) >= 0, f"size {size} is negative", "C2")
    if size.value == 0 or None in (dim.value, start.value, size.value, step.value):
        return
    for index in (start, start + (size - 1) * step):
        require(
            0 <= (index.value or 0) < (dim.value or 0),
            f"element {index} is outside of a dimension of {dim}",
            "C3",
        )


_FOLDS: Mapping[PadMode, Callable[[Expr, Expr], Expr]] = {
    PadMode.EDGE: clamped,
    PadMode.REFLECT: reflected,
    PadMode.WRAP: wrapped,
}
"""Which index outside of a dimension stands for which inside of it."""


@irdl_op_definition
class PadOp(CoreOp, HasIndexMaps):
    """
    Add `begin` and `end` elements in each dimension (none negative).

    `mode` says what is added: constant (the scalar operand `value`, zero without it), edge (the
    border element), reflect (mirrored without repeating the border), wrap (periodic).

    Constraints:

    - (C1) `begin` and `end` have one entry a dimension.
    - (C2) no amount is negative.
    - (C3) the value is a scalar of the input's element type.

    Example:

    ```mlir
    %y = core.pad constant %x, %v [0, 1] [0, 2]
        : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x6xf32>
    ```
    """

    name = "core.pad"
    input = operand_def()
    value = opt_operand_def()
    begin = prop_def(DimsAttr)
    end = prop_def(DimsAttr)
    mode = prop_def(PadModeAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$mode operands custom<Dims>($begin) custom<Dims>($end) {TYPES}"

    def __init__(
        self,
        input: SSAValue,
        begin: Sequence[ExprLike],
        end: Sequence[ExprLike],
        value: SSAValue | None = None,
        mode: PadMode | str = PadMode.CONSTANT,
    ):
        super().__init__(
            [input, value],
            {
                "begin": DimsAttr.of(begin),
                "end": DimsAttr.of(end),
                "mode": PadModeAttr(PadMode(mode)),
            },
        )

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        """Inside of the input for all modes but constant, where it is outside for what is added."""
        if operand > 0:
            return []
        inner = [index - begin for index, begin in zip(at, self.begin.data, strict=True)]
        if self.mode.data is PadMode.CONSTANT:
            return inner
        fold = _FOLDS[self.mode.data]
        pads = zip(self.begin.data, self.end.data, strict=True)
        padded = [begin != 0 or end != 0 for begin, end in pads]
        return [
            fold(index, dim) if pad else index
            for index, dim, pad in zip(inner, dims_of(self.input), padded, strict=True)
        ]

    def infer(self) -> Sequence[Attribute]:
        dims, begin, end = dims_of(self.input), self.begin.data, self.end.data
        require(
            len(dims) == len(begin) == len(end), f"begin and end need {len(dims)} entries", "C1"
        )
        grows = all((pad.value or 0) >= 0 for pad in (*begin, *end))
        require(grows, "a negative amount: slice instead", "C2")
        if self.value is not None:
            require_same_element([self.input, self.value], "C3")
            require(rank_of(self.value) == 0, "the value is not a scalar", "C3")
        sizes = [dim + b + e for dim, b, e in zip(dims, begin, end, strict=True)]
        return [tensor(element_type(self.input), sizes)]


@irdl_op_definition
class ConcatOp(CoreOp, HasIndexMaps):
    """
    Join tensors along `axis`.

    Constraints:

    - (C1) there is at least one operand.
    - (C2) all operands have the same element type and the same rank.
    - (C3) `axis` is one of the dimensions.
    - (C4) all other dimensions are equal; where they are not known to be, the first input's count.

    Example:

    ```mlir
    %z = core.concat %x, %y axis 1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
    ```
    """

    name = "core.concat"
    inputs = var_operand_def()
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands `axis` custom<Number>($axis) {TYPES}"

    def __init__(self, inputs: Sequence[SSAValue], axis: int):
        super().__init__([inputs], {"axis": IntAttr(axis)})

    @property
    def starts(self) -> list[Expr]:
        """The index of the first element of each operand along the axis."""
        starts = [Expr.const(0)]
        for value in self.inputs[:-1]:
            starts.append(starts[-1] + dims_of(value)[self.axis.data])
        return starts

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        axis, start = self.axis.data, self.starts[operand]
        return [*at[:axis], at[axis] - start, *at[axis + 1 :]]

    def infer(self) -> Sequence[Attribute]:
        require(len(self.inputs) > 0, "no operands", "C1")
        element = require_same_element(self.inputs, "C2")
        shapes = [dims_of(value) for value in self.inputs]
        axis = require_axis(self.axis.data, len(shapes[0]), "C3")
        for shape in shapes:
            require(len(shape) == len(shapes[0]), "operands have different ranks", "C2")
            for k, (dim, first) in enumerate(zip(shape, shapes[0], strict=True)):
                differ = None not in (dim.value, first.value) and dim != first
                require(k == axis or not differ, f"dimension {k} is {first} and {dim}", "C4")
        total = sum((shape[axis] for shape in shapes), Expr.const(0))
        return [tensor(element, [*shapes[0][:axis], total, *shapes[0][axis + 1 :]])]


@irdl_op_definition
class SplitOp(CoreOp, MovesElements):
    """
    Consecutive parts of the input along `axis`: result k has `sizes[k]` elements there.

    Constraints:

    - (C1) there is a result for each of `sizes`, and at least one.
    - (C2) no size is negative, and together they are the dimension, where that is known.
    - (C3) `axis` is one of the dimensions.

    Example:

    ```mlir
    %a, %b = core.split %x axis 1 sizes [2, 5]
        : (tensor<3x7xf32>) -> (tensor<3x2xf32>, tensor<3x5xf32>)
    ```
    """

    name = "core.split"
    input = operand_def()
    axis = prop_def(IntAttr)
    sizes = prop_def(DimsAttr)
    parts = var_result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input `axis` custom<Number>($axis) `sizes` custom<Dims>($sizes) {TYPES}"

    def __init__(self, input: SSAValue, axis: int, sizes: Sequence[ExprLike]):
        super().__init__(
            [input],
            {"axis": IntAttr(axis), "sizes": DimsAttr.of(sizes)},
            results=len(sizes),
            variadic=True,
        )

    @property
    def starts(self) -> list[Expr]:
        """The index of the first element of each part along the axis."""
        starts = [Expr.const(0)]
        for size in self.sizes.data[:-1]:
            starts.append(starts[-1] + size)
        return starts

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr]:
        axis, start = self.axis.data, self.starts[result]
        return [*at[:axis], at[axis] + start, *at[axis + 1 :]]

    def infer(self) -> Sequence[Attribute]:
        dims, sizes = dims_of(self.input), self.sizes.data
        axis = require_axis(self.axis.data, len(dims), "C3")
        parts = len(self.results)
        require(parts == len(sizes) > 0, f"{len(sizes)} sizes for {parts} parts", "C1")
        require(all((size.value or 0) >= 0 for size in sizes), "a size is negative", "C2")
        total = sum(sizes, Expr.const(0))
        require(
            None in (total.value, dims[axis].value) or total == dims[axis],
            f"parts of {total} elements together in a dimension of {dims[axis]}",
            "C2",
        )
        element = element_type(self.input)
        return [tensor(element, [*dims[:axis], size, *dims[axis + 1 :]]) for size in sizes]


def _require_indices(indices: SSAValue, label: str) -> None:
    element = element_type(indices)
    require(is_integer(element), lambda: f"expected integer indices, got {element}", label)


@irdl_op_definition
class GatherOp(CoreOp, HasIndexMaps):
    """
    result[a..., i..., b...] = input[a..., indices[i...], b...], where a has `axis` dimensions.

    A negative index counts from the end; one outside of the dimension is a run-time error. Of
    indices that are `inside` it is known that neither occurs.

    Constraints:

    - (C1) the indices are integers.
    - (C2) `axis` is one of the input's dimensions.

    Example:

    ```mlir
    %y = core.gather %x, %i axis 1
        : (tensor<2x9x3xf32>, tensor<4x5xi64>) -> tensor<2x4x5x3xf32>
    ```
    """

    name = "core.gather"
    input = operand_def()
    indices = operand_def()
    axis = prop_def(IntAttr)
    inside = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands `axis` custom<Number>($axis) {TYPES}"

    def __init__(self, input: SSAValue, indices: SSAValue, axis: int, *, inside: bool = False):
        properties: dict[str, Attribute] = {"axis": IntAttr(axis)}
        if inside:
            properties["inside"] = UnitAttr()
        super().__init__([input, indices], properties)

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr | None]:
        """The index along the axis comes from data."""
        axis, rank = self.axis.data, rank_of(self.indices)
        if operand == 1:
            return [*at[axis : axis + rank]]
        return [*at[:axis], None, *at[axis + rank :]]

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices, "C1")
        dims = dims_of(self.input)
        axis = require_axis(self.axis.data, len(dims), "C2")
        shape = [*dims[:axis], *dims_of(self.indices), *dims[axis + 1 :]]
        return [tensor(element_type(self.input), shape)]


@irdl_op_definition
class GatherElementsOp(CoreOp, HasIndexMaps):
    """
    result[i..., j, k...] = input[i..., indices[i..., j, k...], k...] along `axis`.

    Indices are as those of `core.gather`.

    Constraints:

    - (C1) the indices are integers.
    - (C2) `axis` is one of the dimensions.
    - (C3) input and indices have the same rank.

    Example:

    ```mlir
    %y = core.gather_elements %x, %i axis 1
        : (tensor<2x9xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
    ```
    """

    name = "core.gather_elements"
    input = operand_def()
    indices = operand_def()
    axis = prop_def(IntAttr)
    inside = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands `axis` custom<Number>($axis) {TYPES}"

    def __init__(self, input: SSAValue, indices: SSAValue, axis: int):
        super().__init__([input, indices], {"axis": IntAttr(axis)})

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr | None]:
        """As of gather, with an index for every element."""
        axis = self.axis.data
        return [*at] if operand == 1 else [*at[:axis], None, *at[axis + 1 :]]

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices, "C1")
        require_axis(self.axis.data, rank_of(self.input), "C2")
        require(rank_of(self.indices) == rank_of(self.input), "ranks differ", "C3")
        return [tensor(element_type(self.input), dims_of(self.indices))]


@irdl_op_definition
class GatherNdOp(CoreOp, HasIndexMaps):
    """
    The last dimension of `indices` (static, k long) addresses the k dimensions of the input after
    the first `batch_dims`, which both share; the rest of the input's dimensions are copied.

    Constraints:

    - (C1) the indices are integers.
    - (C2) the last dimension of the indices is a number.
    - (C3) the input has at least `batch_dims` + k dimensions, the indices more than `batch_dims`.
    - (C4) the first `batch_dims` dimensions of both agree, as far as they are numbers.

    Example:

    ```mlir
    %y = core.gather_nd %x, %i batch_dims 1
        : (tensor<2x9x8x3xf32>, tensor<2x5x2xi64>) -> tensor<2x5x3xf32>
    ```
    """

    name = "core.gather_nd"
    input = operand_def()
    indices = operand_def()
    batch_dims = prop_def(IntAttr)
    inside = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"operands `batch_dims` custom<Number>($batch_dims) {TYPES}"

    def __init__(self, input: SSAValue, indices: SSAValue, batch_dims: int = 0):
        super().__init__([input, indices], {"batch_dims": IntAttr(batch_dims)})

    def operand_index(self, operand: int, at: Index, result: int = 0) -> list[Expr | None]:
        """The last dimension of the indices holds one index for each addressed dimension."""
        batch, leading = self.batch_dims.data, rank_of(self.indices) - 1
        if operand == 1:
            return [*at[:leading], None]
        depth = dims_of(self.indices)[-1].value or 0
        return [*at[:batch], *[None] * depth, *at[leading:]]

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices, "C1")
        dims, indices, batch = dims_of(self.input), dims_of(self.indices), self.batch_dims.data
        depth = indices[-1].value if indices else None
        require(depth is not None, "the last dimension of the indices must be a number", "C2")
        fits = batch + (depth or 0) <= len(dims) and batch < len(indices)
        require(fits, "the indices are longer than the input's rank", "C3")
        for found, expected in zip(indices[:batch], dims[:batch], strict=True):
            agree = None in (found.value, expected.value) or found == expected
            require(agree, lambda: f"{found} lists of indices for {expected} parts", "C4")
        shape = [*indices[:-1], *dims[batch + (depth or 0) :]]
        return [tensor(element_type(self.input), shape)]


@irdl_op_definition
class ScatterElementsOp(CoreOp):
    """
    A copy of the input in which element (i..., indices[i..., j, k...], k...) along `axis` meets
    updates[i..., j, k...], in C order of the updates.

    Constraints:

    - (C1) the indices are integers.
    - (C2) input and updates have the same element type.
    - (C3) `axis` is one of the dimensions.
    - (C4) indices and updates have the same dimensions.
    - (C5) input and indices have the same rank.

    Example:

    ```mlir
    %y = core.scatter_elements add %x, %i, %u axis 1
        : (tensor<2x9xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x9xf32>
    ```
    """

    name = "core.scatter_elements"
    input = operand_def()
    indices = operand_def()
    updates = operand_def()
    axis = prop_def(IntAttr)
    inside = opt_prop_def(UnitAttr)
    reduction = prop_def(ScatterReductionAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$reduction operands `axis` custom<Number>($axis) {TYPES}"

    def __init__(
        self,
        input: SSAValue,
        indices: SSAValue,
        updates: SSAValue,
        axis: int,
        reduction: ScatterReduction | str = ScatterReduction.NONE,
    ):
        super().__init__(
            [input, indices, updates],
            {
                "axis": IntAttr(axis),
                "reduction": ScatterReductionAttr(ScatterReduction(reduction)),
            },
        )

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices, "C1")
        require_same_element([self.input, self.updates], "C2")
        require_axis(self.axis.data, rank_of(self.input), "C3")
        require(rank_of(self.indices) == rank_of(self.input), "ranks differ", "C5")
        require(dims_of(self.indices) == dims_of(self.updates), "indices and updates differ", "C4")
        return [self.input.type]


@irdl_op_definition
class ScatterNdOp(CoreOp):
    """
    A copy of the input in which the slices that `indices` addresses (its last dimension, static)
    meet the slices of `updates`, in C order of the updates.

    Constraints:

    - (C1) the indices are integers.
    - (C2) input and updates have the same element type.
    - (C3) the last dimension of the indices, k, is a number.
    - (C4) the updates have the rank of the indices without the last dimension, and of the input
      without the first k.
    - (C5) k is at most the input's rank.

    Example:

    ```mlir
    %y = core.scatter_nd none %x, %i, %u
        : (tensor<9x8x3xf32>, tensor<5x2xi64>, tensor<5x3xf32>) -> tensor<9x8x3xf32>
    ```
    """

    name = "core.scatter_nd"
    input = operand_def()
    indices = operand_def()
    updates = operand_def()
    reduction = prop_def(ScatterReductionAttr)
    inside = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$reduction operands {TYPES}"

    def __init__(
        self,
        input: SSAValue,
        indices: SSAValue,
        updates: SSAValue,
        reduction: ScatterReduction | str = ScatterReduction.NONE,
    ):
        kind = ScatterReductionAttr(ScatterReduction(reduction))
        super().__init__([input, indices, updates], {"reduction": kind})

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices, "C1")
        require_same_element([self.input, self.updates], "C2")
        depth = dims_of(self.indices)[-1].value if rank_of(self.indices) else None
        require(depth is not None, "the last dimension of the indices must be a number", "C3")
        is_inside = (depth or 0) <= rank_of(self.input)
        require(is_inside, "the indices are longer than the input's rank", "C5")
        expected = (*dims_of(self.indices)[:-1], *dims_of(self.input)[depth or 0 :])
        require(len(expected) == rank_of(self.updates), "the updates have the wrong rank", "C4")
        return [self.input.type]


@irdl_op_definition
class TopKOp(CoreOp):
    """
    The `k` largest (or smallest) elements along `axis`, best first, and their i64 indices.

    Of equal elements the one with the lower index comes first; NaN counts as largest.

    Constraints:

    - (C1) `axis` is one of the dimensions.
    - (C2) `k` is one expression.

    Example:

    ```mlir
    %v, %i = core.top_k %x [5] axis 1 : (tensor<2x9xf32>) -> (tensor<2x5xf32>, tensor<2x5xi64>)
    ```
    """

    name = "core.top_k"
    input = operand_def()
    k = prop_def(DimsAttr)
    axis = prop_def(IntAttr)
    largest = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    values = result_def()
    indices = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input custom<Dims>($k) `axis` custom<Number>($axis) {TYPES}"

    def __init__(self, input: SSAValue, k: ExprLike, axis: int, largest: bool = True):
        super().__init__(
            [input],
            {
                "k": DimsAttr.of([k]),
                "axis": IntAttr(axis),
                "largest": BoolAttr.from_bool(largest),
            },
            results=2,
        )

    def infer(self) -> Sequence[Attribute]:
        dims = list(dims_of(self.input))
        axis = require_axis(self.axis.data, len(dims), "C1")
        require(len(self.k.data) == 1, "k is one number", "C2")
        dims[axis] = self.k.data[0]
        return [tensor(element_type(self.input), dims), tensor(i64, dims)]


@irdl_op_definition
class CountNonzeroOp(CoreOp):
    """
    The number of elements that are not zero, as an i64 scalar.

    Example:

    ```mlir
    %n = core.count_nonzero %x : (tensor<2x3xf32>) -> tensor<i64>
    ```
    """

    name = "core.count_nonzero"
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue):
        super().__init__([input])

    def infer(self) -> Sequence[Attribute]:
        return [tensor(i64, [])]


@irdl_op_definition
class NonzeroOp(CoreOp):
    """
    The i64 indices of the `count` elements that are not zero, [rank, count], in C order.

    Constraints:

    - (C1) `count` is one expression.

    Example:

    ```mlir
    %i = core.nonzero %x [u0]
        : (tensor<2x3xf32>) -> tensor<2x?xi64, #core.tensor<dims = [2, u0]>>
    ```
    """

    name = "core.nonzero"
    input = operand_def()
    count = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input custom<Dims>($count) {TYPES}"

    def __init__(self, input: SSAValue, count: ExprLike):
        super().__init__([input], {"count": DimsAttr.of([count])})

    def infer(self) -> Sequence[Attribute]:
        require(len(self.count.data) == 1, "count is one number", "C1")
        return [tensor(i64, [rank_of(self.input), self.count.data[0]])]


TENSOR: tuple[type[CoreOp], ...] = (
    ReshapeOp,
    TransposeOp,
    ChannelShuffleOp,
    BroadcastOp,
    SliceOp,
    PadOp,
    ConcatOp,
    SplitOp,
    GatherOp,
    GatherElementsOp,
    GatherNdOp,
    ScatterElementsOp,
    ScatterNdOp,
    TopKOp,
    CountNonzeroOp,
    NonzeroOp,
)
