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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, singledispatchmethod
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer import entry_ops, kernel, tiles, vector
from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.buffer.entry import EntryOp, OpenOutputOp, find_entry
from lowerdeck.dialects.buffer.enums import LaneReduction, Requirement
from lowerdeck.dialects.buffer.operands import by_operand, by_parameter
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of
from lowerdeck.dialects.core.control_flow import names_in, yielded
from lowerdeck.dialects.core.enums import Packing, Predicate
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Atom, Expr
from lowerdeck.dialects.interpret.core import evaluate
from lowerdeck.dialects.interpret.custom import compute, operator_named
from lowerdeck.dialects.interpret.errors import InterpretError, StepLimitError, describe

SIMULATED_PARTS = 3
"""Into how many parts loops are cut that threads share; they run one after the other."""

STEPS_OF_AN_OP = 10
"""For a whole op on tensors takes at least as long as so many iterations of a loop."""

POISON = 0x7F
"""Every byte of memory that was not written: large numbers, in every type."""

Array: TypeAlias = NDArray[Any]
Kernel: TypeAlias = Callable[..., None]


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
            if isinstance(op, kernel.FuncOp | kernel.KernelOp)
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
        symbols = self._bind_inputs(entry.input_args, names_in(entry.inputs), given)
        self._outputs = set(entry.output_args)
        if entry.workspace is not None:
            self._workspace = _fresh(max(entry.workspace.data[0].evaluate(symbols), 0))
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
            raise InterpretError(f"no value for the inputs {missing}")
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
            self._memory[argument] = flat.view(_memory_dtype(type_.element))
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
            dtype = _memory_dtype(type_.element)
            self._memory[value] = _fresh(count * dtype.itemsize).view(dtype)
        if value not in self._memory:
            raise InterpretError(f"{describe(op)}: a buffer is used before it is made")
        return self._memory[value]

    def _allocate(self, op: entry_ops.AllocOp, symbols: Mapping[str, int]) -> Array:
        type_ = ref_type(op.result)
        dtype = _memory_dtype(type_.element)
        size = python_math.prod(self._sizes(type_, symbols, op)) * dtype.itemsize
        if op.offset is None or op.dynamic.value.data:
            return _fresh(size).view(dtype)
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
        array = self._constant(op).view(_memory_dtype(type_.element))
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
        self._weights = _fresh(entry.weights.data)
        for op in entry.walk():
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
                old[:] = _fresh(old.nbytes).view(old.dtype)
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


def _fresh(size: int) -> Array:
    return np.full(size, POISON, np.uint8)


def _memory_dtype(element: Attribute) -> np.dtype[Any]:
    """Integers lie in memory as signed ones, as kernels compute with them; i1 is a byte."""
    width = _width(element)
    if isinstance(element, IntegerType):
        return np.dtype(np.uint8 if width == 1 else f"i{width // 8}")
    return numpy_dtype(element)


def _wrapped_to_i64(value: int) -> int:
    return _wrap(int(value), 64)


# Kernels


def compile_kernel(function: kernel.FuncOp, spend: Callable[[int], None]) -> Kernel:
    """The kernel as a Python function of flat arrays and the values of its symbols."""
    writer = _KernelWriter()
    source = writer.write(function)
    scope: dict[str, Any] = {**_NAMESPACE, **writer.constants, "spend": spend}
    exec(compile(source, f"<@{function.sym_name.data}>", "exec"), scope)
    return scope["kernel"]


def _output_count(op: kernel.FuncOp | kernel.KernelOp) -> int:
    return op.outputs.data if isinstance(op, kernel.FuncOp) else len(yielded(op.body))


def tensor_kernel(op: kernel.KernelOp, spend: Callable[[int], None]) -> Kernel:
    """
    A kernel without loops as a Python function of what one with loops takes: its ops run on the
    tensors that lie in the arrays.
    """
    block, results, names = op.body.block, yielded(op.body), names_in(op.symbols)
    values = [*block.args, *results]
    stored = [(value, op.layout_at(position)) for position, value in enumerate(values)]

    def run(*given: Any) -> None:
        count = len(given) - len(names)
        buffers: list[Array] = list(given[:count])
        symbols = dict(zip(names, given[count:], strict=True))
        if op.in_place is not None:
            buffers.insert(op.in_place.data, buffers[-1])
        inputs = zip(buffers[: len(block.args)], stored, strict=False)
        tensors = {
            value: _read(buffer, value, layout, symbols) for buffer, (value, layout) in inputs
        }
        for inner in block.ops:
            if inner is not block.last_op:
                spend(STEPS_OF_AN_OP)
                found = evaluate(inner, [tensors[each] for each in inner.operands], symbols)
                tensors.update(zip(inner.results, found, strict=True))
        for buffer, (value, layout) in zip(
            buffers[len(block.args) :], stored[len(block.args) :], strict=True
        ):
            _write(tensors[value], buffer, value, layout, symbols)

    return run


