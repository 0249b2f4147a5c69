"""Builder for the body of a kernel: loops, accesses and scalars, with indices as expressions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import (
    ApplyOp,
    CheckIndexOp,
    ForOp,
    LoadOp,
    ScratchOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.operands import parameter
from lowerdeck.dialects.buffer.tiles import DotTilesOp, ReleaseTilesOp, Windows
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.buffer.vector import TransposeOp
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.types import bit_width, is_float
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.dialects.intervals import interval
from lowerdeck.lowering.nests.index_symbols import IndexSymbols


class KernelBuilder:
    """
    Appends ops to the innermost open block.

    Indices are expressions over loop variables and dimension symbols; the builder turns them into
    operands d0, d1, ... and function symbols s0, s1, ... (`symbols` lists the latter's names).
    Buffers are accessed at indices of the tensor that they hold; `layouts` maps these to the
    storage of buffers that are not in C order.
    """

    def __init__(self, block: Block) -> None:
        self._blocks = [block]
        self._known: list[dict[Hashable, SSAValue]] = [{}]
        self._indices = IndexSymbols()
        self.symbols: list[str] = []
        self.layouts: dict[SSAValue, LayoutAttr] = {}

    def add(self, op: Operation) -> SSAValue:
        """Append an op with one result."""
        self._blocks[-1].add_op(op)
        return op.results[0]

    def append(self, op: Operation) -> None:
        """Append an op for its effect."""
        self._blocks[-1].add_op(op)

    def _open(self, block: Block) -> None:
        self._blocks.append(block)
        self._known.append({})

    def _close(self) -> None:
        self._blocks.pop()
        self._known.pop()

    def recall(self, key: Hashable) -> SSAValue | None:
        """The value remembered under a key in one of the open blocks, and so visible here."""
        return next((known[key] for known in reversed(self._known) if key in known), None)

    def remember(self, key: Hashable, value: SSAValue) -> SSAValue:
        """Keep a value until the innermost open block is closed."""
        self._known[-1][key] = value
        return value

    # Indices

    def index(self, value: SSAValue) -> Expr:
        """An index value as an expression."""
        return self._indices.new(value)

    def _loop_index(self, value: SSAValue, lower: ExprLike, upper: ExprLike) -> Expr:
        """The index of a loop, whose range is kept if it is known."""
        index = self.index(value)
        self._indices.limit(index, lower, upper)
        return index

    def value_of(self, index: Expr) -> SSAValue:
        """The value that an expression returned by `index` stands for."""
        return self._indices.value_of(index)

    def bound(self, exprs: Sequence[ExprLike]) -> tuple[list[Expr], list[SSAValue]]:
        """The expressions over dK and sK, and the operands for the dK."""
        values = self._indices.simplified(exprs)
        renamed, operands = self._indices.operands_in(values)
        for name in sorted({name for value in values for name in value.symbols} - renamed.keys()):
            if name not in self.symbols:
                self.symbols.append(name)
            renamed[name] = parameter(self.symbols.index(name))
        return [value.substitute(renamed) for value in values], operands

    def as_integer(self, expr: ExprLike, type_: IntegerType = i64) -> SSAValue:
        """The value of an expression as an i64, or a narrower integer that holds it."""
        if (number := Expr.of(expr).value) is not None:
            return self.integer(number, type_)
        exprs, operands = self.bound([expr])
        return self.add(arith.IndexCastOp(self.add(ApplyOp(exprs[0], operands)), type_))

    def from_integer(self, value: SSAValue) -> Expr:
        """An i64 that is known to be a valid index, as an expression."""
        return self.index(self.add(arith.IndexCastOp(value, IndexType())))

    def checked(self, value: SSAValue, bound: ExprLike) -> Expr:
        """An i64 from data as an index into a dimension; an index out of range ends the run."""
        exprs, operands = self.bound([bound])
        return self.index(self.add(CheckIndexOp(value, exprs[0], operands)))

    def computed(self, expr: Expr) -> Expr:
        """The value of an expression, computed here once, as an expression."""
        if expr.value is not None:
            return expr
        exprs, operands = self.bound([expr])
        if exprs[0].value is not None:
            return exprs[0]
        index = self.index(self.add(ApplyOp(exprs[0], operands)))
        ranges = self._indices.ranges
        if (bounds := interval(expr, ranges)) is not None:
            ranges[str(index)] = bounds
        return index

    # Memory

    def load(self, ref: SSAValue, at: Sequence[ExprLike]) -> SSAValue:
        """The element of a buffer."""
        return self.add(LoadOp(ref, *self.bound(self._place(ref, at))))

    def load_word(self, ref: SSAValue, at: Sequence[ExprLike]) -> SSAValue:
        """Four bytes of a buffer, the first one at an index, as an i32."""
        return self.add(LoadOp(ref, *self.bound(self._place(ref, at)), word=True))

    def store(self, value: SSAValue, ref: SSAValue, at: Sequence[ExprLike]) -> None:
        """Set the element of a buffer."""
        self.append(StoreOp(value, ref, *self.bound(self._place(ref, at))))

    def scratch(
        self, element: Attribute, dims: Sequence[ExprLike], used: ExprLike | None = None
    ) -> SSAValue:
        """
        A small buffer that is visible only in the innermost open block; at most the first `used`
        rows of it are needed.
        """
        if used is None or Expr.of(used).value is not None:
            return self.add(ScratchOp(RefType.of(element, dims)))
        (rows,), operands = self.bound([used])
        return self.add(ScratchOp(RefType.of(element, dims), None if operands else rows))

    def dot_tiles(
        self,
        factors: tuple[SSAValue, SSAValue],
        total: SSAValue,
        starts: tuple[Sequence[ExprLike], Sequence[ExprLike]],
        sizes: tuple[ExprLike, ExprLike, int],
        packing: Packing,
        *,
        adds: bool = False,
        tiled: bool = False,
        windows: Windows | None = None,
    ) -> None:
        """Multiply rows of a matrix by columns of another one; `sizes`: rows, columns, words."""
        places = [self._place(ref, at) for ref, at in zip(factors, starts, strict=True)]
        exprs, operands = self.bound([*places[0], *places[1], *sizes])
        flags = {"adds": adds, "tiled": tiled}
        op = DotTilesOp(factors, total, exprs, operands, packing, **flags, windows=windows)
        self.append(op)

    def release_tiles(self) -> None:
        """End a sequence of such products."""
        self.append(ReleaseTilesOp())

    def transpose(self, ref: SSAValue) -> None:
        """Swap rows and columns of a square."""
        self.append(TransposeOp(ref))

    def store_border(self, value: SSAValue, ref: SSAValue, place: Sequence[ExprLike]) -> None:
        """Store to an index of the storage that corresponds to no index of the tensor."""
        self.append(StoreOp(value, ref, *self.bound(place), border=True))

    def _place(self, ref: SSAValue, at: Sequence[ExprLike]) -> Sequence[ExprLike]:
        layout = self.layouts.get(ref)
        return at if layout is None else layout.index([Expr.of(index) for index in at])

    # Control flow

    @contextmanager
    def loop(
        self,
        upper: ExprLike,
        lower: ExprLike = 0,
        step: int = 1,
        *,
        parallel: bool = False,
        label: str | None = None,
        mode: str | None = None,
    ) -> Generator[Expr]:
        """A loop without carried values; yields its index."""
        block = Block(arg_types=[IndexType()])
        self._open(block)
        yield self._loop_index(block.args[0], lower, upper)
        self.append(YieldOp())
        self._close()
        (first, last, by), operands = self.bound([lower, upper, step])
        new = ForOp(
            (first, last, by),
            operands,
            [],
            Region(block),
            parallel=parallel,
            label=label,
            mode=mode,
        )
        self.append(new)

    @contextmanager
    def nest(self, sizes: Sequence[ExprLike], *, parallel: bool = False) -> Generator[list[Expr]]:
        """
        Nested loops over all indices of a shape, the outermost one parallel if asked; a dimension
        of size one needs no loop.
        """
        if not sizes:
            yield []
        elif Expr.of(sizes[0]) == 1:
            with self.nest(sizes[1:], parallel=parallel) as inner:
                yield [Expr.const(0), *inner]
        else:
            with self.loop(sizes[0], parallel=parallel) as outer, self.nest(sizes[1:]) as inner:
                yield [outer, *inner]

    @contextmanager
    def labeled_nest(
        self, sizes: Sequence[tuple[str, ExprLike]], *, parallel: bool = False
    ) -> Generator[list[Expr]]:
        """
        Nested loops with labels that are independent of each other, for a schedule to tile and
        reorder; a dimension of size one needs no loop.
        """
        if not sizes:
            yield []
            return
        label, size = sizes[0]
        if Expr.of(size) == 1:
            with self.labeled_nest(sizes[1:], parallel=parallel) as inner:
                yield [Expr.const(0), *inner]
            return
        with (
            self.loop(size, parallel=parallel, label=label) as outer,
            self.labeled_nest(sizes[1:]) as inner,
        ):
            yield [outer, *inner]

    def carry(
        self,
        upper: ExprLike,
        inits: Sequence[SSAValue],
        body: Callable[[Expr, Sequence[SSAValue]], Sequence[SSAValue]],
        lower: ExprLike = 0,
        *,
        mode: str | None = None,
    ) -> tuple[SSAValue, ...]:
        """A loop that carries values: `body` maps the index and the current ones to the next."""
        block = Block(arg_types=[IndexType(), *(value.type for value in inits)])
        self._open(block)
        following = body(self._loop_index(block.args[0], lower, upper), block.args[1:])
        self.append(YieldOp(following))
        self._close()
        bounds, operands = self.bound([lower, upper, 1])
        op = ForOp((bounds[0], bounds[1], bounds[2]), operands, inits, Region(block), mode=mode)
        self.append(op)
        return tuple(op.results)

    def carry_nest(
        self,
        bounds: Sequence[tuple[ExprLike, ExprLike]],
        inits: Sequence[SSAValue],
        body: Callable[[Sequence[Expr], Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> tuple[SSAValue, ...]:
        """Nested loops from lower to upper bounds that carry values through all of them."""
        if not bounds:
            return tuple(body([], inits))
        (lower, upper), rest = bounds[0], bounds[1:]
        if Expr.of(upper) - lower == 1:
            only = Expr.of(lower)
            return self.carry_nest(rest, inits, lambda inner, values: body([only, *inner], values))
        return self.carry(
            upper,
            inits,
            lambda outer, values: self.carry_nest(
                rest, values, lambda inner, carried: body([outer, *inner], carried)
            ),
            lower,
        )

    def choose(
        self,
        condition: SSAValue,
        on_true: Callable[[], SSAValue],
        on_false: Callable[[], SSAValue],
        type_: Attribute,
    ) -> SSAValue:
        """One of two values; only the selected one is computed."""
        blocks: list[Block] = []
        for build in (on_true, on_false):
            blocks.append(Block())
            self._open(blocks[-1])
            self.append(scf.YieldOp(build()))
            self._close()
            _keep_apart(blocks[-1])
        return self.add(scf.IfOp(condition, [type_], Region(blocks[0]), Region(blocks[1])))

    @contextmanager
    def when(self, condition: SSAValue, *, in_lanes: bool = False) -> Generator[None]:
        """Ops that run only if the condition holds; it is the same for all lanes around."""
        block = Block()
        self._open(block)
        yield
        self.append(scf.YieldOp())
        self._close()
        if not in_lanes:
            _keep_apart(block)
        self.append(scf.IfOp(condition, [], Region(block)))

    # Scalars

    def integer(self, value: int, type_: Attribute) -> SSAValue:
        """A signless integer constant; the bits of `value` modulo 2^width."""
        width = bit_width(type_)
        wrapped = value & ((1 << width) - 1)
        if width > 1 and wrapped >> (width - 1):
            wrapped -= 1 << width
        return self.add(arith.ConstantOp(IntegerAttr(wrapped, IntegerType(width))))

    def floating(self, value: float, type_: Attribute) -> SSAValue:
        """A floating-point constant."""
        assert is_float(type_)
        return self.add(arith.ConstantOp(FloatAttr(value, type_)))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """a * b + c of floats, rounded once where the machine can."""
        return self.add(math.FmaOp(a, b, c))

    def is_less(self, lhs: ExprLike, rhs: ExprLike) -> bool | None:
        """Whether an expression is less than another one, if the ranges of indices tell."""
        bounds = interval(Expr.of(lhs) - Expr.of(rhs), self._indices.ranges)
        if bounds is None or bounds[0] < 0 <= bounds[1]:
            return None
        return bounds[1] < 0

    def compare_index(self, predicate: str, lhs: ExprLike, rhs: ExprLike) -> SSAValue:
        """Compare two expressions as signed integers: eq, ne, slt, sle, sgt or sge."""
        difference = Expr.of(lhs) - Expr.of(rhs)
        return self.add(arith.CmpiOp(self.as_integer(difference), self.integer(0, i64), predicate))


def _keep_apart(block: Block) -> None:
    """
    Make the loads of a branch volatile: when vectorizing, gcc 12 turns pairs of them into masked
    loads with a wrong mask.
    """
    for op in block.ops:
        if isinstance(op, LoadOp):
            op.volatile = UnitAttr()
