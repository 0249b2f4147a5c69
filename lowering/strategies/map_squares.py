"""
Maps whose inputs are contiguous along another dimension than their result: squares of elements are
transposed in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd, log2, prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import CheckIndexOp, ForOp, FuncOp, LoadOp, lane_type
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import lane_bits
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import TransposeOp
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import simplified
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.indices import Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, loops_around
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import FEWEST_TO_SHARE, Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    assumed_size,
    blocked_constants,
    layout_out,
)
from lowerdeck.lowering.targets.base import FEWEST_LANES

LARGEST_SIDE = 16
"""More rows than there are registers for them would go through memory."""


def fewest_lanes(bits: int) -> int:
    """The shortest vectors of lanes of so many bits: less than 64 bits are no faster than one."""
    return max(FEWEST_LANES, 2 * i32.width.data // bits)


SIDE, ALONG, OVERLAP = "side", "along", "overlap"
"""Parameters of a schedule: rows and columns of the largest squares, the dimension of the tensor
along which inputs are contiguous, and 1 if the last square along it ends with it and shares
elements with the one before."""

LINE_BYTES, SETS, WAYS = 64, 64, 8
"""Of the L1 cache: lines, sets of lines, and lines of one set."""


class MapSquares(Strategy):
    """
    For one result that is contiguous along another dimension than every input that has both
    dimensions, as the plain loops show.
    """

    name = "map_squares"
    anchors = ()
    parameters = (SIDE, ALONG, OVERLAP)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        if setting.target.lanes == 1 or len(kernel.results) != 1 or not may_be_across(kernel):
            return
        bits = lane_bits(lane_type(element_type(kernel.results[0])))
        most, fewest = min(setting.target.vector_bits // bits, LARGEST_SIDE), fewest_lanes(bits)
        layout, dims = layout_out(kernel), dims_of(kernel.results[0])
        across = layout.data.pieces[-1].axis
        if (loops := plain_loops(kernel)) is None:
            return
        for along in range(layout.rank):
            sizes = [size for axis in (along, across) if (size := dims[axis].value) is not None]
            side = most
            while sizes and side > min(sizes):
                side //= 2
            if along == across or side < fewest or not lies_along(loops, layout, along, side):
                continue
            overlaps = (
                dims[along] % side != 0
                and dims[along].value is not None
                and _are_inside(kernel.results[0], layout, along, side)
                and lies_along(loops, layout, along, side, anywhere=True)
            )
            # A vector of each row is loaded, goes through log2(side) steps, and is stored. What
            # fills no square is moved by itself.
            alone, share = setting.target.costs.element_cycles, 1.0
            step = (alone + log2(side)) / side
            for axis, can in ((along, overlaps), (across, can_overlap_across(layout))):
                if (size := dims[axis].value) is not None and can:
                    step *= -(-size // side) * side / size
                elif size is not None:
                    share *= size // fewest * fewest / size
            cycles = prod(assumed_shape(kernel.results[0])) * (share * step + (1 - share) * alone)
            own = ((SIDE, side), (ALONG, along), (OVERLAP, int(overlaps)))
            yield Candidate(cycles, Schedule(self.name, parameters=own))
            return

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        layout = layout_out(kernel)
        block = layout.inner(layout.data.pieces[-1].axis)
        return blocked_constants(kernel, block) if block > 1 else {}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """
        Squares of elements, computed in vectors along the inputs, are transposed and stored in
        vectors along the result. What is left are a square that ends with the dimension, where
        there may be one, or smaller squares, and then single elements.
        """
        b, dims, layout = k.builder, dims_of(k.roots[0]), k.output_layout()
        side, along = schedule.parameter(SIDE), schedule.parameter(ALONG)
        across = layout.data.pieces[-1].axis
        fewest = fewest_lanes(lane_bits(lane_type(element_type(k.roots[0]))))
        strips = list(_strips(dims[along], side, fewest, overlaps=bool(schedule.get(OVERLAP))))
        others = {piece.axis: dims[piece.axis] for piece in layout.data.pieces}
        del others[along], others[across]
        if not _are_inside(k.roots[0], layout, along, side):
            for start, count, step in strips:
                counts = {**others, along: count}
                with b.labeled_nest(_labels(counts, layout), parallel=True) as outer:
                    at = dict(zip(_ordered(counts, layout), outer, strict=True))
                    place = {**at, along: start + at[along] * step}
                    _strip(k, place, (along, across), (Expr.const(0), dims[across]), step)
            return
        for begin, count, width in _columns(dims[across], side):
            counts = {**others, across: count}
            with b.labeled_nest(_labels(counts, layout), parallel=True) as outer:
                at = dict(zip(_ordered(counts, layout), outer, strict=True))
                column = begin + at.pop(across) * side
                ends = column, column + width
                for start, number, step in strips:
                    with b.nest([number]) as (strip,):
                        place = {**at, along: start + strip * step}
                        _strip(k, place, (along, across), ends, step)


def _are_inside(result: SSAValue, layout: LayoutAttr, along: int, side: int) -> bool:
    """
    True if strips are the inner loop over squares, so that they may overlap: what is read is
    contiguous along them.

    Around them there is enough to share between threads, and no vector of the result that is no
    whole block. Within them lines of the result are written in pieces, and around them lines of the
    input are read in pieces: whichever stay in the cache until their next piece, or more of them.
    """
    dims, across = dims_of(result), layout.data.pieces[-1].axis
    if layout.data.pieces[-2].axis != along:
        return False
    if not can_overlap_across(layout):
        if dims[across] % side != 0:
            return False
    elif side * (size := numpy_dtype(element_type(result)).itemsize) < LINE_BYTES:
        lines, columns = assumed_size(dims[along]), assumed_size(dims[across])
        written = _excess(lines, columns * size, own=2)
        if written > 1 and written > _excess(columns, lines * size):
            return False
    others = [size for axis, size in enumerate(dims) if axis not in (along, across)]
    return prod(map(assumed_size, [*others, dims[across] // side])) >= FEWEST_TO_SHARE


def _excess(count: int, step: int, own: int = 1) -> float:
    """
    Lines that are so many bytes apart, as a share of those that fit into the L1 cache. Where they
    crowd into some of its sets, those that are written take the place of `own` lines.
    """
    sets = SETS * LINE_BYTES // max(gcd(step, SETS * LINE_BYTES), LINE_BYTES)
    return count * (own if sets < SETS else 1) / (sets * WAYS)


def _columns(size: Expr, side: int) -> Iterator[tuple[Expr, Expr, Expr]]:
    """The first column, the number and the width of groups of columns: squares, then the rest."""
    count = size // side
    if count != 0:
        yield Expr.const(0), count, Expr.const(side)
    if size % side == 0:
        return
    if size.value is not None and size.value > side:
        yield size - side, Expr.const(1), Expr.const(side)
    else:
        yield count * side, Expr.const(1), size - count * side


def _ordered(counts: Mapping[int, Expr], layout: LayoutAttr) -> list[int]:
    """The dimensions in the order in which the result has them."""
    order = [piece.axis for piece in layout.data.pieces]
    return sorted(counts, key=order.index)


def _labels(counts: Mapping[int, Expr], layout: LayoutAttr) -> list[tuple[str, Expr]]:
    return [(f"d{axis}", counts[axis]) for axis in _ordered(counts, layout)]


def can_overlap_across(layout: LayoutAttr) -> bool:
    """True if vectors of the result may begin anywhere: its dimension is not in blocks."""
    return layout.data.pieces[-1].size is None


def _strips(
    size: Expr, side: int, fewest: int, *, overlaps: bool = False
) -> Iterator[tuple[Expr, Expr, int]]:
    """
    The first element, the number and the width of strips of a dimension: wide ones, then one that
    ends with the dimension; or narrower and narrower ones, then single elements.
    """
    start, width = Expr.const(0), side
    while width:
        if (count := (size - start) // width) != 0:
            yield start, count, width
        start = start + count * width
        if overlaps:
            if start != size:
                yield size - side, Expr.const(1), side
            return
        width = width // 2 if width // 2 >= fewest else min(width - 1, 1)


def _strip(
    k: KernelLowering,
    at: dict[int, Expr],
    axes: tuple[int, int],
    ends: tuple[Expr, Expr],
    lanes: int,
) -> None:
    """As many elements along the first axis, and those between two ends of the other one."""
    b, (along, across), (done, size) = k.builder, axes, ends
    side, fewest = lanes, fewest_lanes(lane_bits(lane_type(element_type(k.roots[0]))))
    overlaps = can_overlap_across(k.output_layout())
    while side >= fewest:
        count = (size - done) // side
        if count != 0:
            with b.nest([count]) as (number,), b.nest([lanes // side]) as (part,):
                begin = {along: at[along] + part * side, across: done + number * side}
                _square(k, {**at, **begin}, along, across, side)
        done, rest = done + count * side, (size - done).value
        if overlaps and done != size and rest is not None and rest > side:
            with b.nest([lanes // side]) as (part,):
                begin = {along: at[along] + part * side, across: size - side}
                _square(k, {**at, **begin}, along, across, side)
            return
        side //= 2
    if done != size:
        with b.loop(size, done) as column, b.nest([lanes]) as (lane,):
            _store(k, {**at, along: at[along] + lane, across: column})


def _square(k: KernelLowering, at: dict[int, Expr], along: int, across: int, side: int) -> None:
    """A square of elements, from the index on."""
    b = k.builder
    square = b.scratch(element_type(k.roots[0]), [side, side])
    with b.loop(side, mode="unroll") as row, b.loop(side, mode="lanes") as lane:
        place = {**at, along: at[along] + lane, across: at[across] + row}
        b.store(k.element(k.roots[0], _index(place)), square, [row, lane])
    b.transpose(square)
    with b.loop(side, mode="unroll") as row, b.loop(side, mode="lanes") as lane:
        place = {**at, along: at[along] + row, across: at[across] + lane}
        b.store(b.load(square, [row, lane]), k.outputs[0], _index(place))


def _store(k: KernelLowering, at: dict[int, Expr]) -> None:
    k.builder.store(k.element(k.roots[0], _index(at)), k.outputs[0], _index(at))


def _index(at: dict[int, Expr]) -> list[Expr]:
    return [at[axis] for axis in sorted(at)]


def plain_loops(kernel: KernelOp) -> FuncOp | None:
    """The loops of a kernel without a schedule; None if what it reads depends on data or tests."""
    loops = KernelLowering(kernel).lower()
    is_of_data = any(isinstance(op, CheckIndexOp | scf.IfOp) for op in all_ops(loops))
    return None if is_of_data else loops


def may_be_across(kernel: KernelOp) -> bool:
    """True if the order of dimensions changes within the kernel, or by layouts."""
    result = kernel.layout_at(len(kernel.inputs))
    if result.rank < 2:
        return False
    inputs = [kernel.layout_at(number) for number in range(len(kernel.inputs))]
    return any(isinstance(op, TransposeOp) for op in kernel.body.block.ops) or any(
        layout.data.pieces != result.data.pieces for layout in inputs if layout.rank == result.rank
    )


def lies_along(
    loops: FuncOp, layout: LayoutAttr, along: int, lanes: int, *, anywhere: bool = False
) -> bool:
    """
    True if elements loaded at an index of both dimensions are contiguous along the first of them,
    in vectors of so many lanes that begin at multiples of these, or `anywhere`, and so is
    everything that the index depends on.
    """
    across = len(layout.data.pieces) - 1
    whole = [
        number
        for number, piece in enumerate(layout.data.pieces)
        if piece.axis == along and piece.size is None and piece.stride == 1
    ]
    if not whole:
        return False
    found = False
    inputs = loops.body.block.args[: len(loops.body.block.args) - loops.outputs.data]
    for op in all_ops(loops):
        if not isinstance(op, LoadOp) or op.ref not in inputs:
            continue
        index, other = _index_of(op, f"d{whole[0]}"), _index_of(op, f"d{across}")
        if index is None or other is None:
            return False
        indices = Indices()
        limit_by_parents(op, indices)
        place = indices.read(op.map.data, op.indices)
        name, other_name = str(indices.symbol(index)), str(indices.symbol(other))
        if not any(name in expr.symbols for expr in place):
            continue
        if not _is_side_by_side(op, place, name, indices, (lanes, 1 if anywhere else lanes)):
            return False
        found = found or any(other_name in expr.symbols for expr in place)
    return found


def _index_of(op: Operation, label: str) -> SSAValue | None:
    """The index of the enclosing loop with a label."""
    return next((loop.body.block.args[0] for loop in loops_around(op) if _is(loop, label)), None)


def _is(loop: ForOp, label: str) -> bool:
    return loop.label is not None and loop.label.data == label


def _is_side_by_side(
    op: LoadOp, place: list[Expr], name: str, indices: Indices, vectors: tuple[int, int]
) -> bool:
    """True if vectors of so many lanes have unit stride, that begin so far from each other."""
    lanes, step = vectors
    type_, lane = ref_type(op.ref), Expr.symbol("lane")
    ranges = {**indices.ranges, "lane": (0, lanes - 1)}
    moved = {name: Expr.symbol(name) * step + lane}
    # The index of a vector has another range than that of an element.
    ranges.pop(name, None)
    exprs = [simplified(expr.substitute(moved), ranges) for expr in place]
    if type_.strides.data[type_.innermost] != 1:
        return False
    exprs[type_.innermost] = exprs[type_.innermost] - lane
    return not any("lane" in expr.symbols for expr in exprs)