def _read(buffer: Array, value: SSAValue, layout: LayoutAttr, symbols: Mapping[str, int]) -> Array:
    """The tensor that lies in a buffer; a copy, for the buffer may change."""
    shape = _shape(value, symbols)
    _check_size(buffer, layout, shape)
    return layout.unpack(buffer.view(numpy_dtype(element_type(value))), shape).copy()


def _write(
    array: Array, buffer: Array, value: SSAValue, layout: LayoutAttr, symbols: Mapping[str, int]
) -> None:
    """Store a tensor as it lies in a buffer."""
    expected = _shape(value, symbols)
    if list(array.shape) != expected or array.dtype != numpy_dtype(element_type(value)):
        found = f"{array.dtype}{list(array.shape)}"
        raise InterpretError(f"a kernel gives {found}, declared {value.type} = {expected}")
    _check_size(buffer, layout, expected)
    buffer[:] = layout.pack(array).reshape(-1).view(buffer.dtype)


def _check_size(buffer: Array, layout: LayoutAttr, shape: Sequence[int]) -> None:
    """IndexError if a buffer has no place, or too much, for a tensor."""
    sizes = [dim.evaluate({}) for dim in layout.dims(list(map(Expr.const, shape)))]
    count = python_math.prod(sizes)
    if buffer.size != count:
        text = f"buffer of {buffer.size} elements, the tensor {list(shape)} takes {count}"
        raise IndexError(text)


def _shape(value: SSAValue, symbols: Mapping[str, int]) -> list[int]:
    return [dim.evaluate(symbols) for dim in dims_of(value)]


