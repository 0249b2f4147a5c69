"""
If with branches whose results differ in rank, as exporters write `squeeze` of a dimension that may
be larger than one.

A value of `core` has one rank. So the nodes that use such a result, and those that use theirs, are
made once in each branch, only as many as it takes until the branches give results of one rank
again. Where only one of the branches can be followed so, because what follows has no meaning for
the rank that the other gives, a run in which the condition wants the other fails, as it would
fail elsewhere at the first such node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, Region, SSAValue

from lowerdeck.dialects.core.elementwise import NotOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import i64
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results

BRANCHES = ("then_branch", "else_branch")


def follow(
    op: OnnxOp,
    builder: OnnxLegalizer,
    condition: SSAValue,
    join: Callable[[Sequence[Region]], Sequence[SSAValue] | None],
    inline: Callable[[Region], Sequence[SSAValue]],
) -> Results | None:
    """
    The results of an If, with which the nodes go that are made in its branches; None if no nodes
    bring the branches together.

    `join` makes one `core.if` of two regions and returns its results, or None if the regions'
    results differ in rank; `inline` takes one of them.
    """
    followers, count = _followers(op), 1
    while count < 2 * len(followers):
        taken = followers[:count]
        _precede(op, builder, followers, taken)
        crossing = _crossing(op, taken)
        regions = [_branch(op, name, taken, crossing) for name in BRANCHES]
        possible = [builder.attempt(region) for region in regions]
        if all(possible):
            values = join(regions)
        elif any(possible):
            index = possible.index(True)
            wanted = condition if index == 0 else builder.add(NotOp(condition))
            values = [_if_true(builder, wanted, value) for value in inline(regions[index])]
        else:
            return None
        if values is not None:
            return _replaced(op, taken, dict(zip(crossing, values, strict=True)))
        count *= 2
    return None


def _followers(op: Operation) -> list[Operation]:
    """The ops of the block that depend on an op, without the one that ends the block."""
    block = op.parent
    assert block is not None
    dependent, found = set(op.results), list[Operation]()
    other = op.next_op
    while other is not None and other is not block.last_op:
        if any(value in dependent for inner in other.walk() for value in inner.operands):
            dependent.update(other.results)
            found.append(other)
        other = other.next_op
    return found


def _precede(
    op: Operation,
    builder: OnnxLegalizer,
    followers: Sequence[Operation],
    taken: Sequence[Operation],
) -> None:
    """Put what does not follow, but stands between an op and those that go with it, before it."""
    dependent, other = set(followers), op.next_op
    while other is not None and other is not taken[-1]:
        after = other.next_op
        if other not in dependent:
            builder.first(other)
        other = after


def _crossing(op: Operation, taken: Sequence[Operation]) -> list[SSAValue]:
    """The results of an op and of those that go with it that others use."""
    inside = set(taken)
    block = op.parent

    def is_outside(user: Operation) -> bool:
        while user.parent is not block:
            parent = user.parent_op()
            assert parent is not None
            user = parent
        return user not in inside

    values = [value for one in (op, *taken) for value in one.results]
    return [value for value in values if any(is_outside(use.operation) for use in value.uses)]


def _branch(
    op: OnnxOp, name: str, taken: Sequence[Operation], crossing: Sequence[SSAValue]
) -> Region:
    """A branch with the ops that go with it; it gives the crossing values."""
    region = op.region(name).clone()
    end = region.block.last_op
    assert end is not None
    values: dict[SSAValue, SSAValue] = dict(zip(op.results, end.operands, strict=False))
    region.block.insert_ops_before([one.clone(values) for one in taken], end)
    end.operands = [values[value] for value in crossing]
    return region


def _if_true(builder: OnnxLegalizer, condition: SSAValue, value: SSAValue) -> SSAValue:
    """The value; a run-time error if the condition does not hold: there is one element only."""
    index = builder.cast(builder.add(NotOp(builder.reshape(condition, []))), i64)
    return builder.add(GatherOp(builder.unsqueeze(value, [0]), index, 0))


def _replaced(
    op: Operation, taken: Sequence[Operation], values: dict[SSAValue, SSAValue]
) -> Results:
    """Let values take the place of results of ops that go; those of `op` itself."""
    for value, new in values.items():
        if value.owner is not op:
            value.replace_all_uses_with(new)
    for one in reversed(taken):
        one.detach()
        one.erase()
    return [values.get(result) for result in op.results]
