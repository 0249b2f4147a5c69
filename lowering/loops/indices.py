"""Copying ops of a kernel, with their index expressions over other index values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import ApplyOp, CheckIndexOp, ForOp, FuncOp, LoadOp, StoreOp
from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.buffer.tiles import DotTilesOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.buffer.vector import PrefetchOp
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Atom, Expr, ExprLike, maximum
from lowerdeck.dialects.intervals import interval, simplified
from lowerdeck.dialects.walking import operands_of
from lowerdeck.lowering.nests.index_symbols import IndexSymbols

_MAPS: Mapping[type[Operation], tuple[str, int]] = {
    LoadOp: ("map", 1),
    StoreOp: ("map", 2),
    ApplyOp: ("map", 0),
    CheckIndexOp: ("bound", 1),
    ForOp: ("range", 0),
    PrefetchOp: ("offset", 1),
    DotTilesOp: ("map", 3),
}
"""The property that holds expressions over the operands `indices`, and how many precede them."""

Reading: TypeAlias = tuple[Operation, DimsAttr, list[SSAValue], list[Expr]]
"""An op with its expressions and its operands, and what the expressions are over symbols."""

Op = TypeVar("Op", bound=Operation)


class Indices(IndexSymbols):
    """One symbol for each index value of an existing kernel."""

    def __init__(self) -> None:
        super().__init__()
        # By identity, as they are equal; the values live as long as their symbols.
        self._symbols: dict[int, Expr] = {}
        self._functions: list[FuncOp] = []
        self._gathered: set[Expr] | None = None
        self._readings: dict[int, Reading] = {}

    def symbol(self, value: SSAValue) -> Expr:
        """The symbol of an index value."""
        if (known := self._symbols.get(id(value))) is not None:
            return known
        symbol = self._symbols[id(value)] = self.new(value)
        return symbol

    def loop(self, op: ForOp) -> Expr:
        """The symbol of a loop's index; its range is kept if it is known."""
        symbol = self.symbol(op.body.block.args[0])
        bounds = self.read_op(op)
        self.limit(symbol, bounds[0], bounds[1])
        return symbol

    def add_sizes(self, function: FuncOp) -> None:
        """The dimensions of a kernel's buffers are not negative."""
        self._functions.append(function)
        self._gathered = None

    @property
    def _sizes(self) -> set[Expr]:
        """Those dimensions, gathered where they are first asked for, as few are."""
        if self._gathered is None:
            blocks = (function.body.block for function in self._functions)
            types = (type_ for block in blocks for type_ in block.arg_types)
            refs = (type_ for type_ in types if isinstance(type_, RefType))
            self._gathered = {dim for ref in refs for dim in ref.dims.data}
        return self._gathered

    def extent(self, lower: ExprLike, upper: ExprLike) -> Expr:
        """
        The number of iterations from `lower` to `upper`: zero if `upper` is less. Tiles of a
        negative number of iterations would not be empty.
        """
        size = simplified(upper - Expr.of(lower), self.ranges)
        return size if self._is_size(size) else maximum(size, 0)

    def _is_size(self, expr: Expr) -> bool:
        """True if an expression is provably not negative."""
        if expr in self._sizes:
            return True
        bounds = interval(expr, self.ranges)
        if bounds is not None and bounds[0] >= 0:
            return True
        return all(c > 0 and all(map(self._is_size_atom, m)) for m, c in expr.terms)

    def _is_size_atom(self, atom: Atom) -> bool:
        if atom.kind == "symbol":
            known = self.ranges.get(atom.name)
            return Expr.symbol(atom.name) in self._sizes or (known is not None and known[0] >= 0)
        if atom.kind in ("min", "max"):
            return (all if atom.kind == "min" else any)(map(self._is_size, atom.args))
        divisor = atom.args[1].value
        if divisor is None or divisor <= 0:
            return False
        return atom.kind == "mod" or self._is_size(atom.args[0])

    def read(self, exprs: Sequence[Expr], operands: Sequence[SSAValue]) -> list[Expr]:
        """Expressions over d0, d1, ... as expressions over symbols."""
        names = by_operand([self.symbol(operand) for operand in operands])
        return [expr.substitute(names) for expr in exprs]

    def read_op(self, op: Operation) -> list[Expr]:
        """The index expressions of an op over symbols; one that is copied often is read once."""
        name, before = _MAPS[type(op)]
        attribute, operands = cast(DimsAttr, op.properties[name]), list(operands_of(op))
        known = self._readings.get(id(op))
        if known is not None and known[1] is attribute and known[2] == operands:
            return known[3]
        # What a loop carries comes after its index operands.
        end = len(operands) - len(op.results) if isinstance(op, ForOp) else len(operands)
        exprs = self.read(attribute.data, operands[before:end])
        self._readings[id(op)] = op, attribute, operands, exprs
        return exprs

    def write(self, exprs: Sequence[ExprLike]) -> tuple[list[Expr], list[SSAValue]]:
        """Expressions over symbols as expressions over d0, d1, ..., and these operands."""
        values = self.simplified(exprs)
        renamed, operands = self.operands_in(values)
        return [value.substitute(renamed) for value in values], operands


