"""
Assumptions of ops about dimensions that cannot be proved: the entry function checks them at run
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.linear import (
    BatchNormOp,
    ContractionOp,
    ConvOp,
    ConvTransposeOp,
    MatmulOp,
    WindowsOp,
)
from lowerdeck.dialects.core.reduce import ArgReduceOp, PoolOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceOp,
    TopKOp,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.dialects.sizes import Divisors, divisor_if_equal

Assumption: TypeAlias = tuple[Expr, Requirement, Expr]
"""left, predicate (eq, le, index or broadcast), right; index is le where elements are indexed"""


def assumptions(op: Operation) -> Iterator[Assumption]:
    """The assumptions of an op that do not hold for every value of the symbols."""
    for left, predicate, right in _all(op):
        if not _is_proved(left, predicate, right):
            yield left, predicate, right


def multiples(function: FuncOp) -> dict[Assumption, Operation]:
    """
    The assumptions that every run of a function meets and that say of a dimension of its inputs
    which number it is a multiple of, each with the first op that has it.
    """
    if function.is_declaration:
        return {}
    block = function.body.block
    names = {name for arg in block.args for dim in dims_of(arg) for name in dim.symbols}
    found: dict[Assumption, Operation] = {}
    if not names:  # nothing can be said of numbers
        return found
    for op in _unconditional(block):
        for left, predicate, right in assumptions(op):
            divisor = divisor_if_equal(left, right) if predicate == Requirement.EQ else None
            if divisor is not None and divisor[0] in names:
                found.setdefault((left, predicate, right), op)
    return found


def _unconditional(block: Block) -> Iterator[Operation]:
    """The ops that run whenever their function does."""
    for op in block.ops:
        yield from op.body.block.ops if isinstance(op, KernelOp) else (op,)


def divisors_of(function: FuncOp) -> Divisors:
    """What dimensions of the inputs of a function are multiples of in every run."""
    divisors = Divisors()
    for left, _, right in multiples(function):
        if (divisor := divisor_if_equal(left, right)) is not None:
            divisors.add(*divisor)
    return divisors


def _is_proved(left: Expr, predicate: Requirement, right: Expr) -> bool:
    if left == right or (predicate == Requirement.BROADCAST and left == 1):
        return True
    if predicate == Requirement.INDEX and minimum(left, right) == left:
        return True
    difference = (right - left).value
    return (
        predicate in (Requirement.LE, Requirement.INDEX)
        and difference is not None
        and difference >= 0
    )


def _all(op: Operation) -> Iterator[Assumption]:
    if isinstance(op, ELEMENTWISE):  # as most are
        whole = dims_of(op.results[0])
        for value in op.operands:
            if (dims := dims_of(value)) != whole:
                yield from _broadcast(dims, whole)
        return
    match op:
        case ReshapeOp():
            yield product(dims_of(op.input)), Requirement.EQ, product(op.dims.data)
        case SliceOp():
            yield from _slice(op)
        case PadOp():
            for amount in (*op.begin.data, *op.end.data):
                yield Expr.const(0), Requirement.LE, amount
            if op.mode.data != PadMode.CONSTANT:
                # A repeated dimension must not be empty.
                sides = zip(dims_of(op.input), op.begin.data, op.end.data, strict=True)
                for dim, begin, end in sides:
                    yield minimum(1, begin + end), Requirement.LE, dim
        case BroadcastOp():
            yield from _broadcast(dims_of(op.input), op.dims.data)
        case ConcatOp():
            yield from _concat(op)
        case MatmulOp():
            lhs, rhs = dims_of(op.lhs), dims_of(op.rhs)
            yield op.depth, Requirement.EQ, rhs[-2]
            for dims in (lhs, rhs):
                yield from _broadcast(dims[:-2], dims_of(op.result)[:-2])
            yield from _zero_points(op)
        case AttentionOp():
            yield from _attention(op)
        case ConvOp():
            yield dims_of(op.input)[1], Requirement.EQ, dims_of(op.weight)[1] * op.groups.data
            yield from _windows(op)
            yield from _zero_points(op)
        case ConvTransposeOp():
            yield dims_of(op.input)[1], Requirement.EQ, dims_of(op.weight)[0]
            yield from _windows(op)
        case PoolOp():
            yield from _windows(op)
        case WindowsOp():
            for size in op.counts:
                yield Expr.const(0), Requirement.LE, size
        case BatchNormOp():
            for parameter in op.operands[1:]:
                yield dims_of(parameter)[0], Requirement.EQ, dims_of(op.input)[op.axis.data]
        case TopKOp():
            yield op.k.data[0], Requirement.LE, dims_of(op.input)[op.axis.data]
        case ArgReduceOp():
            yield Expr.const(1), Requirement.LE, dims_of(op.input)[op.axis.data]
        case GatherOp():
            yield _indexed(dims_of(op.result), dims_of(op.input)[op.axis.data])
        case GatherElementsOp() | ScatterElementsOp():
            dims = dims_of(op.input)
            yield _indexed(dims_of(op.indices), dims[op.axis.data])
            for axis, (size, dim) in enumerate(zip(dims_of(op.indices), dims, strict=True)):
                if axis != op.axis.data:
                    yield size, Requirement.LE, dim
        case GatherNdOp():
            batch = op.batch_dims.data
            for axis in range(batch):
                yield dims_of(op.indices)[axis], Requirement.EQ, dims_of(op.input)[axis]
            depth = dims_of(op.indices)[-1].value or 0
            for dim in dims_of(op.input)[batch : batch + depth]:
                yield _indexed(dims_of(op.result), dim)
        case ScatterNdOp():
            depth = dims_of(op.indices)[-1].value or 0
            expected = (*dims_of(op.indices)[:-1], *dims_of(op.input)[depth:])
            for left, right in zip(dims_of(op.updates), expected, strict=True):
                yield left, Requirement.EQ, right
            for dim in dims_of(op.input)[:depth]:
                yield _indexed(dims_of(op.updates), dim)
        case _:
            return


def _indexed(dims: Sequence[Expr], dim: Expr) -> Assumption:
    """
    A dimension that is indexed by data is not empty.

    An out-of-range index reads the first element until the status is checked, so there must be one.
    """
    return minimum(1, *dims), Requirement.INDEX, dim


def _broadcast(dims: Sequence[Expr], result: Sequence[Expr]) -> Iterator[Assumption]:
    for dim, whole in zip(dims, result[len(result) - len(dims) :], strict=True):
        yield dim, Requirement.BROADCAST, whole


def _zero_points(op: ContractionOp) -> Iterator[Assumption]:
    for factor, zero in zip(op.factors, op.zero_points, strict=False):
        yield from _broadcast(dims_of(zero), dims_of(factor))


def _attention(op: AttentionOp) -> Iterator[Assumption]:
    """Query, key and value match, and masks match the scores."""
    query, key, value = (dims_of(operand) for operand in op.operands[:3])
    found = (*key[:-3], *key[-2:], *value[:-1])
    for left, right in zip(found, (*query[:-3], *query[-2:], *key[:-1]), strict=True):
        yield left, Requirement.EQ, right
    for mask in op.masks:
        yield from _broadcast(dims_of(mask), op.score_dims)


def _windows(op: Operation) -> Iterator[Assumption]:
    """The input is not smaller than a window."""
    for size in dims_of(op.results[0])[2:]:
        yield Expr.const(0), Requirement.LE, size


def _slice(op: SliceOp) -> Iterator[Assumption]:
    """The first and last selected element are within the input."""
    lists = (dims_of(op.input), op.starts.data, op.sizes.data, op.steps.data)
    for dim, start, size, step in zip(*lists, strict=True):
        last = start + (size - 1) * step
        # An empty slice selects nothing, wherever it starts.
        if size == 0 or (start == 0 and step == 1 and size == dim):
            continue
        some = minimum(size, 1)
        yield Expr.const(0), Requirement.LE, size
        yield Expr.const(0), Requirement.LE, minimum(start, last) * some
        yield maximum(start, last) * some, Requirement.LE, dim - some


def _concat(op: ConcatOp) -> Iterator[Assumption]:
    first: SSAValue = op.inputs[0]
    for value in op.inputs[1:]:
        for axis, (dim, expected) in enumerate(zip(dims_of(value), dims_of(first), strict=True)):
            if axis != op.axis.data:
                yield dim, Requirement.EQ, expected
