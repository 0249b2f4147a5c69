"""Smaller variants of a module of `core`: fewer ops and results, no regions, smaller tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp, yielded
from lowerdeck.dialects.core.symbols import symbols_made_by
from lowerdeck.dialects.core.types import (
    DimsAttr,
    Tensor,
    dims_of,
    element_type,
    i64,
    is_float,
    tensor,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import find_function
from lowerdeck.passes.machinery.statistics import is_constant
from lowerdeck.passes.machinery.symbols import symbols_of
from lowerdeck.tools.shrinking import chunks


def operations(module: ModuleOp) -> int:
    """How many ops there are, but for constants, terminators and functions."""
    return sum(
        not (is_constant(op) or op.has_trait(IsTerminator) or isinstance(op, func.FuncOp))
        for op in module.walk()
        if op is not module
    )


def variants(module: ModuleOp) -> Iterator[ModuleOp]:
    """Well-formed modules that are smaller by one step."""
    for edit in _edits(module):
        copy = module.clone()
        function = find_function(copy, "main")
        if not edit(function):
            continue
        _prune(function)
        try:
            copy.verify()
        except VerifyException:
            continue
        yield copy


_Edit = Callable[[func.FuncOp], bool]
"""Changes a function; False if it cannot."""


def _edits(module: ModuleOp) -> Iterator[_Edit]:
    function = find_function(module, "main")
    count = len(_returned(function))
    for start, end in chunks(count) if count > 1 else ():
        yield lambda f, a=start, b=end: _drop_results(f, a, b)
    for start, end in chunks(len(_computing(function.body.block))):
        yield lambda f, a=start, b=end: _cut(f, a, b)
    ops = list(function.walk())
    for number, op in enumerate(ops):
        for k in range(len(op.regions) if isinstance(op, IfOp | LoopOp | KernelOp) else 0):
            yield lambda f, n=number, k=k: _inline(_at(f, n), k)
    for number, op in enumerate(ops):
        for k in range(len(op.operands)) if len(op.results) == 1 else ():
            if op.operands[k].type == op.results[0].type:
                yield lambda f, n=number, k=k: _bypass(_at(f, n), k)
    for old in sorted(_sizes(function), reverse=True):
        for new in sorted({1, 2, old // 2}):
            if new < old:
                yield lambda f, old=old, new=new: _resize(f, old, new)
    for number, op in enumerate(ops):
        if isinstance(op, ConstantOp) and is_float(element_type(op.result)):
            for value in (0.0, 1.0, None):
                yield lambda f, n=number, value=value: _simplify(_at(f, n), value)


def _at(function: func.FuncOp, number: int) -> Operation:
    """An op by its number in the order of a walk, which is that of a copy, too."""
    return next(op for k, op in enumerate(function.walk()) if k == number)


def _computing(block: Block) -> list[Operation]:
    """The ops that may be cut: constants stay with what needs them."""
    return [op for op in block.ops if op is not block.last_op and not is_constant(op)]


def _returned(function: func.FuncOp) -> Sequence[SSAValue]:
    last = function.body.block.last_op
    return () if last is None else last.operands


def _return(function: func.FuncOp, values: Sequence[SSAValue], names: Sequence[Attribute]) -> None:
    """Let a function return other values."""
    last = function.body.block.last_op
    assert last is not None
    last.operands = list(values)
    function.res_attrs = ArrayAttr(cast("list[DictionaryAttr]", list(names)))


def _result_names(function: func.FuncOp) -> list[Attribute]:
    count = len(_returned(function))
    return [DictionaryAttr({})] * count if function.res_attrs is None else [*function.res_attrs]


def _drop_results(function: func.FuncOp, start: int, end: int) -> bool:
    """Do not return some values any more."""
    pairs = list(zip(_returned(function), _result_names(function), strict=True))
    kept = pairs[:start] + pairs[end:]
    if not kept:
        return False
    _return(function, [value for value, _ in kept], [name for _, name in kept])
    return True


def _cut(function: func.FuncOp, start: int, end: int) -> bool:
    """
    Take ops away: what others need of them become arguments; where their results are returned, what
    they need is returned instead.
    """
    block = function.body.block
    chunk = _computing(block)[start:end]
    inside = set(chunk)
    pairs = list(zip(_returned(function), _result_names(function), strict=True))
    kept = [pair for pair in pairs if pair[0].owner not in inside]
    if len(kept) < len(pairs):
        reads = dict.fromkeys(
            value
            for op in chunk
            for inner in op.walk()
            for value in inner.operands
            if isinstance(value, OpResult) and value.op.parent is block and value.op not in inside
        )
        known = {value for value, _ in kept}
        kept += [
            (value, DictionaryAttr({}))
            for value in reads
            if value not in known and not is_constant(value.op)
        ]
    if not kept:
        return False
    _return(function, [value for value, _ in kept], [name for _, name in kept])
    attributes = [] if function.arg_attrs is None else [*function.arg_attrs]
    attributes += [DictionaryAttr({})] * (len(block.args) - len(attributes))
    for op in chunk:
        for result in op.results:
            if any(_ancestor(use.operation, block) not in inside for use in result.uses):
                new = block.insert_arg(result.type, len(block.args))
                new.name_hint = result.name_hint
                attributes.append(DictionaryAttr({}))
                result.replace_all_uses_with(new)
    function.arg_attrs = ArrayAttr(attributes)
    made = {name for op in chunk for name in symbols_made_by(op)}
    for op in reversed(chunk):
        op.detach()
        op.erase(safe_erase=False)
    return not made & _needed_symbols(function)


def _ancestor(op: Operation | None, block: Block) -> Operation | None:
    """The op of a block that an op is or is inside of."""
    while op is not None and op.parent is not block:
        op = op.parent_op()
    return op


def _inline(op: Operation, number: int) -> bool:
    """Replace control flow, or a kernel, by one run of a region."""
    region = op.regions[number]
    block, outer = region.block, op.parent
    if outer is None:
        return False
    values = list(yielded(region))
    match op:
        case LoopOp():
            zero = scalar(0, i64)
            outer.insert_op_before(zero, op)
            arguments: list[SSAValue] = [zero.result, *op.inits]
            values = values[op.condition is not None :][: len(op.inits)]
            # Values of all iterations exist only with the loop.
            if any(result.first_use is not None for result in op.results[len(op.inits) :]):
                return False
        case KernelOp():
            arguments = list(op.inputs)
        case _:
            arguments = []
    used = op.results[: len(values)]
    if [v.type for v in values] != [r.type for r in used]:
        return False
    for argument, value in zip(block.args, arguments, strict=True):
        argument.replace_all_uses_with(value)
    for result, value in zip(used, values, strict=True):
        result.replace_all_uses_with(_resolved(value, block, arguments))
    last = block.last_op
    for inner in list(block.ops):
        inner.detach()
        if inner is not last:
            outer.insert_op_before(inner, op)
    op.detach()
    op.erase(safe_erase=False)
    return True


def _resolved(value: SSAValue, block: Block, arguments: Sequence[SSAValue]) -> SSAValue:
    """A value that a region yields, from outside: its arguments are gone."""
    return arguments[block.args.index(value)] if value in block.args else value


def _bypass(op: Operation, number: int) -> bool:
    """Let users of an op use one of its operands."""
    op.results[0].replace_all_uses_with(op.operands[number])
    op.detach()
    op.erase(safe_erase=False)
    return True


def _sizes(function: func.FuncOp) -> set[int]:
    """The sizes above one of dimensions of arguments and constants."""
    values = [*function.body.block.args]
    values += [op.results[0] for op in function.walk() if isinstance(op, ConstantOp)]
    found: set[int] = set()
    for value in values:
        try:
            found |= {dim.value for dim in dims_of(value) if dim.value is not None}
        except VerifyException:
            continue
    return {size for size in found if size > 1}


def _resize(function: func.FuncOp, old: int, new: int) -> bool:
    """Make every dimension of one size another size; the types of results follow."""
    block = function.body.block
    for argument in list(block.args):
        if (type_ := _resized(argument.type, old, new)) != argument.type:
            _set_type(argument, type_)
    for op in list(block.ops):
        if op is block.last_op:
            return True
        if op.regions or not isinstance(op, CoreOp):
            return False
        try:
            replacement = _resized_op(op, old, new)
        except VerifyException:
            return False
        block.insert_op_before(replacement, op)
        replacement.location = op.location
        for result, value in zip(op.results, replacement.results, strict=True):
            value.name_hint = result.name_hint
            result.replace_all_uses_with(value)
        op.detach()
        op.erase(safe_erase=False)
    return False


def _resized_op(op: CoreOp, old: int, new: int) -> CoreOp:
    if isinstance(op, ConstantOp):
        array = op.array
        part = array[tuple(slice(new if size == old else size) for size in array.shape)]
        return ConstantOp.of(np.ascontiguousarray(part).reshape(part.shape))
    properties = {
        name: DimsAttr.of(Expr.const(new) if dim == old else dim for dim in attribute.data)
        for name, attribute in op.properties.items()
        if isinstance(attribute, DimsAttr)
    }
    return op.with_operands(list(op.operands), properties)


def _resized(type_: Attribute, old: int, new: int) -> Attribute:
    try:
        dims = dims_of(type_)
    except VerifyException:
        return type_
    sizes = [Expr.const(new) if dim == old else dim for dim in dims]
    return tensor(element_type(cast(Tensor, type_)), sizes)


def _set_type(value: SSAValue, type_: Attribute) -> None:
    from xdsl.rewriter import Rewriter

    Rewriter.replace_value_with_new_type(value, type_)


def _simplify(op: Operation, value: float | None) -> bool:
    """Make all numbers of a constant one value, or round them."""
    assert isinstance(op, ConstantOp)
    array = op.array
    with np.errstate(all="ignore"):
        wide = np.nan_to_num(array.astype(np.float64))
        simple = wide.round().clip(-4, 4) if value is None else np.full(array.shape, value)
    replacement = ConstantOp.of(simple.astype(array.dtype))
    if np.array_equal(replacement.array, array):
        return False
    op.properties["value"] = replacement.value
    return True


def _prune(function: func.FuncOp) -> None:
    """Take away what no result needs: ops, then arguments; the function's type follows."""
    block = function.body.block
    needed = _needed_symbols(function)
    # Backward, so that what an op needs comes after it; ops in a region come before their parent.
    for op in reversed(list(block.walk())):
        is_used = any(result.first_use is not None for result in op.results)
        makes = needed & set(symbols_made_by(op))
        if not op.has_trait(IsTerminator) and not is_used and not makes:
            op.detach()
            op.erase(safe_erase=False)
    needed = _needed_symbols(function)
    attributes = None if function.arg_attrs is None else [*function.arg_attrs]
    for argument in reversed(list(block.args)):
        own = {str(dim) for dim in _dims(argument) if str(dim) in dim.symbols}
        others = set[str]().union(
            *({str(d) for d in _dims(other)} for other in block.args if other is not argument)
        )
        if argument.first_use is None and not (own & needed) - others:
            if attributes is not None:
                del attributes[argument.index]
            block.erase_arg(argument)
    if attributes is not None:
        function.arg_attrs = ArrayAttr(attributes)
    results = [value.type for value in _returned(function)]
    function.function_type = FunctionType.from_lists(list(block.arg_types), results)


def _dims(value: SSAValue) -> Sequence[Expr]:
    try:
        return dims_of(value)
    except VerifyException:
        return ()


def _needed_symbols(function: func.FuncOp) -> set[str]:
    """The dimension symbols that ops and their results mention."""
    found: set[str] = set()
    for op in function.body.block.walk():
        for result in op.results:
            found |= symbols_of(result.type)
        for attribute in op.properties.values():
            found |= symbols_of(attribute)
    return found