class _KernelWriter:
    """Python text for one kernel: one op, one statement."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._depth = 1
        self._names: dict[SSAValue, str] = {}
        self._sizes: dict[SSAValue, list[str]] = {}

    def write(self, function: kernel.FuncOp) -> str:
        """The definition of the function `kernel`."""
        arguments = function.body.block.args
        symbols = list(by_parameter(function.symbols.data))
        for argument in arguments:
            self._declare(argument, "m")
        for argument in arguments:
            dims = ref_type(argument).dims.data
            self._sizes[argument] = [self._size(dim) for dim in dims]
        self._block(function.body.block)
        parameters = [*(self._names[argument] for argument in arguments), *symbols]
        return "\n".join([f"def kernel({', '.join(parameters)}):", *self.lines, "    return\n"])

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _declare(self, value: SSAValue, stem: str = "v") -> str:
        self._names[value] = f"{stem}{len(self._names)}"
        return self._names[value]

    def _size(self, dim: Expr) -> str:
        if dim.value is not None:
            return str(dim.value)
        name = f"n{len(self.lines)}"
        self._line(f"{name} = {_python(dim, {})}")
        return name

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _index(self, expr: Expr, operands: Sequence[SSAValue]) -> str:
        names = by_operand([self._names[operand] for operand in operands])
        return _python(expr, names)

    def _element(self, op: kernel.LoadOp | kernel.StoreOp) -> str:
        """`memory[offset]`, where each index is checked against its dimension."""
        type_ = ref_type(op.ref)
        offset: list[str] = []
        last = op.lane_axis
        for axis, (index, size, stride) in enumerate(
            zip(op.map.data, self._sizes[op.ref], type_.strides.data, strict=True)
        ):
            text = self._index(index, op.indices)
            if axis == last and op.extent > 1:
                size = f"{size} - {op.extent - 1}"
            if not (index == 0 and size == "1"):
                text = f"(i if 0 <= (i := {text}) < {size} else outside(i, {size}))"
            offset.append(text if stride == 1 else f"{text} * ({_python(stride, {})})")
        return f"{self._names[op.ref]}[{' + '.join(offset) or '0'}]"

    def _vector(self, op: kernel.LoadOp | kernel.StoreOp) -> str:
        """`memory[offset:offset + lanes]`; the index along the lanes is checked for all of them."""
        element = self._element(op)
        start = element[element.index("[") + 1 : -1]
        step = f":{op.distance}" if op.distance > 1 else ""
        reach = (op.extent - 1) // op.step * op.distance + 1
        return f"{self._names[op.ref]}[(o := {start}):o + {reach}{step}]"

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._op(op)

    @singledispatchmethod
    def _op(self, op: Operation) -> None:
        form = _FORMS.get(type(op))
        if op.results and lanes_of(op.results[0].type):
            form = _LANE_FORMS.get(type(op), form)
        if form is None:
            raise InterpretError(f"{describe(op)}: no meaning in a kernel")
        text = form(op, *(self._names[operand] for operand in op.operands))
        self._line(f"{self._declare(op.results[0])} = {text}")

    @_op.register(kernel.YieldOp)
    @_op.register(kernel.ReturnOp)
    @_op.register(scf.YieldOp)
    def _(self, op: Operation) -> None:
        """Written by the op that the block belongs to."""

    @_op.register
    def _(self, op: kernel.ForOp) -> None:
        for result, init in zip(op.results, op.inits, strict=True):
            self._line(f"{self._declare(result, 'c')} = {self._names[init]}")
        bounds = ", ".join(self._index(expr, op.indices) for expr in op.range.data)
        index, extent = self._declare(op.body.block.args[0], "x"), f"r{len(self.lines)}"
        self._line(f"{extent} = range({bounds})")
        self._line(f"spend(len({extent}))")
        self._line(f"for {index} in {extent}:")
        self._depth += 1
        for argument, result in zip(op.body.block.args[1:], op.results, strict=True):
            self._names[argument] = self._names[result]
        self._block(op.body.block)
        last = op.body.block.last_op
        assert isinstance(last, kernel.YieldOp)
        self._assign(op.results, last.values)
        self._depth -= 1

    def _assign(self, targets: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """All at once; also what keeps a block from being empty."""
        if not targets:
            self._line("pass")
            return
        left = ", ".join(self._names[target] for target in targets)
        self._line(f"{left} = {', '.join(self._names[value] for value in values)}")

    @_op.register
    def _(self, op: scf.IfOp) -> None:
        for result in op.results:
            self._declare(result, "c")
        for head, region in (
            (f"if {self._names[op.cond]}:", op.true_region),
            ("else:", op.false_region),
        ):
            if not region.blocks:
                continue
            self._line(head)
            self._depth += 1
            self._block(region.block)
            last = region.block.last_op
            assert isinstance(last, scf.YieldOp)
            self._assign(op.results, last.operands)
            self._depth -= 1

    @_op.register
    def _(self, op: kernel.LoadOp) -> None:
        type_ = op.result.type
        if lanes_of(type_):
            text = f"{self._vector(op)}.copy()"
            if op.repeat is not None:
                text = f"np.repeat({text}, {op.repeat.data})"
            if ref_type(op.ref).element == i1:
                text += ".view(np.int8)"
            self._line(f"{self._declare(op.result)} = {text}")
            return
        text = self._element(op)
        if type_ == i1:
            text = f"bool({text})"
        elif isinstance(type_, IntegerType):
            text = f"int({text})"
        self._line(f"{self._declare(op.result)} = {text}")

    @_op.register
    def _(self, op: kernel.StoreOp) -> None:
        target = self._vector(op) if lanes_of(op.value.type) else self._element(op)
        self._line(f"{target} = {self._names[op.value]}")

    @_op.register
    def _(self, op: kernel.ScratchOp) -> None:
        type_ = ref_type(op.ref)
        self._sizes[op.ref] = [self._size(dim) for dim in type_.dims.data]
        size, dtype = type_.bytes.value, self._constant(_memory_dtype(type_.element))
        self._line(f"{self._declare(op.ref, 'm')} = fresh({size}).view({dtype})")

    @_op.register
    def _(self, op: vector.TransposeOp) -> None:
        all_ = f"{self._names[op.ref]}[:{op.rows * op.lanes}]"
        self._line(f"{all_}[:] = {all_}.reshape({op.rows}, {op.lanes}).T.ravel()")

    @_op.register
    def _(self, op: InvokeOp) -> None:
        shapes = [f"[{', '.join(self._sizes[value])}]" for value in op.operands]
        memory = [self._names[value] for value in op.operands]
        run = self._constant(partial(_invoke, op))
        self._line(f"{run}([{', '.join(memory)}], [{', '.join(shapes)}])")

    @_op.register
    def _(self, op: tiles.DotTilesOp) -> None:
        """Each matrix is a view of as many elements as are read."""
        rows, columns, depth = op.sizes
        sizes = [self._index(expr, op.indices) for expr in (rows, columns)]
        shapes = [(sizes[0], str(depth)), (str(depth), sizes[1])]
        views = [
            self._matrix(ref, start, shape, op.indices)
            for ref, start, shape in zip((op.lhs, op.rhs), op.starts, shapes, strict=True)
        ]
        origin = (Expr.const(0), Expr.const(0))
        total = self._matrix(op.total, origin, (sizes[0], sizes[1]), ())
        if op.packing.data == Packing.UNSIGNED_RIGHT:
            views = [f"{view}.T" for view in reversed(views)]
            total += ".T"
        sign = "+=" if op.adds is not None else "="
        self._line(f"{total}[:] {sign} dot_of_bytes({', '.join(views)})")

    def _matrix(
        self,
        ref: SSAValue,
        start: Sequence[Expr],
        shape: tuple[str, str],
        indices: Sequence[SSAValue],
    ) -> str:
        """A view of some rows and columns, which are checked to lie within the buffer."""
        offset, strides = list[str](), ref_type(ref).strides.data
        ends = ["1"] * (len(start) - 2) + list(shape)
        for index, size, stride, extent in zip(start, self._sizes[ref], strides, ends, strict=True):
            text, last = self._index(index, indices), f"{size} - ({extent}) + 1"
            checked = f"(i if 0 <= (i := {text}) < {last} else outside(i, {last}))"
            offset.append(f"{checked} * ({_python(stride, {})})")
        step = f"({_python(strides[-2], {})})"
        return f"matrix({self._names[ref]}, {' + '.join(offset)}, ({', '.join(shape)}), {step})"

    @_op.register
    def _(self, op: vector.PrefetchOp | tiles.ReleaseTilesOp) -> None:
        """Nothing that can be seen."""

    @_op.register
    def _(self, op: kernel.ApplyOp) -> None:
        self._line(f"{self._declare(op.result)} = {self._index(op.map.data[0], op.indices)}")

    @_op.register
    def _(self, op: kernel.CheckIndexOp) -> None:
        bound = self._index(op.bound.data[0], op.indices)
        text = f"resolve({self._names[op.value]}, {bound})"
        self._line(f"{self._declare(op.result)} = {text}")

    @_op.register
    def _(self, op: arith.ConstantOp) -> None:
        value, type_ = op.value, op.result.type
        if isinstance(value, FloatAttr):
            self._names[op.result] = self._constant(numpy_dtype(type_).type(value.value.data))
            return
        assert isinstance(value, IntegerAttr)
        number = value.value.data
        text = str(bool(number)) if type_ == i1 else f"({_wrap(number, _width(type_))})"
        self._names[op.result] = text


def _invoke(op: InvokeOp, memory: Sequence[Array], shapes: Sequence[Sequence[int]]) -> None:
    """What the C function of an operator computes is what its plugin says of it in numpy."""
    operator, count = operator_named(op.operator.data), len(op.inputs)
    tensors = [
        buffer.view(numpy_dtype(ref_type(value).element)).reshape(shape)
        for value, buffer, shape in zip(op.operands, memory, shapes, strict=True)
    ]
    found = compute(operator, tensors[:count], op.values)
    for result, target in zip(found, tensors[count:], strict=False):  # the rest is workspace
        if result.shape != target.shape or result.dtype != target.dtype:
            wrong, declared = (f"{each.dtype}{list(each.shape)}" for each in (result, target))
            raise InterpretError(f"{describe(op)}: {operator.name} gives {wrong}, not {declared}")
        target[...] = result


def _python(expr: Expr, names: Mapping[str, str]) -> str:
    """The Python form of an integer expression."""
    terms: list[str] = []
    for monomial, coefficient in expr.terms:
        factors = [_python_atom(atom, names) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.append(f"({coefficient})")
        terms.append(" * ".join(factors))
    return " + ".join(terms) or "0"


def _python_atom(atom: Atom, names: Mapping[str, str]) -> str:
    if atom.kind == "symbol":
        return names.get(atom.name, atom.name)
    function = {"floordiv": "floordiv", "mod": "modulo"}.get(atom.kind, atom.kind)
    return f"{function}({', '.join(_python(argument, names) for argument in atom.args)})"


# Scalars


def _wrap(value: int, width: int) -> int:
    """The signed integer of a width that is congruent to `value`."""
    half = 1 << (width - 1)
    return ((value + half) & ((1 << width) - 1)) - half


def _outside(index: int, size: int) -> int:
    raise IndexError(f"element {index} of a dimension of {size} is accessed")


def _matrix(memory: Array, offset: int, shape: tuple[int, int], step: int) -> Array:
    """Rows and columns of a matrix in memory, whose rows lie `step` elements apart."""
    strides = (step * memory.itemsize, memory.itemsize)
    return np.lib.stride_tricks.as_strided(memory[offset:], shape, strides)


def _dot_of_bytes(unsigned: Array, signed: Array) -> Array:
    """The product of matrices of words of four bytes each, without signs and with them."""
    left = np.ascontiguousarray(unsigned).view(np.uint8).astype(np.int32)
    right = np.ascontiguousarray(signed.T).view(np.int8).astype(np.int32)
    return left @ right.T


def _resolve(index: int, bound: int) -> int:
    if not -bound <= index < bound:
        raise IndexError(f"index {index} in a dimension of {bound}")
    return index + bound if index < 0 else index


def _floordiv(a: int, b: int) -> int:
    """A zero divisor, which only an empty dimension gives, gives zero."""
    return a // b if b else 0


def _modulo(a: int, b: int) -> int:
    return a - b * _floordiv(a, b)


def _quotient(a: int, b: int) -> int:
    """Toward zero; by zero, zero."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    """With the sign of a; by zero, zero."""
    return 0 if b == 0 else a - b * _quotient(a, b)


def _power(a: int, b: int) -> int:
    """Modulo 2^64; a negative exponent rounds the reciprocal toward zero."""
    if b >= 0:
        return _wrap(pow(a, b, 1 << 64), 64)
    if a in (1, -1):
        return a if b % 2 else 1
    return 0


def _to_integer(value: Any, lowest: int, highest: int) -> int:
    """Toward zero; what does not fit becomes the nearest number that does, NaN zero."""
    number = float(value)
    if number != number:
        return 0
    if python_math.isinf(number):
        return highest if number > 0 else lowest
    return min(max(int(number), lowest), highest)


def _to_signed(value: Any, width: int) -> int:
    return _to_integer(value, -(1 << (width - 1)), (1 << (width - 1)) - 1)


def _to_unsigned(value: Any, width: int) -> int:
    return _wrap(_to_integer(value, 0, (1 << width) - 1), width)


def _to_odd(value: Any) -> np.float32:
    """To f32 so that a second rounding gives what one would."""
    nearest = np.float32(value)
    if nearest == value or not np.isfinite(nearest):
        return nearest
    bits = nearest.view(np.uint32)
    if abs(np.float64(nearest)) > abs(value):
        bits -= np.uint32(1)
    return (bits | np.uint32(1)).view(np.float32)


def _f64_to_bf16(value: Any) -> Any:
    return ml_dtypes.bfloat16(_to_odd(value))


def _maximum(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


def _float_power(a: np.float64, b: np.float64) -> np.float64:
    """C's pow; numpy takes the square root of a scalar for 0.5, which is no number for -inf."""
    return np.power(np.array([a, a]), np.array([b, b]))[0]


