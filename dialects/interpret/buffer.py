"""
The meaning of the `buffer` dialect: kernels become Python functions, called by the entry function.
A kernel without loops is run on the tensors that lie in its buffers, op by op.

Scalars are what the printed C computes with: integers of a width wrap around, f32 rounds after each
op, half precision exists in memory only. Memory is numpy arrays without bounds to slip through: an
access outside of a dimension is an error. Once memory is planned, the workspace is one array of
bytes at whose offsets the buffers lie, and the weights one for the constants. New buffers hold a
pattern that no computation gives by accident, so that a wrong plan, or memory that was never
written, shows in the results.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatchmethod

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, OpenOutputOp, find_entry
from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.control_flow import names_in, yielded
from lowerdeck.dialects.core.types import numpy_dtype
from lowerdeck.dialects.interpret.buffer_kernels import Kernel, compile_kernel, tensor_kernel
from lowerdeck.dialects.interpret.buffer_scalars import POISON, Array, fresh, memory_dtype, wrap
from lowerdeck.dialects.interpret.errors import (
    InterpretError,
    StepLimitError,
    describe,
    no_values_for,
)
from lowerdeck.dialects.walking import all_ops

SIMULATED_PARTS = 3
"""Into how many parts loops are cut that threads share; they run one after the other."""


def run_entry(
    module: ModuleOp, inputs: Mapping[str, Array], *, max_steps: int | None = None
) -> dict[str, Array]:
    """
    Run the entry function for inputs by tensor name; its outputs by tensor name.

    InterpretError if an input is missing or does not fit, if dimensions or an index from data do
    not fit, or if memory is accessed outside of a buffer; StepLimitError after `max_steps` ops of
    the entry function and iterations of loops.
    """
    entry = find_entry(module)
    if entry is None:
        raise InterpretError("the module has no entry function; run bufferize")
    machine = Machine(module, max_steps)
    with np.errstate(all="ignore"):
        return machine.run(entry, inputs)


class Machine:
    """The memory and the kernels of one run."""

    def __init__(self, module: ModuleOp, max_steps: int | None) -> None:
        self._callees = {
            op.sym_name.data: op
            for op in module.body.block.ops
            if isinstance(op, kernel.FuncOp | kernel.BufferKernelOp)
        }
        self._compiled: dict[str, Kernel] = {}
        self._steps_left = python_math.inf if max_steps is None else max_steps
        self._memory: dict[SSAValue, Array] = {}
        self._outputs: set[SSAValue] = set()
        self._workspace = np.empty(0, np.uint8)
        self._weights = np.empty(0, np.uint8)

    def run(self, entry: EntryOp, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name."""
        unused = names_in(entry.unused)
        given = {name: array for name, array in inputs.items() if name not in unused}
        for name, default in zip(names_in(entry.inputs), entry.input_defaults, strict=True):
            if default is not None:
                given.setdefault(name, default.array())
        symbols = self._bind_inputs(entry.input_args, names_in(entry.inputs), given)
        self._outputs = set(entry.output_args)
        for before, after in entry.states_args:
            if before is not None:
                self._memory[after] = self._memory[before].copy()
        if entry.workspace is not None:
            self._workspace = fresh(max(entry.workspace.data[0].evaluate(symbols), 0))
        self._lay_out_weights(entry)
        self._run_block(entry.body.block, symbols)
        results: dict[str, Array] = {}
        for name, argument in zip(names_in(entry.outputs), entry.output_args, strict=True):
            type_ = ref_type(argument)
            shape = self._sizes(type_, symbols, entry)
            flat = self._buffer(argument, symbols, entry)
            results[name] = flat.view(numpy_dtype(type_.element)).reshape(shape).copy()
        return results

    def spend(self, steps: int) -> None:
        """Count steps; StepLimitError if there are too many."""
        self._steps_left -= max(steps, 0)
        if self._steps_left < 0:
            raise StepLimitError("the step limit is used up")

    def _bind_inputs(
        self, arguments: Sequence[SSAValue], names: Sequence[str], inputs: Mapping[str, Array]
    ) -> dict[str, int]:
        if missing := [name for name in names if name not in inputs]:
            raise InterpretError(no_values_for(missing, inputs))
        if unknown := [name for name in inputs if name not in names]:
            raise InterpretError(f"{unknown} are not inputs; the inputs are {names}")
        symbols: dict[str, int] = {}
        for name, argument in zip(names, arguments, strict=True):
            value, type_ = inputs[name], ref_type(argument)
            if value.dtype != numpy_dtype(type_.element):
                expected = numpy_dtype(type_.element)
                raise InterpretError(f"input '{name}' is {value.dtype}, expected {expected}")
            if value.ndim != len(type_.dims.data):
                raise InterpretError(
                    f"input '{name}' has the shape {list(value.shape)}, expected {type_}"
                )
            for dim, size in zip(type_.dims.data, value.shape, strict=True):
                # A symbol that stands alone is bound by its first occurrence.
                if str(dim) in dim.symbols:
                    symbols.setdefault(str(dim), size)
            flat = np.ascontiguousarray(value).reshape(-1).copy()
            self._memory[argument] = flat.view(memory_dtype(type_.element))
        for name, argument in zip(names, arguments, strict=True):
            expected = [dim.evaluate(symbols) for dim in ref_type(argument).dims.data]
            if list(inputs[name].shape) != expected:
                raise InterpretError(
                    f"input '{name}' has the shape {list(inputs[name].shape)}, "
                    f"expected {ref_type(argument)} = {expected}"
                )
        return symbols

    # Memory

    def _sizes(self, type_: RefType, symbols: Mapping[str, int], op: Operation) -> list[int]:
        """The dimensions of a buffer in numbers."""
        try:
            sizes = [dim.evaluate(symbols) for dim in type_.dims.data]
        except KeyError as error:
            raise InterpretError(f"{describe(op)}: the symbol {error} has no value") from error
        if min(sizes, default=0) < 0:
            raise InterpretError(f"{describe(op)}: the buffer {type_} = {sizes} has negative size")
        return sizes

    def _buffer(self, value: SSAValue, symbols: Mapping[str, int], op: Operation) -> Array:
        """The memory of a buffer; that of an output is made when it is first used."""
        if value not in self._memory and value in self._outputs:
            type_ = ref_type(value)
            count = python_math.prod(self._sizes(type_, symbols, op))
            dtype = memory_dtype(type_.element)
            self._memory[value] = fresh(count * dtype.itemsize).view(dtype)
        if value not in self._memory:
            raise InterpretError(f"{describe(op)}: a buffer is used before it is made")
        return self._memory[value]

    def _allocate(self, op: entry_ops.AllocOp, symbols: Mapping[str, int]) -> Array:
        type_ = ref_type(op.result)
        dtype = memory_dtype(type_.element)
        size = python_math.prod(self._sizes(type_, symbols, op)) * dtype.itemsize
        if op.offset is None or op.dynamic.value.data:
            return fresh(size).view(dtype)
        start = op.offset.data[0].evaluate(symbols)
        if not 0 <= start <= start + size <= self._workspace.size:
            raise InterpretError(
                f"{describe(op)}: bytes {start} to {start + size} of a workspace of "
                f"{self._workspace.size}"
            )
        memory = self._workspace[start : start + size]
        memory[:] = POISON
        return memory.view(dtype)

    # The entry function

    def _run_yielding(
        self, block: Block, symbols: Mapping[str, int]
    ) -> tuple[list[Array], list[list[int]]]:
        """The buffers that a block yields, and their sizes."""
        scope, last = dict(symbols), block.last_op
        self._run_ops(block, scope)
        assert isinstance(last, kernel.YieldOp)
        buffers = [self._buffer(value, scope, last) for value in last.values]
        return buffers, [self._sizes(ref_type(value), scope, last) for value in last.values]

    def _run_ops(self, block: Block, scope: dict[str, int]) -> None:
        for op in block.ops:
            self.spend(1)
            self._run_op(op, scope)

    def _run_block(self, block: Block, symbols: dict[str, int]) -> None:
        """Every op; symbols bound in the block end with it."""
        scope = dict(symbols)
        self._run_ops(block, scope)
        if isinstance(block.last_op, kernel.ReturnOp):
            # The function's results have sizes that its body may have bound.
            symbols.update(scope)

    @singledispatchmethod
    def _run_op(self, op: Operation, symbols: dict[str, int]) -> None:
        raise InterpretError(f"{describe(op)}: no meaning in the entry function")

    @_run_op.register(kernel.YieldOp)
    @_run_op.register(kernel.ReturnOp)
    @_run_op.register(entry_ops.BarrierOp)
    @_run_op.register(entry_ops.CheckStatusOp)
    @_run_op.register(entry_ops.MarkOp)
    @_run_op.register(OpenOutputOp)
    def _(self, op: Operation, symbols: dict[str, int]) -> None:
        """
        Threads run one after the other, an error is raised where it happens, and there is always
        room for outputs.
        """

    @_run_op.register
    def _(self, op: entry_ops.OnceOp, symbols: dict[str, int]) -> None:
        self._run_block(op.body.block, symbols)

    @_run_op.register
    def _(self, op: entry_ops.ShareOp, symbols: dict[str, int]) -> None:
        for part in range(SIMULATED_PARTS):
            numbers = {kernel.PART: part, kernel.PARTS: SIMULATED_PARTS}
            self._run_block(op.body.block, {**symbols, **numbers})

    @_run_op.register
    def _(self, op: entry_ops.SectionOp, symbols: dict[str, int]) -> None:
        block, last = op.body.block, op.body.block.last_op
        for argument, value in zip(block.args, op.arguments, strict=True):
            self._memory[argument] = self._buffer(value, symbols, op)
        scope = {name: symbols[name] for name in names_in(op.symbols)}
        self._run_ops(block, scope)
        assert isinstance(last, kernel.YieldOp)
        for result, value in zip(op.results, last.values, strict=True):
            self._memory[result] = self._buffer(value, scope, last)
        symbols.update({name: scope[name] for name in names_in(op.result_symbols)})

    @_run_op.register
    def _(self, op: entry_ops.WeightOp, symbols: dict[str, int]) -> None:
        if (problem := op.problem()) is not None:
            raise InterpretError(f"{describe(op)}: {problem}")
        type_ = ref_type(op.result)
        array = self._constant(op).view(memory_dtype(type_.element))
        array.flags.writeable = False
        self._memory[op.result] = array

    def _constant(self, op: entry_ops.WeightOp) -> Array:
        """The bytes of a constant; once they have a place in the weights, those at that place."""
        if op.layout is not None and op.dims is not None:
            dims = [dim.evaluate({}) for dim in op.dims.data]
            array = op.value.data.array(numpy_dtype(ref_type(op.result).element), dims)
            return op.layout.pack(array).reshape(-1).view(np.uint8)
        size = op.value.data.size
        if op.offset is None:
            return op.value.data.array(np.dtype(np.uint8), [size])
        start = op.offset.data[0].evaluate({})
        if start + size > self._weights.size:
            raise InterpretError(
                f"{describe(op)}: bytes {start} to {start + size} of weights of "
                f"{self._weights.size}"
            )
        return self._weights[start : start + size]

    def _lay_out_weights(self, entry: EntryOp) -> None:
        """The weights as one array of bytes, once each constant has a place there."""
        if entry.weights is None:
            return
        self._weights = fresh(entry.weights.data)
        for op in all_ops(entry):
            if isinstance(op, entry_ops.WeightOp) and op.offset is not None:
                start, data = op.offset.data[0].evaluate({}), op.value.data.data
                part = self._weights[start : start + len(data)]
                part[:] = np.frombuffer(data, np.uint8)[: part.size]

    @_run_op.register
    def _(self, op: entry_ops.AllocOp, symbols: dict[str, int]) -> None:
        self._memory[op.result] = self._allocate(op, symbols)

    @_run_op.register
    def _(self, op: entry_ops.ViewOp, symbols: dict[str, int]) -> None:
        source = self._buffer(op.source, symbols, op)
        start = op.offset.data[0].evaluate(symbols)
        count = python_math.prod(self._sizes(ref_type(op.result), symbols, op))
        if not 0 <= start <= start + count <= source.size:
            raise InterpretError(
                f"{describe(op)}: elements {start} to {start + count} of {source.size}"
            )
        self._memory[op.result] = source[start : start + count]

    @_run_op.register
    def _(self, op: entry_ops.CopyOp, symbols: dict[str, int]) -> None:
        source = self._buffer(op.source, symbols, op)
        target = self._buffer(op.target, symbols, op)
        if source.size != target.size:
            raise InterpretError(f"{describe(op)}: {source.size} elements to {target.size}")
        if np.shares_memory(source, target):
            raise InterpretError(f"{describe(op)}: source and target overlap")
        target[:] = source

    @_run_op.register
    def _(self, op: entry_ops.CallOp, symbols: dict[str, int]) -> None:
        name = op.callee.root_reference.data
        if name not in self._callees:
            raise InterpretError(f"{describe(op)}: there is no kernel @{name}")
        callee = self._callees[name]
        if name not in self._compiled:
            self._compiled[name] = (
                compile_kernel(callee, self.spend)
                if isinstance(callee, kernel.FuncOp)
                else tensor_kernel(callee, self.spend)
            )
        buffers = [self._buffer(argument, symbols, op) for argument in op.arguments]
        split = len(buffers) - _output_count(callee)
        for position, output in enumerate(buffers[split:], split):
            if any(np.shares_memory(output, other) for other in buffers[:position]):
                raise InterpretError(f"{describe(op)}: an output overlaps another buffer")
        numbers = [symbol.evaluate(symbols) for symbol in op.symbols.data]
        try:
            self._compiled[name](*buffers, *numbers)
        except IndexError as error:
            raise InterpretError(f"{describe(op)}: @{name}: {error}") from error

    @_run_op.register
    def _(self, op: entry_ops.BindOp, symbols: dict[str, int]) -> None:
        values = self._buffer(op.source, symbols, op)
        element = ref_type(op.source).element
        numbers = values.view(numpy_dtype(element)).tolist()
        symbols.update(zip(op.made_symbols, map(_wrapped_to_i64, numbers), strict=True))

    @_run_op.register
    def _(self, op: entry_ops.RequireOp, symbols: dict[str, int]) -> None:
        left, right = op.left.data[0].evaluate(symbols), op.right.data[0].evaluate(symbols)
        holds = {
            Requirement.EQ: left == right,
            Requirement.LE: left <= right,
            Requirement.INDEX: left <= right,
            Requirement.BROADCAST: left in (right, 1),
        }[op.predicate.data]
        if not holds:
            raise InterpretError(
                f"{describe(op)}: {op.left.data[0]} = {left} must be "
                f"{op.predicate.data} {op.right.data[0]} = {right}"
            )

    @_run_op.register
    def _(self, op: entry_ops.IfOp, symbols: dict[str, int]) -> None:
        holds = bool(self._buffer(op.condition, symbols, op)[0])
        block = (op.then_region if holds else op.else_region).block
        buffers, sizes = self._run_yielding(block, symbols)
        self._memory.update(zip(op.results, buffers, strict=True))
        symbols.update(_made(op.results, op.made_symbols, sizes))

    @_run_op.register
    def _(self, op: entry_ops.LoopOp, symbols: dict[str, int]) -> None:
        slots = [self._buffer(slot, symbols, op) for slot in op.slots]
        trips = None if op.trip_count is None else self._buffer(op.trip_count, symbols, op)
        limit = None if trips is None else int(trips[0])
        condition = None if op.condition is None else self._buffer(op.condition, symbols, op)
        owned = [self._buffer(value, symbols, op) for value in op.owned]
        sizes = [self._sizes(ref_type(value), symbols, op) for value in op.owned]
        carried = names_in(op.carried_symbols)
        scope, count = dict(symbols), 0
        while (condition is None or condition[0]) and (limit is None or count < limit):
            if op.iteration is not None:
                scope[op.iteration.data] = count
            scope.update(_made(op.owned_args, carried, sizes))
            self._memory.update(zip(op.body.block.args, [*slots, *owned], strict=True))
            following, sizes = self._run_yielding(op.body.block, scope)
            for old in owned:
                # What was given back has no meaning any more, and none of it may be in use.
                old[:] = fresh(old.nbytes).view(old.dtype)
            owned = following
            for first in range(0, len(slots), 2):
                slots[first], slots[first + 1] = slots[first + 1], slots[first]
            count += 1
        self._memory.update(zip(op.results, [*slots[::2], *owned], strict=True))
        symbols.update(_made(op.owned_results, names_in(op.result_symbols), sizes))
        if op.count is not None:
            symbols[op.count.data] = count


def _made(
    values: Sequence[SSAValue], names: Sequence[str], sizes: Sequence[Sequence[int]]
) -> Iterator[tuple[str, int]]:
    """The symbols that control flow makes for dimensions of buffers, and what they stand for."""
    for number, axis, name in entry_ops.made_dims(values, names):
        yield name, sizes[number][axis]


def _output_count(op: kernel.FuncOp | kernel.BufferKernelOp) -> int:
    return op.outputs.data if isinstance(op, kernel.FuncOp) else len(yielded(op.body))


def _wrapped_to_i64(value: int) -> int:
    return wrap(int(value), 64)
