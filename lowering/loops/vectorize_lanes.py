"""`vectorize-lanes`: a lane loop is replaced by vectors."""

from __future__ import annotations

import math as python_math
from collections.abc import Collection, Sequence

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.buffer import vector
from lowerdeck.dialects.buffer.enums import LoopMode
from lowerdeck.dialects.buffer.kernel import (
    ApplyOp,
    CheckIndexOp,
    ForOp,
    FuncOp,
    LoadOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import (
    LARGEST_STRIDE,
    TABLE_ENTRIES,
    lane_bits,
    lanes_of,
    scalar_of,
)
from lowerdeck.dialects.core.types import f32, f64, i1
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.intervals import simplified
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.lane_forms import DIVISIONS, FORMS, PLAIN, TRUTHS, is_of_extrema
from lowerdeck.lowering.loops.lane_values import LaneValues, NotVectorizableError, append
from lowerdeck.lowering.loops.reductions import Reduction, find_reductions
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, replace
from lowerdeck.lowering.loops.varying import is_varying, varying_values
from lowerdeck.lowering.targets.base import Target

_BYTE, _I64 = IntegerType(8), IntegerType(64)

_COMPUTING = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.SelectOp, math.FmaOp)
"""Ops of which vectors are worth as many elements that are put together one by one."""

_FETCHED = (f32, f64, IntegerType(32), _I64)
"""Elements of such vectors."""

MOST_FETCHED = 256
"""So many elements are put together in a loop at most: each is a statement or two."""


