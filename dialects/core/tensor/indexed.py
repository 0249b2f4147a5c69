"""Elements by their indices, and the indices of elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import (
    FORMAT,
    TYPES,
    CoreOp,
    require,
    require_axis,
    require_same_element,
)
from lowerdeck.dialects.core.enums import ScatterReduction, ScatterReductionAttr
from lowerdeck.dialects.core.index_maps import HasIndexMaps, Index
from lowerdeck.dialects.core.types import (
    DimsAttr,
    dims_of,
    element_type,
    i64,
    is_integer,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr, ExprLike


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

    @property
    def is_lookup(self) -> bool:
        """True if it is a map of the indices: an element of a table for each."""
        return rank_of(self.input) == 1

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
