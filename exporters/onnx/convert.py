"""`convert-to-onnx`: core becomes the onnx dialect, for the exporter."""

from __future__ import annotations

from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from lowerdeck.exporters.errors import ExportError
from lowerdeck.exporters.onnx.builder import GraphBuilder
from lowerdeck.passes.loops.expand_suppression import ExpandSuppressionPass

_TOPICS = (
    *("constants", "control_flow", "custom", "elementwise", "linear", "movement", "quantize"),
    "reductions",
)
"""The modules that register converters."""


class ConvertToOnnxPass(ModulePass):
    """
    Turn every op of core into nodes of opset 21.

    - Control flow becomes If and Loop whose bodies capture outer values; kernels are inlined.
    - Constants become initializers of the main graph; equal small ones of our own are one.
    - Dimension symbols are read by Shape where a value needs one, and expressions of them computed.
    - What ONNX leaves open and core does not, such as integer division by zero, gets the nodes that
      decide it.

    - `core.requantize` becomes integer arithmetic that gives the same integers, and `core.suppress`
      a loop: NonMaxSuppression has another overlap, of floats that are f32.

    ExportError lists every op without a form in onnx: convolutions and pools of integers other than
    bytes, windows of symbolic size, and shifts of Booleans.
    """

    name = "convert-to-onnx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for topic in _TOPICS:
            import_module(f"lowerdeck.exporters.onnx.{topic}")
        ExpandSuppressionPass().apply(ctx, op)
        problems: list[str] = []
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                problems += _convert(function)
        if problems:
            raise ExportError("\n".join(problems))


def _convert(function: FuncOp) -> list[str]:
    """Give a function a body of onnx; what is wrong, if anything is, and then it keeps its own."""
    old = function.body.block
    block = Block(arg_types=old.arg_types)
    graph = GraphBuilder.main(block)
    for argument, new in zip(old.args, block.args, strict=True):
        new.name_hint = argument.name_hint
        graph.values[argument] = new
    for argument in old.args:
        graph.define_symbols_of(argument)
    graph.add_block(old)
    if graph.shared.problems:
        return graph.shared.problems
    last = old.last_op
    assert isinstance(last, ReturnOp)
    end = graph.add(ReturnOp(*(graph.value(value) for value in last.operands)))
    end.location = last.location
    if graph.shared.initializers:
        block.insert_ops_before(graph.shared.initializers, block.ops.first or end)
    region = function.body
    region.add_block(block)
    region.detach_block(old)
    old.erase(safe_erase=False)
    return []
