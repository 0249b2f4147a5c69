"""If and Loop, whose bodies see the values around them, and kernels, which are inlined."""

from __future__ import annotations

from xdsl.ir import Region

from lowerdeck.dialects.core import control_flow
from lowerdeck.dialects.core.types import i1, tensor
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts, typed


@converts(control_flow.IfOp)
def _if(graph: GraphBuilder, op: control_flow.IfOp) -> None:
    regions: dict[str, Region] = {}
    for name, region in (("then_branch", op.then_region), ("else_branch", op.else_region)):
        body = graph.nested()
        body.add_block(region.block)
        regions[name] = body.region([body.output(v) for v in control_flow.yielded(region)])
    values = graph.nodes("If", [graph.value(op.condition)], len(op.results), regions)
    graph.set(op, *values)
    for result in op.results:
        graph.define_symbols_of(result)


@converts(control_flow.LoopOp)
def _loop(graph: GraphBuilder, op: control_flow.LoopOp) -> None:
    absent = graph.shared.absent
    limit = absent if op.trip_count is None else graph.value(op.trip_count)
    condition = absent if op.condition is None else graph.value(op.condition)
    inputs = [limit, condition, *(graph.value(value) for value in op.inits)]
    count = len(op.results) + (op.count is not None)
    values = graph.nodes("Loop", inputs, count, {"body": _loop_body(graph, op)})
    graph.set(op, *values[: len(op.results)])
    for result in op.results[: len(op.inits)]:
        graph.define_symbols_of(result)
    if op.count is not None:
        graph.define_symbol(op.count.data, graph.node("Shape", [values[-1]]))


def _loop_body(graph: GraphBuilder, op: control_flow.LoopOp) -> Region:
    """If the loop has a count, a last scan output has one element an iteration."""
    number, *carried = op.body.block.args
    body = graph.nested([number.type, tensor(i1, []), *(value.type for value in carried)])
    iteration, going, *values = body.block.args
    body.values.update(zip(op.body.block.args, (iteration, *values), strict=True))
    if op.iteration is not None:
        first = body.node("Unsqueeze", [iteration, body.literal([0])])
        body.define_symbol(op.iteration.data, first)
    for value in carried:
        body.define_symbols_of(value)
    body.add_block(op.body.block)
    if op.yielded_condition is None:
        again = body.node("Identity", [going])
    else:
        again = body.node("Reshape", [body.value(op.yielded_condition), body.literal([])])
    outputs = [
        typed(again, going.type),
        *(body.output(v) for v in (*op.yielded_carried, *op.yielded_scans)),
    ]
    if op.count is not None:
        outputs.append(body.output(number))
    return body.region(outputs)


@converts(control_flow.KernelOp)
def _kernel(graph: GraphBuilder, op: control_flow.KernelOp) -> None:
    block = op.body.block
    for argument, value in zip(block.args, op.inputs, strict=True):
        graph.values[argument] = graph.value(value)
    graph.add_block(block)
    graph.set(op, *(graph.value(value) for value in control_flow.yielded(op.body)))