def _lanes_as(lanes: Array, dtype: np.dtype[Any]) -> Array:
    """As numpy converts; of a float that does not fit any integer may come."""
    with np.errstate(all="ignore"):
        return lanes.astype(dtype)


def _halves(combine: Callable[[Any, Any], Any]) -> Callable[[Array], Any]:
    """All lanes combined: halves upon each other, as the generated C does it."""

    def reduce(lanes: Array) -> Any:
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = combine(lanes[:half], lanes[half:])
        return lanes[0]

    return reduce


_NAMESPACE: dict[str, Any] = {
    "fresh": _fresh,
    "outside": _outside,
    "matrix": _matrix,
    "dot_of_bytes": _dot_of_bytes,
    "resolve": _resolve,
    "floordiv": _floordiv,
    "modulo": _modulo,
    "quotient": _quotient,
    "remainder": _remainder,
    "power": _power,
    "float_power": _float_power,
    "to_signed": _to_signed,
    "to_unsigned": _to_unsigned,
    "f64_to_bf16": _f64_to_bf16,
    "maximum": _maximum,
    "lanes_as": _lanes_as,
    "reduce_add": _halves(np.add),
    "reduce_mul": _halves(np.multiply),
    "reduce_max": _halves(np.fmax),
    "reduce_min": _halves(np.fmin),
    "reduce_umax": _halves(np.maximum),
    "reduce_umin": _halves(np.minimum),
    "minimum": _minimum,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "u64": np.uint64,
    "erf": python_math.erf,
    "np": np,
}

