"""`split-entry`: an entry function that is too long becomes several functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, OpenOutputOp, find_entry
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.core.symbols import region_symbols_made_by, symbols_made_by
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.statements import CALL_OF_SECTION, statements, statements_of_block
from lowerdeck.lowering.targets.base import MOST_STATEMENTS

_NONE: frozenset[str] = frozenset()


def used_symbols(op: Operation) -> frozenset[str]:
    """The symbols that an op and its nested ops need from outside, and those it defines itself."""
    properties = op.properties.values()
    if isinstance(op, entry_ops.CallOp | entry_ops.MarkOp):
        # The other properties only describe the op to people.
        properties = [op.symbols] if isinstance(op, entry_ops.CallOp) else []
    attributes = [*properties, *op.operand_types, *op.result_types]
    used = _symbols_of(attributes)
    if isinstance(op, entry_ops.SectionOp):
        return used.union(names_in(op.symbols))
    for region in op.regions:
        inside = _used_in(region.block.ops) | _symbols_of(region.block.arg_types)
        used |= inside.difference(region_symbols_made_by(op))
    return used


def _symbols_of(attributes: Iterable[Attribute]) -> frozenset[str]:
    """The symbols in buffer types and in expressions; most of these are numbers."""
    used = _NONE
    for attribute in attributes:
        match attribute:
            case RefType():
                exprs = (*attribute.dims.data, *attribute.strides.data)
            case DimsAttr():
                exprs = attribute.data
            case _:
                continue
        for expr in exprs:
            if expr.value is None:
                used |= expr.symbols
    return used


def _used_in(ops: Iterable[Operation]) -> frozenset[str]:
    """The symbols that consecutive ops use and do not define."""
    used, made = set[str](), set[str]()
    for op in ops:
        used |= used_symbols(op)
        made.update(symbols_made_by(op))
    return frozenset(used - made)


class BlockSplitter:
    """Turns runs of one block's ops into sections."""

    def __init__(self, block: Block, limit: int) -> None:
        self._block = block
        self._limit = limit
        self._ops = list(block.ops)
        self._place = {op: number for number, op in enumerate(self._ops)}
        self._last_need: dict[str, int] = {}
        for number, op in enumerate(self._ops):
            self._last_need.update(dict.fromkeys(used_symbols(op), number))
        self._cost = [statements(op) for op in self._ops]

    def split(self) -> bool:
        """Make sections of all ops that can be in one; False if there are none to make."""
        runs = [part for run in self._runs() for part in self._parts(run)]
        useful = [run for run in runs if self._saves(run)]
        for run in useful:
            self._outline(run)
        return bool(useful)

    def _runs(self) -> Iterator[range]:
        """Consecutive ops that may move, short enough to leave room for the results they return."""
        start, size, room = 0, 0, self._limit * 3 // 4
        for number, op in enumerate(self._ops):
            stays = op is self._block.last_op or _opens_output(op)
            if stays or size + self._cost[number] > room:
                yield range(start, number)
                start, size = number, 0
            if stays:
                start = number + 1
            elif not isinstance(op, entry_ops.WeightOp):
                size += self._cost[number]
                size += sum(isinstance(value.owner, entry_ops.WeightOp) for value in op.operands)
        yield range(start, len(self._ops))

    def _parts(self, run: range) -> Iterator[range]:
        """The run, or parts of it if it is too long with its arguments and results."""
        if len(run) <= 1 or self._length(run) <= self._limit:
            yield run
            return
        middle = len(run) // 2
        yield from self._parts(run[:middle])
        yield from self._parts(run[middle:])

    def _members(self, run: range) -> list[Operation]:
        """The ops of a run except constants, which are copied into every section."""
        ops = self._ops[run.start : run.stop]
        return [op for op in ops if not isinstance(op, entry_ops.WeightOp)]

    def _length(self, run: range) -> int:
        """Statements of the section."""
        members = self._members(run)
        given = len(self._results(members, run)) + len(self._result_symbols(members, run))
        constants = {
            value for value in _needed(members) if isinstance(value.owner, entry_ops.WeightOp)
        }
        return 1 + sum(self._cost[self._place[op]] for op in members) + given + len(constants)

    def _saves(self, run: range) -> bool:
        """True if the section shortens the block."""
        members = self._members(run)
        given = len(self._results(members, run)) + len(self._result_symbols(members, run))
        return sum(self._cost[self._place[op]] for op in members) > CALL_OF_SECTION + given

    def _results(self, members: Sequence[Operation], run: range) -> list[SSAValue]:
        """The values that a run defines and other ops use."""
        return [
            result
            for op in members
            for result in op.results
            if any(self._place_of(use.operation) not in run for use in result.uses)
        ]

    def _place_of(self, op: Operation) -> int:
        """
        The number of the op of the block that an op is or is nested in; -1 for one outside of the
        block, which constants before it may have among their users.
        """
        while op not in self._place:
            if (parent := op.parent_op()) is None:
                return -1
            op = parent
        return self._place[op]

    def _result_symbols(self, members: Sequence[Operation], run: range) -> list[str]:
        made = dict.fromkeys(name for op in members for name in symbols_made_by(op))
        return [name for name in made if self._last_need.get(name, -1) >= run.stop]

    def _outline(self, run: range) -> None:
        """Replace a run by a section."""
        members = self._members(run)
        results, symbols = self._results(members, run), self._result_symbols(members, run)
        needed = list(dict.fromkeys(_needed(members)))
        constants = [value for value in needed if isinstance(value.owner, entry_ops.WeightOp)]
        arguments = [value for value in needed if not isinstance(value.owner, entry_ops.WeightOp)]
        body = Block(arg_types=[value.type for value in arguments])
        section = entry_ops.SectionOp(
            arguments,
            Region(body),
            result_types=[ref_type(result) for result in results],
            symbols=sorted(_used_in(members)),
            result_symbols=symbols,
        )
        section.location = members[0].location
        self._block.insert_op_before(section, members[0])
        inner: dict[SSAValue, SSAValue] = dict(zip(arguments, body.args, strict=True))
        for value in constants:
            assert isinstance(value.owner, entry_ops.WeightOp)
            if all(self._place_of(use.operation) in run for use in value.uses):
                value.owner.detach()
                body.add_op(value.owner)
                continue
            body.add_op(copy := value.owner.clone())
            inner[value] = copy.result
        for op in members:
            op.detach()
            body.add_op(op)
        body.add_op(kernel.YieldOp(results))
        _rename(body, inner)
        for result, new in zip(results, section.results, strict=True):
            new.name_hint = result.name_hint
            result.replace_uses_with_if(new, lambda use: not section.is_ancestor(use.operation))


