"""
Convolutions by Winograd's algorithm: inputs are transformed tile by tile, one matrix product for
each element of a transformed tile sums over the channels, and outputs are transformed back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import f32, static_shape
from lowerdeck.dialects.core.winograd import Matrix, matrices
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.builder import KernelBuilder
from lowerdeck.lowering.kernels.convolution import OUTPUT_CHANNEL, can_be_blocked
from lowerdeck.lowering.kernels.lower import KernelLowering, parameter

TILE = "tile"
"""The label of the loop over tiles in the matrix products; that over blocks of output channels has
the one of convolutions."""

GROUP, PARTS = "group", "parts"
"""What a schedule has under `tile` beside: how many tiles are transformed and multiplied at a time,
so that they stay in the cache, and into how many parts, for threads, groups are dealt."""

_LINE = 16
"""Elements of f32 in a cache line."""


def linear_map(b: KernelBuilder, matrix: Matrix, values: Sequence[SSAValue]) -> list[SSAValue]:
    """
    A constant matrix times values, with few operations.

    Two columns that differ in signs alone are replaced by a sum and a difference; two rows that
    differ in the signs of some columns alone are sum and difference of two parts.
    """
    rows = [dict((k, c) for k, c in enumerate(row) if c) for row in matrix]
    terms = list(values)
    for i in range(len(values)):
        for j in range(i):
            _join_columns(b, rows, terms, j, i)
    results: dict[int, SSAValue] = {}
    for i in range(len(rows)):
        for j in range(i):
            if i in results or j in results or (split := _even_and_odd(rows[j], rows[i])) is None:
                continue
            even, odd, factor = split
            same, other = _combine(b, even, terms), _combine(b, odd, terms)
            results[j] = _add_scaled(b, same, other, factor)
            results[i] = _add_scaled(b, same, other, -factor)
    return [results[k] if k in results else _combine(b, row, terms) for k, row in enumerate(rows)]


Row = dict[int, Fraction]
"""The coefficients of a linear combination that are not zero."""


def _join_columns(b: KernelBuilder, rows: list[Row], terms: list[SSAValue], i: int, j: int) -> None:
    """Terms i and j become their sum and difference, if no row has them otherwise."""
    pairs = [(row.get(i), row.get(j)) for row in rows]
    used = [(x, y) for x, y in pairs if x is not None or y is not None]
    if len(used) < 2 or any(x is None or y is None or abs(x) != abs(y) for x, y in used):
        return
    first, second = terms[i], terms[j]
    terms[i], terms[j] = scalars.add(b, first, second), b.add(arith.SubfOp(first, second))
    for row in rows:
        if i in row:
            coefficient, other = row.pop(i), row.pop(j)
            row[i if coefficient == other else j] = coefficient


def _even_and_odd(first: Row, second: Row) -> tuple[Row, Row, Fraction] | None:
    """E, O and f with rows E + f O and E - f O; None if they have not two such parts."""
    if first.keys() != second.keys():
        return None
    even = {k: c for k, c in first.items() if second[k] == c}
    odd = {k: c for k, c in first.items() if second[k] == -c}
    if not odd or len(even) + len(odd) < max(len(first), 3):
        return None
    factor = odd[max(odd)]
    return even, {k: c / factor for k, c in odd.items()}, factor


def _combine(b: KernelBuilder, row: Row, terms: Sequence[SSAValue]) -> SSAValue:
    """A linear combination; it begins with a term that needs no multiplication, if there is one."""
    order = sorted(row, key=lambda k: (row[k] != 1, -k))
    total: SSAValue | None = None
    for k in order:
        if total is None:
            total = terms[k] if row[k] == 1 else _scaled(b, terms[k], row[k])
        else:
            total = _add_scaled(b, total, terms[k], row[k])
    return scalars.constant(b, 0, f32) if total is None else total


def _scaled(b: KernelBuilder, value: SSAValue, factor: Fraction) -> SSAValue:
    return b.add(arith.MulfOp(value, b.floating(float(factor), f32)))


def _add_scaled(b: KernelBuilder, total: SSAValue, value: SSAValue, factor: Fraction) -> SSAValue:
    if factor == 1:
        return scalars.add(b, total, value)
    if factor == -1:
        return b.add(arith.SubfOp(total, value))
    return b.fma(value, b.floating(float(factor), f32), total)


def transform(
    b: KernelBuilder, matrix: Matrix, tile: Sequence[Sequence[SSAValue]]
) -> list[list[SSAValue]]:
    """matrix tile matrix^T"""
    columns = [linear_map(b, matrix, column) for column in zip(*tile, strict=True)]
    return [linear_map(b, matrix, row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution in tiles."""

    size: int
    """Rows and columns of outputs in a tile."""
    taps: int
    batch: int
    height: int
    width: int

    @property
    def values(self) -> int:
        """Rows and columns of a transformed tile."""
        return self.size + self.taps - 1

    @property
    def rows(self) -> int:
        """Rows of tiles in an image."""
        return -(-self.height // self.size)

    @property
    def columns(self) -> int:
        """Columns of tiles in an image."""
        return -(-self.width // self.size)

    @property
    def tiles(self) -> int:
        """All tiles."""
        return self.batch * self.rows * self.columns


def slab(blocks: int, tiles: int, lanes: int) -> int:
    """
    Elements between two slabs of transformed values: an odd number of cache lines, because slabs
    that lie a power of two apart would throw each other out of the cache.
    """
    lines = -(-blocks * tiles * lanes // _LINE)
    return (lines | 1) * _LINE


class WinogradLowering:
    """Lowers one convolution."""

    def __init__(self, k: KernelLowering, op: ConvOp, group: int, parts: int) -> None:
        self._k, self._b, self._op = k, k.builder, op
        shape, weight = static_shape(op.result), static_shape(op.weight)
        assert shape is not None
        assert weight is not None
        self._channels = weight[1]
        self._lanes = k.output_layout().inner(1)
        size = k.layout_of(op.weight).data.winograd
        self._g = Geometry(size, weight[2], shape[0], shape[2], shape[3])
        self._group, self._parts = group, parts
        self._blocks_in = -(-weight[1] // self._lanes)
        self._blocks_out = -(-shape[1] // self._lanes)
        values = self._g.values**2
        sizes = [slab(n, group, self._lanes) for n in (self._blocks_in, self._blocks_out)]
        self._inputs, self._outputs = (k.scratch(f32, [parts, values, size]) for size in sizes)

    def lower(self) -> None:
        """
        Each part of the groups has its own scratch memory, so that threads can share the parts. The
        last group begins early enough to be as large as the others.
        """
        groups = -(-self._g.tiles // self._group)
        with self._b.nest([self._parts], parallel=True) as (part,):
            first, last = part * groups // self._parts, (part + 1) * groups // self._parts
            with self._b.loop(last, first) as group:
                start = minimum(group * self._group, self._g.tiles - self._group)
                start = self._b.computed(start)
                self._transform_inputs(part, start)
                self._multiply(part)
                self._transform_outputs(part, start, group * self._group - start)

    def _place(self, tile: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
        """
        The image of a tile, the first row and column of its outputs, and how many of its rows and
        columns belong to the tile before: the last tiles begin early enough to be whole.
        """
        g = self._g
        row, column = tile // g.columns % g.rows * g.size, tile % g.columns * g.size
        top, left = minimum(row, g.height - g.size), minimum(column, g.width - g.size)
        image = tile // (g.rows * g.columns)
        places = (image, top, left, row - top, column - left)
        image, top, left, above, before = map(self._b.computed, places)
        return image, top, left, above, before

    def _transform_inputs(self, part: Expr, start: Expr) -> None:
        b, k, values = self._b, self._k, range(self._g.values)
        matrix = matrices(self._g.size, self._g.taps).inputs
        pads = [pad.value or 0 for pad in self._op.pads_begin.data]
        with b.nest([self._blocks_in, self._group]) as (block, tile):
            image, top, left, _, _ = self._place(b.computed(start + tile))
            with b.loop(self._lanes, mode="lanes") as lane:
                channel = block * self._lanes + lane
                inputs = [
                    [
                        k.element(
                            self._op.input,
                            [image, channel, top + i - pads[0], left + j - pads[1]],
                        )
                        for j in values
                    ]
                    for i in values
                ]
                place = (block * self._group + tile) * self._lanes + lane
                for i, row in enumerate(transform(b, matrix, inputs)):
                    for j, value in enumerate(row):
                        at = [part, Expr.const(i * len(values) + j), place]
                        b.store(value, self._inputs, at)

    def _multiply(self, part: Expr) -> None:
        b, k, lanes = self._b, self._k, self._lanes
        weight = k.inputs[self._op.weight]
        count = self._g.values
        labels = [("v0", count), ("v1", count), (OUTPUT_CHANNEL, self._blocks_out)]
        with b.labeled_nest([*labels, (TILE, self._group)]) as (i, j, block, tile):
            with b.loop(lanes, mode="lanes") as lane:

                def add_product(
                    source: Expr, at: Sequence[Expr], values: Sequence[SSAValue]
                ) -> Sequence[SSAValue]:
                    place = (source * self._group + tile) * lanes + at[-1]
                    value = b.load(self._inputs, [part, i * count + j, place])
                    channels = [block * lanes + lane, source * lanes + at[-1]]
                    return [b.fma(value, b.load(weight, [*channels, i, j]), values[0])]

                whole, rest = divmod(self._channels, lanes)
                total: Sequence[SSAValue] = [scalars.constant(b, 0, f32)]
                if whole:
                    bounds = [(Expr.const(0), Expr.const(size)) for size in (whole, lanes)]
                    total = b.carry_nest(
                        bounds, total, lambda at, values: add_product(at[0], at, values)
                    )
                if rest:
                    total = b.carry_nest(
                        [(Expr.const(0), Expr.const(rest))],
                        total,
                        lambda at, values: add_product(Expr.const(whole), at, values),
                    )
                place = (block * self._group + tile) * lanes + lane
                b.store(total[0], self._outputs, [part, i * count + j, place])

    def _transform_outputs(self, part: Expr, start: Expr, done: Expr) -> None:
        """The tiles from `done` on; those before are of the group before."""
        b, k, g = self._b, self._k, self._g
        matrix = matrices(g.size, g.taps).outputs
        with b.nest([self._blocks_out]) as (block,), b.loop(self._group, done) as tile:
            image, top, left, above, before = self._place(b.computed(start + tile))
            with b.loop(self._lanes, mode="lanes") as lane:
                channel = block * self._lanes + lane
                place = (block * self._group + tile) * self._lanes + lane
                products = [
                    [
                        b.load(self._outputs, [part, Expr.const(i * g.values + j), place])
                        for j in range(g.values)
                    ]
                    for i in range(g.values)
                ]
                results = transform(b, matrix, products)
                if self._op.bias is not None:
                    bias = k.element(self._op.bias, [channel])
                    results = [[scalars.add(b, value, bias) for value in row] for row in results]
                self._finish(results, [image, channel, top, left], above, before)

    def _finish(
        self, tile: Sequence[Sequence[SSAValue]], at: Sequence[Expr], above: Expr, before: Expr
    ) -> None:
        """Store the outputs that no other tile has."""
        g = self._g
        rows, columns = g.rows * g.size - g.height, g.columns * g.size - g.width

        def store(i: int, j: int) -> None:
            where = [*at[:2], at[2] + i, at[3] + j]
            self._k.finish(self._op, where, tile[i][j])

        def store_row(i: int) -> None:
            for j in range(g.size):
                if j < columns:
                    with self._b.when(self._is_past(j, before), in_lanes=True):
                        store(i, j)
                else:
                    store(i, j)

        for i in range(g.size):
            if i < rows:
                with self._b.when(self._is_past(i, above), in_lanes=True):
                    store_row(i)
            else:
                store_row(i)

    def _is_past(self, number: int, count: Expr) -> SSAValue:
        return self._b.compare_index("sge", number, count)


def lower_winograd(k: KernelLowering, op: ConvOp) -> None:
    """The kernel of a convolution whose weights are transformed."""
    group, parts = parameter(k.kernel, GROUP), parameter(k.kernel, PARTS)
    assert group is not None
    assert parts is not None
    WinogradLowering(k, op, group, parts).lower()


def is_winograd(k: KernelLowering, op: ConvOp) -> bool:
    """True if weights are transformed."""
    return k.layout_of(op.weight).data.winograd > 0


def can_be_winograd(op: ConvOp, size: int, source: LayoutAttr, target: LayoutAttr) -> bool:
    """
    True for two dimensions of stride 1 without groups, at least a tile of outputs, and channels in
    the same blocks before and behind.
    """
    shape, weight = static_shape(op.result), static_shape(op.weight)
    if shape is None or weight is None or not can_be_blocked(op, source, target):
        return False
    return (
        len(shape) == 4
        and weight[2:] == (3, 3)
        and min(shape[2:]) >= size
        and set(ints(op.strides)) == {1}
        and set(ints(op.dilations)) == {1}
        and op.groups.data == 1
        and source.inner(1) == target.inner(1)
    )