_SHORT: dict[Attribute, str] = {f64: "f64", f32: "f32", f16: "f16", bf16: "bf16"}

Form = Callable[..., str]


def _width(type_: Attribute) -> int:
    return cast(IntegerType, type_).width.data if isinstance(type_, IntegerType) else 64


def _wrapped(op: Operation, text: str) -> str:
    """The residue in the width of the result; as C's `bool`, i1 is true for every other number."""
    if op.results[0].type == i1:
        return f"({text}) != 0"
    half = 1 << (_width(op.results[0].type) - 1)
    return f"(({text}) + {half} & {2 * half - 1}) - {half}"


def _unsigned(text: str, type_: Attribute) -> str:
    """How unsigned arithmetic reads a signless integer."""
    return f"({text} & {(1 << _width(type_)) - 1})"


def _arithmetic(operator: str) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        return _wrapped(op, f"{a} {operator} {b}")

    return form


def _plain(pattern: str) -> Form:
    """Operands put into a pattern at `{0}`, `{1}`, ..."""

    def form(op: Operation, *operands: str) -> str:
        return pattern.format(*operands)

    return form


def _division(function: str, *, signed: bool) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        type_ = op.results[0].type
        left, right = (a, b) if signed else (_unsigned(a, type_), _unsigned(b, type_))
        return _wrapped(op, f"{function}({left}, {right})")

    return form


