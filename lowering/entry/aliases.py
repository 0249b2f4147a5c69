"""The buffers that each value of an entry function may alias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp

Roots = Mapping[SSAValue, frozenset[SSAValue]]


def find_roots(entry: EntryOp) -> Roots:
    """
    The possible memory of each value of the entry function: arguments, weights and allocations.

    A carried value whose size changes is also a root of its own.
    """
    roots: dict[SSAValue, frozenset[SSAValue]] = {}
    for argument in entry.body.block.args:
        roots[argument] = frozenset([argument])
    _visit(entry.body.block, roots)
    return roots


def _visit(block: Block, roots: dict[SSAValue, frozenset[SSAValue]]) -> None:
    for op in block.ops:
        match op:
            case entry_ops.AllocOp() | entry_ops.WeightOp():
                roots[op.result] = frozenset([op.result])
            case entry_ops.ViewOp():
                roots[op.result] = roots[op.source]
            case entry_ops.LoopOp():
                _visit_loop(op, roots)
            case entry_ops.IfOp():
                _visit_if(op, roots)
            case entry_ops.SectionOp():
                _visit_section(op, roots)
            case _:
                for region in op.regions:
                    _visit(region.block, roots)


def _visit_loop(op: entry_ops.LoopOp, roots: dict[SSAValue, frozenset[SSAValue]]) -> None:
    arguments = op.body.block.args
    for number, result in enumerate(op.results[: len(op.slots) // 2]):
        pair = slice(2 * number, 2 * number + 2)
        both = _union(op.slots[pair], roots)
        for value in (result, *arguments[pair]):
            roots[value] = both
    for argument, value in zip(op.owned_args, op.owned, strict=True):
        roots[argument] = roots[value] | {argument}
    _visit(op.body.block, roots)
    yields = _yielded(op.body.block.last_op)
    for argument, result, value in zip(op.owned_args, op.owned_results, yields, strict=True):
        roots[result] = roots[argument] | roots[value]


def _visit_if(op: entry_ops.IfOp, roots: dict[SSAValue, frozenset[SSAValue]]) -> None:
    for region in op.regions:
        _visit(region.block, roots)
    yields = [_yielded(region.block.last_op) for region in op.regions]
    for result, *values in zip(op.results, *yields, strict=True):
        roots[result] = _union(values, roots)


def _visit_section(op: entry_ops.SectionOp, roots: dict[SSAValue, frozenset[SSAValue]]) -> None:
    for argument, value in zip(op.body.block.args, op.arguments, strict=True):
        roots[argument] = roots[value]
    _visit(op.body.block, roots)
    for result, value in zip(op.results, _yielded(op.body.block.last_op), strict=True):
        roots[result] = roots[value]


def outside_sections(value: SSAValue) -> SSAValue:
    """The value that an argument of a section stands for; any other value itself."""
    while isinstance(value, BlockArgument) and isinstance(
        section := value.block.parent_op(), entry_ops.SectionOp
    ):
        value = section.arguments[value.index]
    return value


def _yielded(last: Operation | None) -> tuple[SSAValue, ...]:
    return tuple(last.values) if isinstance(last, kernel.YieldOp) else ()


def _union(values: Iterable[SSAValue], roots: Roots) -> frozenset[SSAValue]:
    return frozenset(root for value in values for root in roots[value])
