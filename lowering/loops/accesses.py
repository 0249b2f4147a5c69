"""Whether iterations of a loop are independent, and their accesses contiguous."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, LoadOp, StoreOp, value_type
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.types import bf16, f16, f32, f64, i1
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import simplified
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.indices import Indices

_MEMORY_TYPES = (f32, f64, f16, bf16, i1, *(IntegerType(width) for width in (8, 16, 32, 64)))


class Accesses:
    """The accesses of a loop if `lanes` of its iterations are combined to one."""

    def __init__(self, loop: ForOp, lanes: int, indices: Indices) -> None:
        self._indices = indices
        self._lane = Expr.symbol("%lane")
        first = Expr.symbol("%first")
        indices.limit(self._lane, 0, lanes)
        indices.limit(first, 0, 1 << 31)
        lower = indices.read(loop.range.data, loop.indices)[0]
        old = str(indices.symbol(loop.body.block.args[0]))
        self._moved = {old: lower + first * lanes + self._lane}
        self._inside = {
            str(indices.symbol(value))
            for op in all_ops(loop)
            for value in (*op.results, *_arguments_in(op))
            if isinstance(value.type, IndexType)
        }
        self._accesses = [op for op in all_ops(loop) if isinstance(op, LoadOp | StoreOp)]

    def are_independent(self, *, far: bool) -> bool:
        """
        True if accesses that vary between lanes are contiguous (with `far` along any dimension, a
        constant number of elements apart), and no lane touches elements that another one writes:
        then the index along the lanes is the same in all accesses to a buffer, except for the lane.
        """
        places: dict[SSAValue, set[tuple[int, Expr] | None]] = {}
        written: set[SSAValue] = set()
        for op in self._accesses:
            exprs = self._exprs(op)
            buffer = ref_type(op.ref)
            varies = [axis for axis, e in enumerate(exprs) if str(self._lane) in e.symbols]
            place = None
            if varies:
                axis = varies[0]
                base = exprs[axis] - self._lane
                is_known = (buffer.strides.data[axis].value or 0) > 0
                fits = is_known if far else axis == buffer.innermost
                if len(varies) > 1 or str(self._lane) in base.symbols or not fits:
                    return False
                if value_type(buffer.element) not in _MEMORY_TYPES:
                    return False
                place = axis, base
            if isinstance(op, StoreOp):
                written.add(op.ref)
            places.setdefault(op.ref, set()).add(place)
        return any(place is not None for found in places.values() for place in found) and all(
            self._is_one_place(places[ref]) for ref in written
        )

    def _is_one_place(self, places: set[tuple[int, Expr] | None]) -> bool:
        (place, *others) = places
        return place is not None and not others and not place[1].symbols & self._inside

    def _exprs(self, op: LoadOp | StoreOp) -> list[Expr]:
        exprs = self._indices.read(op.map.data, op.indices)
        return [simplified(e.substitute(self._moved), self._indices.ranges) for e in exprs]


def _arguments_in(op: Operation) -> Iterator[SSAValue]:
    """The arguments of the blocks of an op; a branch without an op has no block."""
    return (arg for region in op.regions for block in region.blocks for arg in block.args)