def _extremum(operator: str, *, signed: bool) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        type_ = op.results[0].type
        left, right = (a, b) if signed else (_unsigned(a, type_), _unsigned(b, type_))
        return f"{a} if {left} {operator} {right} else {b}"

    return form


def _shift_left(op: Operation, a: str, b: str) -> str:
    return _wrapped(op, f"{a} << {b}")


def _shift_right(op: Operation, a: str, b: str) -> str:
    return _wrapped(op, f"{_unsigned(a, op.results[0].type)} >> {b}")


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6
_FLOAT_PREDICATES = {
    1: "{a} == {b}",
    2: "{a} > {b}",
    3: "{a} >= {b}",
    4: "{a} < {b}",
    5: "{a} <= {b}",
    7: "{a} == {a} and {b} == {b}",
    13: "{a} != {b}",
    14: "{a} != {a} or {b} != {b}",
}


def _compare_integers(op: arith.CmpiOp, a: str, b: str) -> str:
    predicate, type_ = op.predicate.value.data, op.lhs.type
    if predicate >= _FIRST_UNSIGNED:
        a, b = _unsigned(a, type_), _unsigned(b, type_)
    return f"{a} {_INTEGER_PREDICATES[predicate]} {b}"


def _compare_floats(op: arith.CmpfOp, a: str, b: str) -> str:
    return f"bool({_FLOAT_PREDICATES[op.predicate.value.data].format(a=a, b=b)})"


def _convert_float(op: Operation, a: str) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if (source, target) == (f64, bf16):
        return f"f64_to_bf16({a})"
    return f"{_SHORT[target]}({a})"


def _float_to_integer(op: Operation, a: str) -> str:
    sign = "signed" if isinstance(op, arith.FPToSIOp) else "unsigned"
    return f"to_{sign}({a}, {_width(op.results[0].type)})"


def _integer_to_float(op: Operation, a: str) -> str:
    """Through numpy's integers, which round once."""
    source, target = op.operands[0].type, _SHORT[op.results[0].type]
    if isinstance(op, arith.SIToFPOp):
        return f"i64({a}).astype({target})"
    return f"u64({_unsigned(a, source)}).astype({target})"


def _extend_unsigned(op: Operation, a: str) -> str:
    return _wrapped(op, _unsigned(a, op.operands[0].type))


def _truncate(op: Operation, a: str) -> str:
    return f"({a} & 1) != 0" if op.results[0].type == i1 else _wrapped(op, a)


def _extend(op: Operation, a: str) -> str:
    """A truth value is a number of one bit: -1 where it holds."""
    return _wrapped(op, f"-int({a})" if op.operands[0].type == i1 else a)


def _function(name: str) -> Form:
    """A function of the C library: in f64, rounded once to the precision of the result."""

    def form(op: Operation, *operands: str) -> str:
        arguments = ", ".join(f"f64({operand})" for operand in operands)
        return f"{_SHORT[op.results[0].type]}({name}({arguments}))"

    return form


def _splat(op: Operation, a: str) -> str:
    type_ = op.results[0].type
    dtype = _memory_dtype(scalar_of(type_)).name
    return f"np.full({lanes_of(type_)}, {a}, np.dtype('{dtype}'))"


def _reinterpret(op: Operation, a: str) -> str:
    source, target = op.operands[0].type, _memory_dtype(scalar_of(op.results[0].type))
    if lanes_of(source):
        return f"{a}.view(np.{target.name})"
    text = f"np.{_memory_dtype(source).name}({a}).view(np.{target.name})"
    return f"int({text})" if target.kind == "i" else text


