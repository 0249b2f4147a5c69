"""
Raised loops and conditionals: the types that their values have.

A body is legalized with the types of the initial values, and again with what its values turn out to
be, until nothing changes: a dimension that an iteration changes becomes a symbol, and an array
becomes the tensor that the first write makes of it. Everything else that is not the
same in every iteration is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp, unequal_dims, yielded
from lowerdeck.dialects.core.symbols import symbols_made_within
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.control_flow.places import place_of
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.arrays import all_zero, empty_array, is_unwritten, zeros
from lowerdeck.passes.legalize.common.uneven import uniform_lengths
from lowerdeck.passes.legalize.legalizer import Legalizer, PoisonedError

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.walk import FunctionWalk

_MAX_TRIALS = 32
"""A body is tried again as long as types change: each time a dimension becomes a symbol."""


# If


def legalize_if(op: IfOp, walk: FunctionWalk) -> None:
    """
    The branches with exact types; a branch whose condition is known takes the place of the op.

    Unused results, and results that are one outer value in both branches, go. Where a
    branch gives a value that is never used, zeros of the type of the other's take its place.
    """
    builder = Legalizer(op, walk.symbols)
    known = builder.constant(op.condition)
    if known is not None:
        return _take_branch(op, op.regions[0 if known.all() else 1], walk)
    regions = [_legalized(region, walk) for region in op.regions]
    results = list(op.results)
    found: dict[int, SSAValue] = {}
    kept: list[int] = []
    for index, values in enumerate(zip(*map(yielded, regions), strict=True)):
        if results[index].first_use is None:
            continue
        given = {value for value in values if not _is_anything(value)}
        if not given:
            continue
        if len(given) == 1 and not _is_inside(one := given.pop(), regions):
            found[index] = one
            continue
        kept.append(index)
    for region in regions:
        _yield(region, [yielded(region)[index] for index in kept])
    _write_arrays(builder, regions, walk)
    _fill(builder, regions)
    for region in regions:
        walk.erase_transient(region.block)
    _require_one_type(builder, op, kept, regions)
    uneven = _yield_lengths(builder, regions, walk)
    names = [walk.symbols.fresh(nonnegative=True) for _ in unequal_dims(regions)]
    new = IfOp(op.condition, regions[0], regions[1], result_symbols=names)
    made = builder.insert(new)
    walk.companions.update(zip((made[index] for index in uneven), made[len(kept) :], strict=True))
    found |= zip(kept, made[: len(kept)], strict=True)
    walk.replace(op, [found.get(index) for index in range(len(results))])


def _take_branch(op: IfOp, chosen: Region, walk: FunctionWalk) -> None:
    """Put one branch in the place of the op; the other one gives types where that is needed."""
    builder = Legalizer(op, walk.symbols)
    values = _inlined(op, _legalized(chosen, walk))
    if any(map(_is_anything, values)):
        (rest,) = (region for region in op.regions if region is not chosen)
        other = _legalized(rest, walk)
        for index, like in enumerate(yielded(other)):
            if _is_anything(values[index]) and not _is_anything(like):
                is_outer = not _is_inside(like, [other])
                values[index] = like if is_outer else _zeros_like(builder, like, [other])
        other.drop_all_references()
    walk.replace(op, values)


def _is_anything(value: SSAValue) -> bool:
    """True for a value that is never used."""
    return isinstance(value.owner, PoisonOp)


def _fill(builder: Legalizer, regions: Sequence[Region]) -> None:
    """Let branches give zeros for values that are never used."""
    for index, values in enumerate(zip(*map(yielded, regions), strict=True)):
        like = next(value for value in values if not _is_anything(value))
        for region, value in zip(regions, values, strict=True):
            if _is_anything(value):
                end = _end(region)
                inside = builder.at(InsertPoint.before(end))
                end.operands[index] = _zeros_like(inside, like, regions)


def _zeros_like(builder: CoreBuilder, like: SSAValue, regions: Sequence[Region]) -> SSAValue:
    """
    Zeros of the type of what a region gives; no dimension is longer than zero if only the regions
    know how long.
    """
    if is_unwritten(like):
        return _zeros_like(builder, all_zero(builder, like), regions)
    inner = {name for region in regions for name in symbols_made_within(region)}
    dims = [Expr.const(0) if dim.symbols & inner else dim for dim in dims_of(like)]
    return zeros(builder, tensor(element_type(like), dims))


def _is_inside(value: SSAValue, regions: Sequence[Region]) -> bool:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        if block.parent in regions:
            return True
        block = block.parent_block()
    return False


def _yield_lengths(builder: Legalizer, regions: Sequence[Region], walk: FunctionWalk) -> list[int]:
    """Let branches yield the lengths of uneven arrays, too; the places of these arrays."""
    pairs = list(zip(*map(yielded, regions), strict=True))
    uneven = [k for k, values in enumerate(pairs) if any(v in walk.companions for v in values)]
    for region in regions if uneven else ():
        values = yielded(region)
        inside = builder.at(InsertPoint.before(_end(region)))
        _yield(region, [*values, *(_lengths(inside, values[k], walk) for k in uneven)])
    return uneven


def _lengths(builder: CoreBuilder, elements: SSAValue, walk: FunctionWalk) -> SSAValue:
    """The lengths of the elements of an array, known or all the same."""
    known = walk.companions.get(elements)
    return uniform_lengths(builder, elements) if known is None else known


def _write_arrays(builder: Legalizer, regions: Sequence[Region], walk: FunctionWalk) -> None:
    """An array that one branch writes is, in the other one, as many elements of zero as it had."""
    for index, values in enumerate(zip(*map(yielded, regions), strict=True)):
        unwritten = [k for k, value in enumerate(values) if is_unwritten(value)]
        if not unwritten:
            continue
        written = [k for k in (0, 1) if k not in unwritten and not _is_anything(values[k])]
        if not written:
            for k in unwritten:
                end = _end(regions[k])
                end.operands[index] = all_zero(builder.at(InsertPoint.before(end)), values[k])
            continue
        like = values[written[0]]
        inner = set(symbols_made_within(regions[written[0]]))
        is_uneven = _is_uneven(builder, like, inner, walk)
        for region, value in zip(regions, values, strict=True):
            if is_unwritten(value):
                end = _end(region)
                inside = builder.at(InsertPoint.before(end))
                array = empty_array(inside, value, like, is_uneven=is_uneven)
                end.operands[index] = array
                if is_uneven:
                    walk.companions[array] = uniform_lengths(inside, array)


def _is_uneven(builder: Legalizer, array: SSAValue, inner: set[str], walk: FunctionWalk) -> bool:
    """
    True if elements of an array that a region makes, with the symbols `inner`, have other lengths
    than those outside. The rest of their shape must be known there.
    """
    decided_inside = [axis for axis, dim in enumerate(dims_of(array)) if dim.symbols & inner]
    if any(axis > 1 for axis in decided_inside):
        builder.refuse(
            f"an array of elements whose shape is decided inside: {array.type}",
            "elements of a shape that is known before, but for their length",
        )
    return array in walk.companions or 1 in decided_inside


def _require_one_type(
    builder: Legalizer, op: IfOp, kept: Sequence[int], regions: Sequence[Region]
) -> None:
    """Refuse a result, of those `kept`, to which the branches give different kinds of tensors."""
    place = place_of(op)
    for index, yes, no in zip(kept, *map(yielded, regions), strict=True):
        if element_type(yes) != element_type(no) or rank_of(yes) != rank_of(no):
            result = "a result" if place is None else f"'{place.names[index]}'"
            builder.refuse(
                f"{result} of type {yes.type} if the condition holds, {no.type} if not",
                "one rank and one element type",
            )


# Loop


@dataclass
class _Carried:
    """One value of a loop, as far as it is known."""

    index: int
    """Its place among the carried values of the op."""
    init: SSAValue
    type: Tensor | None
    """The type at the start of an iteration; None for a value that is not a tensor."""
    what: str = "a loop variable"
    """What messages call it."""
    is_lengths: bool = False
    """True for the lengths of an uneven array, which are carried beside it."""
    symbols: dict[int, str] = field(default_factory=dict[int, str])
    """The symbols of dimensions that change, by axis."""


def legalize_loop(op: LoopOp, walk: FunctionWalk) -> None:
    """
    The loop with exact types, or the initial values if its condition does not hold for them.

    Values that the body hands on, and arrays that it does not write, are not carried.
    """
    builder = Legalizer(op, walk.symbols)
    assert op.condition is not None
    known = builder.constant(op.condition)
    if known is not None and not known.all():
        return walk.replace(op, op.inits)
    state = [_Carried(k, init, _tensor_type(init)) for k, init in enumerate(op.inits)]
    if (place := place_of(op)) is not None:
        for one, name in zip(state, place.names, strict=True):
            one.what = f"the loop variable '{name}'"
    _add_lengths(builder, state, op.inits, walk)
    for _ in range(_MAX_TRIALS):
        body = _body(op, state, walk)
        if not _update(builder, op, state, body, walk):
            return _finish(builder, op, state, body, walk)
        body.drop_all_references()
    builder.refuse(
        f"a loop whose types still change after {_MAX_TRIALS} trials", "types that settle"
    )


def _tensor_type(value: SSAValue) -> Tensor | None:
    type_: Attribute = value.type
    return cast(Tensor, type_) if isinstance(type_, TensorType) else None


def _body(op: LoopOp, state: Sequence[_Carried], walk: FunctionWalk) -> Region:
    """
    A legalized copy of the body, its arguments of the types found so far.

    An array that is not known to be written is the outer one.
    """
    body = op.body.clone()
    carried = {one.index: one for one in state if not one.is_lengths}
    for index, argument in enumerate(tuple(body.block.args)[1:]):
        one = carried.get(index)
        if one is None or one.type is None or is_unwritten(one.init):
            argument.replace_all_uses_with(op.inits[index])
        elif argument.type != one.type:
            Rewriter.replace_value_with_new_type(argument, one.type)
    for one in state:
        if one.is_lengths:
            assert one.type is not None
            lengths = body.block.insert_arg(one.type, len(body.block.args))
            walk.companions[body.block.args[1 + one.index]] = lengths
    _legalize(body, op.body, walk)
    return body


def _update(
    builder: Legalizer, op: LoopOp, state: list[_Carried], body: Region, walk: FunctionWalk
) -> bool:
    """Take what the body yields into account; False if it was known already."""
    arguments = tuple(body.block.args)[1:]
    end = builder.at(InsertPoint.before(_end(body)))
    changed = _give_elements(builder, state, body, end, walk)
    values = yielded(body)[1:]
    inner = set(symbols_made_within(body))
    for one in tuple(state):
        value = values[one.index]
        if one.is_lengths:
            changed |= _join(builder, one, _lengths(end, value, walk), inner, walk)
        elif value in (arguments[one.index], one.init):
            # Handed on: what uses the argument uses the initial value in the next trial.
            state[:] = [other for other in state if other.index != one.index]
            changed = True
        elif is_unwritten(one.init):
            _write_first(builder, one, value, inner, walk)
            changed = True
        else:
            changed |= _join(builder, one, value, inner, walk)
    return changed | _add_lengths(builder, state, values, walk)


def _give_elements(
    builder: Legalizer,
    state: Sequence[_Carried],
    body: Region,
    end: CoreBuilder,
    walk: FunctionWalk,
) -> bool:
    """Make tensors of arrays that the body made and did not write; False if inits are tensors."""
    changed = False
    for one in state:
        value = yielded(body)[1 + one.index]
        if one.is_lengths or not is_unwritten(value) or value is one.init:
            continue
        if is_unwritten(one.init):
            one.init = all_zero(builder, one.init)
            one.type = _tensor_type(one.init)
            changed = True
        is_uneven = one.init in walk.companions
        array = empty_array(end, value, one.init, is_uneven=is_uneven)
        _end(body).operands[1 + one.index] = array
        _erase_unused(value)
        if is_uneven:
            walk.companions[array] = uniform_lengths(end, array)
    return changed


def _write_first(
    builder: Legalizer, one: _Carried, value: SSAValue, inner: set[str], walk: FunctionWalk
) -> None:
    """
    The array that the body writes as `value`, before the loop: it may have another number of
    elements, and other lengths, but the rest of an element's shape must be known.
    """
    is_uneven = _is_uneven(builder, value, inner, walk)
    one.init = empty_array(builder, one.init, value, is_uneven=is_uneven)
    one.type = _tensor_type(one.init)
    if is_uneven:
        walk.companions[one.init] = uniform_lengths(builder, one.init)


def _add_lengths(
    builder: Legalizer, state: list[_Carried], values: Sequence[SSAValue], walk: FunctionWalk
) -> bool:
    """Carry the lengths of arrays that are, or become, uneven; False if they are carried."""
    known = {one.index for one in state if one.is_lengths}
    added: list[_Carried] = []
    for one in state:
        is_uneven = one.init in walk.companions or values[one.index] in walk.companions
        if is_uneven and not one.is_lengths and one.index not in known:
            init = _lengths(builder, one.init, walk)
            added.append(_Carried(one.index, init, _tensor_type(init), is_lengths=True))
    state += added
    return bool(added)


def _join(
    builder: Legalizer, one: _Carried, value: SSAValue, inner: set[str], walk: FunctionWalk
) -> bool:
    """Make symbols of the dimensions that differ; False if there are none."""
    old = one.type
    if (
        old is None
        or _tensor_type(value) is None
        or element_type(value) != element_type(old)
        or rank_of(value) != rank_of(old)
    ):
        builder.refuse(
            f"{one.what} that starts as {one.init.type} and becomes {value.type}",
            "one rank and one element type",
        )
    changed = False
    dims = list(dims_of(old))
    for axis, (dim, new) in enumerate(zip(dims, dims_of(value), strict=True)):
        if axis in one.symbols or (dim == new and not new.symbols & inner):
            continue
        one.symbols[axis] = walk.symbols.fresh(nonnegative=True)
        dims[axis] = Expr.symbol(one.symbols[axis])
        changed = True
    if changed:
        one.type = tensor(element_type(old), dims)
    return changed


def _finish(
    builder: Legalizer, op: LoopOp, state: Sequence[_Carried], body: Region, walk: FunctionWalk
) -> None:
    """The loop of a body that fits the types of what it carries."""
    values = yielded(body)
    end = builder.at(InsertPoint.before(_end(body)))
    carried = [
        _lengths(end, values[1 + one.index], walk) if one.is_lengths else values[1 + one.index]
        for one in state
    ]
    _yield(body, [values[0], *carried])
    kept = {one.index for one in state}
    types = [argument.type for argument in body.block.args]
    handed_on = [init.type for init in op.inits]
    if walk.on_arguments is not None:
        walk.on_arguments(
            op, [types[0], *(types[1 + k] if k in kept else t for k, t in enumerate(handed_on))]
        )
    for index, argument in reversed(list(enumerate(body.block.args[1 : 1 + len(op.inits)]))):
        if index not in kept:
            body.block.erase_arg(argument)
    names = [name for one in state for name in one.symbols.values()]
    loop = LoopOp(
        None,
        op.condition,
        [one.init for one in state],
        body,
        carried_symbols=names,
        result_symbols=[walk.symbols.fresh(nonnegative=True) for _ in names],
    )
    found: dict[int, SSAValue] = {}
    for one, result in zip(state, builder.insert(loop), strict=True):
        if one.is_lengths:
            walk.companions[found[one.index]] = result
        else:
            found[one.index] = result
    walk.replace(op, [found.get(index, init) for index, init in enumerate(op.inits)])


# Regions


def _erase_unused(unwritten: SSAValue) -> None:
    """Erase the op that made an array if a region has just stopped to yield it."""
    op = unwritten.owner
    assert isinstance(op, Operation)
    if all(result.first_use is None for result in op.results):
        op.detach()
        op.erase()


def _legalized(region: Region, walk: FunctionWalk) -> Region:
    """A legalized copy of a region; the op keeps the original, to be tried with other types."""
    copy = region.clone()
    _legalize(copy, region, walk)
    return copy


def _legalize(copy: Region, region: Region, walk: FunctionWalk) -> None:
    """Legalize a copy of a region, whose refusals say where in the graph that is."""
    op, outer = region.parent_op(), walk.where
    assert op is not None
    if (place := place_of(op)) is not None:
        walk.where = f" in {place.frame} if {place.regions[op.regions.index(region)]}"
    is_complete = walk.block(copy.block)
    walk.where = outer
    if not is_complete:
        raise PoisonedError


def _inlined(op: Operation, region: Region) -> list[SSAValue]:
    """Move a region's ops before `op`; the values that it yields."""
    end = region.block.last_op
    assert isinstance(end, YieldOp)
    values = list(end.values)
    end.detach()
    end.erase()
    Rewriter.inline_block(region.block, InsertPoint.before(op))
    return values


def _end(region: Region) -> Operation:
    end = region.block.last_op
    assert end is not None
    return end


def _yield(region: Region, values: Sequence[SSAValue]) -> None:
    """Let a region yield other values."""
    end = _end(region)
    new = YieldOp(values)
    new.location = end.location
    Rewriter.replace_op(end, new, [])
