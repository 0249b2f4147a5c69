"""If, Loop and Scan: `core.if` and `core.loop`, or what is left of them when they are resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.control_flow import (
    IfOp,
    LoopOp,
    YieldOp,
    unequal_dims,
    with_dims,
    yielded,
)
from lowerdeck.dialects.core.symbols import symbols_made_within
from lowerdeck.dialects.core.types import (
    OptionalType,
    SequenceType,
    Tensor,
    dims_of,
    element_type,
    i1,
    i64,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.movement import concat, pad
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.sequences import Structure, erase_unused_lists, flatten, rebuild
from lowerdeck.passes.legalize.onnx.unlike_branches import BRANCHES, follow
from lowerdeck.passes.legalize.sizes import is_nonnegative, size_of

UNROLL_LIMIT = 64
"""Loops of more iterations are not unrolled, even if what they carry changes its shape."""

_ITERATION = tensor(i64, [])


# Subgraphs


def _require_body(builder: OnnxLegalizer, name: str, arguments: int, values: int) -> None:
    """Refuse a subgraph that has other numbers of inputs and outputs than the node goes by."""
    block = builder.op.region(name).block
    end = block.last_op
    found = (len(block.args), 0 if end is None else len(end.operands))
    if found != (arguments, values):
        builder.refuse(
            f"a subgraph '{name}' of {found[0]} inputs and {found[1]} outputs",
            f"{arguments} and {values}: the node has {len(builder.inputs)} inputs and "
            f"{len(builder.op.results)} outputs",
        )


def _scalar_input(builder: OnnxLegalizer, name: str) -> SSAValue | None:
    """The operand for a formal input that is one number, if it is present."""
    value = builder.input(name)
    if value is not None and any(dim.value not in (None, 1) for dim in dims_of(value)):
        builder.refuse(f"'{name}' of type {value.type}", "one element")
    return value


# If


@legalizes("If")
def legalize_if(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    A constant condition leaves the branch that it chooses; the other is ignored.

    Where the branches' results differ in size, the size gets a symbol; where they differ in rank,
    what follows goes into the branches.
    """
    for name in ("then_branch", "else_branch"):
        _require_body(builder, name, 0, len(op.results))
    condition = _scalar_input(builder, "cond")
    assert condition is not None
    if (known := builder.constant(condition)) is not None:
        name = "then_branch" if bool(known.reshape(-1)[0]) else "else_branch"
        return inline(builder, builder.region(name))
    regions = [builder.region(name) for name in BRANCHES]
    structures = [_flatten_yield(builder, region) for region in regions]
    if _differ_in_rank(structures):
        found = follow(
            op,
            builder,
            condition,
            lambda regions: _joined(builder, condition, regions),
            lambda region: inline(builder, region),
        )
        if found is not None:
            return found
    _require_alike(builder, structures)
    return _if(builder, condition, regions, structures[0])


def _differ_in_rank(structures: Sequence[Sequence[Structure]]) -> bool:
    """True if a result is a tensor of one rank from one branch and of another from the other."""
    pairs = [(one.type, other.type) for one, other in zip(*structures, strict=False)]
    return any(
        isinstance(one, TensorType)
        and isinstance(other, TensorType)
        and rank_of(cast(Tensor, one)) != rank_of(cast(Tensor, other))
        for one, other in pairs
    )


def _joined(
    builder: OnnxLegalizer, condition: SSAValue, regions: Sequence[Region]
) -> list[SSAValue] | None:
    """The results of a `core.if`, or None if those of its branches differ in more than size."""
    structures = [_flatten_yield(builder, region) for region in regions]
    if not all(map(_is_alike, *structures)):
        return None
    return _if(builder, condition, regions, structures[0])


def _if(
    builder: OnnxLegalizer,
    condition: SSAValue,
    regions: Sequence[Region],
    structures: Sequence[Structure],
) -> list[SSAValue]:
    symbols = [builder.symbols.fresh(nonnegative=True) for _ in unequal_dims(regions)]
    results = builder.insert(IfOp(condition, regions[0], regions[1], result_symbols=symbols))
    tensors = iter(results)
    return [rebuild(builder, tensors, structure) for structure in structures]


def inline(builder: OnnxLegalizer, region: Region) -> list[SSAValue]:
    """Move the ops of a legalized region before the node; the values that the region yields."""
    block = region.block
    end = block.last_op
    assert isinstance(end, YieldOp)
    values = list(end.values)
    end.detach()
    end.erase()
    Rewriter.inline_block(block, InsertPoint.before(builder.op))
    return values


