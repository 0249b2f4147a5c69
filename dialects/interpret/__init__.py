"""
Reference semantics of the dialects in numpy, and the interpreter that runs modules of mixed ones.

A value is a numpy array, a list (a sequence), or None (absent).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import InterpretationError, VerifyException

from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.core.constant import BindSymbolsOp
from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp, YieldOp
from lowerdeck.dialects.core.defaults import default_arrays
from lowerdeck.dialects.core.names import unused_inputs, value_names
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.frameworks import framework_of
from lowerdeck.dialects.interpret.core import evaluate, is_evaluable
from lowerdeck.dialects.interpret.errors import (
    InterpretError,
    StepLimitError,
    describe,
    no_values_for,
)
from lowerdeck.dialects.interpret.graphs import graph_runner
from lowerdeck.dialects.walking import all_ops

__all__ = [
    "InterpretError",
    "Interpreter",
    "StepLimitError",
    "Value",
    "find_function",
    "run_function",
    "run_module",
]

Value: TypeAlias = "NDArray[Any] | list[Any] | None"
Observer: TypeAlias = Callable[[Operation, Sequence[Value]], None]


def run_module(
    module: ModuleOp,
    inputs: Mapping[str, NDArray[Any]],
    function: str = "main",
    *,
    max_steps: int | None = None,
) -> dict[str, Value]:
    """
    Run a function for inputs by tensor name; its results by tensor name. Of a module that is
    lowered to `buffer`, that is the entry function; of one with a tf1.graph, that graph.

    Names are the `core.name` of arguments and results, or `0`, `1`, ... where there is none.
    InterpretError if a name is missing or unknown, an input does not fit its argument's type, or an
    op cannot be run; StepLimitError after `max_steps` ops.
    """
    with np.errstate(all="ignore"):  # what is infinite or NaN is a result like any other
        return _run_module(module, inputs, function, max_steps)


def _run_module(
    module: ModuleOp, inputs: Mapping[str, NDArray[Any]], function: str, max_steps: int | None
) -> dict[str, Value]:
    if find_entry(module) is not None:
        from lowerdeck.dialects.interpret import buffer

        return dict(buffer.run_entry(module, inputs, max_steps=max_steps))
    for op in module.body.block.ops:
        if (runner := graph_runner(op)) is not None:
            return dict(runner.run(op, inputs, max_steps))
    target = find_function(module, function)
    names = value_names(target.arg_attrs, len(target.body.block.args))
    inputs = {**default_arrays(target), **inputs}
    if missing := [name for name in names if name not in inputs]:
        raise InterpretError(no_values_for(missing, inputs))
    known = {*names, *unused_inputs(target)}
    if unknown := [name for name in inputs if name not in known]:
        raise InterpretError(f"{unknown} are not inputs; the inputs are {names}")
    results = Interpreter(max_steps=max_steps).call(target, [inputs[name] for name in names])
    return dict(zip(value_names(target.res_attrs, len(results)), results, strict=True))


def run_function(
    function: func.FuncOp, inputs: Sequence[Value], *, max_steps: int | None = None
) -> list[Value]:
    """Run a function for inputs in order."""
    return Interpreter(max_steps=max_steps).call(function, inputs)


def find_function(module: ModuleOp, name: str) -> func.FuncOp:
    """The function with this symbol name; InterpretError if there is none."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise InterpretError(f"the module has no function @{name}")


