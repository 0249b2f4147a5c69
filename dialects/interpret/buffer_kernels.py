"""
Kernels of the `buffer` dialect as Python functions: those with loops are written as text, and those
without run on the tensors that lie in their buffers, op by op.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial, singledispatchmethod
from types import CodeType
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel, tiles, vector
from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.buffer.operands import by_operand, by_parameter
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.core.control_flow import names_in, yielded
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    i1,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Atom, Expr
from lowerdeck.dialects.interpret.buffer_forms import FORMS, LANE_FORMS
from lowerdeck.dialects.interpret.buffer_scalars import NAMESPACE, Array, memory_dtype, width, wrap
from lowerdeck.dialects.interpret.core import evaluate
from lowerdeck.dialects.interpret.custom import compute, operator_named
from lowerdeck.dialects.interpret.errors import InterpretError, describe

Kernel: TypeAlias = Callable[..., None]

STEPS_OF_AN_OP = 10
"""For a whole op on tensors takes at least as long as so many iterations of a loop."""


def compile_kernel(function: kernel.FuncOp, spend: Callable[[int], None]) -> Kernel:
    """The kernel as a Python function of flat arrays and the values of its symbols."""
    writer = _KernelWriter()
    source = writer.write(function)
    scope: dict[str, Any] = {**NAMESPACE, **writer.constants, "spend": spend}
    exec(_code(source, function.sym_name.data), scope)
    return scope["kernel"]


@cache
def _writing(cls: type[Operation]) -> Callable[[_KernelWriter, Operation], None]:
    """How ops of a class are written: to look the method up takes longer than to run it."""
    return vars(_KernelWriter)["_op"].dispatcher.dispatch(cls)


@lru_cache(maxsize=256)
def _code(source: str, name: str) -> CodeType:
    """What Python makes of the text of a kernel, which runs with one input after the other."""
    return compile(source, f"<@{name}>", "exec")


def tensor_kernel(op: kernel.BufferKernelOp, spend: Callable[[int], None]) -> Kernel:
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
        extents = op.extents
        for axis, (index, size, stride) in enumerate(
            zip(op.map.data, self._sizes[op.ref], type_.strides.data, strict=True)
        ):
            text = self._index(index, op.indices)
            if axis in extents:
                size = f"{size} - {extents[axis] - 1}"
            number = index.value
            if number is None or not size.isdecimal() or not 0 <= number < int(size):
                text = f"(i if 0 <= (i := {text}) < {size} else outside(i, {size}))"
            elif number == 0:
                continue
            offset.append(text if stride == 1 else f"{text} * ({_python(stride, {})})")
        return f"{self._names[op.ref]}[{' + '.join(offset) or '0'}]"

    def _vector(self, op: kernel.LoadOp | kernel.StoreOp) -> str:
        """`memory[offset:offset + lanes]`; the index along the lanes is checked for all of them."""
        element = self._element(op)
        start = element[element.index("[") + 1 : -1]
        step = f":{op.distance}" if op.distance > 1 else ""
        reach = (op.extents.get(op.lane_axis, 1) - 1) // op.step * op.distance + 1
        return f"{self._names[op.ref]}[(o := {start}):o + {reach}{step}]"

    def _words(self, op: kernel.LoadOp) -> str:
        """The words of all lanes, each of which begins `distance` bytes after the one before."""
        element = self._element(op)
        start, lanes = element[element.index("[") + 1 : -1], max(lanes_of(op.result.type), 1)
        bytes_ = self._constant(
            np.arange(lanes)[:, None] * op.distance + np.arange(kernel.WORD_BYTES)
        )
        return f"{self._names[op.ref]}[({start}) + {bytes_}].view('<i4')[:, 0]"

    def _block(self, block: Block) -> None:
        for op in block.ops:
            _writing(type(op))(self, op)

    @singledispatchmethod
    def _op(self, op: Operation) -> None:
        form = FORMS.get(type(op))
        if op.results and lanes_of(op.results[0].type):
            form = LANE_FORMS.get(type(op), form)
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
        if op.word is not None:
            text = self._words(op)
            text = f"{text}.astype(np.int32)" if lanes_of(type_) else f"int({text}[0])"
            self._line(f"{self._declare(op.result)} = {text}")
            return
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
        size, dtype = type_.bytes.value, self._constant(memory_dtype(type_.element))
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
        left, right = op.starts
        views = [self._right(op, right, sizes[1])]
        if op.tiled is None:
            views.insert(0, self._matrix(op.lhs, left, (sizes[0], str(depth)), op.indices))
        else:
            words = op.words
            parts = [
                self._matrix(
                    op.lhs,
                    [*left[:-3], left[-3] + tile, *left[-2:]],
                    (sizes[0], str(words)),
                    op.indices,
                )
                for tile in range(depth // words)
            ]
            views.insert(0, f"side_by_side([{', '.join(parts)}])")
        origin = (Expr.const(0), Expr.const(0))
        total = self._matrix(op.total, origin, (sizes[0], sizes[1]), ())
        if op.packing.data == Packing.UNSIGNED_RIGHT:
            views = [f"{view}.T" for view in reversed(views)]
            total += ".T"
        sign = "+=" if op.adds is not None else "="
        name = "dot_of_halves" if op.packing.data == Packing.HALVES else "dot_of_bytes"
        self._line(f"{total}[:] {sign} {name}({', '.join(views)})")

    def _right(self, op: tiles.DotTilesOp, start: Sequence[Expr], columns: str) -> str:
        """The right matrix, of which parts and halves may lie apart."""
        windows, depth = op.windows, op.sizes[2]
        if windows is None:
            return self._matrix(op.rhs, start, (str(depth), columns), op.indices)
        none = [0] * len(windows.taps[0])
        halves = [none, windows.across] if windows.across else [none]
        shape = (str(depth // len(windows.taps)), f"({columns}) // {len(halves)}")
        rows: list[str] = []
        for tap in windows.taps:
            parts: list[str] = []
            for half in halves:
                place = list(start)
                for number, (a, b) in enumerate(zip(tap, half, strict=True)):
                    place[windows.axis + 1 + number] += a + b
                parts.append(self._matrix(op.rhs, place, shape, op.indices, windows.axis))
            rows.append(f"side_by_side([{', '.join(parts)}])")
        return f"one_below_the_other([{', '.join(rows)}])"

    def _matrix(
        self,
        ref: SSAValue,
        start: Sequence[Expr],
        shape: tuple[str, str],
        indices: Sequence[SSAValue],
        axis: int = -2,
    ) -> str:
        """A view of some rows and columns, which are checked to lie within the buffer."""
        offset, strides = list[str](), ref_type(ref).strides.data
        ends = ["1"] * len(start)
        ends[axis], ends[-1] = shape
        for index, size, stride, extent in zip(start, self._sizes[ref], strides, ends, strict=True):
            text, last = self._index(index, indices), f"{size} - ({extent}) + 1"
            checked = f"(i if 0 <= (i := {text}) < {last} else outside(i, {last}))"
            offset.append(f"{checked} * ({_python(stride, {})})")
        step = f"({_python(strides[axis], {})})"
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
        text = str(bool(number)) if type_ == i1 else f"({wrap(number, width(type_))})"
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
