"""Kernels that move what a state was to where it belongs now: one buffer is both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import BoolAttr, StringAttr, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import interval
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.overwriting import Spot, Spots, by_loops, common_loops

MOVED = "_moved"
"""What is added to the name of a function for its copy that moves."""


@record
class Place:
    """Where in a buffer that is taken as a line an argument of a function lies."""

    root: SSAValue
    offset: int


def place_of(value: SSAValue) -> Place | None:
    """The buffer that a value is a part of, and where it begins; None if that is open."""
    offset = 0
    while isinstance(value.owner, entry_ops.ViewOp):
        start = value.owner.offset.data[0].value
        if start is None:
            return None
        offset += start
        value = value.owner.source
    return Place(value, offset)


def moves_in_order(function: kernel.FuncOp, offsets: Mapping[int, int]) -> bool:
    """
    True if a function may have its only result in the buffer of operands, which begin at these
    elements of it: run in the order of the text, it loads nothing from there that it has stored.
    """
    arguments, spots = function.body.block.args, Spots(function)
    target = arguments[-1]
    sources = {arguments[number]: offset for number, offset in offsets.items()}
    if function.symbols or function.outputs.data != 1 or target in spots.loads:
        return False
    if any(value in spots.others for value in (target, *sources)):
        return False
    stores = [_line(spot, target, 0) for spot in spots.stores.get(target, ())]
    loads = [
        _line(spot, source, offset)
        for source, offset in sources.items()
        for spot in spots.loads.get(source, ())
    ]
    known = [(load, store) for load in loads for store in stores if load and store]
    return len(known) == len(loads) * len(stores) and all(
        _is_in_order(load, store, spots) for load, store in known
    )


@record
class _Line:
    """A load or a store with its place in the line of all elements."""

    spot: Spot
    start: Expr
    extent: int


def _line(spot: Spot, ref: SSAValue, offset: int) -> _Line | None:
    type_ = ref_type(ref)
    if not type_.is_dense or any(extent != 1 for extent in spot.extents[:-1]):
        return None
    parts = (i * step for i, step in zip(spot.indices, type_.strides.data, strict=True))
    return _Line(spot, sum(parts, Expr.const(offset)), spot.extents[-1] if spot.extents else 1)


def _is_in_order(load: _Line, store: _Line, spots: Spots) -> bool:
    """
    True if no store comes before the load of an element that both touch.

    Within the loops around both, the place of the store grows from iteration to iteration, by more
    than it stores at once; what the load reads lies beyond the store of the iteration before, and
    in its own iteration it comes first, or does not meet the store.
    """
    shared = common_loops(load.spot.loops, store.spot.loops)
    step = _growth(store.start, shared, spots)
    read, written = (_reach(line, shared, spots) for line in (load, store))
    if step is None or read is None or written is None:
        return False
    is_apart = read[1] < written[0] or written[1] < read[0]
    in_one = load.spot.number < store.spot.number or is_apart
    if step == 0:
        return in_one
    steps = [by_loops(line.start, frozenset(shared)) for line in (load, store)]
    if steps[0] is None or steps[1] is None or steps[0][0] != steps[1][0]:
        return False
    return in_one and read[0] + step > written[1] and step > written[1] - written[0]


def _growth(start: Expr, names: Sequence[str], spots: Spots) -> int | None:
    """
    By how much a place grows at least from an iteration of loops to the next, of an inner one or an
    outer one; 0 if there are no loops, None if it may not grow.
    """
    split, reach, least = by_loops(start, frozenset(names)), 0, 0
    if split is None:
        return None
    for name in reversed(names):
        trips = spots.trips[name].value
        if trips is None:
            return None
        if trips == 1:
            continue
        own = split[0].get(name, 0)
        step = own - reach
        least = step if not least else min(least, step)
        if step <= 0:
            return None
        reach += own * (trips - 1)
    return least


def _reach(line: _Line, names: Sequence[str], spots: Spots) -> tuple[int, int] | None:
    """The first and the last element in one iteration of loops, if these begin at 0."""
    ranges = {name: (0, 0) for name in names}
    for name in line.start.symbols - ranges.keys():
        known = spots.ranges.get(name)
        ends = None if known is None else [Expr.of(end).value for end in known]
        if ends is None or ends[0] is None or ends[1] is None:
            return None
        ranges[name] = (ends[0], ends[1])
    bounds = interval(line.start, ranges)
    return None if bounds is None else (bounds[0], bounds[1] + line.extent - 1)


def move(call: entry_ops.CallOp, function: kernel.FuncOp, offsets: Mapping[int, int]) -> None:
    """
    Let a call load from the buffer of its result, all of which the last argument is, what it loads
    from operands now. The loops of the function, or of a copy where others call it, run in order.
    """
    module, entry = function.parent, call.parent
    assert module is not None
    assert entry is not None
    others = [op for each in module.ops for op in all_ops(each) if isinstance(op, entry_ops.CallOp)]
    if any(op is not call and op.callee == call.callee for op in others):
        function = _copied(function)
        call.properties["callee"] = SymbolRefAttr(function.sym_name.data)
    block = function.body.block
    arguments = list(block.args)
    target, type_ = arguments[-1], ref_type(arguments[-1])
    sources: dict[SSAValue, int] = {arguments[number]: offset for number, offset in offsets.items()}
    for op in all_ops(function):
        if isinstance(op, kernel.ForOp):
            op.parallel = BoolAttr.from_bool(False)
        elif isinstance(op, kernel.LoadOp | kernel.StoreOp) and op.ref in (target, *sources):
            strides = ref_type(op.ref).strides.data
            parts = (i * step for i, step in zip(op.map.data, strides, strict=True))
            op.map = DimsAttr.of([sum(parts, Expr.const(sources.get(op.ref, 0)))])
    line = RefType.of(type_.element, [type_.elements])
    target = Rewriter.replace_value_with_new_type(target, line)
    for number in offsets:
        arguments[number].replace_all_uses_with(target)
        block.erase_arg(arguments[number])
    kept = [each for number, each in enumerate(call.arguments) if number not in offsets]
    view = entry_ops.ViewOp(kept[-1], line)
    view.location = call.location
    entry.insert_op_before(view, call)
    call.operands = [*kept[:-1], view.result]


def _copied(function: kernel.FuncOp) -> kernel.FuncOp:
    """A copy behind a function, under a name of its own."""
    module, copy = function.parent, function.clone()
    assert module is not None
    taken = {op.sym_name.data for op in module.ops if isinstance(op, kernel.FuncOp)}
    name = f"{function.sym_name.data}{MOVED}"
    while name in taken:
        name += "_"
    copy.location, copy.properties["sym_name"] = function.location, StringAttr(name)
    module.insert_op_after(copy, function)
    return copy