class Interpreter:
    """
    Runs functions, block by block.

    `observe`, if given, is called with every op and its results after it ran.
    """

    def __init__(self, *, max_steps: int | None = None, observe: Observer | None = None) -> None:
        self._steps_left = max_steps
        self._observe = observe
        self._values: dict[SSAValue, Value] = {}
        self._last_uses: dict[Block, dict[Operation, list[SSAValue]]] = {}

    def call(self, function: func.FuncOp, inputs: Sequence[Value]) -> list[Value]:
        """The values that the function returns for `inputs` in order."""
        block = function.body.block
        if len(inputs) != len(block.args):
            raise InterpretError(
                f"@{function.sym_name.data} takes {len(block.args)} inputs, got {len(inputs)}"
            )
        names = value_names(function.arg_attrs, len(inputs))
        symbols: dict[str, int] = {}
        types = [argument.type for argument in block.args]
        for name, type_, value in zip(names, types, inputs, strict=True):
            _bind(name, type_, value, symbols)
        for name, type_, value in zip(names, types, inputs, strict=True):
            _check_dims(f"input '{name}'", type_, value, symbols)
        return self._run_block(block, inputs, symbols)

    def _run_block(
        self, block: Block, args: Sequence[Value], symbols: Mapping[str, int]
    ) -> list[Value]:
        """The operands of the block's terminator; symbols made inside end with it."""
        values, scope = self._values, dict(symbols)
        values.update(zip(block.args, args, strict=True))
        last_uses = self._find_last_uses(block)
        for op in block.ops:
            self._count_step()
            operands = [values[operand] for operand in op.operands]
            if op is block.last_op:
                for value in (*last_uses[op], *block.args):
                    values.pop(value, None)  # an argument without uses ends here
                return operands
            results = self._run_op(op, operands, scope)
            if self._observe is not None:
                self._observe(op, results)
            values.update(zip(op.results, results, strict=True))
            for value in last_uses[op]:
                del values[value]
        raise InterpretError("a block without a terminator cannot be run")

    def _count_step(self) -> None:
        if self._steps_left is None:
            return
        if self._steps_left <= 0:
            raise StepLimitError("the step limit is used up")
        self._steps_left -= 1

    def _find_last_uses(self, block: Block) -> dict[Operation, list[SSAValue]]:
        """For each op the values of this block that nothing after it uses."""
        if block not in self._last_uses:
            seen: set[SSAValue] = set()
            found: dict[Operation, list[SSAValue]] = {}
            for op in reversed(list(block.ops)):
                ends: list[SSAValue] = [result for result in op.results if result not in seen]
                seen.update(op.results)
                for nested in all_ops(op):
                    for value in nested.operands:
                        if value not in seen and _home(value) is block:
                            ends.append(value)
                            seen.add(value)
                found[op] = ends
            self._last_uses[block] = found
        return self._last_uses[block]

    def _run_op(
        self, op: Operation, operands: Sequence[Value], symbols: dict[str, int]
    ) -> list[Value]:
        match op:
            case BindSymbolsOp():
                sizes = cast(NDArray[Any], operands[0]).reshape(-1).tolist()
                symbols.update(zip(op.made_symbols, map(int, sizes), strict=True))
                return []
            case IfOp():
                region = op.then_region if _truth(operands[0]) else op.else_region
                results = self._run_block(region.block, [], symbols)
                symbols.update(_sizes(op.made_dims, results))
                return results
            case LoopOp():
                return self._run_loop(op, operands, symbols)
            case KernelOp():
                return self._run_block(op.body.block, operands, symbols)
            case PoisonOp():
                return [None]  # it is never read
            case YieldOp() | func.ReturnOp():
                raise InterpretError(f"{describe(op)} is not at the end of its block")
            case _ if is_evaluable(op):
                arrays = cast(Sequence[NDArray[Any]], operands)
                results = evaluate(op, arrays, symbols)
                _check_results(op, results, symbols)
                return list(results)
            case _:
                return self._run_foreign(op, operands, symbols)

    def _run_loop(
        self, op: LoopOp, operands: Sequence[Value], symbols: dict[str, int]
    ) -> list[Value]:
        rest = list(operands)
        limit = None if op.trip_count is None else _integer(rest.pop(0))
        going = True if op.condition is None else _truth(rest.pop(0))
        carried, count = rest, 0
        has_condition, width = int(op.condition is not None), len(rest)
        scans: list[list[NDArray[Any]]] = [[] for _ in op.yielded_scans]
        scope, made = dict(symbols), op.made_dims
        while going and (limit is None or count < limit):
            if op.iteration is not None:
                scope[op.iteration.data] = count
            scope.update(_sizes(made, carried))
            yielded = self._run_block(op.body.block, [np.array(count), *carried], scope)
            going = not has_condition or _truth(yielded[0])
            carried = yielded[has_condition : has_condition + width]
            for scan, value in zip(scans, yielded[has_condition + width :], strict=True):
                scan.append(cast(NDArray[Any], value))
            count += 1
        if op.count is not None:
            symbols[op.count.data] = count
        symbols.update(_sizes(op.made_result_dims, carried))
        results = [
            _stacked(scan, result.type, symbols)
            for scan, result in zip(scans, op.results[width:], strict=True)
        ]
        return [*carried, *results]

    def _run_foreign(
        self, op: Operation, operands: Sequence[Value], symbols: Mapping[str, int]
    ) -> list[Value]:
        """An op of another dialect, whose interpreter is loaded only now."""
        if (framework := framework_of(op)) is None:
            raise InterpretError(f"{describe(op)}: there is no interpreter of this operation")

        def run_region(region: Region, args: Sequence[Value]) -> list[Value]:
            return self._run_block(region.block, args, symbols)

        try:
            return list(framework.interpreter()(op, operands, run_region))
        except InterpretError:
            raise
        except InterpretationError as error:
            raise InterpretError(f"{describe(op)}: {error}") from error


