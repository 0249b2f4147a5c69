"""Parts of tensors, and tensors made of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntAttr
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

from lowerdeck.dialects.core.base import TYPES, CoreOp, require, require_axis, require_same_element
from lowerdeck.dialects.core.enums import PadMode, PadModeAttr
from lowerdeck.dialects.core.index_maps import (
    HasIndexMaps,
    Index,
    MovesElements,
    clamped,
    reflected,
    wrapped,
)
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr, ExprLike


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
