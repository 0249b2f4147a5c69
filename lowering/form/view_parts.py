"""`view-parts`: slices and parts of concatenations become views of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from lowerdeck.dialects.buffer.types import row_major
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.dialects.sizes import Divisors
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.machinery.assumptions import divisors_of


@record
class Place:
    """The location of a value: from an element offset on in the memory of another value."""

    whole: SSAValue
    offset: Expr


def offset_of_part(
    starts: Sequence[Expr],
    part: Sequence[Expr],
    whole: Sequence[Expr],
    layout: LayoutAttr,
    divisors: Divisors,
) -> Expr | None:
    """
    The distance from the first element of a tensor to the first element of a part of it, if the
    part is contiguous there, in the layout of a separate tensor.
    """
    starts, part, whole = (
        [divisors.settle(each) for each in dims] for dims in (starts, part, whole)
    )
    for axis, (start, size, dim) in enumerate(zip(starts, part, whole, strict=True)):
        if start == 0 and size == dim:
            continue
        block = layout.block(axis)
        ends = start + size == dim or size % block == 0
        if layout.data.begin[axis] or layout.data.end[axis] or start % block != 0 or not ends:
            return None
    sizes, room = layout.dims(part), layout.dims(whole)
    first = next((k for k, size in enumerate(sizes) if size != 1), len(sizes))
    if sizes[first + 1 :] != room[first + 1 :]:
        return None
    at = layout.index([Expr.of(start) - layout.data.begin[a] for a, start in enumerate(starts)])
    steps = row_major(room)
    offset = sum((i * step for i, step in zip(at, steps, strict=True)), Expr.const(0))
    return divisors.restore(offset)


def _offsets(kernel: KernelOp, op: ConcatOp, divisors: Divisors) -> list[Expr] | None:
    """The offsets of the parts of a concatenation in its result; None unless all are contiguous."""
    whole, layout = dims_of(op.result), kernel.layout_at(len(kernel.inputs))
    axis, start = op.axis.data, Expr.const(0)
    offsets: list[Expr] = []
    for number, value in enumerate(kernel.inputs):
        dims = dims_of(value)
        starts = [start if k == axis else Expr.const(0) for k in range(len(dims))]
        offset = offset_of_part(starts, dims, whole, layout, divisors)
        if offset is None or kernel.layout_at(number) != layout:
            return None
        offsets.append(offset)
        start = start + dims[axis]
    return offsets


class Places:
    """The locations of values of a block that are parts of others, by its view kernels."""

    def __init__(self) -> None:
        self.parts: dict[SSAValue, Place] = {}
        """Parts of a concatenation that are computed in place."""
        self.prefixes: dict[SSAValue, Place] = {}
        """Concatenations whose parts are adjacent parts of a larger one."""

    def has(self, value: SSAValue) -> bool:
        """True for a part that is computed in place, whatever its shape."""
        return source_of(value) in self.parts

    def update(self, other: Places) -> None:
        """Add the places of another block."""
        self.parts.update(other.parts)
        self.prefixes.update(other.prefixes)

    def join(self, kernel: KernelOp, offsets: Sequence[Expr]) -> list[int]:
        """
        Find the places for the parts of a concatenation; those of later ones are known.
        Returns the positions of the inputs that have to be copied.
        """
        result = kernel.results[0]
        if result not in self.parts and (place := self._common(kernel, offsets)) is not None:
            self.prefixes[result] = place
            return []
        copied: list[int] = []
        for number, (value, offset) in enumerate(zip(kernel.inputs, offsets, strict=True)):
            if self.has(value) or not _is_movable(value, kernel):
                copied.append(number)
            else:
                self.parts[source_of(value)] = Place(result, offset)
        return copied

    def _common(self, kernel: KernelOp, offsets: Sequence[Expr]) -> Place | None:
        """The place in another whole where all parts have the same offsets as in this one."""
        places = [self.parts.get(source_of(value)) for value in kernel.inputs]
        first = places[0]
        if first is None:
            return None
        start = first.offset - offsets[0]
        for place, offset in zip(places, offsets, strict=True):
            if place is None or place.whole is not first.whole or place.offset != start + offset:
                return None
        return Place(first.whole, start)


def source_of(value: SSAValue) -> SSAValue:
    """The value that a chain of reshapes begins with, in the same memory."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.input
    return value


def _leaves_block(value: SSAValue) -> bool:
    """True if a value or a reshape of it is yielded or returned."""
    return any(
        _leaves_block(use.operation.result)
        if isinstance(use.operation, ReshapeOp)
        else use.operation.has_trait(IsTerminator)
        for use in value.uses
    )


def _is_movable(value: SSAValue, kernel: KernelOp) -> bool:
    """True if a kernel of this block computes the value and can write it to any location."""
    source = source_of(value)
    owner = source.owner
    if not isinstance(owner, KernelOp) or owner.parent is not kernel.parent:
        return False
    if owner.view is not None and isinstance(owner.moved, SliceOp):
        return False
    if _leaves_block(source):
        # A value that leaves its block has a location of its own.
        return False
    return [source_of(other) for other in kernel.inputs].count(source) == 1