_LANE_PREDICATES = {
    Predicate.EQ: "==",
    Predicate.NE: "!=",
    Predicate.LT: "<",
    Predicate.LE: "<=",
    Predicate.GT: ">",
    Predicate.GE: ">=",
}


def _compare_lanes(op: vector.CompareOp, a: str, b: str) -> str:
    if op.unsigned:
        a, b = _unsigned_lanes(a, op.lhs.type), _unsigned_lanes(b, op.lhs.type)
    mask = _memory_dtype(scalar_of(op.result.type)).name
    return f"-({a} {_LANE_PREDICATES[op.predicate.data]} {b}).astype(np.{mask})"


def _unsigned_lanes(text: str, type_: Attribute) -> str:
    return f"{text}.view(np.u{_memory_dtype(scalar_of(type_)).name})"


def _convert_lanes(op: vector.ConvertOp, a: str) -> str:
    source, target = scalar_of(op.input.type), scalar_of(op.result.type)
    name = _memory_dtype(target).name
    if op.unsigned is None:
        return f"lanes_as({a}, np.dtype('{name}'))"
    if isinstance(source, IntegerType):
        return f"lanes_as({_unsigned_lanes(a, op.input.type)}, np.dtype('{name}'))"
    return f"lanes_as({a}, np.dtype('u{name}')).view(np.{name})"


def _dot_pairs(op: Operation, a: str, b: str, c: str) -> str:
    low = " * ".join(f"((({x} & 0xFFFF) ^ 0x8000) - 0x8000)" for x in (a, b))
    return _wrapped(op, f"{c} + {low} + ({a} >> 16) * ({b} >> 16)")


def _dot_pairs_of_lanes(op: Operation, a: str, b: str, c: str) -> str:
    low = " * ".join(f"{x}.astype(np.int16).astype(np.int32)" for x in (a, b))
    return f"{c} + {low} + ({a} >> 16) * ({b} >> 16)"


def _dot_quads(op: Operation, a: str, b: str, c: str) -> str:
    terms = [
        f"(({a} >> {shift}) & 0xFF) * (((({b} >> {shift}) & 0xFF) ^ 0x80) - 0x80)"
        for shift in range(0, 32, 8)
    ]
    return _wrapped(op, " + ".join([c, *terms]))


def _dot_quads_of_lanes(op: Operation, a: str, b: str, c: str) -> str:
    terms = [
        f"(({a} >> {shift}) & 0xFF) * ({b} >> {shift}).astype(np.int8)" for shift in range(0, 32, 8)
    ]
    return " + ".join([c, *terms])


def _reduce_lanes(op: vector.ReduceOp, a: str) -> str:
    if op.kind.data in (LaneReduction.UMAX, LaneReduction.UMIN):
        a = _unsigned_lanes(a, op.input.type)
    text = f"reduce_{op.kind.data}({a})"
    type_ = op.result.type
    return f"int({text}.astype(np.{_memory_dtype(type_)}))" if _is_integer(type_) else text


def _lane_numbers(op: vector.LaneNumbersOp) -> str:
    name = _memory_dtype(scalar_of(op.result.type)).name
    return f"np.arange({lanes_of(op.result.type)}, dtype=np.{name})"


def _is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType)


def _shift_lanes_right(op: Operation, a: str, b: str) -> str:
    bits = _memory_dtype(scalar_of(op.results[0].type)).itemsize * 8
    return f"({a}.view(np.uint{bits}) >> {b}.view(np.uint{bits})).view(np.int{bits})"


