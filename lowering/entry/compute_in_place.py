"""`compute-in-place`: kernels write their result over an operand that is dead after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.aliases import find_roots
from lowerdeck.lowering.entry.lowered import lowered_functions
from lowerdeck.lowering.entry.overwriting import Overwriting
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.recorder import Recorder

OVER = "_over_"
"""Between the name of a function and the number of the operand that its copy overwrites."""

LARGEST_COPY = 300
"""Limit in ops for copying a function that is also called with operands that stay live."""


@dataclass
class _Usage:
    """Where an allocation is used in its block, by op number."""

    block: Block
    first: int
    last: int


class _Memory:
    """The planned buffers of an entry function, and the buffers that its values may alias."""

    def __init__(self, entry: EntryOp) -> None:
        self._roots = find_roots(entry)
        self._usage: dict[SSAValue, _Usage] = {}
        self._merged: dict[SSAValue, SSAValue] = {}
        self._entry = entry.body.block
        self.states: dict[SSAValue, SSAValue] = {
            after: before for before, after in entry.states_args if before is not None
        }
        """What is remembered: the buffer after the run, and the one before it."""
        self._places = {*self.states, *self.states.values()}
        self.number = {op: number for number, op in enumerate(all_ops(entry))}
        for op in all_ops(entry):
            if not isinstance(op, entry_ops.ViewOp):
                for root in {root for value in op.operands for root in self._roots[value]}:
                    self._use(root, op)

    def _use(self, root: SSAValue, op: Operation) -> None:
        if root in self._places:
            block = self._entry
        elif isinstance(root.owner, entry_ops.AllocOp) and not root.owner.dynamic.value.data:
            block = root.owner.parent
        else:
            return
        place = None if block is None else block.find_ancestor_op_in_block(op)
        assert block is not None
        assert place is not None
        number = self.number[place]
        usage = self._usage.setdefault(root, _Usage(block, number, number))
        usage.last = number

    def roots(self, value: SSAValue) -> set[SSAValue]:
        """The possible memory of a value."""
        return {self._merged.get(root, root) for root in self._roots[value]}

    def whole(self, value: SSAValue) -> _Usage | None:
        """The usage of the buffer that belongs to a value alone; None if there is none."""
        (root, *others) = self.roots(value)
        if others or ref_type(root).bytes != ref_type(value).bytes:
            return None
        return self._usage.get(root)

    def before(self, value: SSAValue) -> SSAValue | None:
        """The buffer of what a state was, if the value is what it becomes."""
        (root, *others) = self.roots(value)
        return None if others else self.states.get(root)

    def keeps(self, value: SSAValue) -> bool:
        """True if the buffer of a value may be that of a state."""
        return not self._places.isdisjoint(self.roots(value))

    def merge(self, result: SSAValue, operand: SSAValue) -> None:
        """The buffer `result` is removed: its value lies in that of `operand`."""
        if self.before(result) is not None:
            return
        (root,) = self.roots(operand)
        self._usage[root].last = self._usage[result].last
        self._merged[result] = root


def operand_to_overwrite(
    call: entry_ops.CallOp, function: kernel.FuncOp, memory: _Memory, overwriting: Overwriting
) -> int | None:
    """
    The position of a call operand that the only result may overwrite: a whole planned buffer of
    the result's type, whose last use is this call, which is also the first use of the result's. A
    state may overwrite what it was, and nothing else.
    """
    arguments, number = list(call.arguments), memory.number[call]
    result = arguments[-1]
    if function.outputs.data != 1:
        return None
    own, before = memory.whole(result), memory.before(result)
    if before is None and not isinstance(result.owner, entry_ops.AllocOp):
        return None
    if own is None or own.block is not call.parent or own.first != number:
        return None
    # Views do not access the memory, but they need its name.
    if before is None and any(memory.number[use.operation] < number for use in result.uses):
        return None
    for position, operand in enumerate(arguments[:-1]):
        usage = memory.whole(operand) if operand.type == result.type else None
        if usage is None or usage.block is not call.parent or usage.last != number:
            continue
        if before is None and memory.keeps(operand):
            continue
        if before is not None and memory.roots(operand) != {before}:
            continue
        roots = [memory.roots(argument) for argument in arguments]
        is_alone = all(roots[position].isdisjoint(r) for k, r in enumerate(roots) if k != position)
        if is_alone and overwriting.is_safe(function, position):
            return position
    return None


def write_over(function: kernel.FuncOp, operand: int) -> None:
    """Merge an operand and the only result of a function into one buffer."""
    source, target = (function.body.block.args[position] for position in (operand, -1))
    source.replace_all_uses_with(target)
    function.body.block.erase_arg(source)


class ComputeInPlacePass(ModulePass):
    """
    Let a kernel write its result over an operand of the same type that is dead after it.

    `call f(a, b, r)`, the last use of `a` and the first one of `r` -> `call f(b, a)`, and `a` in
    place of `r` from there on, if the function loads no element after it has been stored to: by
    index intervals, the two never meet, or they meet only within one iteration of their common
    loops, with the load first. Inputs and constants of the model keep their values, and outputs
    their locations. What the model remembers is written over what it was.

    A function that other calls need unchanged is copied; a large one stays unchanged for all
    calls. Runs before `parallelize`, which has to see that the buffer is written.
    """

    name = "compute-in-place"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        functions, recorder = lowered_functions(op, self.name), recorder_of(ctx)
        for name, found in _calls_by_kind(entry, functions).items():
            kinds = _allowed(found, recorder)
            for operand, callers in kinds.items():
                for call in callers if operand is not None else ():
                    _redirect(call, operand or 0)
            _change(functions[name], kinds, functions)


Kinds = dict[int | None, list[entry_ops.CallOp]]
"""The calls of a function by the operand that each overwrites."""


def _calls_by_kind(entry: EntryOp, functions: Mapping[str, kernel.FuncOp]) -> dict[str, Kinds]:
    """The operands that calls overwrite; none where that would copy a large function."""
    overwriting, whole = Overwriting(), set[str]()
    while True:
        found: dict[str, Kinds] = {}
        memory = _Memory(entry)
        for call in all_ops(entry):
            if not isinstance(call, entry_ops.CallOp):
                continue
            name = call.callee.root_reference.data
            operand = None
            if name not in whole:
                operand = operand_to_overwrite(call, functions[name], memory, overwriting)
            if operand is not None:
                memory.merge(call.arguments[-1], call.arguments[operand])
            found.setdefault(name, {}).setdefault(operand, []).append(call)
        large = {
            name
            for name, kinds in found.items()
            if len(kinds) > 1 and len(all_ops(functions[name])) > LARGEST_COPY
        }
        if not large:
            return found
        whole |= large


def _allowed(kinds: Kinds, recorder: Recorder) -> Kinds:
    """The calls that may overwrite an operand by the user's options; others do not."""
    allowed: Kinds = {}
    for operand, calls in kinds.items():
        for call in calls:
            reason = f"the result lies over operand {operand}"
            given = operand
            if operand is not None and not recorder.decide(
                ComputeInPlacePass.name, "write-over-operand", [call], reason
            ):
                given = None
            allowed.setdefault(given, []).append(call)
    return allowed


