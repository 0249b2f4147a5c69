"""`merge-functions`: functions that differ in numbers only become one, which reads the numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.buffer.vector import scalar_of
from lowerdeck.dialects.core.types import f32, f64, i8, i16, i32, i64, numpy_dtype
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.lowered import lowered_functions
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.recorder import Recorder
from lowerdeck.passes.machinery.structure import details, region_key

_LOADED = (f32, f64, i8, i16, i32, i64)
"""The types of numbers that lie in memory as they are computed with."""

_OF_INTEGERS = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MaxSIOp,
    arith.MaxUIOp,
    arith.MinSIOp,
    arith.MinUIOp,
    kernel.StoreOp,
)
"""What costs the same for any integer, known or not, unlike divisions, shifts and products."""

Number = FloatAttr | IntegerAttr
"""The value of a constant."""


def may_be_read(op: arith.ConstantOp) -> bool:
    """
    True if a number may as well come from memory: what is computed with it rounds and costs the
    same.

    A C compiler computes what depends on numbers alone, and rounds each result; what it does not
    know it may fuse, and round once. It divides by a power of two by multiplying.
    """
    type_, value = op.result.type, op.value
    if type_ not in _LOADED:
        return False
    is_float = isinstance(value, FloatAttr)
    allowed = _allows_float if is_float else _allows_integer
    values: list[SSAValue] = [op.result]
    if is_float and abs(np.frexp(value.value.data)[0]) == 0.5:
        allowed = _allows_power
    while values:
        for use in values.pop().uses:
            if isinstance(use.operation, BroadcastOp):
                values.append(use.operation.vector)
            elif not allowed(use.operation, use.index):
                return False
    return True


def _allows_integer(user: Operation, position: int) -> bool:
    return isinstance(user, _OF_INTEGERS)


def _allows_float(user: Operation, position: int) -> bool:
    """False for control flow, through which compilers follow numbers, and for what has no other."""
    if user.regions or user.has_trait(IsTerminator):
        return False
    type_ = scalar_of(user.operands[position].type)
    return not all(_is_number(value) for value in user.operands if scalar_of(value.type) == type_)


def _allows_power(user: Operation, position: int) -> bool:
    """As for any float, but that no power of two may divide."""
    is_divisor = isinstance(user, arith.DivfOp) and position == 1
    return not is_divisor and _allows_float(user, position)


def _is_number(value: SSAValue) -> bool:
    """True for a constant, and for a vector that repeats one."""
    owner = value.owner.source.owner if isinstance(value.owner, BroadcastOp) else value.owner
    return isinstance(owner, arith.ConstantOp)


def _readable(function: kernel.FuncOp) -> list[arith.ConstantOp]:
    """The numbers of a function that may come from memory, in order."""
    ops = (op for op in all_ops(function) if isinstance(op, arith.ConstantOp))
    return [op for op in ops if may_be_read(op)]


def _key(function: kernel.FuncOp) -> Hashable:
    """Equal for functions that differ at most in names and in numbers that may be read."""
    readable: set[Operation] = set(_readable(function))
    body = region_key(function.body, {}, lambda op: () if op in readable else details(op))
    return (len(function.symbols), function.outputs, function.schedule, function.parallel, body)


Tables = list[tuple[Attribute, tuple[Number, ...]]]
"""What a function reads its numbers from: for each type, the numbers."""


def merge(functions: Sequence[kernel.FuncOp]) -> list[Tables]:
    """
    Let the first of some functions with equal keys read the numbers in which they differ, from one
    buffer for each type, its last inputs; returns what that buffer holds for each function.
    """
    rows = [_readable(function) for function in functions]
    places: dict[Attribute, dict[tuple[Number, ...], list[arith.ConstantOp]]] = {}
    for ops in zip(*rows, strict=True):
        column = tuple(op.value for op in ops)
        if len(set(column)) > 1:
            same_type = places.setdefault(ops[0].result.type, {})
            same_type.setdefault(column, []).append(ops[0])
    first = functions[0]
    for type_, columns in places.items():
        _read(first, type_, list(columns.values()))
    return [
        [(type_, tuple(column[k] for column in columns)) for type_, columns in places.items()]
        for k in range(len(functions))
    ]


def _read(
    function: kernel.FuncOp, type_: Attribute, places: Sequence[Sequence[arith.ConstantOp]]
) -> None:
    """A new last input holds one number for each list of constants, which it replaces."""
    block = function.body.block
    position = len(block.args) - function.outputs.data
    table = block.insert_arg(RefType.of(type_, [len(places)]), position)
    first = block.first_op
    assert first is not None
    loads = [kernel.LoadOp(table, [number], []) for number in range(len(places))]
    block.insert_ops_before(loads, first)
    for load, constants in zip(loads, places, strict=True):
        load.location = constants[0].location
        for constant in constants:
            constant.result.replace_all_uses_with(load.result)
            Rewriter.erase_op(constant)


class _Entry:
    """The entry function, whose calls get tables of numbers."""

    def __init__(self, entry: EntryOp) -> None:
        self._block = entry.body.block
        first = self._block.first_op
        assert first is not None
        self._first = first
        self._weights: dict[tuple[Attribute, tuple[Number, ...]], SSAValue] = {}
        self._calls: dict[str, list[entry_ops.CallOp]] = {}
        for op in all_ops(entry):
            if isinstance(op, entry_ops.CallOp):
                self._calls.setdefault(op.callee.root_reference.data, []).append(op)

    def redirect(self, name: str, function: kernel.FuncOp, tables: Tables) -> None:
        """Let the calls of a function call one that it was merged into, and pass its numbers."""
        for call in self._calls.get(name, ()):
            arguments = list(call.arguments)
            end = len(arguments) - function.outputs.data
            given = [self._weight(*table) for table in tables]
            call.operands = [*arguments[:end], *given, *arguments[end:]]
            call.properties["callee"] = SymbolRefAttr(function.sym_name)

    def _weight(self, type_: Attribute, numbers: tuple[Number, ...]) -> SSAValue:
        """A constant buffer; at the start, where every block sees it."""
        key = (type_, numbers)
        if key not in self._weights:
            values = [number.value.data for number in numbers]
            blob = BlobAttr(Blob.of(_array(type_, values)))
            weight = entry_ops.WeightOp(blob, RefType.of(type_, [len(values)]))
            weight.location = self._first.location
            self._block.insert_op_before(weight, self._first)
            self._weights[key] = weight.result
        return self._weights[key]


def _array(type_: Attribute, values: Sequence[float]) -> NDArray[Any]:
    """Numbers in memory; integers have no sign, and wrap."""
    dtype = numpy_dtype(type_)
    if dtype.kind == "f":
        return np.array(values, dtype)
    return np.array([int(value) % (1 << 64) for value in values], np.uint64).astype(dtype)


class MergeFunctionsPass(ModulePass):
    """
    Let functions that differ in numbers only be one, which reads the numbers from a buffer.

    `call f(a, r)` and `call g(a, r)` -> `call f(a, w, r)` and `call f(a, v, r)`, where `f` and `g`
    are the same but for some constants, and `w` and `v` are buffers of these. So the layers of a
    network whose scales and zero points are numbers in the code share their functions, as those
    whose weights are tensors do anyway.

    A number stays in the code, and the functions apart, where it would round or cost otherwise:
    where a compiler can compute something of it, or follows it through control flow; as a divisor
    that is a power of two; and as an integer that is multiplied, divided, shifted or an index.
    Runs after `compute-in-place`, which looks for the result as the last argument and gives copies
    of functions names of their own, and before `parallelize`, which makes a function of each part.
    """

    name = "merge-functions"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        recorder, groups = recorder_of(ctx), dict[Hashable, list[kernel.FuncOp]]()
        for function in lowered_functions(op, self.name).values():
            groups.setdefault(_key(function), []).append(function)
        calls = _Entry(entry)
        for first, *others in groups.values():
            merged = [other for other in others if _decide(recorder, first, other)]
            if not merged:
                continue
            functions = [first, *merged]
            for function, tables in zip(functions, merge(functions), strict=True):
                calls.redirect(function.sym_name.data, first, tables)
            for function in merged:
                Rewriter.erase_op(function)


def _decide(recorder: Recorder, first: kernel.FuncOp, other: kernel.FuncOp) -> bool:
    reason = f"differs from @{first.sym_name.data} in numbers only"
    return recorder.decide(MergeFunctionsPass.name, "read-numbers", [other, first], reason)
