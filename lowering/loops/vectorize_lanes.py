"""`vectorize-lanes`: a lane loop is replaced by vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    VectorType,
    f32,
    f64,
    i1,
)
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import vector
from lowerdeck.dialects.buffer.enums import LoopMode
from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, LoadOp, StoreOp, YieldOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE, lanes_of, scalar_of, vector_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.reductions import Reduction, find_reductions
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, replace
from lowerdeck.lowering.loops.varying import is_varying, varying_values

_I32 = IntegerType(32)

_ELEMENTS = (f32, f64, _I32, IntegerType(8), IntegerType(16))
"""Element types of vectors; masks, and ops that depend on them, have lanes of 32 bits."""

WIDENED = (IntegerType(8), IntegerType(16))
"""Element types that are loaded only to be widened to i32 immediately."""

_PLAIN: frozenset[type[Operation]] = frozenset(
    {
        arith.AddfOp,
        arith.SubfOp,
        arith.MulfOp,
        arith.DivfOp,
        arith.NegfOp,
        math.FmaOp,
        arith.AddiOp,
        arith.SubiOp,
        arith.MuliOp,
        arith.MaxSIOp,
        arith.MaxUIOp,
        arith.MinSIOp,
        arith.MinUIOp,
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
        arith.ShLIOp,
        arith.ShRUIOp,
    }
)
"""Ops that apply to vectors unchanged, lane by lane."""


class NotVectorizableError(Exception):
    """An op has no vector form here."""


class Vectorizer:
    """Copies the body of a loop over lanes, with vectors in place of values that vary in it."""

    def __init__(self, loop: ForOp, lanes: int) -> None:
        self._lanes = lanes
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        self._index = self._indices.symbol(loop.body.block.args[0])
        self._loop = loop
        self._varying = varying_values(loop.body.block, [loop.body.block.args[0]])
        self._splats: dict[tuple[SSAValue, Block], SSAValue] = {}
        reductions = find_reductions(loop)
        if reductions is None:
            raise NotVectorizableError
        self._reductions = reductions
        self._combining = {op for reduction in reductions for op in reduction.ops}

    def body(self) -> tuple[Block, list[SSAValue]]:
        """
        The ops that replace the loop, and the values that replace its results;
        NotVectorizableError if there are none.
        """
        block = Block()
        cloner = Cloner(self._indices, moved={str(self._index): Expr.const(0)})
        self._ops(self._loop.body.block, cloner, block)
        results = [
            reduction.combine(block, init, self._reduced(reduction, cloner, block))
            for reduction, init in zip(self._reductions, self._loop.inits, strict=True)
        ]
        return block, results

    def _reduced(self, reduction: Reduction, cloner: Cloner, block: Block) -> SSAValue:
        """The terms of all lanes, combined."""
        terms = self.vector(reduction.term, cloner, block)
        total = vector.ReduceOp(reduction.kind, terms)
        block.add_op(total)
        if reduction.kind == "add" or not reduction.keeps_nan:
            return total.result
        # The extremum of lanes skips NaN; their sum, with zeros for numbers, does not.
        zero = arith.ConstantOp(FloatAttr(0.0, f32))
        zeros = BroadcastOp(zero.result, vector_type(f32, self._lanes))
        is_number = vector.CompareOp("eq", terms, terms)
        marks = vector.SelectOp(is_number.result, zeros.vector, terms)
        mark = vector.ReduceOp("add", marks.result)
        has_nan = arith.CmpfOp(mark.result, mark.result, "uno")
        result = arith.SelectOp(has_nan.result, mark.result, total.result)
        block.add_ops([zero, zeros, is_number, marks, mark, has_nan, result])
        return result.result

    def _ops(self, source: Block, cloner: Cloner, block: Block) -> None:
        for op in source.ops:
            if isinstance(op, YieldOp | scf.YieldOp) or op in self._combining:
                continue
            if not is_varying(op, self._varying):
                if isinstance(op, StoreOp):
                    raise NotVectorizableError
                cloner.clone(op, block)
            else:
                self._op(op, cloner, block)

    def _op(self, op: Operation, cloner: Cloner, block: Block) -> None:
        new: Operation
        if isinstance(op, LoadOp):
            new = self._load(op, cloner)
        elif isinstance(op, StoreOp):
            new = self._store(op, cloner, block)
        elif isinstance(op, ForOp):
            new = self._for(op, cloner, block)
        elif isinstance(op, scf.IfOp):
            new = self._if(op, cloner)
        elif type(op) in _PLAIN:
            operands = self._vectors(op, cloner, block)
            new = type(op).create(
                operands=operands,
                result_types=[self._vector_type(op.results[0].type)],
                properties=op.properties,
            )
        elif isinstance(op, arith.CmpfOp) and _is_of_extrema(op):
            return  # the extrema compare
        elif (form := _FORMS.get(type(op))) is not None:
            is_extremum = isinstance(op, arith.SelectOp) and _extremum_of(op) is not None
            if f64 in (*op.operand_types, *op.result_types) and not is_extremum:
                raise NotVectorizableError
            new = form(self, op, cloner, block)
        else:
            raise NotVectorizableError
        new.location = op.location
        cloner.add(new, op, block)

    def _vector_type(self, type_: Attribute) -> Attribute:
        if type_ == i1:
            return vector_type(_I32, self._lanes)
        if type_ not in _ELEMENTS:
            raise NotVectorizableError
        return vector_type(type_, self._lanes)

    def _vectors(self, op: Operation, cloner: Cloner, block: Block) -> list[SSAValue]:
        return [self.vector(operand, cloner, block) for operand in op.operands]

    def vector(self, value: SSAValue, cloner: Cloner, block: Block) -> SSAValue:
        """The vector that replaces a value: the same in all lanes if it does not vary."""
        new = cloner.value(value)
        if lanes_of(new.type):
            return new
        if isinstance(new.type, IndexType):
            raise NotVectorizableError
        key = (new, block)
        if key not in self._splats:
            self._splats[key] = self._splat(new, block)
        return self._splats[key]

    def _splat(self, value: SSAValue, block: Block) -> SSAValue:
        if value.type == i1:
            minus_one = arith.ExtSIOp(value, _I32)
            block.add_op(minus_one)
            value = minus_one.result
        splat = BroadcastOp(value, self._vector_type_of(value))
        block.add_op(splat)
        return splat.vector

    def _vector_type_of(self, value: SSAValue) -> VectorType[Attribute]:
        self._vector_type(value.type)
        return vector_type(value.type, self._lanes)

    def _place(self, op: LoadOp | StoreOp, cloner: Cloner) -> tuple[list[Expr], int]:
        """The index of the first lane, and how far apart two lanes are along the last dimension."""
        exprs = self._indices.read(op.map.data, op.indices)
        name, type_ = str(self._index), ref_type(op.ref)
        innermost = type_.innermost
        if any(name in e.symbols for axis, e in enumerate(exprs) if axis != innermost):
            raise NotVectorizableError
        last = exprs[innermost]
        step = (last.substitute({name: self._index + 1}) - last).value
        if step is None or not 1 <= step <= LARGEST_STRIDE or type_.strides.data[innermost] != 1:
            raise NotVectorizableError
        return [expr.substitute(cloner.moved) for expr in exprs], step

    def _load(self, op: LoadOp, cloner: Cloner) -> Operation:
        if op.volatile is not None or any(
            index in self._varying and index is not self._loop.body.block.args[0]
            for index in op.indices
        ):
            raise NotVectorizableError
        if op.result.type not in _ELEMENTS and not is_widened(op):
            raise NotVectorizableError
        place, step = self._place(op, cloner)
        exprs, operands = self._indices.write(place)
        return LoadOp(cloner.value(op.ref), exprs, operands, self._lanes, step)

    def _store(self, op: StoreOp, cloner: Cloner, block: Block) -> Operation:
        if any(
            index in self._varying and index is not self._loop.body.block.args[0]
            for index in op.indices
        ):
            raise NotVectorizableError
        place, step = self._place(op, cloner)
        exprs, operands = self._indices.write(place)
        if op.value.type not in _ELEMENTS or step != 1:
            raise NotVectorizableError
        value = self.vector(op.value, cloner, block)
        border = op.border is not None
        return StoreOp(value, cloner.value(op.ref), exprs, operands, border=border)

    def _for(self, op: ForOp, cloner: Cloner, block: Block) -> Operation:
        if any(index in self._varying for index in op.indices):
            raise NotVectorizableError
        arguments = op.body.block.args[1:]
        inits = [
            self.vector(init, cloner, block) if argument in self._varying else cloner.value(init)
            for init, argument in zip(op.inits, arguments, strict=True)
        ]
        new, inner = cloner.open_loop(op, [init.type for init in inits], inits)
        inner.values.update(zip(arguments, new.body.block.args[1:], strict=True))
        self._ops(op.body.block, inner, new.body.block)
        last = op.body.block.last_op
        assert isinstance(last, YieldOp)
        yields = [
            self.vector(value, inner, new.body.block)
            if argument in self._varying
            else inner.value(value)
            for value, argument in zip(last.values, arguments, strict=True)
        ]
        new.body.block.add_op(YieldOp(yields))
        return new

    def _if(self, op: scf.IfOp, cloner: Cloner) -> Operation:
        if op.cond in self._varying:
            raise NotVectorizableError
        types = [
            self._vector_type(result.type) if result in self._varying else result.type
            for result in op.results
        ]
        regions: list[Region] = []
        for region in op.regions:
            if not region.blocks:
                regions.append(Region())
                continue
            block, inner = Block(), cloner.fork()
            self._ops(region.block, inner, block)
            last = region.block.last_op
            assert last is not None
            block.add_op(
                scf.YieldOp(
                    *(
                        self.vector(value, inner, block)
                        if result in self._varying
                        else inner.value(value)
                        for value, result in zip(last.operands, op.results, strict=True)
                    )
                )
            )
            regions.append(Region(block))
        return scf.IfOp(cloner.value(op.cond), types, regions[0], regions[1])

    # Forms of ops without a direct vector counterpart

    def extremum(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """NaN if one operand is, at the least cost: a constant cannot be NaN."""
        kind = vector.MaxfOp if isinstance(op, arith.MaximumfOp) else vector.MinfOp
        left, right = op.operands
        if _is_number(left):
            left, right = right, left
        a, b = self.vector(left, cloner, block), self.vector(right, cloner, block)
        if _is_number(right):
            return kind(b, a)
        best = kind(a, b)
        is_number = vector.CompareOp("eq", a, a)
        for new in (best, is_number):
            block.add_op(new)
        return vector.SelectOp(is_number.result, best.result, a)

    def compare(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """A mask."""
        assert isinstance(op, arith.CmpfOp | arith.CmpiOp)
        if op.lhs.type not in (f32, _I32):
            raise NotVectorizableError
        table = _FLOAT_PREDICATES if isinstance(op, arith.CmpfOp) else _INTEGER_PREDICATES
        predicate = table.get(op.predicate.value.data)
        if predicate is None:
            raise NotVectorizableError
        a, b = self._vectors(op, cloner, block)
        if predicate in ("ord", "uno"):
            masks = [vector.CompareOp("eq" if predicate == "ord" else "ne", x, x) for x in (a, b)]
            for mask in masks:
                block.add_op(mask)
            join = arith.AndIOp if predicate == "ord" else arith.OrIOp
            return join(masks[0].result, masks[1].result)
        return vector.CompareOp(predicate, a, b)

    def select(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """By mask, or by one condition for all lanes."""
        assert isinstance(op, arith.SelectOp)
        type_ = self._vector_type(op.result.type)
        a, b = (self.vector(value, cloner, block) for value in (op.lhs, op.rhs))
        if op.cond not in self._varying:
            return arith.SelectOp(cloner.value(op.cond), a, b)
        if (extremum := _extremum_of(op)) is not None:
            return extremum(a, b)
        if scalar_of(type_) not in (f32, _I32):
            raise NotVectorizableError
        return vector.SelectOp(self.vector(op.cond, cloner, block), a, b)

    def absolute(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Without the sign bit."""
        (a,) = self._vectors(op, cloner, block)
        bits = arith.BitcastOp(a, vector_type(_I32, self._lanes))
        mask = arith.ConstantOp(IntegerAttr(0x7FFFFFFF, _I32))
        splat = BroadcastOp(mask.result, vector_type(_I32, self._lanes))
        both = arith.AndIOp(bits.result, splat.vector)
        for new in (bits, mask, splat, both):
            block.add_op(new)
        return arith.BitcastOp(both.result, a.type)

    def bitcast(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """The bits of each lane."""
        (a,) = self._vectors(op, cloner, block)
        return arith.BitcastOp(a, self._vector_type(op.results[0].type))

    def widen(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Narrow integers to i32."""
        (value,) = op.operands
        if value.type not in WIDENED or op.results[0].type != _I32:
            raise NotVectorizableError
        unsigned = isinstance(op, arith.ExtUIOp)
        type_ = vector_type(_I32, self._lanes)
        return vector.ConvertOp(cloner.value(value), type_, unsigned=unsigned)

    def convert(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Between i32 and f32."""
        if op.operands[0].type not in (f32, _I32):
            raise NotVectorizableError
        (a,) = self._vectors(op, cloner, block)
        return vector.ConvertOp(a, self._vector_type(op.results[0].type))


def is_widened(op: LoadOp) -> bool:
    """True if a narrow integer is loaded and used only as i32."""
    return op.result.type in WIDENED and all(
        isinstance(use.operation, arith.ExtSIOp | arith.ExtUIOp)
        and use.operation.result.type == _I32
        for use in op.result.uses
    )


def _is_number(value: SSAValue) -> bool:
    """True for a constant that is not NaN."""
    if not isinstance(value.owner, arith.ConstantOp):
        return False
    number = value.owner.value
    return not isinstance(number, FloatAttr) or number.value.data == number.value.data


_EXTREMA: Mapping[int, type[vector.MaxfOp | vector.MinfOp]] = {
    2: vector.MaxfOp,
    4: vector.MinfOp,
}
"""By predicate: a > b ? a : b is an instruction."""


def _extremum_of(op: arith.SelectOp) -> type[vector.MaxfOp | vector.MinfOp] | None:
    """The op that selecting one of two floats by comparing them is."""
    test = op.cond.owner
    if not isinstance(test, arith.CmpfOp) or (test.lhs, test.rhs) != (op.lhs, op.rhs):
        return None
    if op.result.type not in (f32, f64) or not op.cond.has_one_use():
        return None
    return _EXTREMA.get(test.predicate.value.data)


def _is_of_extrema(op: arith.CmpfOp) -> bool:
    """True if a comparison is part of an extremum, and of nothing else."""
    users = [use.operation for use in op.result.uses]
    return bool(users) and all(
        isinstance(user, arith.SelectOp) and _extremum_of(user) is not None for user in users
    )


_FLOAT_PREDICATES: Mapping[int, str] = {
    1: "eq",
    2: "gt",
    3: "ge",
    4: "lt",
    5: "le",
    7: "ord",
    13: "ne",
    14: "uno",
}
_INTEGER_PREDICATES: Mapping[int, str] = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}

_FORMS: Mapping[type[Operation], Callable[[Vectorizer, Operation, Cloner, Block], Operation]] = {
    arith.MaximumfOp: Vectorizer.extremum,
    arith.MinimumfOp: Vectorizer.extremum,
    arith.CmpfOp: Vectorizer.compare,
    arith.CmpiOp: Vectorizer.compare,
    arith.SelectOp: Vectorizer.select,
    math.AbsFOp: Vectorizer.absolute,
    arith.BitcastOp: Vectorizer.bitcast,
    arith.ExtSIOp: Vectorizer.widen,
    arith.ExtUIOp: Vectorizer.widen,
    arith.SIToFPOp: Vectorizer.convert,
}


def vectorize(loop: ForOp) -> bool:
    """Replace a loop over lanes by vectors; False, without any change, if that is impossible."""
    lower, upper, step = (bound.value for bound in loop.range.data)
    if lower != 0 or step != 1 or upper is None or upper < 2 or upper & (upper - 1):
        return False
    try:
        block, results = Vectorizer(loop, upper).body()
    except NotVectorizableError:
        return False
    replace(loop, block, results)
    return True


@dataclass(frozen=True)
class VectorizeLanesPass(ModulePass):
    """
    Replace each loop of mode `lanes` by vectors with as many lanes as the loop has iterations.

    Its iterations are independent, and the trip count is a power of two. Values that vary with its
    index become vectors: a unit-stride access becomes a vector access, arithmetic applies lane by
    lane, and a loop in the body carries vectors. All other values stay scalar, and are broadcast
    where a vector op uses them. Values that the loop carries are reductions, whose terms in all
    lanes are combined at once. Narrow integers are loaded only where their i32 is the only use. If
    an op has no vector form (an access at another stride, any other value that is not 32 bits
    wide), the loop stays unchanged.
    """

    name = "vectorize-lanes"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if not isinstance(function, FuncOp):
                continue
            for loop in reversed(list(function.walk())):
                if (
                    isinstance(loop, ForOp)
                    and loop.mode is not None
                    and loop.mode.data == LoopMode.LANES
                ):
                    if not vectorize(loop):
                        del loop.properties["mode"]
