"""
Reference semantics of onnx ops: `onnx.reference` for single nodes, the control flow written out.

Values are numpy arrays, lists for sequences, and None for what is absent. Element types that numpy
lacks are those of ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.core.operators import CustomOperator, operator_of
from lowerdeck.dialects.core.types import UNKNOWN, SequenceType, element_type, numpy_dtype
from lowerdeck.dialects.interpret.custom import compute
from lowerdeck.dialects.interpret.onnx_recurrent import run_recurrent
from lowerdeck.dialects.onnx.custom import parameters_of
from lowerdeck.dialects.onnx.nodes import captured_values, op_to_node
from lowerdeck.dialects.onnx.ops import NONE, InitializerOp, NoneOp, OnnxOp, YieldOp
from lowerdeck.dialects.onnx.types import is_unknown, type_to_proto
from lowerdeck.dialects.walking import all_ops

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = "Array | list[Any] | None"
RegionRunner: TypeAlias = Callable[[Region, Sequence[Value]], list[Value]]
"""Runs a subgraph for the values of its block arguments; returns what it yields."""


def run_op(
    op: Operation,
    args: Sequence[Value],
    run_region: RegionRunner | None = None,
    *,
    captured: Mapping[SSAValue, Value] | None = None,
) -> list[Value]:
    """
    The results of an op of the onnx dialect for the values of its operands.

    Subgraphs are run by `run_region`; without it they must hold onnx ops only, and `captured` has
    the values from around the op that they use. InterpretationError if the op cannot be run.
    """
    if isinstance(op, InitializerOp):
        return [op.array()]
    if isinstance(op, NoneOp):
        return [None]
    if isinstance(op, YieldOp):
        return list(args)
    if not isinstance(op, OnnxOp):
        raise InterpretationError(f"'{op.name}' is not an op of the onnx dialect")
    outer = captured or {}
    if (operator := operator_of(op.domain, op.op_type)) is not None:
        return _run_custom(op, operator, args)
    if op.op_type in _CONTROL_FLOW:
        return _CONTROL_FLOW[op.op_type](op, args, run_region or partial(_evaluate_in, outer))
    if op.op_type == "Constant" and "sparse_value" in op.properties:
        return [cast(Any, op.properties["sparse_value"]).array()]
    if op.op_type == "BatchNormalization" and _is_old_inference(op):
        return [_run_old_batch_norm(op, [_array(arg) for arg in args])]
    if op.op_type in ("RNN", "GRU", "LSTM") and not op.domain:
        return [*run_recurrent(op, [None if arg is None else _array(arg) for arg in args])]
    if op.op_type.startswith("Optional"):
        return [_run_optional(op, args)]
    return _run_node(op, args, outer)


def evaluate_region(
    region: Region, args: Sequence[Value], outer: Mapping[SSAValue, Value]
) -> list[Value]:
    """What a region of onnx ops yields (or a function of them returns)."""
    block = region.block
    values: dict[SSAValue, Value] = {**outer, **dict(zip(block.args, args, strict=True))}
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if op is block.last_op:
            return operands
        results = run_op(op, operands, captured=values)
        values.update(zip(op.results, results, strict=True))
    raise InterpretationError("a region without a terminator cannot be run")


def _evaluate_in(
    outer: Mapping[SSAValue, Value], region: Region, args: Sequence[Value]
) -> list[Value]:
    return evaluate_region(region, args, outer)


def _run_node(op: OnnxOp, args: Sequence[Value], captured: Mapping[SSAValue, Value]) -> list[Value]:
    inputs = ["" if v.type == NONE else f"i{k}" for k, v in enumerate(op.operands)]
    outputs = ["" if v.type == NONE else f"o{k}" for k, v in enumerate(op.results)]
    outer = {value: f"c{k}" for k, value in enumerate(captured_values(op))}
    model = _model(op, op_to_node(op, inputs, outputs, outer), outer)
    feeds = {name: arg for name, arg in zip(inputs, args, strict=True) if name}
    feeds |= {name: captured[value] for value, name in outer.items()}
    try:
        found = cast(list[Value], cast(Any, ReferenceEvaluator(model)).run(None, feeds))
    except NotImplementedError as error:
        raise InterpretationError(f"{op.name} has no reference: {error}") from error
    except (ValueError, TypeError, RuntimeError, LookupError, AttributeError) as error:
        raise InterpretationError(f"{op.name} cannot be run: {error}") from error
    computed = iter(found)
    return [_as_value(next(computed)) if name else None for name in outputs]


def _run_custom(op: OnnxOp, operator: CustomOperator, args: Sequence[Value]) -> list[Value]:
    """An operator that a plugin defines."""
    given = [cast(Array, arg) for arg in args if arg is not None]
    results: list[Value] = [*compute(operator, given, parameters_of(operator, op.properties))]
    return results[: len(op.results)]


def _model(op: OnnxOp, node: onnx.NodeProto, outer: Mapping[SSAValue, str]) -> onnx.ModelProto:
    """A model of this one node, in the opsets that introduced it and what is inside it."""
    versions = {"": 0}
    for nested in all_ops(op):
        if isinstance(nested, OnnxOp):
            versions[nested.domain] = max(nested.since_version, versions.get(nested.domain, 0))
    versions[""] = versions[""] or onnx.defs.onnx_opset_version()
    if op.op_type == "Scatter":  # the older name, which the reference does not know
        node.op_type, versions[""] = "ScatterElements", 11
    if op.op_type == "DequantizeLinear":  # 19 means the same for what there was before
        versions[""] = max(versions[""], 19)
    graph = onnx.GraphProto(name="op", node=[node])
    named = [*zip(node.input, op.operands, strict=True), *((n, v) for v, n in outer.items())]
    for name, value in named:
        if name:
            graph.input.add(name=name, type=type_to_proto(value.type))
    for name in filter(None, node.output):
        graph.output.add(name=name)
    opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    return onnx.ModelProto(ir_version=onnx.IR_VERSION, graph=graph, opset_import=opsets)


def _as_value(value: Any) -> Value:
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
        return array.astype(object) if array.dtype.kind in "SU" else array
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_as_value(item) for item in cast(Sequence[Any], value)]
    return _as_value(np.asarray(value))


def _is_old_inference(op: OnnxOp) -> bool:
    """True where onnx.reference would train: before version 14, as soon as there is a momentum."""
    if op.since_version >= 14 or any(result.type != NONE for result in op.results[1:]):
        return False
    return op.since_version >= 7 or op.get_int("is_test") != 0


def _run_old_batch_norm(op: OnnxOp, args: Sequence[Array]) -> Array:
    """scale * (x - mean) / sqrt(var + epsilon) + bias, by channel unless `spatial` is 0."""
    x = args[0]
    is_spatial = op.since_version >= 9 or op.get_int("spatial") != 0
    shape = (1, -1, *[1] * (x.ndim - 2)) if is_spatial else (1, *x.shape[1:])
    scale, bias, mean, variance = (array.reshape(shape) for array in args[1:5])
    epsilon = np.asarray(op.get_float("epsilon"), x.dtype)
    return (scale * (x - mean) / np.sqrt(variance + epsilon) + bias).astype(x.dtype)


def _run_optional(op: OnnxOp, args: Sequence[Value]) -> Value:
    """Optional, OptionalGetElement and OptionalHasElement: a present value is the value itself."""
    value = args[0] if args else None
    if op.op_type == "OptionalHasElement":
        return np.asarray(value is not None)
    if op.op_type == "OptionalGetElement" and value is None:
        raise InterpretationError(f"{op.name}: the optional value is absent")
    return value


# Control flow


def _truth(value: Value) -> bool:
    return bool(np.asarray(value).reshape(-1)[0])


def _array(value: Value) -> Array:
    if not isinstance(value, np.ndarray):
        raise InterpretationError("expected a tensor, found an absent value or a sequence")
    return value


def _run_if(op: OnnxOp, args: Sequence[Value], run_region: RegionRunner) -> list[Value]:
    branch = "then_branch" if _truth(args[0]) else "else_branch"
    return run_region(op.region(branch), [])


def _run_loop(op: OnnxOp, args: Sequence[Value], run_region: RegionRunner) -> list[Value]:
    """`for (i = 0; i < M && cond; ++i)`; an absent M has no limit, an absent cond is true."""
    limit = None if args[0] is None else int(_array(args[0]).reshape(-1)[0])
    condition = args[1] is None or _truth(args[1])
    state = list(args[2:])
    scans: list[list[Array]] = [[] for _ in op.results[len(state) :]]
    trip = 0
    while condition and (limit is None or trip < limit):
        yielded = run_region(
            op.region("body"), [np.asarray(trip, np.int64), np.asarray(condition), *state]
        )
        condition = _truth(yielded[0])
        for values, value in zip(scans, yielded[1 + len(state) :], strict=True):
            values.append(_array(value))
        state = yielded[1 : 1 + len(state)]
        trip += 1
    last = op.region("body").block.last_op
    types = [value.type for value in last.operands[1 + len(state) :]] if last else []
    return [*state, *(_stack(v, 0, t) for v, t in zip(scans, types, strict=True))]


def _run_scan(op: OnnxOp, args: Sequence[Value], run_region: RegionRunner) -> list[Value]:
    if op.since_version < 9:
        return _run_batched_scan(op, args, run_region)
    count = op.get_int("num_scan_inputs") or 0
    state, inputs = list(args[: len(args) - count]), [_array(a) for a in args[len(args) - count :]]
    outputs = len(op.results) - len(state)
    return _scan(
        op,
        state,
        inputs,
        run_region,
        in_axes=op.get_ints("scan_input_axes") or (0,) * count,
        in_reversed=op.get_ints("scan_input_directions") or (0,) * count,
        out_axes=op.get_ints("scan_output_axes") or (0,) * outputs,
        out_reversed=op.get_ints("scan_output_directions") or (0,) * outputs,
    )


def _scan(
    op: OnnxOp,
    state: list[Value],
    inputs: Sequence[Array],
    run_region: RegionRunner,
    *,
    in_axes: Sequence[int],
    in_reversed: Sequence[int],
    out_axes: Sequence[int],
    out_reversed: Sequence[int],
) -> list[Value]:
    """One run of the body for each slice of the inputs; outputs are stacked in the same way."""
    slices = [np.moveaxis(array, axis, 0) for array, axis in zip(inputs, in_axes, strict=True)]
    slices = [s[::-1] if r else s for s, r in zip(slices, in_reversed, strict=True)]
    scans: list[list[Array]] = [[] for _ in out_axes]
    for items in zip(*slices, strict=True):
        yielded = run_region(op.region("body"), [*state, *map(np.asarray, items)])
        state, rest = yielded[: len(state)], yielded[len(state) :]
        for values, value in zip(scans, rest, strict=True):
            values.append(_array(value))
    scans = [v[::-1] if r else v for v, r in zip(scans, out_reversed, strict=True)]
    last = op.region("body").block.last_op
    types = [value.type for value in last.operands[len(state) :]] if last else []
    stacked = [_stack(v, a, t) for v, a, t in zip(scans, out_axes, types, strict=True)]
    return [*state, *stacked]


def _run_batched_scan(op: OnnxOp, args: Sequence[Value], run_region: RegionRunner) -> list[Value]:
    """Version 8: the first axis is a batch; outputs past a sequence's length are zero."""
    count = op.get_int("num_scan_inputs") or 0
    arrays = [_array(arg) for arg in args[1:]]
    state, inputs = arrays[: len(arrays) - count], arrays[len(arrays) - count :]
    longest = inputs[0].shape[1]
    lengths = [longest] * len(inputs[0]) if args[0] is None else _array(args[0]).tolist()
    outputs = len(op.results) - len(state)
    rows: list[list[Array]] = []
    for batch, length in enumerate(lengths):
        row = _scan(
            op,
            [array[batch] for array in state],
            [array[batch][:length] for array in inputs],
            run_region,
            in_axes=(0,) * count,
            in_reversed=op.get_ints("directions") or (0,) * count,
            out_axes=(0,) * outputs,
            out_reversed=(0,) * outputs,
        )
        final = [_array(value) for value in row]
        scanned = [_pad_to(array, longest) for array in final[len(state) :]]
        rows.append([*final[: len(state)], *scanned])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _pad_to(array: Array, length: int) -> Array:
    widths = [(0, length - len(array)), *[(0, 0)] * (array.ndim - 1)]
    return np.pad(array, widths)


