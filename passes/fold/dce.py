"""`dce`: remove ops that no result depends on, including dead loop-carried values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, RecursiveMemoryEffect, is_side_effect_free

from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp, YieldOp, yielded
from lowerdeck.dialects.core.symbols import (
    MakesSymbols,
    region_symbols_made_by,
    symbols_made_by,
)
from lowerdeck.dialects.walking import all_ops, operands_of
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, apply_patterns
from lowerdeck.passes.machinery.recorder import Recorder
from lowerdeck.passes.machinery.symbols import bind_dims, symbols_of, symbols_used_by

Kept = TypeVar("Kept")


_FOLLOWED = (IfOp, LoopOp, KernelOp)
"""Ops whose results are followed one by one, and so is what their regions yield."""


class Liveness:
    """
    The ops and values that an effect or a result of the module depends on.

    A backward traversal from the roots: ops with effects, terminators of functions, and ops that
    must be kept. The results of `core.if` and `core.loop` are followed one by one, so that a
    carried value used only by itself is dead. A used symbol keeps the op that defines it alive.
    """

    def __init__(self, module: ModuleOp, recorder: Recorder) -> None:
        self._ops: set[Operation] = set()
        self._values: set[SSAValue] = set()
        self._symbols: set[str] = set()
        self._makers: dict[str, list[Operation | SSAValue]] = {}
        """Of symbols; without any, no symbol that is used keeps anything."""
        self._todo: list[Operation | SSAValue] = []
        ops = all_ops(module)
        # What an op of a class cannot do is not asked of each: few classes have many ops.
        classes = set(map(type, ops))
        making = {cls for cls in classes if issubclass(cls, (MakesSymbols, IfOp, LoopOp))}
        acting = set(filter(_may_be_root, classes))
        for op in ops:
            if type(op) in making:
                for symbol in (*symbols_made_by(op), *region_symbols_made_by(op)):
                    self._makers.setdefault(symbol, []).append(op)
                for symbol, value in _sized_by(op):
                    self._makers[symbol].append(value)
        for op in ops:
            if (type(op) in acting and not is_side_effect_free(op)) or recorder.skips(op):
                self._keep_op(op)
        self._propagate()

    def is_live(self, op: Operation | SSAValue) -> bool:
        """True if something depends on the op or value."""
        return op in self._ops if isinstance(op, Operation) else op in self._values

    def _keep_op(self, op: Operation) -> None:
        if op not in self._ops:
            self._ops.add(op)
            self._todo.append(op)

    def _keep_value(self, value: SSAValue) -> None:
        if value not in self._values:
            self._values.add(value)
            self._todo.append(value)

    def _keep_symbols(self, symbols: frozenset[str]) -> None:
        for symbol in symbols - self._symbols:
            self._symbols.add(symbol)
            for maker in self._makers.get(symbol, ()):
                if isinstance(maker, Operation):
                    self._keep_op(maker)
                else:
                    self._keep_value(maker)

    def _propagate(self) -> None:
        while self._todo:
            item = self._todo.pop()
            if isinstance(item, Operation):
                self._visit_op(item)
            else:
                self._visit_value(item)

    def _visit_op(self, op: Operation) -> None:
        """Mark the needs of a live op, whichever of its results are live."""
        if (parent := op.parent_op()) is not None:
            self._keep_op(parent)
        if not isinstance(parent if isinstance(op, YieldOp) else op, _FOLLOWED):
            for value in operands_of(op):
                self._keep_value(value)
            if self._makers:
                self._keep_symbols(symbols_used_by(op))
            if op.regions:
                for inner in _terminators(op):
                    self._keep_op(inner)
            return
        match op:
            case IfOp():
                self._keep_value(op.condition)
                self._keep_attributes(op)
            case LoopOp():
                for value in (op.trip_count, op.condition, op.yielded_condition):
                    if value is not None:
                        self._keep_value(value)
                self._keep_attributes(op)
            case KernelOp():
                self._keep_attributes(op)
            case _:
                pass  # what is yielded is followed one by one

    def _keep_attributes(self, op: Operation) -> None:
        if self._makers:
            for attribute in (*op.properties.values(), *op.attributes.values()):
                self._keep_symbols(symbols_of(attribute))

    def _visit_value(self, value: SSAValue) -> None:
        if self._makers:
            self._keep_symbols(symbols_of(value.type))
        if isinstance(value, OpResult):
            self._keep_op(value.op)
            if value.op.regions:
                self._visit_result(value.op, value.index)
        elif isinstance(value, BlockArgument):
            self._visit_argument(value)

    def _visit_result(self, op: Operation, index: int) -> None:
        match op:
            case IfOp():
                for region in op.regions:
                    self._keep_value(yielded(region)[index])
            case KernelOp():
                self._keep_value(yielded(op.body)[index])
            case LoopOp() if index < len(op.inits):
                self._keep_carried(op, index)
            case LoopOp():
                self._keep_value(op.yielded_scans[index - len(op.inits)])
            case _:
                pass

    def _keep_carried(self, op: LoopOp, index: int) -> None:
        self._keep_value(op.inits[index])
        self._keep_value(op.yielded_carried[index])
        self._keep_value(op.carried_args[index])

    def _visit_argument(self, value: BlockArgument) -> None:
        match value.block.parent_op():
            case LoopOp() as loop:
                self._keep_op(loop)
                if value.index > 0:
                    self._keep_carried(loop, value.index - 1)
            case KernelOp() as kernel:
                self._keep_op(kernel)
                self._keep_value(kernel.inputs[value.index])
            case Operation() as parent:
                self._keep_op(parent)
            case _:
                pass


def _sized_by(op: Operation) -> Iterator[tuple[str, SSAValue]]:
    """The symbols that control flow defines, with the values whose sizes they are."""
    if isinstance(op, IfOp):
        yield from _pairs(op.made_dims, op.results)
    elif isinstance(op, LoopOp):
        yield from _pairs(op.made_dims, op.carried_args)
        yield from _pairs(op.made_result_dims, op.results[: len(op.inits)])


def _pairs(
    made: Sequence[Mapping[int, str]], values: Sequence[SSAValue]
) -> Iterator[tuple[str, SSAValue]]:
    for axes, value in zip(made, values, strict=True):
        for symbol in axes.values():
            yield symbol, value


def _may_be_root(cls: type[Operation]) -> bool:
    """
    False for classes of ops that are never kept for their effects: what has effects inside keeps
    what has regions, and what it ends a terminator.
    """
    return not cls.has_trait(IsTerminator) and not cls.has_trait(RecursiveMemoryEffect)


def _terminators(op: Operation) -> list[Operation]:
    return [
        block.last_op
        for region in op.regions
        for block in region.blocks
        if block.last_op is not None
    ]


class DropDeadResults(Pattern[list[int]]):
    """Unused results of `core.if` and `core.loop` are neither computed nor carried."""

    name = "drop-dead-results"
    roots = (IfOp, LoopOp)

    def __init__(self, liveness: Liveness) -> None:
        self._liveness = liveness

    def match(self, op: IfOp | LoopOp) -> Match[list[int]] | None:
        if not self._liveness.is_live(op):
            return None
        dead = [result.index for result in op.results if self._is_dead(op, result)]
        if not dead:
            return None
        return Match((op,), f"results {dead} are not used", dead)

    def _is_dead(self, op: IfOp | LoopOp, result: OpResult[Attribute]) -> bool:
        if result.first_use is not None or self._liveness.is_live(result):
            return False
        if isinstance(op, LoopOp) and result.index < len(op.inits):
            return not self._liveness.is_live(op.carried_args[result.index])
        return True

    def rewrite(self, match: Match[list[int]], rewriter: Rewriter) -> None:
        dead = set(match.data)
        if isinstance(match.root, LoopOp):
            _drop_from_loop(match.root, dead, rewriter)
        elif isinstance(match.root, IfOp):
            _drop_from_if(match.root, dead, rewriter)


def _keep(values: Sequence[Kept], dead: set[int], offset: int = 0) -> list[Kept]:
    return [value for index, value in enumerate(values) if index - offset not in dead]


def _drop_from_if(op: IfOp, dead: set[int], rewriter: Rewriter) -> None:
    for region in op.regions:
        _cut_yield(region.block, dead, 0, rewriter)
    regions = [op.detach_region(region) for region in tuple(op.regions)]
    new = IfOp(
        op.condition,
        *regions,
        result_symbols=_names(_keep(op.made_dims, dead)),
        result_types=[result.type for result in _keep(op.results, dead)],
    )
    _take_place(op, new, dead, rewriter)


def _drop_from_loop(op: LoopOp, dead: set[int], rewriter: Rewriter) -> None:
    block = op.body.block
    _cut_yield(block, dead, int(op.condition is not None), rewriter)
    carried = [index for index in sorted(dead, reverse=True) if index < len(op.inits)]
    made, made_results = _keep(op.made_dims, dead), _keep(op.made_result_dims, dead)
    for index in carried:
        arg = block.args[index + 1]
        rewriter.replace_value(arg, _stand_in(op, index, rewriter))
        block.erase_arg(arg)
    inits = _keep(op.inits, dead)
    new = LoopOp(
        op.trip_count,
        op.condition,
        inits,
        op.detach_region(op.body),
        iteration=op.iteration.data if op.iteration else None,
        count=op.count.data if op.count else None,
        carried_symbols=_names(made),
        result_symbols=_names(made_results),
    )
    _take_place(op, new, dead, rewriter)


def _stand_in(op: LoopOp, index: int, rewriter: Rewriter) -> SSAValue:
    """All remaining users of the argument are dead; any value of its type will do."""
    init, names = op.inits[index], set(op.made_dims[index].values())
    rewriter.sweep()
    if not any(symbols_used_by(inner) & names for inner in all_ops(op.body)):
        return init
    start = op.body.block.first_op
    assert start is not None
    return bind_dims(rewriter, start, init, op.carried_args[index], op.made_dims[index])


def _names(made: Sequence[Mapping[int, str]]) -> list[str]:
    return [name for axes in made for name in axes.values()]


def _cut_yield(block: Block, dead: set[int], offset: int, rewriter: Rewriter) -> None:
    if (last := block.last_op) is not None:
        rewriter.set_operands(last, _keep(last.operands, dead, offset))


def _take_place(op: IfOp | LoopOp, new: IfOp | LoopOp, dead: set[int], rewriter: Rewriter) -> None:
    new.location = op.location
    new.attributes.update(op.attributes)
    rewriter.insert_before(op, new)
    kept = [result for result in tuple(op.results) if result.index not in dead]
    for old, result in zip(kept, tuple(new.results), strict=True):
        # Types of scan outputs may be more precise than their trip count implies.
        result = rewriter.set_type(result, old.type) if result.type != old.type else result
        rewriter.replace_value(old, result)
    rewriter.erase(op)


class EraseDeadOp(Pattern):
    """An op that no effect and no result of the module depends on is erased."""

    name = "erase-dead-op"

    def __init__(self, liveness: Liveness) -> None:
        self._liveness = liveness

    def match(self, op: Operation) -> Match | None:
        if self._liveness.is_live(op) or op.has_trait(IsTerminator):
            return None
        if any(result.first_use is not None for result in op.results):
            return None  # by an op that was dead, but had to stay
        return Match((op,), "nothing depends on it")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        rewriter.erase(match.root)


class DcePass(PatternPass):
    """
    Dead code: ops that no output and no effect depends on.

    - y = f(x) -> nothing [f without effects; y is not used]
    - core.if: a result that is not used is not yielded
    - core.loop: a carried value that is used only to compute itself is not carried, and a scan
      output that is not used is not collected
    - core.bind_symbols is dead if no live op uses its symbols in a type or property; a value whose
      size is a symbol that control flow defines lives as long as the symbol is used
    """

    name = "dce"
    works_on_all_dialects = True

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return self._patterns(module, Recorder())

    def _patterns(self, module: ModuleOp, recorder: Recorder) -> Sequence[Pattern[Any]]:
        liveness = Liveness(module, recorder)
        return [EraseDeadOp(liveness), DropDeadResults(liveness)]

    def run(self, module: ModuleOp, recorder: Recorder) -> None:
        # Backward, so that users are erased before their operands.
        apply_patterns(
            module,
            self._patterns(module, recorder),
            recorder,
            pass_name=self.name,
            recursive=False,
            reverse=True,
        )