_FORMS: dict[type[Operation], Form] = {
    arith.AddiOp: _arithmetic("+"),
    arith.SubiOp: _arithmetic("-"),
    arith.MuliOp: _arithmetic("*"),
    arith.DivSIOp: _division("quotient", signed=True),
    arith.DivUIOp: _division("quotient", signed=False),
    arith.RemSIOp: _division("remainder", signed=True),
    arith.RemUIOp: _division("remainder", signed=False),
    arith.AndIOp: _plain("{0} & {1}"),
    arith.OrIOp: _plain("{0} | {1}"),
    arith.XOrIOp: _plain("{0} ^ {1}"),
    arith.ShLIOp: _shift_left,
    arith.ShRUIOp: _shift_right,
    arith.MaxSIOp: _extremum(">", signed=True),
    arith.MaxUIOp: _extremum(">", signed=False),
    arith.MinSIOp: _extremum("<", signed=True),
    arith.MinUIOp: _extremum("<", signed=False),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _plain("{1} if {0} else {2}"),
    arith.AddfOp: _plain("{0} + {1}"),
    arith.SubfOp: _plain("{0} - {1}"),
    arith.MulfOp: _plain("{0} * {1}"),
    arith.DivfOp: _plain("{0} / {1}"),
    arith.NegfOp: _plain("-{0}"),
    arith.MaximumfOp: _plain("maximum({0}, {1})"),
    arith.MinimumfOp: _plain("minimum({0}, {1})"),
    arith.IndexCastOp: _plain("{0}"),
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
    arith.FPToSIOp: _float_to_integer,
    arith.FPToUIOp: _float_to_integer,
    arith.SIToFPOp: _integer_to_float,
    arith.UIToFPOp: _integer_to_float,
    arith.ExtSIOp: _extend,
    arith.ExtUIOp: _extend_unsigned,
    arith.TruncIOp: _truncate,
    kernel.RemfOp: _function("np.fmod"),
    math.AbsFOp: _plain("abs({0})"),
    math.ExpOp: _function("np.exp"),
    math.LogOp: _function("np.log"),
    math.SqrtOp: _function("np.sqrt"),
    math.FloorOp: _function("np.floor"),
    math.CeilOp: _function("np.ceil"),
    math.RoundEvenOp: _function("np.rint"),
    math.ErfOp: _function("erf"),
    math.SinOp: _function("np.sin"),
    math.CosOp: _function("np.cos"),
    math.TanOp: _function("np.tan"),
    math.AsinOp: _function("np.arcsin"),
    math.AcosOp: _function("np.arccos"),
    math.AtanOp: _function("np.arctan"),
    math.SinhOp: _function("np.sinh"),
    math.CoshOp: _function("np.cosh"),
    math.TanhOp: _function("np.tanh"),
    math.AsinhOp: _function("np.arcsinh"),
    math.AcoshOp: _function("np.arccosh"),
    math.AtanhOp: _function("np.arctanh"),
    math.PowFOp: _function("float_power"),
    math.CopySignOp: _function("np.copysign"),
    math.IPowIOp: _plain("power({0}, {1})"),
    math.FmaOp: _plain("{0} * {1} + {2}"),
    arith.BitcastOp: _reinterpret,
    vector.ReduceOp: _reduce_lanes,
    vector.AnyOp: _plain("bool({0}.any())"),
    vector.DotPairsOp: _dot_pairs,
    vector.DotQuadsOp: _dot_quads,
}


def _unsigned_extremum(name: str) -> Form:
    """Of vectors of integers, read as unsigned ones."""

    def form(op: Operation, a: str, b: str) -> str:
        dtype = _memory_dtype(scalar_of(op.results[0].type))
        left, right = (f"{operand}.view(np.u{dtype.name})" for operand in (a, b))
        return f"np.{name}({left}, {right}).view(np.{dtype.name})"

    return form


_LANE_FORMS: dict[type[Operation], Form] = {
    arith.AddiOp: _plain("{0} + {1}"),
    arith.SubiOp: _plain("{0} - {1}"),
    arith.MuliOp: _plain("{0} * {1}"),
    arith.ShLIOp: _plain("{0} << {1}"),
    arith.ShRUIOp: _shift_lanes_right,
    arith.MaxSIOp: _plain("np.maximum({0}, {1})"),
    arith.MaxUIOp: _unsigned_extremum("maximum"),
    arith.MinSIOp: _plain("np.minimum({0}, {1})"),
    arith.MinUIOp: _unsigned_extremum("minimum"),
    BroadcastOp: _splat,
    vector.CompareOp: _compare_lanes,
    vector.SelectOp: _plain("np.where({0} != 0, {1}, {2})"),
    vector.MaxfOp: _plain("np.where({0} > {1}, {0}, {1})"),
    vector.MinfOp: _plain("np.where({0} < {1}, {0}, {1})"),
    vector.ConvertOp: _convert_lanes,
    vector.LaneNumbersOp: _lane_numbers,
    math.SqrtOp: _plain("np.sqrt({0})"),
    math.FloorOp: _plain("np.floor({0})"),
    math.CeilOp: _plain("np.ceil({0})"),
    math.RoundEvenOp: _plain("np.rint({0})"),
    vector.DotPairsOp: _dot_pairs_of_lanes,
    vector.DotQuadsOp: _dot_quads_of_lanes,
}
"""What differs for vectors: they are arrays, whose integers wrap around by themselves."""