def _opens_output(op: Operation) -> bool:
    """True for an op that fills an output of data-dependent size, or checks its capacity."""
    if isinstance(op, OpenOutputOp):
        return True
    copy = op.body.block.first_op if isinstance(op, entry_ops.OnceOp) else op
    return (
        isinstance(copy, entry_ops.CopyOp)
        and isinstance(copy.target, BlockArgument)
        and isinstance(copy.target.block.parent_op(), EntryOp)
        and any(dim.value is None for dim in ref_type(copy.target).dims.data)
    )


def _needed(members: Sequence[Operation]) -> Iterator[SSAValue]:
    """The values from outside that ops use."""
    inside = set[SSAValue]()
    for op in (inner for member in members for inner in all_ops(member)):
        inside.update(op.results)
        for region in op.regions:
            inside.update(region.block.args)
    for op in (inner for member in members for inner in _same_function(member)):
        yield from (value for value in op.operands if value not in inside)


def _same_function(op: Operation) -> Iterator[Operation]:
    """An op and its nested ops, except those of sections, which are isolated from above."""
    yield op
    if not isinstance(op, entry_ops.SectionOp):
        for region in op.regions:
            for inner in region.block.ops:
                yield from _same_function(inner)


def _rename(block: Block, values: Mapping[SSAValue, SSAValue]) -> None:
    for op in (inner for member in block.ops for inner in _same_function(member)):
        if any(value in values for value in op.operands):
            op.operands = [values.get(value, value) for value in op.operands]


def fit(block: Block, room: int, limit: int) -> None:
    """
    Make sections, here and in the blocks of control flow, until the block has at most `room`
    statements and each section at most `limit`, if that is possible.
    """
    for op in list(block.ops):
        size = statements(op)
        if op.regions and not isinstance(op, entry_ops.SectionOp) and size > limit:
            blocks = [region.block for region in op.regions]
            around = size - sum(map(statements_of_block, blocks))
            for inner in blocks:
                fit(inner, max(limit - around, 0) // len(blocks), limit)
    while statements_of_block(block) > room and BlockSplitter(block, limit).split():
        _erase_unused_weights(block)


def _erase_unused_weights(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, entry_ops.WeightOp) and not op.result.uses:
            op.detach()
            op.erase()


def _around_body(entry: EntryOp) -> int:
    """Statements of the entry function that belong to its arguments, and to none of its ops."""
    types = [ref_type(argument) for argument in entry.body.block.args]
    symbols = {name for type_ in types for dim in type_.dims.data for name in dim.symbols}
    open_dims = sum(4 + len(type_.dims.data) for type_ in types if type_.elements.value is None)
    return 10 + len(types) + 2 * len(symbols) + open_dims


@dataclass(frozen=True)
class SplitEntryPass(ModulePass):
    """
    Split a long entry function into several, so that none has more than `limit` C statements.

    Consecutive ops become a `buffer.section`, first in the blocks of control flow that is too long
    by itself. A section takes the values it uses as arguments, and returns those that others use;
    it has its own constants. An entry function that is short enough stays unchanged.

    Three things cannot be split: a single op with that many operands, the pointers of as many
    inputs and outputs, and copies to outputs whose sizes depend on data.
    """

    name = "split-entry"

    limit: int = MOST_STATEMENTS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        room = max(self.limit - _around_body(entry), 0)
        if statements_of_block(entry.body.block) > room:
            fit(entry.body.block, room, self.limit)
