"""Functions of C from outside: their sources, and calls of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.operators import OPERATORS, CFunction, CustomOperator, Parameter
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.emit_c.writer import (
    CWriter,
    comment,
    float_literal,
    integer_literal,
    string_literal,
)
from lowerdeck.lowering.errors import LoweringError


def _definition(op: InvokeOp) -> tuple[CustomOperator, CFunction]:
    """The operator and its function; LoweringError if there is none."""
    operator = OPERATORS.get(op.operator.data)
    if operator is None:
        text = f"no plugin defines {op.operator.data}; load the one that does"
        raise LoweringError(op, text)
    if operator.c_function is None:
        raise LoweringError(op, f"there is no C for it; {operator.next_step}")
    return operator, operator.c_function


def functions(kernels: Iterable[kernel.FuncOp]) -> dict[str, str]:
    """
    The sources of the functions that kernels call, by the names of the functions, in the order of
    the first calls. Two operators may share one source.
    """
    found: dict[str, str] = {}
    sources: set[str] = set()
    for op in (op for function in kernels for op in all_ops(function)):
        if type(op) is not InvokeOp:
            continue
        operator, own = _definition(op)
        if own.name not in found:
            is_new = own.source not in sources
            text = f"{comment(f'The C of {operator.name}.')}\n{own.source.strip()}\n"
            found[own.name] = text if is_new else ""
            sources.add(own.source)
    return found


def call(op: InvokeOp, c: CWriter) -> str:
    """A call, as `CFunction` says it."""
    operator, function = _definition(op)
    most = len(operator.inputs) + len(operator.optional_inputs)
    arguments = [text for value in op.inputs for text in _tensor(value, c)]
    arguments += ["NULL", "NULL", "0"] * (most - len(op.inputs))
    count = len(operator.outputs)
    arguments += [text for value in op.outputs[:count] for text in _tensor(value, c)]
    arguments += [c.value(workspace) for workspace in op.outputs[count:]]
    values = op.values
    arguments += [text for name in function.parameters for text in _parameter(values[name])]
    return f"{function.name}({', '.join(arguments)})"


def _tensor(value: SSAValue, c: CWriter) -> Iterator[str]:
    dims = ref_type(value).dims.data
    yield c.value(value)
    yield _array("int64_t", [c.index(dim, ()) for dim in dims])
    yield str(len(dims))


def _array(type_: str, numbers: list[str]) -> str:
    """A pointer to numbers; C has no empty lists."""
    return f"(const {type_}[]){{{', '.join(numbers) or '0'}}}"


def _parameter(value: Parameter) -> Iterator[str]:
    match value:
        case str():
            yield string_literal(value)
        case int():
            yield integer_literal(value)
        case float():
            yield float_literal(value, f64)
        case _:
            is_ints = all(isinstance(one, int) for one in value)
            texts = [
                integer_literal(one) if isinstance(one, int) else float_literal(one, f64)
                for one in value
            ]
            yield _array("int64_t" if is_ints else "double", texts)
            yield str(len(value))
