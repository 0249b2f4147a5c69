"""Rows of a padded result whose sizes are open: what lies on the input, and what is beside it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import YieldOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.tensor import PadOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests.lower import KernelLowering


def open_pad(k: KernelLowering) -> PadOp | None:
    """
    The padding that decides which elements of the row-major result lie on its input, if passes
    over loops cannot cut these, as they do where sizes are known.
    """
    ops = list(k.kernel.body.block.ops)
    pads = [op for op in ops if isinstance(op, PadOp)]
    if len(pads) != 1 or len(k.roots) != 1 or not k.output_layout().is_row_major:
        return None
    (pad,), (root,) = pads, k.roots
    sides = zip(dims_of(root), pad.begin.data, pad.end.data, strict=False)
    is_open = any(dim.value is None and (begin != 0 or end != 0) for dim, begin, end in sides)
    return pad if is_open and _keeps_place(pad.result, root) else None


def _keeps_place(value: SSAValue, root: SSAValue) -> bool:
    """True if all that is computed of the elements has them where they are, to the result."""
    users = [use.operation for use in value.uses if not isinstance(use.operation, YieldOp)]
    return dims_of(value) == dims_of(root) and all(
        isinstance(op, ELEMENTWISE) and _keeps_place(op.results[0], root) for op in users
    )


def lower_padded(k: KernelLowering, pad: PadOp) -> None:
    """
    Loops over the rows of the result, and in each over what lies before, on and behind a row of the
    input: on it indices go up one by one. Of a constant padding all dimensions are cut so.
    """
    _Rows(k, pad).add([], is_inside=True)


class _Rows:
    """The loops over parts of a result, from the first dimension to the last."""

    def __init__(self, k: KernelLowering, pad: PadOp) -> None:
        self._k, self._pad = k, pad
        self._sizes = dims_of(k.roots[0])
        self._cuts_all = pad.mode.data is PadMode.CONSTANT

    def add(self, at: Sequence[Expr], *, is_inside: bool) -> None:
        """The dimensions after those of an index, which lies on the input in each of them."""
        axis, last = len(at), len(self._sizes) - 1
        if axis > last:
            self._store(at, is_inside=is_inside)
            return
        before, behind = self._pad.begin.data[axis], self._pad.end.data[axis]
        if not is_inside or (axis < last and not self._cuts_all) or before == behind == 0:
            self._add_part(at, Expr.const(0), self._sizes[axis], is_inside=is_inside)
            return
        size = dims_of(self._pad.input)[axis]
        self._add_part(at, Expr.const(0), before, is_inside=False)
        self._add_part(at, before, size, is_inside=True)
        self._add_part(at, before + size, behind, is_inside=False)

    def _add_part(self, at: Sequence[Expr], first: Expr, size: Expr, *, is_inside: bool) -> None:
        if size == 0:
            return
        parallel = not at and (is_inside or not self._cuts_all)
        with self._k.builder.loop(size, parallel=parallel, label=f"d{len(at)}") as place:
            self.add([*at, first + place], is_inside=is_inside)

    def _store(self, at: Sequence[Expr], *, is_inside: bool) -> None:
        k = self._k
        k.pads[self._pad] = is_inside
        k.builder.store(k.element(k.roots[0], at), k.outputs[0], at)
        del k.pads[self._pad]