class Vectorizer(LaneValues):
    """Copies the body of a loop over lanes, with vectors in place of values that vary in it."""

    def __init__(
        self, loop: ForOp, lanes: int, *, far: bool = False, lookups: Collection[int] = ()
    ) -> None:
        super().__init__(loop, lanes)
        self._far = far
        self._looks_up = lanes in lookups
        self._loop = loop
        reductions = find_reductions(loop)
        if reductions is None:
            raise NotVectorizableError
        self._reductions = reductions
        self._is_worth_fetching = _computes_much(loop, lanes)
        self._memory: dict[tuple[SSAValue, Block], SSAValue] = {}
        self._combining = {op for reduction in reductions for op in reduction.ops}

    def body(self) -> tuple[Block, list[SSAValue]]:
        """
        The ops that replace the loop, and the values that replace its results;
        NotVectorizableError if there are none.
        """
        block = Block()
        cloner = Cloner(self.indices, moved={str(self.index): Expr.const(0)})
        self._ops(self._loop.body.block, cloner, block)
        results = [
            reduction.combine(block, init, self._reduced(reduction, cloner, block))
            for reduction, init in zip(self._reductions, self._loop.inits, strict=True)
        ]
        return block, results

    def _reduced(self, reduction: Reduction, cloner: Cloner, block: Block) -> SSAValue:
        """The terms of all lanes, combined."""
        if reduction.kind == "any":
            return append(block, vector.AnyOp(self.mask(reduction.term, 32, cloner, block)))
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
            if type(op) in (YieldOp, scf.YieldOp) or op in self._combining:
                continue
            if not is_varying(op, self.varying):
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
            if op.cond in self.varying:
                self._rare(op, cloner, block)
                return
            new = self._if(op, cloner)
        elif isinstance(op, CheckIndexOp):
            cloner.values[op.result] = self._check(op, cloner, block)
            return
        elif self._looks_up and _is_of_lookup(op):
            return  # the numbers are bytes
        elif _is_same_number(op) and lanes_of((same := cloner.value(op.operands[0])).type):
            cloner.values[op.results[0]] = same
            return
        elif op.results and op.results[0].type == i1 and (form := TRUTHS.get(type(op))):
            new = form(self, op, cloner, block)
        elif type(op) in PLAIN:
            operands = self.vectors(op, cloner, block)
            new = type(op).create(
                operands=operands,
                result_types=[self.type_for(op.results[0].type)],
                properties=op.properties,
            )
        elif isinstance(op, arith.CmpfOp) and is_of_extrema(op):
            return  # the extrema compare
        elif isinstance(op, ApplyOp):
            # The numbers of lanes are computed where an integer is made of them.
            self.exprs[str(self.indices.symbol(op.result))] = self.expr(op)
            return
        elif (form := FORMS.get(type(op))) is not None:
            new = form(self, op, cloner, block)
        else:
            raise NotVectorizableError
        new.location = op.location
        cloner.add(new, op, block)

    def _place(
        self, op: LoadOp | StoreOp, cloner: Cloner, largest: int
    ) -> tuple[list[Expr], int, int | None]:
        """
        The index of the first lane, how far apart two lanes are along their dimension, and which
        that is if not the last.
        """
        exprs = self.indices.read(op.map.data, op.indices)
        name, type_ = str(self.index), ref_type(op.ref)
        varying = [axis for axis, expr in enumerate(exprs) if name in expr.symbols]
        if len(varying) != 1:
            raise NotVectorizableError
        axis = varying[0]
        step = self.step(exprs[axis])
        is_near = axis == type_.innermost and type_.strides.data[axis] == 1
        distance = step * (type_.strides.data[axis].value or 0)
        if distance < 1 or (not self._far and distance > largest):
            raise NotVectorizableError
        return [expr.substitute(cloner.moved) for expr in exprs], step, None if is_near else axis

    def _repeats(self, op: LoadOp) -> int:
        """How many lanes load the same element before those that load the next one; 1 if not."""
        exprs, type_ = self.indices.read(op.map.data, op.indices), ref_type(op.ref)
        name, innermost = str(self.index), type_.innermost
        others = [e for axis, e in enumerate(exprs) if axis != innermost]
        if type_.strides.data[innermost] != 1 or any(name in e.symbols for e in others):
            return 1
        places = [
            simplified(exprs[innermost].substitute({name: Expr.const(lane)}), self.indices.ranges)
            for lane in range(self.lanes)
        ]
        times = 2
        while 2 * times <= self.lanes:
            if all((e - places[0]).value == lane // times for lane, e in enumerate(places)):
                return times
            times *= 2
        return 1

    def _load(self, op: LoadOp, cloner: Cloner, block: Block) -> Operation:
        if self._looks_up and (number := number_of(op)) in self.varying:
            assert number is not None
            return vector.LookUpOp(self.vector(number, cloner, block), cloner.value(op.ref))
        if data := [index for index in op.indices if lanes_of(cloner.value(index).type)]:
            return self._fetch(op, data, cloner, block)
        # A branch around volatile loads, for all lanes, stays one around a vector.
        if any(
            index in self.varying and index is not self._loop.body.block.args[0]
            for index in op.indices
        ):
            raise NotVectorizableError
        if op.word is None and (times := self._repeats(op)) > 1:
            first = {**cloner.moved, str(self.index): Expr.const(0)}
            exprs = self.indices.read(op.map.data, op.indices)
            place, step, axis = [expr.substitute(first) for expr in exprs], 1, None
        else:
            times = 1
            place, step, axis = self._place(op, cloner, LARGEST_STRIDE)
        exprs, operands = self.indices.write(place)
        new = LoadOp(
            cloner.value(op.ref),
            exprs,
            operands,
            self.lanes,
            step,
            axis,
            times,
            word=op.word is not None,
        )
        if op.result.type != i1:
            self.type_for(op.result.type)
            return new
        block.add_op(new)
        return vector.CompareOp("ne", new.result, self.constant(0, new.result.type, block))

    def _fetch(
        self, op: LoadOp, data: Sequence[SSAValue], cloner: Cloner, block: Block
    ) -> Operation:
        """Elements at places from data, lane by lane."""
        known = {*data, self._loop.body.block.args[0]}
        if not self._is_worth_fetching or op.result.type not in _FETCHED:
            raise NotVectorizableError
        if any(index in self.varying and index not in known for index in op.indices):
            raise NotVectorizableError
        places = {index: self._kept(cloner.value(index), block) for index in dict.fromkeys(data)}
        elements: list[SSAValue] = []
        for lane in range(self.lanes):
            inner = cloner.fork()
            inner.moved[str(self.index)] = cloner.moved[str(self.index)] + lane
            for index, memory in places.items():
                assert isinstance(index.owner, Operation)
                place = append(block, LoadOp(memory, [lane], []))
                inner.add(arith.IndexCastOp(place, IndexType()), index.owner, block)
            elements.append(inner.clone(op, block).results[0])
        return vector.FromLanesOp(elements)

    def _kept(self, vectors: SSAValue, block: Block) -> SSAValue:
        """Memory from which lanes of a vector are read."""
        if (memory := self._memory.get((vectors, block))) is None:
            memory = self._memory[vectors, block] = self.memory(vectors.type, block)
            block.add_op(StoreOp(vectors, memory, [0], []))
        return memory

    def _store(self, op: StoreOp, cloner: Cloner, block: Block) -> Operation:
        if any(
            index in self.varying and index is not self._loop.body.block.args[0]
            for index in op.indices
        ):
            raise NotVectorizableError
        place, step, axis = self._place(op, cloner, 1)
        exprs, operands = self.indices.write(place)
        value, ref = self.element(op.value, cloner, block), cloner.value(op.ref)
        border = op.border is not None
        return StoreOp(value, ref, exprs, operands, border=border, stride=step, axis=axis)

    def _for(self, op: ForOp, cloner: Cloner, block: Block) -> Operation:
        if any(index in self.varying for index in op.indices):
            raise NotVectorizableError
        arguments = op.body.block.args[1:]
        inits = [
            self.register(init, cloner, block) if argument in self.varying else cloner.value(init)
            for init, argument in zip(op.inits, arguments, strict=True)
        ]
        new, inner = cloner.open_loop(op, [init.type for init in inits], inits)
        inner.values.update(zip(arguments, new.body.block.args[1:], strict=True))
        self._ops(op.body.block, inner, new.body.block)
        last = op.body.block.last_op
        assert isinstance(last, YieldOp)
        yields = [
            self.register(value, inner, new.body.block)
            if argument in self.varying
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
        usual = [self.register(value, cloner, block) for value in other.operands]
        mask = self.mask(op.cond, 32, cloner, block)
        any_lane = vector.AnyOp(mask)
        block.add_op(any_lane)
        then, inner = Block(), cloner.fork()
        try:
            self._ops(yes, inner, then)
            rare = [self.register(value, inner, then) for value in chosen.operands]
        except NotVectorizableError:
            then = Block()
            rare = self._one_by_one(yes, chosen.operands, cloner, then)
        results: list[SSAValue] = []
        for a, b in zip(rare, usual, strict=True):
            selection = vector.SelectOp(self.resized(mask, lane_bits(a.type), then), a, b)
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
        inside = {result for op in all_ops(source) for result in op.results}
        used = dict.fromkeys(
            operand
            for op in all_ops(source)
            for operand in op.operands
            if operand not in inside and operand in self.varying
        )
        body = Block(arg_types=[IndexType()])
        lane, inner = self.indices.symbol(body.args[0]), cloner.fork()
        self.indices.limit(lane, 0, self.lanes)
        place = self.indices.write([lane])
        for value in used:
            vectors = cloner.value(value)
            memory = self.memory(vectors.type, block)
            block.add_op(StoreOp(vectors, memory, [0], []))
            load = LoadOp(memory, *place)
            body.add_op(load)
            inner.values[value] = load.result
        for op in source.ops:
            if not isinstance(op, scf.YieldOp):
                inner.clone(op, body)
        results: list[SSAValue] = []
        for value in values:
            memory = self.memory(self.type_for(value.type), block)
            body.add_op(StoreOp(inner.value(value), memory, *place))
            results.append(memory)
        body.add_op(YieldOp())
        block.add_op(ForOp((0, self.lanes, 1), [], [], Region(body)))
        loads = [LoadOp(memory, [0], [], self.lanes) for memory in results]
        block.add_ops(loads)
        return [load.result for load in loads]

    def _check(self, op: CheckIndexOp, cloner: Cloner, block: Block) -> SSAValue:
        """Indices as i64, those from the end resolved; 0 for those outside, which end the run."""
        value = self.vector(op.value, cloner, block)
        (bound,), operands = self.indices.write(cloner.exprs(op))
        size = arith.IndexCastOp(append(block, ApplyOp(bound, operands)), _I64)
        sizes = self.splat(append(block, size), 64, block)
        zero = self.constant(0, value.type, block)
        is_from_end = append(block, vector.CompareOp("lt", value, zero))
        added = append(block, arith.AndIOp(is_from_end, sizes))
        place = append(block, arith.AddiOp(value, added))
        is_inside = append(block, vector.CompareOp("lt", place, sizes, unsigned=True))
        is_outside = append(block, vector.CompareOp("ge", place, sizes, unsigned=True))
        wrong = append(block, arith.ExtUIOp(append(block, vector.AnyOp(is_outside)), _I64))
        # One of the wrong ones, if there are any, stands for all.
        block.add_op(CheckIndexOp(wrong, 1, []))
        return append(block, arith.AndIOp(place, is_inside))

    def _if(self, op: scf.IfOp, cloner: Cloner) -> Operation:
        types = [
            self.register_type(result.type) if result in self.varying else result.type
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
                        self.register(value, inner, block)
                        if result in self.varying
                        else inner.value(value)
                        for value, result in zip(last.operands, op.results, strict=True)
                    )
                )
            )
            regions.append(Region(block))
        return scf.IfOp(cloner.value(op.cond), types, regions[0], regions[1])