def _home(value: SSAValue) -> Block | None:
    """The block that the value belongs to."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent_block()


def _truth(value: Value) -> bool:
    return bool(cast(NDArray[Any], value).reshape(-1)[0])


def _integer(value: Value) -> int:
    return int(cast(NDArray[Any], value).reshape(-1)[0])


def _sizes(made: Sequence[Mapping[int, str]], values: Sequence[Value]) -> Iterator[tuple[str, int]]:
    """The symbols that control flow makes for dimensions of values, and what they stand for."""
    for axes, value in zip(made, values, strict=True):
        for axis, name in axes.items():
            yield name, cast(NDArray[Any], value).shape[axis]


def _stacked(
    parts: Sequence[NDArray[Any]], type_: Attribute, symbols: Mapping[str, int]
) -> NDArray[Any]:
    if parts:
        return np.stack(parts)
    # No iteration was made: sizes that only the body knows have no value and count as zero.
    dims = dims_of(type_)[1:]
    shape = [d.evaluate(symbols) if d.symbols <= symbols.keys() else 0 for d in dims]
    return np.empty((0, *shape), numpy_dtype(element_type(type_)))


def _bind(name: str, type_: Attribute, value: Value, symbols: dict[str, int]) -> None:
    """Check rank and element type of an input and bind the symbols that are its dimensions."""
    if not isinstance(type_, TensorType):
        return
    expected = numpy_dtype(element_type(cast(Tensor, type_)))
    if not isinstance(value, np.ndarray):
        raise InterpretError(f"input '{name}' is no tensor, expected {type_}")
    if value.dtype != expected:
        raise InterpretError(
            f"input '{name}' has the dtype {value.dtype}, expected {expected}; "
            f"array.astype('{expected}') converts it"
        )
    if (dims := _known_dims(cast(Tensor, type_))) is None:
        return
    if value.ndim != len(dims):
        raise InterpretError(
            f"input '{name}' has the shape {list(value.shape)}, expected {len(dims)} dimensions"
        )
    for dim, size in zip(dims, value.shape, strict=True):
        # A symbol that stands alone is bound by its first occurrence.
        if str(dim) in dim.symbols:
            symbols.setdefault(str(dim), size)


def _known_dims(type_: Attribute) -> tuple[Expr, ...] | None:
    """The dimensions of a ranked tensor, or None if they have no identity."""
    try:
        return dims_of(type_)
    except VerifyException:
        return None


def _check_dims(what: str, type_: Attribute, value: Value, symbols: Mapping[str, int]) -> None:
    """InterpretError unless the value has the dimensions of its type."""
    if not isinstance(value, np.ndarray) or (dims := _known_dims(type_)) is None:
        return
    if constants(dims) == value.shape:
        return
    if unbound := sorted(set[str]().union(*(dim.symbols for dim in dims)) - symbols.keys()):
        raise InterpretError(f"{what}: nothing gives the symbols {unbound} a value")
    expected = [dim.evaluate(symbols) for dim in dims]
    if list(value.shape) != expected:
        described = ", ".join(map(str, dims))
        raise InterpretError(
            f"{what} has the shape {list(value.shape)}, expected [{described}] = {expected}"
        )


def _check_results(
    op: Operation, results: Sequence[NDArray[Any]], symbols: Mapping[str, int]
) -> None:
    """InterpretError if a result does not have its declared type."""
    for result, value in zip(op.results, results, strict=True):
        type_: Attribute = result.type
        if not isinstance(type_, TensorType):
            continue
        type_ = cast(Tensor, type_)
        if value.dtype != numpy_dtype(element_type(type_)):
            raise InterpretError(f"{describe(op)} gives {value.dtype}, declared {type_}")
        try:
            _check_dims("the result", type_, value, symbols)
        except InterpretError as error:
            raise InterpretError(f"{describe(op)}: {error}") from None