def find_places(block: Block, divisors: Divisors) -> Places:
    """The places of the values of a block, for all views that are possible."""
    places = Places()
    for kernel, op in _kernels(block, reverse=True):
        if kernel.view is not None and isinstance(op, ConcatOp):
            offsets = _offsets(kernel, op, divisors)
            if offsets is None or places.join(kernel, offsets):
                raise LoweringError(
                    kernel, "is marked as a view, but its inputs cannot lie in its result"
                )
    return places


def _kernels(
    block: Block, *, reverse: bool = False
) -> Iterator[tuple[KernelOp, SliceOp | ConcatOp]]:
    for op in list(reversed(block.ops)) if reverse else list(block.ops):
        if isinstance(op, KernelOp) and (moved := op.moved) is not None:
            yield op, moved


class PartViewer:
    """Marks the views of a block, and copies parts that cannot be computed in place."""

    def __init__(self, symbols: frozenset[str], divisors: Divisors) -> None:
        self._symbols = symbols
        """The symbols that are defined at the start of the entry function."""
        self._divisors = divisors
        self._copies = 0

    def mark(self, block: Block) -> None:
        """Mark every slice and concatenation of a block and its nested blocks."""
        for op in block.ops:
            if not isinstance(op, KernelOp):
                for region in op.regions:
                    self.mark(region.block)
        for kernel, op in _kernels(block):
            if isinstance(op, SliceOp) and _is_contiguous(kernel, op, self._divisors):
                kernel.view = UnitAttr()
        places = Places()
        for kernel, op in _kernels(block, reverse=True):
            if isinstance(op, ConcatOp):
                self._mark_concat(kernel, op, places)

    def _mark_concat(self, kernel: KernelOp, op: ConcatOp, places: Places) -> None:
        offsets = _offsets(kernel, op, self._divisors)
        if offsets is None or not all(d.symbols <= self._symbols for d in dims_of(op.result)):
            return
        if not any(places.has(value) or _is_movable(value, kernel) for value in kernel.inputs):
            return
        kernel.view = UnitAttr()
        for number in places.join(kernel, offsets):
            copy = self._copy(kernel, number)
            kernel.operands[number] = copy
            places.parts[copy] = Place(kernel.results[0], offsets[number])

    def _copy(self, kernel: KernelOp, number: int) -> SSAValue:
        value = kernel.inputs[number]
        block = Block(arg_types=[value.type])
        block.add_op(YieldOp([block.args[0]]))
        copy = KernelOp(f"part_{self._copies}", [value], Region(block))
        self._copies += 1
        if kernel.layouts is not None:
            copy.properties["layouts"] = ArrayAttr([kernel.layout_at(number)] * 2)
        copy.location = kernel.location
        parent = kernel.parent
        assert parent is not None
        parent.insert_op_before(copy, kernel)
        return copy.results[0]


def _is_contiguous(kernel: KernelOp, op: SliceOp, divisors: Divisors) -> bool:
    if isinstance(kernel.inputs[0].owner, ConstantOp):
        return False
    return offset_of_slice(kernel, op, divisors) is not None


def offset_of_slice(kernel: KernelOp, op: SliceOp, divisors: Divisors) -> Expr | None:
    """The offset of a slice in the input of its kernel, if it is a view of it."""
    if kernel.layout_at(0) != kernel.layout_at(1) or any(step != 1 for step in op.steps.data):
        return None
    return offset_of_part(
        op.starts.data,
        dims_of(op.result),
        dims_of(kernel.inputs[0]),
        kernel.layout_at(0),
        divisors,
    )


class ViewPartsPass(ModulePass):
    """
    Mark the kernels that need not run as a `view`.

    - A slice with unit steps that is contiguous in its input: the result is a view of it.
    - A concatenation whose parts are contiguous in it: the kernel that computes a part writes it to
      its location. A part that is not computed by a kernel of the same block, or already has a
      location elsewhere, is copied by a kernel of its own. A concatenation that is contiguous in a
      larger one, such as a prefix of a chain of concatenations, is a view of that one.

    Contiguity depends on the layout: slices may cut the outermost dimension of the storage whose
    size is not one, but not blocks. Sizes count as equal if they are for all inputs that the
    function accepts: where a height has to be a multiple of 4, half of it is twice its quarter.
    Concatenations none of whose parts can be computed in place stay unchanged, and so do those
    whose dimensions are defined only after the entry function has started.
    """

    name = "view-parts"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                dims = [dim for argument in function.body.block.args for dim in dims_of(argument)]
                symbols = frozenset(name for dim in dims for name in dim.symbols)
                PartViewer(symbols, divisors_of(function)).mark(function.body.block)