def _flatten_yield(builder: OnnxLegalizer, region: Region) -> list[Structure]:
    """Let the region yield tensors only; what they make up."""
    end = region.block.last_op
    assert end is not None
    pairs = [flatten(builder, value) for value in yielded(region)]
    if any(structure.parts is not None for _, structure in pairs):
        new = YieldOp([value for flat, _ in pairs for value in flat])
        new.location = end.location
        Rewriter.replace_op(end, new, [])
        erase_unused_lists(region.block)
    return [structure for _, structure in pairs]


def _require_alike(builder: OnnxLegalizer, structures: Sequence[Sequence[Structure]]) -> None:
    yes, no = structures
    if len(yes) != len(no):
        builder.refuse(f"{len(yes)} results of then_branch, {len(no)} of else_branch", "as many")
    for index, (one, other) in enumerate(zip(yes, no, strict=True)):
        if not _is_alike(one, other):
            builder.refuse(
                f"result {index} of type {_text(one)} from then_branch and {_text(other)} from "
                "else_branch",
                "one rank and element type",
                "fix the shapes of inputs that the condition depends on (--input-shape), "
                "or give the branches results of one rank",
            )


def _is_alike(one: Structure, other: Structure) -> bool:
    """True if only sizes differ."""
    if one.parts is None or other.parts is None:
        return one.parts is other.parts and _is_same_kind(one.type, other.type)
    if one.type != other.type or len(one.parts) != len(other.parts):
        return False
    return all(map(_is_alike, one.parts, other.parts))


def _is_same_kind(one: Attribute, other: Attribute) -> bool:
    if one == other:
        return True
    if not (isinstance(one, TensorType) and isinstance(other, TensorType)):
        return False
    left, right = cast(Tensor, one), cast(Tensor, other)
    return (element_type(left), rank_of(left)) == (element_type(right), rank_of(right))


def _text(structure: Structure) -> str:
    if structure.parts is None:
        return str(structure.type)
    return f"list of ({', '.join(map(_text, structure.parts))})"


def _require_outer_symbols(
    builder: OnnxLegalizer, region: Region, own: Iterable[str], values: Sequence[SSAValue]
) -> None:
    """Refuse values whose shape is known only inside of the region, which has `own` symbols."""
    inner = symbols_made_within(region).union(own)
    for value in values:
        if any(dim.symbols & inner for dim in dims_of(value)):
            builder.refuse(
                f"a scan output of type {value.type}, whose shape is decided inside of the loop",
                "a shape that is known outside",
                "pad the result to a fixed size",
            )


# Loop


