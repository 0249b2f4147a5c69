"""Ops that give the same elements another shape or order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
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
    require_broadcast,
)
from lowerdeck.dialects.core.index_maps import (
    Index,
    MovesElements,
    broadcast_index,
    linear_index,
    unravel,
)
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr, ExprLike, product


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