def _computes_much(loop: ForOp, lanes: int) -> bool:
    """True if what is computed from elements at places from data outweighs getting them."""
    ops = all_ops(loop)
    fetched = sum(isinstance(op, LoadOp) and any(map(_is_data, op.indices)) for op in ops)
    computed = sum(type(op) in _COMPUTING for op in ops)
    return computed > 2 * fetched and fetched * lanes <= MOST_FETCHED


def _is_data(index: SSAValue) -> bool:
    return isinstance(index.owner, arith.IndexCastOp)


def _is_same_number(op: Operation) -> bool:
    """True for ops that give their only operand, an index, as it is."""
    if isinstance(op, ApplyOp):
        return len(op.indices) == 1 and op.map.data[0] == Expr.symbol("d0")
    return isinstance(op, arith.IndexCastOp) or _is_of_index(op)


def _is_of_index(op: Operation | Block) -> bool:
    """True for a wider number of which nothing but an index is made, lane by lane."""
    return isinstance(op, arith.ExtSIOp) and all(
        isinstance(use.operation, arith.IndexCastOp) for use in op.result.uses
    )


def number_of(load: LoadOp) -> SSAValue | None:
    """The byte whose entry in a table is loaded that a kernel does not change; None if none is."""
    type_ = ref_type(load.ref)
    is_table = constants(type_.dims.data) == (TABLE_ENTRIES,) and type_.is_dense
    if not is_table or load.result.type != _BYTE or load.map.data[0] != Expr.symbol("d0"):
        return None
    if any(isinstance(use.operation, StoreOp) for use in load.ref.uses):
        return None
    index = load.indices[0]
    wide = index.owner.input.owner if isinstance(index.owner, arith.IndexCastOp) else None
    if not isinstance(wide, arith.ExtUIOp) or wide.input.type != _BYTE:
        return None
    return wide.input


