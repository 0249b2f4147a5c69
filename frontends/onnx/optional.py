"""
Which initializers of a graph are inputs that a caller may leave out.

Since version 4 of the IR an initializer that is listed among the inputs, too, is the default of
that input (ONNX IR specification, "Graphs"). Exporters that were written before, or like those,
list all weights there, of which no caller means to give others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import ModelProto
from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.defaults import DefaultAttr
from lowerdeck.dialects.core.types import COMPUTABLE
from lowerdeck.dialects.onnx.ops import InitializerOp, NoneOp, OnnxOp

FIRST_IR_VERSION = 4
"""Before it, every initializer had to be listed, and was a constant."""

_WEIGHTS: Mapping[str, Collection[int]] = {
    "BatchNormalization": (1, 2, 3, 4),
    "Conv": (1, 2),
    "ConvInteger": (1, 3),
    "ConvTranspose": (1, 2),
    "DeformConv": (1, 3),
    "Einsum": range(64),
    "GRU": (1, 2, 3),
    "Gather": (0,),
    "Gemm": (0, 1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LSTM": (1, 2, 3, 7),
    "LayerNormalization": (1, 2),
    "MatMul": (0, 1),
    "MatMulInteger": (0, 1, 2, 3),
    "PRelu": (1,),
    "QLinearConv": range(1, 9),
    "QLinearMatMul": range(8),
    "RMSNormalization": (1,),
    "RNN": (1, 2, 3),
}
"""The operands that are weights wherever they are computed from constants alone."""

_DECISIVE = frozenset({"axes", "axis", "block_shape", "position"})
"""Operands that an op is legalized by, so that it needs to know them: by their schema names."""


def listed_initializers(model: ModelProto) -> list[str]:
    """The names of the initializers that are listed among the inputs, in that order."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name in initializers]


def default_of(op: InitializerOp) -> DefaultAttr | None:
    """An initializer as the default of an input; None for a type that inputs cannot have."""
    if not isinstance(op.value, BlobAttr) or op.output.type.element_type not in COMPUTABLE:
        return None
    return DefaultAttr(op.output.type, op.value)


def weights_among(block: Block) -> set[InitializerOp]:
    """
    The initializers of a graph that are weights by their role: an operand of `_WEIGHTS`, or one
    that has to be known, is computed from them and other constants alone.
    """
    constant, pending = set[SSAValue](), list[SSAValue]()
    for op in block.walk():
        if isinstance(op, InitializerOp | NoneOp):
            constant.update(op.results)
        elif isinstance(op, OnnxOp):
            pending += [value for value in _role_operands(op) if value in constant]
            if not op.regions and constant.issuperset(op.operands):
                constant.update(op.results)
    found, seen = set[InitializerOp](), set[SSAValue]()
    while pending:
        if (value := pending.pop()) in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, InitializerOp):
            found.add(value.owner)
        elif isinstance(value.owner, OnnxOp):
            pending += value.owner.operands
    return found


def _role_operands(op: OnnxOp) -> Iterator[SSAValue]:
    weights = _WEIGHTS.get(op.op_type, ())
    formals = op.schema.inputs
    for index, value in enumerate(op.operands):
        if index in weights or (index < len(formals) and formals[index].name in _DECISIVE):
            yield value
