"""Boxes that are kept because no better one lies over them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import Float64Type, FloatAttr, UnitAttr, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import FORMAT, CoreOp, require, require_same_element
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, i1, is_float, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike

_Number = FloatAttr[Float64Type]


@irdl_op_definition
class SuppressOp(CoreOp):
    """
    Which boxes are kept: in each group over and over the first one that is left, and those that
    overlap it by more than `limit` are dropped. Only those that are `alive` count at all. Boxes
    [groups, boxes, 4] are left, top, right and bottom.

    The overlap of two boxes is the area that they share by the area of both together. The length
    that they share in one direction is max(0, min(right, right') - max(left, left') + border), the
    area of one (right - left + border) * (bottom - top + border); with `must_meet` a length that is
    negative without the border is zero.

    - An overlap that is NaN drops nothing. With `strict` it does, but boxes that share no area have
      none, and a NaN corner shares none.
    - No more than `most` are kept in each group.
    - The overlap of boxes with unlike `labels` is 0.
    - While the limit is above 0.5, it is multiplied by `decay` with each box that is kept: boxes
      whose turn comes later are held against the new one, also for their overlap with earlier ones.

    Everything is computed in the type of the boxes.

    Constraints:

    - (C1) `alive` is a matrix of i1; labels have its dimensions, and boxes another one of 4.
    - (C2) the boxes and the limit are floats of one type, and the limit is a scalar.
    - (C3) `most` is one expression.

    Example:

    ```mlir
    %k = core.suppress %alive, %boxes, %limit {most = #core.dims<[5]>}
        : (tensor<2x9xi1>, tensor<2x9x4xf32>, tensor<f32>) -> tensor<2x9xi1>
    ```
    """

    name = "core.suppress"
    alive = operand_def()
    boxes = operand_def()
    limit = operand_def()
    labels = opt_operand_def()
    most = opt_prop_def(DimsAttr)
    border = opt_prop_def(_Number)
    decay = opt_prop_def(_Number)
    must_meet = opt_prop_def(UnitAttr)
    strict = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        alive: SSAValue,
        boxes: SSAValue,
        limit: SSAValue,
        *,
        labels: SSAValue | None = None,
        most: ExprLike | None = None,
        border: float = 0,
        decay: float = 1,
        must_meet: bool = False,
        strict: bool = False,
    ):
        super().__init__(
            [alive, boxes, limit, labels],
            {
                "most": None if most is None else DimsAttr.of([most]),
                "border": FloatAttr(border, f64) if border else None,
                "decay": FloatAttr(decay, f64) if decay != 1 else None,
                "must_meet": UnitAttr() if must_meet else None,
                "strict": UnitAttr() if strict else None,
            },
        )

    @property
    def most_kept(self) -> Expr:
        """How many boxes of a group are kept at most."""
        count = dims_of(self.alive)[1]
        return count if self.most is None else self.most.data[0]

    @property
    def margin(self) -> float:
        """What is added to lengths."""
        return 0.0 if self.border is None else self.border.value.data

    @property
    def shrinking(self) -> float:
        """What the limit is multiplied by."""
        return 1.0 if self.decay is None else self.decay.value.data

    def infer(self) -> Sequence[Attribute]:
        is_matrix = rank_of(self.alive) == 2 and element_type(self.alive) == i1
        require(is_matrix, lambda: f"expected a matrix of i1, got {self.alive.type}", "C1")
        dims = dims_of(self.alive)
        fits = dims_of(self.boxes) == (*dims, Expr.const(4))
        fits = fits and (self.labels is None or dims_of(self.labels) == dims)
        require(fits, lambda: f"operands do not fit boxes [{', '.join(map(str, dims))}]", "C1")
        require_same_element([self.boxes, self.limit], "C2")
        require(
            is_float(element_type(self.boxes)), lambda: f"boxes of {element_type(self.boxes)}", "C2"
        )
        require(rank_of(self.limit) == 0, "the limit is no scalar", "C2")
        require(self.most is None or len(self.most.data) == 1, "'most' is one number", "C3")
        return [self.alive.type]