def _clone(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    """What `clone` of xDSL gives; without regions, operands are there from the beginning."""
    return op.clone(values) if op.regions else op.clone_without_regions(values)


class Cloner:
    """
    Copies ops into new blocks. `values` maps the values of the source to their replacements,
    `moved` maps its index values.
    """

    def __init__(
        self,
        indices: Indices,
        values: dict[SSAValue, SSAValue] | None = None,
        moved: dict[str, Expr] | None = None,
    ) -> None:
        self.indices = indices
        self.values = {} if values is None else values
        self.moved = {} if moved is None else moved

    def fork(self) -> Cloner:
        """A cloner that begins with the mapping of this one."""
        return Cloner(self.indices, dict(self.values), dict(self.moved))

    def exprs(self, op: Operation) -> list[Expr]:
        """The index expressions of an op, over symbols of the new values."""
        return [expr.substitute(self.moved) for expr in self.indices.read_op(op)]

    def value(self, value: SSAValue) -> SSAValue:
        """The replacement of a value."""
        return self.values.get(value, value)

    def clone(self, op: Operation, block: Block) -> Operation:
        """Copy an op, with its regions, to the end of a block."""
        if isinstance(op, ForOp):
            return self._clone_loop(op, block)
        if type(op) in _MAPS:
            exprs = self.exprs(op)
            new = self.with_indices(op, exprs)
        elif isinstance(op, scf.IfOp):
            regions = [self._clone_region(region) for region in op.regions]
            cond, types = self.value(op.cond), [result.type for result in op.results]
            new = scf.IfOp(cond, types, regions[0], regions[1] if len(regions) > 1 else None)
        else:
            new = _clone(op, {operand: self.operand(operand, block) for operand in operands_of(op)})
        new.location = op.location
        self.add(new, op, block)
        return new

    def add(self, new: Operation, old: Operation, block: Block) -> None:
        """Append the replacement of an op."""
        block.add_op(new)
        for before, after in zip(old.results, new.results, strict=True):
            self.values[before] = after
            if isinstance(before.type, IndexType):
                self.moved[str(self.indices.symbol(before))] = self.indices.symbol(after)

    def take_over(self, op: Operation, other: Cloner) -> None:
        """Use what another cloner, of the same indices, has made of an op."""
        for result in op.results:
            self.values[result] = other.values[result]
            symbol = str(self.indices.symbol(result))
            if symbol in other.moved:
                self.moved[symbol] = other.moved[symbol]

    def operand(self, value: SSAValue, block: Block) -> SSAValue:
        """The replacement of a value as an operand: a moved index may have to be computed."""
        if isinstance(value.type, IndexType):
            symbol = str(self.indices.symbol(value))
            if symbol in self.moved:
                (expr,), operands = self.indices.write([self.moved[symbol]])
                apply = ApplyOp(expr, operands)
                block.add_op(apply)
                return apply.result
        return self.value(value)

    def with_indices(self, op: Operation, exprs: Sequence[Expr]) -> Operation:
        """A copy of an op with other index expressions."""
        new_exprs, operands = self.indices.write(exprs)
        name, before = _MAPS[type(op)]
        others = operands_of(op)[:before]
        properties = {**op.properties, name: DimsAttr(tuple(new_exprs))}
        return type(op).create(
            operands=[*map(self.value, others), *operands],
            result_types=[result.type for result in op.results],
            properties=properties,
            attributes=op.attributes,
        )

    def _clone_region(self, region: Region) -> Region:
        if not region.blocks:
            return Region()
        block = Block()
        inner = self.fork()
        for op in region.block.ops:
            inner.clone(op, block)
        return Region(block)

    def _clone_loop(self, op: ForOp, block: Block) -> ForOp:
        new, inner = self.open_loop(op, [value.type for value in op.inits])
        for member in op.body.block.ops:
            inner.clone(member, new.body.block)
        self.add(new, op, block)
        return new

    def open_loop(
        self, op: ForOp, types: Sequence[Attribute], inits: Sequence[SSAValue] | None = None
    ) -> tuple[ForOp, Cloner]:
        """A loop like `op` with an empty body, and the cloner for its body."""
        (lower, upper, step), operands = self.indices.write(self.exprs(op))
        body = Block(arg_types=[IndexType(), *types])
        new = ForOp(
            (lower, upper, step),
            operands,
            [self.value(value) for value in op.inits] if inits is None else inits,
            Region(body),
            parallel=bool(op.parallel.value.data),
            label=None if op.label is None else op.label.data,
            mode=None if op.mode is None else op.mode.data,
        )
        new.location = op.location
        inner = self.fork()
        inner.moved[str(self.indices.symbol(op.body.block.args[0]))] = self.indices.loop(new)
        if inits is None:
            inner.values.update(zip(op.body.block.args[1:], body.args[1:], strict=True))
        return new, inner
