"""Data movement: ops that only choose where elements come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntAttr, StringAttr
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
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
from lowerdeck.dialects.core.types import (
    DimsAttr,
    broadcast,
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
class ReshapeOp(CoreOp):
    """
    The same elements in C order, with the dimensions `dims`.

    Constraints:

    - (C1) the number of elements stays, where both numbers are known.
    """

    name = "core.reshape"
    input = operand_def()
    dims = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, dims: Sequence[ExprLike]):
        super().__init__([input], {"dims": DimsAttr.of(dims)})

    def infer(self) -> Sequence[Attribute]:
        before, after = product(dims_of(self.input)).value, product(self.dims.data).value
        require(  # C1
            None in (before, after) or before == after,
            f"cannot reshape {before} elements to [{', '.join(map(str, self.dims.data))}]",
        )
        return [tensor(element_type(self.input), self.dims.data)]


@irdl_op_definition
class TransposeOp(CoreOp):
    """
    Permute dimensions: dimension `k` of the result is dimension `permutation[k]` of the input.

    Constraints:

    - (C1) `permutation` is a permutation of `0 .. rank(input) - 1`.
    """

    name = "core.transpose"
    input = operand_def()
    permutation = prop_def(Ints)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, permutation: Sequence[int]):
        super().__init__([input], {"permutation": int_array(permutation)})

    def infer(self) -> Sequence[Attribute]:
        dims = dims_of(self.input)
        permutation = ints(self.permutation)
        require(  # C1
            sorted(permutation) == list(range(len(dims))),
            f"permutation {permutation} is not a permutation of the {len(dims)} dimensions",
        )
        return [tensor(element_type(self.input), [dims[axis] for axis in permutation])]


@irdl_op_definition
class ChannelShuffleOp(SameTypeOp):
    """
    Channels (dimension 1) dealt out: result channel c is input channel
    (c mod groups) * (C / groups) + c floordiv groups.

    Constraints:

    - (C1) there is a dimension 1, and its size C is a multiple of `groups`.
    """

    name = "core.channel_shuffle"
    input = operand_def()
    groups = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, groups: int):
        super().__init__([input], {"groups": IntAttr(groups)})

    def infer(self) -> Sequence[Attribute]:
        dims, groups = dims_of(self.input), self.groups.data
        channels = dims[require_axis(1, len(dims))]
        require(groups > 0 and channels % groups == 0, f"{channels} channels in {groups} groups")
        return super().infer()


@irdl_op_definition
class BroadcastOp(CoreOp):
    """Repeat the input along missing dimensions and dimensions of one, as numpy, up to `dims`."""

    name = "core.broadcast"
    input = operand_def()
    dims = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, dims: Sequence[ExprLike]):
        super().__init__([input], {"dims": DimsAttr.of(dims)})

    def infer(self) -> Sequence[Attribute]:
        dims = self.dims.data
        require(len(dims) >= rank_of(self.input), "the result has fewer dimensions than the input")
        broadcast([dims_of(self.input), dims])
        return [tensor(element_type(self.input), dims)]


@irdl_op_definition
class SliceOp(CoreOp):
    """
    Element i of the result is element `starts + i * steps` of the input, in each dimension.

    `starts` and `sizes` are resolved: no negative start counts from the end, nothing is clamped.
    A step may be negative, never zero. All three have one entry a dimension.
    """

    name = "core.slice"
    input = operand_def()
    starts = prop_def(DimsAttr)
    sizes = prop_def(DimsAttr)
    steps = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

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

    def infer(self) -> Sequence[Attribute]:
        dims = dims_of(self.input)
        lists = (self.starts.data, self.sizes.data, self.steps.data)
        require(
            all(len(values) == len(dims) for values in lists),
            f"starts, sizes and steps need {len(dims)} entries each",
        )
        for dim, start, size, step in zip(dims, *lists, strict=True):
            _require_within(dim, start, size, step)
        return [tensor(element_type(self.input), self.sizes.data)]


def _require_within(dim: Expr, start: Expr, size: Expr, step: Expr) -> None:
    """The first and last element lie in the input, where all of this is known."""
    require(step.value != 0, "a step is zero")
    require((size.value or 0) >= 0, f"size {size} is negative")
    if size.value == 0 or None in (dim.value, start.value, size.value, step.value):
        return
    for index in (start, start + (size - 1) * step):
        require(
            0 <= (index.value or 0) < (dim.value or 0),
            f"element {index} is outside of a dimension of {dim}",
        )


@irdl_op_definition
class PadOp(CoreOp):
    """
    Add `begin` and `end` elements in each dimension (none negative).

    `mode` says what is added: constant (the scalar operand `value`, zero without it), edge (the
    border element), reflect (mirrored without repeating the border), wrap (periodic).
    """

    name = "core.pad"
    input = operand_def()
    value = opt_operand_def()
    begin = prop_def(DimsAttr)
    end = prop_def(DimsAttr)
    mode = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        input: SSAValue,
        begin: Sequence[ExprLike],
        end: Sequence[ExprLike],
        value: SSAValue | None = None,
        mode: str = "constant",
    ):
        super().__init__(
            [input, value],
            {"begin": DimsAttr.of(begin), "end": DimsAttr.of(end), "mode": StringAttr(mode)},
        )

    def infer(self) -> Sequence[Attribute]:
        dims, begin, end = dims_of(self.input), self.begin.data, self.end.data
        require(len(dims) == len(begin) == len(end), f"begin and end need {len(dims)} entries")
        modes = ("constant", "edge", "reflect", "wrap")
        require(self.mode.data in modes, f"mode '{self.mode.data}' is not one of {modes}")
        require(
            all((pad.value or 0) >= 0 for pad in (*begin, *end)), "a negative amount: slice instead"
        )
        if self.value is not None:
            require_same_element([self.input, self.value])
            require(rank_of(self.value) == 0, "the value is not a scalar")
        sizes = [dim + b + e for dim, b, e in zip(dims, begin, end, strict=True)]
        return [tensor(element_type(self.input), sizes)]


@irdl_op_definition
class ConcatOp(CoreOp):
    """
    Join tensors along `axis`.

    Constraints:

    - (C1) all other dimensions are equal; where they are not known to be, the first input's count.
    """

    name = "core.concat"
    inputs = var_operand_def()
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, inputs: Sequence[SSAValue], axis: int):
        super().__init__([inputs], {"axis": IntAttr(axis)})

    def infer(self) -> Sequence[Attribute]:
        require(len(self.inputs) > 0, "no operands")
        element = require_same_element(self.inputs)
        shapes = [dims_of(value) for value in self.inputs]
        axis = require_axis(self.axis.data, len(shapes[0]))
        for shape in shapes:
            require(len(shape) == len(shapes[0]), "operands have different ranks")
            for k, (dim, first) in enumerate(zip(shape, shapes[0], strict=True)):
                differ = None not in (dim.value, first.value) and dim != first
                require(k == axis or not differ, f"dimension {k} is {first} and {dim}")  # C1
        total = sum((shape[axis] for shape in shapes), Expr.const(0))
        return [tensor(element, [*shapes[0][:axis], total, *shapes[0][axis + 1 :]])]


@irdl_op_definition
class SplitOp(CoreOp):
    """
    Consecutive parts of the input along `axis`: result k has `sizes[k]` elements there.

    Constraints:

    - (C1) there is a result for each of `sizes`, and at least one.
    - (C2) no size is negative, and together they are the dimension, where that is known.

    Example:

    ```mlir
    %a, %b = core.split %x {axis = #builtin.int<1>, sizes = #core.dims<[2, 5]>}
        : (tensor<3x7xf32>) -> (tensor<3x2xf32>, tensor<3x5xf32>)
    ```
    """

    name = "core.split"
    input = operand_def()
    axis = prop_def(IntAttr)
    sizes = prop_def(DimsAttr)
    parts = var_result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

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

    def infer(self) -> Sequence[Attribute]:
        dims, sizes = dims_of(self.input), self.sizes.data
        axis = require_axis(self.axis.data, len(dims))
        require(  # C1
            len(self.results) == len(sizes) > 0, f"{len(sizes)} sizes for {len(self.results)} parts"
        )
        require(all((size.value or 0) >= 0 for size in sizes), "a size is negative")  # C2
        total = sum(sizes, Expr.const(0))
        require(  # C2
            None in (total.value, dims[axis].value) or total == dims[axis],
            f"parts of {total} elements together in a dimension of {dims[axis]}",
        )
        element = element_type(self.input)
        return [tensor(element, [*dims[:axis], size, *dims[axis + 1 :]]) for size in sizes]


def _require_indices(indices: SSAValue) -> None:
    element = element_type(indices)
    require(is_integer(element), f"expected integer indices, got {element}")


@irdl_op_definition
class GatherOp(CoreOp):
    """
    result[a..., i..., b...] = input[a..., indices[i...], b...], where a has `axis` dimensions.

    A negative index counts from the end; one outside of the dimension is a run-time error.
    """

    name = "core.gather"
    input = operand_def()
    indices = operand_def()
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, indices: SSAValue, axis: int):
        super().__init__([input, indices], {"axis": IntAttr(axis)})

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices)
        dims = dims_of(self.input)
        axis = require_axis(self.axis.data, len(dims))
        shape = [*dims[:axis], *dims_of(self.indices), *dims[axis + 1 :]]
        return [tensor(element_type(self.input), shape)]


@irdl_op_definition
class GatherElementsOp(CoreOp):
    """result[i..., j, k...] = input[i..., indices[i..., j, k...], k...] along `axis`."""

    name = "core.gather_elements"
    input = operand_def()
    indices = operand_def()
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, indices: SSAValue, axis: int):
        super().__init__([input, indices], {"axis": IntAttr(axis)})

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices)
        require_axis(self.axis.data, rank_of(self.input))
        require(rank_of(self.indices) == rank_of(self.input), "ranks differ")
        return [tensor(element_type(self.input), dims_of(self.indices))]


@irdl_op_definition
class GatherNdOp(CoreOp):
    """
    The last dimension of `indices` (static, k long) addresses the k dimensions of the input after
    the first `batch_dims`, which both share; the rest of the input's dimensions are copied.
    """

    name = "core.gather_nd"
    input = operand_def()
    indices = operand_def()
    batch_dims = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, indices: SSAValue, batch_dims: int = 0):
        super().__init__([input, indices], {"batch_dims": IntAttr(batch_dims)})

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices)
        dims, indices, batch = dims_of(self.input), dims_of(self.indices), self.batch_dims.data
        depth = indices[-1].value if indices else None
        require(depth is not None, "the last dimension of the indices must be a number")
        require(batch + (depth or 0) <= len(dims), "the indices are longer than the input's rank")
        shape = [*indices[:-1], *dims[batch + (depth or 0) :]]
        return [tensor(element_type(self.input), shape)]


REDUCTIONS = ("none", "add", "mul", "max", "min")
"""How scattered elements meet what is there, or each other."""


def _require_reduction(reduction: str) -> None:
    require(reduction in REDUCTIONS, f"reduction '{reduction}' is not one of {REDUCTIONS}")


@irdl_op_definition
class ScatterElementsOp(CoreOp):
    """
    A copy of the input in which element (i..., indices[i..., j, k...], k...) along `axis` meets
    updates[i..., j, k...], in C order of the updates.
    """

    name = "core.scatter_elements"
    input = operand_def()
    indices = operand_def()
    updates = operand_def()
    axis = prop_def(IntAttr)
    reduction = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        input: SSAValue,
        indices: SSAValue,
        updates: SSAValue,
        axis: int,
        reduction: str = "none",
    ):
        super().__init__(
            [input, indices, updates],
            {"axis": IntAttr(axis), "reduction": StringAttr(reduction)},
        )

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices)
        _require_reduction(self.reduction.data)
        require_same_element([self.input, self.updates])
        require_axis(self.axis.data, rank_of(self.input))
        require(dims_of(self.indices) == dims_of(self.updates), "indices and updates differ")
        return [self.input.type]


@irdl_op_definition
class ScatterNdOp(CoreOp):
    """
    A copy of the input in which the slices that `indices` addresses (its last dimension, static)
    meet the slices of `updates`, in C order of the updates.
    """

    name = "core.scatter_nd"
    input = operand_def()
    indices = operand_def()
    updates = operand_def()
    reduction = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self, input: SSAValue, indices: SSAValue, updates: SSAValue, reduction: str = "none"
    ):
        super().__init__([input, indices, updates], {"reduction": StringAttr(reduction)})

    def infer(self) -> Sequence[Attribute]:
        _require_indices(self.indices)
        _require_reduction(self.reduction.data)
        require_same_element([self.input, self.updates])
        depth = dims_of(self.indices)[-1].value if rank_of(self.indices) else None
        require(depth is not None, "the last dimension of the indices must be a number")
        expected = (*dims_of(self.indices)[:-1], *dims_of(self.input)[depth or 0 :])
        require(len(expected) == rank_of(self.updates), "the updates have the wrong rank")
        return [self.input.type]


@irdl_op_definition
class TopKOp(CoreOp):
    """
    The `k` largest (or smallest) elements along `axis`, best first, and their i64 indices.

    Of equal elements the one with the lower index comes first; NaN counts as largest.
    """

    name = "core.top_k"
    input = operand_def()
    k = prop_def(DimsAttr)
    axis = prop_def(IntAttr)
    largest = prop_def(BoolAttr)
    values = result_def()
    indices = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

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
        axis = require_axis(self.axis.data, len(dims))
        require(len(self.k.data) == 1, "k is one number")
        dims[axis] = self.k.data[0]
        return [tensor(element_type(self.input), dims), tensor(i64, dims)]


@irdl_op_definition
class CountNonzeroOp(CoreOp):
    """The number of elements that are not zero, as an i64 scalar."""

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
    """The i64 indices of the `count` elements that are not zero, [rank, count], in C order."""

    name = "core.nonzero"
    input = operand_def()
    count = prop_def(DimsAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, input: SSAValue, count: ExprLike):
        super().__init__([input], {"count": DimsAttr.of([count])})

    def infer(self) -> Sequence[Attribute]:
        require(len(self.count.data) == 1, "count is one number")
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
