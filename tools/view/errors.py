"""How far the values inside of a compiled model are from those of the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, TensorType
from xdsl.ir import OpResult

from lowerdeck.dialects.core.names import named, value_names
from lowerdeck.dialects.core.types import element_type, is_float
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.passes.machinery.statistics import is_constant
from lowerdeck.tools.common import ToolError

if TYPE_CHECKING:
    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.tools.reference import Inputs

_MOST = 1e9
"""What an infinite error is written as: JSON has no infinity."""


def measured_errors(
    path: str, options: CompileOptions, given: Inputs | None
) -> list[dict[str, Any]]:
    """
    Nodes and the error of a value that they make, in units of what `lowerdeck check` allows: 1 is
    the limit. ToolError if the model cannot be run, here or by the interpreter.

    All values of floats are outputs, so some ops that would be one kernel are several.
    """
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.lowering import compile_to_c
    from lowerdeck.tools.compare import largest_error
    from lowerdeck.tools.reference import NoReferenceError, reference_run
    from lowerdeck.tools.run_c import run_c

    module, context = import_and_lower(path, "legal", options)
    values = make_outputs(module)
    if not any(values.values()):
        raise ToolError(f"{path}: --errors: no value of floats has a source node to color")
    options.progress("interpret")
    try:
        inputs, expected = reference_run(module, given)
    except NoReferenceError as error:
        raise ToolError(f"{path}: --errors: {error}") from error
    artifact = compile_to_c(context, module, "model")
    options.progress("C")
    found = run_c(artifact, inputs, options.threads)
    if isinstance(found, str):
        raise ToolError(f"{path}: --errors: the C cannot be run: {found}")
    return [
        {
            "nodes": nodes,
            "error": min(largest_error({name: found[name]}, {name: expected[name]}), _MOST),
        }
        for name, nodes in values.items()
    ]


def make_outputs(module: ModuleOp) -> dict[str, list[str]]:
    """Return all values of floats from the main function; their names, with the source nodes."""
    main = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    block = main.body.block
    returned = block.last_op
    assert isinstance(returned, func.ReturnOp)
    names = value_names(main.res_attrs, len(returned.operands))
    found: dict[str, list[str]] = {}
    known = {value: name for value, name in zip(returned.operands, names, strict=True)}
    for value, name in known.items():
        if isinstance(value, OpResult) and _is_tensor_of_floats(value):
            found[name] = source_names(value.op)
    added: list[OpResult] = []
    for op in block.ops:
        for value in () if is_constant(op) else op.results:
            if value not in known and _is_tensor_of_floats(value) and source_names(op):
                # No name of a model is a number behind a space.
                found[f" {len(added)}"] = source_names(op)
                added.append(value)
    returned.operands = [*returned.operands, *added]
    inputs = main.function_type.inputs.data
    main.properties["function_type"] = FunctionType.from_lists(
        list(inputs), [value.type for value in returned.operands]
    )
    attributes = [] if main.res_attrs is None else list(main.res_attrs.data)
    attributes += [DictionaryAttr({})] * (len(names) - len(attributes))
    new = named(f" {k}" for k in range(len(added)))
    main.properties["res_attrs"] = ArrayAttr([*attributes, *new.data])
    return found


def _is_tensor_of_floats(value: OpResult) -> bool:
    return isinstance(value.type, TensorType) and is_float(element_type(value))
