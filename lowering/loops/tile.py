"""`tile`: tile and reorder the independent loops of a nest."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region

from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, YieldOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.parameters import REST, Part, parts_of
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.targets.base import Target


def nest_of(top: ForOp) -> list[ForOp]:
    """The labeled loops from `top` inward that contain nothing but the next one."""
    chain = [top]
    while True:
        ops = list(chain[-1].body.block.ops)
        following = ops[0]
        if len(ops) != 2 or not isinstance(following, ForOp):
            return chain
        if following.inits or following.label is None or following.mode is not None:
            return chain
        chain.append(following)


class Tiler:
    """Rebuilds one nest."""

    def __init__(self, chain: Sequence[ForOp], schedule: Schedule, most_ops: int) -> None:
        self._indices = Indices()
        limit_by_parents(chain[0], self._indices)
        self._loops = {loop.label.data: loop for loop in chain if loop.label is not None}
        self._body = chain[-1].body.block
        self._parallel = bool(chain[0].parallel.value.data)
        self._lanes = dict(schedule.lanes)
        self._tiles = dict(schedule.tiles)
        self._rest = schedule.get(REST) or 0
        # Long code is not worth another copy, nor is that of each number of rows.
        self._is_short = len(list(all_ops(self._body))) <= most_ops and not self._rest
        self._inner = [label for label in self._tiles if label in self._loops]
        self._order = order_of(list(self._loops), schedule.order)

    def build(self, block: Block) -> None:
        """Append the new nest to a block."""
        self._top = block
        self._build(0, block, Cloner(self._indices), {})

    def _build(self, depth: int, block: Block, cloner: Cloner, parts: dict[str, Part]) -> None:
        if depth == len(self._order):
            if block is self._top and self._parallel:
                # Threads share loops; straight-line code is wrapped in a loop of one iteration.
                body = Block(arg_types=[IndexType()])
                self._build_tile(self._inner, body, cloner, parts)
                body.add_op(YieldOp())
                self._add_loop(block, body, 1, self._order[0], parallel=self._parallel)
            else:
                self._build_tile(self._inner, block, cloner, parts)
            return
        label = self._order[depth]
        lower, upper, step = cloner.exprs(self._loops[label])
        count, lanes = self._tiles.get(label, 1), self._lanes.get(label, 1)
        if lower != 0 or step != 1 or count * lanes == 1:
            self._loop(depth, block, cloner, parts, (lower, upper, step))
            return
        extent = self._indices.extent(0, upper)
        for part in parts_of(extent, count, lanes, self._rest, is_short=self._is_short):
            bounds = (part.lower, part.upper, part.step)
            self._loop(depth, block, cloner, {**parts, label: part}, bounds)

    def _loop(
        self,
        depth: int,
        block: Block,
        cloner: Cloner,
        parts: dict[str, Part],
        bounds: tuple[ExprLike, ExprLike, ExprLike],
    ) -> None:
        """One loop over tiles, counted from 0 in single steps, if there is more than one tile."""
        label = self._order[depth]
        inner = cloner.fork()
        old = str(self._indices.symbol(self._loops[label].body.block.args[0]))
        lower, upper, step = map(Expr.of, bounds)
        count = (upper - lower).ceildiv(step)
        if count.value == 1:
            inner.moved[old] = lower
            self._build(depth + 1, block, inner, parts)
            return
        if count.value == 0:
            return
        body = Block(arg_types=[IndexType()])
        symbol = self._indices.symbol(body.args[0])
        self._indices.limit(symbol, 0, count)
        inner.moved[old] = lower + symbol * step
        self._build(depth + 1, body, inner, parts)
        body.add_op(YieldOp())
        self._add_loop(block, body, count, label, parallel=self._parallel and block is self._top)

    def _add_loop(
        self,
        block: Block,
        body: Block,
        count: ExprLike,
        label: str,
        mode: str | None = None,
        *,
        parallel: bool = False,
    ) -> None:
        (upper,), operands = self._indices.write([count])
        bounds = (Expr.const(0), upper, Expr.const(1))
        new = ForOp(bounds, operands, [], Region(body), parallel=parallel, label=label, mode=mode)
        new.location = self._loops[label].location
        block.add_op(new)

    def _build_tile(
        self, labels: Sequence[str], block: Block, cloner: Cloner, parts: Mapping[str, Part]
    ) -> None:
        """The loops in the tile, then those over lanes."""
        if not labels:
            lanes = [label for label in self._lanes if label in parts]
            self._build_lanes(lanes, block, cloner, parts)
            return
        part = parts.get(labels[0])
        if part is None or part.count == 1:
            self._build_tile(labels[1:], block, cloner, parts)
            return
        bounds, label = (part.count, part.lanes), labels[0]
        with self._inner_loop(label, bounds, block, cloner, "unroll") as (body, inner):
            self._build_tile(labels[1:], body, inner, parts)

    def _build_lanes(
        self, labels: Sequence[str], block: Block, cloner: Cloner, parts: Mapping[str, Part]
    ) -> None:
        """The loop over lanes, then the body."""
        if not labels:
            for op in list(self._body.ops)[:-1]:
                cloner.clone(op, block)
            return
        label, lanes = labels[0], parts[labels[0]].lanes
        if lanes == 1:
            self._build_lanes(labels[1:], block, cloner, parts)
            return
        with self._inner_loop(label, (lanes, 1), block, cloner, "lanes") as (body, inner):
            self._build_lanes(labels[1:], body, inner, parts)

    @contextmanager
    def _inner_loop(
        self, label: str, bounds: tuple[int, int], block: Block, cloner: Cloner, mode: str
    ) -> Generator[tuple[Block, Cloner]]:
        """A loop within a tile, by trip count and step."""
        body = Block(arg_types=[IndexType()])
        symbol = self._indices.symbol(body.args[0])
        self._indices.limit(symbol, 0, bounds[0])
        inner = cloner.fork()
        old = str(self._indices.symbol(self._loops[label].body.block.args[0]))
        inner.moved[old] = cloner.moved[old] + symbol * bounds[1]
        yield body, inner
        body.add_op(YieldOp())
        self._add_loop(block, body, bounds[0], label, mode)


def order_of(labels: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The labels of a nest in the order that is wanted; those it does not name stay around them."""
    named = [label for label in wanted if label in labels]
    first = min(map(labels.index, named), default=0)
    rest = [label for label in labels if label not in named]
    outside = [label for label in rest if labels.index(label) < first]
    return [*outside, *named, *rest[len(outside) :]]


