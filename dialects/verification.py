"""
Whether a module is well-formed: each op verifies, and each value is made before it is used.

xDSL's own verifiers look at one op at a time, so the order of ops is checked here, in one sweep.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, ErasedSSAValue, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.defaults import unfit_defaults
from lowerdeck.dialects.graph_regions import HasGraphRegion
from lowerdeck.dialects.walking import operands_of


def problems_of(module: Operation) -> list[tuple[Operation, str]]:
    """The ops in `module` that are not well-formed, each with the reason; none if all is well."""
    try:
        module.verify()
    except VerifyException as error:
        # What is said of a whole region is said of no op in it.
        return list(_unverified(module)) or [(module, _reason(error))]
    except ValueError:
        if uses := list(_erased_values(module)):
            return uses
        raise
    return [*_unfit_defaults(module), *used_before_made(module)]


def used_before_made(root: Operation) -> Iterator[tuple[Operation, str]]:
    """
    The ops inside `root` that use a value which is not made before them, with the value.

    In a region of several blocks, what dominates a block is before it; ops of graph regions are in
    no order. The work is linear in the number of ops.
    """
    return _Sweep().visit(root)


def _erased_values(module: Operation) -> Iterator[tuple[Operation, str]]:
    for op in module.walk():
        for index, value in enumerate(operands_of(op)):
            if isinstance(value, ErasedSSAValue):
                yield op, f"operand {index} is a value that was erased"


def _unverified(module: Operation) -> Iterator[tuple[Operation, str]]:
    """Every op in `module` that does not verify by itself, with the reason."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            yield op, _reason(error)


def _unfit_defaults(module: Operation) -> Iterator[tuple[Operation, str]]:
    """The functions at the top with inputs that cannot have their defaults."""
    for region in module.regions:
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, FuncOp):
                    yield from ((op, problem) for problem in unfit_defaults(op))


def _reason(error: VerifyException) -> str:
    return str(error).removeprefix("Operation does not verify: ")


class _Sweep:
    """The values that are made so far, while a module is walked in the order of execution."""

    def __init__(self) -> None:
        self._made: set[SSAValue] = set()

    def visit(self, owner: Operation) -> Iterator[tuple[Operation, str]]:
        if owner.has_trait(HasGraphRegion):
            return
        made = self._made
        for region in owner.regions:
            if owner.has_trait(IsolatedFromAbove):
                self._made = set()
            yield from self._visit_region(region)
            self._made = made

    def _visit_region(self, region: Region) -> Iterator[tuple[Operation, str]]:
        """Its blocks, each after those that dominate it; what is not reached is not judged."""
        entry = region.blocks.first
        if entry is None:
            return
        below = _dominated_blocks(entry)
        waiting: list[Block | list[SSAValue]] = [entry]
        while waiting:
            block = waiting.pop()
            if isinstance(block, list):  # the end of a block, and of all that it dominates
                self._made.difference_update(block)
                continue
            mine: list[SSAValue] = [*block.args]
            self._made.update(mine)
            for op in block.ops:
                # Most ops are in order, and have nothing inside.
                if op.regions or not self._made.issuperset(operands_of(op)):
                    yield from self._visit_op(op)
                self._made.update(op.results)
                mine.extend(op.results)
            waiting.append(mine)
            waiting.extend(below.get(block, ()))

    def _visit_op(self, op: Operation) -> Iterator[tuple[Operation, str]]:
        for index, value in enumerate(operands_of(op)):
            if value not in self._made:
                yield op, f"operand {index} is used before it is defined: {_described(value)}"
        if op.regions:
            yield from self.visit(op)


def _described(value: SSAValue) -> str:
    owner = value.owner
    what = "an argument of a block" if isinstance(owner, Block) else f"a result of '{owner.name}'"
    return what if value.name_hint is None else f"%{value.name_hint}, {what}"


def _dominated_blocks(entry: Block) -> dict[Block, list[Block]]:
    """For each block those that it dominates immediately, by Cooper, Harvey and Kennedy."""
    if entry.next_block is None:
        return {}
    order = _in_postorder(entry)
    number = {block: index for index, block in enumerate(order)}
    before: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            before[successor].append(block)
    dominator: dict[Block, Block] = {entry: entry}

    def common(a: Block, b: Block) -> Block:
        while a is not b:
            if number[a] < number[b]:
                a = dominator[a]
            else:
                b = dominator[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            first, *others = (one for one in before[block] if one in dominator)
            for other in others:
                first = common(first, other)
            changed = changed or dominator.get(block) is not first
            dominator[block] = first
    below: dict[Block, list[Block]] = {}
    for block in order[:-1]:
        below.setdefault(dominator[block], []).append(block)
    return below


def _successors(block: Block) -> tuple[Block, ...]:
    return () if block.last_op is None else tuple(block.last_op.successors)


def _in_postorder(entry: Block) -> list[Block]:
    """The blocks that can be reached, each after what can be reached from it but by cycles."""
    order: list[Block] = []
    seen, stack = {entry}, [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next((one for one in rest if one not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    return order
