"""`vectorize-lanes`: a lane loop is replaced by vectors."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    VectorType,
)
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from lowerdeck.dialects.buffer import vector
from lowerdeck.dialects.buffer.enums import LoopMode
from lowerdeck.dialects.buffer.kernel import (
    ApplyOp,
    CheckIndexOp,
    ForOp,
    FuncOp,
    LoadOp,
    ScratchOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import (
    LARGEST_STRIDE,
    lane_bits,
    lanes_of,
    mask_type,
    scalar_of,
    vector_type,
)
from lowerdeck.dialects.core.types import bf16, f16, f32, f64, i1
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import simplified
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.reductions import Reduction, find_reductions
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, replace
from lowerdeck.lowering.loops.varying import is_varying, varying_values
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.context import options_of

_I8, _I32, _I64 = IntegerType(8), IntegerType(32), IntegerType(64)

_INTEGERS = (_I8, IntegerType(16), _I32, _I64)
_ELEMENTS = (f32, f64, f16, bf16, *_INTEGERS)
"""What vectors are made of; truth values are masks, as wide as what they are made from."""

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
        math.SqrtOp,
        math.FloorOp,
        math.CeilOp,
        math.RoundEvenOp,
        vector.DotPairsOp,
        vector.DotQuadsOp,
    }
)
"""Ops that apply to vectors unchanged, lane by lane."""


DIVISIONS: tuple[type[Operation], ...] = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
)
"""Of integers; those of 32 bits are done in f64."""
_WIDEST_DIVISION = 32

_EXACT: Mapping[Attribute, int] = {f32: 24, f64: 53}
"""Integers of so many bits are floats."""


class NotVectorizableError(Exception):
    """An op has no vector form here."""


class Vectorizer:
    """Copies the body of a loop over lanes, with vectors in place of values that vary in it."""

    def __init__(self, loop: ForOp, lanes: int, *, far: bool = False) -> None:
        self._lanes = lanes
        self._far = far
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        self._index = self._indices.symbol(loop.body.block.args[0])
        self._loop = loop
        self._varying = varying_values(loop.body.block, [loop.body.block.args[0]])
        self._exprs: dict[str, Expr] = {}
        """What indices that vary are computed from, by their symbols."""
        self._splats: dict[tuple[SSAValue, int, Block], SSAValue] = {}
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
        if reduction.kind == "any":
            return _append(block, vector.AnyOp(self.mask(reduction.term, 32, cloner, block)))
        terms = self.vector(reduction.term, cloner, block)
        total = vector.ReduceOp(reduction.kind, terms)
        block.add_op(total)
        is_extremum = reduction.kind in ("max", "min") and reduction.keeps_nan
        if not is_extremum or isinstance(scalar_of(terms.type), IntegerType):
            return total.result
        # The extremum of lanes skips NaN.
        scalar = scalar_of(terms.type)
        assert isinstance(scalar, AnyFloat)
        is_nan = vector.CompareOp("ne", terms, terms)
        has_nan = vector.AnyOp(is_nan.result)
        nan = arith.ConstantOp(FloatAttr(python_math.nan, scalar))
        result = arith.SelectOp(has_nan.result, nan.result, total.result)
        block.add_ops([is_nan, has_nan, nan, result])
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
            new = self._load(op, cloner, block)
        elif isinstance(op, StoreOp):
            new = self._store(op, cloner, block)
        elif isinstance(op, ForOp):
            new = self._for(op, cloner, block)
        elif isinstance(op, scf.IfOp):
            if op.cond in self._varying:
                self._rare(op, cloner, block)
                return
            new = self._if(op, cloner)
        elif isinstance(op, CheckIndexOp):
            cloner.values[op.result] = self._check(op, cloner, block)
            return
        elif _is_same_number(op) and lanes_of((same := cloner.value(op.operands[0])).type):
            cloner.values[op.results[0]] = same
            return
        elif op.results and op.results[0].type == i1 and (form := _TRUTHS.get(type(op))):
            new = form(self, op, cloner, block)
        elif type(op) in _PLAIN:
            operands = self._vectors(op, cloner, block)
            new = type(op).create(
                operands=operands,
                result_types=[self._vector_type(op.results[0].type)],
                properties=op.properties,
            )
        elif isinstance(op, arith.CmpfOp) and _is_of_extrema(op):
            return  # the extrema compare
        elif isinstance(op, ApplyOp):
            # The numbers of lanes are computed where an integer is made of them.
            self._exprs[str(self._indices.symbol(op.result))] = self._expr(op)
            return
        elif (form := _FORMS.get(type(op))) is not None:
            new = form(self, op, cloner, block)
        else:
            raise NotVectorizableError
        new.location = op.location
        cloner.add(new, op, block)

    def _vector_type(self, type_: Attribute) -> VectorType[Attribute]:
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
        self._vector_type(new.type)
        return self._splat(new, lane_bits(new.type), block)

    def mask(self, value: SSAValue, bits: int, cloner: Cloner, block: Block) -> SSAValue:
        """What stands for a truth value, as a mask with lanes of so many bits."""
        new = cloner.value(value)
        if not lanes_of(new.type):
            return self._splat(new, bits, block)
        return self._resized(new, bits, block)

    def _resized(self, mask: SSAValue, bits: int, block: Block) -> SSAValue:
        if lane_bits(mask.type) == bits:
            return mask
        key = (mask, bits, block)
        if key not in self._splats:
            resized = vector.ConvertOp(mask, vector_type(IntegerType(bits), self._lanes))
            block.add_op(resized)
            self._splats[key] = resized.result
        return self._splats[key]

    def _splat(self, value: SSAValue, bits: int, block: Block) -> SSAValue:
        key = (value, bits, block)
        if key not in self._splats:
            source = value
            if value.type == i1:
                minus_one = arith.ExtSIOp(value, IntegerType(bits))
                block.add_op(minus_one)
                source = minus_one.result
            splat = BroadcastOp(source, vector_type(source.type, self._lanes))
            block.add_op(splat)
            self._splats[key] = splat.vector
        return self._splats[key]

    def _constant(self, value: float, type_: Attribute, block: Block) -> SSAValue:
        """A number in all lanes of a vector of a type."""
        scalar = scalar_of(type_)
        if isinstance(scalar, AnyFloat):
            number = arith.ConstantOp(FloatAttr(value, scalar))
        else:
            number = arith.ConstantOp(IntegerAttr(int(value), IntegerType(lane_bits(scalar))))
        splat = BroadcastOp(number.result, vector_type(scalar, self._lanes))
        block.add_ops([number, splat])
        return splat.vector

    def _place(
        self, op: LoadOp | StoreOp, cloner: Cloner, largest: int
    ) -> tuple[list[Expr], int, int | None]:
        """
        The index of the first lane, how far apart two lanes are along their dimension, and which
        that is if not the last.
        """
        exprs = self._indices.read(op.map.data, op.indices)
        name, type_ = str(self._index), ref_type(op.ref)
        varying = [axis for axis, expr in enumerate(exprs) if name in expr.symbols]
        if len(varying) != 1:
            raise NotVectorizableError
        axis = varying[0]
        step = self._step(exprs[axis])
        is_near = axis == type_.innermost and type_.strides.data[axis] == 1
        distance = step * (type_.strides.data[axis].value or 0)
        if distance < 1 or (not self._far and distance > largest):
            raise NotVectorizableError
        return [expr.substitute(cloner.moved) for expr in exprs], step, None if is_near else axis

    def _expr(self, op: ApplyOp) -> Expr:
        """What an index is computed from; its lanes differ by nothing but that of the loop."""
        (expr,) = self._indices.read(op.map.data, op.indices)
        known = {str(self._index), *self._exprs}
        for index in op.indices:
            if index in self._varying and str(self._indices.symbol(index)) not in known:
                raise NotVectorizableError
        return expr.substitute(self._exprs)

    def _step(self, expr: Expr) -> int:
        """By how much an expression grows from lane to lane."""
        step = (expr.substitute({str(self._index): self._index + 1}) - expr).value
        if step is None:
            raise NotVectorizableError
        return step

    def _repeats(self, op: LoadOp) -> int:
        """How many lanes load the same element before those that load the next one; 1 if not."""
        exprs, type_ = self._indices.read(op.map.data, op.indices), ref_type(op.ref)
        name, innermost = str(self._index), type_.innermost
        others = [e for axis, e in enumerate(exprs) if axis != innermost]
        if type_.strides.data[innermost] != 1 or any(name in e.symbols for e in others):
            return 1
        places = [
            simplified(exprs[innermost].substitute({name: Expr.const(lane)}), self._indices.ranges)
            for lane in range(self._lanes)
        ]
        times = 2
        while 2 * times <= self._lanes:
            if all((e - places[0]).value == lane // times for lane, e in enumerate(places)):
                return times
            times *= 2
        return 1

    def _load(self, op: LoadOp, cloner: Cloner, block: Block) -> Operation:
        if op.volatile is not None or any(
            index in self._varying and index is not self._loop.body.block.args[0]
            for index in op.indices
        ):
            raise NotVectorizableError
        if (times := self._repeats(op)) > 1:
            first = {**cloner.moved, str(self._index): Expr.const(0)}
            exprs = self._indices.read(op.map.data, op.indices)
            place, step, axis = [expr.substitute(first) for expr in exprs], 1, None
        else:
            place, step, axis = self._place(op, cloner, LARGEST_STRIDE)
        exprs, operands = self._indices.write(place)
        new = LoadOp(cloner.value(op.ref), exprs, operands, self._lanes, step, axis, times)
        if op.result.type != i1:
            self._vector_type(op.result.type)
            return new
        block.add_op(new)
        return vector.CompareOp("ne", new.result, self._constant(0, new.result.type, block))

    def _store(self, op: StoreOp, cloner: Cloner, block: Block) -> Operation:
        if any(
            index in self._varying and index is not self._loop.body.block.args[0]
            for index in op.indices
        ):
            raise NotVectorizableError
        place, step, axis = self._place(op, cloner, 1)
        exprs, operands = self._indices.write(place)
        value, ref = self.element(op.value, cloner, block), cloner.value(op.ref)
        border = op.border is not None
        return StoreOp(value, ref, exprs, operands, border=border, stride=step, axis=axis)

    def element(self, value: SSAValue, cloner: Cloner, block: Block) -> SSAValue:
        """What stands for a value as it lies in memory: truth values are bytes, 0 or 1."""
        if value.type != i1:
            return self.vector(value, cloner, block)
        mask = self.mask(value, 8, cloner, block)
        bits = arith.AndIOp(mask, self._constant(1, mask.type, block))
        block.add_op(bits)
        return bits.result

    def _register(self, value: SSAValue, cloner: Cloner, block: Block) -> SSAValue:
        """What stands for a value that leaves its block: of a truth value the width is fixed."""
        is_truth = value.type == i1
        return (
            self.mask(value, 32, cloner, block) if is_truth else self.vector(value, cloner, block)
        )

    def _register_type(self, type_: Attribute) -> VectorType[Attribute]:
        return self._vector_type(_I32 if type_ == i1 else type_)

    def _for(self, op: ForOp, cloner: Cloner, block: Block) -> Operation:
        if any(index in self._varying for index in op.indices):
            raise NotVectorizableError
        arguments = op.body.block.args[1:]
        inits = [
            self._register(init, cloner, block) if argument in self._varying else cloner.value(init)
            for init, argument in zip(op.inits, arguments, strict=True)
        ]
        new, inner = cloner.open_loop(op, [init.type for init in inits], inits)
        inner.values.update(zip(arguments, new.body.block.args[1:], strict=True))
        self._ops(op.body.block, inner, new.body.block)
        last = op.body.block.last_op
        assert isinstance(last, YieldOp)
        yields = [
            self._register(value, inner, new.body.block)
            if argument in self._varying
            else inner.value(value)
            for value, argument in zip(last.values, arguments, strict=True)
        ]
        new.body.block.add_op(YieldOp(yields))
        return new

    def _rare(self, op: scf.IfOp, cloner: Cloner, block: Block) -> None:
        """
        A choice that differs between lanes, of two ways that touch no memory: the second one in all
        lanes, and where it is not the right one in some, the first one, too.
        """
        blocks = [region.blocks.first for region in op.regions]
        yes, no = blocks
        if yes is None or no is None or not all(map(_is_pure, (yes, no))):
            raise NotVectorizableError
        self._ops(no, cloner, block)
        other, chosen = no.last_op, yes.last_op
        assert other is not None
        assert chosen is not None
        usual = [self._register(value, cloner, block) for value in other.operands]
        mask = self.mask(op.cond, 32, cloner, block)
        any_lane = vector.AnyOp(mask)
        block.add_op(any_lane)
        then, inner = Block(), cloner.fork()
        try:
            self._ops(yes, inner, then)
            rare = [self._register(value, inner, then) for value in chosen.operands]
        except NotVectorizableError:
            then = Block()
            rare = self._one_by_one(yes, chosen.operands, cloner, then)
        results: list[SSAValue] = []
        for a, b in zip(rare, usual, strict=True):
            selection = vector.SelectOp(self._resized(mask, lane_bits(a.type), then), a, b)
            then.add_op(selection)
            results.append(selection.result)
        then.add_op(scf.YieldOp(*results))
        types = [value.type for value in usual]
        otherwise = Region(Block([scf.YieldOp(*usual)]))
        new = scf.IfOp(any_lane.result, types, Region(then), otherwise)
        new.location = op.location
        cloner.add(new, op, block)

    def _one_by_one(
        self, source: Block, values: Sequence[SSAValue], cloner: Cloner, block: Block
    ) -> list[SSAValue]:
        """The ops of a block for each lane by itself, by way of memory."""
        inside = {result for op in source.walk() for result in op.results}
        used = dict.fromkeys(
            operand
            for op in source.walk()
            for operand in op.operands
            if operand not in inside and operand in self._varying
        )
        body = Block(arg_types=[IndexType()])
        lane, inner = self._indices.symbol(body.args[0]), cloner.fork()
        self._indices.limit(lane, 0, self._lanes)
        place = self._indices.write([lane])
        for value in used:
            vectors = cloner.value(value)
            memory = self._memory(vectors.type, block)
            block.add_op(StoreOp(vectors, memory, [0], []))
            load = LoadOp(memory, *place)
            body.add_op(load)
            inner.values[value] = load.result
        for op in source.ops:
            if not isinstance(op, scf.YieldOp):
                inner.clone(op, body)
        results: list[SSAValue] = []
        for value in values:
            memory = self._memory(self._vector_type(value.type), block)
            body.add_op(StoreOp(inner.value(value), memory, *place))
            results.append(memory)
        body.add_op(YieldOp())
        block.add_op(ForOp((0, self._lanes, 1), [], [], Region(body)))
        loads = [LoadOp(memory, [0], [], self._lanes) for memory in results]
        block.add_ops(loads)
        return [load.result for load in loads]

    def _memory(self, type_: Attribute, block: Block) -> SSAValue:
        """A buffer for a vector."""
        scratch = ScratchOp(RefType.of(scalar_of(type_), [self._lanes]))
        block.add_op(scratch)
        return scratch.ref

    def _check(self, op: CheckIndexOp, cloner: Cloner, block: Block) -> SSAValue:
        """Indices as i64, those from the end resolved; 0 for those outside, which end the run."""
        value = self.vector(op.value, cloner, block)
        (bound,), operands = self._indices.write(cloner.exprs(op))
        size = arith.IndexCastOp(_append(block, ApplyOp(bound, operands)), _I64)
        sizes = self._splat(_append(block, size), 64, block)
        zero = self._constant(0, value.type, block)
        is_from_end = _append(block, vector.CompareOp("lt", value, zero))
        added = _append(block, arith.AndIOp(is_from_end, sizes))
        place = _append(block, arith.AddiOp(value, added))
        is_inside = _append(block, vector.CompareOp("lt", place, sizes, unsigned=True))
        is_outside = _append(block, vector.CompareOp("ge", place, sizes, unsigned=True))
        wrong = _append(block, arith.ExtUIOp(_append(block, vector.AnyOp(is_outside)), _I64))
        # One of the wrong ones, if there are any, stands for all.
        block.add_op(CheckIndexOp(wrong, 1, []))
        return _append(block, arith.AndIOp(place, is_inside))

    def _if(self, op: scf.IfOp, cloner: Cloner) -> Operation:
        types = [
            self._register_type(result.type) if result in self._varying else result.type
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
                        self._register(value, inner, block)
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

    def truth_extremum(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """The larger of two truth values is one or the other, the smaller one and the other."""
        a, b = self._masks(op.operands, cloner, block)
        return (arith.OrIOp if isinstance(op, arith.MaxUIOp) else arith.AndIOp)(a, b)

    def bitwise(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """On masks."""
        masks = self._masks(op.operands, cloner, block)
        return type(op).create(
            operands=masks, result_types=[masks[0].type], properties=op.properties
        )

    def _masks(self, values: Sequence[SSAValue], cloner: Cloner, block: Block) -> list[SSAValue]:
        """Truth values as masks of the same width: that of the widest."""
        news = [cloner.value(value) for value in values]
        bits = max(lane_bits(new.type) for new in news if lanes_of(new.type))
        return [self.mask(value, bits, cloner, block) for value in values]

    def compare(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """A mask."""
        assert isinstance(op, arith.CmpfOp | arith.CmpiOp)
        number, unsigned = op.predicate.value.data, False
        if isinstance(op, arith.CmpfOp):
            predicate = _FLOAT_PREDICATES.get(number)
            if predicate is None:
                raise NotVectorizableError
        else:
            predicate, unsigned = _INTEGER_PREDICATES[number]
        if op.lhs.type == i1:
            a, b = self._masks(op.operands, cloner, block)
        else:
            a, b = self._vectors(op, cloner, block)
        if predicate in ("ord", "uno"):
            masks = [vector.CompareOp("eq" if predicate == "ord" else "ne", x, x) for x in (a, b)]
            for mask in masks:
                block.add_op(mask)
            join = arith.AndIOp if predicate == "ord" else arith.OrIOp
            return join(masks[0].result, masks[1].result)
        return vector.CompareOp(predicate, a, b, unsigned=unsigned)

    def select(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """By mask, or by one condition for all lanes."""
        assert isinstance(op, arith.SelectOp)
        if op.result.type == i1:
            condition = [op.cond] if op.cond in self._varying else []
            *found, a, b = self._masks([*condition, op.lhs, op.rhs], cloner, block)
            if not found:
                return arith.SelectOp(cloner.value(op.cond), a, b)
            return vector.SelectOp(found[0], a, b)
        self._vector_type(op.result.type)
        a, b = (self.vector(value, cloner, block) for value in (op.lhs, op.rhs))
        if op.cond not in self._varying:
            return arith.SelectOp(cloner.value(op.cond), a, b)
        if (extremum := _extremum_of(op)) is not None:
            return extremum(a, b)
        return vector.SelectOp(self.mask(op.cond, lane_bits(a.type), cloner, block), a, b)

    def absolute(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Without the sign bit."""
        (a,) = self._vectors(op, cloner, block)
        return arith.BitcastOp(self._bits_of(a, block, sign=False), a.type)

    def _bits_of(self, a: SSAValue, block: Block, *, sign: bool) -> SSAValue:
        """The bits of floats: that of the sign, or those of the magnitude."""
        lowest = -1 << (lane_bits(a.type) - 1)
        number = self._constant(lowest if sign else ~lowest, mask_type(a.type), block)
        bits = arith.BitcastOp(a, mask_type(a.type))
        part = arith.AndIOp(bits.result, number)
        block.add_ops([bits, part])
        return part.result

    def copy_sign(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """The magnitude of one with the sign of the other."""
        a, b = self._vectors(op, cloner, block)
        sign = self._bits_of(b, block, sign=True)
        magnitude = self._bits_of(a, block, sign=False)
        both = arith.OrIOp(sign, magnitude)
        block.add_op(both)
        return arith.BitcastOp(both.result, a.type)

    def number(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """An expression of the index as an integer: that of the first lane, and steps."""
        assert isinstance(op, arith.IndexCastOp)
        source = op.input.owner
        if not isinstance(source, ApplyOp) or not isinstance(op.result.type, IntegerType):
            raise NotVectorizableError
        expr = self._expr(source)
        type_, step = self._vector_type(op.result.type), self._step(expr)
        (first,), operands = self._indices.write([expr.substitute(cloner.moved)])
        numbers = vector.LaneNumbersOp(type_)
        if step == 1 and first == 0:
            return numbers
        steps = _append(block, numbers)
        if step != 1:
            steps = _append(block, arith.MuliOp(steps, self._constant(step, type_, block)))
        start = _append(block, ApplyOp(first, operands))
        integer = _append(block, arith.IndexCastOp(start, op.result.type))
        return arith.AddiOp(steps, self._splat(integer, lane_bits(type_), block))

    def bitcast(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """The bits of each lane."""
        (a,) = self._vectors(op, cloner, block)
        return arith.BitcastOp(a, self._vector_type(op.results[0].type))

    def resize(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Integers to wider ones, or cut off."""
        (value,) = op.operands
        type_ = self._vector_type(op.results[0].type)
        unsigned = isinstance(op, arith.ExtUIOp)
        if value.type == i1:
            mask = self.mask(value, lane_bits(type_), cloner, block)
            one = self._constant(1, mask.type, block)
            return arith.AndIOp(mask, one) if unsigned else arith.BitcastOp(mask, type_)
        return vector.ConvertOp(self.vector(value, cloner, block), type_, unsigned=unsigned)

    def last_bit(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Integers to truth values."""
        (a,) = self._vectors(op, cloner, block)
        bit = arith.AndIOp(a, self._constant(1, a.type, block))
        block.add_op(bit)
        return vector.CompareOp("ne", bit.result, self._constant(0, a.type, block))

    def from_integer(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Rounded once: narrow integers by way of i32, which has instructions."""
        (value,) = op.operands
        type_ = self._vector_type(op.results[0].type)
        unsigned = isinstance(op, arith.UIToFPOp)
        if value.type == i1:
            mask = self.mask(value, lane_bits(type_), cloner, block)
            one = self._constant(1.0 if unsigned else -1.0, type_, block)
            bits = arith.BitcastOp(one, mask.type)
            chosen = arith.AndIOp(mask, bits.result)
            block.add_ops([bits, chosen])
            return arith.BitcastOp(chosen.result, type_)
        return self._real(self.vector(value, cloner, block), type_, block, unsigned=unsigned)

    def _real(
        self, value: SSAValue, type_: VectorType[Attribute], block: Block, *, unsigned: bool
    ) -> Operation:
        """Integers as floats: narrow ones by way of i32."""
        if lane_bits(value.type) < 32:
            word = vector_type(_I32, self._lanes)
            value = _append(block, vector.ConvertOp(value, word, unsigned=unsigned))
            unsigned = False
        return vector.ConvertOp(value, type_, unsigned=unsigned)

    def to_integer(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Toward zero; what does not fit becomes the nearest number that does, NaN zero."""
        (a,) = self._vectors(op, cloner, block)
        type_ = self._vector_type(op.results[0].type)
        bits, unsigned = lane_bits(type_), isinstance(op, arith.FPToUIOp)
        lowest, highest = (
            (0, (1 << bits) - 1) if unsigned else (-1 << (bits - 1), ~(-1 << bits - 1))
        )

        def add(new: Operation) -> SSAValue:
            block.add_op(new)
            return new.results[0]

        # Of NaN and another number, the maximum is the second one.
        number, is_limited = a, bits <= _EXACT[scalar_of(a.type)]
        if lowest != 0 or not is_limited:
            zero = self._constant(0.0, a.type, block)
            number = add(vector.SelectOp(add(vector.CompareOp("eq", a, a)), a, zero))
        if is_limited:
            number = add(vector.MaxfOp(number, self._constant(float(lowest), a.type, block)))
            number = add(vector.MinfOp(number, self._constant(float(highest), a.type, block)))
            if bits >= 32:
                return vector.ConvertOp(number, type_, unsigned=unsigned)
            whole = add(vector.ConvertOp(number, vector_type(_I32, self._lanes)))
            return vector.ConvertOp(whole, type_)
        # The highest integer may be no float: what is beyond is chosen afterwards.
        floor, limit = (self._constant(float(x), a.type, block) for x in (lowest, highest + 1))
        whole = add(vector.ConvertOp(number, type_, unsigned=unsigned))
        for predicate, bound, instead in (("lt", floor, lowest), ("ge", limit, highest)):
            outside = add(vector.CompareOp(predicate, number, bound))
            if lane_bits(outside.type) != bits:
                mask = vector_type(IntegerType(bits), self._lanes)
                outside = add(vector.ConvertOp(outside, mask))
            signless = instead - (1 << bits) if instead >> (bits - 1) == 1 else instead
            chosen = self._constant(signless, type_, block)
            whole = add(vector.SelectOp(outside, chosen, whole))
        return arith.BitcastOp(whole, type_)

    def division(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """
        Of integers, by way of floats with room for more digits, whose quotient lies on the right
        side of every integer: zero if the divisor is, and the one overflow wraps.
        """
        type_ = self._vector_type(op.results[0].type)
        bits = lane_bits(type_)
        # By a constant, C compilers multiply with integers.
        if bits > _WIDEST_DIVISION or isinstance(op.operands[1].owner, arith.ConstantOp):
            raise NotVectorizableError
        a, b = self._vectors(op, cloner, block)
        real = vector_type(f64 if bits == 32 else f32, self._lanes)
        unsigned = isinstance(op, arith.DivUIOp | arith.RemUIOp)
        x, y = (
            _append(block, self._real(value, real, block, unsigned=unsigned)) for value in (a, b)
        )
        quotient, zero = _append(block, arith.DivfOp(x, y)), self._constant(0, type_, block)
        is_zero = _append(block, vector.CompareOp("eq", b, zero))
        wide = is_zero
        if lane_bits(real) != bits:
            mask = vector_type(IntegerType(lane_bits(real)), self._lanes)
            wide = _append(block, vector.ConvertOp(is_zero, mask))
        quotient = _append(block, vector.SelectOp(wide, self._constant(0.0, real, block), quotient))
        if bits == 32 and not unsigned:
            limit, lowest = (self._constant(sign * 2.0**31, real, block) for sign in (1, -1))
            overflows = _append(block, vector.CompareOp("eq", quotient, limit))
            quotient = _append(block, vector.SelectOp(overflows, lowest, quotient))
        word = vector_type(_I32, self._lanes)
        whole = vector.ConvertOp(quotient, word, unsigned=unsigned and bits == 32)
        if bits != 32:
            block.add_op(whole)
            whole = vector.ConvertOp(whole.result, type_)
        if isinstance(op, arith.DivSIOp | arith.DivUIOp):
            return whole
        block.add_op(whole)
        product = _append(block, arith.MuliOp(whole.result, b))
        rest = _append(block, arith.SubiOp(a, product))
        return vector.SelectOp(is_zero, zero, rest)

    def convert_float(self, op: Operation, cloner: Cloner, block: Block) -> Operation:
        """Rounded once: half precision is made of f32 only, and only that of it."""
        source, target = op.operands[0].type, op.results[0].type
        if {source, target} & {f16, bf16} and f32 not in (source, target):
            raise NotVectorizableError
        (a,) = self._vectors(op, cloner, block)
        return vector.ConvertOp(a, self._vector_type(target))


def _append(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _is_same_number(op: Operation) -> bool:
    """True for ops that give their only operand, an index, as it is."""
    if isinstance(op, ApplyOp):
        return len(op.indices) == 1 and op.map.data[0] == Expr.symbol("d0")
    return isinstance(op, arith.IndexCastOp) and op.input.type == IndexType()


def _is_pure(block: Block) -> bool:
    """True if ops touch no memory, and have no blocks of their own."""
    return all(isinstance(op, scf.YieldOp) or op.has_trait(Pure) for op in block.walk())


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
_INTEGER_PREDICATES: Mapping[int, tuple[str, bool]] = {
    0: ("eq", False),
    1: ("ne", False),
    2: ("lt", False),
    3: ("le", False),
    4: ("gt", False),
    5: ("ge", False),
    6: ("lt", True),
    7: ("le", True),
    8: ("gt", True),
    9: ("ge", True),
}
"""What they are called, and whether the integers are unsigned."""

Form: TypeAlias = Callable[[Vectorizer, Operation, Cloner, Block], Operation]

_FORMS: Mapping[type[Operation], Form] = {
    arith.MaximumfOp: Vectorizer.extremum,
    arith.MinimumfOp: Vectorizer.extremum,
    arith.CmpfOp: Vectorizer.compare,
    arith.CmpiOp: Vectorizer.compare,
    arith.SelectOp: Vectorizer.select,
    math.AbsFOp: Vectorizer.absolute,
    math.CopySignOp: Vectorizer.copy_sign,
    arith.IndexCastOp: Vectorizer.number,
    arith.BitcastOp: Vectorizer.bitcast,
    arith.ExtSIOp: Vectorizer.resize,
    arith.ExtUIOp: Vectorizer.resize,
    arith.TruncIOp: Vectorizer.resize,
    arith.SIToFPOp: Vectorizer.from_integer,
    arith.UIToFPOp: Vectorizer.from_integer,
    arith.FPToSIOp: Vectorizer.to_integer,
    arith.FPToUIOp: Vectorizer.to_integer,
    **dict.fromkeys(DIVISIONS, Vectorizer.division),
    arith.ExtFOp: Vectorizer.convert_float,
    arith.TruncFOp: Vectorizer.convert_float,
}

_TRUTHS: Mapping[type[Operation], Form] = {
    arith.AndIOp: Vectorizer.bitwise,
    arith.OrIOp: Vectorizer.bitwise,
    arith.XOrIOp: Vectorizer.bitwise,
    arith.MaxUIOp: Vectorizer.truth_extremum,
    arith.MinUIOp: Vectorizer.truth_extremum,
    arith.TruncIOp: Vectorizer.last_bit,
}
"""Those of ops that give truth values."""


def vectorize(loop: ForOp, most: int | None = None, *, far: bool = False) -> bool:
    """
    Replace a loop over lanes by vectors; False, and nothing changes, if that cannot be. Where they
    would be longer than `most` lanes of 32 bits there are several shorter ones. If `far`, lanes may
    lie far apart in memory.
    """
    lower, upper, step = (bound.value for bound in loop.range.data)
    if lower != 0 or step != 1 or upper is None or upper < 2 or upper & (upper - 1):
        return False
    if most is not None and not loop.inits:
        lanes = most * 32 // max(_widest(loop), 8)
        if 2 <= lanes < upper:
            return _vectorize_parts(loop, upper, lanes, far=far)
    try:
        block, results = Vectorizer(loop, upper, far=far).body()
    except NotVectorizableError:
        return False
    replace(loop, block, results)
    return True


def _widest(loop: ForOp) -> int:
    """The bits of the widest value that is to be a vector."""
    varying = varying_values(loop.body.block, [loop.body.block.args[0]])
    found = (_bits(value) for value in varying if not isinstance(value.type, IndexType))
    return max(found, default=0)


def _bits(value: SSAValue) -> int:
    """Those that computing a value takes: quotients have floats with more digits."""
    bits = lane_bits(value.type)
    return max(2 * bits, 32) if isinstance(value.owner, DIVISIONS) else bits


def _vectorize_parts(loop: ForOp, upper: int, lanes: int, *, far: bool) -> bool:
    """Put several vectors of fewer lanes in place of a loop that carries nothing."""
    indices = Indices()
    limit_by_parents(loop, indices)
    outer, inner = Block(arg_types=[IndexType()]), Block(arg_types=[IndexType()])
    number, lane = (indices.symbol(block.args[0]) for block in (outer, inner))
    indices.limit(number, 0, upper // lanes)
    indices.limit(lane, 0, lanes)
    old = str(indices.symbol(loop.body.block.args[0]))
    cloner = Cloner(indices, moved={old: number * lanes + lane})
    for op in list(loop.body.block.ops)[:-1]:
        cloner.clone(op, inner)
    inner.add_op(YieldOp())
    vector_loop = ForOp((0, lanes, 1), [], [], Region(inner), mode="lanes")
    outer.add_ops([vector_loop, YieldOp()])
    parts = ForOp((0, upper // lanes, 1), [], [], Region(outer), mode="unroll")
    for new in (vector_loop, parts):
        new.location = loop.location
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(parts, loop)
    is_vector = vectorize(vector_loop, far=far)
    erased = loop if is_vector else parts
    erased.detach()
    erased.erase()
    return is_vector


@dataclass(frozen=True)
class VectorizeLanesPass(ModulePass):
    """
    Replace each loop of mode `lanes` by vectors with as many lanes as the loop has iterations.

    Its iterations are independent, and the trip count is a power of two. Values that vary with its
    index become vectors: a unit-stride access becomes a vector access, arithmetic applies lane by
    lane, and a loop in the body carries vectors. All other values stay scalar, and are broadcast
    where a vector op uses them. Values that the loop carries are reductions, whose terms in all
    lanes are combined at once. If an op has no vector form (an access at another stride, a C
    library function), the loop stays unchanged.

    Types of different widths have vectors of as many lanes. If those of the widest exceed the
    registers of the target, there are several vectors of fewer lanes.
    """

    name = "vectorize-lanes"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = target_named(options_of(ctx).target).lanes
        most = lanes if lanes > 1 else None
        for function in op.body.block.ops:
            if not isinstance(function, FuncOp):
                continue
            for loop in reversed(list(function.walk())):
                if (
                    isinstance(loop, ForOp)
                    and loop.mode is not None
                    and loop.mode.data == LoopMode.LANES
                ):
                    if not vectorize(loop, most):
                        del loop.properties["mode"]