def _redirect(call: entry_ops.CallOp, operand: int) -> None:
    """The result of a call becomes the buffer of an operand, which is no longer an argument."""
    arguments = list(call.arguments)
    result, kept = arguments[-1], arguments.pop(operand)
    call.operands = arguments
    if not isinstance(result.owner, entry_ops.AllocOp):
        return  # a state, which is in its place
    result.replace_all_uses_with(kept)
    assert isinstance(result.owner, Operation)
    result.owner.detach()
    result.owner.erase()


def _change(function: kernel.FuncOp, kinds: Kinds, functions: dict[str, kernel.FuncOp]) -> None:
    """Change a function to match its calls; of several kinds, all but one get their own copy."""
    module = function.parent
    assert module is not None
    own = None if None in kinds else next(iter(kinds))
    for operand, callers in kinds.items():
        if operand is None or operand == own:
            continue
        name = f"{function.sym_name.data}{OVER}{operand}"
        while name in functions:
            name += "_"
        copy = function.clone()
        copy.location = function.location
        copy.properties["sym_name"] = StringAttr(name)
        functions[name] = copy
        module.insert_op_after(copy, function)
        write_over(copy, operand)
        for call in callers:
            call.properties["callee"] = SymbolRefAttr(name)
    if own is not None:
        write_over(function, own)