@legalizes("Loop")
def legalize_loop(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    A condition that is always true is dropped.

    A short loop is unrolled if it carries sequences, or values that change their size; a longer one
    gets symbols for these sizes.
    """
    trips, condition = _scalar_input(builder, "M"), _scalar_input(builder, "cond")
    inits = list(op.operands[2:])
    _require_body(builder, "body", 2 + len(inits), 1 + max(len(inits), len(op.results)))
    trip = None if trips is None else _expression(builder, trips)
    if any(isinstance(init.type, SequenceType | OptionalType) for init in inits):
        return _unrolled(builder, trip, condition, inits, "sequences are carried")
    iteration = builder.symbols.fresh(nonnegative=True)
    if trip is not None:
        builder.symbols.assume_below(iteration, trip)
    declared = op.region("body").block.arg_types

    def body(types: Sequence[Attribute]) -> Region:
        arguments = [_ITERATION, tensor(i1, []), *types]
        return builder.region("body", arguments, _loop_arguments(declared, iteration))

    region = body([init.type for init in inits])
    values = yielded(region)
    for value in values:
        if isinstance(value.type, SequenceType | OptionalType):
            return _unrolled(builder, trip, condition, inits, "sequences are yielded")
    changes = any(init.type != value.type for init, value in zip(inits, values[1:], strict=False))
    goes_on = condition is None or (_is_true(builder, condition) and _is_true(builder, values[0]))
    if changes and goes_on and _is_short(trip):
        return _unrolled(builder, trip, condition, inits, "what is carried changes its size")
    region, sizes = _with_sizes(builder, inits, body, region, 1)
    values = yielded(region)
    if condition is not None and _is_true(builder, condition) and _is_true(builder, values[0]):
        condition = None
    if trips is None and condition is None:
        builder.refuse("a loop without trip count whose condition is always true", "an end")
    if condition is None:
        _yield(region, values[1:])
    count = None if condition is not None else trip
    return _loop(builder, trips, condition, inits, region, iteration, count, sizes)


def _with_sizes(
    builder: OnnxLegalizer,
    inits: Sequence[SSAValue],
    body: Callable[[Sequence[Attribute]], Region],
    region: Region,
    first: int,
) -> tuple[Region, list[str]]:
    """
    The region of a loop for carried values of types that it keeps, and the symbols that are their
    sizes where it changes them.

    `region` is what `body` makes of the initial types; it yields what is carried from `first` on.
    """
    types = [init.type for init in inits]
    symbols: list[str] = []
    while True:
        carried = yielded(region)[first : first + len(inits)]
        for index, (init, value) in enumerate(zip(inits, carried, strict=True)):
            if not _is_same_kind(init.type, value.type):
                builder.refuse(
                    f"a loop in which carried value {index} starts as {init.type} and becomes "
                    f"{value.type}",
                    "values of one rank and element type",
                )
        places = _changes(types, carried, symbols)
        if not places:
            return region, symbols
        for index, axis in places:
            symbols.append(builder.symbols.fresh(nonnegative=True))
            types[index] = with_dims(types[index], {axis: Expr.symbol(symbols[-1])})
        region = body(types)


def _changes(
    types: Sequence[Attribute], carried: Sequence[SSAValue], symbols: Sequence[str]
) -> list[tuple[int, int]]:
    """The sizes, as (value, axis), that a body changes and that are no symbols yet."""
    return [
        (index, axis)
        for index, (type_, value) in enumerate(zip(types, carried, strict=True))
        if type_ != value.type
        for axis, (before, after) in enumerate(zip(dims_of(type_), dims_of(value), strict=True))
        if before != after and str(before) not in symbols
    ]


def _is_short(trip: Expr | None) -> bool:
    return trip is not None and trip.value is not None and trip.value <= UNROLL_LIMIT


def _expression(builder: OnnxLegalizer, value: SSAValue) -> Expr | None:
    """A number of iterations, if it is known when compiling; never negative."""
    elements = builder.symbols.elements(value)
    found: Expr | None = None if elements is None else elements.reshape(-1)[0]
    if found is None or is_nonnegative(builder, found):
        return found
    return builder.symbols.largest(found, 0)


def _is_true(builder: OnnxLegalizer, value: SSAValue) -> bool:
    array = builder.constant(value)
    return array is not None and bool(array.all())


def _loop_arguments(
    declared: Sequence[Attribute], iteration: str
) -> Callable[[CoreBuilder, Block], None]:
    """
    The block of a Loop has the iteration number, the condition and the carried values; that of a
    `core.loop` has no condition, which holds while the block runs.
    """

    def prepare(builder: CoreBuilder, block: Block) -> None:
        number, condition = block.args[:2]
        builder.symbols.know(number, [Expr.symbol(iteration)])
        condition.replace_all_uses_with(_as_declared(builder, _true(builder), declared[1]))
        block.erase_arg(condition)
        if _is_vector(declared[0]):
            vector = builder.reshape(number, [1])
            number.replace_uses_with_if(vector, lambda use: use.operation is not vector.owner)

    return prepare


def _true(builder: CoreBuilder) -> SSAValue:
    return builder.tensor(np.array(True))


def _as_declared(builder: CoreBuilder, value: SSAValue, declared: Attribute) -> SSAValue:
    """A scalar, or the vector of one element that some exporters declare in its place."""
    return builder.reshape(value, [1]) if _is_vector(declared) else value


def _is_vector(declared: Attribute) -> bool:
    return isinstance(declared, TensorType) and rank_of(cast(Attribute, declared)) == 1


def _yield(region: Region, values: Sequence[SSAValue]) -> None:
    """Let a region yield other values."""
    end = region.block.last_op
    assert end is not None
    new = YieldOp(values)
    new.location = end.location
    Rewriter.replace_op(end, new, [])


def _loop(
    builder: OnnxLegalizer,
    trips: SSAValue | None,
    condition: SSAValue | None,
    inits: Sequence[SSAValue],
    region: Region,
    iteration: str,
    count: Expr | None,
    sizes: Sequence[str] = (),
) -> list[SSAValue]:
    """The `core.loop` for a legalized region; scan outputs have `count` rows, if that is known."""
    values = yielded(region)[condition is not None :]
    scans = values[len(inits) :]
    if any(iteration in dim.symbols for value in scans for dim in dims_of(value)):
        builder.refuse("a scan output whose shape changes between iterations", "a fixed shape")
    _require_outer_symbols(builder, region, sizes, scans)
    symbol = builder.symbols.fresh(nonnegative=True) if scans else None
    if trips is not None:
        trips = builder.reshape(trips, [])
    loop = LoopOp(
        trips,
        condition,
        inits,
        region,
        iteration=iteration,
        count=symbol,
        carried_symbols=sizes,
        result_symbols=[builder.symbols.fresh(nonnegative=True) for _ in sizes],
    )
    results = list(builder.insert(loop))
    if count is None:
        return results
    for index in range(len(inits), len(results)):
        dims = dims_of(results[index])[1:]
        type_ = tensor(element_type(results[index]), [count, *dims])
        results[index] = Rewriter.replace_value_with_new_type(results[index], type_)
    return results


def _unrolled(
    builder: OnnxLegalizer,
    trip: Expr | None,
    condition: SSAValue | None,
    inits: Sequence[SSAValue],
    reason: str,
) -> list[SSAValue]:
    """The iterations one after the other."""
    if trip is None or trip.value is None or trip.value > UNROLL_LIMIT:
        builder.refuse(
            f"a loop in which {reason}",
            f"values of one type, or a constant trip count of up to {UNROLL_LIMIT}",
        )
    if condition is not None and not _is_true(builder, condition):
        builder.refuse(f"a loop with a condition in which {reason}", "values of one type")
    carried, scans = list(inits), [list[SSAValue]() for _ in builder.op.results[len(inits) :]]
    declared = builder.op.region("body").block.arg_types
    for index in range(trip.value):
        region = builder.region("body", prepare=_substitution(index, carried, declared))
        values = inline(builder, region)
        carried = values[1 : 1 + len(inits)]
        for rows, value in zip(scans, values[1 + len(inits) :], strict=True):
            rows.append(value)
        if condition is None or _is_true(builder, values[0]):
            continue
        if builder.constant(values[0]) is None:
            builder.refuse(f"a loop with a condition in which {reason}", "values of one type")
        break
    return [*carried, *(_stacked(builder, rows) for rows in scans)]


def _substitution(
    index: int, carried: Sequence[SSAValue], declared: Sequence[Attribute]
) -> Callable[[CoreBuilder, Block], None]:
    def prepare(builder: CoreBuilder, block: Block) -> None:
        number = _as_declared(builder, builder.tensor(np.array(index, np.int64)), declared[0])
        condition = _as_declared(builder, _true(builder), declared[1])
        _replace_args(block, [number, condition, *carried])

    return prepare


def _replace_args(block: Block, values: Sequence[SSAValue]) -> None:
    for argument, value in zip(tuple(block.args), values, strict=True):
        argument.replace_all_uses_with(value)
        block.erase_arg(argument)


def _stacked(builder: OnnxLegalizer, rows: Sequence[SSAValue]) -> SSAValue:
    if not rows:
        builder.refuse("a scan output of no iterations", "at least one")
    return concat(builder, [builder.unsqueeze(row, [0]) for row in rows], 0)


# Scan


@legalizes("Scan", since=9)
def legalize_scan(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A loop over slices of the scan inputs, along any axes and in either direction."""
    plan = _ScanPlan(op, builder, list(op.operands), batched=False)
    results = plan.run([])
    outputs = results[plan.states :]
    axes = _of_each(builder, "scan_output_axes", len(outputs))
    backward = _of_each(builder, "scan_output_directions", len(outputs))
    for k, value in enumerate(outputs):
        value = _reversed(builder, value) if backward[k] else value
        outputs[k] = _first_axis_to(builder, value, builder.axis(axes[k], rank_of(value)))
    return [*results[: plan.states], *outputs]


def _of_each(builder: OnnxLegalizer, name: str, count: int) -> list[int]:
    """A list of one number for each scan input or output, which are zeros if it is not given."""
    found = builder.attrs.ints(name, default=[0] * count)
    if len(found) != count:
        builder.refuse(f"attribute '{name}' of {len(found)} numbers", str(count))
    return found


def _reversed(builder: OnnxLegalizer, value: SSAValue) -> SSAValue:
    dims = dims_of(value)
    rest = [0] * (len(dims) - 1)
    return builder.slice(value, [dims[0] - 1, *rest], dims, [-1, *[1] * len(rest)])


def _first_axis_to(builder: OnnxLegalizer, value: SSAValue, axis: int) -> SSAValue:
    order = list(range(1, rank_of(value)))
    order.insert(axis, 0)
    return builder.transpose(value, order)


class _ScanPlan:
    """What a Scan runs over; `batched` values (version 8) have a leading batch dimension."""

    def __init__(
        self, op: OnnxOp, builder: OnnxLegalizer, operands: Sequence[SSAValue], batched: bool
    ) -> None:
        count = builder.attrs.int("num_scan_inputs")
        if not 1 <= count <= len(operands):
            builder.refuse(f"{count} scan inputs", f"1 to {len(operands)}, the node's inputs")
        states = len(operands) - count
        _require_body(builder, "body", len(operands), max(states, len(op.results)))
        self.builder = builder
        self.states = states
        self.inits, self.scanned = operands[: self.states], operands[self.states :]
        name = "directions" if batched else "scan_input_directions"
        self.backward = _of_each(builder, name, count)
        axes = [0] * count if batched else _of_each(builder, "scan_input_axes", count)
        for value in operands:
            found = str(value.type)
            if not isinstance(value.type, TensorType) or rank_of(value) < batched:
                builder.refuse(f"an operand of type {found}", "a tensor with a batch dimension")
        ranks = [rank_of(value) - batched for value in self.scanned]
        self.axes = [builder.axis(axis, rank) for axis, rank in zip(axes, ranks, strict=True)]
        self.length = dims_of(self.scanned[0])[self.axes[0] + batched]

    def run(self, batch: Sequence[Expr]) -> list[SSAValue]:
        """The loop at `builder`, for the elements at index `batch` of batched values."""
        builder = self.builder
        iteration = builder.symbols.fresh(nonnegative=True)
        builder.symbols.assume_below(iteration, self.length)
        inits = [part(builder, value, batch, 0) for value in self.inits]

        def body(types: Sequence[Attribute]) -> Region:
            return builder.region(
                "body",
                types,
                lambda builder, block: self._arguments(builder, block, batch, iteration),
            )

        region = body([init.type for init in inits])
        region, sizes = _with_sizes(builder, inits, body, region, 0)
        trips = builder.dims([self.length], [])
        return _loop(builder, trips, None, inits, region, iteration, self.length, sizes)

    def _arguments(
        self, builder: CoreBuilder, block: Block, batch: Sequence[Expr], iteration: str
    ) -> None:
        """Slices, made at the beginning of the block, take the place of its last arguments."""
        number = block.insert_arg(_ITERATION, 0)
        step = Expr.symbol(iteration)
        builder.symbols.know(number, [step])
        arguments = tuple(block.args)[1 + self.states :]
        for k, (argument, value) in enumerate(zip(arguments, self.scanned, strict=True)):
            index = self.length - 1 - step if self.backward[k] else step
            slice_ = part(builder, value, [*batch], 0)
            argument.replace_all_uses_with(part(builder, slice_, [index], self.axes[k]))
            block.erase_arg(argument)


def part(builder: CoreBuilder, value: SSAValue, index: Sequence[Expr], axis: int) -> SSAValue:
    """The part at one position of `axis`, without that dimension; all without an index."""
    for position in index:
        value = builder.squeeze(builder.slice_axis(value, axis, position, 1), [axis])
    return value


@legalizes("Scan", until=8)
def legalize_scan_batched(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    Version 8 runs a scan for each element of a batch, over the first `sequence_lens` slices; what
    is behind them in the outputs is zero.
    """
    plan = _ScanPlan(op, builder, list(op.operands[1:]), batched=True)
    lens = builder.input("sequence_lens")
    size = dims_of(op.operands[1])[0]
    batch = builder.symbols.fresh(nonnegative=True)
    builder.symbols.assume_below(batch, size)
    block = Block(arg_types=[_ITERATION])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    whole = plan.length
    plan.builder = inner
    if lens is not None:
        own = part(inner, lens, [Expr.symbol(batch)], 0)
        plan.length = size_of(inner, own, "the length of a sequence")
    results = plan.run([Expr.symbol(batch)])
    for k in range(plan.states, len(results)):
        end = [whole - plan.length, *[Expr.const(0)] * (rank_of(results[k]) - 1)]
        results[k] = pad(inner, results[k], [Expr.const(0)] * rank_of(results[k]), end)
    inner.insert(YieldOp(results))
    trips = builder.dims([size], [])
    return _loop(builder, trips, None, [], Region(block), batch, size)