def tile(block: Block, schedule: Schedule, most_ops: int) -> None:
    """
    Rebuild every nest of a block by a schedule, nested ones first; bodies of up to so many ops are
    copied for remainders in short vectors.
    """
    for top in list(block.ops):
        if not isinstance(top, ForOp):
            continue
        if top.inits or top.label is None or top.mode is not None:
            tile(top.body.block, schedule, most_ops)
            continue
        chain = nest_of(top)
        tile(chain[-1].body.block, schedule, most_ops)
        new = Block()
        Tiler(chain, schedule, most_ops).build(new)
        for op in list(new.ops):
            op.detach()
            block.insert_op_before(op, top)
        top.detach()
        top.erase()


class TilePass(FunctionPass):
    """
    Tile loops by the `schedule` of a kernel: `tile` gives sizes by label, `lanes` the lanes of
    vectors, `order` the order of the loops over tiles; those that it does not name stay outside or
    inside of the others. Loops within a tile are placed directly
    around the body, marked to be unrolled, with the lane loop innermost. The remainder at the end
    of a dimension is computed in a smaller tile; if the size is known only at run time, in a few
    smaller tiles and single steps, or, up to `rest` of these, in a tile of that size. Short bodies
    are there for shorter vectors, too.

    The loops of a nest are the labeled ones, from the outermost inward, that contain nothing but
    the next one. There may be nests in the body of another one.
    """

    name = "tile"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        if function.schedule is not None:
            most_ops = target.limits.copied_body_ops
            tile(function.body.block, function.schedule.data, most_ops)