def _is_of_lookup(op: Operation | Block) -> bool:
    """True for a wider number of a byte, or an index, that is nothing but the place in a table."""
    if not isinstance(op, arith.ExtUIOp | arith.IndexCastOp):
        return False
    users = [use.operation for use in op.results[0].uses]
    if isinstance(op, arith.ExtUIOp):
        return all(isinstance(user, arith.IndexCastOp) and _is_of_lookup(user) for user in users)
    return all(isinstance(user, LoadOp) and number_of(user) is not None for user in users)


def _is_pure(block: Block) -> bool:
    """True if ops touch no memory, and have no blocks of their own."""
    return all(isinstance(op, scf.YieldOp) or op.has_trait(Pure) for op in all_ops(block))


def vectorize(
    loop: ForOp, most: int | None = None, *, far: bool = False, lookups: Collection[int] = ()
) -> bool:
    """
    Replace a loop over lanes by vectors; False, and nothing changes, if that cannot be. Where they
    would be longer than `most` lanes of 32 bits there are several shorter ones. If `far`, lanes may
    lie far apart in memory. Vectors of `lookups` lanes of bytes may be looked up in tables.
    """
    lower, upper, step = (bound.value for bound in loop.range.data)
    if lower != 0 or step != 1 or upper is None or upper < 2 or upper & (upper - 1):
        return False
    if most is not None and not loop.inits:
        lanes = most * 32 // max(_widest(loop, is_looked_up=bool(lookups)), 8)
        if 2 <= lanes < upper:
            return _vectorize_parts(loop, upper, lanes, far=far, lookups=lookups)
    try:
        block, results = Vectorizer(loop, upper, far=far, lookups=lookups).body()
    except NotVectorizableError:
        return False
    replace(loop, block, results)
    return True


def _widest(loop: ForOp, *, is_looked_up: bool) -> int:
    """
    The bits of the widest value that is to be a vector. What is computed in f64 of sums that are
    shorter does not make these shorter vectors, for which there are too few registers.
    """
    carried = [value.type for op in all_ops(loop) if isinstance(op, ForOp) for value in op.inits]
    are_shorter = bool(carried) and f64 not in carried and not _is_stored_in_f64(loop)
    varying = varying_values(loop.body.block, [loop.body.block.args[0]])
    found = (
        _bits(value)
        for value in varying
        if not isinstance(value.type, IndexType)
        and not _is_of_index(value.owner)
        and not (is_looked_up and _is_of_lookup(value.owner))
        and not (are_shorter and value.type == f64)
    )
    return max(found, default=0)


def _is_stored_in_f64(loop: ForOp) -> bool:
    return any(
        isinstance(op, LoadOp | StoreOp) and ref_type(op.ref).element == f64 for op in all_ops(loop)
    )


def _bits(value: SSAValue) -> int:
    """Those that computing a value takes: quotients have floats with more digits."""
    bits = lane_bits(value.type)
    return max(2 * bits, 32) if isinstance(value.owner, DIVISIONS) else bits


def _vectorize_parts(
    loop: ForOp, upper: int, lanes: int, *, far: bool, lookups: Collection[int]
) -> bool:
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
    is_vector = vectorize(vector_loop, far=far, lookups=lookups)
    erased = loop if is_vector else parts
    erased.detach()
    erased.erase()
    return is_vector


class VectorizeLanesPass(FunctionPass):
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

    def run(self, function: FuncOp, target: Target) -> None:
        most, lookups = target.lanes if target.lanes > 1 else None, target.isa.lookups
        for loop in reversed(all_ops(function)):
            if isinstance(loop, ForOp) and loop.mode is not None:
                if loop.mode.data == LoopMode.LANES and not vectorize(loop, most, lookups=lookups):
                    del loop.properties["mode"]