def _run_sequence_map(op: OnnxOp, args: Sequence[Value], run_region: RegionRunner) -> list[Value]:
    """The body for each element; inputs that are tensors are the same for all."""
    first = cast(list[Any], args[0])
    is_sequence = [isinstance(arg, list) for arg in args]
    results: list[Value] = [[] for _ in op.results]
    for index in range(len(first)):
        items = [
            cast(list[Any], arg)[index] if sequence else arg
            for arg, sequence in zip(args, is_sequence, strict=True)
        ]
        for result, value in zip(results, run_region(op.region("body"), items), strict=True):
            cast(list[Any], result).append(value)
    return results


def _stack(values: Sequence[Array], axis: int, type_: Attribute) -> Array:
    """The values along a new axis; without any, an empty array of the type's shape if known."""
    if values:
        return np.stack(values, axis)
    shape: tuple[int, ...] = ()
    if isinstance(type_, TensorType):
        shape = tuple(max(0, dim) for dim in cast(TensorType[Attribute], type_).get_shape())
    element = UNKNOWN if isinstance(type_, SequenceType) else element_type(cast(Attribute, type_))
    dtype = np.dtype(np.float32) if is_unknown(element) else numpy_dtype(element)
    return np.zeros((0, *shape), dtype)


_CONTROL_FLOW: Mapping[str, Callable[[OnnxOp, Sequence[Value], RegionRunner], list[Value]]] = {
    "If": _run_if,
    "Loop": _run_loop,
    "Scan": _run_scan,
    "SequenceMap": _run_sequence_map,
}
